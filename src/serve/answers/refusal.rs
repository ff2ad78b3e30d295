//! From refusals to responses, in one place: what the consumer is told, and what only the log is.

use super::accept;
use crate::{
    auth::challenge::challenges,
    catalog::RegistrationProgress,
    edge::{
        body::{self, Response},
        fields::list_value,
    },
    feed::position::BadPosition,
    readers::ReadError,
    render::{Audience, BadQuery, Negotiation, Representation, html, urls::asks_for_script},
    store::StoreError,
};
use bytes::Bytes;
use http::{
    HeaderValue, StatusCode, Version,
    header::{
        ACCEPT, ALLOW, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFRESH, RETRY_AFTER,
        VARY, WWW_AUTHENTICATE,
    },
    request::Parts,
};
use std::{borrow::Cow, ops::RangeInclusive, sync::Arc};

/// A request that is not answered as asked (D-25).
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    text: Cow<'static, str>,
    retry_after_secs: Option<u64>,
    allow: Option<&'static str>,
    challenges: Vec<String>,
    /// True to end the connection of HTTP/1 behind it: its place is wanted by others.
    ends_connection: bool,
}

/// Seconds that a consumer waits before it tries again while a feed is not served yet, at least and
/// at most.
const NOT_READY_SECS: RangeInclusive<u64> = 5..=3600;

/// Seconds after which a feed of another node may be asked for again: nodes are reloaded one after the
/// other.
const ELSEWHERE_SECS: u64 = 30;
/// Seconds that a consumer waits before it tries again when we are too busy.
const BUSY_SECS: u64 = 5;

