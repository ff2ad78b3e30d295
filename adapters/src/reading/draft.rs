//! The draft of an entry: several vocabularies may offer the same field, and the best offer wins.

use crate::note::Notes;
use crate::reading::{
    Dialect, Scope, VALUES_MAX, add, add_categories, add_person, has_room, language_tag,
};
use crate::text::{date, present};
use crate::vocabulary::Vocabulary;
use crate::{
    Body, Category, Date, Element, Enclosure, Entry, IsPermaLink, Link, Note, PROXIED, Person,
    Source, Text,
};

/// Limit of foreign elements that an entry keeps, nested ones counted; the rest are dropped with a
/// note.
const FOREIGN_ELEMENTS_MAX: usize = 1024;

/// Rank of an offer: the first offer of the best rank wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// The format's own element, or one made for this very purpose.
    Native,
    /// Another vocabulary's element of the same meaning.
    Borrowed,
    /// Better than nothing.
    Fallback,
    /// Better than nothing, though made for something else.
    LastResort,
}

/// The best offer for one field so far.
#[derive(Debug)]
struct Best<T>(Option<(Rank, T)>);

impl<T> Default for Best<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Best<T> {
    fn offer(&mut self, rank: Rank, value: T) {
        if self.0.as_ref().is_none_or(|(best, _)| rank < *best) {
            self.0 = Some((rank, value));
        }
    }

    /// Like `offer`, but the last offer of the best rank wins.
    fn offer_anew(&mut self, rank: Rank, value: T) {
        if self.0.as_ref().is_none_or(|(best, _)| rank <= *best) {
            self.0 = Some((rank, value));
        }
    }

    fn get(&self) -> Option<&T> {
        self.0.as_ref().map(|(_, value)| value)
    }

    fn take(self) -> Option<T> {
        self.0.map(|(_, value)| value)
    }
}

/// The fields for which several elements compete.
#[derive(Debug, Default)]
struct Offers {
    id: Best<String>,
    title: Best<Text>,
    summary: Best<Text>,
    /// The text that stands beside the body of RSS, and says less.
    lead: Best<Text>,
    content: Best<Body>,
    published: Best<Date>,
    updated: Best<Date>,
    /// A URL to stand in for a missing permalink.
    permalink: Best<String>,
}

/// An unfinished entry.
pub(crate) struct Draft<'d> {
    dialect: &'d Dialect,
    scope: &'d Scope,
    entry: Entry,
    notes: Notes,
    offers: Offers,
    /// The permalink before a feed proxy replaced it.
    original_link: Option<String>,
    /// Authors that count beside others, after them.
    further_authors: Vec<Person>,
    fallback_authors: Vec<Person>,
    foreign_elements: usize,
}

impl<'d> Draft<'d> {
    /// An empty draft of an entry that stands in `scope`.
    pub(crate) fn new(dialect: &'d Dialect, scope: &'d Scope, notes: Notes) -> Self {
        Self {
            dialect,
            scope,
            entry: Entry::default(),
            notes,
            offers: Offers::default(),
            original_link: None,
            further_authors: Vec::new(),
            fallback_authors: Vec::new(),
            foreign_elements: 0,
        }
    }

