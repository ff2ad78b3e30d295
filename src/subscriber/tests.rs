//! The subscriber against a scripted hub: what the hub is asked, and what it can do. Time stands
//! still but for what is waited for.

use super::*;
use crate::{
    catalog::{CatalogSnapshot, FeedSettings},
    clock::Paused,
    feed::pushed_feed::{NamedPush, PushStage},
    layers::Refused,
    notify::UpstreamPush as _,
    store::{CatalogStore as _, PushedFeeds as _, memory::Memory},
};
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::StatusCode;
use sha2::Sha256;
use std::{collections::BTreeMap, time::Duration};
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;
use url::form_urlencoded;

const HUB: &str = "https://hub.example/hub";
const FEED: &str = "https://blog.example/feed";

/// What a hub answers to the request of this number, counted from 0.
type Script = fn(usize) -> Result<u16, FetchError>;

/// A subscriber, its feed, and what its hub was asked.
struct Rig {
    subscriber: Subscriber,
    store: Arc<Memory>,
    notify: Arc<Notify>,
    catalog: Catalog,
    feed: FeedNo,
    asked: Arc<Mutex<Vec<BTreeMap<String, String>>>>,
    stop: CancellationToken,
    running: Option<JoinHandle<()>>,
}

impl Rig {
    async fn new(script: Script) -> Self {
        let clock = Arc::new(Paused::from(1_770_000_000_000_000));
        let store = Arc::new(Memory::new(clock.clone()));
        let (notify, asked) = (Arc::new(Notify::new()), Arc::default());
        let feed = store.register_all(vec![("blog".into(), "blog".into())]);
        let feed = feed.await.unwrap()[0].no;
        let catalog = Catalog::new(catalog_of(feed, FEED));
        let parts = parts(script, &store, &notify, &catalog, &asked, clock);
        let mut rig = Self {
            subscriber: Subscriber::open(parts).await.unwrap(),
            store,
            notify,
            catalog,
            feed,
            asked,
            stop: CancellationToken::new(),
            running: None,
        };
        rig.run();
        rig
    }

    fn run(&mut self) {
        let running = self.subscriber.clone().run(self.stop.clone());
        self.running = Some(tokio::spawn(running));
    }

    /// A feed whose document names the hub, which has verified.
    async fn subscribed(script: Script) -> Self {
        let rig = Self::new(script).await;
        rig.name(&[HUB]).await;
        let status = rig.verify(&rig.asked(0), FEED).await;
        assert_eq!(status, (200, "x y".to_owned()));
        rig
    }

    async fn name(&self, hubs: &[&str]) {
        let named = NamedPush {
            topics: vec![FEED.to_owned()],
            hubs: hubs.iter().map(|hub| (*hub).to_owned()).collect(),
            ..NamedPush::default()
        };
        self.subscriber.0.document_taken(self.feed, named);
        sleep(Duration::from_millis(10)).await;
    }

    /// The form of the request of this number.
    fn asked(&self, at: usize) -> BTreeMap<String, String> {
        self.asked.lock().unwrap()[at].clone()
    }

    fn asked_count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    async fn get(&self, token: &str, query: &[(&str, &str)]) -> (u16, String) {
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(query)
            .finish();
        let request = http::Request::get(format!("/in/{token}?{query}"));
        let request = request.body(Bytes::new()).unwrap();
        let answer = self.subscriber.answer(token, &request, true).await;
        let text = String::from_utf8_lossy(answer.body()).into_owned();
        (answer.status().as_u16(), text)
    }

    /// Verifies what was asked for, as hubs do.
    async fn verify(&self, asked: &BTreeMap<String, String>, topic: &str) -> (u16, String) {
        let query = [
            ("hub.mode", asked["hub.mode"].as_str()),
            ("hub.topic", topic),
            ("hub.challenge", "x y"),
            ("hub.lease_seconds", "864000"),
        ];
        self.get(&token(asked), &query).await
    }

    async fn push(&self, token: &str, body: &str, secret: Option<&str>) -> u16 {
        let mut request = http::Request::post(format!("/in/{token}"));
        if let Some(secret) = secret {
            let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
            mac.update(body.as_bytes());
            let code = hex::encode(mac.finalize().into_bytes());
            request = request.header("X-Hub-Signature", format!("sha256={code}"));
        }
        let request = request
            .body(Bytes::copy_from_slice(body.as_bytes()))
            .unwrap();
        let answer = self.subscriber.answer(token, &request, true).await;
        answer.status().as_u16()
    }

