//! The walk over a document's tokens that finds where the feed's own elements and the entries begin and end, whatever state
//! the tags are in; their meaning is left to others, except for the few elements that name an entry.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::leaf::{Leaf, ends_first, is_name_of_text};
use super::open_elements::OpenElements;
use super::signs;
use super::{Context, ENTRIES_MAX, Inside, Marks, RawEntry};
use crate::detect::{NotAFeed, Root};
use crate::entry::notes::Notes;
use crate::extensions::tombstones;
use crate::formats::{cdf, rdf};
use crate::reading::{Dialect, Scope};
use crate::text::entities::unescape;
use crate::text::markup::tokens::{Token, Tokens, attributes};
use crate::text::markup::tree::{Bindings, grow, is_void, limit_note};
use crate::text::markup::{is_name, split};
use crate::text::present;
use crate::vocabulary::Vocabulary;
use crate::{Deletion, Digest, Element, Format, Key, Note};

/// How many elements may be open at once; what is deeper is not followed.
const OPEN_MAX: usize = 4096;

/// How many elements of one entry are looked at for its key: of those that name it for certain, and of the others.
const MARKS_MAX: usize = 64;

/// Limit of the elements that stand outside the entries, nested ones counted; the rest is left out with a note.
const FEED_ELEMENTS_MAX: usize = 16_384;

/// How many containers may declare something; what later ones declare is not in force. Every entry of a container shares
/// what that declares, but every container repeats what those around it declared.
const CONTAINERS_MAX: usize = 64;

/// How long a language tag may be that is inherited, in bytes. Those that exist have a few dozen at most.
const LANGUAGE_BYTES_MAX: usize = 256;

/// What was found.
pub(super) struct Cut {
    pub(super) dialect: Dialect,
    pub(super) scope: Scope,
    pub(super) feed_id: Option<String>,
    pub(super) feed_children: Vec<(Element, Scope)>,
    pub(super) entries: Vec<(RawEntry, Marks)>,
    pub(super) deletions: Vec<Deletion>,
    pub(super) notes: Notes,
    /// The only entry is the one that the document is cut in, or none is to be had of those that it holds.
    pub(super) lost: bool,
}

/// Cuts a recognised document.
pub(super) fn cut(root: &Root<'_>, scope: Scope) -> Result<Cut, NotAFeed> {
    let mut cutter = Cutter::new(root, scope);
    let mut tokens = Tokens::new(root.text);
    while let Some((token, span)) = tokens.next() {
        match token {
            Token::Start { name, attributes, empty } => cutter.start(name, attributes, empty, span),
            Token::End { name } => cutter.end(name, span),
            Token::Text(_) | Token::Literal(_) => {}
        }
        if cutter.full {
            break;
        }
    }
    let mended = tokens.is_mended();
    cutter.finish(root.name, tokens.cut_at(), mended)
}

/// An element that encloses the entries: the root, the channel, RSS 1.1's `items`.
struct Container {
    /// Its place among the open elements.
    depth: usize,
    context: Arc<Context>,
}

struct Cutter<'t> {
    text: &'t str,
    dialect: Dialect,
    open: OpenElements<'t>,
    containers: Vec<Container>,
    /// How many there were.
    contained: usize,
    outermost: Arc<Context>,
    /// The open child of the feed or of the entry.
    child: Option<Child>,
    entry: Option<OpenEntry<'t>>,
    feed_id: Option<String>,
    feed_children: Vec<(Element, Scope)>,
    feed_elements: usize,
    feed_scope: Option<Scope>,
    entries: Vec<(RawEntry, Marks)>,
    /// The entries as they stood in the document, in the same order.
    kept: Vec<(OpenEntry<'t>, Arc<Context>)>,
    deletions: Vec<Deletion>,
    notes: Notes,
    seen_channel: bool,
    /// Entries were seen that could not be kept.
    lost: bool,
    mended: bool,
    full: bool,
}

struct Child {
    start: usize,
    depth: usize,
    /// What it may hold, once somebody asked.
    leaf: Option<Leaf>,
}

