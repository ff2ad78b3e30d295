//! The whole consumer side as one tower service, asked without a network; no tests.

use crate::{
    auth::{AccessSettings, Accounts, Principal, testing::authenticator},
    catalog::{Catalog, CatalogSnapshot, FeedSettings, ReadGate, RegisteredFeed, testing::parted},
    edge::body::ServeBody,
    feed::stamp::Stamp,
    layers::OwnMark,
    readers::testing::{NAME, ReaderRig},
    readership::ReaderFigures,
    serve::{
        Config,
        answers::first_seen::FirstSeen,
        feeds::{context::ServeContext, long_poll::Waiters},
        hub_forms::HubService,
        own_mounts::{PushInletParts, own_mounts},
        routing::{router::Router, stack::stack},
    },
    store::traits::CatalogStore as _,
    telemetry::Metrics,
};
use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use serde_json::Value;
use std::{convert::Infallible, ops::RangeInclusive, sync::Arc, time::Duration};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::{ServiceBuilder, ServiceExt as _, util::BoxCloneSyncService};
use url::Url;

/// The public URL of the rig.
pub(super) const ROOT: &str = "https://feeds.example";

/// A server without a listener.
pub(super) struct Site {
    pub(super) rig: ReaderRig,
    context: Arc<ServeContext>,
    service: BoxCloneSyncService<Request<ServeBody>, Response<ServeBody>, Infallible>,
}

impl Site {
    /// A site whose one feed is not read yet.
    pub(super) async fn unread() -> Self {
        Self::set(Config::default()).await
    }

    /// A site whose one feed holds these posts.
    pub(super) async fn of(numbers: RangeInclusive<u32>) -> Self {
        let site = Self::unread().await;
        site.rig
            .change(numbers.map(crate::readers::testing::add).collect())
            .await;
        site
    }

    /// A site as configured, whose one feed is not read yet.
    pub(super) async fn set(mut config: Config) -> Self {
        let rig = ReaderRig::built(&config.prefix, config.readers.clone()).await;
        config.trusted_proxies = vec!["10.0.0.0/8".parse().unwrap()];
        let feed = RegisteredFeed::new(rig.feed, feed_settings());
        let context = ServeContext {
            readers: rig.readers.clone(),
            store: rig.store.clone(),
            clock: rig.clock.clone(),
            gate: ReadGate {
                catalog: Catalog::new(CatalogSnapshot::new([feed], [])),
                auth: authenticator(&rig.clock),
            },
            own_calls: OwnMark::default(),
            first_seen: FirstSeen::default(),
            readership: Arc::default(),
            takes_cloud: true,
            waiters: Waiters::new(&config),
            config,
            stop: CancellationToken::new(),
        };
        let context = Arc::new(context);
        let router = Router::new(own_mounts(
            context.clone(),
            hub(),
            PushInletParts::none(),
            None,
        ))
        .listing(&context.readers.site().list());
        let service = ServiceBuilder::new()
            .map_response(|answer: Response<_>| answer.map(UnsyncBoxBody::new))
            .service(stack(router, Metrics::default()));
        Self {
            rig,
            context,
            service: BoxCloneSyncService::new(service),
        }
    }

    /// The figures on the readers of the one feed, whose software is sorted by requests.
    pub(super) fn readers(&self) -> Option<ReaderFigures> {
        let now = Stamp::from_micros(self.rig.clock.now_us());
        self.context.readership.figures(self.rig.feed, now)
    }

    /// As a shutdown does.
    pub(super) fn stop(&self) {
        self.context.stop.cancel();
    }

    /// As a reload does that no longer names the feed.
    pub(super) fn withdraw(&self) {
        self.context
            .gate
            .catalog
            .publish(CatalogSnapshot::new([], [(NAME.to_owned(), self.rig.feed)]));
    }

