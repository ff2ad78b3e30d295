//! Parts of a document beside its entries that may tell of one that is cut out of it: comments,
//! processing instructions, values of entities, and tombstones.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

use crate::text::entities::unescape;
use crate::text::markup::split;
use crate::text::markup::tokens::{Token, Tokens, attributes};
use crate::{Format, Hints, Key, RawEntry, slice};

/// Bytes of a word, or of a title, that is taken for the name of an entry where nothing but blanks
/// stand around it.
const WORD_BYTES_MIN: usize = 6;

/// Words in a row that are taken for words of an entry.
const WORDS_MIN: usize = 5;

/// Names that are looked for in the asides of a document; one that holds more of them goes unread.
const NAMES_MAX: usize = 50_000;

/// Names that it costs as much to look for as to cut an aside into entries.
const SLICE_COST: usize = 50;

/// A part of a document beside its entries.
pub(super) struct Aside<'t> {
    /// The bytes that go with it.
    pub(super) span: Range<usize>,
    pub(super) kind: AsideKind<'t>,
}

/// Kind of a part beside the entries.
pub(super) enum AsideKind<'t> {
    /// The inside of a comment or of a processing instruction.
    Said(&'t str),
    /// The value of an entity that the document type declares.
    Entity(&'t str),
    /// The name of an entry that is deleted.
    Tombstone(String),
}

/// The parts of a text of markup beside its entries, in order.
pub(super) fn asides(text: &str) -> Vec<Aside<'_>> {
    let mut found = Vec::new();
    let mut tokens = Tokens::new(text);
    let mut at = 0;
    let mut open: Option<Aside<'_>> = None;
    while let Some((token, span)) = tokens.next() {
        passed_over(text, at..span.start, &mut found);
        at = span.end;
        match token {
            Token::Start {
                name,
                attributes: raw,
                empty,
            } if is_tombstone(name) => {
                // One without an end ends with its tag.
                found.extend(open.take());
                let reference = attributes(raw).find(|(name, _)| *name == "ref");
                let reference = reference.map_or_else(String::new, |(_, name)| name.into_owned());
                let tombstone = Aside {
                    span,
                    kind: AsideKind::Tombstone(reference.trim().to_owned()),
                };
                if empty {
                    found.push(tombstone);
                } else {
                    open = Some(tombstone);
                }
            }
            Token::End { name } if is_tombstone(name) => {
                if let Some(mut tombstone) = open.take() {
                    tombstone.span.end = span.end;
                    found.push(tombstone);
                }
            }
            _ => {}
        }
    }
    found.extend(open);
    passed_over(text, at..text.len(), &mut found);
    found
}

fn is_tombstone(name: &str) -> bool {
    split(name).1 == "deleted-entry"
}

/// The parts of a stretch that holds no elements.
fn passed_over<'t>(text: &'t str, stretch: Range<usize>, found: &mut Vec<Aside<'t>>) {
    let (mut at, end) = (stretch.start, stretch.end);
    // Where the last declaration began.
    let mut declaration = at;
    while at < end {
        let rest = &text[at..end];
        let to = |from: usize, closing: &str| {
            let inside = &rest[from..];
            let length = memchr::memmem::find(inside.as_bytes(), closing.as_bytes());
            length.map_or((inside, rest.len()), |length| {
                (&inside[..length], from + length + closing.len())
            })
        };
        let (length, kind, inner) = if rest.starts_with("<!--") {
            let (said, length) = to(4, "-->");
            (length, Some(AsideKind::Said(said)), 0..length)
        } else if rest.starts_with("<?") {
            let (said, length) = to(2, "?>");
            // The declaration of XML.
            let is_xml = said.starts_with("xml") && !said.starts_with("xml-");
            (
                length,
                (!is_xml).then_some(AsideKind::Said(said)),
                0..length,
            )
        } else if let Some(quote) = rest.get(..1).filter(|quote| matches!(*quote, "\"" | "'")) {
            let (value, length) = to(1, quote);
            let is_entity = declares_entity(&text[declaration..at]);
            let kind = is_entity.then_some(AsideKind::Entity(value));
            (length, kind, 1..1 + value.len())
        } else {
            if rest.starts_with('<') {
                declaration = at;
            }
            let next = memchr::memchr3(b'<', b'"', b'\'', &rest.as_bytes()[1..]);
            (next.map_or(rest.len(), |next| next + 1), None, 0..0)
        };
        found.extend(kind.map(|kind| Aside {
            span: at + inner.start..at + inner.end,
            kind,
        }));
        at += length;
    }
}

/// True for what stands before the value of an entity of the document's own; an external one names
/// a system or a public id there.
fn declares_entity(before: &str) -> bool {
    let name = before.strip_prefix("<!ENTITY").map(str::trim);
    name.is_some_and(|name| {
        !name.is_empty()
            && !name.contains(char::is_whitespace)
            && !matches!(name, "amp" | "lt" | "gt" | "quot" | "apos")
    })
}

