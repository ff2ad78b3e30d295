//! A list of feeds that is read at intervals, the whole program from outside: over a reload, over
//! restarts, and over days, which a test lets pass in the rows of a store that nobody serves.

use everfeed::{
    app::App,
    clock::System,
    config::ConfigSource,
    feed::stamp::Stamp,
    store::{
        redb::{Config, Redb},
        traits::*,
    },
};
use http::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use testkit::{
    client::{ask, get},
    place::{Place, feed},
    publisher::{Answer, Publisher, ok, rss, with_headers},
    wait::until,
};

/// A place, and the publisher of all feeds and of the list.
struct World {
    place: Place,
    publisher: Publisher,
}

const DAY_SECS: u64 = 86_400;

impl World {
    async fn new() -> Self {
        Self {
            place: Place::unbound(),
            publisher: Publisher::start().await,
        }
    }

    /// From now on the list has these feeds.
    fn lists(&self, names: &[&str]) {
        let outline = |name: &&str| {
            let url = self.publisher.url(&format!("/{name}.xml"));
            format!("<outline text='{name}' title='{name}' xmlUrl='{url}'/>")
        };
        let outlines: String = names.iter().map(outline).collect();
        let list = format!("<opml version='2.0'><body>{outlines}</body></opml>");
        self.list_is(ok("text/x-opml", list));
    }

    /// From now on the list is answered so, and every feed by posts.
    fn list_is(&self, answer: Answer) {
        self.publisher.does(move |asked| {
            if asked.head.starts_with("GET /list.opml") {
                answer.clone()
            } else {
                rss(3)
            }
        });
    }

    fn write(&self, lines: &str) {
        let server = "public_url = \"http://feeds.example\"";
        let mine = feed("mine", &self.publisher.url("/mine.xml"), "");
        self.place.configure(server, &(mine + lines));
    }

    fn opml(&self) -> String {
        let url = self.publisher.url("/list.opml");
        let url = url.replace("//", "//me:hunter2@");
        format!("[[opml]]\nname = \"planet\"\nurl = \"{url}\"\nprivate_hosts = true\n")
    }

    async fn start(&self) -> App {
        let source = ConfigSource {
            file: self.place.file(),
            environment: Vec::new(),
        };
        let config = source.load().unwrap();
        App::start_with(config, Some(source)).await.unwrap()
    }

    /// Lets days pass for the list, in the store that nobody serves: each absence, each read and each
    /// pause is so much longer ago, and three reads have agreed on what is absent.
    async fn days_pass(&self, days: u64) {
        let path = self.place.path("everfeed.redb");
        let store = Redb::open(&path, &Config::default(), Arc::new(System)).unwrap();
        let mut row = store.opml_list("planet").await.unwrap().unwrap();
        let before = |at: Stamp| Stamp::from_secs(at.secs() - days * DAY_SECS);
        for at in [
            &mut row.read_at,
            &mut row.good_at,
            &mut row.whole_at,
            &mut row.paused_at,
        ] {
            *at = at.map(before);
        }
        for absent in &mut row.absent {
            absent.since = before(absent.since);
            absent.reads += 2;
        }
        store.keep_opml_list("planet", Some(row)).await.unwrap();
        store.close().await.unwrap();
    }
}

async fn send(app: &App, method: Method, target: &str) -> String {
    let answer = ask(app.admin_address(), method, target, &[], "").await;
    answer.unwrap().text().to_owned()
}

async fn status(app: &App) -> Value {
    get(app.admin_address(), "/status").await.json()
}

/// The list, as the status shows it.
async fn list(app: &App) -> Value {
    status(app).await["lists"][0].clone()
}

/// Names of the feeds of the list, each with true while it is paused.
async fn brought(app: &App) -> Vec<(String, bool)> {
    let page = get(app.admin_address(), "/feeds").await.json();
    let feeds = page["feeds"].as_array().unwrap().clone();
    let of_list = feeds.iter().filter(|feed| feed["from_list"] == "planet");
    of_list
        .map(|feed| {
            let name = feed["name"].as_str().unwrap().to_owned();
            (name, feed["paused"] == true)
        })
        .collect()
}

fn feeds(names: &[(&str, bool)]) -> Vec<(String, bool)> {
    let owned = |(name, is_paused): &(&str, bool)| ((*name).to_owned(), *is_paused);
    names.iter().map(owned).collect()
}

