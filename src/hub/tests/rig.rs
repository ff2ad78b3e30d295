//! A hub with its feed, its clock and its callbacks, and short words for what happens to them; no
//! tests.

use crate::{
    auth::{AccessSettings, Accounts, AuthVerdict, Credentials, testing::authenticator},
    catalog::{
        Catalog, CatalogSnapshot, FeedSettings, LegacyAddress, ReadGate, RegisteredFeed, ShowRule,
        testing::parted,
    },
    clock::{Clock, Paused},
    feed::{
        legacy_document::{LegacyDocument, LegacySyntax},
        order::Order,
        page::PageQuery,
        reconcile::Change,
        record::FeedNo,
    },
    hub::{
        CallbackParts, Callbacks, Config, Hub, Parts, ProcessAddresses, SubscriptionCounts,
        WebhookSettings,
    },
    ingest::DocumentFormat,
    layers::{ConnectFault, FetchError, Request},
    notify::Notify,
    readers::{
        self, Readers,
        testing::{self, START},
    },
    render::Site,
    secret::Secret,
    store::{
        Commit, Store, StoreError, StoreFuture, Subscription, SubscriptionNo,
        memory::Memory,
        subscriptions::{Acknowledged, CallbackTarget, Progress, Target},
        wrapped::{Tap, Wrapped},
    },
};
use bytes::Bytes;
use everfeed_adapters::{Digest, Metadata, Text};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;
use tower::{service_fn, util::BoxCloneSyncService};
use url::{Url, form_urlencoded};

const NAMESPACE: &str = "example.org/feed";
/// The topic of most tests, and the hub.
pub(super) const TOPIC: &str = "http://feeds.example:8080/feeds/blog.atom?order=modified";
pub(super) const CALLBACK: &str = "http://reader.example/cb?k=KEY";
pub(super) const DAY_SECS: u64 = 86_400;

/// A request that reached a callback.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// Time since the test began.
    pub(super) at: Duration,
    /// Seconds of that, rounded down.
    pub(super) at_secs: u64,
    pub(super) method: http::Method,
    pub(super) url: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Call {
    pub(super) fn param(&self, name: &str) -> Option<String> {
        let url = Url::parse(&self.url).unwrap();
        url.query_pairs()
            .find(|(given, _)| given == name)
            .map(|(_, value)| value.into_owned())
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map(|value| value.to_str().unwrap())
            .unwrap_or_default()
    }

    pub(super) fn is_push(&self) -> bool {
        self.method != http::Method::GET
    }

    pub(super) fn prev(&self) -> &str {
        self.header("smart-feed-prev")
    }

    pub(super) fn last(&self) -> &str {
        self.header("smart-feed-last")
    }
}

/// The answer of a callback to a request.
pub(super) struct Reply {
    pub(super) after: Duration,
    pub(super) result: Result<Response<Bytes>, FetchError>,
}

impl Reply {
    pub(super) fn status(status: u16) -> Self {
        let mut response = Response::new(Bytes::from_static(b"whatever"));
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        Self {
            after: Duration::ZERO,
            result: Ok(response),
        }
    }

    pub(super) fn fail(error: FetchError) -> Self {
        Self {
            after: Duration::ZERO,
            result: Err(error),
        }
    }

    pub(super) fn down() -> Self {
        Self::fail(FetchError::Connect(ConnectFault::Refused, "refused".into()))
    }

    pub(super) fn body(body: impl Into<Bytes>) -> Self {
        Self {
            after: Duration::ZERO,
            result: Ok(Response::new(body.into())),
        }
    }

    pub(super) fn after(self, after_secs: u64) -> Self {
        self.after_ms(after_secs * 1000)
    }

    pub(super) fn after_ms(self, after_ms: u64) -> Self {
        Self {
            after: Duration::from_millis(after_ms),
            ..self
        }
    }

    pub(super) fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.result
            .as_mut()
            .unwrap()
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
        self
    }

    /// The answer of a subscriber that takes these methods.
    pub(super) fn naming(call: &Call, methods: &'static str) -> Self {
        Self::willing(call).with("x-hub-methods", methods)
    }

    /// The answer of a subscriber that asked for the subscription.
    pub(super) fn willing(call: &Call) -> Self {
        match call.param("hub.challenge") {
            Some(challenge) => Self::body(challenge),
            None => Self::status(204),
        }
    }
}

type Script = Box<dyn FnMut(&Call) -> Reply + Send>;