    /// As a reload does that adds a feed, which is not read yet.
    pub(super) async fn join(&self, name: &str) {
        let no = self.rig.store.register(name, name).await.unwrap().no;
        let settings = FeedSettings {
            name: name.to_owned(),
            ..feed_settings()
        };
        let catalog = self.context.gate.catalog.snapshot();
        let known = catalog.feeds().map(|feed| (**feed).clone());
        let feeds = known
            .chain([RegisteredFeed::new(no, settings)])
            .collect::<Vec<_>>();
        self.context
            .gate
            .catalog
            .publish(CatalogSnapshot::new(feeds, []));
    }

    /// As a reload does that gives the feed other readers.
    pub(super) fn protect(&self, access: AccessSettings) {
        let settings = FeedSettings {
            access,
            ..feed_settings()
        };
        let feed = RegisteredFeed::new(self.rig.feed, settings);
        self.context
            .gate
            .catalog
            .publish(CatalogSnapshot::new([feed], []));
    }

    /// As a reload does that shows its readers parts of the feed.
    pub(super) fn show(&self, rules: &[(&str, &str)]) {
        let show = rules
            .iter()
            .map(|(access, filter)| format!("{{ access = {access}, filter = \"{filter}\" }}"));
        let show = format!(
            "name = \"{NAME}\"\nurl = \"https://blog.example/rss.xml\"\nshow = [{}]",
            show.collect::<Vec<_>>().join(", ")
        );
        let settings: FeedSettings = toml::from_str(&show).unwrap();
        let feed = RegisteredFeed::new(self.rig.feed, settings);
        let catalog = CatalogSnapshot::new([feed], []);
        let (catalog, parts) = parted(&*self.rig.store, catalog);
        for part in parts {
            self.rig.notify.moved(part.no, part.head());
        }
        self.context.gate.catalog.publish(catalog);
    }

    /// As a command of the operator does.
    pub(super) fn know(&self, accounts: Accounts) {
        self.context.gate.auth.publish(accounts);
    }

    /// As a process does that hears of users, or does not.
    pub(super) fn hear(&self, is_heard: bool) {
        let secs = if is_heard { 0 } else { 10 };
        let at = Instant::now().checked_sub(Duration::from_secs(secs));
        self.context.gate.auth.heard_at(at.unwrap());
        self.context.gate.auth.look_again();
    }

    /// Requests held now.
    pub(super) fn held(&self) -> usize {
        self.context.waiters.held()
    }

    /// The answer to a request, asked by a task of its own if the answer is spawned.
    pub(super) fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> impl Future<Output = Answer> + Send + use<> {
        self.send_any(request)
    }

    /// The same for any kind of body.
    pub(super) fn send_any<B>(
        &self,
        request: Request<B>,
    ) -> impl Future<Output = Answer> + Send + use<B>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<tower::BoxError>,
    {
        let response = self.response(request);
        async move {
            let (parts, body) = response.await.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            Answer {
                status: parts.status.as_u16(),
                headers: parts.headers,
                body,
            }
        }
    }

    /// An answer whose body is read while it comes.
    pub(super) fn open(
        &self,
        target: &str,
        headers: &[(&str, &str)],
    ) -> impl Future<Output = Opened> + Send + use<> {
        let mut request = Request::get(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.open_any(request.body(Full::default()).unwrap())
    }

    /// Status and headers of an answer, and what comes of its body at first.
    pub(super) async fn open_method(
        &self,
        method: Method,
        target: &str,
        headers: &[(&str, &str)],
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut opened = self.open_any(request.body(Full::default()).unwrap()).await;
        let body = opened.frame().await.unwrap_or_default();
        Answer {
            status: opened.status,
            headers: opened.headers,
            body,
        }
    }

    /// The same for any request.
    pub(super) fn open_any(
        &self,
        request: Request<Full<Bytes>>,
    ) -> impl Future<Output = Opened> + Send + use<> {
        let response = self.response(request);
        async move {
            let (parts, body) = response.await.into_parts();
            Opened {
                status: parts.status.as_u16(),
                headers: parts.headers,
                body,
            }
        }
    }

    fn response<B>(&self, request: Request<B>) -> BoxFuture<'static, Response<ServeBody>>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<tower::BoxError>,
    {
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        let response = self.service.clone().oneshot(request);
        Box::pin(response.map(|response| response.unwrap_or_else(|never| match never {})))
    }

    /// The answer to a request, which is the same again when it is one for everybody.
    pub(super) fn ask(
        &self,
        method: Method,
        target: &str,
        headers: &[(&str, &str)],
    ) -> impl Future<Output = Answer> + Send + use<> {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::default()).unwrap();
        let (first, again) = (self.send(request.clone()), self.send(request));
        async move {
            let first = first.await;
            if first.header("cache-control") == "no-cache" {
                let again = again.await;
                assert_eq!(
                    (again.status, &again.headers),
                    (first.status, &first.headers)
                );
                assert_eq!(again.body, first.body);
            }
            first
        }
    }

