//! A site whose posts search engines are told of, with a sitemap: the binary before an old blog, an
//! engine that takes or refuses batches, a kill, and a blog that begins to have a sitemap.

use crate::EVERFEED;
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fmt::Write as _,
    sync::{Arc, Mutex},
};
use testkit::{
    client,
    place::Place,
    publisher::{Answer, Asked, Publisher, ok, with_headers},
};

/// The old blog.
#[derive(Default)]
struct Blog {
    /// False until its feed may be read.
    is_open: bool,
    /// Paths of its posts.
    posts: Vec<String>,
    /// The number of the post that it says is deleted.
    deleted: Option<usize>,
    /// The answer at the address of a sitemap.
    sitemap: Option<Answer>,
}

impl Blog {
    fn feed(&self, root: &str) -> String {
        let mut feed = format!(
            "<feed xmlns='http://www.w3.org/2005/Atom' xmlns:at='http://purl.org/atompub/tombstones/1.0'>\
             <title>t</title><id>tag:t</id><updated>2026-11-01T00:00:00Z</updated>\
             <link rel='alternate' href='{root}'/>"
        );
        for (no, path) in self.posts.iter().enumerate() {
            if self.deleted == Some(no) {
                write!(
                    feed,
                    "<at:deleted-entry ref='tag:t,2026:{no}' when='2026-11-02T00:00:00Z'/>"
                )
                .unwrap();
                continue;
            }
            let url = if path.starts_with("http") {
                path.clone()
            } else {
                format!("{root}{path}")
            };
            // What has an earlier date than the start of use is history.
            let updated = if no < 2 {
                format!("<updated>2026-11-01T00:00:0{no}Z</updated>")
            } else {
                String::new()
            };
            write!(
                feed,
                "<entry><id>tag:t,2026:{no}</id><title>Post {no}</title><link href='{}'/>\
                 {updated}<content>Words of {no}</content></entry>",
                url.replace('&', "&amp;").replace('\'', "&apos;")
            )
            .unwrap();
        }
        feed + "</feed>"
    }

    fn answer(&self, asked: &Asked, root: &str) -> Answer {
        match asked.path() {
            "/feed.xml" if self.is_open => ok("application/atom+xml", self.feed(root)),
            "/feed.xml" => with_headers(503, &[], ""),
            "/sitemap.xml" => {
                let absent = || with_headers(404, &[], "none");
                self.sitemap.clone().unwrap_or_else(absent)
            }
            _ => with_headers(404, &[], "nothing of the blog"),
        }
    }
}

/// The URLs of each batch, without the root.
fn batches(engine: &Mutex<Vec<Value>>, root: &str) -> Vec<BTreeSet<String>> {
    let batches = engine.lock().unwrap();
    let urls = |batch: &Value| {
        let urls = batch["urlList"].as_array().unwrap().iter();
        urls.map(|url| url.as_str().unwrap().strip_prefix(root).unwrap().to_owned())
            .collect()
    };
    batches.iter().map(urls).collect()
}