/// The callbacks of all subscribers.
#[derive(Clone)]
pub(super) struct Net(Arc<Mutex<Traffic>>);

struct Traffic {
    start: Instant,
    calls: Vec<Call>,
    script: Script,
    pushes_now: HashMap<String, usize>,
    pushes_at_once: usize,
}

/// Counts a push as long as it is under way, cut off or not.
struct Flight(Net, String);

impl Drop for Flight {
    fn drop(&mut self) {
        let mut traffic = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        *traffic.pushes_now.get_mut(&self.1).unwrap() -= 1;
    }
}

impl Net {
    fn new(start: Instant) -> Self {
        let script: Script = Box::new(Reply::willing);
        let pushes_now = HashMap::new();
        Self(Arc::new(Mutex::new(Traffic {
            start,
            calls: vec![],
            script,
            pushes_now,
            pushes_at_once: 0,
        })))
    }

    /// From now on callbacks do this.
    pub(super) fn on(&self, script: impl FnMut(&Call) -> Reply + Send + 'static) {
        self.0.lock().unwrap().script = Box::new(script);
    }

    /// From now on callbacks confirm everything, and do this with pushes.
    pub(super) fn on_push(&self, mut script: impl FnMut(&Call) -> Reply + Send + 'static) {
        self.on(move |call| {
            if call.is_push() {
                script(call)
            } else {
                Reply::willing(call)
            }
        });
    }

    /// From now on callbacks do this with verifications, and take every push.
    pub(super) fn on_verify(&self, mut script: impl FnMut(&Call) -> Reply + Send + 'static) {
        self.on(move |call| {
            if call.is_push() {
                Reply::status(200)
            } else {
                script(call)
            }
        });
    }

    pub(super) fn willing(&self) {
        self.on(Reply::willing);
    }

    /// Time since the test began.
    pub(super) fn elapsed(&self) -> Duration {
        self.0.lock().unwrap().start.elapsed()
    }

    /// The requests since this was last asked.
    pub(super) fn taken(&self) -> Vec<Call> {
        std::mem::take(&mut self.0.lock().unwrap().calls)
    }

    pub(super) fn pushes(&self) -> Vec<Call> {
        self.taken().into_iter().filter(Call::is_push).collect()
    }

    /// The most pushes that one callback had under way at once.
    pub(super) fn pushes_at_once(&self) -> usize {
        self.0.lock().unwrap().pushes_at_once
    }

    async fn answer(self, request: Request) -> Result<Response<Bytes>, FetchError> {
        let (reply, _flight) = {
            let mut traffic = self.0.lock().unwrap();
            let (parts, body) = request.into_parts();
            let call = Call {
                at: traffic.start.elapsed(),
                at_secs: traffic.start.elapsed().as_secs(),
                method: parts.method,
                url: parts.uri.to_string(),
                headers: parts.headers,
                body,
            };
            if call.is_push() {
                let now = traffic.pushes_now.entry(call.url.clone()).or_default();
                *now += 1;
                let now = *now;
                traffic.pushes_at_once = traffic.pushes_at_once.max(now);
            }
            traffic.calls.push(call.clone());
            let reply = (traffic.script)(&call);
            // Last, so that it is not dropped, and the lock not asked for, while a script panics
            // under the lock.
            (
                reply,
                call.is_push()
                    .then(|| Flight(self.clone(), call.url.clone())),
            )
        };
        tokio::time::sleep(reply.after).await;
        reply.result
    }

    fn service(&self) -> Callbacks {
        let net = self.clone();
        BoxCloneSyncService::new(service_fn(move |request| net.clone().answer(request)))
    }
}

/// The client of most requests.
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// Every name has an address of its own, but those that begin with `same-`, which have one.
struct TestNames;

impl Resolve for TestNames {
    fn resolve(&self, name: Name) -> Resolving {
        let mut hasher = DefaultHasher::new();
        let name = if name.as_str().starts_with("same-") {
            "same"
        } else {
            name.as_str()
        };
        name.hash(&mut hasher);
        let address = SocketAddr::from((
            Ipv6Addr::from_bits(0x2a00 << 112 | u128::from(hasher.finish())),
            0,
        ));
        Box::pin(async move { Ok(Box::new([address].into_iter()) as Addrs) })
    }
}

/// The rest of what a hub is made of.
type WorkParts = (
    Arc<dyn Clock>,
    Config,
    ReadGate,
    ProcessAddresses,
    Vec<WebhookSettings>,
);

