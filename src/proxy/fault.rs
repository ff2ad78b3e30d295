//! Faults between us and an origin, and what a reader is told of them: whose fault it is, in a
//! line.

use super::permit_progress_times::LEAST_BYTES;
use crate::edge::body::{self, Response};
use http::{HeaderValue, StatusCode, header::RETRY_AFTER};
use std::time::Duration;
use thiserror::Error;

/// A request that the origin did not answer, or that was not passed on.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(super) enum ProxyFault {
    /// No connection came about.
    #[error("the server behind this proxy cannot be reached: {0}")]
    Unreachable(String),
    /// No connection came about in time.
    #[error("the server behind this proxy could not be reached within {} seconds", .0.as_secs())]
    ConnectTimeout(Duration),
    /// The request was sent and its answer did not begin in time.
    #[error("the server behind this proxy did not begin to answer within {} seconds", .0.as_secs())]
    HeadTimeout(Duration),
    /// The connection ended, or held something that is no HTTP, before the head of an answer.
    #[error("the server behind this proxy gave no proper answer: {0}")]
    Broken(String),
    /// A connection that had served other requests ended before anything was answered.
    #[error("the server behind this proxy gave no proper answer: {0}")]
    Closed(String),
    /// An answer whose end two readers would find in two places.
    #[error("the server behind this proxy gave no proper answer: {0}")]
    Framing(&'static str),
    /// Interim answers without end.
    #[error("the server behind this proxy sent more than {0} interim answers")]
    Interim(usize),
    /// An upgrade was answered, and the connection cannot be used for it.
    #[error("the server behind this proxy changed to another protocol than was asked for")]
    Upgrade,
    /// The client stopped in the middle of the body of its request, or nearly so.
    #[error("the body of the request did not come: fewer than {LEAST_BYTES} bytes were sent in {} seconds", .0.as_secs())]
    RequestBody(Duration),
    /// The body of the request broke off.
    #[error("the body of the request broke off")]
    BrokenRequest,
    /// As many requests are at the origin as may be.
    #[error("too many requests are waiting for the server behind this proxy; try again soon")]
    Full,
    /// The client, or its network, has too many of the places, and this was the slowest request.
    #[error(
        "too many requests are waiting for the server behind this proxy, most of them from this client or its network: the slowest one made room; try again soon"
    )]
    TakenAway,
    /// No place was free, and this was the slowest of all requests.
    #[error(
        "too many requests are waiting for the server behind this proxy, and this was the slowest one: it made room; try again soon"
    )]
    Slowest,
    /// The request has passed through us before.
    #[error(
        "the server behind this proxy is this proxy itself; its operator can mend that by site.origin"
    )]
    Loop,
    /// A method or a target that is not passed on.
    #[error("{0}")]
    NotPassedOn(&'static str),
}

/// Seconds after which a reader may try again when the proxy is full.
const FULL_SECS: u64 = 2;

impl ProxyFault {
    fn status(&self) -> StatusCode {
        match self {
            Self::Unreachable(_)
            | Self::Broken(_)
            | Self::Closed(_)
            | Self::Framing(_)
            | Self::Interim(_)
            | Self::Upgrade => StatusCode::BAD_GATEWAY,
            Self::ConnectTimeout(_) | Self::HeadTimeout(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::RequestBody(_) => StatusCode::REQUEST_TIMEOUT,
            Self::BrokenRequest => StatusCode::BAD_REQUEST,
            Self::Full | Self::TakenAway | Self::Slowest => StatusCode::SERVICE_UNAVAILABLE,
            Self::Loop => StatusCode::LOOP_DETECTED,
            Self::NotPassedOn(_) => StatusCode::METHOD_NOT_ALLOWED,
        }
    }

    /// The answer that the reader gets in place of the origin's.
    pub(super) fn answer(&self) -> Response {
        let mut response = body::plain(self.status(), format!("{self}\n"));
        if matches!(self, Self::Full | Self::TakenAway | Self::Slowest) {
            let headers = response.headers_mut();
            headers.insert(RETRY_AFTER, HeaderValue::from(FULL_SECS));
        }
        response
    }
}
