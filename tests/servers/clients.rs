//! Subscribers that others wrote, unchanged: each subscribes to the whole program, and a change of the
//! publisher reaches it by push. `tests/run` installs them; FreshRSS is in no registry, and its test is
//! skipped without `EVERFEED_FRESHRSS`. Rows: HUBS 2, C-4, P-19, P03-2, W-16.

use crate::EVERFEED;
use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use testkit::{
    place::{self, Place, Running, free_address},
    publisher::{Publisher, rss},
};

/// The folder into which `tests/run` installs the clients.
fn clients() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join(target.unwrap_or_else(|| "target".into()));
    let folder = folder.join("clients");
    let is_there = |name: &str| folder.join(name).exists();
    assert!(
        [
            "python/flask_websub",
            "node_modules/davereader",
            "node_modules/pubsubhubbub"
        ]
        .iter()
        .all(|name| is_there(name)),
        "the clients are not in {}: tests/run installs them",
        folder.display()
    );
    folder
}

fn script(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/clients");
    folder.join(name)
}

/// everfeed before a publisher with three posts, who writes two more when told to.
struct Rig {
    place: Place,
    posts: Arc<AtomicUsize>,
    _publisher: Publisher,
    _everfeed: Running,
}

impl Rig {
    async fn start() -> Self {
        let posts = Arc::new(AtomicUsize::new(3));
        let count = posts.clone();
        let publisher = Publisher::of(move |_| rss(count.load(Ordering::Relaxed))).await;
        let place = Place::free();
        let server = format!("public_url = \"http://{}\"\n", place.consumers);
        let feed = place::feed("blog", &publisher.url("/rss"), "");
        place.configure(&server, &format!("{feed}[hub]\ncallbacks_private = true\n"));
        let everfeed = place.start(&mut place.command(EVERFEED, &["serve"]));
        place.answers("/feeds/blog.json", 200).await;
        Self {
            place,
            posts,
            _publisher: publisher,
            _everfeed: everfeed,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.place.consumers)
    }

    /// Waits until the client has heard something.
    async fn hears(&self, line: &str) {
        self.place
            .until(&format!("the client hears: {line}"), async || {
                self.place
                    .read("heard.txt")
                    .lines()
                    .any(|heard| heard.contains(line))
            })
            .await;
    }

    /// Waits until everfeed has a subscription of this dialect.
    async fn has(&self, dialect: &str) {
        self.place
            .until(&format!("a subscription by {dialect}"), async || {
                let listed = self.place.run(EVERFEED, &["subscribers", "list"]).all();
                listed.contains(dialect) && listed.contains("active")
            })
            .await;
    }

    /// The publisher writes two posts, and everfeed looks.
    fn publish(&self) {
        self.posts.store(5, Ordering::Relaxed);
        let polled = self.place.run(EVERFEED, &["poll", "blog", "--now"]).all();
        assert!(polled.contains("2 new"), "{polled}");
    }
}

/// A client in the folder of the place, at a port of its own.
fn client(rig: &Rig, program: &str, name: &str, arguments: &[&str]) -> Running {
    let clients = clients();
    let mut command = Command::new(program);
    command
        .env("NODE_PATH", clients.join("node_modules"))
        .env("PYTHONPATH", clients.join("python"))
        .arg(script(name))
        .arg(rig.place.folder())
        .arg(free_address().port().to_string())
        .args(arguments);
    rig.place.start_logging("client.log", &mut command)
}

#[tokio::test(flavor = "multi_thread")]
async fn davereader_registers_by_rsscloud_and_reads_what_it_is_told_of() {
    let rig = Rig::start().await;
    let feed = rig.url("/feeds/blog/classic.rss");
    let _client = client(&rig, "node", "davereader.js", &[&feed]);
    rig.hears("item Post 3").await;
    rig.has("rssCloud").await;
    rig.publish();
    // It reads by itself every 15 minutes.
    rig.hears("item Post 5").await;
    let told = rig
        .place
        .read("heard.txt")
        .matches("POST /feedupdated")
        .count();
    assert_eq!(told, 2, "the trial, and one word for two posts");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_subscriber_pubsubhubbub_of_npm_is_pushed_each_post() {
    let rig = Rig::start().await;
    let topic = rig.url("/feeds/blog.atom?order=modified");
    let _client = client(&rig, "node", "pubsubhubbub.js", &[&topic, &rig.url("/hub")]);
    rig.hears(&format!("subscribed {topic}")).await;
    rig.publish();
    rig.hears(&format!("item Post 5 of {topic}")).await;
    rig.has("PubSubHubbub 0.3").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flask_websub_discovers_the_hub_and_is_pushed_each_post() {
    let rig = Rig::start().await;
    let page = rig.url("/feeds/blog/classic.atom");
    let _client = client(&rig, "python3", "flask_subscriber.py", &[&page]);
    rig.hears(&format!("subscribed {page}")).await;
    rig.publish();
    rig.hears(&format!("item Post 5 of {page}")).await;
    rig.has("WebSub").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn freshrss_subscribes_by_itself_and_is_pushed_each_post() {
    let Some(source) = std::env::var_os("EVERFEED_FRESHRSS") else {
        println!(
            "skipped: EVERFEED_FRESHRSS names no folder with the source of FreshRSS (and php-cli, with sqlite, curl, xml and mbstring, runs it)"
        );
        return;
    };
    let rig = Rig::start().await;
    let port = free_address().port().to_string();
    let mut make = Command::new(script("freshrss.sh"));
    make.arg(rig.place.folder()).arg(&port);
    make.arg(rig.url("/feeds/blog/classic.atom")).arg(source);
    let made = place::run(&mut make, b"");
    assert_eq!(made.code, 0, "{}", made.all());
    let folder = rig.place.path("freshrss");
    let php = |arguments: &[&str]| {
        let mut command = Command::new("php");
        command.current_dir(&folder).args(arguments);
        command
    };
    let mut web = php(&["-S", &format!("127.0.0.1:{port}"), "-t", "p"]);
    let _web = rig.place.start_logging("client.log", &mut web);
    let read = place::run(
        &mut php(&["cli/actualize-user.php", "--user", "reader"]),
        b"",
    );
    assert!(read.all().contains("3 new articles"), "{}", read.all());
    rig.has("PubSubHubbub 0.3").await;
    rig.publish();
    let titles = "$d = new PDO('sqlite:data/users/reader/db.sqlite'); \
        foreach ($d->query('select title from entry union all select title from entrytmp') as $r) echo $r[0], \"\\n\";";
    rig.place
        .until("FreshRSS has what was pushed", async || {
            place::run(&mut php(&["-r", titles]), b"")
                .out
                .contains("Post 5")
        })
        .await;
}