/// A switch with which positions cannot be saved, and one with which rows of subscriptions at rest
/// cannot be read; and a count of those reads.
#[derive(Clone, Default)]
pub(super) struct FullDisk {
    is_full: Arc<AtomicBool>,
    is_unread: Arc<AtomicBool>,
    row_reads: Arc<AtomicUsize>,
}

impl FullDisk {
    pub(super) fn set(&self, is_full: bool) {
        self.is_full.store(is_full, Ordering::SeqCst);
    }
}

impl Tap for FullDisk {
    fn acknowledge<'a>(
        &'a self,
        inner: &'a dyn Store,
        acknowledged: Vec<Acknowledged>,
    ) -> StoreFuture<'a, Vec<bool>> {
        if self.is_full.load(Ordering::SeqCst) {
            let full = StoreError::Away("the disk is full".into());
            return Box::pin(std::future::ready(Err(full)));
        }
        inner.acknowledge(acknowledged)
    }

    fn subscriptions_of<'a>(
        &'a self,
        inner: &'a dyn Store,
        numbers: Vec<SubscriptionNo>,
    ) -> StoreFuture<'a, Vec<Option<(Subscription, Progress)>>> {
        self.row_reads.fetch_add(numbers.len(), Ordering::SeqCst);
        if self.is_unread.load(Ordering::SeqCst) {
            let away = StoreError::Away("the database is away".into());
            return Box::pin(std::future::ready(Err(away)));
        }
        inner.subscriptions_of(numbers)
    }
}

/// A hub at work.
pub(super) struct Rig {
    pub(super) disk: FullDisk,
    pub(super) store: Arc<dyn Store>,
    pub(super) notify: Arc<Notify>,
    pub(super) net: Net,
    pub(super) hub: Hub,
    pub(super) feed: FeedNo,
    pub(super) clock: Arc<dyn Clock>,
    config: Config,
    gate: ReadGate,
    own: ProcessAddresses,
    /// Webhooks of the configuration.
    pub(super) webhooks: Vec<WebhookSettings>,
}

impl Rig {
    /// A hub for the feeds `blog` and `other`, both served and empty.
    pub(super) async fn new() -> Self {
        let rig = Self::unready(Config::default()).await;
        rig.commit(vec![]).await;
        rig
    }

    pub(super) async fn with(config: Config) -> Self {
        let rig = Self::unready(config).await;
        rig.commit(vec![]).await;
        rig
    }

    /// Likewise, but no document of `blog` is in yet.
    pub(super) async fn unready(config: Config) -> Self {
        Self::by(config, Arc::new(Paused::from(START.micros()))).await
    }

    /// Likewise by another clock, which begins with the test.
    pub(super) async fn by(config: Config, clock: Arc<dyn Clock>) -> Self {
        let start = Instant::now();
        let disk = FullDisk::default();
        let store: Arc<dyn Store> = Arc::new(Wrapped {
            inner: Box::new(Memory::new(clock.clone())),
            tap: disk.clone(),
        });
        let record = store.register("blog", NAMESPACE).await.unwrap();
        let other = store.register("other", "example.org/other").await.unwrap();
        let notify = Arc::new(Notify::new());
        notify.moved(record.no, record.head());
        notify.moved(other.no, other.head());
        let net = Net::new(start);
        let catalog = Catalog::new(CatalogSnapshot::new(
            [blog(record.no), self::other(other.no)],
            [],
        ));
        let gate = ReadGate {
            catalog,
            auth: authenticator(&clock),
        };
        Self::at_work(
            (disk, store),
            notify,
            net,
            record.no,
            (clock, config, gate, ProcessAddresses::default(), Vec::new()),
        )
        .await
    }

    /// Another process on the same store, with another configuration, which answers itself at these
    /// places.
    pub(super) async fn beside(self, config: Config, own: ProcessAddresses) -> Self {
        Self {
            config,
            own,
            ..self
        }
        .killed()
        .await
    }

