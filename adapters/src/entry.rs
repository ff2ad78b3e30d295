//! The data model shared by every format: entries, metadata of feeds, keys, digests and notes; not how any format spells
//! them.

mod digest;
pub(crate) mod notes;

pub use digest::DIGEST_VERSION;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Everything kept of one upstream entry, whatever format it came in. URLs are resolved against `xml:base` or the
/// document's URL; ids are never touched beyond trimming XML white space.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// `guid`, `atom:id`, `rdf:about`, JSON `id` or CDF `HREF`: trimmed of XML white space, else byte-exact (LEGACY I-2).
    pub id: Option<String>,
    /// The title, if there is one.
    pub title: Option<Text>,
    /// `summary` or `description` (when a fuller content stands beside it).
    pub summary: Option<Text>,
    /// The full content: `content`, `content:encoded`, or `description` when nothing fuller exists.
    pub content: Option<Body>,
    /// Links in document order, enclosures excluded. The first with rel `alternate` is the permalink; `license` names the
    /// licence (RFC 4946; `cc:license`, `creativeCommons:license`), `replies` the comments (RFC 4685; `wfw:commentRss`).
    pub links: Vec<Link>,
    /// Who wrote it.
    pub authors: Vec<Person>,
    /// Who helped.
    pub contributors: Vec<Person>,
    /// Tags.
    pub categories: Vec<Category>,
    /// Attached media.
    pub enclosures: Vec<Enclosure>,
    /// When the publisher says it was first published.
    pub published: Option<Date>,
    /// When the publisher says it was last changed. Churns; never part of the content digest.
    pub updated: Option<Date>,
    /// Copyright or licence text.
    pub rights: Option<Text>,
    /// URL of the comments page (RSS `comments`).
    pub comments: Option<String>,
    /// The language that the entry itself or its content names; when they name none, that of the feed holds. (An entry
    /// is not edited when somebody corrects the language of the feed.)
    pub language: Option<String>,
    /// Where an aggregated entry came from (`atom:source`, RSS `source`). Churns; never part of the content digest.
    pub source: Option<Box<Source>>,
    /// Markup from vocabularies that the fields above do not cover, parsed, with its namespaces resolved.
    pub foreign: Vec<Element>,
}

/// Human-readable text and how its markup is to be read (RFC 4287 section 3.1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// How `value` is to be read.
    pub kind: TextKind,
    /// Plain text, an HTML fragment, or the well-formed inside of an XHTML `div`.
    pub value: String,
    /// The language that `xml:lang` gives it, here or around it. Never part of the content digest: a text is not edited when
    /// somebody corrects the language of the feed.
    pub language: Option<String>,
    /// The base that `xml:base` gives it, here or around it. References in the markup are absolute already, except those
    /// that are only a fragment.
    pub base: Option<String>,
}

/// How the markup of a text is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TextKind {
    /// No markup: `<` is a less-than sign.
    #[default]
    Plain,
    /// An HTML fragment, possibly ill-formed.
    Html,
    /// The inside of an XHTML `div`, written anew by us: well-formed, default namespace XHTML.
    Xhtml,
    /// Bytes in base64 (RFC 4648 section 4). Only the text of a [`Body`] that has a media type may be of this kind.
    Base64,
}

/// An entry's content: text, something of another media type, or a reference to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body {
    /// The text; of other media types the text form as plain text, or base64; empty when only `src` is given.
    pub text: Text,
    /// The media type when it is none of plain text, HTML and XHTML.
    pub media_type: Option<String>,
    /// Where the content is, when the entry only points to it.
    pub src: Option<String>,
}

/// The relation of the address that a feed proxy put into the place of the permalink, which `feedburner:origLink` still
/// names.
pub const PROXIED: &str = "http://rssnamespace.org/feedburner/ext/1.0#proxied";

/// One link of an entry or a feed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// Display name.
    pub name: Option<String>,
    /// E-mail address.
    pub email: Option<String>,
    /// Home page.
    pub uri: Option<String>,
    /// The line that name and address were taken from, as RSS and Dublin Core have it: `jo@example.org (Jo Doe)`.
    pub byline: Option<String>,
}

