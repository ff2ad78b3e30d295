//! Sites, and a scripted engine: what it is sent, and what becomes of its answers. Time stands still
//! but for what is waited for.

use super::{worker::LOOK_EVERY, *};
use crate::{
    auth::AccessSettings,
    catalog::{
        CatalogSnapshot, FeedSettings, LegacyAddress, RegisteredFeed, ShowRule, SiteSettings,
    },
    clock::Paused,
    events::Severity,
    feed::{
        item::{ItemDigests, KeyHash, Reason},
        reconcile::{Change, Delete, Evidence, Put, PutKind},
        record::FeedNo,
    },
    layers::Refused,
    store::{
        CatalogStore as _, Commit, Feeds as _, IndexNowStore as _, StoreError, StoreFuture,
        memory::Memory,
        wrapped::{Tap, Wrapped},
    },
};
use everfeed_adapters::{Digest, Entry, Key, Link};
use http::StatusCode;
use serde_json::Value;
use std::{
    collections::HashSet,
    sync::{
        LazyLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;

const ROOT: &str = "https://blog.example/";
const BEGIN: Stamp = Stamp::from_secs(1_780_272_000);

/// The answer to the batch of this number, counted from 0.
type Script = fn(usize) -> Result<u16, FetchError>;

const TAKEN: Script = |_| Ok(200);

/// Keeps no row of a site while it is set.
#[derive(Default)]
struct LostRows(AtomicBool);

impl Tap for Arc<LostRows> {
    fn keep_index_now<'a>(
        &'a self,
        inner: &'a dyn Store,
        site: &'a str,
        row: Option<IndexNow>,
    ) -> StoreFuture<'a, ()> {
        if self.0.load(Ordering::Relaxed) {
            return Box::pin(async { Err(StoreError::Failed("the disk is full".into())) });
        }
        inner.keep_index_now(site, row)
    }
}

/// A site, its feed, and what its engine was sent.
struct Rig {
    store: Arc<Wrapped<Arc<LostRows>>>,
    lost: Arc<LostRows>,
    notify: Arc<Notify>,
    catalog: Catalog,
    clock: Arc<Paused>,
    feed: FeedNo,
    batches: Arc<Mutex<Vec<Value>>>,
    /// The status and the body of the key file; `None` for the right one.
    key_file: Arc<Mutex<Option<(u16, &'static str)>>>,
    engines: SearchEngines,
    stop: CancellationToken,
    running: Option<JoinHandle<()>>,
}

impl Rig {
    /// A site whose feed has post 1, and whose engine answers so.
    async fn new(script: Script) -> Self {
        let clock = Arc::new(Paused::from(BEGIN.micros()));
        let lost = Arc::<LostRows>::default();
        let store = Arc::new(Wrapped {
            inner: Box::new(Memory::new(clock.clone())),
            tap: lost.clone(),
        });
        let names = vec![("blog".into(), "blog".into())];
        let feed = store.register_all(names).await.unwrap()[0].no;
        let (notify, batches) = (Arc::new(Notify::new()), Arc::default());
        let key_file = Arc::default();
        let catalog = Catalog::new(catalog(feed, settings()));
        let engines = engines(
            script, &store, &notify, &catalog, &clock, &batches, &key_file,
        );
        let mut rig = Self {
            store,
            lost,
            notify,
            catalog,
            clock,
            feed,
            batches,
            key_file,
            engines,
            stop: CancellationToken::new(),
            running: None,
        };
        rig.change(vec![add(1)]).await;
        sleep(Duration::from_secs(1)).await;
        rig.run();
        rig.pass(1).await;
        rig
    }

    fn run(&mut self) {
        let running = self.engines.clone().run(self.stop.clone());
        self.running = Some(tokio::spawn(running));
    }

    /// Waits for so many looks.
    async fn pass(&self, looks: u32) {
        sleep(LOOK_EVERY * looks + Duration::from_millis(10)).await;
    }

