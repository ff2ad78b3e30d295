//! Requests for feeds, noted for the figures on readers: which ones, and what is noted of them. Not
//! how they are counted.

use super::context::ServeContext;
use crate::{
    client_net::client_net,
    edge::client_address::{PeerAddress, client_address},
    feed::record::FeedNo,
    readership::{FeedRequest, Outcome},
    render::Endpoint,
};
use http::{
    Extensions, HeaderMap,
    header::{IF_MODIFIED_SINCE, IF_NONE_MATCH, USER_AGENT},
    request::Parts,
};
use std::net::IpAddr;

// Decides: Which requests count as reading a feed?
/// True for an endpoint at which a feed is read. Descriptions, lists and archives are no reading:
/// whoever walks through archives would look like many readers.
pub(super) fn is_reading(endpoint: &Endpoint) -> bool {
    matches!(
        endpoint,
        Endpoint::Negotiated(_) | Endpoint::Page(..) | Endpoint::Events(_)
    )
}

/// True for a request that may be answered by "nothing new": it has a validator, or a position.
fn is_conditional(request: &Parts) -> bool {
    let headers = &request.headers;
    let has_position = |query: &str| query.split('&').any(|it| it.starts_with("since="));
    headers.contains_key(IF_NONE_MATCH)
        || headers.contains_key(IF_MODIFIED_SINCE)
        || request.uri.query().is_some_and(has_position)
}

/// Everything that is noted of a request, but for its sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestNote {
    feed: FeedNo,
    is_conditional: bool,
    outcome: Outcome,
}

impl RequestNote {
    /// The note on a request for a feed that was answered with this status; `None` where that tells
    /// nothing of its sender.
    pub(super) fn of(feed: FeedNo, request: &Parts, status: u16) -> Option<Self> {
        Some(Self {
            feed,
            is_conditional: is_conditional(request),
            outcome: Outcome::of_status(status)?,
        })
    }

    /// Notes a request of this sender.
    pub(super) fn put(self, context: &ServeContext, headers: &HeaderMap, of: &Extensions) {
        let agent = headers.get(USER_AGENT);
        context.readership.note(FeedRequest {
            feed: self.feed,
            user_agent: agent.map_or(b"", |agent| agent.as_bytes()),
            client: context.counted_client(headers, of),
            is_conditional: self.is_conditional,
            outcome: self.outcome,
        });
    }
}

impl ServeContext {
    /// The address by which a client is counted, as far as it is known.
    fn counted_client(&self, headers: &HeaderMap, extensions: &Extensions) -> Option<IpAddr> {
        let trusted = &self.config.trusted_proxies;
        let client = if trusted.is_empty() {
            extensions.get::<PeerAddress>()?.0
        } else {
            client_address(extensions, headers, trusted)?
        };
        Some(client_net(client))
    }
}
