//! Lists over the whole of the registry, with servers that answer by a script and a clock that goes on
//! where a test waits.

use super::*;
use crate::{
    app::{
        current_work::CurrentWork,
        registry::{self, WantedChange},
        reload::ReloadParts,
        wiring::Wiring,
    },
    catalog::{self, RegistrationProgress},
    clock::Paused,
    config::Config,
    layers::{ClientConfig, FetchError, Governor, Reply, Request, client::upstream_over},
    store::memory::Memory,
};
use bytes::Bytes;
use http::{Response, header};
use http_body_util::{BodyExt as _, Full};
use std::collections::HashMap;

const START_US: u64 = 1_780_272_000_000_000;
const HOUR: u64 = 3600;
const DAY: u64 = 86_400;

/// The documents of a server by URL, and the requests for them: URL, and true with validators.
#[derive(Default)]
struct Server {
    bodies: HashMap<String, (u16, String)>,
    asked: Vec<(String, bool)>,
}

impl Server {
    fn answer(&mut self, request: &Request) -> Reply {
        let url = request.uri().to_string();
        let validator = request.headers().get(header::IF_NONE_MATCH).cloned();
        self.asked.push((url.clone(), validator.is_some()));
        let (mut status, mut body) = self.bodies.get(&url).cloned().unwrap_or((404, "".into()));
        let etag = format!("\"{}\"", body.len());
        if validator.is_some_and(|held| held == etag.as_str()) {
            (status, body) = (304, String::new());
        }
        let body = Full::new(Bytes::from(body)).map_err(|never| match never {});
        Response::builder()
            .status(status)
            .header(header::ETAG, etag)
            .body(body.boxed_unsync())
            .unwrap()
    }
}

struct Rig {
    lists: OpmlLists,
    wiring: Wiring,
    server: Arc<Mutex<Server>>,
    stop: CancellationToken,
}

const LIST: &str = "http://127.0.0.1:81/l.opml";

const LINES: &str = "[[opml]]\nname = \"planet\"\nurl = \"http://127.0.0.1:81/l.opml\"\n";

impl Rig {
    async fn new(text: &str) -> Self {
        let text = format!(
            "[server]\npublic_url = \"https://feeds.example\"\n[store]\npath = \"x\"\n{text}"
        );
        let config = Config::parse("everfeed.toml", &text).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(Paused::from(START_US));
        let store: Arc<dyn Store> = Arc::new(Memory::new(clock.clone()));
        let feeds = config.registered();
        let wiring = Wiring::new(config, store.clone(), clock.clone(), 1).await;
        let wiring = wiring.unwrap();
        let progress = RegistrationProgress::of(feeds.len());
        let registered = catalog::register(&*store, feeds, &progress).await.unwrap();
        wiring.gate.catalog.publish(registered);
        let reloader = Arc::new(Reloader::new(ReloadParts {
            source: None,
            started_with: wiring.config.clone(),
            gate: wiring.gate.clone(),
            store,
            notify: wiring.notify.clone(),
            workplace: CurrentWork::default(),
            live: wiring.live.clone(),
        }));
        let server = Arc::new(Mutex::new(Server::default()));
        let answering = server.clone();
        let wire = tower::service_fn(move |request: Request| {
            let reply = lock(&answering).answer(&request);
            std::future::ready(Ok::<Reply, FetchError>(reply))
        });
        let client = upstream_over(&ClientConfig::default(), Governor::default(), wire);
        let upstream = Upstream::new(client, None, clock);
        let lists = wiring.opml_lists(&upstream, &reloader);
        Self {
            lists,
            wiring,
            server,
            stop: CancellationToken::new(),
        }
    }

    fn run(&self) {
        let (lists, stop) = (self.lists.clone(), self.stop.clone());
        tokio::spawn(lists.run(stop));
    }

    /// From now on a URL is answered by a list of these feeds.
    fn lists(&self, url: &str, feeds: &[&str]) {
        let outline = |url: &&str| format!("<outline text='t' xmlUrl='{url}'/>");
        let outlines: String = feeds.iter().map(outline).collect();
        self.says(url, 200, &outlines);
    }

    fn says(&self, url: &str, status: u16, outlines: &str) {
        let body = format!("<opml version='2.0'><body>{outlines}</body></opml>");
        let mut server = lock(&self.server);
        server.bodies.insert(url.to_owned(), (status, body));
    }

    async fn after(&self, secs: u64) {
        sleep(Duration::from_secs(secs)).await;
    }

    /// The feeds in force by name: the URL, and true if it is paused.
    fn feeds(&self) -> Vec<(String, String, bool)> {
        let catalog = self.wiring.gate.catalog.snapshot();
        let feeds = catalog.upstreams().map(|feed| &feed.settings);
        feeds
            .map(|feed| (feed.name.clone(), feed.url.to_string(), feed.paused))
            .collect()
    }