/// A tag.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Category {
    /// The tag itself.
    pub term: String,
    /// Its vocabulary (Atom `scheme`, RSS `domain`).
    pub scheme: Option<String>,
    /// Its display form.
    pub label: Option<String>,
}

/// Attached media.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enclosure {
    /// Resolved URL.
    pub url: String,
    /// Media type, if named.
    pub media_type: Option<String>,
    /// Length in bytes as the source wrote it.
    pub length: Option<String>,
    /// Title, if named.
    pub title: Option<String>,
}

/// A date as written and as understood. The parser reports what it read; whether it is plausible is judged elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Date {
    /// The source's own text, trimmed.
    pub raw: String,
    /// Microseconds since 1970-01-01T00:00:00Z, negative before; `None` when the text could not be understood.
    pub at_us: Option<i64>,
}

/// Source of an aggregated entry: the metadata of its own feed, as the aggregator copied it (`atom:source`, RFC 4287
/// section 4.2.11; RSS 2.0 `source`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// What made it.
    pub generator: Option<Generator>,
    /// URL of its icon, resolved.
    pub icon: Option<String>,
    /// URL of its logo, resolved.
    pub logo: Option<String>,
    /// Its copyright.
    pub rights: Option<Text>,
    /// When the source feed changed last.
    pub updated: Option<Date>,
    /// What else the aggregator wrote there.
    pub foreign: Vec<Element>,
}

/// What made a document (RFC 4287 section 4.2.4). At least one field is present.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generator {
    /// Its name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Its home page, resolved; Atom 0.3 says `url`.
    pub uri: Option<String>,
}

/// A picture that stands for the feed (RSS 2.0 `image`, RFC 4287 section 4.2.8 `logo`, `itunes:image`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Resolved URL of the picture.
    pub url: String,
    /// What to show in its place.
    pub title: Option<String>,
    /// Resolved URL of the page that it leads to.
    pub link: Option<String>,
    /// Pixels, as the source wrote them.
    pub width: Option<String>,
    /// Pixels, as the source wrote them.
    pub height: Option<String>,
    /// Title of the link around the picture.
    pub description: Option<String>,
}

/// One foreign element with its namespace resolved: enough to write it anew, never a slice of bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Node {
    /// Unescaped character data.
    Text(String),
    /// An element.
    Element(Element),
}

/// The document formats that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Format {
    /// RSS 0.9x and 2.0, versionless included.
    Rss,
    /// RSS 0.90, 1.0 and 1.1: RDF.
    Rdf,
    /// Atom 1.0, its drafts and 0.3.
    Atom,
    /// The Channel Definition Format of 1997.
    Cdf,
    /// JSON Feed 1.0 and 1.1.
    JsonFeed,
    /// Not a feed: one document that is itself the only item, whatever it is ([`Hints::resource`](crate::Hints)).
    Resource,
}

