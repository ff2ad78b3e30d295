//! The key of an entry, and the tombstone that names one.

use serde::Serialize;

use crate::Date;
use crate::text::session::without_session;

/// The key that identifies an entry, strongest kind first (DESIGN section 3, LEGACY I-2).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Key {
    /// `guid`, `atom:id`, `rdf:about`, JSON `id`, CDF `HREF`, or a resource's URL.
    Id(String),
    /// The permalink, unresolved as the source wrote it, when no other entry of the document has
    /// the same.
    Link(String),
    /// The title, when no other entry of the document has the same. Weak: absence proves nothing.
    Title(String),
    /// The content digest in hexadecimal. Weak.
    Digest(String),
}

impl Key {
    /// The bytes that are hashed for the item's id: the key without `http://` or `https://`, and a
    /// URL without sessions and campaigns, which differ each time that it is asked for; weak keys
    /// carry a prefix that no strong key can have, because a trimmed key holds no line feed at that
    /// place.
    pub fn stripped(&self) -> String {
        let bare = |s: &str| match s
            .strip_prefix("https://")
            .or_else(|| s.strip_prefix("http://"))
        {
            Some(url) => without_session(url).into_owned(),
            None => s.to_owned(),
        };
        match self {
            Self::Id(s) | Self::Link(s) => bare(s),
            Self::Title(s) => format!("title\n{s}"),
            Self::Digest(s) => format!("digest\n{s}"),
        }
    }

    /// True for a key whose absence never counts as evidence.
    pub fn is_weak(&self) -> bool {
        matches!(self, Self::Title(_) | Self::Digest(_))
    }
}

/// One `at:deleted-entry` (RFC 6721 section 3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Deletion {
    /// The id of the deleted entry, trimmed of XML white space, else byte-exact.
    pub reference: String,
    /// Date of the deletion.
    pub when: Option<Date>,
    /// `at:comment`, as plain text.
    pub comment: Option<String>,
}
