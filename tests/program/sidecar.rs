//! everfeed before an old web site, over real sockets and byte by byte: what is passed on, and what
//! becomes of its feeds.

mod callbacks;

mod credentials;

mod faults;

mod forwarding;

mod legacy;

mod pings;

mod places;

mod private;

mod redirects;

mod resources;

mod rig;