/// Metadata of a feed: what the document says of itself.
///
/// A field names its elements in the order in which they count: the format's own first, wherever they stand, then those
/// of other vocabularies, of each the first that says something. What is mapped is not foreign markup, except where a
/// field says so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// `atom:id`, or `rdf:about` of the channel.
    pub id: Option<String>,
    /// `title`; `dc:title`.
    pub title: Option<Text>,
    /// RSS `description`, Atom `subtitle` (0.3: `tagline`); `dc:description`, `itunes:summary` (which stays foreign).
    pub description: Option<Text>,
    /// Every link: `alternate` is the site, `self` the feed, `hub` a hub (see `Metadata::hubs`), `license` the licence, and
    /// those of RFC 5005 (`first`, `last`, `next`, `previous`, `prev-archive`, `next-archive`, `current`). RSS `link`,
    /// `atom:link`; `cc:license`, `creativeCommons:license` and `wfw:commentRss`, which stay foreign.
    pub links: Vec<Link>,
    /// All of RSS `managingEditor`, Atom `author`, `dc:creator`; without them `itunes:author`, which stays foreign.
    pub authors: Vec<Person>,
    /// All of Atom `contributor`.
    pub contributors: Vec<Person>,
    /// All of `category`, `dc:subject`; then what `itunes:category` and `itunes:keywords` add, which stay foreign.
    pub categories: Vec<Category>,
    /// RSS `language`, `dc:language`, `xml:lang` of the root or the channel.
    pub language: Option<String>,
    /// RSS `copyright`, Atom `rights` (0.3: `copyright`); `dc:rights`.
    pub rights: Option<Text>,
    /// `generator`.
    pub generator: Option<Generator>,
    /// RSS `image`, Atom `logo`; `itunes:image`, which stays foreign.
    pub image: Option<Image>,
    /// Atom `icon`: resolved URL of a small square picture (RFC 4287 section 4.2.5).
    pub icon: Option<String>,
    /// RSS `lastBuildDate`, Atom `updated` (0.3: `modified`); `dc:date`, `dcterms:modified`.
    pub updated: Option<Date>,
    /// RSS `pubDate`, Atom `published`; `dcterms:issued`.
    pub published: Option<Date>,
    /// How often the publisher wants to be polled.
    pub rhythm: Rhythm,
    /// What the document says of its history.
    pub history: History,
    /// Which part of a longer list the document shows.
    pub paging: Paging,
    /// Where to register for notifications (RSS `cloud`).
    pub cloud: Option<Cloud>,
    /// Feed-level markup from vocabularies that the fields above do not cover.
    pub foreign: Vec<Element>,
}

/// In-feed polling hints (POLLING 1.5).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rhythm {
    /// RSS `ttl`, minutes; `None` when absent or unreadable.
    pub ttl_mins: Option<u32>,
    /// RSS `skipHours`: hours of the day, GMT, 0..=23 (24 is read as 0).
    pub skip_hours: Vec<u8>,
    /// RSS `skipDays`, days of the week in GMT: Monday is 0.
    pub skip_days: Vec<u8>,
    /// `sy:updatePeriod` divided by `sy:updateFrequency`, as seconds between updates; both stay foreign.
    pub update_secs: Option<u32>,
}

/// Feed History -01..-05 and RFC 5005 facts of a feed. Their links are links; `Metadata::older_archive` weighs them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// `fh:stateful` (-01 to -03) or `fh:incremental` (-04), H-1: whether earlier entries are part of the feed; `None`
    /// when absent or unreadable.
    pub stateful: Option<bool>,
    /// `fh:prev`, resolved (H-7). Kept even if `stateful` is false, which forbids it (H-5).
    pub prev: Option<String>,
    /// `fh:complete` present (RFC 5005 section 2, H-20): what is not in the document is not part of the feed.
    pub complete: bool,
    /// `fh:archive` present (-03 on, RFC 5005 section 4): the document is an archive and does not change.
    pub archive: bool,
}

/// Which part of a longer list the document shows (OpenSearch 1.0 and 1.1, response elements). Blogger, MediaWiki and
/// search feeds say it; the numbers churn, and they are the publisher's claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paging {
    /// `opensearch:totalResults`: entries in the whole list.
    pub total_items: Option<u64>,
    /// `opensearch:startIndex`: place of the first entry shown, 1-based unless the publisher counts from 0.
    pub first_index: Option<u64>,
    /// `opensearch:itemsPerPage`: entries a page holds at most.
    pub page_items: Option<u64>,
}

/// RSS `cloud` (RSS 0.92 on, LEGACY C-4): an rssCloud server that tells when the feed changed. As the source wrote it,
/// trimmed; `domain` is present.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cloud {
    /// Host name or address.
    pub domain: String,
    /// TCP port; `None` when absent or unreadable.
    pub port: Option<u16>,
    /// Path of the endpoint.
    pub path: Option<String>,
    /// Name of the procedure to call; empty for REST, so mostly absent there.
    pub register_procedure: Option<String>,
    /// `xml-rpc`, `soap`, `http-post` or `https-post`, in lower case.
    pub protocol: Option<String>,
}

