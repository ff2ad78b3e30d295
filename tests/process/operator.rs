//! The commands of an operator beside a process that runs: `poll`, `status`, `health`, `check`, and
//! its messages to systemd.

use crate::EVERFEED;
use nix::sys::signal::Signal;
use std::{
    os::unix::net::UnixDatagram,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    time::Instant,
};
use testkit::{
    place::{self, Place},
    process::Process,
    publisher::{Publisher, rss, with_headers},
    wait::{GLANCE, PATIENCE},
};

/// A publisher whose answers follow a number: that many posts, or from 400 on a status.
async fn publisher(answer: &Arc<AtomicU16>) -> Publisher {
    let answer = answer.clone();
    Publisher::of(move |_| match answer.load(Ordering::Relaxed) {
        status @ 400.. => with_headers(status, &[("retry-after", "7200")], ""),
        posts => rss(posts.into()),
    })
    .await
}

/// A process that serves, and what it tells its supervisor.
struct Supervised {
    process: Process,
    notices: UnixDatagram,
}

impl Supervised {
    fn start(feeds: &str) -> Self {
        Self::start_watched(feeds, "0")
    }

    /// Likewise, with a watchdog that wants to hear from it within so many microseconds.
    fn start_watched(feeds: &str, watchdog_us: &str) -> Self {
        let place = Place::free();
        place.configure("", feeds);
        let socket = place.path("notify");
        let notices = UnixDatagram::bind(&socket).unwrap();
        notices.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut serve = place.command(EVERFEED, &["serve"]);
        serve
            .env("NOTIFY_SOCKET", &socket)
            .env("WATCHDOG_USEC", watchdog_us);
        let mut process = Process::new(EVERFEED, place, "error");
        process.start_as(&mut serve);
        let supervised = Self { process, notices };
        assert!(
            supervised.notice().starts_with("READY=1"),
            "the first message says that the start is over"
        );
        supervised
    }

    /// Runs a command until it prints this; the first polls may be under way.
    fn until(&self, arguments: &[&str], part: &str) -> (i32, String) {
        let started = Instant::now();
        loop {
            let told = self.process.everfeed(arguments);
            if told.1.contains(part) {
                return told;
            }
            assert!(
                started.elapsed() < PATIENCE,
                "`{part}` is not in {}",
                told.1
            );
            std::thread::sleep(GLANCE);
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
    place::feed(name, url, "")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_that_is_asked_for_is_told_and_a_publisher_who_wants_rest_gets_it_unless_now() {
    let answer = Arc::new(AtomicU16::new(3));
    let publisher = publisher(&answer).await;
    let supervised = Supervised::start(&feed("blog", &publisher.url("/rss")));
    assert_eq!(
        // Two spaces before it: the heading "last good" is there from the start.
        supervised.until(&["status"], "  good").0,
        0,
        "nothing is broken"
    );
    assert_eq!(
        supervised.process.everfeed(&["health"]),
        (0, "healthy\n".into())
    );

    answer.store(5, Ordering::Relaxed);
    let (code, told) = supervised.process.everfeed(&["poll", "blog"]);
    assert_eq!(code, 0, "{told}");
    assert!(
        told.starts_with("blog: the document was read: 2 new, 0 edited, 0 gone; next poll "),
        "{told}"
    );
    assert!(told.trim_end().ends_with(" min)"), "{told}");
    let (code, told) = supervised.process.everfeed(&["poll", "blog"]);
    assert!(
        code == 0 && told.contains("nothing has changed"),
        "{code} {told}"
    );

    for status in [503, 410] {
        answer.store(status, Ordering::Relaxed);
        let (code, told) = supervised.process.everfeed(&["poll", "blog", "--now"]);
        assert!(
            code == 1 && told.contains(&status.to_string()) && told.contains("the publisher's"),
            "{told}"
        );
        let requests = publisher.requests().len();
        let (code, told) = supervised.process.everfeed(&["poll", "blog"]);
        assert!(
            code == 1 && told.contains("not polled") && told.contains("--now"),
            "{told}"
        );
        assert_eq!(publisher.requests().len(), requests, "nothing was asked");
        let (code, told) = supervised.process.everfeed(&["status"]);
        assert!(
            code == 1 && told.contains("failing") && told.contains(&status.to_string()),
            "{told}"
        );
        answer.store(5, Ordering::Relaxed);
        let (code, told) = supervised.process.everfeed(&["poll", "blog", "--now"]);
        assert!(code == 0 && told.contains("blog: "), "{told}");
        assert_eq!(supervised.process.everfeed(&["status"]).0, 0);
    }
    let (code, told) = supervised.process.everfeed(&["poll", "other"]);
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
    let mut supervised = Supervised::start(&format!("{one}{two}"));
    supervised.until(&["poll", "one"], "nothing has changed");
    supervised.until(&["poll", "two"], "nothing has changed");
    let (code, told) = supervised.process.everfeed(&["check"]);
    assert!(code == 0 && !told.contains("kept"), "{told}");

    // `two` gets another name: beside the running process, after a reload, and without a process.
    let text = supervised.process.place.read("everfeed.toml");
    let renamed = text.replace("name = \"two\"", "name = \"zwei\"");
    supervised.process.place.write("everfeed.toml", &renamed);
    let check = |supervised: &Supervised| {
        let (code, told) = supervised.process.everfeed(&["check"]);
        assert!(
            code == 0 && told.contains("`two`") && told.contains("3 items are kept"),
            "{told}"
        );
        told
    };
    assert!(check(&supervised).contains("`zwei` has its URL"));
    assert_eq!(supervised.process.everfeed(&["reload"]).0, 0);
    assert!(check(&supervised).contains("`zwei` has its URL"));
    let (_, told) = supervised.process.everfeed(&["status"]);
    assert!(
        told.contains("two: not configured any more; items kept: 3"),
        "{told}"
    );

    supervised.process.end().await;
    assert!(check(&supervised).contains("`zwei` has its URL"));
    assert_eq!(supervised.process.everfeed(&["health"]).0, 1);
    assert_eq!(supervised.process.everfeed(&["status"]).0, 1);
    let (code, told) = supervised.process.everfeed(&["poll", "one"]);
    assert!(
        code == 1 && told.contains("everfeed is not running"),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_supervisor_is_told_of_the_start_of_every_good_look_and_of_the_stop() {
    let answer = Arc::new(AtomicU16::new(3));
    let publisher = publisher(&answer).await;
    let supervised = Supervised::start_watched(&feed("blog", &publisher.url("/rss")), "600000");
    assert_eq!(
        (
            supervised.notice().trim_end(),
            supervised.notice().trim_end()
        ),
        ("WATCHDOG=1", "WATCHDOG=1")
    );
    supervised.process.signal(Signal::SIGTERM);
    let started = Instant::now();
    while supervised.notice().trim_end() != "STOPPING=1" {
        assert!(started.elapsed() < PATIENCE, "the stop is told");
    }
}
