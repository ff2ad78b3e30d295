//! The content digest, which changes when an entry is edited (POLLING 1.3). Anything that churns
//! without an edit is left out.

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::text::session::without_session;
use crate::vocabulary::Vocabulary;
use crate::{Element, Entry, Link, Node, Person, Text};

/// Version of the digest. It changes whenever the digest of an unchanged entry may change, so that
/// a better parser is not taken for an edit.
pub const DIGEST_VERSION: u8 = 3;

/// Sixteen bytes of SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize)]
pub struct Digest(pub [u8; 16]);

impl Digest {
    /// Digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let full = Sha256::digest(bytes);
        let mut short = [0; 16];
        short.copy_from_slice(&full[..16]);
        Self(short)
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl Entry {
    /// Digest over title, canonical links, content, summary, people, categories, enclosures, the
    /// published date as written, rights, language, and foreign markup that is content.
    ///
    /// Not covered: the id (it says which entry this is), `updated` and `source` (they churn on
    /// every build of a planet), the links that serve the feed rather than the reader, and counters
    /// of comments, votes and views. Links count without `http:` or `https:`, because a blog that
    /// moves to TLS has not edited its archive, and without sessions, which differ each time.
    pub fn digest(&self) -> Digest {
        let mut builder = DigestBuilder::default();
        builder.text(self.title.as_ref());
        builder.text(self.summary.as_ref());
        builder.option(self.content.as_ref(), |builder, content| {
            builder.text(Some(&content.text));
            builder.string(content.media_type.as_deref());
            builder.url(content.src.as_deref());
        });
        builder.list(
            self.links.iter().filter(|link| is_canonical(link)),
            |builder, link| {
                builder.string(Some(&link.rel));
                builder.url(Some(&link.href));
            },
        );
        builder.list(&self.authors, DigestBuilder::person);
        builder.list(&self.contributors, DigestBuilder::person);
        builder.list(&self.categories, |builder, category| {
            builder.string(Some(&category.term));
            builder.string(category.scheme.as_deref());
            builder.string(category.label.as_deref());
        });
        builder.list(&self.enclosures, |builder, enclosure| {
            builder.url(Some(&enclosure.url));
            builder.string(enclosure.media_type.as_deref());
            builder.string(enclosure.length.as_deref());
            builder.string(enclosure.title.as_deref());
        });
        builder.string(self.published.as_ref().map(|date| date.raw.as_str()));
        builder.text(self.rights.as_ref());
        builder.string(
            self.language
                .as_deref()
                .filter(|language| !language.is_empty()),
        );
        builder.list(
            self.foreign.iter().filter(|element| !is_counter(element)),
            DigestBuilder::element,
        );
        builder.finish()
    }
}

/// Links that are about what the entry says, not about the feed's own plumbing.
fn is_canonical(link: &Link) -> bool {
    matches!(link.rel.as_str(), "alternate" | "related" | "via")
}

/// Elements that count what readers did.
fn is_counter(element: &Element) -> bool {
    // The name first: it is the cheaper question, and every element is asked.
    let vocabulary = match element.name.as_str() {
        "comments" | "hit_parade" => Vocabulary::Slash,
        "total" => Vocabulary::Thread,
        "community" => Vocabulary::MediaRss,
        _ => return false,
    };
    Vocabulary::of(&element.ns) == vocabulary
}

/// A hash that no two different sequences of fields share: every string goes in behind its length,
/// every list behind a mark and before another.
#[derive(Default)]
struct DigestBuilder(Sha256);

impl DigestBuilder {
    fn string(&mut self, string: Option<&str>) {
        self.option(string, |builder, string| {
            builder.0.update((string.len() as u64).to_le_bytes());
            builder.0.update(string);
        });
    }

    fn url(&mut self, url: Option<&str>) {
        let bare = |url| {
            let url: &str = url;
            without_session(
                url.strip_prefix("https:")
                    .or_else(|| url.strip_prefix("http:"))
                    .unwrap_or(url),
            )
        };
        self.string(url.map(bare).as_deref());
    }

    fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.0.update([u8::from(value.is_some())]);
        if let Some(value) = value {
            write(self, value);
        }
    }

    fn list<T>(&mut self, items: impl IntoIterator<Item = T>, write: impl Fn(&mut Self, T)) {
        for item in items {
            self.0.update([2]);
            write(self, item);
        }
        self.0.update([3]);
    }

    fn text(&mut self, text: Option<&Text>) {
        self.option(text, |builder, text| {
            builder.0.update([text.kind as u8]);
            builder.string(Some(&text.value));
        });
    }

    fn person(&mut self, person: &Person) {
        self.string(person.name.as_deref());
        self.string(person.email.as_deref());
        self.url(person.uri.as_deref());
    }

    /// Attributes are sorted: their order says nothing. White space between elements says nothing
    /// either.
    fn element(&mut self, element: &Element) {
        self.string(Some(&element.ns));
        self.string(Some(&element.name));
        let mut attributes: Vec<_> = element
            .attributes
            .iter()
            .map(|a| (&a.ns, &a.name, &a.value))
            .collect();
        attributes.sort_unstable();
        self.list(attributes, |builder, (ns, name, value)| {
            [ns, name, value]
                .map(|part| builder.string(Some(part)))
                .into_iter()
                .collect()
        });
        let is_counted = |node: &&Node| matches!(node, Node::Element(child) if is_counter(child));
        self.list(
            element.children.iter().filter(|node| !is_counted(node)),
            |builder, node| match node {
                Node::Text(text) => builder.string(Some(text.trim())),
                Node::Element(child) => builder.element(child),
            },
        );
    }

    fn finish(self) -> Digest {
        let full = self.0.finalize();
        let mut short = [0; 16];
        short.copy_from_slice(&full[..16]);
        Digest(short)
    }
}

#[cfg(test)]
mod tests;
