//! The commands of an operator beside a process that runs: `poll`, `status`, `health`, `check`, and
//! its messages to systemd.

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    os::unix::net::UnixDatagram,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    time::{Duration, Instant},
};
use tempfile::TempDir;
use testkit::publisher::{Answer, Publisher, ok};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn rss(posts: u16) -> Answer {
    let post = |n: u16| format!("<item><guid>{n}</guid><title>Post {n}</title></item>");
    let posts: String = (1..=posts).rev().map(post).collect();
    let text = format!("<rss version=\"2.0\"><channel><title>blog</title>{posts}</channel></rss>");
    ok("application/rss+xml", text.as_bytes())
}

/// A publisher whose answers follow a number: that many posts, or from 400 on a status.
async fn publisher(answer: &Arc<AtomicU16>) -> Publisher {
    let answer = answer.clone();
    Publisher::of(move |_| match answer.load(Ordering::Relaxed) {
        status @ 400.. => Answer::Bytes(
            format!(
                "HTTP/1.1 {status} No\r\nRetry-After: 7200\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
            .into_bytes(),
        ),
        posts => rss(posts),
    })
    .await
}

/// A process that serves; it is ended when it is dropped.
struct Running {
    folder: TempDir,
    child: Child,
    notices: UnixDatagram,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start(feeds: &str) -> Self {
        Self::start_watched(feeds, "0")
    }

    /// Likewise, with a watchdog that wants to hear from it within so many microseconds.
    fn start_watched(feeds: &str, watchdog_us: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = || {
            std::net::TcpListener::bind("127.0.0.1:0")
                .unwrap()
                .local_addr()
                .unwrap()
                .port()
        };
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:{}\"\nadmin_listen = \"127.0.0.1:{}\"\n[store]\npath = {:?}\n{feeds}",
            port(),
            port(),
            folder.path().join("everfeed.redb").display().to_string()
        );
        std::fs::write(folder.path().join("everfeed.toml"), text).unwrap();
        let socket = folder.path().join("notify");
        let notices = UnixDatagram::bind(&socket).unwrap();
        notices.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut serve = Command::new(env!("CARGO_BIN_EXE_everfeed"));
        serve
            .arg("serve")
            .arg("--config")
            .arg(folder.path().join("everfeed.toml"));
        serve
            .env("NOTIFY_SOCKET", &socket)
            .env("WATCHDOG_USEC", watchdog_us)
            .env("RUST_LOG", "error");
        let child = serve.stdout(Stdio::null()).spawn().unwrap();
        let running = Self {
            folder,
            child,
            notices,
        };
        assert!(
            running.notice().starts_with("READY=1"),
            "the first message says that the start is over"
        );
        running
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("everfeed.toml")
    }

    /// Runs a command: its exit code, and all that it printed.
    fn everfeed(&self, arguments: &[&str]) -> (i32, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_everfeed"));
        let output = command
            .args(arguments)
            .arg("--config")
            .arg(self.file())
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code().unwrap(),
            String::from_utf8(text).unwrap(),
        )
    }

    /// Runs a command until it prints this; the first polls may be under way.
    fn until(&self, arguments: &[&str], part: &str) -> (i32, String) {
        let started = Instant::now();
        loop {
            let told = self.everfeed(arguments);
            if told.1.contains(part) {
                return told;
            }
            assert!(
                started.elapsed() < PATIENCE,
                "`{part}` is not in {}",
                told.1
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The next message to the supervisor.
    fn notice(&self) -> String {
        let mut bytes = [0; 1024];
        let length = self.notices.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }
}

fn feed(name: &str, url: &str) -> String {
    format!("[[feed]]\nname = \"{name}\"\nurl = \"{url}\"\nimport = {{ pages_max = 0 }}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_that_is_asked_for_is_told_and_a_publisher_who_wants_rest_gets_it_unless_now() {
    let answer = Arc::new(AtomicU16::new(3));
    let publisher = publisher(&answer).await;
    let running = Running::start(&feed("blog", &publisher.url("/rss")));
    assert_eq!(running.until(&["status"], "good").0, 0, "nothing is broken");
    assert_eq!(running.everfeed(&["health"]), (0, "healthy\n".into()));

    answer.store(5, Ordering::Relaxed);
    let (code, told) = running.everfeed(&["poll", "blog"]);
    assert_eq!(code, 0, "{told}");
    assert!(
        told.starts_with("blog: the document was read: 2 new, 0 edited, 0 gone; next poll "),
        "{told}"
    );
    assert!(told.trim_end().ends_with(" min)"), "{told}");
    let (code, told) = running.everfeed(&["poll", "blog"]);
    assert!(
        code == 0 && told.contains("nothing has changed"),
        "{code} {told}"
    );

    for status in [503, 410] {
        answer.store(status, Ordering::Relaxed);
        let (code, told) = running.everfeed(&["poll", "blog", "--now"]);
        assert!(
            code == 1 && told.contains(&status.to_string()) && told.contains("publisher's fault"),
            "{told}"
        );
        let requests = publisher.requests().len();
        let (code, told) = running.everfeed(&["poll", "blog"]);
        assert!(
            code == 1 && told.contains("not polled") && told.contains("--now"),
            "{told}"
        );
        assert_eq!(publisher.requests().len(), requests, "nothing was asked");
        let (code, told) = running.everfeed(&["status"]);
        assert!(
            code == 1 && told.contains("failing") && told.contains(&status.to_string()),
            "{told}"
        );
        answer.store(5, Ordering::Relaxed);
        let (code, told) = running.everfeed(&["poll", "blog", "--now"]);
        assert!(code == 0 && told.contains("blog: "), "{told}");
        assert_eq!(running.everfeed(&["status"]).0, 0);
    }
    let (code, told) = running.everfeed(&["poll", "other"]);
    assert!(
        code == 1 && told.contains("no feed `other` is configured"),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_that_leave_the_configuration_are_named_with_what_is_kept_of_them() {
    let answer = Arc::new(AtomicU16::new(3));
    let publisher = publisher(&answer).await;
    let (one, two) = (
        feed("one", &publisher.url("/one")),
        feed("two", &publisher.url("/two")),
    );
    let mut running = Running::start(&format!("{one}{two}"));
    running.until(&["poll", "one"], "nothing has changed");
    running.until(&["poll", "two"], "nothing has changed");
    let (code, told) = running.everfeed(&["check"]);
    assert!(code == 0 && !told.contains("kept"), "{told}");

    // `two` gets another name: beside the running process, after a reload, and without a process.
    let text = std::fs::read_to_string(running.file()).unwrap();
    std::fs::write(
        running.file(),
        text.replace("name = \"two\"", "name = \"zwei\""),
    )
    .unwrap();
    let check = |running: &Running| {
        let (code, told) = running.everfeed(&["check"]);
        assert!(
            code == 0 && told.contains("`two`") && told.contains("3 items are kept"),
            "{told}"
        );
        told
    };
    assert!(check(&running).contains("`zwei` has its URL"));
    assert_eq!(running.everfeed(&["reload"]).0, 0);
    assert!(check(&running).contains("`zwei` has its URL"));
    let (_, told) = running.everfeed(&["status"]);
    assert!(
        told.contains("two: not configured any more; items kept: 3"),
        "{told}"
    );

    kill(
        Pid::from_raw(i32::try_from(running.child.id()).unwrap()),
        Signal::SIGTERM,
    )
    .unwrap();
    assert!(running.child.wait().unwrap().success());
    assert!(check(&running).contains("`zwei` has its URL"));
    assert_eq!(running.everfeed(&["health"]).0, 1);
    assert_eq!(running.everfeed(&["status"]).0, 1);
    let (code, told) = running.everfeed(&["poll", "one"]);
    assert!(code == 1 && told.contains("no everfeed answers"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_supervisor_is_told_of_the_start_of_every_good_look_and_of_the_stop() {
    let answer = Arc::new(AtomicU16::new(3));
    let publisher = publisher(&answer).await;
    let running = Running::start_watched(&feed("blog", &publisher.url("/rss")), "600000");
    assert_eq!(
        (running.notice().trim_end(), running.notice().trim_end()),
        ("WATCHDOG=1", "WATCHDOG=1")
    );
    kill(
        Pid::from_raw(i32::try_from(running.child.id()).unwrap()),
        Signal::SIGTERM,
    )
    .unwrap();
    let started = Instant::now();
    while running.notice().trim_end() != "STOPPING=1" {
        assert!(started.elapsed() < PATIENCE, "the stop is told");
    }
}
