//! An entry and its parts, in the words that every format shares; not how any format spells them.

use serde::Serialize;
use std::borrow::Cow;

/// Everything kept of one upstream entry, whatever format it came in. URLs are resolved against
/// `xml:base` or the document's URL; ids are never touched beyond trimming XML white space.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// `guid`, `atom:id`, `rdf:about`, JSON `id` or CDF `HREF`: trimmed of XML white space, else
    /// byte-exact (LEGACY I-2).
    pub id: Option<String>,
    /// `isPermaLink` of the guid, when the id is the guid of RSS. Never part of the content digest.
    pub is_permalink: Option<IsPermaLink>,
    /// The title, if there is one.
    pub title: Option<Text>,
    /// `summary` or `description` (when a fuller content stands beside it).
    pub summary: Option<Text>,
    /// The full content: `content`, `content:encoded`, or `description` when nothing fuller exists.
    pub content: Option<Body>,
    /// Links in document order, enclosures excluded. The first with rel `alternate` is the
    /// permalink; `license` names the licence (RFC 4946; `cc:license`, `creativeCommons:license`),
    /// `replies` the comments (RFC 4685; `wfw:commentRss`).
    pub links: Vec<Link>,
    /// Authors.
    pub authors: Vec<Person>,
    /// Contributors.
    pub contributors: Vec<Person>,
    /// Tags.
    pub categories: Vec<Category>,
    /// Attached media.
    pub enclosures: Vec<Enclosure>,
    /// First publication, as the publisher dates it.
    pub published: Option<Date>,
    /// Last change, as the publisher dates it. Churns; never part of the content digest.
    pub updated: Option<Date>,
    /// Copyright or licence text.
    pub rights: Option<Text>,
    /// URL of the comments page (RSS `comments`).
    pub comments: Option<String>,
    /// The language that the entry itself or its content names; when they name none, that of the
    /// feed holds. (An entry is not edited when somebody corrects the language of the feed.) Empty
    /// where `xml:lang=""` says that it has none.
    pub language: Option<String>,
    /// Source of an aggregated entry (`atom:source`, RSS `source`). Churns; never part of the
    /// content digest.
    pub source: Option<Box<Source>>,
    /// Markup from vocabularies that the fields above do not cover, parsed, with its namespaces
    /// resolved.
    pub foreign: Vec<Element>,
}

/// The attribute `isPermaLink` of an RSS guid, as its source has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum IsPermaLink {
    /// Not there: RSS 2.0 then means true.
    Unstated,
    /// `true`.
    True,
    /// `false`, or anything else.
    False,
}

/// Human-readable text and how its markup is to be read (RFC 4287 section 3.1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Text {
    /// Kind of the markup in `value`.
    pub kind: TextKind,
    /// Plain text, an HTML fragment, or the well-formed inside of an XHTML `div`.
    pub value: String,
    /// The language that `xml:lang` gives it, here or around it. Never part of the content digest:
    /// a text is not edited when somebody corrects the language of the feed. Empty where
    /// `xml:lang=""` says that it has none.
    pub language: Option<String>,
    /// The base that `xml:base` gives it, here or around it. References in the markup are absolute
    /// already, except those that are only a fragment.
    pub base: Option<String>,
}

/// Kind of the markup of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub enum TextKind {
    /// No markup: `<` is a less-than sign.
    #[default]
    Plain,
    /// An HTML fragment, possibly ill-formed.
    Html,
    /// The inside of an XHTML `div`, written anew by us: well-formed, default namespace XHTML.
    Xhtml,
    /// Bytes in base64 (RFC 4648 section 4). Only the text of a [`Body`] that has a media type may
    /// be of this kind.
    Base64,
}

/// An entry's content: text, something of another media type, or a reference to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Body {
    /// The text; of other media types the text form as plain text, or base64; empty when only `src`
    /// is given.
    pub text: Text,
    /// The media type when it is none of plain text, HTML and XHTML.
    pub media_type: Option<String>,
    /// URL of the content, when the entry only points to it.
    pub src: Option<String>,
}

/// The relation of the address that a feed proxy put into the place of the permalink, which
/// `feedburner:origLink` still names.
pub const PROXIED: &str = "http://rssnamespace.org/feedburner/ext/1.0#proxied";

/// One link of an entry or a feed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Resolved URL.
    pub href: String,
    /// Relation; `alternate` when the source names none.
    pub rel: String,
    /// Media type, if named.
    pub media_type: Option<String>,
    /// Title, if named.
    pub title: Option<String>,
    /// Language of the target, if named.
    pub hreflang: Option<String>,
    /// Length in bytes as the source wrote it.
    pub length: Option<String>,
}