/// The events, newest first, by their titles.
async fn events(place: &Place) -> Vec<String> {
    let answer = client::get(place.operator, "/events.json").await;
    let items = answer.json()["items"].as_array().cloned();
    let title = |item: &Value| item["title"].as_str().unwrap_or_default().to_owned();
    items.unwrap_or_default().iter().map(title).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_learns_of_each_change_once_and_a_blog_without_a_sitemap_gets_one_r_1_to_r_12() {
    let place = Place::free();
    let root = format!("http://{}/", place.consumers);
    let blog = Arc::new(Mutex::new(Blog::default()));
    let (script, site) = (blog.clone(), root.clone());
    let origin = Publisher::of(move |asked| script.lock().unwrap().answer(asked, &site)).await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let status = Arc::new(Mutex::new(202));
    let (log, answers) = (told.clone(), status.clone());
    let engine = Publisher::of(move |asked: &Asked| {
        log.lock()
            .unwrap()
            .push(serde_json::from_slice(&asked.body).unwrap());
        with_headers(*answers.lock().unwrap(), &[], "words")
    })
    .await;
    place.configure(
        &format!("public_url = \"{root}\""),
        &format!(
            "[search_engines]\nindexnow_url = \"{}\"\n\
             [[site]]\norigin = \"{}\"\nfeeds = [\"/feed.xml\"]\nindexnow = true\nsitemap = true\n\
             import = {{ pages_max = 0 }}\n",
            engine.url("/indexnow"),
            origin.url("").trim_end_matches('/'),
        ),
    );
    let serve = || place.start(&mut place.command(EVERFEED, &["serve"]));
    let poll = || {
        let polled = place.run(EVERFEED, &["poll", "site-feed-xml", "--now"]);
        assert_eq!(polled.code, 0, "{polled:?}");
    };
    let mut running = serve();
    place
        .until("search engines are told from now on", async || {
            place
                .read("log")
                .contains("Search engines are told of the posts")
        })
        .await;
    {
        let mut blog = blog.lock().unwrap();
        blog.posts = ["posts/0", "posts/1"].map(str::to_owned).into();
        blog.is_open = true;
    }
    poll();
    place.answers("/sitemap.xml", 200).await;
    let sitemap = place.ask("/sitemap.xml").await.unwrap();
    assert_eq!(sitemap.header("content-type"), "application/xml");
    let entry = |path: &str, at: &str| {
        format!("<url><loc>{root}{path}</loc><lastmod>2026-11-01T00:00:0{at}Z</lastmod></url>")
    };
    let (first, second) = (entry("posts/0", "0"), entry("posts/1", "1"));
    let text = sitemap.text();
    assert!(text.contains(&first) && text.contains(&second), "{text}");
    let etag = [("if-none-match", sitemap.header("etag"))];
    let again = client::ask(
        place.consumers,
        http::Method::GET,
        "/sitemap.xml",
        &etag,
        "",
    )
    .await;
    assert_eq!(again.unwrap().status, 304);

    // A post with markup in its address, one with a long address, and one of another host.
    blog.lock().unwrap().posts.extend([
        "posts/2?a=b&c='d'".to_owned(),
        format!("posts/{}", "x".repeat(3_000)),
        "https://elsewhere.example/4".to_owned(),
    ]);
    poll();
    let set = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
    let mut expect: Vec<BTreeSet<String>> = vec![set(&["posts/2?a=b&c=%27d%27"])];
    let are_sent = async |expect: &[BTreeSet<String>]| {
        let what = format!("these are sent: {expect:?}");
        place
            .until(&what, async || batches(&told, &root).len() >= expect.len())
            .await;
        assert_eq!(batches(&told, &root), expect);
    };
    are_sent(&expect).await;
    let batch = told.lock().unwrap()[0].clone();
    let key = batch["key"].as_str().unwrap().to_owned();
    assert_eq!(batch["host"], "127.0.0.1");
    assert_eq!(batch["keyLocation"], format!("{root}{key}.txt"));
    let file = place.ask(&format!("/{key}.txt")).await.unwrap();
    assert_eq!((file.status, file.text()), (200, key.clone()));
    let other = "0".repeat(32);
    let file = place.ask(&format!("/{other}.txt")).await.unwrap();
    assert_eq!(
        (file.status, file.text()),
        (404, "nothing of the blog".to_owned())
    );

    // A kill, and a deletion behind it.
    running.kill();
    blog.lock().unwrap().deleted = Some(1);
    let _running = serve();
    place.answers("/sitemap.xml", 200).await;
    poll();
    expect.push(set(&["posts/1"]));
    are_sent(&expect).await;
    let text = place.ask("/sitemap.xml").await.unwrap().text();
    let third = format!("<url><loc>{root}posts/2?a=b&amp;c=%27d%27</loc></url>");
    assert!(text.contains(&first) && text.contains(&third), "{text}");
    assert!(!text.contains("posts/1<") && !text.contains("xxx") && !text.contains("elsewhere"));

    // An old server that fails says nothing, and one that begins to have a sitemap is passed on.
    blog.lock().unwrap().sitemap = Some(Answer::Bytes(Vec::new()));
    assert_eq!(place.ask("/sitemap.xml").await.unwrap().status, 502);
    blog.lock().unwrap().sitemap = Some(ok("text/plain", "its own"));
    let theirs = place.ask("/sitemap.xml").await.unwrap();
    let shown = (theirs.status, theirs.header("content-type"), theirs.text());
    assert_eq!(shown, (200, "text/plain", "its own".to_owned()));
    let has_event = async |words: &str| {
        let what = format!("there is an event: {words}");
        let is_there = async || {
            events(&place)
                .await
                .iter()
                .any(|title| title.contains(words))
        };
        place.until(&what, is_there).await;
    };
    has_event("has a sitemap of its own").await;

    // An engine that does not take the key gets nothing more.
    *status.lock().unwrap() = 403;
    blog.lock().unwrap().posts.push("posts/5".to_owned());
    poll();
    expect.push(set(&["posts/5"]));
    are_sent(&expect).await;
    has_event("does not take the key").await;
    let log = place.read("log");
    assert!(!log.contains(&key), "the log has the key:\n{log}");
}
