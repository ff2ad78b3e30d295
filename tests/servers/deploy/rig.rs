//! A blog, everfeed, and a web server before both, each at a free port; and curl, which asks the
//! web server.

use super::servers::WebServer;
use everfeed::{app::App, config::Config};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::Instant,
};
use testkit::{
    client::{Answer, get},
    place::{Running, free_address},
    publisher::{Publisher, ok},
    wait::{GLANCE, PATIENCE, comes},
};

/// The host of the blog in the configurations.
pub(crate) const HOST: &str = "blog.example.org";
/// The address of the reader; every address of the loopback is a host of its own.
pub(crate) const READER: &str = "127.0.0.9";
/// The addresses of all three, and a folder for the configuration of the web server.
pub(crate) struct Place {
    /// The folder and the address of everfeed.
    own: testkit::place::Place,
    /// The address of the web server.
    pub(crate) front: SocketAddr,
    blog: SocketAddr,
}

impl Place {
    pub(crate) fn folder(&self) -> &Path {
        self.own.folder()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        self.own.write(name, text);
    }

    /// A file of `deploy/behind/` with the addresses of this place, and further changes. Whatever
    /// is to be changed is there.
    pub(crate) fn ours(&self, name: &str, changes: &[(&str, &str)]) -> String {
        let mut text = fs::read_to_string(deployed(name)).unwrap();
        for (from, to) in changes {
            assert!(text.contains(from), "{from:?} is no more in {name}");
            text = text.replace(from, to);
        }
        let folder = self.folder().display();
        text.replace("127.0.0.1:8080", &self.own.consumers.to_string())
            .replace("127.0.0.1:8081", &self.blog.to_string())
            .replace(
                "/etc/letsencrypt/live/blog.example.org",
                &folder.to_string(),
            )
    }
}

fn deployed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("deploy/behind")
        .join(name)
}

/// A blog whose posts are numbered.
#[derive(Clone, Default)]
pub(crate) struct Posts(Arc<Mutex<Vec<String>>>);

impl Posts {
    pub(crate) fn publish(&self, title: &str) {
        self.0.lock().unwrap().push(title.to_owned());
    }

    fn rss(&self) -> String {
        let posts = self.0.lock().unwrap();
        let item =
            |title: &String| format!("<item><guid>{title}</guid><title>{title}</title></item>");
        let items: String = posts.iter().rev().map(item).collect();
        format!(
            "<?xml version=\"1.0\"?>\n<rss version=\"2.0\"><channel><title>b</title>{items}</channel></rss>"
        )
    }
}

/// Everything that runs.
pub(crate) struct Deployment {
    pub(crate) posts: Posts,
    /// Answers pages with the head of their request.
    pub(crate) blog: Publisher,
    app: App,
    place: Place,
    running: Running,
}

impl Deployment {
    /// Starts all three, and waits until the feed is served.
    pub(crate) async fn start(server: &WebServer) -> Self {
        let posts = Posts::default();
        posts.publish("First");
        let shown = posts.clone();
        let blog = Publisher::of(move |asked| match asked.path() {
            "/rss.xml" => ok("application/rss+xml", shown.rss()),
            _ => ok("text/plain", &asked.head),
        })
        .await;
        let place = Place {
            own: testkit::place::Place::free(),
            front: free_address(),
            blog: blog.url("").trim_start_matches("http://").parse().unwrap(),
        };
        let app = App::start(configuration(&place, server)).await.unwrap();
        // Servers that leave the rights of root read them before.
        let pair = rcgen::generate_simple_self_signed([HOST.to_owned()]).unwrap();
        place.write("fullchain.pem", &pair.cert.pem());
        place.write("privkey.pem", &pair.signing_key.serialize_pem());
        let running = place.own.start_group("output", &mut server.command(&place));
        let mut deployment = Self {
            posts,
            blog,
            app,
            place,
            running,
        };
        deployment.is_up().await;
        deployment
    }

    async fn is_up(&mut self) {
        let began = Instant::now();
        while tokio::net::TcpStream::connect(self.place.front)
            .await
            .is_err()
        {
            let ended = self.running.ended();
            assert!(
                ended.is_none() && began.elapsed() < PATIENCE,
                "it does not run: {}",
                self.log()
            );
            tokio::time::sleep(GLANCE).await;
        }
        self.until("the feed is served", async || {
            self.get("/smart/feeds/blog-rss-xml.json").await.status == 200
        })
        .await;
    }