    /// The documents that wait for the next poll, and whether it is hinted at.
    fn came(&self) -> (usize, bool) {
        let documents = self.subscriber.0.take_documents(self.feed).len();
        let is_hinted = self.notify.hinted(self.feed).is_some();
        self.notify.hint_heard(self.feed);
        (documents, is_hinted)
    }

    fn stage(&self) -> Option<PushStage> {
        Some(self.subscriber.standing(self.feed)?.stage)
    }

    async fn end(&mut self) {
        self.stop.cancel();
        self.running.take().unwrap().await.unwrap();
        self.stop = CancellationToken::new();
    }
}

fn parts(
    script: Script,
    store: &Arc<Memory>,
    notify: &Arc<Notify>,
    catalog: &Catalog,
    asked: &Arc<Mutex<Vec<BTreeMap<String, String>>>>,
    clock: Arc<Paused>,
) -> Parts {
    let log = asked.clone();
    let hub = tower::service_fn(move |request: Request| {
        let form = form_urlencoded::parse(request.body())
            .into_owned()
            .collect();
        let mut log = log.lock().unwrap();
        let end = script(log.len());
        log.push(form);
        std::future::ready(end.map(|status| {
            let mut answer = Response::new(Bytes::from_static(b"words"));
            *answer.status_mut() = StatusCode::from_u16(status).unwrap();
            answer
        }))
    });
    Parts {
        config: Config::default(),
        callbacks: Url::parse("https://feeds.example/in/").unwrap(),
        store: store.clone(),
        notify: notify.clone(),
        catalog: catalog.clone(),
        clock,
        client: BoxCloneSyncService::new(hub),
        user_agent: HeaderValue::from_static("everfeed"),
        is_own: Arc::new(|url| url.starts_with("https://feeds.example/")),
        metrics: Metrics::default(),
    }
}

fn catalog_of(no: FeedNo, url: &str) -> CatalogSnapshot {
    let settings = Arc::new(FeedSettings::new("blog", Url::parse(url).unwrap()));
    let feed = RegisteredFeed { no, settings };
    CatalogSnapshot::new([feed], [])
}

fn token(asked: &BTreeMap<String, String>) -> String {
    let callback = asked["hub.callback"].strip_prefix("https://feeds.example/in/");
    callback.unwrap().to_owned()
}

const TAKEN: Script = |_| Ok(202);

#[tokio::test(start_paused = true)]
async fn a_hub_is_asked_verifies_and_pushes_and_each_push_is_a_hint_u_2_u_4_u_7() {
    let rig = Rig::new(TAKEN).await;
    rig.name(&[HUB]).await;
    assert_eq!(
        (rig.asked_count(), rig.stage()),
        (1, Some(PushStage::Asked))
    );
    let asked = rig.asked(0);
    let (token, secret) = (token(&asked), asked["hub.secret"].as_str());
    assert!(token.len() == 32 && secret.len() == 64, "{asked:?}");
    assert_eq!(rig.verify(&asked, "https://other.example/").await.0, 404);
    assert_eq!(rig.verify(&asked, FEED).await, (200, "x y".to_owned()));
    assert_eq!(rig.stage(), Some(PushStage::Subscribed));
    assert_eq!(rig.push(&token, "<rss/>", Some(secret)).await, 202);
    assert_eq!(rig.came(), (1, true));
    assert_eq!(rig.stage(), Some(PushStage::Working));
    let now = rig.subscriber.0.now();
    assert!(rig.subscriber.0.works(rig.feed, now));
}