    async fn at_work(
        (disk, store): (FullDisk, Arc<dyn Store>),
        notify: Arc<Notify>,
        net: Net,
        feed: FeedNo,
        (clock, config, gate, own, webhooks): WorkParts,
    ) -> Self {
        let site = Site::new(&Url::parse("http://feeds.example:8080/").unwrap(), "");
        let former = Url::parse("https://was.example/smart").unwrap();
        let site = Arc::new(site.with_former(&[former]));
        let limits = readers::Config::default();
        let readers = Readers::new(store.clone(), notify.clone(), clock.clone(), site, limits);
        let catalog = gate.catalog.clone();
        let announces = move |feed| catalog.snapshot().announces_deletions(feed);
        let readers = readers.with_announced(announces);
        let hub = Hub::new(Parts {
            config: config.clone(),
            readers: Arc::new(readers),
            store: store.clone(),
            notify: notify.clone(),
            clock: clock.clone(),
            callbacks: CallbackParts {
                service: net.service(),
                resolver: Arc::new(TestNames),
                user_agent: HeaderValue::from_static("everfeed/test (+http://feeds.example/)"),
                own: own.clone(),
            },
            metrics: crate::telemetry::Metrics::default(),
            jitter: rand::random,
            gate: gate.clone(),
        });
        hub.start(&webhooks).await.unwrap();
        Self {
            disk,
            store,
            notify,
            net,
            hub,
            feed,
            clock,
            config,
            gate,
            own,
            webhooks,
        }
    }

    /// The process ends at once and another begins on the same store.
    pub(super) async fn killed(self) -> Self {
        let Self {
            disk,
            store,
            notify,
            net,
            hub,
            feed,
            clock,
            config,
            gate,
            own,
            webhooks,
        } = self;
        hub.shutdown(Duration::ZERO).await;
        Self::at_work(
            (disk, store),
            notify,
            net,
            feed,
            (clock, config, gate, own, webhooks),
        )
        .await
    }

    /// The configuration loses `blog`.
    pub(super) fn withdraw(&self) {
        self.gate.catalog.publish(CatalogSnapshot::new(
            [other(FeedNo(2))],
            [("blog".to_owned(), self.feed)],
        ));
    }

    /// The configuration has `blog` behind an old address, at which this document was read.
    pub(super) async fn behind(&self, address: &str, document: &str, syntax: LegacySyntax) {
        let mut blog = blog(self.feed);
        let url = Url::parse(address).unwrap();
        let settings = Arc::make_mut(&mut blog.settings);
        settings.aliases = vec![url.clone()];
        settings.legacy = Some(LegacyAddress::at(url).into());
        self.gate
            .catalog
            .publish(CatalogSnapshot::new([blog, other(FeedNo(2))], []));
        self.keep(document, syntax, None).await;
    }

    /// `blog` is a resource at the address of a site.
    pub(super) async fn resource_behind(&self, address: &str, document: &str) {
        self.behind(address, document, LegacySyntax::Other).await;
        let catalog = self.gate.catalog.snapshot();
        let mut blog = (**catalog.feed("blog").unwrap()).clone();
        Arc::make_mut(&mut blog.settings).format = DocumentFormat::Resource;
        self.gate
            .catalog
            .publish(CatalogSnapshot::new([blog, other(FeedNo(2))], []));
    }

    /// `blog` is a resource, known by the URL that is polled, and this is what was read last.
    pub(super) async fn resource(&self) {
        let mut blog = blog(self.feed);
        Arc::make_mut(&mut blog.settings).format = DocumentFormat::Resource;
        self.gate
            .catalog
            .publish(CatalogSnapshot::new([blog, other(FeedNo(2))], []));
    }

    /// Nobody is told what is gone of `blog`.
    pub(super) fn conceal(&self) {
        let catalog = self.gate.catalog.snapshot();
        let mut blog = (**catalog.feed("blog").unwrap()).clone();
        Arc::make_mut(&mut blog.settings).announce_deletes = false;
        self.gate
            .catalog
            .publish(CatalogSnapshot::new([blog, other(FeedNo(2))], []));
    }

    /// The document of `blog` that was read last, with some headers.
    pub(super) async fn keep(
        &self,
        document: &str,
        syntax: LegacySyntax,
        headers: Option<[&str; 3]>,
    ) {
        let header = |at: usize| Some(headers?[at].to_owned());
        let document = LegacyDocument {
            body: document.as_bytes().to_vec(),
            digest: Digest::of(document.as_bytes()),
            content_type: header(0),
            last_modified: header(1),
            syntax,
            fetched_at: START,
            etag: header(2),
        };
        let kept = self.store.keep_document(self.feed, Arc::new(document));
        kept.await.unwrap();
    }

