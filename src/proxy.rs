//! The reverse proxy before old web sites: which site a request is for, and its way to the origin
//! and back; not what we answer ourselves.

mod continued;

mod fair_places;

mod fault;

mod forwarding;

mod headers;

mod idle_body;

mod origin;

mod place_moves;

mod placed_body;

mod site_places;

mod tunnel;

mod watched;

pub use forwarding::Proxy;
pub use headers::ProxyPeer;
