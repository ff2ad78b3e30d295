//! The operator's own listener: is it alive, is it ready, what does it count, how are its feeds.
//! Not for consumers.

use super::{
    answers::accept,
    answers::validators::{AnswerValidators, tag_of},
    feeds::list_range::FeedRange,
};
use crate::{
    auth::commands::{AccountAnswer, AccountCommand},
    catalog::RegistrationProgress,
    edge::{
        body::{self, Response},
        fields::list_value,
    },
    locks::{read, write},
    render::overview,
    telemetry::{Metrics, exposition},
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{
    HeaderValue, Method, Request, StatusCode,
    header::{ACCEPT as ACCEPTED, ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE},
};
use http_body::Body;
use percent_encoding::percent_decode_str;
use prometheus_client::registry::Registry;
use std::{
    borrow::Cow,
    convert::Infallible,
    fmt::Display,
    sync::{Arc, RwLock},
    task::{Context, Poll},
};
use tower::{BoxError, Service, ServiceExt as _, util::BoxCloneSyncService};

mod events;
mod guard;
mod registry;
mod subscribers;

pub use events::{EventForm, EventRange};
pub use guard::AdminGuard;
use registry::whole_body;
pub use registry::{RegistryAnswer, RegistryCommand};
pub use subscribers::SubscriberCommand;

/// Questions of the operator that each process answers itself, whether it works or follows.
pub trait OwnInsight: Send + Sync + 'static {
    /// Ok while changes can be stored; else the reason.
    fn live(&self) -> Result<(), String>;
    /// Ok while consumers can be served; else the reason.
    fn ready(&self) -> BoxFuture<'_, Result<(), String>>;
    /// The state of the application, with these feeds of it, as JSON.
    fn status(&self, range: FeedRange) -> BoxFuture<'_, Result<String, String>>;
    /// The page for people about the application with these feeds, or about the one feed that the range
    /// names; `None` for a feed that is not configured.
    fn page(&self, range: FeedRange) -> BoxFuture<'_, Result<Option<Vec<u8>>, String>>;
    /// Adds gauges of its state to the counters.
    fn gauges(&self, counters: Registry) -> BoxFuture<'_, Result<Registry, String>>;
    /// Reads the configuration again.
    fn reload(&self) -> BoxFuture<'_, OperatorAnswer>;
    /// Reads the configuration again and holds it against the store, without taking it in; tells
    /// what was found, as JSON.
    fn check(&self) -> BoxFuture<'_, OperatorAnswer>;
}

/// Questions and requests of the operator to the rest of the application of the process that works.
pub trait Insight: OwnInsight {
    /// Explanation of a feed, and of an item of it, as JSON. `None` for a feed that is not
    /// configured.
    fn explain<'a>(
        &'a self,
        feed: &'a str,
        item: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<String>, String>>;
    /// Takes the clock for right although it jumped.
    fn accept_clock(&self) -> BoxFuture<'_, Result<(), String>>;
    /// Copies the store into a file of this machine; tells what is in the copy.
    fn back_up<'a>(&'a self, file: &'a str) -> BoxFuture<'a, Result<String, String>>;
    /// Accepts the changed URL of a feed, and polls it.
    fn accept_url<'a>(&'a self, feed: &'a str) -> BoxFuture<'a, OperatorAnswer>;
    /// Polls a feed now; with `now`, whatever its publisher asked for.
    fn poll<'a>(&'a self, feed: &'a str, now: bool) -> BoxFuture<'a, OperatorAnswer>;
    /// Carries out a command on users and tokens.
    fn change_accounts(&self, command: AccountCommand) -> BoxFuture<'_, AccountAnswer>;
    /// Carries out a command on subscriptions; a list is told as JSON.
    fn subscribers(&self, command: SubscriberCommand) -> BoxFuture<'_, OperatorAnswer>;
    /// Carries out a command on the registry of feeds.
    fn registry(&self, command: RegistryCommand) -> BoxFuture<'_, RegistryAnswer>;
    /// The events of a range, as a document.
    fn events<'a>(
        &'a self,
        form: EventForm,
        range: &'a EventRange,
    ) -> BoxFuture<'a, Result<String, String>>;
    /// Forgets a feed that is not configured any more, or one item of any feed.
    fn forget<'a>(&'a self, feed: &'a str, item: Option<&'a str>) -> BoxFuture<'a, OperatorAnswer>;
}

/// The outcome of what the operator asked for, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorAnswer {
    /// It is done.
    Done(String),
    /// There is no such feed or item.
    Unknown(String),
    /// It cannot be done as things are: the publisher asked for no poll yet, or a feed that is
    /// configured is not forgotten.
    NotNow(String),
    /// The configuration cannot be meant; the one before it is in force.
    Misconfigured(String),
    /// The publisher failed.
    UpstreamFailed(String),
    /// It could not be done, or has not ended yet.
    Away(String),
}

