//! A request to the hub, from its form to a value; not whether its topic is ours, and nothing is
//! done about it.

use super::signature;
use crate::{
    edge::fields::media_type,
    feed::{position::Position, view::Deletions},
    layers::public_address::is_public,
    secret::Secret,
    setting::holds_controls,
    store::subscriptions::{Algo, Directive, Directives, PushWishes},
};
use http::StatusCode;
use percent_encoding::percent_decode;
use std::borrow::Cow;
use thiserror::Error;
use url::{Host, Url};

mod cloud;

#[cfg(test)]
mod tests;

pub(super) use cloud::{CloudRequest, is_call};

/// The largest form, bytes.
pub(super) const FORM_BYTES_MAX: usize = 64 << 10;
/// A secret is shorter than this (REC 5.1.1): bytes after decoding, not characters.
const SECRET_BYTES_END: usize = 200;
/// The longest topic, bytes.
const TOPIC_BYTES_MAX: usize = 2048;
/// The longest callback, bytes.
const CALLBACK_BYTES_MAX: usize = 2048;
/// The longest token that is echoed, bytes.
const TOKEN_BYTES_MAX: usize = 1024;
/// Topics of one legacy request at most (P-17).
const TOPICS_MAX: usize = 20;
/// Shortest silence after which a heartbeat comes, seconds.
const HEARTBEAT_MIN_SECS: u64 = 60;
/// Longest silence before a heartbeat, and longest time between a warning and the end of a lease,
/// seconds.
const AHEAD_MAX_SECS: u64 = 2_592_000;
/// URLs of one publish request at most.
const PUBLISHED_MAX: usize = 100;

/// A request to the hub.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum HubRequest {
    /// Subscribe, renew or unsubscribe.
    SubscriptionRequest(SubscriptionRequest),
    /// The state of a subscription, told to its subscriber.
    Status(StatusRequest),
    /// "These have changed": a hint for the poller (P-40).
    Publish(Vec<String>),
}

/// A question for the state of a subscription.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StatusRequest {
    pub(super) callback: String,
    /// As spelt.
    pub(super) topic: String,
    /// The form that is wished, as it was spelt.
    pub(super) format: Option<String>,
    /// The proof that the sender is the subscriber.
    pub(super) proof: Secret,
}

/// A request to subscribe, renew or unsubscribe.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SubscriptionRequest {
    pub(super) mode: Mode,
    /// Byte for byte as decoded from the form.
    pub(super) callback: String,
    /// As spelt; more than one only in the legacy dialect.
    pub(super) topics: Vec<String>,
    /// Way to verify; `None` in WebSub, which never says.
    pub(super) verify: Option<Verify>,
    /// Echoed if given, in every dialect (P-19: BazQux, NewsBlur).
    pub(super) verify_token: Option<String>,
    pub(super) secret: Option<Secret>,
    /// `hub.lease_seconds` as written.
    pub(super) lease: Option<String>,
    pub(super) algo: Option<Algo>,
    /// The cursor of `hub.since`.
    pub(super) since: Option<String>,
    /// The wishes for pushes.
    pub(super) wishes: PushWishes,
    /// The form that is wished, as it was spelt.
    pub(super) format: Option<String>,
}

impl SubscriptionRequest {
    /// The request itself shows an old subscriber (D-P1).
    pub(super) fn is_legacy(&self) -> bool {
        self.verify.is_some()
    }
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Subscribe,
    Unsubscribe,
}

/// Preference of `hub.verify`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verify {
    /// Answer first.
    Async,
    /// Verify before answering.
    Sync {
        /// An answer before a verification that did not come through is fine too.
        or_async: bool,
    },
}

/// A form that is refused: always the sender's mistake. The text names the parameter.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum RefusedForm {
    #[error("this is not a form. Send Content-Type application/x-www-form-urlencoded")]
    NotAForm,
    #[error("this is no call that registers a listener: {0}")]
    NoCall(String),
    #[error("your request is too large. A hub request has {FORM_BYTES_MAX} bytes at most")]
    TooLarge,
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("`{0}` is given twice, with different values. Send one")]
    Twice(&'static str),
    #[error("`{0}` is not UTF-8")]
    NotText(String),
    #[error("`{name}` {why}")]
    Bad {
        name: &'static str,
        why: &'static str,
    },
    #[error("`hub.topic` (in rssCloud `url1`) is no topic of this hub: {0}")]
    UnknownTopic(&'static str),
    #[error(
        "`hub.secret` is not the secret of a subscription of this `hub.callback` to this `hub.topic`"
    )]
    Unproven,
    #[error("`format` must be one of {0}")]
    UnknownFormat(String),
    #[error("`hub.topic` needs credentials. Send a user and password, a token, or WSSE")]
    Unauthenticated,
    #[error("the feed of `hub.topic` is gone. The operator has removed it")]
    GoneTopic,
    #[error("this hub takes no publish hints. everfeed polls feeds at their own times")]
    HintsOff,
    #[error(
        "this hub knows none of these URLs. Name a feed that everfeed polls, or a topic of this hub"
    )]
    NothingPublished,
}

