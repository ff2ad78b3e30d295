//! Requests at callbacks: questions of hubs and clouds, and pushes; not how their bodies are read.

use super::{Shared, Subscriber, push_signature::is_signed};
use crate::{
    edge::{
        body::{PLAIN_TEXT, short_of},
        fields,
    },
    feed::{
        pushed_feed::{CallbackQuestion, HubMode, PushReception, PushedFeed},
        record::FeedNo,
    },
    locks::lock,
    notify::PushedDocument,
};
use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Method, Request, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS},
};
use std::collections::HashMap;
use tracing::{debug, error, info, warn};
use url::form_urlencoded;

/// The header of a signature.
const SIGNATURE: HeaderName = HeaderName::from_static("x-hub-signature");
/// The longest reason of a denial that is kept, characters.
const REASON_CHARS_MAX: usize = 200;
/// Seconds after which a hub may ask again while the store is away.
const AWAY_SECS: u64 = 60;
/// The largest form with which a cloud tells of a feed, bytes.
const NOTICE_BYTES_MAX: usize = 4 << 10;

/// A push, as far as it is worth something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PushWorth {
    /// Its document is taken in, besides.
    Document,
    /// It is a hint to poll.
    Hint,
    /// Its signature is not that of its hub: whoever sent it knows the path. A hint, too.
    Forged,
}

impl PushWorth {
    const fn word(self) -> &'static str {
        match self {
            Self::Document => "document",
            Self::Hint => "hint",
            Self::Forged => "forged",
        }
    }
}

impl Subscriber {
    /// True for the token of a callback that is answered.
    pub fn takes(&self, token: &str) -> bool {
        lock(&self.0.rows).of_token(token).is_some()
    }

    /// Answers a request at the callback with this token. `is_whole` is false for a request whose
    /// body was not read, or not to its end. What is not known is answered with 404, whatever it is.
    pub async fn answer(
        &self,
        token: &str,
        request: &Request<Bytes>,
        is_whole: bool,
    ) -> Response<Bytes> {
        let shared = &self.0;
        let Some(feed) = lock(&shared.rows).of_token(token) else {
            return unknown();
        };
        match *request.method() {
            Method::GET => shared.question(feed, token, request).await,
            Method::POST => shared.push(feed, token, request, is_whole),
            _ => short(StatusCode::METHOD_NOT_ALLOWED, "use GET or POST here\n"),
        }
    }
}