struct OpenEntry<'t> {
    start: usize,
    depth: usize,
    attributes: &'t str,
    /// Where the children are that name it for certain.
    strong: Vec<Range<usize>>,
    /// Where those are that name it if nothing better does.
    weak: Vec<Range<usize>>,
    /// The entry after it began before it was ended, in the middle of one of its children.
    broken: bool,
}

impl<'t> Cutter<'t> {
    fn new(root: &Root<'t>, scope: Scope) -> Self {
        let dialect = Dialect { format: root.format, own: Vec::new() };
        let outermost = Context { dialect: dialect.clone(), bindings: Bindings::default(), scope };
        Self {
            text: root.text,
            dialect,
            open: OpenElements::default(),
            containers: Vec::new(),
            contained: 0,
            outermost: Arc::new(outermost),
            child: None,
            entry: None,
            feed_id: None,
            feed_children: Vec::new(),
            feed_elements: 0,
            feed_scope: None,
            entries: Vec::new(),
            kept: Vec::new(),
            deletions: Vec::new(),
            notes: Notes::default(),
            seen_channel: false,
            lost: false,
            mended: false,
            full: false,
        }
    }

    fn start(&mut self, name: &'t str, raw: &'t str, empty: bool, span: Range<usize>) {
        if let Some(depth) = self.entry.as_ref().map(|entry| entry.depth) {
            let is_child = self.open.len() == depth + 1;
            if is_child && self.is_entry(name, raw) {
                // An entry cannot be the child of another: somebody forgot the end tag.
                self.mended = true;
                self.close_to(depth, span.start, None);
            } else if !is_child && self.breaks_out(name, raw, span.end) {
                self.mended = true;
                self.break_off(depth, span.start);
            } else {
                if is_child {
                    self.child = Some(Child { start: span.start, depth: self.open.len(), leaf: None });
                }
                self.push(name, empty, &span);
                return;
            }
        }
        self.start_outside(name, raw, empty, span);
    }

    /// Whether a start tag inside an entry's child is that of the next entry: the child, which holds text, was not ended.
    fn breaks_out(&mut self, name: &str, raw: &str, end: usize) -> bool {
        if !self.is_entry(name, raw) {
            return false;
        }
        let context = Arc::clone(self.context());
        let Some(child) = &mut self.child else { return false };
        let text = &self.text[child.start..];
        let leaf = *child.leaf.get_or_insert_with(|| Leaf::of(text, &context.bindings, &context.dialect));
        let in_text = self.open.innermost().is_some_and(|name| is_name_of_text(split(name).1));
        let is_direct = self.open.len() == child.depth + 1;
        // Somebody who embeds an entry in XHTML has to say that it is Atom; some feeds say so of each of their own.
        let declares = |raw: &str| raw.contains("xmlns=");
        let is_declared =
            || declares(raw) && !self.entry.as_ref().is_some_and(|entry| declares(entry.attributes));
        let breaks_out = match leaf {
            Leaf::No => false,
            Leaf::Inner => in_text,
            Leaf::Text => in_text || is_direct,
            Leaf::Deep => is_direct || !is_declared(),
        };
        breaks_out && !self.open.name_at(child.depth).is_some_and(|name| ends_first(name, &self.text[end..]))
    }

    /// Ends the open entry before its open child: what that holds was meant for others, or is not whole.
    fn break_off(&mut self, depth: usize, end: usize) {
        let end = self.child.take().map_or(end, |child| child.start);
        if let Some(entry) = &mut self.entry {
            entry.broken = true;
        }
        self.close_to(depth, end, None);
    }