    fn names(&self) -> Vec<String> {
        self.feeds().into_iter().map(|(name, ..)| name).collect()
    }

    fn paused(&self) -> Vec<String> {
        let feeds = self.feeds().into_iter();
        let paused = feeds.filter(|(.., is_paused)| *is_paused);
        paused.map(|(name, ..)| name).collect()
    }

    /// The requests since the last call.
    fn asked(&self) -> Vec<(String, bool)> {
        std::mem::take(&mut lock(&self.server).asked)
    }

    fn status(&self) -> OpmlStatus {
        self.lists.status().remove(0)
    }

    /// The entry of a feed, as it is kept.
    async fn entry(&self, name: &str) -> serde_json::Value {
        let text = registry::text_of(&*self.wiring.store, name).await.unwrap();
        serde_json::from_str(&text.unwrap().unwrap()).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn the_feeds_of_a_list_become_feeds_of_the_registry_each_once_in_every_spelling() {
    let mine = "[[feed]]\nname = \"mine\"\nurl = \"https://www.mine.example/feed\"\n";
    let rig = Rig::new(&format!("{LINES}{mine}")).await;
    rig.says(
        LIST,
        200,
        "<outline text='Tech'><outline xmlUrl='http://ann.example/feed'/></outline>\
         <outline text='Fun'><outline xmlUrl='https://www.ann.example/feed/'/></outline>\
         <outline xmlUrl='http://mine.example/feed/'/>\
         <outline xmlUrl='https://me:hunter2@bob.example/feed'/>\
         <outline xmlUrl='http://127.0.0.1:9/feed'/><outline xmlUrl='http://box.local/'/>\
         <outline xmlUrl='https://feeds.example/feeds/mine.atom'/>",
    );
    rig.run();
    rig.after(5).await;
    assert_eq!(rig.names(), ["ann", "bob", "mine"]);
    assert_eq!(
        rig.entry("ann").await,
        serde_json::json!({
            "name": "ann", "url": "http://ann.example/feed", "categories": ["tech", "fun"],
            "public_hosts_only": true, "from_list": "planet"
        })
    );
    assert_eq!(
        rig.entry("bob").await["url"],
        "https://me:hunter2@bob.example/feed"
    );
    let told = rig.status();
    assert_eq!((told.listed, told.feeds, told.skipped_total), (4, 2, 3));
    let text = serde_json::to_string(&told).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    assert!(told.skipped[0].contains("on this machine"), "{told:?}");
    assert!(
        told.skipped[2].contains("feeds.example"),
        "it is everfeed's own: {told:?}"
    );
    // Nothing is added twice, and nothing is asked twice.
    rig.asked();
    rig.after(3 * HOUR).await;
    assert_eq!(rig.asked(), vec![(LIST.to_owned(), true); 3]);
    assert_eq!(rig.names().len(), 3);
    rig.after(DAY).await;
    let whole = rig.asked().into_iter().filter(|(_, with)| !with);
    assert_eq!(whole.count(), 1, "once a day it is read whole");
    rig.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_leaves_is_paused_after_days_and_resumed_when_it_is_back() {
    let rig = Rig::new(LINES).await;
    let all = [
        "http://a.example/",
        "http://b.example/",
        "http://c.example/",
    ];
    rig.lists(LIST, &all);
    rig.run();
    rig.after(5).await;
    assert_eq!(rig.names(), ["a", "b", "c"]);
    rig.lists(LIST, &all[1..]);
    rig.after(3 * DAY - HOUR).await;
    assert!(rig.paused().is_empty());
    assert_eq!(rig.status().absent, 1);
    rig.after(3 * HOUR).await;
    assert_eq!(rig.paused(), ["a"]);
    let told = rig.status();
    assert_eq!((&told.paused, told.absent), (&vec!["a".to_owned()], 0));
    assert_eq!(rig.entry("a").await["paused"], true);
    rig.after(DAY).await;
    assert_eq!((rig.paused().len(), rig.names().len()), (1, 3));
    rig.lists(LIST, &all);
    rig.after(HOUR + 5).await;
    assert!(rig.paused().is_empty());
    assert_eq!(rig.entry("a").await.get("paused"), None);
    rig.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_another_list_has_goes_over_to_it_and_is_not_paused() {
    const OTHER: &str = "http://127.0.0.1:81/other.opml";
    let other = format!("[[opml]]\nname = \"zoo\"\nurl = \"{OTHER}\"\n");
    let rig = Rig::new(&format!("{LINES}{other}")).await;
    let all = [
        "http://a.example/",
        "http://b.example/",
        "http://c.example/",
    ];
    rig.lists(LIST, &all);
    let others = ["http://d.example/", "http://e.example/", all[0]];
    rig.lists(OTHER, &others);
    rig.run();
    rig.after(5).await;
    assert_eq!(rig.entry("a").await["from_list"], "planet");
    rig.lists(LIST, &all[1..]);
    rig.after(5 * DAY).await;
    assert!(rig.paused().is_empty());
    assert_eq!(rig.entry("a").await["from_list"], "zoo");
    assert_eq!(rig.entry("b").await["from_list"], "planet");
    // The other list drops it, too.
    rig.lists(OTHER, &others[..2]);
    rig.after(4 * DAY).await;
    assert_eq!(rig.paused(), ["a"]);
    // The first one has it again, which lifts the pause.
    rig.lists(LIST, &all);
    rig.after(DAY + HOUR).await;
    assert!(rig.paused().is_empty());
    assert_eq!(rig.entry("a").await["from_list"], "planet");
    rig.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_or_lacks_more_than_half_changes_nothing_and_is_told() {
    let rig = Rig::new(LINES).await;
    let all = [
        "http://a.example/",
        "http://b.example/",
        "http://c.example/",
    ];
    rig.lists(LIST, &all);
    rig.run();
    rig.after(5).await;
    assert!(rig.lists.untried().is_empty());
    let cut = "<outline xmlUrl='http://a.example/'/>";
    for (status, outlines, why, whose) in [
        (500, "", "500", FaultOwner::Upstream),
        (404, "", "404", FaultOwner::Upstream),
        (200, cut, "2 of the 3", FaultOwner::Upstream),
        (200, "", "3 of the 3", FaultOwner::Upstream),
    ] {
        rig.says(LIST, status, outlines);
        rig.after(5 * DAY).await;
        let fault = rig.status().fault.unwrap();
        assert!(fault.text.contains(why), "{fault:?}");
        let found = rig.lists.findings();
        assert_eq!((found.len(), found[0].whose), (1, whose), "{found:?}");
        assert_eq!((rig.names().len(), rig.paused().len()), (3, 0), "{why}");
    }
    {
        let mut server = lock(&rig.server);
        for body in [
            "<html></html>",
            "<!DOCTYPE opml [<!ENTITY a 'x'>]><opml><outline xmlUrl='http://&a;/'/></opml>",
            "<opml><body><outline xmlUrl='http://a.example/'/>",
        ] {
            server.bodies.insert(LIST.into(), (200, body.into()));
        }
    }
    rig.after(5 * DAY).await;
    let told = rig.status();
    let fault = told.fault.unwrap();
    assert!(fault.text.contains("before its last tag"), "{fault:?}");
    assert!(told.failures > 100 && rig.paused().is_empty());
    rig.lists(LIST, &all);
    rig.after(HOUR + 5).await;
    assert_eq!(
        (rig.status().fault.is_none(), rig.status().failures),
        (true, 0)
    );
    assert!(rig.lists.findings().is_empty());
    rig.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn lists_in_a_list_are_asked_with_validators_and_all_again_when_one_has_changed() {
    let rig = Rig::new(LINES).await;
    let inner = "http://inner.example/l.opml";
    let include = format!(
        "<outline type='include' text='i' url='{inner}'/><outline type='link' text='s' url='{LIST}'/>\
         <outline xmlUrl='http://a.example/'/>"
    );
    rig.says(LIST, 200, &include);
    rig.lists(inner, &["http://b.example/"]);
    rig.run();
    rig.after(5).await;
    assert_eq!(rig.names(), ["a", "b"]);
    let whole = |url: &str| (url.to_owned(), false);
    let held = |url: &str| (url.to_owned(), true);
    assert_eq!(rig.asked(), [whole(LIST), whole(inner)]);
    rig.after(HOUR + 5).await;
    assert_eq!(rig.asked(), [held(LIST), held(inner)]);
    rig.lists(inner, &["http://b.example/", "http://c.example/"]);
    rig.after(HOUR + 5).await;
    assert_eq!(rig.asked(), [held(LIST), held(inner), whole(LIST)]);
    assert_eq!(rig.names(), ["a", "b", "c"]);
    // A list that is not read any more says nothing of its feeds.
    rig.says(inner, 503, "");
    rig.after(5 * DAY).await;
    assert!(rig.paused().is_empty());
    assert!(rig.status().fault.unwrap().text.contains("inner.example"));
    rig.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn the_state_of_a_list_outlives_the_work_and_is_not_read_before_its_time() {
    let rig = Rig::new(LINES).await;
    rig.lists(LIST, &["http://a.example/", "http://b.example/"]);
    rig.run();
    rig.after(5).await;
    rig.lists(LIST, &["http://b.example/"]);
    rig.after(HOUR).await;
    rig.stop.cancel();
    rig.after(60).await;
    let row = rig.wiring.store.opml_list("planet").await.unwrap().unwrap();
    assert_eq!(row.absent[0].name, "a");
    rig.asked();

    let again = OpmlLists::new(OpmlParts {
        settings: rig.wiring.live.lists(),
        store: rig.wiring.store.clone(),
        catalog: rig.wiring.gate.catalog.clone(),
        clock: rig.wiring.clock.clone(),
        upstream: rig.lists.0.parts.upstream.clone(),
        reloader: rig.lists.0.parts.reloader.clone(),
    });
    assert_eq!(again.untried().len(), 1);
    let stop = CancellationToken::new();
    tokio::spawn(again.clone().run(stop.clone()));
    rig.after(60).await;
    assert!(rig.asked().is_empty(), "it is not due");
    rig.after(3 * DAY).await;
    assert_eq!(rig.paused(), ["a"]);
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_reload_adds_a_list_at_once_and_one_that_goes_leaves_its_feeds() {
    let mine = "[[feed]]\nname = \"mine\"\nurl = \"http://mine.example/\"\n";
    let rig = Rig::new(mine).await;
    rig.lists(LIST, &["http://a.example/"]);
    rig.run();
    rig.after(60).await;
    assert!(rig.asked().is_empty() && rig.lists.status().is_empty());
    let config = |text: &str| {
        let server = "[server]\npublic_url = \"https://feeds.example\"\n[store]\npath = \"x\"\n";
        Config::parse("everfeed.toml", &format!("{server}{text}{mine}")).unwrap()
    };
    let changed = rig.wiring.live.reload(&config(LINES), None);
    assert_eq!(changed, ["opml"]);
    rig.after(5).await;
    assert_eq!(rig.names(), ["a", "mine"]);
    rig.wiring.live.reload(&config(""), None);
    rig.after(10 * DAY).await;
    assert_eq!((rig.names().len(), rig.paused().len()), (2, 0));
    assert!(rig.lists.status().is_empty());
    rig.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_list_does_not_bring_back_a_feed_that_was_removed() {
    let rig = Rig::new(LINES).await;
    rig.lists(LIST, &["http://a.example/", "http://b.example/"]);
    rig.run();
    rig.after(5).await;
    let reloader = &rig.lists.0.parts.reloader;
    let removed = reloader.change_registry(WantedChange::Remove("a".into()));
    assert!(removed.await.is_ok());
    assert_eq!(rig.names(), ["b"]);
    // It may have been private, and its items would be for everybody.
    rig.after(3 * DAY).await;
    assert_eq!(rig.names(), ["b"]);
    let skipped = &rig.lists.status()[0].skipped;
    assert!(skipped[0].contains("everfeed forget a"), "{skipped:?}");
    rig.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_list_does_not_bring_back_a_removed_feed_of_another_spelling_or_name() {
    let mut own = String::from("[[feed]]\nname = \"diary\"\naccess = \"private\"\n");
    own += "url = \"http://alice:pw@a.example/\"\n";
    let rig = Rig::new(&format!("{LINES}{own}")).await;
    let without = rig.wiring.gate.catalog.snapshot();
    let no = without.feed("diary").unwrap().no;
    let snapshot = CatalogSnapshot::new([], [("diary".to_owned(), no)]);
    rig.wiring.gate.catalog.publish(snapshot);
    rig.lists(LIST, &["http://a.example/", "http://b.example/"]);
    rig.run();
    rig.after(5).await;
    assert_eq!(rig.names(), ["b"]);
    rig.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn feeds_on_this_machine_are_taken_where_the_operator_allows_them() {
    let rig = Rig::new(&format!("{LINES}private_hosts = true\n")).await;
    rig.lists(LIST, &["http://127.0.0.1:9/a", "http://10.0.0.1/b"]);
    rig.run();
    rig.after(5).await;
    assert_eq!(rig.names().len(), 2);
    let catalog = rig.wiring.gate.catalog.snapshot();
    let mut feeds = catalog.upstreams();
    assert!(feeds.all(|feed| !feed.settings.public_hosts_only));
    rig.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn many_feeds_at_once_are_added_and_one_that_is_refused_takes_no_other_with_it() {
    let rig = Rig::new(LINES).await;
    let urls: Vec<String> = (0..1200)
        .map(|no| format!("http://h{no}.example/"))
        .collect();
    let own = "https://feeds.example/feeds/x.atom";
    let mut all: Vec<&str> = urls.iter().map(String::as_str).collect();
    all.insert(700, own);
    rig.lists(LIST, &all);
    rig.run();
    rig.after(30).await;
    let told = rig.status();
    assert_eq!(
        (told.feeds, told.listed, told.skipped_total),
        (1200, 1201, 1)
    );
    rig.stop.cancel();
}