impl Shared {
    /// Answers whether what a hub or a cloud asks about is meant.
    async fn question(
        &self,
        feed: FeedNo,
        token: &str,
        request: &Request<Bytes>,
    ) -> Response<Bytes> {
        let query = request.uri().query().unwrap_or_default();
        let query: HashMap<String, String> = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        let said = |name: &str| query.get(name).map(String::as_str);
        let challenge = said("hub.challenge").or(said("challenge"));
        let question = match (said("hub.mode"), said("url")) {
            (Some("denied"), _) => CallbackQuestion::Denied {
                topic: said("hub.topic"),
                reason: said("hub.reason").map(shortened),
            },
            (Some(mode), _) => {
                let Some(mode) = HubMode::parse(mode) else {
                    return unknown();
                };
                CallbackQuestion::Verify {
                    mode,
                    topic: said("hub.topic").unwrap_or_default(),
                    lease_secs: said("hub.lease_seconds").and_then(|secs| secs.parse().ok()),
                }
            }
            (None, Some(url)) => CallbackQuestion::Register { url },
            (None, None) => return unknown(),
        };
        let now = self.now();
        let is_denial = matches!(question, CallbackQuestion::Denied { .. });
        let (is_meant, was_pushed, hub) = self.change(feed, |row| {
            let was_pushed = row.pushed_by(now).is_some();
            let is_meant = row.asked(token, &question, now);
            (is_meant, was_pushed, host_of(row))
        });
        if !is_meant {
            debug!(feed.no = %feed, "A question at the callback of a feed is not about what was asked for");
            return unknown();
        }
        if let Err(error) = self.write(feed).await {
            error!("The answer to a hub could not be kept: {error}");
            let mut answer = short(StatusCode::SERVICE_UNAVAILABLE, "try again\n");
            answer
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(AWAY_SECS));
            return answer;
        }
        let name = self.name_of(feed);
        if is_denial {
            warn!(feed.name = %name, "The hub {hub} does not push `{name}`; the feed is polled as usual");
            // What it has not told of is looked for now.
            self.parts.notify.hint(feed, now);
            return short(StatusCode::OK, "");
        }
        let is_subscribed = matches!(
            question,
            CallbackQuestion::Verify {
                mode: HubMode::Subscribe,
                ..
            }
        );
        if is_subscribed && !was_pushed {
            info!(feed.name = %name, "`{name}` is pushed by its hub {hub} from now on");
        }
        let Some(challenge) = challenge else {
            return unknown();
        };
        short(StatusCode::OK, challenge.to_owned())
    }

    // Decides: What is a push worth?
    /// Takes in a push, and answers at once. Any push of a service that was asked is a hint to poll;
    /// a document of a hub that the feed itself names is more if its signature is good.
    fn push(
        &self,
        feed: FeedNo,
        token: &str,
        request: &Request<Bytes>,
        is_whole: bool,
    ) -> Response<Bytes> {
        let now = self.now();
        let received = lock(&self.rows).row(feed).map(|row| {
            let is_of_cloud = row.cloud.as_ref().is_some_and(|cloud| cloud.is_at(token));
            let is_notice = !is_of_cloud || is_notice(row, request.body(), is_whole);
            if is_notice {
                row.received(token, now)
            } else {
                PushReception::Unknown
            }
        });
        let (secret, is_named_by_feed) = match received {
            Some(PushReception::Expected {
                secret,
                is_named_by_feed,
            }) => (secret, is_named_by_feed),
            Some(PushReception::Left) => {
                return short(StatusCode::GONE, "no push is wanted here\n");
            }
            _ => return unknown(),
        };
        let body = request.body();
        let signature = fields::text(request.headers(), &SIGNATURE);
        // Before anything of it is read.
        let worth = match (secret, signature) {
            (Some(secret), Some(signature)) if is_whole => {
                match is_signed(signature, secret.reveal().as_bytes(), body) {
                    true if is_named_by_feed && !body.is_empty() => PushWorth::Document,
                    true => PushWorth::Hint,
                    false => PushWorth::Forged,
                }
            }
            (Some(_), _) if is_whole => PushWorth::Forged,
            _ => PushWorth::Hint,
        };
        self.parts.metrics.upstream_push(worth.word());
        debug!(feed.no = %feed, worth = worth.word(), bytes = body.len(), "A push has come");
        if worth == PushWorth::Document {
            let document = PushedDocument {
                body: body.clone(),
                content_type: fields::text(request.headers(), &CONTENT_TYPE).map(str::to_owned),
            };
            lock(&self.documents).put(feed, document);
        }
        if worth != PushWorth::Forged {
            self.change(feed, |row| row.tally.pushed(now));
        }
        self.parts.notify.hint(feed, now);
        short(StatusCode::ACCEPTED, "")
    }
}

/// True for the form with which a cloud tells of the feed that it was asked about (UPSTREAM U-23).
fn is_notice(row: &PushedFeed, body: &Bytes, is_whole: bool) -> bool {
    let Some(cloud) = row
        .cloud
        .as_ref()
        .filter(|_| is_whole && body.len() <= NOTICE_BYTES_MAX)
    else {
        return false;
    };
    let url = form_urlencoded::parse(body).find(|(name, _)| name == "url");
    url.is_some_and(|(_, url)| url == cloud.url)
}

/// The host of the first hub of a feed, for the log.
fn host_of(row: &PushedFeed) -> String {
    let url = row
        .hubs
        .first()
        .and_then(|hub| url::Url::parse(&hub.url).ok());
    let host = url.as_ref().and_then(url::Url::host_str);
    host.unwrap_or_default().to_owned()
}

fn shortened(reason: &str) -> &str {
    let end = reason.char_indices().nth(REASON_CHARS_MAX);
    &reason[..end.map_or(reason.len(), |(at, _)| at)]
}

/// 404: the same for everything that is not known.
fn unknown() -> Response<Bytes> {
    short(StatusCode::NOT_FOUND, "")
}

fn short(status: StatusCode, text: impl Into<String>) -> Response<Bytes> {
    let mut answer = short_of(status, PLAIN_TEXT, Bytes::from(text.into()));
    let headers = answer.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