impl Refusal {
    fn new(status: StatusCode, text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            text: text.into(),
            retry_after_secs: None,
            allow: None,
            challenges: Vec::new(),
            ends_connection: false,
        }
    }

    /// Its status.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// 400: the request itself is wrong.
    pub(crate) fn bad(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    /// 404.
    pub(crate) fn unknown(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::NOT_FOUND, text)
    }

    /// 401, with the schemes that would do. It is said of everything that is not public, be it
    /// there or not.
    pub(crate) fn unauthenticated(takes_basic: bool) -> Self {
        let text = "this needs credentials. Send a user and password, a token, or WSSE";
        let challenges = challenges(takes_basic).collect();
        Self {
            challenges,
            ..Self::new(StatusCode::UNAUTHORIZED, text)
        }
    }

    /// 403: a password that everybody on the way could read.
    pub(crate) fn plain_http() -> Self {
        let text = "this server takes no passwords over plain HTTP. Use https, a token or WSSE. Change this password, because others could read it";
        Self::new(StatusCode::FORBIDDEN, text)
    }

    /// 403: a script that any page could load.
    pub(crate) fn no_script() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "a private feed cannot be a script, because any page could read it. Leave out `callback`",
        )
    }

    /// 403: a feed that a private site has at another address.
    pub(crate) fn private_feed(list: &str) -> Self {
        let text =
            format!("the feeds of this site are private. {list} lists them for their readers");
        Self::new(StatusCode::FORBIDDEN, text)
    }

    /// 403: a feed at an address that nobody named, at a site that has a private one.
    pub(crate) fn unnamed_feed(list: &str) -> Self {
        let text = format!(
            "everfeed holds back the feed at this address. It may be a private feed of this site under another address. {list} lists \
             the feeds. If everybody may read this one, the owner can name its address in `feeds` of the [[site]]"
        );
        Self::new(StatusCode::FORBIDDEN, text)
    }

    /// 421: a callback of our own hub that leads to us.
    pub(crate) fn own_call() -> Self {
        let text = "this callback leads back to the hub itself. Give a callback that is not an address of everfeed";
        Self::new(StatusCode::MISDIRECTED_REQUEST, text)
    }

    /// 429: too many attempts of the client's address, or for one name from behind it, failed.
    pub(crate) fn slow_down(secs: u64) -> Self {
        let text = format!(
            "your address has sent too many wrong passwords or tokens. Wait {secs} s and send the right one. Clients behind an \
             unknown proxy share one address. The operator can name the proxy in server.trusted_proxies"
        );
        Self {
            retry_after_secs: Some(secs),
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, text)
        }
    }

    /// 508: a request of our own that has come back.
    pub(crate) fn leads_back() -> Self {
        let text = "everfeed sent this request to itself, because the address of an old server leads back here. \
                    The operator has to correct site.origin or feed.url";
        Self::new(StatusCode::LOOP_DETECTED, text)
    }

    /// 410: a feed that was taken out of the configuration, and that the store still remembers.
    pub(crate) fn gone() -> Self {
        Self::new(
            StatusCode::GONE,
            "this feed is gone. The operator has removed it. Stop asking for it",
        )
    }

    /// 503: a feed whose entry in the registry cannot be read.
    pub(crate) fn unread_entry() -> Self {
        let text = "this server cannot read how it is to serve this feed. The fault is on this server, and the operator can see it. \
                    Try again after the time in Retry-After";
        Self::for_now(text, *NOT_READY_SECS.end())
    }

    /// 503: a feed that another node serves, or that this one will serve once the one that works does.
    pub(crate) fn elsewhere() -> Self {
        let text = "this node does not serve this feed yet, and another one does or will soon. \
                    Try again after the time in Retry-After";
        Self::for_now(text, ELSEWHERE_SECS)
    }

    /// 410: a resource that its publisher has deleted.
    pub(crate) fn deleted() -> Self {
        Self::new(StatusCode::GONE, "its publisher has deleted this")
    }

    /// 405, with the methods that are allowed.
    pub(crate) fn method(allow: &'static str) -> Self {
        Self {
            allow: Some(allow),
            ..Self::new(StatusCode::METHOD_NOT_ALLOWED, format!("use {allow} here"))
        }
    }

    /// 406, with what there is.
    pub(crate) fn unacceptable() -> Self {
        let is_chosen = |form: &Representation| form.negotiation() != Negotiation::Never;
        let full = Representation::of(Audience::Full).filter(is_chosen);
        let full: Vec<_> = full.map(|form| form.media_type()).collect();
        let classic = Representation::of(Audience::Classic);
        let classic: Vec<_> = classic
            .map(|form| format!("classic.{}", form.suffix()))
            .collect();
        let text = format!(
            "this feed does not come in a format of your Accept header. It comes as {}. Ordinary readers take {} below it",
            full.join(" or "),
            classic.join(" or "),
        );
        Self::new(StatusCode::NOT_ACCEPTABLE, text)
    }

    /// 412: the consumer asks for a state that is not the present one.
    pub(super) fn other_state() -> Self {
        let text = "the present state differs from the one in If-Match or If-Unmodified-Since. Ask again without them";
        Self::new(StatusCode::PRECONDITION_FAILED, text)
    }

    /// 408: the request itself did not come in time.
    pub(crate) fn slow(secs: u64) -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            format!("your request body took longer than {secs} seconds. Send it again, faster"),
        )
    }

    /// 414.
    pub(crate) fn long(bytes_max: usize) -> Self {
        Self::new(
            StatusCode::URI_TOO_LONG,
            format!("your URL is too long. A path with its query has {bytes_max} bytes at most"),
        )
    }

    /// 413.
    pub(crate) fn too_large(bytes_max: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("your request body is too large. It may have {bytes_max} bytes at most"),
        )
    }

    /// 503: a feed whose first document is not in, and is asked for again after so many seconds;
    /// `fails` when it was asked for and did not come.
    pub(crate) fn not_ready(secs: u64, fails: bool) -> Self {
        let text = if fails {
            "everfeed has never read this feed, because the publisher's server does not answer well. It tries again. Come back after the time in Retry-After"
        } else {
            "everfeed is still reading this feed or its archives for the first time. Come back after the time in Retry-After"
        };
        let secs = secs.clamp(*NOT_READY_SECS.start(), *NOT_READY_SECS.end());
        Self::for_now(text, secs)
    }

    /// 503: the feeds are being registered, and none of them is known to be there or not.
    pub(crate) fn starting(progress: &RegistrationProgress) -> Self {
        let text = format!("everfeed is starting ({progress}). Try again soon");
        Self::for_now(text, BUSY_SECS)
    }

    /// 503, to be tried again after so many seconds.
    fn for_now(text: impl Into<Cow<'static, str>>, secs: u64) -> Self {
        Self {
            retry_after_secs: Some(secs),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, text)
        }
    }

    /// 503: who may read a private feed is kept in a store that cannot be reached.
    pub(crate) fn unheard() -> Self {
        Self::for_now(
            "everfeed cannot reach its store, so it cannot check who may read this. Try again after the time in Retry-After",
            BUSY_SECS,
        )
    }

    /// 503: too many requests are held already.
    pub(crate) fn busy() -> Self {
        Self {
            ends_connection: true,
            ..Self::for_now(
                "too many requests are waiting at this server. Try again after the time in Retry-After",
                BUSY_SECS,
            )
        }
    }

    /// 503: what the sender may read here becomes another part of the feed, or another is being
    /// made.
    pub(crate) fn changing() -> Self {
        let text = "the operator is changing your access to this feed. Try again soon";
        Self::for_now(text, BUSY_SECS)
    }

    /// 429: too many requests of one client are held already.
    pub(crate) fn too_many(max: usize) -> Self {
        let text = format!(
            "{max} requests of your address are waiting already. Close some, or try again soon"
        );
        Self {
            retry_after_secs: Some(BUSY_SECS),
            ends_connection: true,
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, text)
        }
    }

    /// The response: a line of text, a page for whoever would rather have one, or a problem where
    /// JSON is asked for.
    pub(crate) fn respond(self, request: &Parts) -> Response {
        let form = ErrorForm::of(request);
        let body = form.body(request, self.status, &self.text);
        let mut response = body::short(self.status, form.content_type(), body);
        let headers = response.headers_mut();
        if form == ErrorForm::Page {
            headers.insert(CONTENT_SECURITY_POLICY, PAGE_POLICY);
            if let Some(secs) = self.retry_after_secs
                && self.status == StatusCode::SERVICE_UNAVAILABLE
            {
                headers.insert(REFRESH, HeaderValue::from(secs));
            }
        }
        headers.insert(VARY, HeaderValue::from_static("accept"));
        if self.ends_connection && request.version < Version::HTTP_2 {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(secs) = self.retry_after_secs {
            headers.insert(RETRY_AFTER, HeaderValue::from(secs));
        }
        for challenge in self.challenges {
            if let Ok(challenge) = HeaderValue::try_from(challenge) {
                headers.append(WWW_AUTHENTICATE, challenge);
            }
        }
        if let Some(methods) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(methods));
        }
        response
    }
}

