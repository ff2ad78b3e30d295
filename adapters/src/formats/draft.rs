//! An entry while it is being read: several vocabularies may offer the same field, and the best offer wins.

use crate::entry::notes::Notes;
use crate::extensions::{media_rss, tags};
use crate::formats::{Dialect, Place};
use crate::text::{date, present, uri};
use crate::vocabulary::Vocabulary;
use crate::{Body, Category, Date, Element, Enclosure, Entry, Link, Note, PROXIED, Person, Source, Text};

/// How many foreign elements an entry keeps, nested ones counted; the rest are dropped with a note.
const FOREIGN_ELEMENTS_MAX: usize = 1024;

/// How many links, people, categories or enclosures are kept of one entry or head; the rest are dropped, those of
/// an entry with a note. It also keeps
/// the search for repetitions from growing with the square of hostile input.
pub(super) const VALUES_MAX: usize = 1024;

/// How good an offer is; the first of the best wins.
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

/// A field with the rank of what is in it.
#[derive(Debug)]
struct Offers<T>(Option<(Rank, T)>);

impl<T> Default for Offers<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Offers<T> {
    fn offer(&mut self, rank: Rank, value: T) {
        if self.0.as_ref().is_none_or(|(best, _)| rank < *best) {
            self.0 = Some((rank, value));
        }
    }

    /// As `offer`, but the last of the best wins.
    fn offer_anew(&mut self, rank: Rank, value: T) {
        if self.0.as_ref().is_none_or(|(best, _)| rank <= *best) {
            self.0 = Some((rank, value));
        }
    }

    fn take(self) -> Option<T> {
        self.0.map(|(_, value)| value)
    }
}

/// An unfinished entry.
pub(crate) struct Draft<'d> {
    dialect: &'d Dialect,
    place: &'d Place,
    entry: Entry,
    notes: Notes,
    id: Offers<String>,
    title: Offers<Text>,
    summary: Offers<Text>,
    /// What stands beside the body of RSS, and says less.
    lead: Offers<Text>,
    content: Offers<Body>,
    published: Offers<Date>,
    updated: Offers<Date>,
    /// A URL to stand in for a missing permalink.
    permalink: Offers<String>,
    /// The permalink before a feed proxy replaced it.
    original_link: Option<String>,
    fallback_authors: Vec<Person>,
    foreign_elements: usize,
}

impl<'d> Draft<'d> {
    pub(crate) fn new(dialect: &'d Dialect, place: &'d Place) -> Self {
        Self {
            dialect,
            place,
            entry: Entry::default(),
            notes: Notes::default(),
            id: Offers::default(),
            title: Offers::default(),
            summary: Offers::default(),
            lead: Offers::default(),
            content: Offers::default(),
            published: Offers::default(),
            updated: Offers::default(),
            permalink: Offers::default(),
            original_link: None,
            fallback_authors: Vec::new(),
            foreign_elements: 0,
        }
    }