    /// The configuration gives `blog` other readers.
    pub(super) fn protect(&self, access: AccessSettings) {
        let mut blog = blog(self.feed);
        Arc::make_mut(&mut blog.settings).access = access;
        self.gate
            .catalog
            .publish(CatalogSnapshot::new([blog, other(FeedNo(2))], []));
    }

    /// The configuration shows readers of `blog` parts of it.
    pub(super) fn show(&self, rules: &[ShowRule]) {
        let mut blog = blog(self.feed);
        Arc::make_mut(&mut blog.settings).show = rules.to_vec();
        let catalog = CatalogSnapshot::new([blog, other(FeedNo(2))], []);
        let (catalog, parts) = parted(&*self.store, catalog);
        for part in parts {
            self.notify.moved(part.no, part.head());
        }
        self.gate.catalog.publish(catalog);
    }

    /// The operator changes users and tokens.
    pub(super) fn know(&self, accounts: Accounts) {
        self.gate.auth.publish(accounts);
    }

    /// Asks the hub by the bearer of a token, as the server hands it on.
    pub(super) async fn ask_as(&self, token: Option<&str>, form: &[(&str, &str)]) -> u16 {
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let request =
            http::Request::post("/hub").header("content-type", "application/x-www-form-urlencoded");
        let mut request = request.body(Bytes::from(body)).unwrap();
        if let Some(token) = token {
            let credentials = Credentials::Bearer(Secret::new(token));
            let AuthVerdict::Known(principal) = self.gate.auth.check(&credentials, None).await
            else {
                panic!("the token is known");
            };
            request.extensions_mut().insert(principal);
        }
        self.hub
            .handle(request, Some(CLIENT))
            .await
            .status()
            .as_u16()
    }

    /// The configuration has `blog` again.
    pub(super) fn serve_again(&self) {
        self.gate.catalog.publish(CatalogSnapshot::new(
            [blog(self.feed), other(FeedNo(2))],
            [],
        ));
    }

    /// Subscriptions that have a task.
    pub(super) fn with_tasks(&self) -> usize {
        self.hub.shared.index.at_work()
    }

    /// Rows of subscriptions at rest that were read.
    pub(super) fn row_reads(&self) -> usize {
        self.disk.row_reads.load(Ordering::SeqCst)
    }

    /// Rows of subscriptions at rest cannot be read, or can be again.
    pub(super) fn fail_row_reads(&self, is_unread: bool) {
        self.disk.is_unread.store(is_unread, Ordering::SeqCst);
    }

    /// The operator forgets `blog`, which was withdrawn.
    pub(super) async fn forget(&self) {
        let _at_work = self.hub.before_forgetting(self.feed).await;
        assert!(self.store.forget(self.feed).await.unwrap());
        self.gate
            .catalog
            .publish(self.gate.catalog.snapshot().without(self.feed));
        self.notify.forget(self.feed);
    }

    /// The configuration has `blog` again, which the store does not know any more.
    pub(super) async fn register_anew(&mut self) {
        let record = self.store.register("blog", NAMESPACE).await.unwrap();
        self.feed = record.no;
        self.notify.moved(record.no, record.head());
        self.serve_again();
        self.commit(vec![]).await;
    }

    /// The address behind a name.
    pub(super) async fn address_of(&self, name: &str) -> IpAddr {
        TestNames
            .resolve(name.parse().unwrap())
            .await
            .unwrap()
            .next()
            .unwrap()
            .ip()
    }

    /// Time passes.
    pub(super) async fn wait(&self, secs: u64) {
        tokio::time::sleep(Duration::from_secs(secs)).await;
    }

    /// Asks the hub.
    pub(super) async fn ask(&self, form: &[(&str, &str)]) -> (u16, String) {
        let response = self.ask_at("/hub", form).await;
        let text = String::from_utf8(response.body().to_vec()).unwrap();
        (response.status().as_u16(), text)
    }

