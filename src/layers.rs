//! Tower layers for HTTP on either side, each with one trade, and the two client stacks made of
//! them. Nothing here knows a feed, a store or a subscription: what a caller wants of one call
//! travels as request extensions, what it may want to know of the answer comes back as response
//! extensions.

pub mod address_guard;
pub mod body_cap;
pub mod client;
pub mod collect;
pub mod conditional;
pub mod connect_retry;
pub mod deadline;
pub mod error;
pub mod inflate_cap;
pub mod known_nets;
mod members;
pub mod own_mark;
pub mod pacing;
pub mod per_host;
pub mod public_address;
pub mod redirect;
pub mod signing;
pub mod trace;
pub mod wire;

pub use address_guard::{AddressClass, Trusted};
pub use body_cap::WireBytes;
pub use client::{Client, ClientConfig, authority, callback, upstream};
pub use collect::BodyMemory;
pub use conditional::{Asked, Validators};
pub use error::{Awaited, ConnectFault, Fault, FetchError, NameFault, Refused, Size, TlsFault};
pub use inflate_cap::FirstBytes;
pub use known_nets::{HostNet, KnownNets, NotingResolver};
pub use members::members;
pub use own_mark::{CDN_LOOP, OwnMark, marked_callbacks};
pub use pacing::{freshness, parse_retry_after};
pub use per_host::{Governor, OwnPace, Throttled};
pub use public_address::{is_loopback, is_near, is_private_host};
pub use redirect::{
    ForOrigin, HomeOnly, KnownAs, Landing, NAME_HEADERS, RedirectAllowance, is_below,
};
pub use signing::Signer;
pub use wire::{BuildError, tls_fault_of};

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use tower::Service;

/// A request as it passes down a client stack. Its body is at hand, so it can be sent again.
pub type Request = http::Request<Bytes>;

/// A body that is still arriving. The caps watch it as it does.
pub type Body = UnsyncBoxBody<Bytes, FetchError>;

/// An answer whose body is still arriving.
pub type Reply = http::Response<Body>;

/// A service in the inner half of a client stack. Short for the bounds that every layer there
/// repeats.
pub trait Exchange:
    Service<Request, Response = Reply, Error = FetchError, Future: Send> + Clone + Send + 'static
{
}

impl<S> Exchange for S where
    S: Service<Request, Response = Reply, Error = FetchError, Future: Send>
        + Clone
        + Send
        + 'static
{
}

/// Takes the service that `poll_ready` readied and leaves a fresh clone in its place: readiness
/// belongs to the instance that reported it, not to its clones.
fn take_ready<S: Clone>(service: &mut S) -> S {
    let clone = service.clone();
    std::mem::replace(service, clone)
}

#[cfg(test)]
mod testing;