/// An answer to the operator.
struct AdminAnswer {
    status: StatusCode,
    media_type: &'static str,
    text: String,
    /// The methods that its path takes, where the one of the request is none of them.
    allow: Option<&'static str>,
}

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

impl OperatorAnswer {
    fn into_text(self) -> AdminAnswer {
        let (status, text) = match self {
            Self::Done(text) => (StatusCode::OK, text),
            Self::Unknown(text) => (StatusCode::NOT_FOUND, text),
            Self::NotNow(text) => (StatusCode::CONFLICT, text),
            Self::Misconfigured(text) => (StatusCode::UNPROCESSABLE_ENTITY, text),
            Self::UpstreamFailed(text) => (StatusCode::BAD_GATEWAY, text),
            Self::Away(text) => (StatusCode::SERVICE_UNAVAILABLE, text),
        };
        AdminAnswer::text(status, format!("{}\n", text.trim_end_matches('\n')))
    }

    /// The same where what was done is told as JSON.
    fn into_json(self) -> AdminAnswer {
        match self {
            Self::Done(found) => json(Ok(found)),
            refused => refused.into_text(),
        }
    }
}

impl AdminAnswer {
    fn new(status: StatusCode, media_type: &'static str, text: impl Into<String>) -> Self {
        Self {
            status,
            media_type,
            text: text.into(),
            allow: None,
        }
    }

    fn text(status: StatusCode, text: impl Into<String>) -> Self {
        Self::new(status, TEXT, text)
    }

    /// The refusal of a method, at a path that takes these.
    fn not_allowed(allow: &'static str, text: &str) -> Self {
        Self {
            allow: Some(allow),
            ..Self::text(StatusCode::METHOD_NOT_ALLOWED, text)
        }
    }

    /// The whole response. A status that is the same is not sent again.
    fn respond(mut self, request: &Request<()>) -> Response {
        let mut tag = None;
        let path = request.uri().path();
        let is_read_again = path == "/status" || EventForm::at(path).is_some();
        if self.status == StatusCode::OK && is_read_again {
            tag = Some(AnswerValidators {
                etag: tag_of(self.text.as_bytes(), ""),
                modified: None,
            });
        }
        if let Some(tag) = &tag
            && tag.are_fresh(request.headers())
        {
            self.status = StatusCode::NOT_MODIFIED;
            self.text.clear();
        }
        let mut response = Response::new(body::whole(self.text));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if !matches!(
            self.status,
            StatusCode::NOT_MODIFIED | StatusCode::NO_CONTENT
        ) {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        }
        if self.media_type == overview::CONTENT_TYPE {
            let policy = HeaderValue::from_static(overview::CONTENT_SECURITY_POLICY);
            headers.insert(CONTENT_SECURITY_POLICY, policy);
        }
        let kept = if tag.is_some() {
            "private, no-cache"
        } else {
            "no-store"
        };
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(kept));
        if let Some(tag) = tag {
            tag.write(headers);
        }
        if let Some(allow) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        response
    }
}

/// The answer when something cannot be done now.
fn failed(why: String) -> AdminAnswer {
    OperatorAnswer::Away(why).into_text()
}

/// The answer to what cannot be meant.
fn bad_request(why: impl Display) -> AdminAnswer {
    AdminAnswer::text(StatusCode::BAD_REQUEST, format!("{why}\n"))
}

/// A line of text, unless it failed.
fn done(told: Result<String, String>) -> AdminAnswer {
    told.map_or_else(failed, |text| OperatorAnswer::Done(text).into_text())
}

/// JSON, unless it failed.
fn json(told: Result<String, String>) -> AdminAnswer {
    match told {
        Ok(json) => AdminAnswer::new(StatusCode::OK, JSON, json + "\n"),
        Err(why) => failed(why),
    }
}

/// The value of a parameter, decoded.
fn parameter(query: &str, name: &str) -> Option<String> {
    let mut all = url::form_urlencoded::parse(query.as_bytes());
    let (_, value) = all.find(|(known, _)| known == name)?;
    Some(value.into_owned())
}

/// The way of the operator's requests to the process that works.
pub type OperatorRelay = BoxCloneSyncService<Request<Bytes>, http::Response<Bytes>, Infallible>;

/// Mark of a request, as an extension, that another process handed on: it is not handed on again.
#[derive(Clone, Copy, Debug)]
pub struct Relayed;

