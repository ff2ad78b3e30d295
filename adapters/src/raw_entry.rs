//! An entry as it was cut from its document: its key, its digest and its markup, which is read when
//! somebody asks.

use std::sync::Arc;

use crate::dispatch;
use crate::formats::resource::Resource;
use crate::note::Notes;
use crate::reading::{Dialect, Scope};
use crate::text::date;
use crate::text::markup::tree::{self, Bindings};
use crate::vocabulary::Vocabulary;
use crate::{Digest, Entry, Key, Note};

/// One entry, not yet parsed. It owns its markup and shares what it inherited, so it outlives the
/// document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawEntry {
    /// The key that identifies the entry.
    pub key: Key,
    /// Digest of the entry's own markup, decoded: equal means that its publisher did not touch it.
    /// What it inherits (namespaces, `xml:base`) is not in it.
    pub raw: Digest,
    source: EntrySource,
}

/// The part of a document that is parsed when somebody asks.
#[derive(Clone, Debug, PartialEq, Eq)]
enum EntrySource {
    /// An element.
    Markup {
        markup: Box<str>,
        inherited: Arc<Inherited>,
    },
    /// An item of a JSON Feed.
    Item { json: Box<str>, scope: Arc<Scope> },
    /// The whole document.
    Resource(Arc<Resource>),
}

/// Everything that entries inherit from the elements around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inherited {
    pub(crate) dialect: Dialect,
    pub(crate) bindings: Bindings,
    pub(crate) scope: Scope,
}

impl RawEntry {
    /// An entry that is an element. Its key is found later, together with those of the other
    /// entries.
    pub(crate) fn of_markup(markup: &str, inherited: Arc<Inherited>) -> Self {
        let raw = Digest::of(markup.as_bytes());
        Self::unnamed(
            raw,
            EntrySource::Markup {
                markup: markup.into(),
                inherited,
            },
        )
    }

    /// An item of a JSON Feed, likewise.
    pub(crate) fn of_json(json: &str, scope: Arc<Scope>) -> Self {
        Self::unnamed(
            Digest::of(json.as_bytes()),
            EntrySource::Item {
                json: json.into(),
                scope,
            },
        )
    }

    /// A resource, which its URL names.
    pub(crate) fn of_resource(resource: Resource) -> Self {
        let (key, raw) = (Key::Id(resource.url().to_owned()), resource.digest());
        Self {
            key,
            raw,
            source: EntrySource::Resource(Arc::new(resource)),
        }
    }

    /// Tells the entries of a document the order of day and month that its dates tell together.
    pub(crate) fn tell_slash_order(entries: &mut [Self]) {
        let writes_slashes = |entry: &Self| date::holds_slashes(entry.markup());
        let ends = [entries.first(), entries.last()];
        if !ends.into_iter().flatten().any(writes_slashes) {
            return;
        }
        let Some(order) = date::order_of(entries.iter().map(Self::markup)) else {
            return;
        };
        let mut told: Option<(Arc<Inherited>, Arc<Inherited>)> = None;
        for entry in entries {
            let EntrySource::Markup { inherited, .. } = &mut entry.source else {
                continue;
            };
            let (_, new) = match told.take().filter(|(old, _)| Arc::ptr_eq(old, inherited)) {
                Some(known) => told.insert(known),
                None => {
                    let mut new = Inherited::clone(inherited);
                    new.dialect.slash_order = Some(order);
                    told.insert((Arc::clone(inherited), Arc::new(new)))
                }
            };
            *inherited = Arc::clone(new);
        }
    }

    fn unnamed(raw: Digest, source: EntrySource) -> Self {
        Self {
            key: Key::Digest(String::new()),
            raw,
            source,
        }
    }

    /// The address at which readers find a resource, which names it to them; `None` for an entry of a
    /// feed, which its key names.
    pub fn address(&self) -> Option<&str> {
        match &self.source {
            EntrySource::Resource(resource) => Some(resource.address()),
            EntrySource::Markup { .. } | EntrySource::Item { .. } => None,
        }
    }

    /// Reads the entry. Anything that cannot be understood is left out and noted.
    pub fn parse(&self) -> (Entry, Vec<Note>) {
        let (entry, notes) = match &self.source {
            EntrySource::Markup { markup, inherited } => inherited.parse(markup),
            EntrySource::Item { json, scope } => dispatch::json_item(json, scope),
            EntrySource::Resource(resource) => resource.entry(),
        };
        (entry, notes.into_vec())
    }

    /// The part of the entry that the key was taken from, in the words of the format: `guid`,
    /// `atom:id`, `rdf:about`, `href`, `id`, `link`, `title`, `url` of a resource, or `digest` when
    /// nothing names the entry.
    pub fn named_by(&self) -> &'static str {
        let id = match &self.key {
            Key::Id(id) => id,
            Key::Link(_) => return "link",
            Key::Title(_) => return "title",
            Key::Digest(_) => return "digest",
        };
        let (markup, inherited) = match &self.source {
            EntrySource::Markup { markup, inherited } => (markup, inherited),
            EntrySource::Item { .. } => return "id",
            EntrySource::Resource(_) => return "url",
        };
        let Some(grown) = tree::grow(markup, &inherited.bindings) else {
            return "id";
        };
        let says = |text: &str| crate::text::trim(text) == id;
        let by_child = grown.element.elements().find_map(|child| {
            let name = match child.name.as_str() {
                "id" if Vocabulary::of(&child.ns) == Vocabulary::Atom => "atom:id",
                name if name.eq_ignore_ascii_case("guid") => "guid",
                _ => return None,
            };
            says(&child.text()).then_some(name)
        });
        let by_attribute = || {
            let mut said = grown
                .element
                .attributes
                .iter()
                .filter(|attribute| says(&attribute.value));
            said.find_map(|attribute| match attribute.name.as_str() {
                "about" => Some("rdf:about"),
                name if name.eq_ignore_ascii_case("href") => Some("href"),
                _ => None,
            })
        };
        by_child.or_else(by_attribute).unwrap_or("id")
    }

    /// The entry's own markup or JSON, decoded, as it stood in the document; of a resource there is
    /// none.
    pub fn markup(&self) -> &str {
        match &self.source {
            EntrySource::Markup { markup, .. } => markup,
            EntrySource::Item { json, .. } => json,
            EntrySource::Resource(_) => "",
        }
    }
}

impl Inherited {
    /// Reads an entry that stands here.
    fn parse(&self, markup: &str) -> (Entry, Notes) {
        let Some(grown) = tree::grow_record(markup, &self.bindings) else {
            let mut notes = Notes::default();
            notes.add(Note::EntryLost("its markup has no element".to_owned()));
            return (Entry::default(), notes);
        };
        let (entry, mut notes) = dispatch::entry(grown.element, &self.dialect, &self.scope);
        if grown.limited {
            notes.add_first(tree::limit_note());
        }
        if grown.mended {
            notes.add_first(Note::Mismatched);
        }
        (entry, notes)
    }
}
