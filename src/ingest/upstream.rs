//! One question to a publisher and what its answer means; not when to ask, nor what the document
//! says.

use super::{
    Credentials, DocumentFormat, FeedSpec, Fetched, feed_spec::without_credentials,
    host_pauses::authority_of,
};
use crate::{
    clock::Clock,
    feed::{
        absence::Coverage,
        schedule::{
            self, Answer, AskedAddress, Failure, FaultKind, NoAnswerCause, Plan, PollState,
            ValidatorPair, Whose,
        },
    },
    layers::{
        Asked, Awaited, BodyMemory, Client, Fault, FetchError, ForOrigin, KnownAs, Landing,
        NAME_HEADERS, OwnMark, OwnPace, RedirectAllowance, Refused, Size, Trusted, Validators,
        client::ACCEPT_FEEDS, freshness, is_below, parse_retry_after,
    },
    locks::{read, write},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{
    HeaderValue, Request, Response, StatusCode,
    header::{
        ACCEPT, AUTHORIZATION, CONTENT_LANGUAGE, CONTENT_TYPE, HeaderMap, HeaderName, RETRY_AFTER,
        USER_AGENT,
    },
};
use std::{
    sync::{Arc, RwLock},
    time::{Duration, UNIX_EPOCH},
};
use tracing::info;
use url::Url;

mod bot_wall;

mod page;

pub use page::{PageAnswer, PageReply};

/// Seconds after which a document is asked for again for which there was no memory.
const CROWDED_SECS: u64 = 20;

/// Asks publishers, and introduces itself.
#[derive(Clone)]
pub struct Upstream {
    /// That by which requests are sent now. The clones are one.
    asking: Arc<RwLock<Asking>>,
    clock: Arc<dyn Clock>,
    /// The mark of polls that come back to this process; `None`: it serves nobody.
    mark: Option<OwnMark>,
    /// True when its caller keeps a gap between requests to this machine.
    has_own_pace: bool,
    /// The credentials of origins.
    credentials: Credentials,
    /// Redirects that its caller allows; `None`: as many as the client follows.
    redirects: Option<RedirectAllowance>,
}

/// That by which requests are sent, and which a reload replaces.
#[derive(Clone, Debug)]
struct Asking {
    client: Client,
    contact_url: Option<Url>,
}

/// Answer of a publisher.
#[derive(Debug)]
pub enum DocumentReply {
    /// 304.
    Unchanged(Answer),
    /// A body that may be a feed.
    Document(Fetched),
    /// Nothing that could be one. The body, if any, was not looked at.
    Failed {
        /// The failure.
        failure: Failure,
        /// The authority that answered so, if one did.
        host: Option<String>,
    },
    /// Our own governor held the request back.
    Deferred {
        /// Seconds until there is room.
        wait_secs: u64,
    },
}

impl Upstream {
    /// Asks by this client. `contact_url` is where a publisher finds out whom to talk to; an
    /// operator who asks once, by hand, may have none.
    pub fn new(client: Client, contact_url: impl Into<Option<Url>>, clock: Arc<dyn Clock>) -> Self {
        let asking = Asking {
            client,
            contact_url: contact_url.into(),
        };
        Self {
            asking: Arc::new(RwLock::new(asking)),
            clock,
            mark: None,
            has_own_pace: false,
            credentials: Credentials::default(),
            redirects: None,
        }
    }

    /// Asks by another client from the next request on, and so do all clones.
    pub fn reload(&self, client: Client, contact_url: impl Into<Option<Url>>) {
        *write(&self.asking) = Asking {
            client,
            contact_url: contact_url.into(),
        };
    }

    fn client(&self) -> Client {
        read(&self.asking).client.clone()
    }

    /// The same, which tells origins these credentials.
    #[must_use]
    pub fn with_credentials(self, credentials: Credentials) -> Self {
        Self {
            credentials,
            ..self
        }
    }

    /// The same, for a caller who keeps a gap of his own between requests to this machine.
    #[must_use]
    pub(super) fn at_own_pace(&self) -> Self {
        Self {
            has_own_pace: true,
            ..self.clone()
        }
    }

    /// The same, for a caller who allows so many redirects.
    #[must_use]
    pub(super) fn redirected_within(self, redirects: &RedirectAllowance) -> Self {
        Self {
            redirects: Some(redirects.clone()),
            ..self
        }
    }

    /// The same, whose polls carry this mark.
    #[must_use]
    pub fn marked(self, mark: OwnMark) -> Self {
        Self {
            mark: Some(mark),
            ..self
        }
    }

    /// Sends one GET for a feed. `subscribers` is who stands behind us.
    pub async fn fetch(
        &self,
        feed: &FeedSpec,
        plan: &Plan,
        state: &PollState,
        subscribers: usize,
    ) -> DocumentReply {
        let request = match self.request(feed, plan, state, subscribers) {
            Ok(request) => request,
            Err(error) => return failed(feed, &error),
        };
        match self.client().send(request).await {
            Ok(response) => self.classify(response, feed, plan, state),
            Err(FetchError::Throttled { wait }) => DocumentReply::Deferred {
                wait_secs: whole_secs(wait),
            },
            Err(crowded @ FetchError::Crowded) => {
                let (name, secs) = (&feed.name, CROWDED_SECS);
                info!(feed.name = %name, "`{name}` is polled again in {secs} seconds: {crowded}");
                DocumentReply::Deferred {
                    wait_secs: CROWDED_SECS,
                }
            }
            Err(error) => failed(feed, &error),
        }
    }

    fn request(
        &self,
        feed: &FeedSpec,
        plan: &Plan,
        state: &PollState,
        subscribers: usize,
    ) -> Result<Request<Bytes>, FetchError> {
        let url = Url::parse(&plan.url).map_err(|_| FetchError::BadUrl)?;
        let mut request = self.get(feed, &url, accept(feed.format), true)?;
        let headers = request.headers_mut();
        headers.insert(
            USER_AGENT,
            self.user_agent(&format!("{subscribers} subscribers")),
        );
        headers.insert("x-hub-subscribers", HeaderValue::from(subscribers));
        // Pages of archives and of posts may be at addresses before which we stand: these are
        // passed on to the old server.
        let is_poll = url == feed.bare_url() || plan.address != AskedAddress::Configured;
        if is_poll && let Some(mark) = &self.mark {
            mark.put_on(headers);
        }
        if plan.conditional
            && let Some(validators) = validators(state)
        {
            request.extensions_mut().insert(validators);
        }
        Ok(request)
    }

    /// A GET on behalf of a feed; with its credentials, if they may be sent, at its own address and
    /// below its folder.
    fn get(
        &self,
        feed: &FeedSpec,
        url: &Url,
        accept: HeaderValue,
        may_tell: bool,
    ) -> Result<Request<Bytes>, FetchError> {
        let mut request = Request::get(url.as_str())
            .body(Bytes::new())
            .map_err(|_| FetchError::BadUrl)?;
        request.headers_mut().insert(ACCEPT, accept);
        let of_origin = self.credentials.at(url);
        if may_tell && !of_origin.is_empty() {
            request.headers_mut().extend(of_origin);
            request.extensions_mut().insert(ForOrigin);
        } else if may_tell && is_below(&feed.url, url) {
            let credentials =
                credentials(&feed.url).map(|credentials| (AUTHORIZATION, credentials));
            request.headers_mut().extend(credentials);
        }
        if let Some(known_as) = feed.legacy_url()
            && url.origin() == feed.url.origin()
        {
            request.headers_mut().extend(known_as_headers(known_as));
            request
                .extensions_mut()
                .insert(KnownAs::new(&feed.url, known_as));
        }
        if !feed.public_hosts_only {
            request
                .extensions_mut()
                .insert(Trusted::origin_of(&feed.url));
        }
        if self.has_own_pace {
            request.extensions_mut().insert(OwnPace);
        }
        if let Some(redirects) = &self.redirects {
            request.extensions_mut().insert(redirects.clone());
        }
        Ok(request)
    }

    /// PUSH P-43: name, version, whom to talk to, and what for.
    fn user_agent(&self, purpose: &str) -> HeaderValue {
        let version = env!("CARGO_PKG_VERSION");
        let contact = read(&self.asking)
            .contact_url
            .as_ref()
            .map(|url| format!("+{url}; "))
            .unwrap_or_default();
        let text = format!("everfeed/{version} ({contact}{purpose})");
        HeaderValue::try_from(text).expect("a parsed URL is printable ASCII")
    }

    fn classify(
        &self,
        response: Response<Bytes>,
        feed: &FeedSpec,
        plan: &Plan,
        state: &PollState,
    ) -> DocumentReply {
        let (parts, body) = response.into_parts();
        let landing = parts.extensions.get::<Landing>();
        let base_url = landing.map_or(plan.url.clone(), |landing| landing.url.to_string());
        let answer = Answer {
            asked: plan.url.clone(),
            address: plan.address,
            conditional: parts
                .extensions
                .get::<Asked>()
                .is_some_and(|asked| asked.conditional),
            validators: parts.extensions.get::<Validators>().map(pair),
            fresh_secs: freshness(&parts.headers).map(|fresh| fresh.as_secs()),
            moved_to: landing
                .and_then(|landing| landing.moved_to.as_ref())
                .map(Url::to_string),
        };
        let host = Url::parse(&base_url)
            .ok()
            .and_then(|url| authority_of(&url));
        if let Some(vendor) = bot_wall::bot_wall(parts.status, &parts.headers, &body) {
            let failure = Failure {
                kind: FaultKind::BotWall {
                    vendor: vendor.to_owned(),
                    status: parts.status.as_u16(),
                },
                retry_after_secs: self
                    .retry_after_secs(StatusCode::TOO_MANY_REQUESTS, &parts.headers),
            };
            return DocumentReply::Failed { failure, host };
        }
        let content_type = text(&parts.headers, CONTENT_TYPE);
        let content_language = text(&parts.headers, CONTENT_LANGUAGE);
        let is_resource = feed.format == DocumentFormat::Resource;
        let resource = is_resource.then(|| resource_url(&feed.url));
        let address = feed.reader_url().filter(|_| is_resource);
        let address = address.map(Url::to_string);
        let whole = Coverage::of_whole(answer.conditional);
        let memory = parts.extensions.get::<BodyMemory>().cloned();
        let fetched = |answer, coverage| {
            let headers = Box::new(parts.headers.clone());
            DocumentReply::Document(Fetched {
                answer,
                body,
                content_type,
                content_language,
                headers,
                base_url,
                resource,
                address,
                coverage,
                memory,
            })
        };
        match parts.status {
            // 203: a proxy on the way has touched the document, which is what there is to read.
            StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION => fetched(answer, whole),
            // What a part was compared with must not be overwritten: a 304 to it would hide the
            // rest.
            StatusCode::IM_USED => fetched(
                Answer {
                    validators: None,
                    conditional: true,
                    ..answer
                },
                Coverage::Delta,
            ),
            StatusCode::NOT_MODIFIED => DocumentReply::Unchanged(Answer {
                validators: answer.validators.and_then(|new| freshened(state, new)),
                ..answer
            }),
            StatusCode::LOOP_DETECTED
                if self
                    .mark
                    .as_ref()
                    .is_some_and(|mark| mark.is_on(&parts.headers)) =>
            {
                DocumentReply::Failed {
                    failure: Failure::of(FaultKind::LeadsBack),
                    host: None,
                }
            }
            status => DocumentReply::Failed {
                failure: Failure {
                    kind: FaultKind::Refused {
                        status: status.as_u16(),
                        has_credentials: credentials(&feed.url).is_some(),
                    },
                    retry_after_secs: self.retry_after_secs(status, &parts.headers),
                },
                host,
            },
        }
    }

    fn retry_after_secs(&self, status: StatusCode, headers: &HeaderMap) -> Option<u64> {
        let now = UNIX_EPOCH + Duration::from_micros(self.clock.now_us());
        let named_secs = parse_retry_after(headers.get(RETRY_AFTER)?, now).map(whole_secs);
        schedule::retry_after_secs(status.as_u16(), named_secs)
    }
}

/// The headers by which the origin of a site knows under which name it is asked: as the proxy
/// before it says it of readers. A server of several sites, or one that sends its readers to its
/// own name, would answer something else without.
fn known_as_headers(known_as: &Url) -> Vec<(HeaderName, HeaderValue)> {
    let authority = &known_as[url::Position::BeforeHost..url::Position::AfterPort];
    let Ok(host) = HeaderValue::from_str(authority) else {
        return Vec::new();
    };
    let scheme = if known_as.scheme() == "https" {
        "https"
    } else {
        "http"
    };
    NAME_HEADERS
        .into_iter()
        .zip([host.clone(), host, HeaderValue::from_static(scheme)])
        .collect()
}

/// Media types that are asked for.
fn accept(format: DocumentFormat) -> HeaderValue {
    match format {
        DocumentFormat::Auto => ACCEPT_FEEDS,
        DocumentFormat::Resource => HeaderValue::from_static("*/*"),
    }
}

/// Seconds, rounded up.
fn whole_secs(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// The party at fault for a request without an answer.
pub fn whose(error: &FetchError) -> Whose {
    match error.fault() {
        Fault::Peer => Whose::Upstream,
        Fault::Network => Whose::Network,
        Fault::Configuration => Whose::Configuration,
        Fault::Ours => Whose::Ours,
    }
}

fn failed(feed: &FeedSpec, error: &FetchError) -> DocumentReply {
    // The call itself has logged the cause below it.
    tracing::debug!("No answer: {error}");
    let reason = match error {
        FetchError::Refused(Refused::Address | Refused::Port(_)) if feed.public_hosts_only => {
            format!("the address leads where we do not follow: {error}")
        }
        // The configured URL may be anywhere, so an address that is refused was a redirect's idea.
        FetchError::Refused(Refused::Address | Refused::Port(_)) => {
            format!("a redirect leads where we do not follow: {error}")
        }
        _ => match key_of(error) {
            Some(key) => format!("{error} ({key})"),
            None => error.to_string(),
        },
    };
    let failure = Failure::of(FaultKind::NoAnswer {
        whose: whose(error),
        reason,
        cause: Some(cause_of(error)),
    });
    DocumentReply::Failed {
        failure,
        host: None,
    }
}

/// The key of the limit that a failure is about.
fn key_of(error: &FetchError) -> Option<&'static str> {
    match error {
        // The head may take as long as the whole.
        FetchError::Timeout {
            awaited: Awaited::Head | Awaited::Whole,
            ..
        } => Some("upstream.total_secs"),
        FetchError::TooManyRedirects { .. } => Some("upstream.redirects_max"),
        FetchError::TooLarge {
            size: Size::Wire, ..
        } => Some("upstream.wire_bytes_max"),
        FetchError::TooLarge {
            size: Size::Inflated,
            ..
        } => Some("upstream.body_bytes_max"),
        _ => None,
    }
}

/// Step of the exchange in which a request failed.
fn cause_of(error: &FetchError) -> NoAnswerCause {
    match error {
        FetchError::Resolve(..) => NoAnswerCause::Resolve,
        FetchError::Connect(..) => NoAnswerCause::Connect,
        FetchError::Tls(..) => NoAnswerCause::Tls,
        FetchError::Timeout { .. } => NoAnswerCause::Timeout,
        FetchError::Refused(_)
        | FetchError::TooManyRedirects { .. }
        | FetchError::BadRedirect(_) => NoAnswerCause::Redirect,
        FetchError::TooLarge { .. } => NoAnswerCause::TooLarge,
        FetchError::Inflate(..) | FetchError::Cut(..) | FetchError::Protocol(..) => {
            NoAnswerCause::Broken
        }
        FetchError::BadUrl
        | FetchError::LeadsBack
        | FetchError::Throttled { .. }
        | FetchError::Crowded
        | FetchError::Local(_) => NoAnswerCause::Local,
    }
}

/// The pair after a 304: what it carries replaces what is held, what it leaves out stays (RFC 9111
/// section 4.3.4). `None` when it carries nothing.
fn freshened(state: &PollState, new: ValidatorPair) -> Option<ValidatorPair> {
    if new.etag.is_none() && new.last_modified.is_none() {
        return None;
    }
    let held = state
        .validators
        .clone()
        .filter(|held| held.url == new.url)
        .unwrap_or_default();
    Some(ValidatorPair {
        etag: new.etag.or(held.etag),
        last_modified: new.last_modified.or(held.last_modified),
        url: new.url,
    })
}

/// The validators as they were sent, for the URL that sent them.
fn validators(state: &PollState) -> Option<Validators> {
    let ValidatorPair {
        etag,
        last_modified,
        url,
    } = state.validators.clone()?;
    Some(Validators {
        etag,
        last_modified,
        url,
    })
}

fn pair(validators: &Validators) -> ValidatorPair {
    let Validators {
        etag,
        last_modified,
        url,
    } = validators.clone();
    ValidatorPair {
        etag,
        last_modified,
        url,
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned)
}

/// Basic credentials from the user part of a URL (RFC 7617).
fn credentials(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let decoded = |text: &str| percent_encoding::percent_decode_str(text).collect::<Vec<u8>>();
    let mut pair = decoded(url.username());
    pair.push(b':');
    pair.extend(decoded(url.password().unwrap_or_default()));
    let mut value =
        HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(pair))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// URL that names a resource: its configured URL, wherever redirects lead today. Everybody sees it,
/// and a query may be a token, so that only a digest tells one query from another.
fn resource_url(configured: &Url) -> String {
    let mut url = without_credentials(configured);
    if let Some(query) = configured.query() {
        let digest = everfeed_adapters::Digest::of(query.as_bytes());
        url.set_query(None);
        url.set_fragment(Some(&digest.to_string()));
    }
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_named_without_secrets() {
        let name = |url: &str| resource_url(&Url::parse(url).unwrap());
        assert_eq!(name("http://u:p@e.org/a.png"), "http://e.org/a.png");
        assert_eq!(
            name("http://u:p@e.org/a?b"),
            name("http://u:new@e.org/a?b"),
            "a new password renames nothing"
        );
        let (one, two) = (
            name("http://e.org/a?token=1"),
            name("http://e.org/a?token=2"),
        );
        assert!(
            one.starts_with("http://e.org/a#") && !one.contains("token") && one != two,
            "{one}"
        );
    }

    #[test]
    fn a_304_replaces_what_it_carries_and_leaves_the_rest() {
        // RFC 9111 section 4.3.4.
        let pair = |(etag, date, url): (Option<&str>, Option<&str>, &str)| ValidatorPair {
            etag: etag.map(str::to_owned),
            last_modified: date.map(str::to_owned),
            url: url.to_owned(),
        };
        let validators = Some(pair((Some("\"a\""), Some("Mon"), "http://x/")));
        let held = PollState {
            validators,
            ..PollState::default()
        };
        let check = |carried: (Option<&str>, Option<&str>, &str),
                     expect: Option<(Option<&str>, Option<&str>)>| {
            let expect = expect.map(|(etag, date)| pair((etag, date, carried.2)));
            assert_eq!(freshened(&held, pair(carried)), expect, "{carried:?}");
        };
        check(
            (Some("\"b\""), None, "http://x/"),
            Some((Some("\"b\""), Some("Mon"))),
        );
        check(
            (None, Some("Tue"), "http://x/"),
            Some((Some("\"a\""), Some("Tue"))),
        );
        check(
            (Some("\"b\""), None, "http://y/"),
            Some((Some("\"b\""), None)),
        );
        check((None, None, "http://x/"), None);
    }
}
