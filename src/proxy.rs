//! The reverse proxy before old web sites: which site a request is for, and its way to the origin
//! and back; not what we answer ourselves.

mod continued;

mod fair_permits;

mod fault;

mod forwarding;

mod headers;

mod idle_body;

mod origin;

mod permit_progress_times;

mod permit_body;

mod site_origins;

mod site_permits;

mod tunnel;

mod watched;

pub use forwarding::Proxy;
pub use headers::ProxyPeer;