    /// Ends the process in order, and starts another one with an engine that answers so.
    async fn restart(&mut self, script: Script) {
        self.stop.cancel();
        self.running.take().unwrap().await.unwrap();
        self.start_again(script);
        self.pass(1).await;
    }

    fn start_again(&mut self, script: Script) {
        self.stop = CancellationToken::new();
        self.engines = engines(
            script,
            &self.store,
            &self.notify,
            &self.catalog,
            &self.clock,
            &self.batches,
            &self.key_file,
        );
        self.run();
    }

    async fn change(&self, changes: Vec<Change>) {
        let record = self.store.feed(self.feed).await.unwrap();
        let commit = Commit {
            changes,
            ready: true,
            ..Commit::nothing(&record)
        };
        let receipt = self.store.commit(commit).await.unwrap();
        self.notify.committed(&receipt.feed, &receipt.groups);
    }

    /// The paths of each batch so far.
    fn sent(&self) -> Vec<Vec<String>> {
        let batches = lock(&self.batches);
        let paths = |batch: &Value| {
            let urls = batch["urlList"].as_array().unwrap().iter();
            urls.map(|url| url.as_str().unwrap().strip_prefix(ROOT).unwrap().to_owned())
                .collect()
        };
        batches.iter().map(paths).collect()
    }

    async fn row(&self) -> IndexNow {
        self.store.index_now(ROOT).await.unwrap().unwrap()
    }