/// Whoever answers the operator.
#[derive(Clone)]
enum Desk {
    /// Nobody yet.
    Starting,
    /// This process, which works.
    Here(Arc<dyn Insight>),
    /// The process that works, but for what this one knows itself.
    Elsewhere(Arc<dyn OwnInsight>, OperatorRelay),
}

/// Paths that each process answers itself.
const OWN_PATHS: [&str; 6] = [
    "/live", "/ready", "/status", "/metrics", "/reload", "/check",
];

/// The service behind the operator's listener.
#[derive(Clone)]
pub struct Admin {
    desk: Arc<RwLock<Desk>>,
    start: Arc<RegistrationProgress>,
    metrics: Metrics,
}

impl Admin {
    /// A service that is live, and tells how far the start is, until it is opened.
    pub fn starting(start: Arc<RegistrationProgress>, metrics: Metrics) -> Self {
        Self {
            desk: Arc::new(RwLock::new(Desk::Starting)),
            start,
            metrics,
        }
    }

    /// Asks the rest of this application from now on.
    pub fn open(&self, insight: Arc<dyn Insight>) {
        *write(&self.desk) = Desk::Here(insight);
    }

    /// Hands requests to the process that works from now on, but for those that each answers itself.
    pub fn follow(&self, own: Arc<dyn OwnInsight>, relay: OperatorRelay) {
        *write(&self.desk) = Desk::Elsewhere(own, relay);
    }

    fn desk(&self) -> Desk {
        read(&self.desk).clone()
    }

    /// The answer while the start is under way.
    fn starting_answer(&self, method: &Method, path: &str) -> AdminAnswer {
        match (method.as_str(), path) {
            ("GET" | "HEAD", "/live") => AdminAnswer::text(StatusCode::OK, "live\n"),
            _ => failed(format!("everfeed is starting: {}", self.start)),
        }
    }

    /// The answer to a request about what each process knows itself.
    async fn own_answer<I: OwnInsight + ?Sized>(
        &self,
        insight: &I,
        method: &Method,
        path: &str,
        query: &str,
    ) -> AdminAnswer {
        match (method.as_str(), path) {
            ("GET" | "HEAD", "/status") => match FeedRange::of_operator(query) {
                Ok(range) => json(insight.status(range).await),
                Err(why) => bad_request(why),
            },
            ("GET" | "HEAD", "/live") => done(insight.live().map(|()| "live".into())),
            ("GET" | "HEAD", "/ready") => done(insight.ready().await.map(|()| "ready".into())),
            ("GET" | "HEAD", "/metrics") => match insight.gauges(self.metrics.registry()).await {
                Ok(registry) => {
                    AdminAnswer::new(StatusCode::OK, OPEN_METRICS, exposition(&registry))
                }
                Err(why) => failed(why),
            },
            ("POST", "/reload") => insight.reload().await.into_text(),
            ("GET" | "HEAD", "/check") => insight.check().await.into_json(),
            (_, "/reload") => AdminAnswer::not_allowed("POST", METHODS_OF_STATE),
            _ => AdminAnswer::not_allowed("GET, HEAD", METHODS_OF_STATE),
        }
    }

    /// The answer to a request for a page of the operator.
    async fn page<I: OwnInsight + ?Sized>(
        &self,
        insight: &I,
        method: &Method,
        feed: Option<String>,
        query: &str,
    ) -> AdminAnswer {
        let feed = feed.filter(|name| !name.is_empty());
        if !matches!(*method, Method::GET | Method::HEAD) {
            return AdminAnswer::not_allowed("GET, HEAD", "GET\n");
        }
        let range = match FeedRange::of_operator(query) {
            Ok(range) => FeedRange {
                max: Some(range.max.unwrap_or(PAGE_FEEDS_MAX).min(PAGE_FEEDS_MAX)),
                name: feed,
                ..range
            },
            Err(why) => return bad_request(why),
        };
        match insight.page(range).await {
            Ok(Some(page)) => AdminAnswer::new(
                StatusCode::OK,
                overview::CONTENT_TYPE,
                String::from_utf8_lossy(&page).into_owned(),
            ),
            Ok(None) => AdminAnswer::text(
                StatusCode::NOT_FOUND,
                "no feed of that name is configured\n",
            ),
            Err(why) => failed(why),
        }
    }