/// The address of the list of feeds, as an extension of a request: pages of errors lead to it.
#[derive(Clone, Debug)]
pub(crate) struct ListUrl(pub(crate) Arc<str>);

/// The media type of errors in JSON (RFC 9457).
pub(crate) const PROBLEM: &str = "application/problem+json";

/// Permissions of pages of errors.
pub(crate) const PAGE_POLICY: HeaderValue = HeaderValue::from_static(html::CONTENT_SECURITY_POLICY);

/// The form in which an error is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ErrorForm {
    /// A page for people.
    Page,
    /// A problem, for programs.
    Problem,
    /// A line of text.
    Text,
}

impl ErrorForm {
    /// The form that a request asks for: by what it accepts, or by the end of its path. A script
    /// could read neither a page nor a problem (D-12).
    fn of(request: &Parts) -> Self {
        if asks_for_script(request.uri.query().unwrap_or_default()) {
            return Self::Text;
        }
        let accept = list_value(&request.headers, &ACCEPT);
        if accept::prefers_page(accept.as_deref()) {
            return Self::Page;
        }
        let is_json = |suffix| {
            let named = Representation::with_suffix(Audience::Full, suffix)
                .or_else(|| Representation::with_suffix(Audience::Classic, suffix));
            named.is_some_and(|named| named.media_type().ends_with("json"))
        };
        let suffix = request.uri.path().rsplit_once('.');
        if accept::wants_json(accept.as_deref()) || suffix.is_some_and(|(_, it)| is_json(it)) {
            Self::Problem
        } else {
            Self::Text
        }
    }

