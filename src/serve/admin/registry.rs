//! Commands of the operator on the registry of feeds, their form as requests to the running process,
//! and the answers; not what a command does.

use super::{AdminAnswer, JSON};
use crate::{
    edge::fields::media_type,
    serve::answers::refusal::{PROBLEM, problem},
    setting::RefusedSetting,
};
use bytes::Bytes;
use http::{Method, StatusCode, header::CONTENT_TYPE, request::Parts};
use http_body::Body;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::time::Duration;
use tower::BoxError;
use url::form_urlencoded;

/// A command on the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryCommand {
    /// List all feeds with the place that each comes from.
    List {
        /// Those after this name.
        after: Option<String>,
    },
    /// Show the entry of a feed.
    Show(String),
    /// Register a feed, or change it.
    Put {
        /// Its name.
        name: String,
        /// Its keys as a JSON object.
        json: String,
    },
    /// Register or change all feeds of a TOML text.
    Apply(String),
    /// Remove the entry of a feed. What is kept of the feed stays.
    Remove(String),
}

/// The outcome of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryAnswer {
    /// The answer to a question, as JSON.
    Told(String),
    /// The feed is registered; its entry as JSON.
    Added(String),
    /// The feeds are registered; a line for each.
    Applied(String),
    /// The entry is removed.
    Removed,
    /// It was not done, and nothing has changed.
    Refused {
        /// The status of the answer.
        status: StatusCode,
        /// The reason, in words.
        why: String,
        /// The mistakes in settings, if there are any.
        mistakes: Vec<RefusedSetting>,
    },
}

const FEEDS: &str = "/feeds";

/// The largest body, bytes: ten thousand feeds take about one megabyte.
const BODY_BYTES_MAX: usize = 16 << 20;
/// Seconds in which it must be here.
const BODY_SECS: u64 = 30;

const WANTED: &str =
    "here are GET /feeds?after=NAME, POST /feeds, and GET, PUT and DELETE /feeds/NAME";

impl RegistryCommand {
    /// The request that carries the command: a method, a path with its query, and a body.
    pub fn request(&self) -> (Method, String, Bytes) {
        let feed = |name| format!("{FEEDS}/{}", utf8_percent_encode(name, NON_ALPHANUMERIC));
        match self {
            Self::List { after: None } => (Method::GET, FEEDS.to_owned(), Bytes::new()),
            Self::List { after: Some(after) } => {
                let mut query = form_urlencoded::Serializer::new(String::new());
                let query = query.append_pair("after", after).finish();
                (Method::GET, format!("{FEEDS}?{query}"), Bytes::new())
            }
            Self::Show(name) => (Method::GET, feed(name), Bytes::new()),
            Self::Put { name, json } => (Method::PUT, feed(name), json.clone().into()),
            Self::Apply(toml) => (Method::POST, FEEDS.to_owned(), toml.clone().into()),
            Self::Remove(name) => (Method::DELETE, feed(name), Bytes::new()),
        }
    }

    /// True for a path that is about the registry.
    pub(super) fn is_about(path: &str) -> bool {
        let rest = path.strip_prefix(FEEDS);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The command of a request to such a path, or the refusal of it.
    pub(super) async fn read<B>(request: &Parts, body: B) -> Result<Self, RegistryAnswer>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>>,
    {
        let path = request.uri.path();
        let rest = path.strip_prefix(FEEDS).unwrap_or_default();
        let name = percent_decode_str(rest.trim_start_matches('/')).decode_utf8_lossy();
        let is_named = !name.is_empty();
        match request.method {
            Method::GET | Method::HEAD if is_named => Ok(Self::Show(name.into_owned())),
            Method::GET | Method::HEAD => {
                let query = request.uri.query().unwrap_or_default();
                let after = super::parameter(query, "after");
                Ok(Self::List { after })
            }
            Method::DELETE if is_named => Ok(Self::Remove(name.into_owned())),
            Method::PUT if is_named => {
                let name = name.into_owned();
                check_media_type(request, "application/json")?;
                let json = read_text(body).await?;
                Ok(Self::Put { name, json })
            }
            Method::POST if !is_named => {
                check_media_type(request, "application/toml")?;
                Ok(Self::Apply(read_text(body).await?))
            }
            _ => Err(RegistryAnswer::refused(
                StatusCode::METHOD_NOT_ALLOWED,
                WANTED,
            )),
        }
    }

    /// The methods that a path takes.
    pub(super) fn allowed(path: &str) -> &'static str {
        if path.trim_end_matches('/') == FEEDS {
            "GET, HEAD, POST"
        } else {
            "GET, HEAD, PUT, DELETE"
        }
    }
}

impl RegistryAnswer {
    /// A refusal that is about no setting.
    pub fn refused(status: StatusCode, why: impl Into<String>) -> Self {
        Self::Refused {
            status,
            why: why.into(),
            mistakes: Vec::new(),
        }
    }

    /// The refusal of settings.
    pub fn mistaken(status: StatusCode, mistakes: Vec<RefusedSetting>) -> Self {
        let told: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        Self::Refused {
            status,
            why: told.join("\n"),
            mistakes,
        }
    }

