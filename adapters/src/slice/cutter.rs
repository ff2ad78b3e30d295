//! The walk over a document's tokens that finds where the feed's own elements and the entries begin
//! and end, whatever state the tags are in; their meaning is left to others, except for the few
//! elements that name an entry.

use std::ops::Range;
use std::sync::Arc;

use super::containers::{ContainerTag, Containers, declared};
use super::feed_part::FeedPart;
use super::keys::{EntryNames, NameStrength};
use super::leaf::{Leaf, ends_first, is_name_of_text};
use super::open_elements::OpenElements;
use super::signs;
use crate::detect::Root;
use crate::formats::{cdf, rdf};
use crate::note::Notes;
use crate::raw_entry::Inherited;
use crate::reading::{Dialect, Scope};
use crate::text::markup::split;
use crate::text::markup::tokens::{Token, Tokens, attributes};
use crate::text::markup::tree::{grow, is_void};
use crate::text::present;
use crate::vocabulary::Vocabulary;
use crate::{ENTRIES_MAX, Format, NotAFeed, Note, RawEntry};

/// Limit of the elements that are open at once; deeper ones are not followed.
const OPEN_MAX: usize = 4096;

/// Limit of the children of one entry that are read for its key: of those that name it for certain,
/// and of the others.
const NAMES_MAX: usize = 64;

/// A document of markup in pieces.
pub(super) struct CutMarkup {
    pub(super) dialect: Dialect,
    /// The scope of the feed.
    pub(super) scope: Scope,
    pub(super) feed: FeedPart,
    pub(super) entries: Vec<(RawEntry, EntryNames)>,
    pub(super) notes: Notes,
    /// True when the only entry is the one that the document is cut in, or none of those that it
    /// holds can be read.
    pub(super) has_no_whole_entry: bool,
}

/// Cuts a recognised document.
pub(super) fn cut(root: &Root<'_>, scope: Scope) -> Result<CutMarkup, NotAFeed> {
    let mut cutter = Cutter::new(root, scope);
    let mut tokens = Tokens::new(root.text);
    while let Some((token, span)) = tokens.next() {
        match token {
            Token::Start {
                name,
                attributes,
                empty,
            } => cutter.start(name, attributes, empty, span),
            Token::End { name } => cutter.end(name, span),
            Token::Text(_) | Token::Literal(_) => {}
        }
        if cutter.state.full {
            break;
        }
    }
    let mended = tokens.is_mended();
    cutter.finish(root.name, tokens.cut_at(), mended)
}

struct Cutter<'t> {
    text: &'t str,
    dialect: Dialect,
    open: OpenElements<'t>,
    containers: Containers,
    /// The open child of the feed or of the entry.
    child: Option<OpenChild>,
    entry: Option<OpenEntry<'t>>,
    feed: FeedPart,
    entries: Vec<CutEntry<'t>>,
    notes: Notes,
    state: CutState,
}

/// Facts about the walk so far.
#[derive(Default)]
struct CutState {
    /// True when there were entries that could not be kept.
    lost: bool,
    /// True when tags did not match.
    mended: bool,
    /// True when there are as many entries as are read.
    full: bool,
}

struct OpenChild {
    start: usize,
    depth: usize,
    /// Its leaf, once somebody asked.
    leaf: Option<Leaf>,
}

struct OpenEntry<'t> {
    start: usize,
    depth: usize,
    attributes: &'t str,
    /// True when its start tag declares a default namespace.
    declares: bool,
    /// Spans of the children that name it for certain.
    certain: Vec<Range<usize>>,
    /// Spans of the children that name it if nothing better does.
    possible: Vec<Range<usize>>,
    /// True when the next entry began before this one ended, in the middle of one of its children.
    broken: bool,
}

/// An entry with its names, and as it stood in the document.
struct CutEntry<'t> {
    raw: RawEntry,
    names: EntryNames,
    open: OpenEntry<'t>,
    inherited: Arc<Inherited>,
}

impl<'t> Cutter<'t> {
    fn new(root: &Root<'t>, scope: Scope) -> Self {
        let dialect = Dialect {
            format: root.format,
            own: Vec::new(),
            slash_order: None,
        };
        Self {
            text: root.text,
            dialect: dialect.clone(),
            open: OpenElements::default(),
            containers: Containers::new(dialect, scope),
            child: None,
            entry: None,
            feed: FeedPart::default(),
            entries: Vec::new(),
            notes: Notes::default(),
            state: CutState::default(),
        }
    }

