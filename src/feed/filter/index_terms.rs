//! Terms by which an index finds the items that a filter may show: those of an item, and those that
//! a filter asks for. An index may name too many items, because each is held against the filter
//! itself, and never too few; how it keeps them is a store's business.

use super::{
    Deletion, Filter, FilterTerms, ItemWords,
    folding::{folded, runs_on},
    is_shown,
};
use crate::item::Item;
use everfeed_adapters::{Entry, Person};

/// A word or another term of an item, as a number that stays the same for ever. Few terms share
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexTerm(pub u32);

/// Clause of a search in an index: an item has at least one of its terms.
pub type IndexClause = Vec<IndexTerm>;

/// Terms of an item at most; one with more has to be looked at in every search.
pub const TERMS_PER_ITEM_MAX: usize = 20_000;

impl IndexTerm {
    /// Numbers below this one are never given to a term, so that an index can use them for lists of
    /// its own.
    pub const FIRST: u32 = 16;

    fn of(kind: TermKind, value: &str) -> Self {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&[kind as u8]);
        hasher.update(value.as_bytes());
        Self(hasher.finalize().max(Self::FIRST))
    }
}

/// Kinds of terms. Their numbers are in files.
#[derive(Clone, Copy)]
enum TermKind {
    Word = 1,
    /// One sign, or two neighbours, of a script without spaces.
    Signs = 2,
    Category = 3,
    Author = 4,
    /// The entry names no author, so that it may have its feed's.
    NoAuthor = 5,
    /// The first part of a language tag.
    Language = 6,
    /// The entry names no language, so that it may have its feed's.
    NoLanguage = 7,
    Enclosure = 8,
    Gone = 9,
}

/// The terms of an item, sorted, each once; `None` for more than [`TERMS_PER_ITEM_MAX`].
pub fn index_terms(item: &Item) -> Option<Vec<IndexTerm>> {
    terms_of(item, &ItemWords::default())
}

/// The same of an item whose words may be folded already.
pub(super) fn terms_of(item: &Item, words: &ItemWords) -> Option<Vec<IndexTerm>> {
    let mut terms = Vec::new();
    match item.entry() {
        None => terms.push(IndexTerm::of(TermKind::Gone, "")),
        Some(entry) => {
            for word in words.of(entry).each() {
                terms_of_word(word, true, &mut terms);
            }
            terms_of_names(entry, &mut terms);
        }
    }
    terms.sort_unstable();
    terms.dedup();
    (terms.len() <= TERMS_PER_ITEM_MAX).then_some(terms)
}

impl Filter {
    /// The clauses that every item meets which the filter shows; none when it leaves nothing to an
    /// index.
    pub fn index_clauses(&self) -> Vec<IndexClause> {
        match self {
            Self::All | Self::Live => Vec::new(),
            Self::Terms(terms) => terms.index_clauses(),
        }
    }
}

impl FilterTerms {
    fn index_clauses(&self) -> Vec<IndexClause> {
        let Self {
            phrases,
            author,
            category,
            deletion,
            has_enclosure,
            language,
        } = self;
        let mut terms = Vec::new();
        for word in phrases.iter().flat_map(|phrase| phrase.split(' ')) {
            terms_of_word(word, false, &mut terms);
        }
        terms.extend(
            category
                .as_deref()
                .map(|category| IndexTerm::of(TermKind::Category, category)),
        );
        if *has_enclosure {
            terms.push(IndexTerm::of(TermKind::Enclosure, ""));
        }
        if *deletion == Deletion::Only {
            terms.push(IndexTerm::of(TermKind::Gone, ""));
        }
        terms.sort_unstable();
        terms.dedup();
        let mut clauses: Vec<IndexClause> = terms.into_iter().map(|term| vec![term]).collect();
        if let Some(author) = author {
            clauses.push(vec![
                IndexTerm::of(TermKind::Author, author),
                IndexTerm::of(TermKind::NoAuthor, ""),
            ]);
        }
        if let Some(language) = language {
            let language = language.split('-').next().unwrap_or_default();
            clauses.push(vec![
                IndexTerm::of(TermKind::Language, language),
                IndexTerm::of(TermKind::NoLanguage, ""),
            ]);
        }
        clauses
    }
}

/// The terms of a folded word. In a script without spaces, part of a word is met too: it is known
/// by the pairs of its signs, and a single sign by itself, which is needed for texts (`alone`) and
/// not for what is searched for in more signs.
fn terms_of_word(word: &str, alone: bool, terms: &mut Vec<IndexTerm>) {
    if !word.chars().next().is_some_and(runs_on) {
        terms.push(IndexTerm::of(TermKind::Word, word));
        return;
    }
    let mut behind = word
        .char_indices()
        .skip(1)
        .map(|(at, _)| at)
        .chain([word.len()])
        .peekable();
    let mut from = 0;
    let is_single = word.chars().nth(1).is_none();
    while let Some(to) = behind.next() {
        if alone || is_single {
            terms.push(IndexTerm::of(TermKind::Signs, &word[from..to]));
        }
        if let Some(end) = behind.peek() {
            terms.push(IndexTerm::of(TermKind::Signs, &word[from..*end]));
        }
        from = to;
    }
}

/// The terms of an entry besides its words.
fn terms_of_names(entry: &Entry, terms: &mut Vec<IndexTerm>) {
    for tag in &entry.categories {
        let names = [Some(&tag.term), tag.label.as_ref()];
        terms.extend(
            names
                .into_iter()
                .flatten()
                .map(|name| IndexTerm::of(TermKind::Category, &folded(name))),
        );
    }
    let of_sources = entry.source.iter().flat_map(|source| &source.authors);
    for Person {
        name, email, uri, ..
    } in entry.authors.iter().chain(of_sources)
    {
        let names = [name, email, uri].into_iter().flatten();
        terms.extend(names.map(|name| IndexTerm::of(TermKind::Author, &folded(name))));
    }
    if entry.authors.is_empty() {
        terms.push(IndexTerm::of(TermKind::NoAuthor, ""));
    }
    let content = entry
        .content
        .as_ref()
        .and_then(|body| body.text.language.as_ref());
    let title = entry
        .title
        .as_ref()
        .and_then(|title| title.language.as_ref());
    let named = terms.len();
    for language in [entry.language.as_ref(), content, title]
        .into_iter()
        .flatten()
    {
        let language = language.trim().to_ascii_lowercase();
        let primary = language.split(['-', '_']).next().unwrap_or_default();
        if !primary.is_empty() {
            terms.push(IndexTerm::of(TermKind::Language, primary));
        }
    }
    if terms.len() == named {
        terms.push(IndexTerm::of(TermKind::NoLanguage, ""));
    }
    if entry.attached().any(|file| is_shown(&file)) {
        terms.push(IndexTerm::of(TermKind::Enclosure, ""));
    }
}