/// One `at:deleted-entry` (RFC 6721 section 3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deletion {
    /// The id of the deleted entry, trimmed of XML white space, else byte-exact.
    pub reference: String,
    /// When it was deleted.
    pub when: Option<Date>,
    /// `at:comment`, as plain text.
    pub comment: Option<String>,
}

/// What identifies an entry, strongest first (DESIGN section 3, LEGACY I-2).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Key {
    /// `guid`, `atom:id`, `rdf:about`, JSON `id`, CDF `HREF`, or a resource's URL.
    Id(String),
    /// The permalink, unresolved as the source wrote it, when no other entry of the document has the same.
    Link(String),
    /// The title, when no other entry of the document has the same. Weak: absence proves nothing.
    Title(String),
    /// The content digest in hexadecimal. Weak.
    Digest(String),
}

impl Key {
    /// The bytes that are hashed for the item's id: the key without `http://` or `https://`; weak keys carry a
    /// prefix that no strong key can have, because a trimmed key holds no line feed at that place.
    pub fn stripped(&self) -> String {
        let bare = |s: &str| {
            s.strip_prefix("https://").or_else(|| s.strip_prefix("http://")).unwrap_or(s).to_owned()
        };
        match self {
            Self::Id(s) | Self::Link(s) => bare(s),
            Self::Title(s) => format!("title\n{s}"),
            Self::Digest(s) => format!("digest\n{s}"),
        }
    }

    /// Whether absence of this key may ever count as evidence.
    pub fn is_weak(&self) -> bool {
        matches!(self, Self::Title(_) | Self::Digest(_))
    }
}

/// Something odd that was met and survived. Content is never an error.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Note {
    /// The document ended early; the entry that was cut is dropped (DESIGN section 4).
    Truncated,
    /// Tags did not match and were mended, or JSON was not quite JSON.
    Mismatched,
    /// The declared encoding was wrong; this one was used.
    Encoding(String),
    /// A date could not be understood.
    BadDate(String),
    /// An entry could not be read and was left out; the others are unharmed.
    EntryLost(String),
    /// More than the limit of entries; the rest was left out.
    TooManyEntries,
    /// Anything else worth telling the operator.
    Other(String),
}

/// Sixteen bytes of SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
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
    /// The permalink: the first `alternate` link.
    pub fn permalink(&self) -> Option<&str> {
        self.links.iter().find(|link| link.rel == "alternate").map(|link| link.href.as_str())
    }
}

impl Metadata {
    /// The URL of the best picture of the feed: its image, else its icon.
    pub fn picture(&self) -> Option<&str> {
        self.image.as_ref().map(|image| image.url.as_str()).or(self.icon.as_deref())
    }

    /// The first link with this relation.
    pub fn link(&self, rel: &str) -> Option<&str> {
        self.links.iter().find(|link| link.rel == rel).map(|link| link.href.as_str())
    }
}

impl Source {
    /// URL of the source: of the feed itself, else of its site.
    pub fn url(&self) -> Option<&str> {
        let with = |rel: &str| self.links.iter().find(|link| link.rel == rel).map(|link| link.href.as_str());
        with("self").or_else(|| with("alternate"))
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

impl Text {
    /// Plain text.
    pub fn plain(value: impl Into<String>) -> Self {
        Self { kind: TextKind::Plain, value: value.into(), ..Self::default() }
    }

    /// Without white space around it, as titles are kept.
    pub fn trimmed(self) -> Self {
        let trimmed = crate::text::trim(&self.value);
        if trimmed.len() == self.value.len() {
            return self;
        }
        Self { value: trimmed.to_owned(), ..self }
    }

    /// An HTML fragment.
    pub fn html(value: impl Into<String>) -> Self {
        Self { kind: TextKind::Html, value: value.into(), ..Self::default() }
    }
}