#[tokio::test(start_paused = true)]
async fn what_is_unsigned_forged_replayed_or_without_a_document_is_a_hint_alone_u_6_u_8() {
    let rig = Rig::subscribed(TAKEN).await;
    let (token, secret) = (token(&rig.asked(0)), rig.asked(0)["hub.secret"].clone());
    let secret = Some(secret.as_str());
    for (body, secret, expect) in [
        ("<rss>1</rss>", None, (0, true)),
        ("<rss>1</rss>", Some("guessed"), (0, true)),
        ("", secret, (0, true)),
        ("<rss>1</rss>", secret, (1, true)),
        ("<rss>1</rss>", secret, (0, true)),
        ("<rss>2</rss>", secret, (1, true)),
    ] {
        assert_eq!(rig.push(&token, body, secret).await, 202);
        assert_eq!(rig.came(), expect, "{body} {secret:?}");
    }
    // Of one that was not read to its end nothing is taken.
    let request = http::Request::post("/in/x").body(Bytes::new()).unwrap();
    let cut = rig.subscriber.answer(&token, &request, false).await;
    assert_eq!((cut.status().as_u16(), rig.came()), (202, (0, true)));
}

#[tokio::test(start_paused = true)]
async fn forged_pushes_earn_no_trust() {
    let rig = Rig::subscribed(TAKEN).await;
    rig.push(&token(&rig.asked(0)), "<rss/>", Some("guessed"))
        .await;
    assert_eq!(rig.stage(), Some(PushStage::Subscribed));
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_pushes_is_one_hint_and_no_more_memory_than_its_limits() {
    let rig = Rig::subscribed(TAKEN).await;
    let (token, secret) = (token(&rig.asked(0)), rig.asked(0)["hub.secret"].clone());
    for n in 0..1000 {
        let body = format!("<rss>{n}</rss>");
        assert_eq!(rig.push(&token, &body, Some(&secret)).await, 202);
    }
    assert_eq!(rig.came(), (16, true));
    for n in 0..1000_u32 {
        assert_eq!(rig.push(&format!("{n:032x}"), "x", None).await, 404);
        assert!(!rig.subscriber.takes(&format!("{n:032x}")));
    }
    assert_eq!(rig.came(), (0, false), "nothing at paths that nobody knows");
}

#[tokio::test(start_paused = true)]
async fn all_that_is_not_known_is_answered_alike_u_3() {
    let rig = Rig::subscribed(TAKEN).await;
    let known = token(&rig.asked(0));
    let nowhere = "0".repeat(32);
    let mut answers = vec![
        rig.get(&nowhere, &[("hub.mode", "subscribe")]).await,
        rig.get(&known, &[]).await,
        rig.get(&known, &[("hub.mode", "publish"), ("hub.challenge", "x")])
            .await,
        rig.get(&known, &[("hub.mode", "unsubscribe"), ("hub.topic", FEED)])
            .await,
        rig.get(&known, &[("url", FEED), ("challenge", "x")]).await,
    ];
    let expect = answers[0].clone();
    answers.retain(|answer| *answer != expect);
    assert_eq!((expect.0, answers), (404, vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_in_time_and_both_paths_are_good_u_5() {
    let rig = Rig::subscribed(TAKEN).await;
    let before = token(&rig.asked(0));
    sleep(Duration::from_secs(864_000 / 3 * 2 + 60)).await;
    assert_eq!(rig.asked_count(), 2);
    let renewed = rig.asked(1);
    assert_ne!(token(&renewed), before);
    assert_eq!(rig.verify(&renewed, "https://other.example/").await.0, 404);
    assert_eq!(rig.verify(&renewed, FEED).await.0, 200);
    for token in [before, token(&renewed)] {
        assert_eq!(rig.push(&token, "x", None).await, 202);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_never_verifies_is_asked_ever_less_often() {
    let rig = Rig::new(TAKEN).await;
    rig.name(&[HUB]).await;
    sleep(Duration::from_secs(30 * 86_400)).await;
    let count = rig.asked_count();
    assert!((25..=45).contains(&count), "{count} requests in a month");
    assert_eq!(rig.stage(), Some(PushStage::Failing));
    // It verifies late, and is believed.
    assert_eq!(rig.verify(&rig.asked(0), FEED).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_fails_is_told_of_and_asked_again() {
    let rig = Rig::new(|at| match at {
        0 => Ok(503),
        1 => Err(Refused::Address.into()),
        _ => Ok(202),
    })
    .await;
    rig.name(&[HUB]).await;
    let told = rig.subscriber.standing(rig.feed).unwrap();
    let why = "it answered 503 Service Unavailable: words";
    assert_eq!(
        (told.stage, told.why.as_deref()),
        (PushStage::Failing, Some(why))
    );
    sleep(Duration::from_secs(400)).await;
    assert_eq!(rig.asked_count(), 2);
    sleep(Duration::from_secs(86_400 + 100)).await;
    assert_eq!(rig.asked_count(), 3);
    assert_eq!(rig.verify(&rig.asked(2), FEED).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn our_own_hub_is_never_asked() {
    let rig = Rig::new(TAKEN).await;
    rig.name(&["https://feeds.example/hub"]).await;
    sleep(Duration::from_secs(86_400)).await;
    assert_eq!((rig.asked_count(), rig.stage()), (0, None));
    assert_eq!(rig.store.pushed_feeds(None, 9).await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn a_denial_has_the_feed_polled_and_the_hub_asked_a_day_later_u_10() {
    let rig = Rig::subscribed(TAKEN).await;
    let path = token(&rig.asked(0));
    rig.push(&path, "x", None).await;
    rig.came();
    let denial = [
        ("hub.mode", "denied"),
        ("hub.topic", FEED),
        ("hub.reason", "no"),
    ];
    assert_eq!(rig.get(&path, &denial).await.0, 200);
    assert_eq!(
        (rig.came(), rig.stage()),
        ((0, true), Some(PushStage::Failing))
    );
    assert_eq!(rig.push(&path, "x", None).await, 404);
    sleep(Duration::from_secs(86_400 + 60)).await;
    assert_eq!(rig.asked_count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_restart_goes_on_with_what_was_subscribed() {
    let mut rig = Rig::subscribed(TAKEN).await;
    let path = token(&rig.asked(0));
    rig.push(&path, "x", Some(&rig.asked(0)["hub.secret"]))
        .await;
    rig.end().await;
    let clock = Arc::new(Paused::from(1_770_000_000_000_000 + 60_000_000));
    let parts = parts(
        TAKEN,
        &rig.store,
        &rig.notify,
        &rig.catalog,
        &rig.asked,
        clock,
    );
    rig.subscriber = Subscriber::open(parts).await.unwrap();
    rig.run();
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(
        (rig.asked_count(), rig.stage()),
        (1, Some(PushStage::Working))
    );
    assert_eq!(rig.push(&path, "y", None).await, 202);
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_is_removed_is_unsubscribed_and_one_that_comes_back_subscribed_u_11() {
    let rig = Rig::subscribed(TAKEN).await;
    let path = token(&rig.asked(0));
    rig.catalog.publish(CatalogSnapshot::default());
    sleep(Duration::from_secs(5)).await;
    let left = rig.asked(1);
    assert_eq!(
        (left["hub.mode"].as_str(), token(&left)),
        ("unsubscribe", path.clone())
    );
    assert_eq!(rig.verify(&left, FEED).await, (200, "x y".to_owned()));
    assert_eq!(rig.push(&path, "x", None).await, 410);
    rig.catalog.publish(catalog_of(rig.feed, FEED));
    rig.name(&[HUB]).await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(rig.asked(2)["hub.mode"], "subscribe");
}

#[tokio::test(start_paused = true)]
async fn feeds_that_are_not_for_everybody_or_not_of_somebody_else_are_not_pushed() {
    let rig = Rig::new(TAKEN).await;
    rig.catalog
        .publish(catalog_of(rig.feed, "https://me:secret@blog.example/feed"));
    rig.name(&[HUB]).await;
    assert_eq!((rig.asked_count(), rig.stage()), (0, None));
}

#[test]
fn hubs_are_asked_where_they_can_call_back_unless_the_operator_says_otherwise_u_13() {
    let check = |url: &str, subscribe: Option<bool>, expect: bool| {
        let config = Config {
            subscribe,
            ..Config::default()
        };
        assert_eq!(config.is_on(&Url::parse(url).unwrap()), expect, "{url}");
    };
    check("https://feeds.example.org/", None, true);
    check("http://feeds.example.org/", None, false);
    check("https://localhost/", None, false);
    check("https://10.0.0.1/", None, false);
    check("https://feeds.example.org/", Some(false), false);
    check("http://127.0.0.1:8080/", Some(true), true);
}
