//! Groups, the whole program: two blogs and a planet of them, from the first document on, over
//! edits, deletions and reloads.

use everfeed::{
    app::App,
    config::{Config, ConfigSource, Registered},
};
use http::Method;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use testkit::{
    client::{ask, get},
    place::{Place, feed},
    publisher::{self, Publisher, ok},
    wait::{GLANCE, PATIENCE, comes, until},
};
use tokio::time::{sleep, timeout};

/// A post: its guid, its link, its title.
type Post = (&'static str, &'static str, &'static str);

/// The documents of a host, by path, and an everfeed before it.
struct World {
    place: Place,
    publisher: Publisher,
    documents: Arc<Mutex<BTreeMap<String, String>>>,
}

impl World {
    async fn new() -> Self {
        let documents: Arc<Mutex<BTreeMap<String, String>>> = Arc::default();
        let shown = Arc::clone(&documents);
        let publisher = Publisher::of(move |asked| match shown.lock().unwrap().get(asked.path()) {
            Some(text) => ok("application/rss+xml", text.as_bytes()),
            None => publisher::with_headers(404, &[], ""),
        })
        .await;
        Self {
            place: Place::unbound(),
            publisher,
            documents,
        }
    }

    /// Puts a feed online; `deleted` are the links of posts that it says are deleted.
    fn show(&self, name: &str, posts: &[Post], deleted: &[&str]) {
        let post = |(guid, link, title): &Post| {
            format!(
                "<item><guid isPermaLink=\"false\">{guid}</guid><link>{link}</link><title>{title}</title></item>"
            )
        };
        let posts: String = posts.iter().map(post).collect();
        let gone = |guid: &&str| {
            format!("<at:deleted-entry ref=\"{guid}\" when=\"2026-01-01T00:00:00Z\"/>")
        };
        let gone: String = deleted.iter().map(gone).collect();
        let text = format!(
            "<rss version=\"2.0\" xmlns:at=\"http://purl.org/atompub/tombstones/1.0\"><channel><title>Blog {name}</title>\
             <link>http://{name}.example/</link>{posts}{gone}</channel></rss>"
        );
        self.documents
            .lock()
            .unwrap()
            .insert(format!("/{name}.xml"), text);
    }

    /// Writes a configuration with these feeds, and further lines.
    fn write(&self, feeds: &[(&str, &str)], lines: &str) -> ConfigSource {
        let feeds = feeds.iter().map(|(name, lines)| {
            let url = self.publisher.url(&format!("/{name}.xml"));
            feed(name, &url, lines)
        });
        let rest = feeds.collect::<String>() + lines;
        self.place
            .configure("public_url = \"http://feeds.example\"", &rest);
        ConfigSource {
            file: self.place.file(),
            environment: Vec::new(),
        }
    }

    async fn start(&self, source: &ConfigSource) -> App {
        App::start_with(source.load().unwrap(), Some(source.clone()))
            .await
            .unwrap()
    }
}

async fn poll(app: &App, name: &str) {
    let target = format!("/poll/{name}?now");
    let answer = ask(app.admin_address(), Method::POST, &target, &[], "")
        .await
        .unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// The titles of the living items of a feed.
async fn titles(at: SocketAddr, name: &str) -> Option<BTreeSet<String>> {
    let answer = get(at, &format!("/feeds/{name}.json?max=100")).await;
    if answer.status != 200 {
        return None;
    }
    let page: Value = serde_json::from_slice(&answer.body).unwrap();
    let title = |item: &Value| Some(item["title"].as_str()?.to_owned());
    let live = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["deleted"] != true);
    Some(live.filter_map(title).collect())
}

/// Waits until the planet shows posts with these titles, and no other.
async fn shows(at: SocketAddr, expect: &[&str]) {
    let expect: BTreeSet<String> = expect.iter().map(|&title| title.to_owned()).collect();
    let is_so = comes(async || titles(at, "planet").await.as_ref() == Some(&expect)).await;
    let shown = titles(at, "planet").await;
    assert!(is_so, "the planet shows {shown:?} and not {expect:?}");
}

const PLANET: &str = "[[group]]\nname = \"planet\"\ntitle = \"Our planet\"\nmembers = [\"a\", \"category:friends\"]\n";

#[tokio::test]
async fn a_planet_follows_its_members_over_edits_deletions_reloads_and_a_restart() {
    let world = World::new().await;
    world.show(
        "a",
        &[("1", "http://x/1", "one"), ("2", "http://x/2", "two")],
        &[],
    );
    world.show(
        "b",
        &[
            ("2", "http://x/2", "two again"),
            ("3", "http://x/3", "three"),
        ],
        &[],
    );
    let both = [("a", ""), ("b", "categories = [\"friends\"]")];
    let source = world.write(&both, PLANET);
    let app = world.start(&source).await;
    let at = app.address();
    until("both are read", async || {
        titles(at, "b").await.is_some() && titles(at, "a").await.is_some()
    })
    .await;
    let all = titles(at, "planet").await.unwrap();
    assert!(
        all.contains("one") && all.contains("three") && all.len() == 3,
        "{all:?}"
    );

    // What is shown says where it is from, and nothing of the upstream.
    let atom = get(at, "/feeds/planet.atom").await.text();
    for part in [
        "<title>Our planet</title>",
        "<source>",
        "<title>Blog a</title>",
        "rel=\"self\" href=\"http://feeds.example/feeds/b.atom",
        "rel=\"alternate\" href=\"http://b.example/\"",
    ] {
        assert!(atom.contains(part), "{part} in {atom}");
    }
    let rss = get(at, "/feeds/planet/classic.rss").await.text();
    assert!(
        rss.contains("<source url=\"http://feeds.example/feeds/a.atom"),
        "{rss}"
    );
    assert!(!atom.contains("127.0.0.1") && !rss.contains("127.0.0.1"));
    let opml = get(at, "/feeds/planet.opml").await.text();
    assert_eq!(opml.matches("<outline type=\"rss\"").count(), 2, "{opml}");
    assert!(
        opml.contains("<title>Our planet</title>") && opml.contains("text=\"Blog b\""),
        "{opml}"
    );
    let list: Value = serde_json::from_slice(&get(at, "/feeds").await.body).unwrap();
    assert!(
        list["feeds"]
            .as_array()
            .unwrap()
            .iter()
            .any(|feed| feed["name"] == "planet")
    );
    let about: Value = serde_json::from_slice(&get(at, "/feeds/planet/about").await.body).unwrap();
    assert_eq!(about["members"]["feeds"][1]["name"], "b");

    // An edit and a deletion; who waits for the planet is woken by the commit of its member.
    let head: Value = serde_json::from_slice(
        &get(at, "/feeds/planet.json?order=-modified&max=1")
            .await
            .body,
    )
    .unwrap();
    let cursor = head["last_cursor"].as_str().unwrap();
    let target = format!("/feeds/planet.json?since=cursor:{cursor}&timeout=50");
    let held = tokio::spawn(async move { get(at, &target).await });
    sleep(GLANCE).await;
    world.show("b", &[("3", "http://x/3", "three, edited")], &["2"]);
    poll(&app, "b").await;
    let woken = timeout(PATIENCE, held).await.unwrap().unwrap();
    assert!(woken.text().contains("three, edited"), "{}", woken.text());
    shows(at, &["one", "two", "three, edited"]).await;

    // Nothing is polled for a group.
    let refused = ask(app.admin_address(), Method::POST, "/poll/planet", &[], "")
        .await
        .unwrap();
    assert!(
        refused.text().contains("Poll its members: a, b"),
        "{}",
        refused.text()
    );
    let told: Value =
        serde_json::from_slice(&get(app.admin_address(), "/explain/planet").await.body).unwrap();
    assert_eq!(
        told["members"],
        serde_json::json!(["a: all of its posts are in", "b: all of its posts are in"])
    );

    // A member leaves with a reload, and comes back with the next start.
    world.write(&[("a", ""), ("b", "")], PLANET);
    let refused = app.reload().await.unwrap_err().to_string();
    assert!(
        refused.contains("group.planet.members[1]")
            && refused.contains("no feed has this name or category"),
        "{refused}"
    );
    world.write(
        &[("a", ""), ("b", "")],
        &PLANET.replace(", \"category:friends\"", ""),
    );
    let told = app.reload().await.unwrap().to_string();
    assert!(told.contains("changed  group.planet.members"), "{told}");
    shows(at, &["one", "two"]).await;
    let gone = get(at, "/feeds/planet.json?deleted=only").await.text();
    assert!(
        gone.contains("left-group") && !gone.contains("three"),
        "{gone}"
    );
    assert_eq!(
        titles(at, "b").await.unwrap(),
        ["three, edited".to_owned()].into()
    );
    app.stop().await.unwrap();
    let source = world.write(&both, PLANET);
    let app = world.start(&source).await;
    shows(app.address(), &["one", "two", "three, edited"]).await;

    // Without its table it is gone as a feed is; configured again it has missed nothing.
    world.write(&both, "");
    app.reload().await.unwrap();
    assert_eq!(get(app.address(), "/feeds/planet.atom").await.status, 410);
    world.show(
        "a",
        &[
            ("1", "http://x/1", "one, edited"),
            ("2", "http://x/2", "two"),
        ],
        &[],
    );
    poll(&app, "a").await;
    world.write(&both, PLANET);
    app.reload().await.unwrap();
    shows(app.address(), &["one, edited", "two", "three, edited"]).await;
    app.stop().await.unwrap();
}

#[tokio::test]
async fn a_group_that_cannot_be_meant_is_refused_with_what_would_do() {
    let world = World::new().await;
    let private = [
        ("a", "access = [\"alice\"]"),
        ("b", "categories = [\"friends\"]"),
    ];
    let check = |lines: &str, expect: &str| {
        let source = world.write(&private, lines);
        let alone = |config: Config| config.with_registered(&Registered::default(), &source.file);
        let told = source.load().and_then(alone).unwrap_err().to_string();
        assert!(told.contains(expect), "{expect} in {told}");
    };
    let group = |name: &str, members: &str, more: &str| {
        format!("[[group]]\nname = \"{name}\"\nmembers = {members}\n{more}\n")
    };
    check(
        &group("b", "[\"b\"]", ""),
        "a feed or another group has this name",
    );
    check(
        &(group("g", "[\"b\"]", "") + &group("g", "[\"b\"]", "")),
        "a feed or another group has this name",
    );
    check(
        &(group("g", "[\"b\"]", "") + &group("h", "[\"g\"]", "")),
        "Only feeds can be members",
    );
    check(&group("g", "[]", ""), "group.g.members: found no member");
    check(
        "[[group]]\nname = \"g\"\n",
        "group.g.members: found no member",
    );
    check(
        "[[group]]\nmembers = [\"b\"]\n",
        "group.name: found nothing",
    );
    check(&group("G", "[\"b\"]", ""), "give lower-case letters");
    check(
        &group("g", "[\"x\"]", ""),
        "no feed has this name or category",
    );
    check(
        &group("g", "[\"category:x\"]", ""),
        "no feed has this name or category",
    );
    check(&group("g", "[\"b\", \"b\"]", ""), "name each member once");
    check(&group("g", "\"b\"", ""), "give a list of names of feeds");
    check(
        &group("g", "[\"b\"]", "member = 1"),
        "did you mean `members`?",
    );
    check(&group("g", "[\"b\"]", "title = \" \""), "an empty text");
    // Whoever reads the group reads its members.
    check(&group("g", "[\"b\", \"a\"]", ""), "feed `a` is private");
    check(
        &group("g", "[\"a\"]", "access = \"private\""),
        "feed `a` is private",
    );
    check(
        &group("g", "[\"a\"]", "access = [\"alice\", \"bob\"]"),
        "feed `a` is private",
    );
    let parted = [
        ("a", ""),
        (
            "b",
            "show = [{ access = \"public\", filter = \"category=news\" }]",
        ),
    ];
    let told = world
        .write(&parted, &group("g", "[\"b\"]", ""))
        .load()
        .unwrap_err()
        .to_string();
    assert!(
        told.contains("some readers see only parts of feed `b`"),
        "{told}"
    );
    let good = group("g", "[\"a\", \"category:friends\"]", "access = [\"alice\"]");
    world.write(&private, &good).load().unwrap();
}