    fn start_outside(&mut self, name: &'t str, raw: &'t str, empty: bool, span: Range<usize>) {
        if self.is_entry(name, raw) {
            let depth = self.containers.last().map_or(0, |container| container.depth + 1);
            self.mended |= self.open.len() > depth;
            self.close_to(depth.min(self.open.len()), span.start, None);
            if self.entries.len() >= ENTRIES_MAX {
                self.full = true;
                return;
            }
            self.entry = Some(OpenEntry {
                start: span.start,
                depth: self.open.len(),
                attributes: raw,
                strong: Vec::new(),
                weak: Vec::new(),
                broken: false,
            });
        } else if self.child.is_none() {
            if self.is_container(name, raw) {
                self.contain(name, raw);
            } else {
                self.child = Some(Child { start: span.start, depth: self.open.len(), leaf: None });
            }
        }
        self.push(name, empty, &span);
    }

    fn push(&mut self, name: &'t str, empty: bool, span: &Range<usize>) {
        // Beyond the limit only the tag is passed over; an empty element opens nothing anyway.
        if self.open.len() >= OPEN_MAX && !empty {
            self.mended = true;
            self.notes.add(Note::Other(format!("more than {OPEN_MAX} levels of elements")));
            return;
        }
        self.open.push(name);
        if empty || (self.entry.is_some() && is_void(name, "")) {
            self.close_to(self.open.len() - 1, span.end, Some(span.end));
        }
    }

    fn end(&mut self, name: &'t str, span: Range<usize>) {
        let Some(place) = self.open.place_of(name) else {
            self.mended |= !is_void(name, "");
            return;
        };
        self.mended |= place + 1 != self.open.len();
        self.close_to(place, span.start, Some(span.end));
    }