    fn start(&mut self, name: &'t str, raw: &'t str, empty: bool, span: Range<usize>) {
        if let Some(depth) = self.entry.as_ref().map(|entry| entry.depth) {
            let is_child = self.open.len() == depth + 1;
            if is_child && self.is_entry(name, raw) {
                // An entry cannot be the child of another: somebody forgot the end tag.
                self.state.mended = true;
                self.close_to(depth, span.start, None);
            } else if !is_child && self.breaks_out(name, raw, span.end) {
                self.state.mended = true;
                self.break_off(depth, span.start);
            } else {
                if is_child {
                    self.child = Some(OpenChild {
                        start: span.start,
                        depth: self.open.len(),
                        leaf: None,
                    });
                }
                self.push(name, empty, &span);
                return;
            }
        }
        self.start_outside(name, raw, empty, span);
    }

    /// True when a start tag inside an entry's child is that of the next entry: the child, which
    /// holds text, was not ended.
    fn breaks_out(&mut self, name: &str, raw: &str, end: usize) -> bool {
        if !self.is_entry(name, raw) {
            return false;
        }
        let inherited = Arc::clone(self.containers.inherited());
        let Some(child) = &mut self.child else {
            return false;
        };
        let text = &self.text[child.start..];
        let leaf = *child
            .leaf
            .get_or_insert_with(|| Leaf::of(text, &inherited.bindings, &inherited.dialect));
        let in_text = self
            .open
            .innermost()
            .is_some_and(|name| is_name_of_text(split(name).1));
        let is_direct = self.open.len() == child.depth + 1;
        // Somebody who embeds an entry in XHTML has to say that it is Atom; some feeds say so of
        // each of their own.
        let is_declared =
            || declares(raw) && !self.entry.as_ref().is_some_and(|entry| entry.declares);
        let ends_child = match leaf {
            Leaf::No => false,
            Leaf::Inner => in_text,
            Leaf::Text => in_text || is_direct,
            Leaf::Deep => is_direct || !is_declared(),
        };
        ends_child
            && !self
                .open
                .name_at(child.depth)
                .is_some_and(|name| ends_first(name, &self.text[end..]))
    }

    /// Ends the open entry before its open child: what that holds was meant for others, or is not
    /// whole.
    fn break_off(&mut self, depth: usize, end: usize) {
        let end = self.child.take().map_or(end, |child| child.start);
        if let Some(entry) = &mut self.entry {
            entry.broken = true;
        }
        self.close_to(depth, end, None);
    }

    fn start_outside(&mut self, name: &'t str, raw: &'t str, empty: bool, span: Range<usize>) {
        if self.is_entry(name, raw) {
            let depth = self.containers.depth().map_or(0, |depth| depth + 1);
            self.state.mended |= self.open.len() > depth;
            self.close_to(depth.min(self.open.len()), span.start, None);
            if self.entries.len() >= ENTRIES_MAX {
                self.state.full = true;
                return;
            }
            self.entry = Some(OpenEntry {
                start: span.start,
                depth: self.open.len(),
                attributes: raw,
                declares: declares(raw),
                certain: Vec::new(),
                possible: Vec::new(),
                broken: false,
            });
            return self.push(name, empty, &span);
        }
        self.note_foreign_entry(name);
        if self.child.is_none() {
            if self.is_container(name, raw) {
                self.contain(name, raw);
            } else {
                self.child = Some(OpenChild {
                    start: span.start,
                    depth: self.open.len(),
                    leaf: None,
                });
            }
        }
        self.push(name, empty, &span);
    }

    fn push(&mut self, name: &'t str, empty: bool, span: &Range<usize>) {
        // Beyond the limit only the tag is passed over; an empty element opens nothing anyway.
        if self.open.len() >= OPEN_MAX && !empty {
            self.state.mended = true;
            self.notes.add(Note::Other(format!(
                "more than {OPEN_MAX} levels of elements"
            )));
            return;
        }
        self.open.push(name);
        if empty || (self.entry.is_some() && is_void(name, "")) {
            self.close_to(self.open.len() - 1, span.end, Some(span.end));
        }
    }

    fn end(&mut self, name: &'t str, span: Range<usize>) {
        let Some(place) = self.open.place_of(name) else {
            self.state.mended |= !is_void(name, "");
            return;
        };
        self.state.mended |= place + 1 != self.open.len();
        self.close_to(place, span.start, Some(span.end));
    }

    /// Closes elements until only so many are open. The last of them ends at `own_end` if it was
    /// closed by its own tag; all others end where the tag that closed them begins.
    fn close_to(&mut self, depth: usize, end: usize, own_end: Option<usize>) {
        while self.open.len() > depth {
            let Some(name) = self.open.pop() else { return };
            let closed = self.open.len();
            let own_end = own_end.filter(|_| closed == depth);
            self.closed(name, closed, own_end.unwrap_or(end), own_end.is_some());
        }
    }