    async fn answer(&self, insight: &Arc<dyn Insight>, request: &Request<()>) -> AdminAnswer {
        let (method, path) = (request.method(), request.uri().path());
        let query = request.uri().query().unwrap_or_default();
        if OWN_PATHS.contains(&path) {
            return self.own_answer(&**insight, method, path, query).await;
        }
        if let Some(command) = AccountCommand::read(method, path, query) {
            return match command {
                Ok(command) => match insight.change_accounts(command).await {
                    AccountAnswer::Done(text) => AdminAnswer::text(StatusCode::OK, text),
                    AccountAnswer::Refused(why) => {
                        AdminAnswer::text(StatusCode::CONFLICT, why + "\n")
                    }
                    AccountAnswer::Failed(why) => failed(why),
                },
                Err(why) => bad_request(why),
            };
        }
        if let Some(command) = SubscriberCommand::read(method, path, query) {
            return match command {
                Ok(command @ SubscriberCommand::List { .. }) => {
                    insight.subscribers(command).await.into_json()
                }
                Ok(command) => insight.subscribers(command).await.into_text(),
                Err(why) => bad_request(why),
            };
        }
        if let Some(form) = EventForm::at(path) {
            if !matches!(*method, Method::GET | Method::HEAD) {
                return AdminAnswer::not_allowed("GET, HEAD", "GET\n");
            }
            let range = match EventRange::read(path, query, request.headers()) {
                Ok(range) => range,
                Err(why) => return bad_request(why),
            };
            return match insight.events(form, &range).await {
                Ok(text) => AdminAnswer::new(StatusCode::OK, form.media_type(), text),
                Err(why) => failed(why),
            };
        }
        if let Some(feed) = path.strip_prefix(EXPLAIN) {
            if !matches!(*method, Method::GET | Method::HEAD) {
                return AdminAnswer::not_allowed("GET, HEAD", "GET\n");
            }
            let item = parameter(query, "item");
            let told = insight.explain(feed, item.as_deref()).await;
            return match told.transpose() {
                Some(told) => json(told),
                None => AdminAnswer::text(
                    StatusCode::NOT_FOUND,
                    "no feed of that name is configured\n",
                ),
            };
        }
        let is_post = *method == Method::POST;
        let is_of_feed = [ACCEPT, FORGET, POLL]
            .iter()
            .any(|start| path.starts_with(start));
        if is_of_feed && !is_post {
            return AdminAnswer::not_allowed("POST", "POST\n");
        }
        if matches!(path, "/clock/accept" | "/backup") && !is_post {
            return AdminAnswer::not_allowed("POST", METHODS_OF_STATE);
        }
        if let Some(feed) = name_behind(FORGET, path) {
            let item = parameter(query, "item");
            return insight.forget(&feed, item.as_deref()).await.into_text();
        }
        if let Some(feed) = name_behind(ACCEPT, path) {
            return insight.accept_url(&feed).await.into_text();
        }
        if let Some(feed) = name_behind(POLL, path) {
            let now = parameter(query, "now").is_some();
            return insight.poll(&feed, now).await.into_text();
        }
        match path {
            "/clock/accept" => {
                let accepted = insight.accept_clock().await;
                done(accepted.map(|()| "the clock is accepted".into()))
            }
            "/backup" => match parameter(query, "file") {
                Some(file) if file.starts_with('/') => done(insight.back_up(&file).await),
                _ => bad_request("name the file: /backup?file=/PATH"),
            },
            _ => AdminAnswer::text(StatusCode::NOT_FOUND, WANTED),
        }
    }
}

/// Feeds on a page of the operator.
const PAGE_FEEDS_MAX: usize = 100;

/// True for a request of a browser.
fn prefers_page(request: &Request<()>) -> bool {
    let accepted = list_value(request.headers(), &ACCEPTED);
    accept::prefers_page(accepted.as_deref())
}

/// The feed of whose page a path is, decoded; empty for the overview, and `None` for other paths.
fn page_of(path: &str) -> Option<String> {
    if path == "/" {
        return Some(String::new());
    }
    let rest = path.strip_prefix(overview::PATH)?;
    if rest.is_empty() {
        return Some(String::new());
    }
    let name = rest.strip_prefix('/')?;
    Some(percent_decode_str(name).decode_utf8_lossy().into_owned())
}

/// The answer at a path that is not there.
const WANTED: &str = "here are /overview, /live, /ready, /status, /metrics, /check, /events.atom, /events.json, /explain/FEED?item=ITEM, POST /clock/accept, /backup?file=FILE, /reload, /poll/FEED?now, /accept/FEED and /forget/FEED, /users, /tokens, /subscribers and /feeds\n";
/// The methods of paths without the name of a feed.
const METHODS_OF_STATE: &str = "GET, and POST at /clock/accept, /backup and /reload\n";
/// The path before the name of a feed that is explained.
const EXPLAIN: &str = "/explain/";
/// The path before the name of a feed whose changed URL is accepted.
const ACCEPT: &str = "/accept/";
/// The path before the name of a feed that is polled.
const POLL: &str = "/poll/";
/// The path before the name of a feed that is forgotten.
const FORGET: &str = "/forget/";