    /// Closes elements until only so many are open. The last of them ends at `own_end` if it was closed by its own tag;
    /// all others end where the tag that closed them begins.
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
        if let Some(Child { start, .. }) = self.child.take_if(|child| child.depth == depth) {
            match &mut self.entry {
                Some(entry) => {
                    // One that lost its end names nothing if it swallowed what stood behind it.
                    let swallowed = || memchr::memchr(b'<', &self.text.as_bytes()[start + 1..end]).is_some();
                    let marks = match Mark::of(name) {
                        Some(Mark::Strong) => Some(&mut entry.strong),
                        Some(Mark::Weak) => Some(&mut entry.weak),
                        None => None,
                    };
                    if let Some(marks) = marks.filter(|marks| marks.len() < MARKS_MAX)
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
        if self.containers.last().is_some_and(|container| container.depth == depth) {
            self.containers.pop();
        }
    }

    fn context(&self) -> &Arc<Context> {
        self.containers.last().map_or(&self.outermost, |container| &container.context)
    }

    /// The namespace of a start tag, given where it stands.
    fn namespace(&self, name: &str, raw: &str) -> String {
        declared(&self.context().bindings, raw).namespace(split(name).0).into_owned()
    }

    fn is_entry(&mut self, name: &str, raw: &str) -> bool {
        let (_, local) = split(name);
        // Some called their Atom entries items. Only where an entry may stand: inside another it would end that.
        let may_stand = self.entry.is_none() && self.child.is_none();
        let is_other =
            || may_stand && ["item", "entry"].iter().any(|other| local.eq_ignore_ascii_case(other));
        if !local.eq_ignore_ascii_case(self.dialect.entry_name()) && !is_other() {
            return false;
        }
        let is_native = self.dialect.vocabulary(&self.namespace(name, raw)) == self.dialect.native();
        self.lost |= !is_native && self.entry.is_none();
        is_native
    }

    /// The root; in it a channel, or RSS 1.1's `items` (in RSS 1.0, one level deeper, that is a list of references).
    fn is_container(&self, name: &str, raw: &str) -> bool {
        let (_, local) = split(name);
        let depth = self.open.len();
        if depth == 0 {
            return self.containers.is_empty() && self.feed_scope.is_none();
        }
        if self.dialect.format == Format::Atom
            || self.containers.last().is_none_or(|last| last.depth + 1 != depth)
        {
            return false;
        }
        if self.dialect.format == Format::Cdf {
            // A channel in a channel is a heading with items of its own.
            return local.eq_ignore_ascii_case("channel");
        }
        let is_items = || local == "items" && Vocabulary::of(&self.namespace(name, raw)) == Vocabulary::Rss;
        depth == 1 && (local.eq_ignore_ascii_case("channel") || is_items())
    }

    /// Opens a container: what it declares is in force for everything in it.
    fn contain(&mut self, name: &str, raw: &str) {
        let outside = Arc::clone(self.context());
        self.contained += 1;
        if self.contained > CONTAINERS_MAX {
            self.notes.add(Note::Other(format!("more than {CONTAINERS_MAX} channels")));
            self.containers.push(Container { depth: self.open.len(), context: outside });
            return;
        }
        let bindings = declared(&outside.bindings, raw).into_owned();
        let namespace = bindings.namespace(split(name).0).into_owned();
        let mut scope = outside.scope.clone();
        let is_channel = split(name).1.eq_ignore_ascii_case("channel");
        for (attribute, value) in attributes(raw) {
            match attribute {
                "xml:base" => scope.rebase(&value, &mut self.notes),
                "xml:lang" => scope.language = present(&value).filter(|tag| tag.len() <= LANGUAGE_BYTES_MAX),
                "rdf:about" if is_channel => self.feed_id = present(&value),
                _ if self.dialect.format == Format::Cdf && attribute.eq_ignore_ascii_case("base") => {
                    scope.rebase(&value, &mut self.notes);
                }
                _ => {}
            }
        }
        // Whatever namespace the document puts its own elements into is the format's; RDF's is that of the envelope.
        if Vocabulary::of(&namespace) != Vocabulary::Rdf && !self.dialect.own.contains(&namespace) {
            self.dialect.own.push(namespace);
        }
        self.seen_channel |= is_channel;
        if self.dialect.format == Format::Cdf {
            self.cdf_channel(raw, &bindings, &scope);
        } else {
            self.feed_scope = Some(scope.clone());
        }
        let context = Arc::new(Context { dialect: self.dialect.clone(), bindings, scope });
        if self.containers.is_empty() {
            self.outermost = Arc::clone(&context);
        }
        self.containers.push(Container { depth: self.open.len(), context });
    }

    /// CDF says in the start tag of the outermost channel what others say in elements.
    fn cdf_channel(&mut self, raw: &str, bindings: &Bindings, scope: &Scope) {
        if self.feed_scope.is_none() {
            let tag = grow(&format!("<channel{raw}/>"), bindings);
            self.feed_children.extend(tag.map(|grown| (grown.element, scope.clone())));
            self.feed_scope = Some(scope.clone());
        }
    }

    fn feed_child(&mut self, span: Range<usize>) {
        if self.dialect.format == Format::Cdf && self.containers.len() > 1 {
            // The heading of a nested channel is not that of the document.
            return;
        }
        let context = Arc::clone(self.context());
        let Some(grown) = grow(&self.text[span], &context.bindings) else { return };
        self.mended |= grown.mended;
        if grown.limited {
            self.notes.add(limit_note());
        }
        if tombstones::is_deletion(&grown.element) {
            if self.deletions.len() < ENTRIES_MAX {
                self.deletions.extend(tombstones::read(&grown.element, &mut self.notes));
            }
            return;
        }
        let size = grown.element.size();
        if self.feed_elements + size > FEED_ELEMENTS_MAX {
            self.notes
                .add(Note::Other(format!("more than {FEED_ELEMENTS_MAX} elements outside the entries")));
            return;
        }
        self.feed_elements += size;
        self.feed_children.push((grown.element, context.scope.clone()));
    }

    fn keep(&mut self, entry: OpenEntry<'t>, end: usize) {
        let context = Arc::clone(self.context());
        let markup = &self.text[entry.start..end];
        let marks = self.strong_marks(&entry, &context);
        let key = Key::Digest(String::new());
        let raw = Digest::of(markup.as_bytes());
        let inside = Inside::Markup { markup: markup.into(), context: Arc::clone(&context) };
        self.kept.push((entry, context));
        self.entries.push((RawEntry { key, raw, inside }, marks));
    }

    /// Reads what names an entry for certain.
    fn strong_marks(&self, entry: &OpenEntry<'t>, context: &Context) -> Marks {
        let mut marks = Marks::default();
        if self.dialect.format == Format::Rdf && entry.attributes.contains("about") {
            let tag = format!("<item{}/>", entry.attributes);
            marks.about = grow(&tag, &context.bindings).and_then(|grown| rdf::about(&grown.element));
        }
        if self.dialect.format == Format::Cdf {
            let tag = format!("<item{}/>", entry.attributes);
            marks.id = grow(&tag, &context.bindings).and_then(|grown| cdf::href(&grown.element));
        }
        self.read_marks(&entry.strong, entry, context, &mut marks);
        marks
    }

    /// Reads what names entries only if nothing better does. In most documents every entry has something better.
    fn read_weak_marks(&mut self) {
        if self.entries.iter().all(|(_, marks)| marks.is_strong()) {
            return;
        }
        let mut entries = std::mem::take(&mut self.entries);
        for ((_, marks), (entry, context)) in entries.iter_mut().zip(&self.kept) {
            self.read_marks(&entry.weak, entry, context, marks);
        }
        self.entries = entries;
    }

    fn read_marks(
        &self,
        spans: &[Range<usize>],
        entry: &OpenEntry<'t>,
        context: &Context,
        marks: &mut Marks,
    ) {
        let bindings = declared(&context.bindings, entry.attributes);
        for span in spans {
            let markup = &self.text[span.clone()];
            if let Some((name, text)) = plain_element(markup) {
                let (prefix, local) = split(name);
                let vocabulary = self.dialect.vocabulary(&bindings.namespace(prefix));
                if let Some(field) = marks.field(vocabulary, local) {
                    *field = field.take().or_else(|| present(&text));
                    continue;
                }
            }
            if let Some(grown) = grow(markup, &bindings) {
                marks.take(&grown.element, self.dialect.vocabulary(&grown.element.ns));
            }
        }
    }

    /// Leaves out what remains of broken entries that nothing names. A link or a title does only where no entry has
    /// something better: what would have named it may be what is missing.
    fn drop_nameless(&mut self) {
        if !self.kept.iter().any(|(entry, _)| entry.broken) {
            return;
        }
        let any_strong = self.entries.iter().any(|(_, marks)| marks.is_strong());
        let kept = std::mem::take(&mut self.kept);
        let entries = std::mem::take(&mut self.entries);
        for (both, (entry, context)) in entries.into_iter().zip(kept) {
            let marks = &both.1;
            let is_named =
                marks.is_strong() || (!any_strong && (marks.link.is_some() || marks.title.is_some()));
            if entry.broken && !is_named {
                self.lost = true;
                self.notes.add(Note::EntryLost("it is cut before anything names it".to_owned()));
                continue;
            }
            if entry.broken {
                self.notes.add(Note::Other(
                    "an entry is cut in the middle; what was whole of it is kept".to_owned(),
                ));
            }
            self.entries.push(both);
            self.kept.push((entry, context));
        }
    }

    /// The document is at its end.
    fn finish(mut self, root: &str, cut_at: Option<usize>, mended: bool) -> Result<Cut, NotAFeed> {
        self.read_weak_marks();
        self.drop_nameless();
        if self.full {
            self.notes.add_first(Note::TooManyEntries);
        } else if cut_at.is_some() || !self.open.is_empty() {
            self.notes.add_first(Note::Truncated);
        }
        if self.mended || mended {
            self.notes.add_first(Note::Mismatched);
        }
        self.lost |= self.entry.is_some() || cut_at.is_some_and(|at| signs::hold_entry(&self.text[at..]));
        let mut lost = self.entries.is_empty() && self.lost;
        if let Some(entry) = self.entry.take_if(|_| lost) {
            self.keep(entry, cut_at.unwrap_or(self.text.len()));
        }
        // RDF is an envelope for anything; the other roots are those of feeds, however empty.
        let is_rss = |namespace| Vocabulary::of(namespace) == Vocabulary::Rss;
        let is_other_rdf =
            self.dialect.format == Format::Rdf && !self.outermost.bindings.namespaces().any(is_rss);
        if !lost && self.entries.is_empty() && !self.seen_channel && is_other_rdf {
            return Err(NotAFeed::OtherRdf { root: root.to_owned() });
        }
        lost |= self.entries.is_empty() && signs::hold_entry(self.text);
        Ok(Cut {
            dialect: self.dialect,
            scope: self.feed_scope.unwrap_or_else(|| self.outermost.scope.clone()),
            feed_id: self.feed_id,
            feed_children: self.feed_children,
            entries: self.entries,
            deletions: self.deletions,
            notes: self.notes,
            lost,
        })
    }
}

impl Marks {
    fn is_strong(&self) -> bool {
        self.guid.is_some() || self.id.is_some() || self.about.is_some()
    }

    fn take(&mut self, element: &Element, vocabulary: Vocabulary) {
        if let Some(field) = self.field(vocabulary, &element.name) {
            *field = field.take().or_else(|| present(&element.characters()));
            return;
        }
        match vocabulary {
            Vocabulary::Cdf if element.name.eq_ignore_ascii_case("a") => {
                self.id = self.id.take().or_else(|| cdf::href(element));
            }
            Vocabulary::Rss | Vocabulary::Atom if element.name.eq_ignore_ascii_case("link") => {
                let is_alternate = element.attribute("rel").is_none_or(|rel| rel.trim() == "alternate");
                if self.link.is_none() && is_alternate {
                    self.link =
                        present(&element.characters()).or_else(|| present(element.attribute("href")?));
                }
            }
            _ => {}
        }
    }

    /// Where the text of an element belongs, if it is one whose text is all that counts.
    fn field(&mut self, vocabulary: Vocabulary, name: &str) -> Option<&mut Option<String>> {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match vocabulary {
            Vocabulary::Rss if is("guid") => Some(&mut self.guid),
            Vocabulary::Atom if is("id") => Some(&mut self.id),
            Vocabulary::Rss | Vocabulary::Atom | Vocabulary::Cdf if is("title") => Some(&mut self.title),
            _ => None,
        }
    }
}

/// How well an element may name its entry.
enum Mark {
    Strong,
    Weak,
}

impl Mark {
    fn of(name: &str) -> Option<Self> {
        let (_, local) = split(name);
        let is_one_of = |known: &[&str]| known.iter().any(|known| local.eq_ignore_ascii_case(known));
        if is_one_of(&["guid", "id", "a"]) {
            return Some(Self::Strong);
        }
        is_one_of(&["link", "title"]).then_some(Self::Weak)
    }
}

/// Name and text of an element that has one text and declares nothing, as nearly all have that name an entry. It means
/// what the grown element would.
fn plain_element(markup: &str) -> Option<(&str, Cow<'_, str>)> {
    let mut tokens = Tokens::new(markup);
    let (Token::Start { name, attributes, empty: false }, _) = tokens.next()? else { return None };
    let text = match tokens.next()?.0 {
        Token::Text(text) => unescape(text),
        Token::Literal(text) => Cow::Borrowed(text),
        Token::Start { .. } | Token::End { .. } => return None,
    };
    let (Token::End { name: ended }, _) = tokens.next()? else { return None };
    let (prefix, local) = split(name);
    let is_plain = name == ended && is_name(local) && (prefix.is_empty() || is_name(prefix));
    (is_plain && !attributes.contains("xmlns")).then_some((name, text))
}

/// The bindings with those that a start tag declares.
fn declared<'b>(outside: &'b Bindings, raw: &str) -> Cow<'b, Bindings> {
    if !raw.contains("xmlns") {
        return Cow::Borrowed(outside);
    }
    let mut bindings = outside.clone();
    bindings.declare(attributes(raw));
    Cow::Owned(bindings)
}
