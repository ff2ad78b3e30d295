//! The dialect of a document: its format, and the namespaces that it puts the format's own elements
//! into.

use crate::Format;
use crate::text::date::SlashOrder;
use crate::vocabulary::Vocabulary;

/// A format as one document spells it: the namespace that the document puts its own elements into
/// is the format's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) format: Format,
    pub(crate) own: Vec<String>,
    /// The order of day and month in its dates with slashes, if others of its dates tell it.
    pub(crate) slash_order: Option<SlashOrder>,
}

impl Dialect {
    /// The vocabulary of a namespace in this document.
    pub(crate) fn vocabulary(&self, namespace: &str) -> Vocabulary {
        if self.own.iter().any(|own| own == namespace) {
            return self.native();
        }
        Vocabulary::of(namespace)
    }

    /// The vocabulary of the format itself.
    pub(crate) fn native(&self) -> Vocabulary {
        match self.format {
            Format::Rss | Format::Rdf => Vocabulary::Rss,
            Format::Atom => Vocabulary::Atom,
            Format::Cdf => Vocabulary::Cdf,
            // No elements, no vocabulary.
            Format::JsonFeed | Format::Resource => Vocabulary::Foreign,
        }
    }

    /// The local name of the elements that are entries.
    pub(crate) fn entry_name(&self) -> &'static str {
        match self.format {
            Format::Atom => "entry",
            Format::Rss | Format::Rdf | Format::Cdf | Format::JsonFeed | Format::Resource => "item",
        }
    }
}