    /// The scope of the entry.
    pub(crate) fn scope(&self) -> &'d Scope {
        self.scope
    }

    /// The vocabulary of a namespace in this document.
    pub(crate) fn vocabulary(&self, namespace: &str) -> Vocabulary {
        self.dialect.vocabulary(namespace)
    }

    /// The vocabulary of the document's own format.
    pub(crate) fn native(&self) -> Vocabulary {
        self.dialect.native()
    }

    /// Offers an id.
    pub(crate) fn id(&mut self, rank: Rank, id: &str) {
        if let Some(id) = present(id) {
            self.offers.id.offer(rank, id);
        }
    }

    /// Offers the guid of RSS as the id; the first one holds.
    pub(crate) fn guid(&mut self, guid: &str, is_permalink: IsPermaLink) {
        self.id(Rank::Native, guid);
        self.entry.is_permalink.get_or_insert(is_permalink);
    }

    /// Offers a title.
    pub(crate) fn title(&mut self, rank: Rank, title: Option<Text>) {
        if let Some(title) = title {
            self.offers.title.offer(rank, title.trimmed());
        }
    }

    /// Offers a summary.
    pub(crate) fn summary(&mut self, rank: Rank, summary: Option<Text>) {
        if let Some(summary) = summary {
            self.offers.summary.offer(rank, summary);
        }
    }

    /// Offers what a format whose body is elsewhere calls a summary, too.
    pub(crate) fn lead(&mut self, lead: Option<Text>) {
        if let Some(lead) = lead {
            self.offers.lead.offer(Rank::Native, lead);
        }
    }

    /// Offers a content.
    pub(crate) fn content(&mut self, rank: Rank, content: Option<Body>) {
        if let Some(content) = content {
            self.offers.content.offer(rank, content);
        }
    }

    /// True while no content was offered, or one without a text.
    pub(crate) fn lacks_text(&self) -> bool {
        self.offers
            .content
            .get()
            .is_none_or(|content| content.text.value.is_empty())
    }

    /// Offers a date of publication. Software that writes a date twice corrects itself: the last
    /// one holds, as other readers have it.
    pub(crate) fn published(&mut self, rank: Rank, raw: &str) {
        if let Some(date) = self.date(raw) {
            self.offers.published.offer_anew(rank, date);
        }
    }

    /// Offers a date of the last change; as with publication, the last one holds.
    pub(crate) fn updated(&mut self, rank: Rank, raw: &str) {
        if let Some(date) = self.date(raw) {
            self.offers.updated.offer_anew(rank, date);
        }
    }

    fn date(&mut self, raw: &str) -> Option<Date> {
        date::read_in(raw, self.dialect.slash_order, &mut self.notes)
    }

    /// Offers a URL that may be the permalink if no link is given.
    pub(crate) fn permalink(&mut self, rank: Rank, url: String) {
        self.offers.permalink.offer(rank, url);
    }

    /// Sets the permalink that a feed proxy replaced.
    pub(crate) fn original_link(&mut self, url: String) {
        self.original_link.get_or_insert(url);
    }

    /// Adds a link; one with rel `enclosure` becomes an enclosure.
    pub(crate) fn link(&mut self, link: Link) {
        if link.rel == "enclosure" {
            self.enclosure(Enclosure {
                url: link.href,
                media_type: link.media_type,
                length: link.length,
                title: link.title,
                ..Enclosure::default()
            });
        } else {
            add_limited(&mut self.entry.links, link, "links", &mut self.notes);
        }
    }

    /// Adds an enclosure.
    pub(crate) fn enclosure(&mut self, enclosure: Enclosure) {
        let enclosures = &mut self.entry.enclosures;
        add_limited(enclosures, enclosure, "enclosures", &mut self.notes);
    }

    /// Takes these enclosures if the entry has none; `room` is false when there were more.
    pub(crate) fn enclosures_if_none(&mut self, enclosures: Vec<Enclosure>, room: bool) {
        if self.entry.enclosures.is_empty() {
            self.limited(room, "enclosures");
            self.entry.enclosures = enclosures;
        }
    }

    /// Adds an author; one of rank `Fallback` counts only if the entry gets no other.
    pub(crate) fn author(&mut self, rank: Rank, person: Option<Person>) {
        let Some(person) = person else { return };
        let authors = if rank == Rank::Fallback {
            &mut self.fallback_authors
        } else {
            &mut self.entry.authors
        };
        let room = has_room(authors);
        add_person(authors, person);
        self.limited(room, "authors");
    }

    /// Adds an author whom another vocabulary names, behind those whom the format names, wherever
    /// they stand.
    pub(crate) fn further_author(&mut self, person: Option<Person>) {
        add_person(&mut self.further_authors, person)
    }

    /// Adds a contributor.
    pub(crate) fn contributor(&mut self, person: Option<Person>) {
        if let Some(person) = person {
            let room = has_room(&self.entry.contributors);
            add_person(&mut self.entry.contributors, person);
            self.limited(room, "contributors");
        }
    }

    /// Adds a category.
    pub(crate) fn category(&mut self, category: Category) {
        let categories = &mut self.entry.categories;
        add_limited(categories, category, "categories", &mut self.notes);
    }

    /// Adds those categories whose term is new.
    pub(crate) fn further_categories(&mut self, categories: Vec<Category>) {
        let room = add_categories(&mut self.entry.categories, categories);
        self.limited(room, "categories");
    }

    /// Notes that there was no room for something.
    fn limited(&mut self, room: bool, what: &str) {
        if !room {
            self.notes.add(limit_note(what));
        }
    }

    /// Sets the copyright; the first one holds.
    pub(crate) fn rights(&mut self, rights: Option<Text>) {
        if self.entry.rights.is_none() {
            self.entry.rights = rights;
        }
    }

    /// Sets the URL of the comments page; the first one holds.
    pub(crate) fn comments(&mut self, url: String) {
        self.entry.comments.get_or_insert(url);
    }

    /// Sets the language; the last one holds.
    pub(crate) fn language(&mut self, language: &str) {
        if let Some(language) = present(language) {
            self.entry.language = Some(language_tag(language));
        }
    }

    /// Sets the language of an `xml:lang`, which may say that there is none; the last one holds.
    pub(crate) fn stated_language(&mut self, stated: Option<&str>) {
        if let Some(language) = stated {
            self.entry.language = Some(language_tag(language.trim().to_owned()));
        }
    }

    /// Sets the source feed; the first one holds.
    pub(crate) fn source(&mut self, source: Source) {
        self.entry.source.get_or_insert_with(|| Box::new(source));
    }

    /// The notes on this entry.
    pub(crate) fn notes(&mut self) -> &mut Notes {
        &mut self.notes
    }

    /// Keeps an element as it is.
    pub(crate) fn keep(&mut self, element: Element) {
        let size = element.size();
        if self.foreign_elements + size > FOREIGN_ELEMENTS_MAX {
            self.notes.add(Note::Other(format!(
                "more than {FOREIGN_ELEMENTS_MAX} foreign elements in one entry"
            )));
            return;
        }
        self.foreign_elements += size;
        self.entry.foreign.push(element);
    }

    /// The elements that were kept as they are.
    pub(crate) fn kept(&self) -> &[Element] {
        &self.entry.foreign
    }

    // Decides: Which of several elements fills a field?
    /// The entry, with missing fields filled from second choices.
    pub(crate) fn finish(mut self) -> (Entry, Notes) {
        self.settle_links();
        for person in std::mem::take(&mut self.further_authors) {
            self.author(Rank::Borrowed, Some(person));
        }
        let Self {
            dialect,
            mut entry,
            offers,
            ..
        } = self;
        entry.id = offers.id.take();
        entry.title = offers.title.take();
        entry.content = offers.content.take();
        let (mut summary, mut lead) = (offers.summary.take(), offers.lead.take());
        entry.published = offers.published.take();
        entry.updated = offers.updated.take();
        if entry.authors.is_empty() {
            entry.authors = self.fallback_authors;
        }
        // RSS has one body: alone it is the content, beside a fuller one it is the summary.
        if entry.content.is_none() && dialect.native() == Vocabulary::Rss {
            let body = summary.take().or_else(|| lead.take());
            entry.content = body.map(Body::from);
        }
        entry.summary = summary.or(lead);
        (entry, self.notes)
    }

    fn settle_links(&mut self) {
        let links = &mut self.entry.links;
        let alternate = links.iter().position(|link| link.rel == "alternate");
        let original = self.original_link.take();
        if let Some(at) = alternate {
            if let Some(original) = original.filter(|original| links[at].href != *original) {
                links[at].rel = PROXIED.to_owned();
                links.insert(at, Link::to("alternate", original));
            }
            return;
        }
        let permalink = std::mem::take(&mut self.offers.permalink);
        if let Some(url) = original.or_else(|| permalink.take()) {
            links.insert(0, Link::to("alternate", url));
        }
    }
}

/// Adds a value, with a note where there is no room for it.
fn add_limited<T: PartialEq>(values: &mut Vec<T>, value: T, what: &str, notes: &mut Notes) {
    if !has_room(values) {
        notes.add(limit_note(what));
    }
    add(values, value);
}

fn limit_note(what: &str) -> Note {
    Note::Other(format!("more than {VALUES_MAX} {what} in one entry"))
}
