//! Document bytes in, feed entries out: tolerant, pure adapters for the feed formats of the last twenty-five years.
//!
//! A document is first *sliced*: decoded, recognised, its metadata read, and cut into entries with their keys and raw
//! digests. An entry is parsed further only when somebody asks, so an unchanged entry costs a digest, and one bad
//! entry harms no other. Nothing here has a clock, opens anything, or awaits.
//!
//! ```
//! use everfeed_adapters::{Format, Hints, Key, slice};
//!
//! let document = br#"<rss version="2.0"><channel><title>An old blog</title>
//!     <item><guid>tag:example.org,2004:1</guid><link>/first</link><description>Hello &amp;amp; welcome</description></item>
//!     <item><title>Untitled &eacute;l&eacute;gance</title><pubDate>Thu, 01 Jan 04 19:48:21 GMT</pubDate></item>
//! </channel></rss>"#;
//! let hints = Hints { base_url: Some("http://example.org/rss.xml"), ..Hints::default() };
//!
//! let window = slice(document, &hints)?;
//! assert_eq!(window.format, Format::Rss);
//! assert_eq!(window.entries[0].key, Key::Id("tag:example.org,2004:1".into()));
//! assert!(window.entries[1].key.is_weak(), "a title is all that names the second entry");
//!
//! let (entry, notes) = window.entries[0].parse();
//! assert_eq!(entry.permalink(), Some("http://example.org/first"));
//! assert_eq!(entry.content.unwrap().text.value, "Hello &amp; welcome");
//! assert!(notes.is_empty());
//! # Ok::<(), everfeed_adapters::NotAFeed>(())
//! ```
//!
//! What is odd about a document or an entry becomes a [`Note`] beside what could be read; only bytes that are no feed at
//! all, or a feed of which not one entry could be read, are an error.
//!
//! Entries keep their HTML as it was. Who shows it in a page of their own passes it through `text::sanitise` (feature
//! `sanitise`, on by default); elements of foreign markup are written by [`text::markup::write_element`].
//!
//! RSS 0.90 to 2.0 and 1.1, Atom 1.0 and 0.3, CDF and the vocabularies beside them are read by this crate's own pass over
//! tokens of its own: measured on five thousand, feed-rs loses ids, dates and whole dialects, and mixes up the titles of media.
//! JSON Feed is cut by a scanner of our own, which survives what strict JSON does not: cut and slightly broken documents.

#![warn(missing_docs)]

mod detect;
mod discover;
mod dispatch;
pub mod entry;
mod extensions;
mod formats;
mod neutral;
mod permalink;
pub mod platforms;
mod reading;
mod slice;
pub mod text;
mod vocabulary;
mod witness;

pub use detect::NotAFeed;
pub use discover::feeds_of_page;
pub use entry::*;
pub use extensions::georss::{Location, Shape};
pub use extensions::threading::InReplyTo;
pub use formats::json_feed::MEMBERS as JSON_FEED_MEMBERS;
pub use neutral::{neutral, neutral_line};
pub use permalink::shows_entry;
pub use slice::{ENTRIES_MAX, RawEntry, Window, slice};
pub use witness::witness;

/// What came with the document.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hints<'a> {
    /// The HTTP `Content-Type`, verbatim.
    pub content_type: Option<&'a str>,
    /// The HTTP `Content-Language`, verbatim: the language of what names none.
    pub content_language: Option<&'a str>,
    /// The document's URL after redirects: what relative references are resolved against.
    pub base_url: Option<&'a str>,
    /// Set where the document is wanted as it is, as the only item, instead of as a feed: the URL that it was asked for by,
    /// which names the item. Then any bytes do; how many, the caller has limited.
    pub resource: Option<&'a str>,
}
