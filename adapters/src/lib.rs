//! Document bytes in, feed entries out: tolerant, pure adapters for the feed formats of the last
//! twenty-five years.
//!
//! [`parse`] reads a whole feed. [`slice()`] cuts a document into entries with their keys and
//! digests and parses an entry only when it is asked to, so that an unchanged entry costs a digest,
//! and one bad entry harms no other. Nothing here has a clock, opens anything, or awaits.
//!
//! ```
//! use everfeed_adapters::{Format, Hints, Key, parse, slice};
//!
//! let document = br#"<rss version="2.0"><channel><title>An old blog</title>
//!     <item><guid>tag:example.org,2004:1</guid><link>/first</link>
//!         <description>Hello &amp;amp; welcome</description></item>
//!     <item><title>Untitled &eacute;l&eacute;gance</title>
//!         <pubDate>Thu, 01 Jan 04 19:48:21 GMT</pubDate></item>
//! </channel></rss>"#;
//! let hints = Hints { base_url: Some("http://example.org/rss.xml"), ..Hints::default() };
//!
//! let feed = parse(document, &hints)?;
//! assert_eq!((feed.format, feed.entries.len()), (Format::Rss, 2));
//! let first = &feed.entries[0].entry;
//! assert_eq!(first.permalink(), Some("http://example.org/first"));
//! assert_eq!(first.content.as_ref().unwrap().text.value, "Hello &amp; welcome");
//!
//! let sliced = slice(document, &hints)?;
//! assert_eq!(sliced.entries[0].key, Key::Id("tag:example.org,2004:1".into()));
//! assert!(sliced.entries[1].key.is_weak(), "a title is all that names the second entry");
//! assert_eq!(sliced.entries[0].parse(), (first.clone(), Vec::new()));
//! # Ok::<(), everfeed_adapters::NotAFeed>(())
//! ```
//!
//! Oddities of a document or an entry become a [`Note`] beside everything that could be read; only
//! bytes that are no feed at all, or a feed of which not one entry could be read, are an error.
//!
//! Entries keep their HTML as it was. A program that shows it in a page of its own passes it
//! through `text::sanitise` (feature `sanitise`, on by default); elements of foreign markup are
//! written by [`text::markup::write_element`].
//!
//! RSS 0.90 to 2.0 and 1.1, Atom 1.0 and 0.3, CDF and the vocabularies beside them are read by this
//! crate's own pass over tokens of its own: measured on five thousand, feed-rs loses ids, dates and
//! whole dialects, and mixes up the titles of media. JSON Feed is cut by a scanner of our own,
//! which survives what strict JSON does not: cut and slightly broken documents.
//!
//! Its parts, from below: the data model (`entry`, `metadata`, `key`, `note`), `text` (characters,
//! dates, URLs, markup), `reading` (the common ground of formats and extensions), `formats` and
//! `extensions` (the meaning of elements), `dispatch` (which of them reads an element), `slice`;
//! [`platforms`] holds the profiles of blog software.

#![warn(missing_docs)]

// The data model.
mod digest;
mod entry;
mod format;
mod key;
mod metadata;
mod note;

// Reading, from below.
mod detect;
mod dispatch;
mod extensions;
mod formats;
mod not_a_feed;
mod parse;
mod raw_entry;
mod reading;
mod slice;
mod sliced_document;
pub mod text;
mod vocabulary;

// Tools beside it.
mod cross_check;
mod cut_out;
mod discover;
mod neutral;
mod opml;
mod permalink;
pub mod platforms;

pub use cross_check::cross_check_count;
pub use cut_out::{Uncuttable, without_entries};
pub use detect::{Beginning, beginning, is_binary_part, is_feed};
pub use digest::{DIGEST_VERSION, Digest};
pub use discover::{PageFeed, links_of_page, named_feeds};
pub use entry::{
    Attribute, Body, Category, Date, Element, Enclosure, Entry, Generator, IsPermaLink, Link, Node,
    PROXIED, Person, Source, Text, TextKind,
};
pub use extensions::georss::{Location, Shape};
pub use extensions::moved::moved_to;
pub use format::Format;
pub use formats::json_feed::MEMBERS as JSON_FEED_MEMBERS;
pub use key::{Deletion, Key};
pub use metadata::{Cloud, History, Image, Metadata, Paging, Rhythm};
pub use neutral::{neutral, neutral_line};
pub use not_a_feed::NotAFeed;
pub use note::Note;
pub use opml::{
    FOLDERS_DEEP_MAX, NotOpml, OPML_BYTES_MAX, OUTLINES_MAX, Opml, OtherOutline, OutlinedFeed,
    opml, opml_within,
};
pub use parse::{Feed, ParsedEntry, parse};
pub use permalink::{PageText, shows_entry};
pub use raw_entry::RawEntry;
pub use slice::slice;
pub use sliced_document::{ENTRIES_MAX, SlicedDocument};
pub use vocabulary::customary;

/// Facts that came with the document.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hints<'a> {
    /// The HTTP `Content-Type`, verbatim.
    pub content_type: Option<&'a str>,
    /// The HTTP `Content-Language`, verbatim: the language of what names none.
    pub content_language: Option<&'a str>,
    /// The document's URL after redirects: what relative references are resolved against.
    pub base_url: Option<&'a str>,
    /// Set where the document is wanted as it is, as the only item, instead of as a feed: the URL
    /// that it was asked for by, which names the item. Then any bytes do; how many, the caller has
    /// limited.
    pub resource: Option<&'a str>,
    /// The public address of a resource, where that is another one: readers are led there.
    pub address: Option<&'a str>,
    /// Time at which a resource was read, microseconds since 1970: the date of what it is then.
    pub read_at_us: Option<i64>,
}