impl RefusedForm {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::NotAForm => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnknownTopic(_) | Self::NothingPublished => StatusCode::NOT_FOUND,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::HintsOff | Self::Unproven => StatusCode::FORBIDDEN,
            Self::GoneTopic => StatusCode::GONE,
            Self::Missing(_)
            | Self::Twice(_)
            | Self::NotText(_)
            | Self::UnknownFormat(_)
            | Self::NoCall(_)
            | Self::Bad { .. } => StatusCode::BAD_REQUEST,
        }
    }
}

/// Reads a form. Parameters that we do not know are ignored (HUB-5).
pub(super) fn parse(content_type: Option<&str>, body: &[u8]) -> Result<HubRequest, RefusedForm> {
    let form = Form::read(content_type, body)?;
    match form.one("hub.mode")?.unwrap_or_default() {
        "" => Err(RefusedForm::Missing("hub.mode")),
        "subscribe" => form
            .change(Mode::Subscribe)
            .map(HubRequest::SubscriptionRequest),
        "unsubscribe" => form
            .change(Mode::Unsubscribe)
            .map(HubRequest::SubscriptionRequest),
        "publish" => form.published().map(HubRequest::Publish),
        "status" => form.status().map(HubRequest::Status),
        _ => Err(bad(
            "hub.mode",
            "must be subscribe, unsubscribe, publish or status",
        )),
    }
}

/// True for callbacks at a port that the way to it refuses (PUSH D-P6).
pub(super) fn is_barred_port(callback: &str) -> bool {
    let port = Url::parse(callback)
        .ok()
        .and_then(|url| url.port_or_known_default());
    !matches!(port, Some(80 | 443 | 1024..))
}

/// True for callbacks at a literal address that we would refuse to connect to. Names are looked up
/// only when the connection is made, and refused there.
pub(super) fn is_private(callback: &str) -> bool {
    match Url::parse(callback).ok().as_ref().and_then(Url::host) {
        Some(Host::Ipv4(v4)) => !is_public(v4.into()),
        Some(Host::Ipv6(v6)) => !is_public(v6.into()),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        None => true,
    }
}

const fn bad(name: &'static str, why: &'static str) -> RefusedForm {
    RefusedForm::Bad { name, why }
}

/// The decoded pairs, in order.
struct Form(Vec<(String, String)>);

