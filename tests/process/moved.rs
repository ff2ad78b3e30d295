//! A feed of a site that moves, by the configurations of docs/owners/moved.md: its items, ids,
//! cursors, deletions and subscribers stay; and what is asked when its name is not given.

use crate::EVERFEED;
use http::Method;
use serde_json::Value;
use std::sync::{Arc, Mutex};
use testkit::{
    client::{self, ask},
    place::Place,
    process::Process,
    publisher::{Answer, Asked, Publisher, ok, with_headers},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

const NAME: &str = "blog-rss-xml";

/// The configurations of sites on the page of the book, in their order.
fn sites_of_the_book() -> Vec<String> {
    let page = include_str!("../../docs/owners/moved.md");
    let blocks = page.split("```toml\n").skip(1);
    let blocks = blocks.map(|block| block.split("```").next().unwrap().to_owned());
    blocks.filter(|block| block.contains("feeds = ")).collect()
}

/// The blog: the path of its feed, and its posts.
#[derive(Clone)]
struct Blog(Arc<Mutex<(&'static str, usize)>>);

impl Blog {
    fn at(path: &'static str) -> Self {
        Self(Arc::new(Mutex::new((path, 3))))
    }

    fn moves(&self, path: &'static str) {
        self.0.lock().unwrap().0 = path;
    }

    fn writes(&self) {
        self.0.lock().unwrap().1 += 1;
    }

    /// Answers as the blog does, and as a subscriber at `/callback`.
    fn answer(&self, asked: &Asked) -> Answer {
        let (path, posts) = *self.0.lock().unwrap();
        if asked.path().starts_with("/callback") {
            let challenge = asked.path().split("hub.challenge=").nth(1);
            let challenge = challenge.and_then(|rest| rest.split('&').next());
            return ok("text/plain", challenge.unwrap_or_default());
        }
        if asked.path() != path {
            return with_headers(404, &[], "the blog has no such page");
        }
        let post = |n: usize| {
            let at = format!("http://blog.example.org/{n}");
            format!("<item><guid>{at}</guid><link>{at}</link><title>Post {n}</title></item>")
        };
        let posts: String = (1..=posts).rev().map(post).collect();
        let text = format!("<rss version=\"2.0\"><channel><title>b</title>{posts}</channel></rss>");
        ok("application/rss+xml", text)
    }
}

/// everfeed before the blog, in a process of its own.
struct World {
    blog: Blog,
    publisher: Publisher,
    process: Process,
}

impl World {
    async fn new() -> Self {
        let blog = Blog::at("/rss.xml");
        let answers = blog.clone();
        Self {
            blog,
            publisher: Publisher::of(move |asked| answers.answer(asked)).await,
            process: Process::new(EVERFEED, Place::free(), "warn"),
        }
    }

    /// Writes the configuration with a site of the book.
    fn write(&self, site: &str) {
        let origin = self.publisher.url("");
        let site = site.replace("http://127.0.0.1:8081", &origin);
        let rest = format!(
            "[hub]\ncallbacks_private = true\n{site}\npoll = {{ min_secs = 1, max_secs = 1 }}\nimport = {{ pages_max = 0 }}\n"
        );
        self.process
            .place
            .configure("public_url = \"http://blog.example.org\"", &rest);
    }

    async fn starts(&mut self, name: &str) {
        self.process.start();
        self.process
            .place
            .answers(&format!("/feeds/{name}.json"), 200)
            .await;
    }

    /// A page of the feed.
    async fn page(&self, query: &str) -> Value {
        let page = self
            .process
            .place
            .ask(&format!("/feeds/{NAME}.json?{query}"))
            .await;
        page.unwrap().json()
    }

    /// The answer at an address of the blog, as its readers know it.
    async fn reads(&self, url: &str) -> String {
        let (host, path) = url.trim_start_matches("http://").split_once('/').unwrap();
        let mut stream = TcpStream::connect(self.process.place.consumers)
            .await
            .unwrap();
        let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    async fn asks_hub(&self, mode: &str, topic: &str) -> u16 {
        let callback = self.publisher.url("/callback");
        let form =
            format!("hub.mode={mode}&hub.verify=sync&hub.topic={topic}&hub.callback={callback}");
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let answer = ask(
            self.process.place.consumers,
            Method::POST,
            "/hub",
            &headers,
            &form,
        )
        .await;
        answer.unwrap().status
    }

    /// The heads of pushes so far.
    fn pushes(&self) -> Vec<String> {
        let heads = self.publisher.requests();
        let is_push = |head: &String| head.starts_with("POST /callback");
        heads.into_iter().filter(is_push).collect()
    }

    async fn pushed(&self, count: usize) -> String {
        let what = format!("{count} pushes");
        self.process
            .place
            .until(&what, async || self.pushes().len() >= count)
            .await;
        self.pushes().pop().unwrap().to_lowercase()
    }

    async fn subscriptions(&self) -> usize {
        let answer = client::get(self.process.place.operator, "/subscribers").await;
        answer.json()["subscribers"].as_array().map_or(0, Vec::len)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_way_of_the_book_keeps_ids_cursors_deletions_and_subscribers_of_a_feed_that_moves() {
    let [before, after, newest] = &sites_of_the_book()[..] else {
        panic!("the page has three configurations");
    };
    let mut world = World::new().await;
    world.write(before);
    world.starts(NAME).await;
    let (old, new) = (
        "http://blog.example.org/rss.xml",
        "http://blog.example.org/new.xml",
    );
    assert_eq!(world.asks_hub("subscribe", old).await, 204);
    let (code, told) = world
        .process
        .everfeed(&["forget", NAME, "http://blog.example.org/1"]);
    assert_eq!(code, 0, "{told}");
    world.blog.writes();
    let push = world.pushed(1).await;
    assert!(push.contains(&format!("<{old}>; rel=\"self\"")), "{push}");
    let cursor = world.page("max=1&order=-modified").await["last_cursor"].clone();
    let cursor = cursor.as_str().unwrap();
    let known = world.page("").await;

    // The blog moves, and its owner does what the book says.
    world.blog.moves("/new.xml");
    world.write(after);
    let (code, told) = world.process.everfeed(&["check"]);
    assert!(
        code == 0 && told.contains("good") && told.contains("Its items keep their ids"),
        "{told}"
    );
    assert!(
        told.contains("ids in namespace blog.example.org/rss.xml"),
        "{told}"
    );
    let (code, told) = world.process.everfeed(&["reload"]);
    assert!(code == 0 && told.contains("changed  site"), "{told}");
    assert_eq!(
        world.page("").await,
        known,
        "the same items, ids and deletions"
    );
    for url in [old, new] {
        let answer = world.reads(url).await;
        let is_feed = answer.starts_with("HTTP/1.1 200 ") && answer.contains("Post 4");
        assert!(is_feed, "{url}: {answer}");
    }
    world.blog.writes();
    let push = world.pushed(2).await;
    assert!(
        push.contains(&format!("<{old}>; rel=\"self\"")),
        "as it is known there: {push}"
    );
    let since = world.page(&format!("since=cursor:{cursor}")).await;
    let items = since["items"].as_array().unwrap();
    assert!(
        items.len() == 1 && items[0]["title"] == "Post 5",
        "the cursor goes on: {since}"
    );

    // A renewal under either address is of the one subscription.
    for topic in [old, new] {
        assert_eq!(world.asks_hub("subscribe", topic).await, 204);
    }
    world.blog.writes();
    let push = world.pushed(3).await;
    assert!(
        push.contains(&format!("<{new}>; rel=\"self\"")),
        "as it asked last: {push}"
    );
    assert_eq!(world.subscriptions().await, 1);

    // It moves once more: the address between is asked for, and `former` has it.
    world.blog.moves("/newest.xml");
    let site = |feeds: &str| {
        let lines = after.lines().filter(|line| !line.starts_with("feeds"));
        lines.collect::<Vec<_>>().join("\n") + "\n" + feeds
    };
    world.write(&site(&newest.replace(", former = [\"/new.xml\"]", "")));
    let (code, told) = world.process.everfeed(&["check"]);
    assert!(
        code == 0 && told.contains("former = [\"/new.xml\"]"),
        "{told}"
    );
    world.write(&site(newest));
    let (code, told) = world.process.everfeed(&["check"]);
    assert!(code == 0 && !told.contains("leaves /new.xml"), "{told}");
    world.process.end().await;
    world.starts(NAME).await;
    for url in [old, new, "http://blog.example.org/newest.xml"] {
        let answer = world.reads(url).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{url}: {answer}");
    }
    assert_eq!(world.asks_hub("unsubscribe", old).await, 204);
    assert_eq!(world.subscriptions().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_comes_in_the_place_of_another_is_asked_about_until_a_name_answers() {
    let mut world = World::new().await;
    let book = sites_of_the_book();
    let before = &book[0];
    world.write(before);
    world.starts(NAME).await;
    let known = world.page("").await;
    world.blog.moves("/new.xml");
    let unnamed = before.replace("/rss.xml", "/new.xml");
    world.write(&unnamed);
    let answer = "{ path = \"/new.xml\", name = \"blog-rss-xml\" }";
    let asks =
        |told: &str| told.contains("has feed `blog-rss-xml` moved?") && told.contains(answer);

    let (code, told) = world.process.everfeed(&["check"]);
    assert!(
        code == 64 && asks(&told) && !told.contains(": good"),
        "{code}: {told}"
    );
    let (code, told) = world.process.everfeed(&["reload"]);
    assert!(code == 64 && asks(&told), "{code}: {told}");
    assert_eq!(world.page("").await, known);
    world.process.end().await;
    let (code, told) = world.process.everfeed(&["check"]);
    assert!(code == 64 && asks(&told), "{code}: {told}");

    // Another feed has a name of its own, and so has the one that goes on.
    let named = |name: &str| {
        let entry = format!("{{ path = \"/new.xml\", name = \"{name}\" }}");
        before.replace("\"/rss.xml\"", &entry)
    };
    world.write(&named("another"));
    assert_eq!(world.process.everfeed(&["check"]).0, 0);

    // A start without an answer says so in the log, and the answer may still come.
    world.write(&unnamed);
    world.starts("blog-new-xml").await;
    assert!(asks(&world.process.place.read("log").replace('\\', "")));
    world.process.end().await;
    world.write(&named(NAME));
    assert_eq!(world.process.everfeed(&["check"]).0, 0);
    world.starts(NAME).await;
    assert_eq!(world.page("").await, known);
}
