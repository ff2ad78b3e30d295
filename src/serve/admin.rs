//! The operator's own listener: is it alive, is it ready, what does it count, how are its feeds.
//! Not for consumers.

use super::{
    answers::validators::{AnswerValidators, tag_of},
    feeds::list_range::FeedRange,
};
use crate::{
    auth::commands::{AccountAnswer, AccountCommand},
    catalog::RegistrationProgress,
    edge::body::{self, Response},
    locks::{read, write},
    render::overview,
    telemetry::{Metrics, exposition},
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{
    HeaderValue, Method, Request, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE},
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
mod pages;
mod registry;
mod subscribers;
#[cfg(test)]
mod tests;

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
    /// The readers of these feeds, as JSON, as far as this process answers them.
    fn readers(&self, range: FeedRange) -> BoxFuture<'_, Result<String, String>>;
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
enum AdminBackend {
    /// Nobody yet.
    Starting,
    /// This process, which works.
    Here(Arc<dyn Insight>),
    /// The process that works, but for what this one knows itself.
    Elsewhere(Arc<dyn OwnInsight>, OperatorRelay),
}

/// Paths that each process answers itself.
const OWN_PATHS: [&str; 7] = [
    "/live", "/ready", "/status", "/readers", "/metrics", "/reload", "/check",
];

/// The service behind the operator's listener.
#[derive(Clone)]
pub struct Admin {
    desk: Arc<RwLock<AdminBackend>>,
    start: Arc<RegistrationProgress>,
    metrics: Metrics,
}

impl Admin {
    /// A service that is live, and tells how far the start is, until it is opened.
    pub fn starting(start: Arc<RegistrationProgress>, metrics: Metrics) -> Self {
        Self {
            desk: Arc::new(RwLock::new(AdminBackend::Starting)),
            start,
            metrics,
        }
    }

    /// Asks the rest of this application from now on.
    pub fn open(&self, insight: Arc<dyn Insight>) {
        *write(&self.desk) = AdminBackend::Here(insight);
    }

    /// Hands requests to the process that works from now on, but for those that each answers itself.
    pub fn follow(&self, own: Arc<dyn OwnInsight>, relay: OperatorRelay) {
        *write(&self.desk) = AdminBackend::Elsewhere(own, relay);
    }

    fn desk(&self) -> AdminBackend {
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
            ("GET" | "HEAD", "/readers") => match FeedRange::of_operator(query) {
                Ok(range) => json(insight.readers(range).await),
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

/// The answer at a path that is not there.
const WANTED: &str = "here are /overview, /live, /ready, /status, /readers, /metrics, /check, /events.atom, /events.json, /explain/FEED?item=ITEM, POST /clock/accept, /backup?file=FILE, /reload, /poll/FEED?now, /accept/FEED and /forget/FEED, /users, /tokens, /subscribers and /feeds\n";
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
            let page =
                pages::page_of(path).filter(|_| path != "/" || pages::prefers_page(&request));
            let answer = match &admin.desk() {
                AdminBackend::Starting => admin.starting_answer(request.method(), path),
                AdminBackend::Here(insight) if page.is_some() => {
                    pages::answer(&**insight, request.method(), page, query).await
                }
                AdminBackend::Elsewhere(own, _) if page.is_some() => {
                    pages::answer(&**own, request.method(), page, query).await
                }
                AdminBackend::Here(insight) if RegistryCommand::is_about(path) => {
                    registry_answer(insight, request.clone(), body).await
                }
                AdminBackend::Here(insight) => admin.answer(insight, &request).await,
                AdminBackend::Elsewhere(..) if request.extensions().get::<Relayed>().is_some() => {
                    failed("another everfeed works by now; ask again".into())
                }
                AdminBackend::Elsewhere(own, _) if OWN_PATHS.contains(&path) => {
                    admin
                        .own_answer(&**own, request.method(), path, query)
                        .await
                }
                AdminBackend::Elsewhere(_, relay) => {
                    return Ok(handed_on(relay, request, body).await);
                }
            };
            Ok(answer.respond(&request))
        })
    }
}
