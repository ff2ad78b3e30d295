//! The metadata of a feed: what a document says of itself; not how any format spells it.

use serde::Serialize;

use crate::{Category, Date, Element, Generator, Link, Person, Text};

/// Metadata of a feed: what the document says of itself.
///
/// A field names its elements in the order in which they count: the format's own first, wherever
/// they stand, then those of other vocabularies, of each the first that says something. What is
/// mapped is not foreign markup, except where a field says so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Metadata {
    /// `atom:id`, or `rdf:about` of the channel.
    pub id: Option<String>,
    /// `title`; `dc:title`.
    pub title: Option<Text>,
    /// RSS `description`, Atom `subtitle` (0.3: `tagline`); `dc:description`, `itunes:summary`
    /// (which stays foreign).
    pub description: Option<Text>,
    /// Every link: `alternate` is the site, `self` the feed, `hub` a hub (see `Metadata::hubs`),
    /// `license` the licence, and those of RFC 5005 (`first`, `last`, `next`, `previous`,
    /// `prev-archive`, `next-archive`, `current`). RSS `link`, `atom:link`; `cc:license`,
    /// `creativeCommons:license` and `wfw:commentRss`, which stay foreign.
    pub links: Vec<Link>,
    /// All of RSS `managingEditor`, Atom `author`, `dc:creator`, `itunes:author`, which stays
    /// foreign.
    pub authors: Vec<Person>,
    /// All of Atom `contributor`.
    pub contributors: Vec<Person>,
    /// All of `category`, `dc:subject`; then what `itunes:category` and `itunes:keywords` add,
    /// which stay foreign.
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
    /// Polling hints of the publisher.
    pub rhythm: Rhythm,
    /// History, as far as the document tells.
    pub history: History,
    /// Which part of a longer list the document shows.
    pub paging: Paging,
    /// Server to register at for notifications (RSS `cloud`).
    pub cloud: Option<Cloud>,
    /// Feed-level markup from vocabularies that the fields above do not cover.
    pub foreign: Vec<Element>,
}

/// In-feed polling hints (POLLING 1.5).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rhythm {
    /// RSS `ttl`, minutes; `None` when absent or unreadable.
    pub ttl_mins: Option<u32>,
    /// RSS `skipHours`: hours of the day, GMT, 0..=23 (24 is read as 0).
    pub skip_hours: Vec<u8>,
    /// RSS `skipDays`, days of the week in GMT: Monday is 0.
    pub skip_days: Vec<u8>,
    /// `sy:updatePeriod` divided by `sy:updateFrequency`, as seconds between updates; both stay
    /// foreign.
    pub update_secs: Option<u32>,
}

/// Feed History -01..-05 and RFC 5005 facts of a feed. Their links are links;
/// `Metadata::older_archive` weighs them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct History {
    /// `fh:stateful` (-01 to -03) or `fh:incremental` (-04), H-1: whether earlier entries are part
    /// of the feed; `None` when absent or unreadable.
    pub stateful: Option<bool>,
    /// `fh:prev`, resolved (H-7). Kept even if `stateful` is false, which forbids it (H-5).
    pub prev: Option<String>,
    /// `fh:complete` present (RFC 5005 section 2, H-20): what is not in the document is not part of
    /// the feed.
    pub complete: bool,
    /// `fh:archive` present (-03 on, RFC 5005 section 4): the document is an archive and does not
    /// change.
    pub archive: bool,
}

/// Which part of a longer list the document shows (OpenSearch 1.0 and 1.1, response elements).
/// Blogger, MediaWiki and search feeds say it; the numbers churn, and they are the publisher's
/// claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Paging {
    /// `opensearch:totalResults`: entries in the whole list.
    pub total_items: Option<u64>,
    /// `opensearch:startIndex`: place of the first entry shown, 1-based unless the publisher counts
    /// from 0.
    pub first_index: Option<u64>,
    /// `opensearch:itemsPerPage`: entries a page holds at most.
    pub page_items: Option<u64>,
}

/// RSS `cloud` (RSS 0.92 on, LEGACY C-4): an rssCloud server that tells when the feed changed. As
/// the source wrote it, trimmed; `domain` is present.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
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

/// A picture that stands for the feed (RSS 2.0 `image`, RFC 4287 section 4.2.8 `logo`,
/// `itunes:image`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Image {
    /// Resolved URL of the picture.
    pub url: String,
    /// Text to show in its place.
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

impl Metadata {
    /// The URL of the best picture of the feed: its image, else its icon.
    pub fn picture(&self) -> Option<&str> {
        self.image
            .as_ref()
            .map(|image| image.url.as_str())
            .or(self.icon.as_deref())
    }

    /// The link to the site: the first alternate that is a page, wherever it stands.
    pub fn site(&self) -> Option<&Link> {
        self.links
            .iter()
            .find(|link| link.rel == "alternate" && link.is_page())
    }

    /// The first link with this relation; of alternates the first that is a page, wherever it
    /// stands.
    pub fn link(&self, rel: &str) -> Option<&str> {
        let with = |link: &&Link| link.rel == rel;
        let page = self
            .links
            .iter()
            .filter(with)
            .find(|link| rel != "alternate" || link.is_page());
        page.or_else(|| self.links.iter().find(with))
            .map(|link| link.href.as_str())
    }
}