    pub(crate) async fn until(&self, what: &str, is_so: impl AsyncFn() -> bool) {
        let is_so = comes(is_so).await;
        assert!(is_so, "not within {PATIENCE:?}: {what}; {}", self.log());
    }

    /// All that the web server has to say.
    fn log(&self) -> String {
        self.place.own.read("output") + &self.place.own.read("log")
    }

    /// The public address of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{HOST}:{}{path}", self.place.front.port())
    }

    /// Starts curl as a reader at an address of the loopback.
    pub(crate) fn curl(&self, reader: &str, arguments: &[&str]) -> Child {
        let resolve = format!("{HOST}:{}:127.0.0.1", self.place.front.port());
        let mut command = Command::new("curl");
        command.args([
            "-sS",
            "-i",
            "-m",
            "120",
            "--interface",
            reader,
            "--resolve",
            &resolve,
            "--cacert",
        ]);
        command
            .arg(self.place.folder().join("fullchain.pem"))
            .args(arguments);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// The answer that curl gets.
    pub(crate) async fn asked(&self, reader: &str, arguments: &[&str]) -> Answer {
        answer(self.curl(reader, arguments)).await
    }

    /// The answer of the web server for a path.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.asked(READER, &[&self.url(path)]).await
    }

    /// The answer of everfeed to somebody who goes around the web server.
    pub(crate) async fn around(&self, reader: &str, path: &str, headers: &[&str]) -> Answer {
        let url = format!("http://{}{path}", self.place.own.consumers);
        let host = format!("Host: {HOST}");
        let headers = headers.iter().flat_map(|header| ["-H", *header]);
        let arguments: Vec<&str> = ["-H", &host, &url].into_iter().chain(headers).collect();
        self.asked(reader, &arguments).await
    }

    /// Requests that everfeed holds.
    pub(crate) async fn held(&self) -> u64 {
        let metrics = get(self.app.admin_address(), "/metrics").await.text();
        let held = metrics
            .lines()
            .find_map(|line| line.strip_prefix("everfeed_held_requests "));
        held.expect("a gauge").parse().unwrap()
    }

    /// Active subscriptions.
    pub(crate) async fn has_subscription(&self) -> bool {
        let status = get(self.app.admin_address(), "/status").await;
        status.text().contains("\"active\": 1")
    }
}

/// The answer that a curl which was started gets.
pub(crate) async fn answer(curl: Child) -> Answer {
    let output = tokio::task::spawn_blocking(move || curl.wait_with_output().unwrap())
        .await
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let fault = String::from_utf8_lossy(&output.stderr).into_owned();
    let (head, body) = text
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("no answer: {fault}{text}"));
    let mut lines = head.lines();
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1)?.parse().ok())
        .expect("a status");
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        headers.append(
            HeaderName::try_from(name).unwrap(),
            HeaderValue::try_from(value).unwrap(),
        );
    }
    Answer {
        status,
        headers,
        body: body.to_owned().into(),
    }
}

/// `everfeed.toml` for this place. A private feed tells who is believed to ask, and callbacks are
/// on this machine.
fn configuration(place: &Place, server: &WebServer) -> Config {
    let (store, public) = (
        place.folder().join("everfeed.redb"),
        format!("https://{HOST}:{}", place.front.port()),
    );
    let speaks = format!("proxy_protocol = {}", server.speaks_proxy_protocol);
    let changes = [
        ("https://blog.example.org", public.as_str()),
        ("/var/lib/everfeed/everfeed.redb", store.to_str().unwrap()),
        ("proxy_protocol = false", &speaks),
        (
            "[store]",
            "admin_listen = \"127.0.0.1:0\"\nshutdown_secs = 2\n\n[store]",
        ),
    ];
    let ours = place.ours("everfeed.toml", &changes);
    let private = format!(
        "[hub]\ncallbacks_private = true\n\
         [[feed]]\nname = \"closed\"\nurl = \"http://{}/closed.xml\"\naccess = \"private\"\n",
        place.blog
    );
    Config::parse("deploy/behind/everfeed.toml", &(ours + &private)).unwrap()
}
