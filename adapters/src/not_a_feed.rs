//! The error of reading: a document that is no feed, or of which no entry could be read in whole.

use crate::SlicedDocument;

/// A document of which no feed could be made. The variant names what was found, and so whose fault
/// it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAFeed {
    /// Nothing but white space.
    #[error("the document is empty")]
    Empty,
    /// A web page: an error page, a login form, a parked domain.
    #[error("the document is an HTML page, not a feed{}", titled(.title))]
    Html {
        /// The page's title, which often says why.
        title: Option<String>,
    },
    /// JSON, but not a JSON Feed: often an error message.
    #[error(
        "the document is JSON, but no JSON Feed: it names no version of it, and has no items of its shape; it begins with {start:?}"
    )]
    Json {
        /// Its first characters.
        start: String,
    },
    /// Compressed or otherwise binary.
    #[error("the document is {kind}, not text")]
    Binary {
        /// Kind that its first bytes show.
        kind: &'static str,
    },
    /// Some other text.
    #[error("the document is neither XML, HTML nor JSON; it begins with {start:?}")]
    Text {
        /// Its first characters.
        start: String,
    },
    /// XML of another kind.
    #[error("the document is XML, but its root element `{root}` is that of no feed")]
    OtherXml {
        /// The root element as written.
        root: String,
    },
    /// A list of feeds. The command is that of the program that reads such lists.
    #[error(
        "the document is OPML, a list of feeds and no feed; `everfeed import FILE` adds the feeds that it names"
    )]
    Opml,
    /// A note that the feed has moved (RSS `redirect`). Nothing in this crate follows
    /// it.
    #[error("the document holds no feed; it says that the feed has moved to {to}")]
    Moved {
        /// The new address, as the document has it.
        to: String,
    },
    /// RDF about something else than a feed.
    #[error("the document is RDF (root element `{root}`), but it has no RSS channel and no items")]
    OtherRdf {
        /// The root element as written.
        root: String,
    },
    /// It holds entries, but none could be read in whole: reported as an error so that nobody takes
    /// it for an empty feed.
    #[error("the document holds entries, but is cut or broken before the end of the first")]
    NoWholeEntry {
        /// The document as far as it goes, with the entry that it is cut in, if that can be told.
        /// It is for people to look at: half an entry is no entry, so nothing of it may be kept.
        remains: Option<Box<SlicedDocument>>,
    },
}

fn titled(title: &Option<String>) -> String {
    title
        .as_ref()
        .map(|title| format!(" (its title is {title:?})"))
        .unwrap_or_default()
}