    pub(super) async fn ask_at(&self, path: &str, form: &[(&str, &str)]) -> Response<Bytes> {
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let request = http::Request::post(path)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Bytes::from(body));
        self.hub.handle(request.unwrap(), Some(CLIENT)).await
    }

    /// Asks to subscribe a callback to [`TOPIC`], from an address.
    pub(super) async fn ask_from(&self, client: [u8; 4], callback: &str) -> u16 {
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", TOPIC),
            ("hub.callback", callback),
        ];
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let request = http::Request::post("/hub")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Bytes::from(body));
        self.hub
            .handle(request.unwrap(), Some(client.into()))
            .await
            .status()
            .as_u16()
    }

    /// Asks to subscribe [`CALLBACK`] to [`TOPIC`]; more parameters follow the usual three.
    pub(super) async fn ask_to(&self, mode: &str, more: &[(&str, &str)]) -> (u16, String) {
        let mut form = vec![
            ("hub.mode", mode),
            ("hub.topic", TOPIC),
            ("hub.callback", CALLBACK),
        ];
        form.extend(more);
        self.ask(&form).await
    }

    /// Subscribes, and waits until that is verified.
    pub(super) async fn subscribed(&self, more: &[(&str, &str)]) {
        assert_eq!(self.ask_to("subscribe", more).await.0, 202);
        self.wait(1).await;
        assert!(self.sub().await.unwrap().lease.is_some(), "it is verified");
        self.net.taken();
    }

    /// The row of the one subscription.
    pub(super) async fn sub(&self) -> Option<Subscription> {
        self.subs().await.into_iter().next().map(|(sub, _)| sub)
    }

    /// The callback of the only subscription.
    pub(super) async fn callback(&self) -> CallbackTarget {
        match self.sub().await.unwrap().target {
            Target::Callback(callback) => callback,
            other => panic!("a callback, not {other:?}"),
        }
    }

    /// The position of the only subscription.
    pub(super) async fn progress(&self) -> Progress {
        self.subs().await.remove(0).1
    }

    /// Every subscription.
    pub(super) async fn subs(&self) -> Vec<(Subscription, Progress)> {
        self.store
            .subscriptions(None, None, usize::MAX)
            .await
            .unwrap()
    }

    pub(super) async fn acked(&self) -> String {
        self.progress().await.acked.unwrap()
    }

    pub(super) fn counts(&self) -> SubscriptionCounts {
        self.hub
            .counts()
            .get(&self.feed)
            .copied()
            .unwrap_or_default()
    }

    /// Commits changes, says so, and lets everybody act on it.
    pub(super) async fn commit(&self, changes: Vec<Change>) {
        let record = self.store.feed(self.feed).await.unwrap();
        let commit = Commit {
            changes,
            ready: true,
            ..Commit::nothing(&record)
        };
        let receipt = self.store.commit(commit).await.unwrap();
        self.notify.committed(&receipt.feed, &receipt.groups);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    /// Gives the feed another title, and nothing else.
    pub(super) async fn entitle(&self, title: &str) {
        let record = self.store.feed(self.feed).await.unwrap();
        let metadata = Metadata {
            title: Some(Text::plain(title)),
            ..Metadata::default()
        };
        let commit = Commit {
            metadata: Some(Arc::new(metadata)),
            ready: true,
            ..Commit::nothing(&record)
        };
        let receipt = self.store.commit(commit).await.unwrap();
        self.notify.committed(&receipt.feed, &receipt.groups);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    pub(super) async fn add(&self, n: u32) {
        self.commit(vec![testing::add(n)]).await;
    }

    pub(super) async fn add_all(&self, numbers: impl IntoIterator<Item = u32>) {
        self.commit(numbers.into_iter().map(testing::add).collect())
            .await;
    }

    pub(super) async fn edit(&self, n: u32, title: &str) {
        self.commit(vec![testing::edit(n, title)]).await;
    }

    pub(super) async fn revive(&self, n: u32) {
        self.commit(vec![testing::revive(n)]).await;
    }

    pub(super) async fn delete(&self, n: u32) {
        self.commit(vec![testing::delete(n)]).await;
    }

    /// The cursor of the newest item.
    pub(super) async fn head(&self) -> String {
        self.head_in(Order::MODIFIED_REVERSE).await
    }

    pub(super) async fn head_in(&self, order: Order) -> String {
        let query = PageQuery {
            max: 1,
            ..PageQuery::all(self.feed, order)
        };
        self.store.page(query).await.unwrap().last_cursor
    }
}

fn blog(no: FeedNo) -> RegisteredFeed {
    registered(no, "blog", "http://old.example/rss.xml")
}

fn other(no: FeedNo) -> RegisteredFeed {
    registered(no, "other", "http://other.example/a,b.xml")
}

fn registered(no: FeedNo, name: &str, origin: &str) -> RegisteredFeed {
    RegisteredFeed::new(no, FeedSettings::new(name, Url::parse(origin).unwrap()))
}
