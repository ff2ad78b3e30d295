//! A resource at a path of a site: served as it is with links to the hub, pushed under its own
//! address, and gone when its publisher says so. Rows.

use super::{
    legacy::{body, header},
    rig::{Origin, Sidecar},
};
use http::Method;
use serde_json::Value;
use std::sync::{Arc, Mutex};
use testkit::{
    client::ask,
    publisher::{Asked, Publisher, with_headers},
    wait::until,
};

/// The resource that the origin has; `None` while it answers 410.
type Shown = Arc<Mutex<Option<String>>>;

async fn answer(shown: Shown, mut origin: Origin) {
    while origin.head().await.is_some() {
        let answer = match shown.lock().unwrap().clone() {
            Some(text) => format!(
                "HTTP/1.1 200 OK\r\nContent-Type: image/x-test\r\nETag: \"{text}\"\r\nContent-Length: {}\r\n\r\n{text}",
                text.len()
            ),
            None => "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n".to_owned(),
        };
        origin.write(answer).await;
    }
}

async fn behind(shown: &Shown, more: &str) -> Sidecar {
    let shown = shown.clone();
    let site = format!(
        "feeds = [\"/photo\"]\n[[feed]]\nname = \"photo\"\nurl = \"ORIGIN/photo\"\nformat = \"resource\"\n\
         poll = {{ min_secs = 1, max_secs = 1 }}\ndeletions = {{ apart_secs = 1, unsafe = true }}\n{more}\n\
         [hub]\ncallbacks_private = true\n"
    );
    let sidecar = Sidecar::start(&site, move |_, origin| answer(shown.clone(), origin)).await;
    sidecar.answers("/feeds/photo.json", 200).await;
    sidecar
}

type Taken = Arc<Mutex<Vec<Asked>>>;

/// A callback that confirms, and what it is sent.
async fn callback() -> (Publisher, Taken) {
    let taken = Taken::default();
    let heard = taken.clone();
    let callback = Publisher::of(move |asked| {
        heard.lock().unwrap().push(asked.clone());
        let challenge = asked.path().split("hub.challenge=").nth(1);
        let challenge = challenge.and_then(|rest| rest.split('&').next());
        let headers = [
            ("content-type", "text/plain"),
            ("x-hub-methods", "PUT, DELETE"),
        ];
        with_headers(200, &headers, challenge.unwrap_or_default())
    })
    .await;
    (callback, taken)
}

async fn about(sidecar: &Sidecar) -> Value {
    serde_json::from_str(body(&sidecar.get("/feeds/photo/about").await)).unwrap()
}