/// A person or an organisation. At least one field is present.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Person {
    /// Display name.
    pub name: Option<String>,
    /// E-mail address.
    pub email: Option<String>,
    /// Home page.
    pub uri: Option<String>,
    /// The line that name and address were taken from, as RSS and Dublin Core have it:
    /// `jo@example.org (Jo Doe)`.
    pub byline: Option<String>,
}

/// A tag.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Category {
    /// The tag itself.
    pub term: String,
    /// Its vocabulary (Atom `scheme`, RSS `domain`).
    pub scheme: Option<String>,
    /// Its display form.
    pub label: Option<String>,
}

/// Attached media.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Enclosure {
    /// Resolved URL.
    pub url: String,
    /// Media type, if named.
    pub media_type: Option<String>,
    /// Length in bytes as the source wrote it.
    pub length: Option<String>,
    /// Title, if named.
    pub title: Option<String>,
    /// True for a picture that only Media RSS names: it illustrates the post, and is no attachment.
    /// Never part of the content digest.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_illustration: bool,
}

/// A date as written and as understood. The parser reports what it read; whether it is plausible is
/// judged elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Date {
    /// The source's own text, trimmed.
    pub raw: String,
    /// Microseconds since 1970-01-01T00:00:00Z, negative before; `None` when the text could not be
    /// understood.
    pub at_us: Option<i64>,
}

/// Source of an aggregated entry: the metadata of its own feed, as the aggregator copied it
/// (`atom:source`, RFC 4287 section 4.2.11; RSS 2.0 `source`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Source {
    /// Id of the source feed.
    pub id: Option<String>,
    /// Title of the source feed; the text of an RSS `source`.
    pub title: Option<Text>,
    /// Its subtitle.
    pub subtitle: Option<Text>,
    /// Its links, resolved; the `url` of an RSS `source` is one with rel `self`.
    pub links: Vec<Link>,
    /// Its authors: the entry's when it names none.
    pub authors: Vec<Person>,
    /// Its contributors.
    pub contributors: Vec<Person>,
    /// Its categories.
    pub categories: Vec<Category>,
    /// The software that made it.
    pub generator: Option<Generator>,
    /// URL of its icon, resolved.
    pub icon: Option<String>,
    /// URL of its logo, resolved.
    pub logo: Option<String>,
    /// Its copyright.
    pub rights: Option<Text>,
    /// Date of its last change.
    pub updated: Option<Date>,
    /// Other elements that the aggregator wrote there.
    pub foreign: Vec<Element>,
}

/// Software that made a document (RFC 4287 section 4.2.4). At least one field is present.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Generator {
    /// Its name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Its home page, resolved; Atom 0.3 says `url`.
    pub uri: Option<String>,
}

/// One foreign element with its namespace resolved: enough to write it anew, never a slice of
/// bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Element {
    /// Namespace URI, empty for none.
    pub ns: String,
    /// The prefix that the source used, a hint for writers; may be empty.
    pub prefix: String,
    /// Local name.
    pub name: String,
    /// Attributes in document order; namespace declarations left out.
    pub attributes: Vec<Attribute>,
    /// Children in document order.
    pub children: Vec<Node>,
}

/// One attribute of a foreign element.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Attribute {
    /// Namespace URI, empty for none.
    pub ns: String,
    /// The prefix that the source used.
    pub prefix: String,
    /// Local name.
    pub name: String,
    /// Unescaped value.
    pub value: String,
}

/// A child of a foreign element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Node {
    /// Unescaped character data.
    Text(String),
    /// An element.
    Element(Element),
}