    pub(crate) fn place(&self) -> &'d Place {
        self.place
    }

    pub(crate) fn vocabulary(&self, namespace: &str) -> Vocabulary {
        self.dialect.vocabulary(namespace)
    }

    /// The vocabulary of the document's own format.
    pub(crate) fn native(&self) -> Vocabulary {
        self.dialect.native()
    }

    pub(crate) fn id(&mut self, rank: Rank, id: &str) {
        if let Some(id) = present(id) {
            self.id.offer(rank, id);
        }
    }

    pub(crate) fn title(&mut self, rank: Rank, title: Option<Text>) {
        if let Some(title) = title {
            self.title.offer(rank, title.trimmed());
        }
    }

    pub(crate) fn summary(&mut self, rank: Rank, summary: Option<Text>) {
        if let Some(summary) = summary {
            self.summary.offer(rank, summary);
        }
    }

    /// A summary in a format whose body is elsewhere called a summary too.
    pub(crate) fn lead(&mut self, lead: Option<Text>) {
        if let Some(lead) = lead {
            self.lead.offer(Rank::Native, lead);
        }
    }

    pub(crate) fn content(&mut self, rank: Rank, content: Option<Body>) {
        if let Some(content) = content {
            self.content.offer(rank, content);
        }
    }

    /// Software that writes a date twice corrects itself: the last one holds, as other readers have it.
    pub(crate) fn published(&mut self, rank: Rank, raw: &str) {
        if let Some(date) = self.date(raw) {
            self.published.offer_anew(rank, date);
        }
    }

    pub(crate) fn updated(&mut self, rank: Rank, raw: &str) {
        if let Some(date) = self.date(raw) {
            self.updated.offer_anew(rank, date);
        }
    }

    fn date(&mut self, raw: &str) -> Option<Date> {
        date::read(raw, &mut self.notes)
    }

    /// A URL that may be the permalink if no link is given.
    pub(crate) fn permalink(&mut self, rank: Rank, url: String) {
        self.permalink.offer(rank, url);
    }

    pub(crate) fn original_link(&mut self, url: String) {
        self.original_link.get_or_insert(url);
    }

    /// A link; enclosures find their own way.
    pub(crate) fn link(&mut self, link: Link) {
        if link.rel == "enclosure" {
            self.enclosure(Enclosure {
                url: link.href,
                media_type: link.media_type,
                length: link.length,
                title: link.title,
            });
        } else {
            let room = has_room(&self.entry.links);
            add(&mut self.entry.links, link);
            self.limited(room, "links");
        }
    }

    pub(crate) fn enclosure(&mut self, enclosure: Enclosure) {
        let room = has_room(&self.entry.enclosures);
        add(&mut self.entry.enclosures, enclosure);
        self.limited(room, "enclosures");
    }

    pub(crate) fn author(&mut self, rank: Rank, person: Option<Person>) {
        let Some(person) = person else { return };
        let authors =
            if rank == Rank::Fallback { &mut self.fallback_authors } else { &mut self.entry.authors };
        let room = has_room(authors);
        add_person(authors, person);
        self.limited(room, "authors");
    }

    pub(crate) fn contributor(&mut self, person: Option<Person>) {
        if let Some(person) = person {
            let room = has_room(&self.entry.contributors);
            add_person(&mut self.entry.contributors, person);
            self.limited(room, "contributors");
        }
    }

    pub(crate) fn category(&mut self, category: Category) {
        let room = has_room(&self.entry.categories);
        add(&mut self.entry.categories, category);
        self.limited(room, "categories");
    }

    /// Says that there was no room for something.
    fn limited(&mut self, room: bool, what: &str) {
        if !room {
            self.notes.add(Note::Other(format!("more than {VALUES_MAX} {what} in one entry")));
        }
    }

    pub(crate) fn rights(&mut self, rights: Option<Text>) {
        if self.entry.rights.is_none() {
            self.entry.rights = rights;
        }
    }

    pub(crate) fn comments(&mut self, url: String) {
        self.entry.comments.get_or_insert(url);
    }

    pub(crate) fn language(&mut self, language: &str) {
        if let Some(language) = present(language) {
            self.entry.language = Some(super::language(language));
        }
    }

    pub(crate) fn source(&mut self, source: Source) {
        self.entry.source.get_or_insert_with(|| Box::new(source));
    }

    pub(crate) fn notes(&mut self) -> &mut Notes {
        &mut self.notes
    }

    pub(crate) fn foreign(&mut self, element: Element) {
        let size = element.size();
        if self.foreign_elements + size > FOREIGN_ELEMENTS_MAX {
            self.notes
                .add(Note::Other(format!("more than {FOREIGN_ELEMENTS_MAX} foreign elements in one entry")));
            return;
        }
        self.foreign_elements += size;
        self.entry.foreign.push(element);
    }

    /// The entry, with what is missing filled from second choices.
    pub(crate) fn finish(mut self) -> (Entry, Notes) {
        let media = media_rss::read(&self.entry.foreign, self.place);
        if self.entry.enclosures.is_empty() {
            self.limited(!media.full, "enclosures");
            self.entry.enclosures = media.enclosures;
        }
        self.title(Rank::Fallback, media.title);
        if self.content.0.as_ref().is_none_or(|(_, content)| content.text.value.is_empty()) {
            self.summary(Rank::Fallback, media.description);
        }
        let room = tags::settle(&mut self.entry.categories, &self.entry.foreign);
        self.limited(room, "categories");
        self.settle_links();
        let mut entry = self.entry;
        entry.id = self.id.take();
        entry.title = self.title.take();
        entry.content = self.content.take();
        let (mut summary, mut lead) = (self.summary.take(), self.lead.take());
        entry.published = self.published.take();
        entry.updated = self.updated.take();
        if entry.authors.is_empty() {
            entry.authors = self.fallback_authors;
        }
        // RSS has one body: alone it is the content, beside a fuller one it is the summary.
        if entry.content.is_none() && self.dialect.native() == Vocabulary::Rss {
            let body = summary.take().or_else(|| lead.take());
            entry.content = body.map(|text| Body { text, ..Body::default() });
        }
        entry.summary = summary.or(lead);
        (entry, self.notes)
    }

    fn settle_links(&mut self) {
        let links = &mut self.entry.links;
        let alternate = links.iter().position(|link| link.rel == "alternate");
        match (alternate, self.original_link.take(), self.permalink.0.take()) {
            (Some(place), Some(original), _) if links[place].href != original => {
                links[place].rel = PROXIED.to_owned();
                links.insert(place, alternate_link(original));
            }
            (None, Some(url), _) | (None, None, Some((_, url))) => links.insert(0, alternate_link(url)),
            _ => {}
        }
    }
}

/// A permalink.
pub(crate) fn alternate_link(href: String) -> Link {
    Link { href, rel: "alternate".to_owned(), ..Link::default() }
}

/// Whether there is room for another value.
pub(crate) fn has_room<T>(values: &[T]) -> bool {
    values.len() < VALUES_MAX
}

/// Adds what is not there yet.
pub(crate) fn add<T: PartialEq>(values: &mut Vec<T>, value: T) {
    if has_room(values) && !values.contains(&value) {
        values.push(value);
    }
}

/// Adds a person, or what is new about one who is there already.
pub(crate) fn add_person(people: &mut Vec<Person>, person: Person) {
    if !has_room(people) {
        return;
    }
    let same = |a: &Option<String>, b: &Option<String>| a.is_some() && a == b;
    let known =
        people.iter_mut().find(|known| same(&known.name, &person.name) || same(&known.email, &person.email));
    match known {
        Some(known) => {
            known.name = known.name.take().or(person.name);
            known.email = known.email.take().or(person.email);
            known.uri = known.uri.take().or(person.uri);
            known.byline = known.byline.take().or(person.byline);
        }
        None => add(people, person),
    }
}

/// Whether a permalink can be made of an id.
pub(crate) fn is_web_url(text: &str) -> bool {
    let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
    uri::is_absolute(text) && (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https"))
}