    /// The element at this depth has just been closed, by its own tag or by another's.
    fn closed(&mut self, name: &str, depth: usize, end: usize, by_own: bool) {
        if let Some(OpenChild { start, .. }) = self.child.take_if(|child| child.depth == depth) {
            match &mut self.entry {
                Some(entry) => {
                    // One that lost its end names nothing if it swallowed what stood behind it.
                    let swallowed =
                        || memchr::memchr(b'<', &self.text.as_bytes()[start + 1..end]).is_some();
                    let marks = match NameStrength::of(name) {
                        Some(NameStrength::Certain) => Some(&mut entry.certain),
                        Some(NameStrength::Possible) => Some(&mut entry.possible),
                        None => None,
                    };
                    if let Some(marks) = marks.filter(|marks| marks.len() < NAMES_MAX)
                        && (by_own || !swallowed())
                    {
                        marks.push(start..end);
                    }
                }
                None => self.feed_child(start..end),
            }
        }
        if let Some(entry) = self.entry.take_if(|entry| entry.depth == depth) {
            self.child = None;
            self.keep(entry, end);
        }
        self.containers.close_at(depth);
    }

    /// The namespace of a start tag, given where it stands.
    fn namespace(&self, name: &str, raw: &str) -> String {
        self.containers
            .inherited()
            .bindings
            .namespace_of_tag(split(name).0, raw)
            .into_owned()
    }

    /// True for the start tag of an entry.
    fn is_entry(&self, name: &str, raw: &str) -> bool {
        self.is_called_entry(name)
            && self.dialect.vocabulary(&self.namespace(name, raw)) == self.dialect.native()
    }

    /// Notes a start tag that is called as those of entries and is not of the feed's vocabulary.
    fn note_foreign_entry(&mut self, name: &str) {
        if self.entry.is_none() && self.is_called_entry(name) {
            self.state.lost = true;
        }
    }

    /// True for a tag that has the name of an entry, in whatever vocabulary.
    fn is_called_entry(&self, name: &str) -> bool {
        let (_, local) = split(name);
        if local.eq_ignore_ascii_case(self.dialect.entry_name()) {
            return true;
        }
        // Some called their Atom entries items. Only where an entry may stand: inside another it
        // would end that.
        let may_stand = self.entry.is_none() && self.child.is_none();
        may_stand
            && ["item", "entry"]
                .iter()
                .any(|other| local.eq_ignore_ascii_case(other))
    }

    /// The root; in it a channel, or RSS 1.1's `items` (in RSS 1.0, one level deeper, that is a
    /// list of references).
    fn is_container(&self, name: &str, raw: &str) -> bool {
        let (_, local) = split(name);
        let depth = self.open.len();
        if depth == 0 {
            return self.containers.len() == 0 && self.feed.scope.is_none();
        }
        if self.dialect.format == Format::Atom
            || self
                .containers
                .depth()
                .is_none_or(|outer| outer + 1 != depth)
        {
            return false;
        }
        if self.dialect.format == Format::Cdf {
            // A channel in a channel is a heading with items of its own.
            return local.eq_ignore_ascii_case("channel");
        }
        let is_items =
            || local == "items" && Vocabulary::of(&self.namespace(name, raw)) == Vocabulary::Rss;
        depth == 1 && (local.eq_ignore_ascii_case("channel") || is_items())
    }

    fn contain(&mut self, name: &'t str, raw: &'t str) {
        let tag = ContainerTag {
            name,
            raw,
            depth: self.open.len(),
        };
        let Some(inherited) = self
            .containers
            .open(&tag, &mut self.dialect, &mut self.notes)
        else {
            return;
        };
        if tag.is_channel() {
            self.feed.has_channel = true;
            let about = attributes(raw)
                .filter(|(attribute, _)| *attribute == "rdf:about")
                .last();
            if let Some((_, about)) = about {
                self.feed.id = present(&about);
            }
        }
        if self.dialect.format != Format::Cdf {
            self.feed.scope = Some(inherited.scope.clone());
        } else if self.feed.scope.is_none() {
            // CDF says in the start tag of the outermost channel what others say in elements.
            let tag = grow(&format!("<channel{raw}/>"), &inherited.bindings);
            self.feed
                .children
                .extend(tag.map(|grown| (grown.element, inherited.scope.clone())));
            self.feed.scope = Some(inherited.scope.clone());
        }
    }

    fn feed_child(&mut self, span: Range<usize>) {
        if self.dialect.format == Format::Cdf && self.containers.len() > 1 {
            // The heading of a nested channel is not that of the document.
            return;
        }
        let Inherited {
            bindings, scope, ..
        } = &**self.containers.inherited();
        self.state.mended |= self
            .feed
            .add(&self.text[span], bindings, scope, &mut self.notes);
    }

