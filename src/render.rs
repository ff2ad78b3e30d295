//! Pages and lists as documents, and the URLs that they name. Pure: the same page gives the same
//! bytes, and an item is written the same in every page; not where pages come from or how they
//! travel.
//!
//! Nothing that an upstream wrote can make a document ill-formed: text is escaped and cleaned of
//! what XML cannot hold, markup is parsed and written anew.

pub mod document;

pub mod representation;

pub mod archived;

pub mod urls;

pub mod jsonp;

pub mod event_stream;

pub mod about;

pub mod legacy;

pub mod list;

pub mod source_list;

pub mod openapi;

pub mod event_list;

pub mod html;

pub mod overview;

pub mod reader_page;
pub mod sitemap;

mod web_page;

mod channel;
mod generator;
mod identity;
mod json;
mod namespaces;
mod people;
mod post;
mod text;
mod values;
mod xml;

mod foreign;
mod harmless;
mod target;
mod xhtml;

#[cfg(test)]
mod samples;

#[cfg(test)]
mod tests;

pub use archived::ArchiveAddress;
pub use document::{
    Alternate, ArchiveLinks, Audience, ChainPosition, CloudEndpoint, Document, ItemContext, Links,
};
pub use legacy::LegacyLinks;
pub use representation::{Negotiation, PositionLocation, Representation, Syntax, atom_entry};
pub use text::plain as words;
pub use urls::{BadQuery, ClassicQuery, Endpoint, Query, Site, Topic, link_header, xmpp_node_uri};

/// Part of every ETag: rises when the same page begins to give other bytes.
pub const REVISION: &str = concat!(env!("CARGO_PKG_VERSION"), ".4");