    const fn content_type(self) -> &'static str {
        match self {
            Self::Page => html::CONTENT_TYPE,
            Self::Problem => PROBLEM,
            Self::Text => "text/plain; charset=utf-8",
        }
    }

    fn body(self, request: &Parts, status: StatusCode, text: &str) -> Vec<u8> {
        match self {
            Self::Page => {
                let list = request.extensions.get::<ListUrl>();
                html::error(&status.to_string(), text, list.map(|list| &*list.0))
            }
            Self::Problem => problem(status, text).to_string().into_bytes(),
            Self::Text => format!("{text}\n").into_bytes(),
        }
    }
}

/// An answer whose error is a line of text, in the form that is asked for.
pub(crate) fn told(request: &Parts, mut answer: http::Response<Bytes>) -> http::Response<Bytes> {
    let status = answer.status();
    let is_error = status.is_client_error() || status.is_server_error();
    let is_text = answer
        .headers()
        .get(CONTENT_TYPE)
        .is_none_or(|it| it.as_bytes().starts_with(b"text/plain"));
    let form = ErrorForm::of(request);
    if is_error && is_text && form != ErrorForm::Text {
        let text = String::from_utf8_lossy(answer.body()).trim_end().to_owned();
        *answer.body_mut() = form.body(request, status, &text).into();
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(form.content_type()));
        if form == ErrorForm::Page {
            headers.insert(CONTENT_SECURITY_POLICY, PAGE_POLICY);
        }
    }
    answer
}

/// A problem without a type of its own: its status says what kind it is, its detail what is wrong.
pub(crate) fn problem(status: StatusCode, detail: &str) -> serde_json::Value {
    let title = status.canonical_reason().unwrap_or_default();
    serde_json::json!({ "type": "about:blank", "title": title, "status": status.as_u16(), "detail": detail })
}

impl From<BadQuery> for Refusal {
    fn from(bad: BadQuery) -> Self {
        Self::bad(bad.to_string())
    }
}

impl From<BadPosition> for Refusal {
    fn from(bad: BadPosition) -> Self {
        Self::bad(bad.to_string())
    }
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NotReady => Self::for_now(error.to_string(), *NOT_READY_SECS.start()),
            ReadError::UnknownFeed | ReadError::UnknownArchive => Self::unknown(error.to_string()),
            ReadError::Busy => Self::for_now(error.to_string(), BUSY_SECS),
            ReadError::Store(error) => Self::from(&*error),
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::from(&error)
    }
}

impl From<&StoreError> for Refusal {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::UnknownId => Self::unknown(error.to_string()),
            StoreError::MovingOrder | StoreError::Unnumbered => Self::bad(error.to_string()),
            // The cause names files of the machine, and is for the operator.
            StoreError::Away(_) => Self::for_now(
                "this server cannot reach its store now. The fault is on this server, and the operator can see it. \
                 Nothing is lost. Try again after the time in Retry-After",
                BUSY_SECS,
            ),
            StoreError::UnknownFeed(_) => Self::changing(),
            StoreError::Closed => Self::for_now(
                "this server is stopping, or its store file has changed. Its operator can see which. \
                 Try again after the time in Retry-After",
                BUSY_SECS,
            ),
            _ => {
                tracing::error!(error = %error, "The store could not answer a consumer: {error}");
                Self::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "this server has an internal error. The fault is not yours. The operator can see it in the log",
                )
            }
        }
    }
}