impl Entry {
    /// The files that belong to the entry, each once: its enclosures, and the content that it only
    /// points to (RFC 4287 section 4.1.3.2).
    pub fn files(&self) -> Vec<Cow<'_, Enclosure>> {
        let mut files: Vec<Cow<'_, Enclosure>> = Vec::with_capacity(self.enclosures.len());
        let pointed = self.content.as_ref().and_then(|body| {
            let (url, media_type) = (body.src.clone()?, body.media_type.clone());
            Some(Enclosure {
                url,
                media_type,
                ..Enclosure::default()
            })
        });
        for file in self
            .enclosures
            .iter()
            .map(Cow::Borrowed)
            .chain(pointed.map(Cow::Owned))
        {
            match files.iter_mut().find(|known| known.url == file.url) {
                Some(known) if known.says_less_than(&file) => known.to_mut().learn(&file),
                Some(_) => {}
                None => files.push(file),
            }
        }
        files
    }

    /// Those of its files that are attached to it: no pictures that only illustrate it.
    pub fn attached(&self) -> impl Iterator<Item = Cow<'_, Enclosure>> {
        self.files()
            .into_iter()
            .filter(|file| !file.is_illustration)
    }

    /// Gives back the room that its parts have for more: a list with one link has room for four. For
    /// whoever holds many entries at once.
    pub fn shrink_to_fit(&mut self) {
        let content = self.content.as_mut().map(|body| &mut body.text);
        let texts = [self.title.as_mut(), self.summary.as_mut(), content];
        for text in texts.into_iter().flatten() {
            text.value.shrink_to_fit();
        }
        self.links.shrink_to_fit();
        self.authors.shrink_to_fit();
        self.contributors.shrink_to_fit();
        self.categories.shrink_to_fit();
        self.enclosures.shrink_to_fit();
        self.foreign.shrink_to_fit();
    }

    /// The permalink: the first `alternate` link that is a page, else the first.
    pub fn permalink(&self) -> Option<&str> {
        let mut alternates = self.links.iter().filter(|link| link.rel == "alternate");
        let first = alternates.clone().next();
        alternates
            .find(|link| link.is_page())
            .or(first)
            .map(|link| link.href.as_str())
    }
}

impl Enclosure {
    /// True when another mention of the same file says something that this one does not.
    fn says_less_than(&self, other: &Self) -> bool {
        let learns =
            |own: &Option<String>, others: &Option<String>| own.is_none() && others.is_some();
        learns(&self.media_type, &other.media_type)
            || learns(&self.length, &other.length)
            || learns(&self.title, &other.title)
            || (self.is_illustration && !other.is_illustration)
    }

    fn learn(&mut self, other: &Self) {
        let Self {
            url: _,
            media_type,
            length,
            title,
            is_illustration,
        } = self;
        for (own, others) in [
            (media_type, &other.media_type),
            (length, &other.length),
            (title, &other.title),
        ] {
            if own.is_none() {
                own.clone_from(others);
            }
        }
        // Whatever is attached once is attached.
        *is_illustration &= other.is_illustration;
    }
}

impl From<Text> for Body {
    fn from(text: Text) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

impl Category {
    /// A tag that is a word.
    pub(crate) fn of(term: String) -> Self {
        Self {
            term,
            ..Self::default()
        }
    }
}

impl Link {
    /// A link with a relation, and nothing else said of it.
    pub(crate) fn to(rel: &str, href: String) -> Self {
        Self {
            href,
            rel: rel.to_owned(),
            ..Self::default()
        }
    }

    /// True for a link to a page for people, as far as its type tells.
    pub fn is_page(&self) -> bool {
        let bare = |media_type: &str| {
            media_type
                .split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .to_ascii_lowercase()
        };
        let media_type = self.media_type.as_deref().map(bare).unwrap_or_default();
        matches!(
            media_type.as_str(),
            "" | "text/html" | "application/xhtml+xml"
        )
    }
}

impl Source {
    /// URL of the source: of the feed itself, else of its site.
    pub fn url(&self) -> Option<&str> {
        self.link("self").or_else(|| self.page())
    }

    /// URL of the site of the source.
    pub fn page(&self) -> Option<&str> {
        self.link("alternate")
    }

    pub(crate) fn link(&self, rel: &str) -> Option<&str> {
        self.links
            .iter()
            .find(|link| link.rel == rel)
            .map(|link| link.href.as_str())
    }
}

impl Text {
    /// Plain text.
    pub fn plain(value: impl Into<String>) -> Self {
        Self {
            kind: TextKind::Plain,
            value: value.into(),
            ..Self::default()
        }
    }

    /// An HTML fragment.
    pub fn html(value: impl Into<String>) -> Self {
        Self {
            kind: TextKind::Html,
            value: value.into(),
            ..Self::default()
        }
    }
}

impl std::fmt::Display for Generator {
    /// Name, version and URL joined by blanks, as platform profiles match them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [&self.name, &self.version, &self.uri].into_iter().flatten();
        for (place, part) in parts.enumerate() {
            let blank = if place == 0 { "" } else { " " };
            write!(f, "{blank}{part}")?;
        }
        Ok(())
    }
}
