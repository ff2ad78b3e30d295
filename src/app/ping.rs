//! A publish notice to a hub: one POST, and its answer. Not which hub is told, nor what its answer
//! means.

use crate::{
    feed::schedule::Whose,
    ingest::upstream::whose,
    layers::{self, ClientConfig, FetchError, parse_retry_after},
};
use bytes::Bytes;
use http::{
    HeaderValue, Request, StatusCode,
    header::{CONTENT_TYPE, LOCATION, RETRY_AFTER},
};
use std::time::{Duration, SystemTime};
use url::{Url, form_urlencoded};

pub use crate::layers::is_near;

/// Answer of a hub to a publish notice.
#[derive(Clone, Debug)]
pub struct HubReply {
    /// Status of the answer.
    pub status: StatusCode,
    /// `Retry-After`: the hub does nothing for a notice before that.
    pub retry_after: Option<Duration>,
    /// `Location` of a redirect, which is not followed.
    pub location: Option<String>,
    /// The body as text.
    pub text: String,
}

/// No answer of a hub.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct HubSilence {
    /// Whose fault it is; [`Whose::Upstream`] is the hub's.
    pub whose: Whose,
    /// The cause, for people.
    pub reason: String,
}

/// Tells a hub that these topics have changed. `may_be_near` is true for a hub that may be on this
/// machine or in its network.
pub async fn tell_hub(
    hub: &Url,
    topics: &[String],
    may_be_near: bool,
) -> Result<HubReply, HubSilence> {
    let config = ClientConfig {
        private_ok: may_be_near,
        ..ClientConfig::for_callbacks()
    };
    let client = layers::callback(&config).map_err(|error| HubSilence {
        whose: Whose::Ours,
        reason: format!("no client could be made: {error}"),
    })?;
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("hub.mode", "publish");
    for topic in topics {
        form.append_pair("hub.url", topic);
    }
    let request = Request::post(hub.as_str())
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Bytes::from(form.finish()))
        .map_err(|_| silence(&FetchError::BadUrl))?;
    let answer = client.send(request).await;
    let answer = answer.map_err(|error| silence(&error))?;
    let header = |name| {
        answer
            .headers()
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    let retry_after = answer.headers().get(RETRY_AFTER);
    Ok(HubReply {
        status: answer.status(),
        retry_after: retry_after.and_then(|value| parse_retry_after(value, SystemTime::now())),
        location: header(LOCATION).map(str::to_owned),
        text: String::from_utf8_lossy(answer.body()).into_owned(),
    })
}

fn silence(error: &FetchError) -> HubSilence {
    HubSilence {
        whose: whose(error),
        reason: error.to_string(),
    }
}