/// The name of a feed behind the start of its path, decoded; `None` for other paths.
fn name_behind<'a>(start: &str, path: &'a str) -> Option<Cow<'a, str>> {
    let name = path.strip_prefix(start)?;
    Some(percent_decode_str(name).decode_utf8_lossy())
}

/// The answer of the process that works.
async fn handed_on<B>(relay: &OperatorRelay, request: Request<()>, body: B) -> Response
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    let body = match whole_body(body).await {
        Ok(body) => body,
        Err(refused) => {
            let told = refused.respond();
            return body::plain(told.status, told.text);
        }
    };
    let (request, ()) = request.into_parts();
    let asked = Request::from_parts(request, body);
    let Ok(answer) = relay.clone().oneshot(asked).await;
    answer.map(body::whole)
}

/// The answer to a request about the registry of feeds.
async fn registry_answer<B>(
    insight: &Arc<dyn Insight>,
    request: Request<()>,
    body: B,
) -> AdminAnswer
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    let (request, ()) = request.into_parts();
    let answer = match RegistryCommand::read(&request, body).await {
        Ok(command) => insight.registry(command).await,
        Err(refused) => refused,
    };
    let mut told = answer.respond();
    if told.status == StatusCode::METHOD_NOT_ALLOWED {
        told.allow = Some(RegistryCommand::allowed(request.uri.path()));
    }
    told
}

