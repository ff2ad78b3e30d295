//! The edge: the connections of consumers, from their sockets to a checked request, and from the
//! answer back to the bytes that are read; it names no feed.

pub(crate) mod accepted;
pub mod body;
pub mod client_address;
mod connection;
pub(crate) mod fields;
mod heads;
pub mod https_redirect;
pub mod listen;
pub mod listen_address;
pub mod listener;
mod proxy_header;
pub mod reached;
pub mod request_body;
pub mod socket;
pub mod tls;
mod unread;
pub(crate) mod xml_rpc;