    fn keep(&mut self, open: OpenEntry<'t>, end: usize) {
        let inherited = Arc::clone(self.containers.inherited());
        let raw = RawEntry::of_markup(&self.text[open.start..end], Arc::clone(&inherited));
        let names = self.certain_names(&open, &inherited);
        self.entries.push(CutEntry {
            raw,
            names,
            open,
            inherited,
        });
    }

    /// Reads the names that are the entry's for certain.
    fn certain_names(&self, entry: &OpenEntry<'t>, inherited: &Inherited) -> EntryNames {
        let mut names = EntryNames::default();
        if self.dialect.format == Format::Rdf && entry.attributes.contains("about") {
            let tag = format!("<item{}/>", entry.attributes);
            names.about =
                grow(&tag, &inherited.bindings).and_then(|grown| rdf::about(&grown.element));
        }
        if self.dialect.format == Format::Cdf {
            let tag = format!("<item{}/>", entry.attributes);
            names.id = grow(&tag, &inherited.bindings).and_then(|grown| cdf::href(&grown.element));
        }
        let bindings = declared(&inherited.bindings, entry.attributes);
        for span in &entry.certain {
            names.read(&self.text[span.clone()], &self.dialect, &bindings);
        }
        names
    }

    /// Reads the names that count only if nothing better names an entry. In most documents every
    /// entry has something better.
    fn read_possible_names(&mut self) {
        if self.entries.iter().all(|entry| entry.names.is_certain()) {
            return;
        }
        for CutEntry {
            names,
            open,
            inherited,
            ..
        } in &mut self.entries
        {
            let bindings = declared(&inherited.bindings, open.attributes);
            for span in &open.possible {
                names.read(&self.text[span.clone()], &self.dialect, &bindings);
            }
        }
    }

    /// Leaves out what remains of broken entries that nothing names. A link or a title does only
    /// where no entry has something better: what would have named it may be what is missing.
    fn drop_nameless(&mut self) {
        if !self.entries.iter().any(|entry| entry.open.broken) {
            return;
        }
        let any_certain = self.entries.iter().any(|entry| entry.names.is_certain());
        let Self {
            entries,
            notes,
            state,
            ..
        } = self;
        entries.retain(|CutEntry { names, open, .. }| {
            let is_named = names.is_certain()
                || (!any_certain && (names.link.is_some() || names.title.is_some()));
            if open.broken && !is_named {
                state.lost = true;
                notes.add(Note::EntryLost(
                    "it is cut before anything names it".to_owned(),
                ));
                return false;
            }
            if open.broken {
                notes.add(Note::Other(
                    "an entry is cut in the middle; what was whole of it is kept".to_owned(),
                ));
            }
            true
        });
    }

    /// The document is at its end.
    fn finish(
        mut self,
        root: &str,
        cut_at: Option<usize>,
        mended: bool,
    ) -> Result<CutMarkup, NotAFeed> {
        self.read_possible_names();
        self.drop_nameless();
        if self.state.full {
            self.notes.add_first(Note::TooManyEntries);
        } else if cut_at.is_some() || !self.open.is_empty() {
            self.notes.add_first(Note::Truncated);
        }
        if self.state.mended || mended {
            self.notes.add_first(Note::Mismatched);
        }
        self.state.lost |=
            self.entry.is_some() || cut_at.is_some_and(|at| signs::hold_entry(&self.text[at..]));
        let mut has_no_whole_entry = self.entries.is_empty() && self.state.lost;
        if let Some(entry) = self.entry.take_if(|_| has_no_whole_entry) {
            self.keep(entry, cut_at.unwrap_or(self.text.len()));
        }
        // RDF is an envelope for anything; the other roots are those of feeds, however empty.
        let is_rss = |namespace| Vocabulary::of(namespace) == Vocabulary::Rss;
        let is_other_rdf = self.dialect.format == Format::Rdf
            && !self
                .containers
                .outermost()
                .bindings
                .namespaces()
                .any(is_rss);
        let is_empty = self.entries.is_empty() && !has_no_whole_entry;
        if is_empty && !self.feed.has_channel && is_other_rdf {
            return Err(NotAFeed::OtherRdf {
                root: root.to_owned(),
            });
        }
        has_no_whole_entry |= self.entries.is_empty() && signs::hold_entry(self.text);
        let scope = self
            .feed
            .scope
            .take()
            .unwrap_or_else(|| self.containers.outermost().scope.clone());
        Ok(CutMarkup {
            dialect: self.dialect,
            scope,
            feed: self.feed,
            entries: self
                .entries
                .into_iter()
                .map(|entry| (entry.raw, entry.names))
                .collect(),
            notes: self.notes,
            has_no_whole_entry,
        })
    }
}

/// True when a start tag declares a default namespace.
fn declares(raw: &str) -> bool {
    raw.contains("xmlns=")
}
