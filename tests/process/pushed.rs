//! An everfeed whose feed is pushed to it: by the hub of another everfeed, and by a hub and a cloud
//! that play tricks. Nothing but pushes has it poll in time.

use crate::EVERFEED;
use http::Method;
use serde_json::Value;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};
use testkit::{
    client::{self, ask},
    place::{Place, feed},
    process::Process,
    publisher::{Answer, Publisher, ok, rss, with_headers},
};

/// Polls of a feed that nobody pushes: once an hour.
const RARELY: &str = "poll = { min_secs = 3600, max_secs = 86400 }";

/// An everfeed that subscribes at hubs.
struct Subscriber(Process);

impl Subscriber {
    async fn start(url: &str) -> Self {
        let process = Process::new(EVERFEED, Place::free(), "info");
        let mut subscriber = Self(process);
        subscriber.configure(&feed("blog", url, RARELY));
        subscriber.0.start();
        subscriber.0.ready().await;
        subscriber
    }

    fn configure(&self, feeds: &str) {
        let place = &self.0.place;
        let public = format!("public_url = \"http://{}\"", place.consumers);
        let push = "[push]\nsubscribe = true\nhubs_private = true\n";
        place.configure(&public, &format!("{push}{feeds}"));
    }

    async fn status(&self) -> Value {
        let status = client::get(self.0.place.operator, "/status").await.json();
        status["feeds"][0].clone()
    }

    /// Waits until push has come so far.
    async fn stands(&self, state: &str) -> Value {
        let what = format!("push is {state}");
        let stands = async || self.status().await["push"]["state"] == state;
        self.0.place.until(&what, stands).await;
        self.status().await
    }

    /// Waits until it serves so many items.
    async fn serves(&self, items: u64) {
        let what = format!("{items} items");
        let serves = async || self.status().await["items"] == items;
        self.0.place.until(&what, serves).await;
    }