/// Entries that are cut out, as the asides of their document are held against them.
pub(super) struct Unwanted<'u, U> {
    is_unwanted: &'u mut U,
    format: Format,
    /// Digests of words in a row.
    words: HashSet<u64>,
    /// Names that may still be looked for.
    names_left: usize,
}

impl<'u, U: FnMut(&Key) -> bool> Unwanted<'u, U> {
    /// Of these entries what they say is known; of others only whether they are unwanted.
    pub(super) fn new(is_unwanted: &'u mut U, format: Format, entries: &[&RawEntry]) -> Self {
        let mut known = HashSet::new();
        for entry in entries {
            let (entry, _) = entry.parse();
            let texts = [&entry.title, &entry.summary].into_iter().flatten();
            let texts = texts.chain(entry.content.as_ref().map(|body| &body.text));
            for text in texts {
                known.extend(rows(&words(&text.value), WORDS_MIN));
            }
            let title = entry.title.as_ref().map(|title| title.value.as_str());
            let title = words(title.unwrap_or_default());
            let bytes: usize = title.iter().map(|word| word.len()).sum();
            if title.len() < WORDS_MIN && bytes >= WORD_BYTES_MIN {
                known.insert(digest(&title));
            }
        }
        Self {
            is_unwanted,
            format,
            words: known,
            names_left: NAMES_MAX,
        }
    }

    /// True for an aside that tells of an unwanted entry: by its name, by its words, or whole.
    pub(super) fn tells(&mut self, aside: &AsideKind<'_>) -> bool {
        match aside {
            AsideKind::Tombstone(reference) => (self.is_unwanted)(&Key::Id(reference.clone())),
            AsideKind::Said(said) | AsideKind::Entity(said) => {
                self.shares_words(said) || self.names(said) || self.shows(said)
            }
        }
    }

    fn shares_words(&self, said: &str) -> bool {
        if self.words.is_empty() {
            return false;
        }
        let words = words(said);
        (1..=WORDS_MIN).any(|length| rows(&words, length).any(|row| self.words.contains(&row)))
    }

    /// True when an unwanted entry is named between tags, in quotes or by a word.
    fn names(&mut self, said: &str) -> bool {
        said.split(['<', '>', '"', '\'']).any(|part| {
            let part = unescape(part);
            let part = part.trim();
            if part.is_empty() {
                return false;
            }
            self.is_name(part)
                || (self.is_unwanted)(&Key::Title(part.to_owned()))
                || part.split_whitespace().any(|word| self.is_named_by(word))
        })
    }

    fn is_named_by(&mut self, word: &str) -> bool {
        if word.len() < WORD_BYTES_MIN {
            return false;
        }
        let is_mark =
            |c: char| matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '(' | ')' | '[' | ']');
        let bare = word.trim_matches(is_mark);
        let value = word.split_once('=').map(|(_, value)| value);
        self.is_name(word)
            || (bare != word && self.is_name(bare))
            || value.is_some_and(|value| value.len() >= WORD_BYTES_MIN && self.is_name(value))
    }

    fn is_name(&mut self, name: &str) -> bool {
        self.is_spent(1) || (self.is_unwanted)(&Key::Id(name.to_owned()))
    }

    /// True when what is said is entries, and an unwanted one is among them.
    fn shows(&mut self, said: &str) -> bool {
        let (begin, end) = match self.format {
            _ if memchr::memmem::find(said.as_bytes(), b"<entry").is_some() => {
                ("<feed xmlns=\"http://www.w3.org/2005/Atom\">", "</feed>")
            }
            _ if memchr::memmem::find(said.as_bytes(), b"<item").is_none() => return false,
            Format::Rdf => (
                "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns=\"http://purl.org/rss/1.0/\"><channel/>",
                "</rdf:RDF>",
            ),
            _ => ("<rss version=\"2.0\"><channel>", "</channel></rss>"),
        };
        if self.is_spent(SLICE_COST) {
            return true;
        }
        let shown = slice(format!("{begin}{said}{end}").as_bytes(), &Hints::default());
        shown.is_ok_and(|shown| {
            shown
                .entries
                .iter()
                .any(|entry| (self.is_unwanted)(&entry.key))
        })
    }

    fn is_spent(&mut self, names: usize) -> bool {
        self.names_left = self.names_left.saturating_sub(names);
        self.names_left == 0
    }
}

/// The words of a text outside of tags.
fn words(text: &str) -> Vec<&str> {
    let outside = text
        .split('<')
        .enumerate()
        .map(|(at, part)| match part.split_once('>') {
            Some((_, behind)) if at > 0 => behind,
            _ => part,
        });
    outside
        .flat_map(|part| part.split(|c: char| !c.is_alphanumeric()))
        .filter(|word| !word.is_empty())
        .collect()
}

/// Digests of every so many words in a row.
fn rows<'w>(words: &'w [&str], length: usize) -> impl Iterator<Item = u64> + 'w {
    words.windows(length).map(digest)
}

fn digest(words: &[&str]) -> u64 {
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    hasher.finish()
}