    pub(super) async fn get(&self, target: &str) -> Answer {
        self.ask(Method::GET, target, &[]).await
    }

    pub(super) async fn get_with(&self, target: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask(Method::GET, target, headers).await
    }

    /// A page of the feed in JSON.
    pub(super) async fn page(&self, query: &str) -> Value {
        self.get(&format!("/feeds/blog.json?{query}")).await.json()
    }
}

fn feed_settings() -> FeedSettings {
    FeedSettings::new(NAME, Url::parse("https://blog.example/rss.xml").unwrap())
}

/// A hub that repeats what it is told, and who told it.
fn hub() -> HubService {
    BoxCloneSyncService::new(tower::service_fn(|request: Request<Bytes>| async move {
        let sender = request
            .extensions()
            .get::<Principal>()
            .map(|sender| sender.name().unwrap_or_default().to_owned());
        let is_refused = request.uri().query() == Some("refuse=1");
        let mut response = Response::new(request.into_body());
        if let Some(sender) = sender {
            response
                .headers_mut()
                .insert("x-sender", sender.parse().unwrap());
        }
        *response.status_mut() = http::StatusCode::ACCEPTED;
        if is_refused {
            *response.status_mut() = http::StatusCode::BAD_REQUEST;
            *response.body_mut() = Bytes::from_static(b"no\n");
            response
                .headers_mut()
                .insert("content-type", "text/plain; charset=utf-8".parse().unwrap());
        }
        Ok::<_, Infallible>(response)
    }))
}

/// An answer whose body comes.
pub(super) struct Opened {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    body: UnsyncBoxBody<Bytes, tower::BoxError>,
}

impl Opened {
    /// The next bytes; `None` at the end.
    pub(super) async fn frame(&mut self) -> Option<Bytes> {
        let frame = self.body.frame().await?;
        Some(frame.unwrap().into_data().unwrap())
    }
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    /// A header, which must not stand there twice; empty when absent.
    pub(super) fn header(&self, name: &str) -> &str {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next().map_or("", |value| value.to_str().unwrap());
        assert!(
            values.next().is_none(),
            "{name} is there twice: {:?}",
            self.headers
        );
        value
    }

    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(super) fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// The ids of a page in JSON.
pub(super) fn ids(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| item["id"].as_str().unwrap().to_owned())
        .collect()
}

/// The ids of the entries of a page in Atom.
pub(super) fn atom_ids(document: &str) -> Vec<String> {
    let entries = document
        .split("<entry")
        .skip(1)
        .map(|rest| rest.split("</entry>").next().unwrap());
    entries
        .map(|entry| leaf(entry, "fo:id").expect("every entry has an id"))
        .collect()
}

/// The text of the first element of this name.
pub(super) fn leaf(document: &str, name: &str) -> Option<String> {
    let (_, rest) = document.split_once(&format!("<{name}>"))?;
    Some(rest.split_once("</")?.0.replace("&amp;", "&"))
}