    async fn push(&self, path: &str, content_type: &str, body: &str) -> u16 {
        let headers = [("content-type", content_type)];
        let place = &self.0.place;
        let answer = ask(place.consumers, Method::POST, path, &headers, body).await;
        answer.unwrap().status
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hub_of_another_everfeed_pushes_and_the_feed_is_polled_less_often() {
    let origin = Publisher::of(|_| rss(3)).await;
    let mut hub = Process::new(EVERFEED, Place::free(), "warn");
    let public = format!("public_url = \"http://{}\"", hub.place.consumers);
    let often = "poll = { min_secs = 1, max_secs = 1 }";
    let feeds = feed("blog", &origin.url("/rss.xml"), often);
    let private = "[hub]\ncallbacks_private = true\n";
    hub.place.configure(&public, &format!("{private}{feeds}"));
    hub.start();
    hub.place.answers("/feeds/blog.atom", 200).await;

    let topic = format!("http://{}/feeds/blog.atom", hub.place.consumers);
    let mut subscriber = Subscriber::start(&topic).await;
    let status = subscriber.stands("subscribed").await;
    assert_eq!(status["items"], 3, "{status}");
    origin.says(rss(4));
    subscriber.serves(4).await;
    let status = subscriber.stands("working").await;
    assert_eq!(status["push"]["by"], "hub");
    let hours = |status: &Value| {
        let at = |name: &str| {
            let text = status[name].as_str().unwrap().to_owned();
            chrono::DateTime::parse_from_rfc3339(&text).unwrap()
        };
        (at("next_poll_at") - at("last_poll_at")).num_hours()
    };
    assert!(hours(&status) >= 6, "{status}");
    let (code, told) = subscriber.0.everfeed(&["status"]);
    let words = "blog: pushed by its hub 127.0.0.1; last push just now";
    assert!(code == 0 && told.contains(words), "{told}");
    let (_, told) = subscriber.0.everfeed(&["explain", "blog"]);
    assert!(
        told.contains("pushed by its hub 127.0.0.1; last push"),
        "{told}"
    );

    // It survives a kill, and the hub is not asked again.
    subscriber.0.kill();
    subscriber.0.start();
    subscriber.0.ready().await;
    origin.says(rss(5));
    subscriber.serves(5).await;
    let subscribers = client::get(hub.place.operator, "/subscribers").await.json();
    assert_eq!(subscribers["subscribers"].as_array().unwrap().len(), 1);

    // A feed that is removed is unsubscribed.
    subscriber.configure(&feed("other", &origin.url("/rss.xml"), RARELY));
    let (code, told) = subscriber.0.everfeed(&["reload"]);
    assert_eq!(code, 0, "{told}");
    let is_left = async || {
        let told = client::get(hub.place.operator, "/subscribers").await.json();
        told["subscribers"].as_array().unwrap().is_empty()
    };
    hub.place.until("no subscriber is left", is_left).await;
    let log = subscriber.0.place.read("log");
    assert!(!log.contains("/in/") && !log.contains("panicked"), "{log}");
}

/// A publisher that is its own hub and cloud, and plays tricks.
struct Tricks {
    publisher: Publisher,
    /// The forms that it was sent.
    forms: Arc<Mutex<Vec<String>>>,
    posts: Arc<AtomicUsize>,
}

impl Tricks {
    /// A feed with this markup in its head, in which `HOST` and `PORT` stand for its own.
    async fn with(head: &'static str) -> Self {
        let (forms, posts) = (
            Arc::<Mutex<Vec<String>>>::default(),
            Arc::new(AtomicUsize::new(2)),
        );
        let (log, count, address) = (
            forms.clone(),
            posts.clone(),
            Arc::new(Mutex::new(String::new())),
        );
        let own = address.clone();
        let publisher = Publisher::of(move |asked| {
            if asked.is_post() {
                let form = String::from_utf8_lossy(&asked.body).into_owned();
                log.lock().unwrap().push(form);
                return with_headers(202, &[], "");
            }
            let address = own.lock().unwrap().clone();
            let port = address.rsplit(':').next().unwrap().to_owned();
            let head = head.replace("HOST", &address).replace("PORT", &port);
            document(&head, count.load(Ordering::Relaxed))
        })
        .await;
        *address.lock().unwrap() = publisher.url("").replace("http://", "");
        Self {
            publisher,
            forms,
            posts,
        }
    }

    /// The value of a parameter of the form that it was sent last.
    async fn was_asked(&self, place: &Place, name: &str) -> String {
        let has_form = async || !self.forms.lock().unwrap().is_empty();
        place.until("a form", has_form).await;
        let forms = self.forms.lock().unwrap();
        let form = forms.last().unwrap();
        let mut pairs = url::form_urlencoded::parse(form.as_bytes());
        pairs.find(|(own, _)| own == name).unwrap().1.into_owned()
    }
}

fn document(head: &str, posts: usize) -> Answer {
    let post = |n: usize| format!("<item><guid>{n}</guid><title>Post {n}</title></item>");
    let posts: String = (1..=posts).rev().map(post).collect();
    let text =
        format!("<rss version=\"2.0\"><channel><title>b</title>{head}{posts}</channel></rss>");
    ok("application/rss+xml", text)
}

fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn pushes_of_a_hub_without_https_are_hints_and_tricks_harm_nothing() {
    let head = "<link xmlns=\"http://www.w3.org/2005/Atom\" rel=\"hub\" href=\"http://HOST/hub\"/>";
    let tricks = Tricks::with(head).await;
    let feed_url = tricks.publisher.url("/rss.xml");
    let subscriber = Subscriber::start(&feed_url).await;
    let place = &subscriber.0.place;
    let callback = tricks.was_asked(place, "hub.callback").await;
    assert_eq!(tricks.was_asked(place, "hub.topic").await, feed_url);
    let path = format!("/in/{}", callback.rsplit('/').next().unwrap());
    let get = async |query: String| {
        let target = format!("{path}?{query}");
        let answer = place.ask(&target).await.unwrap();
        (answer.status, answer.text())
    };
    // Of another topic, of another mode, and of nobody's.
    let other = encoded("http://other.example/");
    let (topic, tail) = (encoded(&feed_url), "hub.challenge=ok&hub.lease_seconds=600");
    assert_eq!(
        get(format!("hub.mode=subscribe&hub.topic={other}&{tail}"))
            .await
            .0,
        404
    );
    assert_eq!(
        get(format!("hub.mode=unsubscribe&hub.topic={topic}&{tail}"))
            .await
            .0,
        404
    );
    let nowhere = format!("/in/{}", "0".repeat(32));
    assert_eq!(place.ask(&nowhere).await.unwrap().status, 404);
    let verified = get(format!("hub.mode=subscribe&hub.topic={topic}&{tail}")).await;
    assert_eq!(verified, (200, "ok".to_owned()));
    subscriber.stands("subscribed").await;

    // What is pushed is not believed, and what the feed says is.
    let pushed = "<rss version=\"2.0\"><channel><title>b</title><item><guid>forged</guid></item></channel></rss>";
    tricks.posts.store(3, Ordering::Relaxed);
    assert_eq!(
        subscriber.push(&path, "application/rss+xml", pushed).await,
        202
    );
    subscriber.serves(3).await;
    // A body without an end is not read to it.
    let huge = "x".repeat(11 << 20);
    let headers = [("content-type", "application/rss+xml")];
    let answer = ask(place.consumers, Method::POST, &path, &headers, &huge).await;
    if let Some(answer) = answer {
        assert_eq!(answer.status, 202);
    }
    for _ in 0..50 {
        assert_eq!(subscriber.push(&path, "text/plain", "").await, 202);
    }
    let status = subscriber.status().await;
    assert_eq!(
        (&status["items"], &status["fault"]),
        (&Value::from(3), &Value::Null)
    );
    let polls = tricks
        .publisher
        .paths()
        .iter()
        .filter(|path| *path == "/rss.xml")
        .count();
    assert!(polls < 12, "{polls} polls");

    let denied = format!("hub.mode=denied&hub.topic={topic}&hub.reason=no");
    assert_eq!(get(denied).await.0, 200);
    let status = subscriber.stands("failing").await;
    let why = "the hub denies the subscription: no";
    assert_eq!(status["push"]["error"], why, "{status}");
    assert_eq!(subscriber.push(&path, "text/plain", "").await, 404);
    let log = subscriber.0.place.read("log");
    assert!(!log.contains(&path) && !log.contains("panicked"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cloud_registers_and_its_notice_has_the_feed_polled() {
    let head = "<cloud domain=\"127.0.0.1\" port=\"PORT\" path=\"/pleaseNotify\" registerProcedure=\"\" protocol=\"http-post\"/>";
    let tricks = Tricks::with(head).await;
    let feed_url = tricks.publisher.url("/rss.xml");
    let subscriber = Subscriber::start(&feed_url).await;
    let place = &subscriber.0.place;
    assert_eq!(tricks.was_asked(place, "url1").await, feed_url);
    assert_eq!(tricks.was_asked(place, "domain").await, "127.0.0.1");
    let port = place.consumers.port().to_string();
    assert_eq!(tricks.was_asked(place, "port").await, port);
    let path = tricks.was_asked(place, "path").await;
    let challenge = format!("{path}?url={}&challenge=abc", encoded(&feed_url));
    let answer = place.ask(&challenge).await.unwrap();
    assert_eq!((answer.status, answer.text()), (200, "abc".to_owned()));
    let foreign = format!(
        "{path}?url={}&challenge=abc",
        encoded("http://other.example/")
    );
    assert_eq!(place.ask(&foreign).await.unwrap().status, 404);
    let status = subscriber.stands("subscribed").await;
    assert_eq!(status["push"]["by"], "cloud");
    tricks.posts.store(3, Ordering::Relaxed);
    let form = "application/x-www-form-urlencoded";
    let foreign = format!("url={}", encoded("http://other.example/"));
    assert_eq!(subscriber.push(&path, form, &foreign).await, 404);
    let notice = format!("url={}", encoded(&feed_url));
    assert_eq!(subscriber.push(&path, form, &notice).await, 202);
    subscriber.serves(3).await;
    subscriber.stands("working").await;
}