    fn findings(&self) -> Vec<(Severity, String)> {
        let now = Stamp::from_micros(self.clock.now_us());
        let findings = self.engines.findings(now).into_iter();
        findings
            .map(|finding| (finding.severity, finding.title))
            .collect()
    }
}

fn engines(
    script: Script,
    store: &Arc<Wrapped<Arc<LostRows>>>,
    notify: &Arc<Notify>,
    catalog: &Catalog,
    clock: &Arc<Paused>,
    batches: &Arc<Mutex<Vec<Value>>>,
    key_file: &Arc<Mutex<Option<(u16, &'static str)>>>,
) -> SearchEngines {
    let (log, key_file) = (batches.clone(), key_file.clone());
    let first = lock(batches).len();
    let engine = tower::service_fn(move |request: Request| {
        let url = request.uri().to_string();
        let answer = |status: u16, body: String| {
            let mut answer = Response::new(Bytes::from(body));
            *answer.status_mut() = StatusCode::from_u16(status).unwrap();
            answer
        };
        let end = if request.method() == http::Method::GET {
            let key = url
                .strip_prefix(ROOT)
                .unwrap()
                .strip_suffix(".txt")
                .unwrap();
            let file = *lock(&key_file);
            Ok(file.map_or_else(
                || answer(200, key.to_owned()),
                |(status, body)| answer(status, body.to_owned()),
            ))
        } else {
            assert_eq!(url, INDEX_NOW_URL);
            assert_eq!(
                request.headers()["content-type"],
                "application/json; charset=utf-8"
            );
            let mut log = lock(&log);
            let end = script(log.len() - first);
            log.push(serde_json::from_slice(request.body()).unwrap());
            end.map(|status| answer(status, "words".to_owned()))
        };
        std::future::ready(end)
    });
    SearchEngines::new(SearchEngineParts {
        config: Config::default(),
        public_url: Url::parse(ROOT).unwrap(),
        store: store.clone(),
        notify: notify.clone(),
        catalog: catalog.clone(),
        clock: clock.clone(),
        client: BoxCloneSyncService::new(engine),
        user_agent: HeaderValue::from_static("everfeed"),
    })
}

fn settings() -> FeedSettings {
    let url = Url::parse(ROOT).unwrap().join("/feed.xml").unwrap();
    FeedSettings {
        legacy: Some(Box::new(LegacyAddress::at(url.clone()))),
        ..FeedSettings::new("blog", url)
    }
}

/// The site of the feed, with `indexnow` on or off.
fn sites(indexnow: bool) -> Arc<Sites> {
    let site = SiteSettings {
        indexnow,
        ..SiteSettings::new(Url::parse("http://127.0.0.1:1/").unwrap())
    };
    Arc::new(Sites::new(&[site]))
}

fn catalog(no: FeedNo, settings: FeedSettings) -> CatalogSnapshot {
    static ON: LazyLock<Arc<Sites>> = LazyLock::new(|| sites(true));
    CatalogSnapshot::new([RegisteredFeed::new(no, settings)], []).with_sites(ON.clone())
}

fn put(kind: PutKind, no: u32, text: &str, root: &str) -> Change {
    let digest = Digest::of(format!("{no} {text}").as_bytes());
    let key = key(no);
    let link = Link {
        rel: "alternate".into(),
        href: format!("{root}{no}"),
        ..Link::default()
    };
    let entry = Entry {
        id: Some(format!("tag:{no}")),
        links: vec![link],
        ..Entry::default()
    };
    Change::Put(Put {
        kind,
        id: key.item_id(),
        iri: format!("tag:blog.example,2026:{no}"),
        keys: vec![key],
        entry: Arc::new(entry),
        published_us: None,
        digests: ItemDigests {
            raw: digest,
            content: digest,
            version: 1,
        },
        witnesses: Vec::new(),
    })
}

fn key(no: u32) -> KeyHash {
    KeyHash::of("blog", &Key::Id(format!("tag:{no}")).stripped())
}

fn add(no: u32) -> Change {
    put(PutKind::Added, no, "new", ROOT)
}

fn edit(no: u32, text: &str) -> Change {
    put(PutKind::Edited, no, text, ROOT)
}

fn delete(no: u32) -> Change {
    let reason = Reason::Gone;
    Change::Delete(Delete {
        id: key(no).item_id(),
        reason,
        first_missing: None,
        last_seen: None,
        evidence: Evidence {
            reason,
            observed_at: BEGIN,
            when: None,
            comment: None,
            suspect: None,
            archive_suspect: None,
        },
    })
}

#[tokio::test(start_paused = true)]
async fn new_changed_and_deleted_posts_are_sent_and_history_is_not_r_1_r_2_r_4() {
    let rig = Rig::new(TAKEN).await;
    rig.pass(3).await;
    assert_eq!(rig.sent(), [[""; 0]; 0], "post 1 is history");
    let foreign = put(PutKind::Added, 3, "new", "https://other.example/");
    rig.change(vec![add(2), foreign]).await;
    rig.pass(1).await;
    assert_eq!(rig.sent(), [["2"]]);
    rig.pass(2).await;
    rig.change(vec![edit(1, "edited")]).await;
    rig.pass(1).await;
    rig.change(vec![delete(2)]).await;
    rig.pass(1).await;
    assert_eq!(rig.sent(), [["2"], ["1"]], "2 was sent a minute ago");
    rig.pass(125).await;
    assert_eq!(rig.sent(), [["2"], ["1"], ["2"]]);
    let row = rig.row().await;
    let key = row.key.reveal();
    assert!(key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let batch = lock(&rig.batches)[0].clone();
    assert_eq!(batch["host"], "blog.example");
    assert_eq!(batch["key"], key);
    assert_eq!(batch["keyLocation"], format!("{ROOT}{key}.txt"));
    assert_eq!(row.accepted, 3);
    let other = Rig::new(TAKEN).await;
    assert_ne!(other.row().await.key, row.key, "a key cannot be guessed");
}

#[tokio::test(start_paused = true)]
async fn every_status_of_an_engine_does_what_it_has_to_r_3() {
    // The batches of one post after a quarter of an hour, and of another after that; and the finding.
    let check = async |script: Script, expect: &[&str], finding: Option<Severity>| {
        let rig = Rig::new(script).await;
        rig.change(vec![add(2)]).await;
        rig.pass(150).await;
        let found = rig.findings();
        rig.change(vec![add(3)]).await;
        rig.pass(150).await;
        let sent: Vec<String> = rig.sent().iter().map(|paths| paths.join(" ")).collect();
        assert_eq!(sent, expect);
        assert_eq!(
            found.first().map(|(severity, _)| *severity),
            finding,
            "{found:?}"
        );
    };
    check(|_| Ok(200), &["2", "3"], None).await;
    check(|_| Ok(202), &["2", "3"], None).await;
    let dropped = Some(Severity::Notice);
    check(|_| Ok(400), &["2", "3"], dropped).await;
    check(|_| Ok(422), &["2", "3"], dropped).await;
    check(|_| Ok(403), &["2"], Some(Severity::Fault)).await;
    // After 1, 2 and 4 minutes, and then after 8, when there is another one.
    let doubled = &["2", "2", "2", "2", "2 3"];
    check(|_| Ok(429), doubled, None).await;
    check(|_| Ok(503), doubled, None).await;
    check(|_| Err(Refused::Address.into()), doubled, None).await;
    let recovers: Script = |at| Ok(if at < 2 { 500 } else { 200 });
    check(recovers, &["2", "2", "2", "3"], None).await;
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_takes_nothing_for_an_hour_is_a_finding() {
    let rig = Rig::new(|_| Ok(503)).await;
    rig.change(vec![add(2)]).await;
    rig.pass(500).await;
    assert_eq!(rig.findings(), []);
    rig.pass(500).await;
    let title = format!("api.indexnow.org takes no URLs of {ROOT}");
    assert_eq!(rig.findings(), [(Severity::Fault, title)]);
}

#[tokio::test(start_paused = true)]
async fn a_restart_neither_repeats_nor_skips_r_4() {
    let mut rig = Rig::new(TAKEN).await;
    rig.change(vec![add(2)]).await;
    rig.pass(1).await;
    let key = rig.row().await.key;
    rig.restart(TAKEN).await;
    rig.pass(3).await;
    assert_eq!(rig.sent(), [["2"]]);
    rig.stop.cancel();
    rig.running.take().unwrap().await.unwrap();
    // While everfeed is away from its engine; the pause of 2 lasts.
    rig.change(vec![add(3), edit(2, "edited"), delete(1)]).await;
    rig.start_again(TAKEN);
    rig.pass(2).await;
    assert_eq!(rig.sent(), [vec!["2"], vec!["3", "1"]]);
    rig.pass(125).await;
    assert_eq!(rig.sent(), [vec!["2"], vec!["3", "1"], vec!["2"]]);
    assert_eq!(rig.row().await.key, key);
}

#[tokio::test(start_paused = true)]
async fn a_kill_between_a_batch_and_its_cursor_repeats_it_once_at_most() {
    let mut rig = Rig::new(TAKEN).await;
    rig.lost.0.store(true, Ordering::Relaxed);
    rig.change(vec![add(2)]).await;
    rig.pass(3).await;
    assert_eq!(rig.sent(), [["2"]], "nothing is sent before that is noted");
    let running = rig.running.take().unwrap();
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    rig.lost.0.store(false, Ordering::Relaxed);
    rig.start_again(TAKEN);
    rig.pass(10).await;
    assert_eq!(rig.sent(), [["2"], ["2"]]);
    rig.restart(TAKEN).await;
    rig.pass(300).await;
    assert_eq!(rig.sent(), [["2"], ["2"]]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_key_is_tried_again_after_a_restart_and_nothing_is_skipped_r_3() {
    let mut rig = Rig::new(|_| Ok(403)).await;
    rig.change(vec![add(2)]).await;
    rig.pass(3).await;
    rig.change(vec![add(3)]).await;
    rig.pass(1000).await;
    let title = format!("api.indexnow.org does not take the key of {ROOT}");
    assert_eq!(rig.findings(), [(Severity::Fault, title)]);
    let finding = rig.engines.findings(Stamp::from_micros(rig.clock.now_us()));
    assert_eq!(finding[0].whose.name(), "configuration");
    assert!(finding[0].remedy.contains("key file"), "{finding:?}");
    rig.restart(TAKEN).await;
    assert_eq!(rig.sent(), [vec!["2"], vec!["2", "3"]]);
    assert_eq!(rig.findings(), []);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_while_something_else_is_at_the_address_of_the_key_r_2() {
    let rig = Rig::new(TAKEN).await;
    let title = format!("Search engines cannot read the key file of {ROOT}");
    for file in [(404, ""), (200, "<html>"), (301, "")] {
        *lock(&rig.key_file) = Some(file);
        rig.change(vec![if file.0 == 404 {
            add(2)
        } else {
            edit(2, file.1)
        }])
        .await;
        rig.pass(1).await;
        assert_eq!(rig.findings(), [(Severity::Fault, title.clone())]);
    }
    assert_eq!(rig.sent(), [[""; 0]; 0]);
    *lock(&rig.key_file) = None;
    rig.pass(1000).await;
    assert_eq!(rig.sent(), [["2"]]);
    assert_eq!(rig.findings(), []);
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_not_everybody_may_read_sends_nothing() {
    let part: ShowRule = toml::from_str("access = \"public\"\nfilter = \"q=x\"").unwrap();
    let private = [
        FeedSettings {
            access: AccessSettings::Users,
            ..settings()
        },
        FeedSettings {
            access: AccessSettings::Named(["alice".to_owned()].into()),
            ..settings()
        },
        FeedSettings {
            show: vec![part],
            ..settings()
        },
    ];
    for settings in private {
        let rig = Rig::new(TAKEN).await;
        rig.catalog.publish(catalog(rig.feed, settings));
        rig.change(vec![add(2), edit(1, "edited")]).await;
        rig.pass(200).await;
        assert_eq!(rig.sent(), [[""; 0]; 0]);
    }
    let rig = Rig::new(TAKEN).await;
    let quiet = FeedSettings {
        announce_deletes: false,
        ..settings()
    };
    rig.catalog.publish(catalog(rig.feed, quiet));
    rig.change(vec![add(2), delete(1)]).await;
    rig.pass(200).await;
    assert_eq!(rig.sent(), [["2"]]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_more_than_ten_thousand_urls_is_sent_in_two_r_1() {
    let rig = Rig::new(TAKEN).await;
    rig.change((2..=12_501).map(add).collect()).await;
    rig.pass(1).await;
    rig.pass(4).await;
    let sent = rig.sent();
    assert_eq!(
        sent.iter().map(Vec::len).collect::<Vec<_>>(),
        [10_000, 2_500]
    );
    let each: HashSet<&String> = sent.iter().flatten().collect();
    assert_eq!(each.len(), 12_500);
}

#[tokio::test(start_paused = true)]
async fn a_site_that_a_reload_turns_off_loses_its_key_and_gets_another_when_it_is_on_again() {
    let rig = Rig::new(TAKEN).await;
    rig.pass(10).await;
    let row = rig.store.index_now(ROOT).await.unwrap().unwrap();
    let with_sites = |sites| catalog(rig.feed, settings()).with_sites(sites);
    rig.catalog.publish(with_sites(sites(false)));
    rig.pass(10).await;
    assert!(rig.engines.told().is_empty());
    assert_eq!(rig.store.index_now(ROOT).await.unwrap(), None);
    rig.change(vec![add(2)]).await;
    rig.pass(200).await;
    assert_eq!(rig.sent(), [[""; 0]; 0]);
    rig.catalog.publish(with_sites(sites(true)));
    rig.pass(10).await;
    let again = rig.store.index_now(ROOT).await.unwrap().unwrap();
    assert_ne!(row.key, again.key);
    rig.change(vec![add(3)]).await;
    rig.pass(200).await;
    assert_eq!(rig.sent(), [["3"]]);
}