impl Form {
    /// Reads the body of a request.
    fn read(content_type: Option<&str>, body: &[u8]) -> Result<Self, RefusedForm> {
        let media_type = media_type(content_type.unwrap_or_default());
        if !media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Err(RefusedForm::NotAForm);
        }
        if body.len() > FORM_BYTES_MAX {
            return Err(RefusedForm::TooLarge);
        }
        Self::decode(body)
    }

    /// Decodes strictly: a secret in which a byte was replaced would sign nothing that the
    /// subscriber can check.
    fn decode(body: &[u8]) -> Result<Self, RefusedForm> {
        let pairs = body.split(|b| *b == b'&').filter(|pair| !pair.is_empty());
        let decoded = pairs.map(|pair| {
            let at = pair.iter().position(|b| *b == b'=');
            let (name, value) = at.map_or((pair, &[][..]), |at| (&pair[..at], &pair[at + 1..]));
            let name = text(name).ok_or_else(|| RefusedForm::NotText("a name".into()))?;
            match text(value) {
                Some(value) => Ok((name, value)),
                None => Err(RefusedForm::NotText(name)),
            }
        });
        decoded.collect::<Result<_, _>>().map(Self)
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(given, _)| given == name)
            .map(|(_, value)| value.as_str())
    }

    /// The one value of a parameter. Saying the same twice is no contradiction.
    fn one(&self, name: &'static str) -> Result<Option<&str>, RefusedForm> {
        let mut values = self.all(name);
        let first = values.next();
        if values.any(|value| Some(value) != first) {
            Err(RefusedForm::Twice(name))
        } else {
            Ok(first)
        }
    }

    /// The one value, unless it is empty.
    fn filled(&self, name: &'static str) -> Result<Option<&str>, RefusedForm> {
        Ok(self.one(name)?.filter(|value| !value.is_empty()))
    }

    fn change(&self, mode: Mode) -> Result<SubscriptionRequest, RefusedForm> {
        let verify = self.verify()?;
        let callback = self
            .filled("hub.callback")?
            .ok_or(RefusedForm::Missing("hub.callback"))?;
        check_callback(callback)?;
        let verify_token = self.one("hub.verify_token")?;
        if verify_token.is_some_and(|token| token.len() > TOKEN_BYTES_MAX) {
            return Err(bad("hub.verify_token", "is longer than 1024 bytes"));
        }
        Ok(SubscriptionRequest {
            mode,
            callback: callback.to_owned(),
            topics: self.topics(verify.is_some())?,
            verify,
            verify_token: verify_token.map(str::to_owned),
            secret: self.secret()?,
            lease: self.one("hub.lease_seconds")?.map(str::to_owned),
            algo: self.algo()?,
            since: self.since()?,
            wishes: self.wishes()?,
            format: self.extension("format", "hub.format")?.map(str::to_owned),
        })
    }

    /// The proof is the secret of the subscription, or its token where it has no secret.
    fn status(&self) -> Result<StatusRequest, RefusedForm> {
        let needed = |name| self.filled(name)?.ok_or(RefusedForm::Missing(name));
        let (callback, topic) = (needed("hub.callback")?, needed("hub.topic")?);
        check_callback(callback)?;
        check_topic("hub.topic", topic)?;
        let proof = match self.secret()? {
            Some(secret) => secret,
            None => Secret::new(
                self.filled("hub.verify_token")?
                    .ok_or(RefusedForm::Missing("hub.secret"))?,
            ),
        };
        Ok(StatusRequest {
            callback: callback.to_owned(),
            topic: topic.to_owned(),
            format: self.extension("format", "hub.format")?.map(str::to_owned),
            proof,
        })
    }

    /// The legacy preference: repeated or with commas, the first word known wins (P-18, P03-1).
    fn verify(&self) -> Result<Option<Verify>, RefusedForm> {
        let mut words = self
            .all("hub.verify")
            .flat_map(|value| value.split(','))
            .map(str::trim)
            .peekable();
        if words.peek().is_none() {
            return Ok(None);
        }
        let words: Vec<&str> = words
            .filter(|word| matches!(*word, "sync" | "async"))
            .collect();
        match words.first() {
            Some(&"async") => Ok(Some(Verify::Async)),
            Some(_) => Ok(Some(Verify::Sync {
                or_async: words.contains(&"async"),
            })),
            None => Err(bad("hub.verify", "must contain sync or async")),
        }
    }

    fn topics(&self, legacy: bool) -> Result<Vec<String>, RefusedForm> {
        let mut topics: Vec<String> = Vec::new();
        for topic in self.all("hub.topic").filter(|topic| !topic.is_empty()) {
            check_topic("hub.topic", topic)?;
            if !topics.iter().any(|known| known == topic) {
                topics.push(topic.to_owned());
            }
        }
        match topics.len() {
            0 => Err(RefusedForm::Missing("hub.topic")),
            1 => Ok(topics),
            _ if !legacy => Err(RefusedForm::Twice("hub.topic")),
            2..=TOPICS_MAX => Ok(topics),
            _ => Err(bad("hub.topic", "is given more than 20 times")),
        }
    }

    fn secret(&self) -> Result<Option<Secret>, RefusedForm> {
        match self.filled("hub.secret")? {
            Some(secret) if secret.len() >= SECRET_BYTES_END => {
                Err(bad("hub.secret", "must be shorter than 200 bytes"))
            }
            secret => Ok(secret.map(Secret::new)),
        }
    }

    /// Our extension, under either of the names that it has had in print.
    fn algo(&self) -> Result<Option<Algo>, RefusedForm> {
        let given = self
            .filled("hub.signature_algo")?
            .or(self.filled("hub.signature_method")?);
        let known = |text| {
            signature::parse(text).ok_or(bad(
                "hub.signature_algo",
                "must be sha1, sha256, sha384 or sha512",
            ))
        };
        given.map(known).transpose()
    }

    /// The one value of an extension of ours, with the prefix of the protocol or without it.
    fn extension(
        &self,
        name: &'static str,
        prefixed: &'static str,
    ) -> Result<Option<&str>, RefusedForm> {
        match (self.filled(prefixed)?, self.filled(name)?) {
            (Some(one), Some(other)) if one != other => Err(RefusedForm::Twice(name)),
            (one, other) => Ok(one.or(other)),
        }
    }

    fn wishes(&self) -> Result<PushWishes, RefusedForm> {
        let deletions = self.extension("deletions", "hub.deletions")?;
        let (overrides_method, methods) = match self.extension("methods", "hub.methods")? {
            None | Some("post") => (false, Directives::default()),
            Some("override") => (true, Directives::default()),
            Some("explicit") => (false, Directives::ALL),
            Some(list) => (false, methods(list).ok_or(BAD_METHODS)?),
        };
        Ok(PushWishes {
            deletions: deletions.map(self::deletions).transpose()?,
            overrides_method,
            methods,
            named: Directives::default(),
            heartbeat_secs: self.secs(
                ["heartbeat_seconds", "hub.heartbeat_seconds"],
                HEARTBEAT_MIN_SECS,
                "must be 60 to 2592000",
            )?,
            warning_secs: self.secs(
                ["warning_seconds", "hub.warning_seconds"],
                1,
                "must be 1 to 2592000",
            )?,
        })
    }

    /// A time in seconds, from the least on.
    fn secs(
        &self,
        [name, prefixed]: [&'static str; 2],
        least: u64,
        wanted: &'static str,
    ) -> Result<Option<u64>, RefusedForm> {
        let Some(text) = self.extension(name, prefixed)? else {
            return Ok(None);
        };
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let secs = text.parse().ok().filter(|_| is_number);
        match secs {
            Some(secs) if (least..=AHEAD_MAX_SECS).contains(&secs) => Ok(Some(secs)),
            _ => Err(bad(prefixed, wanted)),
        }
    }

    /// A cursor that can be read in full. A moment or a damaged cursor would leave the subscriber
    /// guessing what the first push follows on.
    fn since(&self) -> Result<Option<String>, RefusedForm> {
        let Some(raw) = self.filled("hub.since")? else {
            return Ok(None);
        };
        match (raw.strip_prefix("cursor:"), Position::parse(raw)) {
            (
                Some(cursor),
                Ok(Some(Position::Cursor { .. } | Position::Start { degraded: false })),
            ) => Ok(Some(cursor.to_owned())),
            _ => Err(bad(
                "hub.since",
                "must be `cursor:`, followed by a cursor of this feed or by nothing",
            )),
        }
    }

    fn published(&self) -> Result<Vec<String>, RefusedForm> {
        let names = ["hub.url", "hub.topic", "hub.url[]", "hub.topic[]"];
        let urls: Vec<String> = self
            .0
            .iter()
            .filter(|(name, value)| names.contains(&name.as_str()) && !value.is_empty())
            .map(|(_, value)| value.clone())
            .collect();
        match urls.len() {
            0 => Err(RefusedForm::Missing("hub.url")),
            1..=PUBLISHED_MAX => Ok(urls),
            _ => Err(bad("hub.url", "is given more than 100 times")),
        }
    }
}