/// Waits until the list has been read since this moment of the status.
async fn read_after(app: &App, before: &Value) {
    until("the list is read", async || {
        let now = list(app).await["read_at"].clone();
        now.is_string() && now != *before
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_list_adds_pauses_and_resumes_feeds_and_loses_no_item() {
    let world = World::new().await;
    world.lists(&["ann", "bob", "cara", "mine"]);
    world.write("");
    let app = world.start().await;
    assert_eq!(status(&app).await["lists"], json!([]));

    // A reload puts it in force.
    world.write(&world.opml());
    let told = send(&app, Method::POST, "/reload").await;
    assert!(told.contains("changed  opml"), "{told}");
    read_after(&app, &Value::Null).await;
    let all = feeds(&[("blog", false), ("blog-bob", false), ("blog-cara", false)]);
    until("the feeds are there", async || brought(&app).await == all).await;
    let items = async |app: &App, name: &str| {
        let answer = get(app.address(), &format!("/feeds/{name}.json")).await;
        answer.json()["totalItems"].as_u64()
    };
    until("ann is served", async || {
        items(&app, "blog").await == Some(3)
    })
    .await;
    let told = status(&app).await;
    assert_eq!(told["lists"][0]["listed"], 4);
    assert!(!told.to_string().contains("hunter2"), "{told}");
    let heads = world.publisher.requests();
    let asked = heads
        .iter()
        .filter(|head| head.starts_with("GET /list.opml"));
    let asked: Vec<_> = asked.collect();
    assert!(
        asked.len() == 1 && asked[0].to_lowercase().contains("authorization: basic"),
        "{asked:?}"
    );
    let explained = send(&app, Method::GET, "/explain/blog").await;
    assert!(
        explained.contains("\"from_list\": \"planet\""),
        "{explained}"
    );

    // One leaves: it is missing, and days later paused. Its items are served.
    world.lists(&["bob", "cara", "mine"]);
    app.stop().await.unwrap();
    world.days_pass(1).await;
    let app = world.start().await;
    until("ann is missed", async || list(&app).await["absent"] == 1).await;
    assert_eq!(brought(&app).await, all);
    app.stop().await.unwrap();
    world.days_pass(3).await;
    let app = world.start().await;
    let without = feeds(&[("blog", true), ("blog-bob", false), ("blog-cara", false)]);
    until("ann is paused", async || brought(&app).await == without).await;
    assert_eq!(list(&app).await["paused"], json!(["blog"]));
    assert_eq!(items(&app, "blog").await, Some(3));
    let refused = send(&app, Method::POST, "/poll/blog").await;
    assert!(refused.contains("paused"), "{refused}");
    app.stop().await.unwrap();

    // A fault changes nothing, and nor does a list that lacks most.
    for (answer, words) in [
        (with_headers(500, &[], ""), "500"),
        (ok("text/x-opml", "<opml><body/></opml>"), "2 of the 2"),
        (ok("text/html", "<html></html>"), "no OPML"),
    ] {
        world.list_is(answer);
        world.days_pass(9).await;
        let app = world.start().await;
        until(words, async || {
            let fault = list(&app).await["fault"]["text"].to_string();
            fault.contains(words)
        })
        .await;
        assert_eq!(brought(&app).await, without, "{words}");
        app.stop().await.unwrap();
    }

    // Back in the list: it is polled again.
    world.lists(&["ann", "bob", "cara"]);
    world.days_pass(1).await;
    let app = world.start().await;
    until("ann is back", async || brought(&app).await == all).await;
    assert_eq!(list(&app).await["fault"], Value::Null);
    assert_eq!(items(&app, "blog").await, Some(3));

    // Without the table the feeds stay as they are.
    world.write("");
    send(&app, Method::POST, "/reload").await;
    assert_eq!(status(&app).await["lists"], json!([]));
    assert_eq!(brought(&app).await, all);
    app.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_with_a_list_alone_starts_and_serves_its_feeds() {
    let world = World::new().await;
    world.lists(&[]);
    let url = world.publisher.url("/one.xml");
    let list = format!("<opml><body><outline text='One' xmlUrl='{url}'/></body></opml>");
    world.place.write("list.opml", &list);
    let lines = "[[opml]]\nname = \"disk\"\nfile = \"list.opml\"\nprivate_hosts = true\n";
    let server = "public_url = \"http://feeds.example\"";
    world.place.configure(server, lines);
    let app = world.start().await;
    until("the feed is served", async || {
        get(app.address(), "/feeds/blog.json").await.status == 200
    })
    .await;
    assert_eq!(list_names(&app).await, ["disk"]);
    app.stop().await.unwrap();
}

async fn list_names(app: &App) -> Vec<String> {
    let told = status(app).await;
    let lists = told["lists"].as_array().unwrap();
    let name = |list: &Value| list["name"].as_str().unwrap().to_owned();
    lists.iter().map(name).collect()
}