impl<B> Service<Request<B>> for Admin
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let admin = self.clone();
        Box::pin(async move {
            let (request, body) = request.into_parts();
            let request = Request::from_parts(request, ());
            let query = request.uri().query().unwrap_or_default();
            let path = request.uri().path();
            let page = page_of(path).filter(|_| path != "/" || prefers_page(&request));
            let answer = match &admin.desk() {
                Desk::Starting => admin.starting_answer(request.method(), path),
                Desk::Here(insight) if page.is_some() => {
                    admin.page(&**insight, request.method(), page, query).await
                }
                Desk::Elsewhere(own, _) if page.is_some() => {
                    admin.page(&**own, request.method(), page, query).await
                }
                Desk::Here(insight) if RegistryCommand::is_about(path) => {
                    registry_answer(insight, request.clone(), body).await
                }
                Desk::Here(insight) => admin.answer(insight, &request).await,
                Desk::Elsewhere(..) if request.extensions().get::<Relayed>().is_some() => {
                    failed("another everfeed works by now; ask again".into())
                }
                Desk::Elsewhere(own, _) if OWN_PATHS.contains(&path) => {
                    admin
                        .own_answer(&**own, request.method(), path, query)
                        .await
                }
                Desk::Elsewhere(_, relay) => return Ok(handed_on(relay, request, body).await),
            };
            Ok(answer.respond(&request))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::{ETAG, IF_NONE_MATCH};
    use http_body_util::BodyExt as _;
    use prometheus_client::metrics::gauge::Gauge;

    struct FakeInsight {
        ready: Result<(), String>,
    }

    impl OwnInsight for FakeInsight {
        fn page(&self, _: FeedRange) -> BoxFuture<'_, Result<Option<Vec<u8>>, String>> {
            Box::pin(async { Ok(None) })
        }

        fn status(&self, _: FeedRange) -> BoxFuture<'_, Result<String, String>> {
            Box::pin(async { Ok("{\"waiters\":3}".into()) })
        }

        fn live(&self) -> Result<(), String> {
            match &self.ready {
                Err(why) if why.contains("room") => Err(why.clone()),
                _ => Ok(()),
            }
        }

        fn ready(&self) -> BoxFuture<'_, Result<(), String>> {
            Box::pin(async { self.ready.clone() })
        }

        fn gauges(&self, mut counters: Registry) -> BoxFuture<'_, Result<Registry, String>> {
            let held = Gauge::<i64>::default();
            held.set(3);
            counters.register("held_requests", "Requests held now", held);
            Box::pin(async { Ok(counters) })
        }

        fn reload(&self) -> BoxFuture<'_, OperatorAnswer> {
            let answer = match &self.ready {
                Ok(()) => OperatorAnswer::Done("added    feed.blog\n".into()),
                Err(why) => OperatorAnswer::Misconfigured(why.clone()),
            };
            Box::pin(async { answer })
        }

        fn check(&self) -> BoxFuture<'_, OperatorAnswer> {
            self.reload()
        }
    }

    impl Insight for FakeInsight {
        fn explain<'a>(
            &'a self,
            feed: &'a str,
            item: Option<&'a str>,
        ) -> BoxFuture<'a, Result<Option<String>, String>> {
            Box::pin(async move { Ok((feed == "blog").then(|| format!("{{\"item\":{item:?}}}"))) })
        }

        fn accept_clock(&self) -> BoxFuture<'_, Result<(), String>> {
            Box::pin(async { Ok(()) })
        }

        fn back_up<'a>(&'a self, file: &'a str) -> BoxFuture<'a, Result<String, String>> {
            Box::pin(async move { Ok(format!("{file} holds 7 values")) })
        }

        fn accept_url<'a>(&'a self, feed: &'a str) -> BoxFuture<'a, OperatorAnswer> {
            self.poll(feed, true)
        }

        fn poll<'a>(&'a self, feed: &'a str, now: bool) -> BoxFuture<'a, OperatorAnswer> {
            Box::pin(async move {
                match (feed, now) {
                    ("blog", true) => OperatorAnswer::Done("blog: 1 new".into()),
                    ("blog", false) => OperatorAnswer::NotNow("blog: gone".into()),
                    ("bad", _) => OperatorAnswer::UpstreamFailed("bad: 500".into()),
                    ("slow", _) => OperatorAnswer::Away("slow: not yet".into()),
                    _ => OperatorAnswer::Unknown("no such feed".into()),
                }
            })
        }

        fn change_accounts(&self, command: AccountCommand) -> BoxFuture<'_, AccountAnswer> {
            Box::pin(async move {
                match command {
                    AccountCommand::ListUsers(_) => {
                        AccountAnswer::Done("there are no users\n".into())
                    }
                    _ => AccountAnswer::Refused("there is no such user".into()),
                }
            })
        }

        fn subscribers(&self, command: SubscriberCommand) -> BoxFuture<'_, OperatorAnswer> {
            Box::pin(async move {
                match command {
                    SubscriberCommand::List { .. } => {
                        OperatorAnswer::Done("{\"subscribers\":[]}".into())
                    }
                    SubscriberCommand::End(7) => OperatorAnswer::Done("it has ended".into()),
                    _ => OperatorAnswer::Unknown("there is no such subscription".into()),
                }
            })
        }

        fn registry(&self, command: RegistryCommand) -> BoxFuture<'_, RegistryAnswer> {
            Box::pin(async move {
                match command {
                    RegistryCommand::Remove(_) => RegistryAnswer::Removed,
                    RegistryCommand::Put { json, .. } => RegistryAnswer::Added(json),
                    other => RegistryAnswer::Told(format!("{other:?}")),
                }
            })
        }

        fn events<'a>(
            &'a self,
            form: EventForm,
            range: &'a EventRange,
        ) -> BoxFuture<'a, Result<String, String>> {
            Box::pin(async move { Ok(format!("{form:?} {}", range.max)) })
        }

        fn forget<'a>(
            &'a self,
            feed: &'a str,
            item: Option<&'a str>,
        ) -> BoxFuture<'a, OperatorAnswer> {
            Box::pin(async move {
                match feed {
                    "blog" if item == Some("http://x/?p=1") => {
                        OperatorAnswer::Done("item `http://x/?p=1` of feed `blog`".into())
                    }
                    "blog" => OperatorAnswer::NotNow("feed `blog` is configured".into()),
                    "old" => OperatorAnswer::Done("feed `old` is forgotten\n".into()),
                    _ => OperatorAnswer::Unknown("no such feed".into()),
                }
            })
        }
    }

    async fn ask(ready: Result<(), String>, method: Method, path: &str) -> (u16, String) {
        let admin = Admin::starting(Arc::default(), Metrics::default());
        admin.open(Arc::new(FakeInsight { ready }));
        let request = Request::builder()
            .method(method)
            .uri(path)
            .body(String::new())
            .unwrap();
        let response = admin.oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn an_unready_house_is_alive_and_says_why_it_is_not_ready() {
        let broken = Err("the clock jumped".to_owned());
        assert_eq!(ask(broken.clone(), Method::GET, "/live").await.0, 200);
        assert_eq!(
            ask(broken, Method::GET, "/ready").await,
            (503, "the clock jumped\n".into())
        );
        assert_eq!(ask(Ok(()), Method::GET, "/ready").await.0, 200);
        let full = Err("no room on the disk".to_owned());
        assert_eq!(
            ask(full, Method::GET, "/live").await,
            (503, "no room on the disk\n".into())
        );
    }

    #[tokio::test]
    async fn an_item_of_a_feed_is_explained_by_any_of_its_names() {
        let (status, body) = ask(
            Ok(()),
            Method::GET,
            "/explain/blog?item=http%3A%2F%2Fx%2F%3Fp%3D1",
        )
        .await;
        assert_eq!(
            (status, &*body),
            (200, "{\"item\":Some(\"http://x/?p=1\")}\n")
        );
        assert_eq!(
            ask(Ok(()), Method::GET, "/explain/blog").await.1,
            "{\"item\":None}\n"
        );
        assert_eq!(ask(Ok(()), Method::GET, "/explain/other").await.0, 404);
        assert_eq!(ask(Ok(()), Method::POST, "/explain/blog").await.0, 405);
    }

    #[tokio::test]
    async fn status_is_json_and_metrics_are_gauges_of_it() {
        let told = ask(Ok(()), Method::GET, "/status").await;
        assert_eq!(told, (200, "{\"waiters\":3}\n".into()));
        let (status, text) = ask(Ok(()), Method::GET, "/metrics").await;
        assert!(
            status == 200 && text.contains("everfeed_held_requests 3"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn events_are_read_in_two_forms_and_a_range_that_is_none_is_refused() {
        let get = async |path: &str| ask(Ok(()), Method::GET, path).await;
        assert_eq!(get("/events.atom").await, (200, "Atom 100".into()));
        assert_eq!(get("/events.json?max=3").await, (200, "Json 3".into()));
        assert_eq!(get("/events.json?max=none").await.0, 400);
        assert_eq!(get("/events").await.0, 404);
        assert_eq!(ask(Ok(()), Method::POST, "/events.atom").await.0, 405);
    }

    #[tokio::test]
    async fn a_status_that_is_the_same_is_not_sent_again() {
        let admin = Admin::starting(Arc::default(), Metrics::default());
        admin.open(Arc::new(FakeInsight { ready: Ok(()) }));
        let get = || Request::builder().uri("/status?max=5");
        let first = admin
            .clone()
            .oneshot(get().body(String::new()).unwrap())
            .await
            .unwrap();
        let tag = first.headers()[ETAG].clone();
        for (known, status) in [
            (tag.clone(), 304),
            (HeaderValue::from_static("\"other\""), 200),
        ] {
            let request = get()
                .header(IF_NONE_MATCH, known)
                .body(String::new())
                .unwrap();
            let again = admin.clone().oneshot(request).await.unwrap();
            assert_eq!(
                (again.status().as_u16(), &again.headers()[ETAG]),
                (status, &tag)
            );
            let body = again.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(body.is_empty(), status == 304);
        }
    }

    #[tokio::test]
    async fn a_refused_method_is_told_which_would_do_and_nothing_is_kept() {
        // RFC 9110 section 15.5.6.
        for (method, path, allow) in [
            (Method::PUT, "/status", "GET, HEAD"),
            (Method::GET, "/clock/accept", "POST"),
            (Method::GET, "/poll/blog", "POST"),
            (Method::PUT, "/reload", "POST"),
            (Method::GET, "/backup", "POST"),
            (Method::POST, "/explain/blog", "GET, HEAD"),
            (Method::PUT, "/feeds", "GET, HEAD, POST"),
            (Method::POST, "/feeds/a", "GET, HEAD, PUT, DELETE"),
        ] {
            let admin = Admin::starting(Arc::default(), Metrics::default());
            admin.open(Arc::new(FakeInsight { ready: Ok(()) }));
            let request = Request::builder()
                .method(method)
                .uri(path)
                .body(String::new())
                .unwrap();
            let response = admin.oneshot(request).await.unwrap();
            assert_eq!(
                (response.status().as_u16(), &response.headers()[ALLOW]),
                (405, &allow.parse().unwrap())
            );
            assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
        }
    }

    #[tokio::test]
    async fn a_reload_says_what_changed_or_why_it_is_refused() {
        assert_eq!(
            ask(Ok(()), Method::POST, "/reload").await,
            (200, "added    feed.blog\n".into())
        );
        let bad = Err("ever.toml: feed: found no feed".to_owned());
        assert_eq!(ask(bad.clone(), Method::POST, "/reload").await.0, 422);
        assert_eq!(ask(Ok(()), Method::GET, "/reload").await.0, 405);
    }

    #[tokio::test]
    async fn a_poll_that_is_asked_for_tells_what_came_of_it() {
        let poll = async |path: &str| ask(Ok(()), Method::POST, path).await;
        assert_eq!(poll("/poll/blog?now").await, (200, "blog: 1 new\n".into()));
        assert_eq!(poll("/poll/%62log").await, (409, "blog: gone\n".into()));
        assert_eq!(poll("/poll/bad").await.0, 502);
        assert_eq!(poll("/poll/slow").await.0, 503);
        assert_eq!(poll("/poll/other").await.0, 404);
        assert_eq!(ask(Ok(()), Method::GET, "/poll/blog").await.0, 405);
    }

    #[tokio::test]
    async fn a_changed_url_is_accepted_by_a_post_and_a_configuration_checked_by_a_get() {
        assert_eq!(
            ask(Ok(()), Method::POST, "/accept/blog").await,
            (200, "blog: 1 new\n".into())
        );
        assert_eq!(ask(Ok(()), Method::POST, "/accept/other").await.0, 404);
        assert_eq!(ask(Ok(()), Method::GET, "/accept/blog").await.0, 405);
        assert_eq!(ask(Ok(()), Method::GET, "/check").await.0, 200);
        assert_eq!(ask(Err("bad".into()), Method::GET, "/check").await.0, 422);
        assert_eq!(ask(Ok(()), Method::POST, "/check").await.0, 405);
    }

    #[tokio::test]
    async fn a_backup_needs_the_whole_path_of_its_file() {
        let made = ask(Ok(()), Method::POST, "/backup?file=%2Fvar%2Fb.redb").await;
        assert_eq!(made, (200, "/var/b.redb holds 7 values\n".into()));
        assert_eq!(
            ask(Ok(()), Method::POST, "/backup?file=b.redb").await.0,
            400
        );
        assert_eq!(ask(Ok(()), Method::POST, "/backup").await.0, 400);
        assert_eq!(ask(Ok(()), Method::GET, "/backup?file=%2Fb").await.0, 405);
    }

    #[tokio::test]
    async fn users_and_tokens_are_changed_by_commands_that_can_be_meant() {
        assert_eq!(
            ask(Ok(()), Method::GET, "/users").await,
            (200, "there are no users\n".into())
        );
        assert_eq!(ask(Ok(()), Method::DELETE, "/users/alice").await.0, 409);
        assert_eq!(
            ask(Ok(()), Method::POST, "/users/alice?login=plain")
                .await
                .0,
            400
        );
    }

    #[tokio::test]
    async fn subscriptions_are_listed_as_json_and_ended_by_their_numbers() {
        let listed = ask(Ok(()), Method::GET, "/subscribers?host=a.example").await;
        assert_eq!(listed, (200, "{\"subscribers\":[]}\n".into()));
        let of = async |method, path: &str| ask(Ok(()), method, path).await.0;
        assert_eq!(of(Method::DELETE, "/subscribers/7").await, 200);
        assert_eq!(of(Method::DELETE, "/subscribers/8").await, 404);
        assert_eq!(of(Method::POST, "/subscribers/8/retry").await, 404);
        assert_eq!(of(Method::DELETE, "/subscribers").await, 400);
    }

    #[tokio::test]
    async fn only_a_feed_that_is_not_configured_is_forgotten() {
        assert_eq!(
            ask(Ok(()), Method::POST, "/forget/%6Fld").await,
            (200, "feed `old` is forgotten\n".into())
        );
        assert_eq!(ask(Ok(()), Method::POST, "/forget/blog").await.0, 409);
        let (status, text) = ask(
            Ok(()),
            Method::POST,
            "/forget/blog?item=http%3A%2F%2Fx%2F%3Fp%3D1",
        )
        .await;
        assert_eq!(
            (status, text.contains("item `http://x/?p=1` of feed `blog`")),
            (200, true),
            "{text}"
        );
        assert_eq!(ask(Ok(()), Method::POST, "/forget/other").await.0, 404);
        assert_eq!(ask(Ok(()), Method::GET, "/forget/old").await.0, 405);
    }

    #[tokio::test]
    async fn feeds_are_registered_by_put_and_removed_by_delete() {
        let put = ask(Ok(()), Method::PUT, "/feeds/a").await;
        assert_eq!(put, (201, "\n".into()));
        let removed = ask(Ok(()), Method::DELETE, "/feeds/a").await;
        assert_eq!(removed, (204, String::new()));
        assert_eq!(ask(Ok(()), Method::GET, "/feeds").await.0, 200);
        assert_eq!(ask(Ok(()), Method::PUT, "/feeds").await.0, 405);
    }

    #[tokio::test]
    async fn what_is_not_there_is_404_and_what_is_not_done_is_405() {
        assert_eq!(ask(Ok(()), Method::GET, "/feedsx").await.0, 404);
        assert_eq!(ask(Ok(()), Method::POST, "/status").await.0, 405);
        assert_eq!(ask(Ok(()), Method::GET, "/clock/accept").await.0, 405);
        assert_eq!(ask(Ok(()), Method::POST, "/clock/accept").await.0, 200);
    }
}