const BAD_METHODS: RefusedForm = bad(
    "hub.methods",
    "must be post, override, explicit, or a list of PUT, PATCH and DELETE",
);

/// The directives in a list of methods. POST is one that every callback takes; `None` for a list
/// with any other word.
fn methods(list: &str) -> Option<Directives> {
    let words = list
        .split(',')
        .map(str::trim)
        .filter(|word| *word != "POST");
    words.map(Directive::named).collect()
}

/// The wish for items that are gone.
pub(super) fn deletions(text: &str) -> Result<Deletions, RefusedForm> {
    match text {
        "announce" => Ok(Deletions::Announce),
        "omit" => Ok(Deletions::Omit),
        _ => Err(bad("deletions", "must be announce or omit")),
    }
}

/// A form's text: `+` is a space, the rest is percent-encoded UTF-8.
fn text(raw: &[u8]) -> Option<String> {
    let spaced: Cow<'_, [u8]> = if raw.contains(&b'+') {
        raw.iter()
            .map(|b| if *b == b'+' { b' ' } else { *b })
            .collect::<Vec<u8>>()
            .into()
    } else {
        raw.into()
    };
    percent_decode(&spaced)
        .decode_utf8()
        .ok()
        .map(Cow::into_owned)
}

// Decides: Which callbacks are allowed?
/// An absolute http or https URL without a fragment (P03-5), which can be sent as it stands.
fn check_callback(text: &str) -> Result<(), RefusedForm> {
    const NAME: &str = "hub.callback";
    if text.len() > CALLBACK_BYTES_MAX {
        return Err(bad(NAME, "is longer than 2048 bytes"));
    }
    let url = absolute(NAME, text)?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad(
            NAME,
            "must not contain a user name or password. Use a path that cannot be guessed",
        ));
    }
    match text.parse::<http::Uri>() {
        Ok(_) => Ok(()),
        Err(_) => Err(bad(NAME, "contains characters that a URL cannot hold")),
    }
}

fn check_topic(name: &'static str, text: &str) -> Result<(), RefusedForm> {
    if text.len() > TOPIC_BYTES_MAX {
        return Err(bad(name, "is longer than 2048 bytes"));
    }
    absolute(name, text).map(|_| ())
}

fn absolute(name: &'static str, text: &str) -> Result<Url, RefusedForm> {
    if holds_controls(text) {
        return Err(bad(name, "contains control characters"));
    }
    let url = Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let url = url.ok_or(bad(name, "must be an absolute http or https URL"))?;
    if url.fragment().is_some() {
        Err(bad(name, "must not have a fragment"))
    } else {
        Ok(url)
    }
}