const LINK: &str =
    "<http://blog.example/photo>; rel=\"self\", <http://blog.example/hub>; rel=\"hub\"";

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_of_a_site_names_its_hub_is_pushed_and_goes() {
    let shown: Shown = Arc::new(Mutex::new(Some("one".to_owned())));
    let sidecar = behind(&shown, "").await;
    let got = sidecar.get("/photo").await;
    assert_eq!(
        (body(&got), header(&got, "content-type")),
        ("one", "image/x-test")
    );
    assert_eq!(header(&got, "link"), LINK);
    let head = sidecar
        .exchange("HEAD /photo HTTP/1.1\r\nHost: blog.example\r\nConnection: close\r\n\r\n")
        .await;
    assert_eq!((header(&head, "link"), body(&head)), (LINK, ""));

    let (callback, taken) = callback().await;
    let form = format!(
        "hub.mode=subscribe&hub.verify=sync&hub.methods=explicit&hub.topic=http://blog.example/photo&hub.callback={}",
        callback.url("/cb")
    );
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let answer = ask(sidecar.app.address(), Method::POST, "/hub", &headers, &form).await;
    assert_eq!(answer.unwrap().status, 204);
    *shown.lock().unwrap() = Some("two".to_owned());
    let pushed = async |text: &str, directive: &str| {
        until(&format!("{directive} {text}"), async || {
            taken.lock().unwrap().iter().any(|asked| {
                let told = asked.header("x-http-method-override");
                let is_told =
                    asked.head.starts_with(&format!("{directive} /cb")) && told.is_empty();
                is_told && asked.body == text.as_bytes()
            })
        })
        .await;
    };
    pushed("two", "PUT").await;
    until("the reader sees it", async || {
        body(&sidecar.get("/photo").await) == "two"
    })
    .await;
    *shown.lock().unwrap() = None;
    pushed("", "DELETE").await;
    sidecar.answers("/photo", 410).await;
    let told = about(&sidecar).await;
    assert_eq!(told["state"], "deleted");
    assert!(
        told["deleted"].as_str().unwrap().starts_with("20"),
        "{told}"
    );
    *shown.lock().unwrap() = Some("three".to_owned());
    // It would look by itself within a day.
    let look = ask(
        sidecar.app.admin_address(),
        Method::POST,
        "/poll/photo?now",
        &[],
        "",
    )
    .await;
    assert_eq!(look.unwrap().status, 200);
    sidecar.answers("/photo", 200).await;
    pushed("three", "PUT").await;
    let told = about(&sidecar).await;
    assert_eq!(
        (&told["state"], told.get("deleted")),
        (&"ready".into(), None)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_of_a_site_shows_its_address_there_and_the_date_of_its_change() {
    let shown: Shown = Arc::new(Mutex::new(Some("one".to_owned())));
    let sidecar = behind(&shown, "").await;
    let documents = [
        "/feeds/photo.json",
        "/feeds/photo.atom",
        "/feeds/photo.rss",
        "/feeds/photo/classic.rss",
        "/feeds/photo/classic.jsonfeed",
        "/feeds/photo/about",
        "/feeds.opml",
        "/feeds",
    ];
    let item = async || -> Value {
        let page: Value =
            serde_json::from_str(body(&sidecar.get("/feeds/photo.json").await)).unwrap();
        page["items"][0].clone()
    };
    let check = async || {
        for path in documents {
            let told = sidecar.get(path).await;
            assert!(told.starts_with("HTTP/1.1 200"), "{path}: {told}");
            let told = body(&told);
            assert!(!told.contains("127.0.0.1"), "{path}: {told}");
            assert!(told.contains("http://blog.example/"), "{path}: {told}");
        }
    };
    check().await;
    let before = item().await;
    assert_eq!(
        before["object"]["id"], "http://blog.example/photo",
        "{before}"
    );
    *shown.lock().unwrap() = Some("two".to_owned());
    until("the change is there", async || {
        item().await["updated"] != before["updated"]
    })
    .await;
    let after = item().await;
    assert_eq!(after["object"]["id"], before["object"]["id"]);
    let date = |item: &Value| item["object"]["updated"].as_str().unwrap().to_owned();
    assert!(date(&after) > date(&before), "{before} {after}");
    check().await;
}

// that it was there is told to nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_is_not_announced_shows_nowhere() {
    let shown: Shown = Arc::new(Mutex::new(Some("one".to_owned())));
    let sidecar = behind(&shown, "announce_deletes = false").await;
    *shown.lock().unwrap() = None;
    until("it is not there any more", async || {
        let told = about(&sidecar).await;
        assert_eq!(
            (&told["state"], told.get("deleted")),
            (&"ready".into(), None)
        );
        told["items"] == 0
    })
    .await;
    // The store tells it before readers are woken.
    until("no page has it", async || {
        let page = sidecar.get("/feeds/photo.json").await;
        page.contains("\"totalItems\":0") || page.contains("\"totalItems\": 0")
    })
    .await;
}

// W-17: requests below a former root are led on, and the hub takes its topics.
#[tokio::test(flavor = "multi_thread")]
async fn a_former_root_is_led_on() {
    let shown: Shown = Arc::new(Mutex::new(Some("one".to_owned())));
    let origin = shown.clone();
    let site = "former_public_urls = [\"http://old.example/smart\"]\n[site]\nfeeds = [\"/photo\"]\n\
        [[feed]]\nname = \"photo\"\nurl = \"ORIGIN/photo\"\nformat = \"resource\"\n[hub]\ncallbacks_private = true\n";
    let sidecar = Sidecar::start(site, move |_, wire| answer(origin.clone(), wire)).await;
    sidecar.answers("/feeds/photo.json", 200).await;
    let asked = |method: &str, target: &str| {
        sidecar.exchange(format!(
            "{method} {target} HTTP/1.1\r\nHost: old.example\r\nConnection: close\r\n\r\n"
        ))
    };
    let led = asked("GET", "/smart/feeds/photo.json?order=created&since=cursor:").await;
    assert!(led.starts_with("HTTP/1.1 308 "), "{led}");
    let now = "http://blog.example/feeds/photo.json?order=created&since=cursor:";
    assert_eq!(header(&led, "location"), now);
    let led = asked("POST", "/smart/hub").await;
    assert!(led.starts_with("HTTP/1.1 308 "), "{led}");
    assert_eq!(header(&led, "location"), "http://blog.example/hub");
    let direct = asked("POST", "/hub").await;
    assert!(direct.starts_with("HTTP/1.1 415 "), "{direct}");
    let led = asked("HEAD", "/smart/feeds/photo.atom").await;
    assert_eq!(
        header(&led, "location"),
        "http://blog.example/feeds/photo.atom"
    );
    // What is not ours is the site's.
    assert_eq!(body(&asked("GET", "/smart/page").await), "one");
    let (callback, _taken) = callback().await;
    let form = format!(
        "hub.mode=subscribe&hub.verify=sync&hub.topic=http://old.example/smart/feeds/photo.atom&hub.callback={}",
        callback.url("/cb")
    );
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let answer = ask(sidecar.app.address(), Method::POST, "/hub", &headers, &form).await;
    assert_eq!(answer.unwrap().status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_gets_a_page_at_the_hub_and_scripts_a_text() {
    let shown: Shown = Arc::new(Mutex::new(Some("one".to_owned())));
    let sidecar = behind(&shown, "").await;
    let asked = |accept: &str| {
        sidecar.exchange(format!(
            "GET /hub HTTP/1.1\r\nHost: blog.example\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
        ))
    };
    let page = asked("text/html,application/xhtml+xml,*/*;q=0.8").await;
    assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
    assert_eq!(header(&page, "content-type"), "text/html; charset=utf-8");
    assert!(header(&page, "content-security-policy").contains("form-action 'self'"));
    assert!(
        page.contains("name=\"hub.callback\"")
            && page.contains("action=\"http://blog.example/hub\""),
        "{page}"
    );
    let text = asked("*/*").await;
    assert!(
        header(&text, "content-type").starts_with("text/plain"),
        "{text}"
    );
    assert_eq!(header(&text, "vary"), header(&page, "vary"));
}
