//! Pages and lists as documents: Atom, RSS, ActivityStreams JSON, HTML. Pure: the same page gives the same bytes, and
//! an item is written the same in every page; not where pages come from or how they travel.
//!
//! Nothing that an upstream wrote can make a document ill-formed: text is escaped and cleaned of what XML cannot hold,
//! markup is parsed and written anew.

use crate::feed::{page::Page, record::FeedRecord, view::Format};

pub mod urls;

#[cfg(test)]
mod samples;

#[cfg(test)]
mod tests;

mod identity;
mod text;
mod xml;

mod foreign;
mod target;
mod xhtml;

mod atom;

mod rss;

mod activity_streams;

pub mod jsonp;

pub mod about;

pub mod list;

pub mod html;

pub use text::plain as words;
pub use urls::{Alternate, FeedUrls, Site, Urls};

/// Part of every ETag: rises when the same page begins to give other bytes.
pub const REVISION: &str = concat!(env!("CARGO_PKG_VERSION"), ".1");

/// What documents say of the program that made them.
struct Generator {
    name: &'static str,
    version: &'static str,
}

const GENERATOR: Generator = Generator { name: "everfeed", version: env!("CARGO_PKG_VERSION") };

/// A page and what goes around it.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// What was read back from the store. For classic formats: newest first, tombstones left out.
    pub page: &'a Page,
    /// In which form.
    pub format: Format,
    /// The links to carry.
    pub urls: &'a Urls,
    /// The cursor before the page's first item, byte for byte as the subscription keeps it: this is a push
    /// (SF-85). Pushes have no next page (SF-84).
    pub prev_cursor: Option<&'a str>,
    /// RSS only: how long a copy stays fresh, in minutes.
    pub ttl_mins: Option<u32>,
}

/// The document's bytes, UTF-8.
pub fn page(document: &Document<'_>) -> Vec<u8> {
    match document.format {
        Format::Atom | Format::ClassicAtom => atom::document(document),
        Format::Json => activity_streams::document(document),
        Format::ClassicRss => rss::document(document),
    }
}

impl<'a> Document<'a> {
    /// The feed, in the page's own snapshot.
    fn feed(&self) -> &'a FeedRecord {
        &self.page.record
    }

    /// The next page, where one may be named: not in pushes, and classic views end where they end.
    fn next(&self) -> Option<&'a str> {
        let smart = matches!(self.format, Format::Atom | Format::Json);
        self.urls.next.as_deref().filter(|_| smart && self.page.more && self.prev_cursor.is_none())
    }

    /// A guess that saves most reallocations: old blogs write a few kilobytes an entry.
    fn capacity_bytes(&self) -> usize {
        2048 + 4096 * self.page.items.len()
    }
}