    pub(super) fn respond(self) -> AdminAnswer {
        match self {
            Self::Told(json) => AdminAnswer::new(StatusCode::OK, JSON, json + "\n"),
            Self::Added(json) => AdminAnswer::new(StatusCode::CREATED, JSON, json + "\n"),
            Self::Applied(text) => AdminAnswer::text(StatusCode::OK, text),
            Self::Removed => AdminAnswer::text(StatusCode::NO_CONTENT, ""),
            Self::Refused {
                status,
                why,
                mistakes,
            } => {
                let mut told = problem(status, &why);
                if !mistakes.is_empty() {
                    told["errors"] = mistakes.iter().map(shown).collect();
                }
                AdminAnswer::new(status, PROBLEM, format!("{told}\n"))
            }
        }
    }
}

/// A mistake in a setting, for programs.
fn shown(mistake: &RefusedSetting) -> serde_json::Value {
    let RefusedSetting {
        key,
        found,
        wanted,
        line,
        file: _,
    } = mistake;
    serde_json::json!({ "key": key, "found": found, "wanted": wanted, "line": line })
}

/// Refuses a body that says it is something else.
fn check_media_type(request: &Parts, wanted: &str) -> Result<(), RegistryAnswer> {
    let Some(given) = request.headers.get(CONTENT_TYPE) else {
        return Ok(());
    };
    let given = given.to_str().unwrap_or_default();
    let bare = media_type(given);
    if bare.eq_ignore_ascii_case(wanted) {
        return Ok(());
    }
    let why = format!("found a body of type {bare:?}; send {wanted}");
    Err(RegistryAnswer::refused(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        why,
    ))
}

/// Reads a body that is text.
async fn read_text<B>(body: B) -> Result<String, RegistryAnswer>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    let whole = whole_body(body).await?;
    String::from_utf8(whole.into())
        .map_err(|_| RegistryAnswer::refused(StatusCode::BAD_REQUEST, "the body is not UTF-8"))
}

/// Reads a body whole.
pub(super) async fn whole_body<B>(body: B) -> Result<Bytes, RegistryAnswer>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    let whole = Box::pin(Limited::new(body, BODY_BYTES_MAX).collect());
    let in_time = tokio::time::timeout(Duration::from_secs(BODY_SECS), whole).await;
    let slow = |_| {
        let why = format!("the body took longer than {BODY_SECS} seconds");
        RegistryAnswer::refused(StatusCode::REQUEST_TIMEOUT, why)
    };
    match in_time.map_err(slow)? {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let why = format!("the body may have {BODY_BYTES_MAX} bytes at most");
            Err(RegistryAnswer::refused(StatusCode::PAYLOAD_TOO_LARGE, why))
        }
        Err(_) => {
            let why = "the body broke off";
            Err(RegistryAnswer::refused(StatusCode::BAD_REQUEST, why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    async fn read(
        method: Method,
        target: &str,
        media_type: &str,
        body: &str,
    ) -> Result<RegistryCommand, u16> {
        let mut request = Request::builder().method(method).uri(target);
        if !media_type.is_empty() {
            request = request.header(CONTENT_TYPE, media_type);
        }
        let (parts, body) = request.body(body.to_owned()).unwrap().into_parts();
        assert!(RegistryCommand::is_about(parts.uri.path()), "{target}");
        match RegistryCommand::read(&parts, body).await {
            Ok(command) => Ok(command),
            Err(RegistryAnswer::Refused { status, .. }) => Err(status.as_u16()),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn every_command_is_read_back_from_its_request() {
        let name = "a b&c".to_owned();
        for command in [
            RegistryCommand::List { after: None },
            RegistryCommand::List {
                after: Some(name.clone()),
            },
            RegistryCommand::Show(name.clone()),
            RegistryCommand::Put {
                name: name.clone(),
                json: "{}".to_owned(),
            },
            RegistryCommand::Apply("[[feed]]".to_owned()),
            RegistryCommand::Remove(name),
        ] {
            let (method, target, body) = command.request();
            let body = String::from_utf8(body.to_vec()).unwrap();
            assert_eq!(read(method, &target, "", &body).await, Ok(command));
        }
        assert!(!RegistryCommand::is_about("/feedsx"));
    }

    #[tokio::test]
    async fn what_cannot_be_meant_is_refused() {
        let json = "Application/JSON; charset=utf-8";
        assert!(read(Method::PUT, "/feeds/a", json, "{}").await.is_ok());
        for (method, target, media_type, status) in [
            (Method::PUT, "/feeds", "", 405),
            (Method::POST, "/feeds/a", "", 405),
            (Method::DELETE, "/feeds", "", 405),
            (Method::PUT, "/feeds/a", "application/toml", 415),
            (Method::POST, "/feeds", "application/json", 415),
        ] {
            let refused = read(method.clone(), target, media_type, "{}").await;
            assert_eq!(refused, Err(status), "{method} {target}");
        }
        let long = "x".repeat(BODY_BYTES_MAX + 1);
        assert_eq!(read(Method::POST, "/feeds", "", &long).await, Err(413));
    }

    #[test]
    fn a_mistake_is_a_problem_that_names_its_key() {
        let mistake = RefusedSetting::new("feed.a.url", "\"x\"", "give a URL");
        let refused = RegistryAnswer::mistaken(StatusCode::UNPROCESSABLE_ENTITY, vec![mistake]);
        let answer = refused.respond();
        let told: serde_json::Value = serde_json::from_str(&answer.text).unwrap();
        assert_eq!((answer.status.as_u16(), answer.media_type), (422, PROBLEM));
        assert_eq!(told["errors"][0]["key"], "feed.a.url");
        assert_eq!(told["status"], 422);
        assert_eq!(told["detail"], "feed.a.url: found \"x\"; give a URL");
    }
}
