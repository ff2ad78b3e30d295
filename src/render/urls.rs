//! Our URLs, both ways: the one grammar that prints them in documents and reads them back in
//! requests and topics; not what answers at them.

use super::{
    archived::ArchiveAddress,
    document::{Alternate, ArchiveLinks, Audience, CloudEndpoint, Links},
    representation::Representation,
};
use crate::feed::{filter::Filter, order::Order};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::{
    borrow::Cow,
    fmt::{self, Write as _},
    sync::Arc,
};
use url::Url;

mod query;

#[cfg(test)]
mod tests;

pub use query::{
    BadQuery, ClassicQuery, LIST_WORDS_BYTES_MAX, NotWhole, Query, asks_for_script, callback,
    count, refresh_secs,
};

/// The root under which everything of ours is served, as consumers see it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// The public URL, whose path a front proxy takes off.
    public: Url,
    /// Path below which our own paths live, in steps.
    prefix: Vec<String>,
    /// Both, as they stand before every path that we print.
    root: String,
    /// The service of XMPP at which every feed is a node, too.
    xmpp: Option<Arc<str>>,
    /// Roots that it had before, without a slash at the end.
    former: Arc<[Url]>,
}

/// A path of ours, without the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The list of feeds.
    List,
    /// The list of feeds as OPML.
    Outline,
    /// The members of the named group as OPML; of a feed that is none, itself.
    OutlineOf(String),
    /// The description of all of this for programs (OpenAPI).
    OpenApi,
    /// The hub for every feed (SF-78).
    Hub,
    /// The registration of listeners of rssCloud.
    Cloud,
    /// The hub for topics of the named feed only.
    HubOf(String),
    /// The description of the named feed.
    About(String),
    /// The named feed in the representation that the consumer prefers.
    Negotiated(String),
    /// The named feed in one representation.
    Page(String, Representation),
    /// An archive of the named feed, in a classic representation.
    Archive(String, Representation, ArchiveAddress),
    /// The changes of the named feed as a stream of events.
    Events(String),
    /// The callback with this token, at which hubs of others tell of feeds.
    Callback(String),
}

/// A view in a representation, as a URL names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// The feed's name.
    pub name: String,
    /// The order of its items.
    pub order: Order,
    /// The items that are shown.
    pub filter: Filter,
    /// The form in which they are written.
    pub representation: Representation,
    /// The token of a secret URL, by which its bearer is known (U-1).
    pub secret: Option<String>,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List => f.write_str("/feeds"),
            Self::Outline => f.write_str("/feeds.opml"),
            Self::OutlineOf(name) => write!(f, "/feeds/{name}.{OPML}"),
            Self::OpenApi => write!(f, "/{OPENAPI}"),
            Self::Hub => f.write_str("/hub"),
            Self::Cloud => write!(f, "/{CLOUD}"),
            Self::HubOf(name) => write!(f, "/feeds/{name}/hub"),
            Self::About(name) => write!(f, "/feeds/{name}/about"),
            Self::Negotiated(name) => write!(f, "/feeds/{name}"),
            Self::Events(name) => write!(f, "/feeds/{name}.{EVENTS}"),
            Self::Callback(token) => write!(f, "/{CALLBACKS}/{token}"),
            Self::Page(name, representation) => match representation.audience() {
                Audience::Full => write!(f, "/feeds/{name}.{}", representation.suffix()),
                Audience::Classic => {
                    write!(f, "/feeds/{name}/{CLASSIC}{}", representation.suffix())
                }
            },
            Self::Archive(name, representation, place) => {
                write!(
                    f,
                    "/feeds/{name}/{ARCHIVE}/{place}.{}",
                    representation.suffix()
                )
            }
        }
    }
}

/// The step of our paths before the token of a secret URL.
const SECRET: &str = "s";

/// The beginning of the file names for ordinary readers.
const CLASSIC: &str = "classic.";

/// The step of our paths before the names of archives.
const ARCHIVE: &str = "archive";
/// The end of the file name of a stream of events.
const EVENTS: &str = "events";

/// The path of registrations of rssCloud, by the name that it has everywhere.
const CLOUD: &str = "pleaseNotify";

/// The step of our paths before the secret of the page about the readers of a site.
const READERS: &str = "readers";

/// The step of our paths before the token of a callback.
const CALLBACKS: &str = "in";
/// Hexadecimal digits of the token of a callback.
const TOKEN_DIGITS: usize = 32;

/// The end of the file name of the members of a group.
const OPML: &str = "opml";

/// The file name of the description of our HTTP side.
const OPENAPI: &str = "openapi.json";

impl Endpoint {
    /// The endpoint at the end of these steps, unescaped.
    fn at(steps: &[&str]) -> Option<Self> {
        let endpoint = Self::spelt(steps)?;
        endpoint.name().is_none_or(is_name).then_some(endpoint)
    }

    /// The name of the feed that it is of.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::List
            | Self::Outline
            | Self::OpenApi
            | Self::Hub
            | Self::Cloud
            | Self::Callback(_) => None,
            Self::HubOf(name)
            | Self::About(name)
            | Self::OutlineOf(name)
            | Self::Negotiated(name)
            | Self::Page(name, _)
            | Self::Archive(name, ..)
            | Self::Events(name) => Some(name),
        }
    }

    fn spelt(steps: &[&str]) -> Option<Self> {
        Some(match *steps {
            [] | [""] | ["feeds"] | ["feeds", ""] => Self::List,
            ["feeds.opml"] => Self::Outline,
            ["hub"] | ["hub", ""] => Self::Hub,
            [CLOUD] => Self::Cloud,
            [CALLBACKS, token] if is_token(token) => Self::Callback(token.to_owned()),
            [OPENAPI] => Self::OpenApi,
            ["feeds", name, "hub"] | ["feeds", name, "hub", ""] => Self::HubOf(name.to_owned()),
            ["feeds", name, "about"] => Self::About(name.to_owned()),
            ["feeds", file] => match file.rsplit_once('.') {
                None => Self::Negotiated(file.to_owned()),
                Some((name, EVENTS)) => Self::Events(name.to_owned()),
                Some((name, OPML)) => Self::OutlineOf(name.to_owned()),
                Some((name, suffix)) => Self::Page(
                    name.to_owned(),
                    Representation::with_suffix(Audience::Full, suffix)?,
                ),
            },
            ["feeds", name, ARCHIVE, file] => {
                let (place, suffix) = file.rsplit_once('.')?;
                let representation = Representation::with_suffix(Audience::Classic, suffix)?;
                Self::Archive(
                    name.to_owned(),
                    representation,
                    ArchiveAddress::parse(place)?,
                )
            }
            ["feeds", name, file] => {
                let suffix = file.strip_prefix(CLASSIC)?;
                Self::Page(
                    name.to_owned(),
                    Representation::with_suffix(Audience::Classic, suffix)?,
                )
            }
            _ => return None,
        })
    }
}

/// True for what the token of a callback may be. A site may have anything else there.
fn is_token(token: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    token.len() == TOKEN_DIGITS && token.bytes().all(is_digit)
}

/// True for what a feed may be called: no `..`, and nothing that others take for the end of a step.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// The URI of a node of a service of XMPP (XEP-0060 section 12.20).
pub fn xmpp_node_uri(service: &str, node: &str) -> String {
    let node = utf8_percent_encode(node, URI_PART);
    format!("xmpp:{service}?;node={node}")
}

/// Everything but unreserved characters is escaped in a part of a URI.
const URI_PART: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The `Link` header of a document with an address of its own, and of its hub: one header, self
/// first, because there are subscribers that look at the first link only (HUBS 5.3, HUB-19).
pub fn link_header(own: &str, hub: &str) -> String {
    format!("<{own}>; rel=\"self\", <{hub}>; rel=\"hub\"")
}

impl Site {
    /// From the public URL and the prefix of our own paths, for instance `https://example.org/blog`
    /// and `/smart`.
    pub fn new(public_url: &Url, prefix: &str) -> Self {
        let prefix: Vec<String> = prefix
            .split('/')
            .filter(|step| !step.is_empty())
            .map(str::to_owned)
            .collect();
        let mut root = public_url.as_str().trim_end_matches('/').to_owned();
        for step in &prefix {
            root.push('/');
            root.push_str(step);
        }
        Self {
            public: public_url.clone(),
            prefix,
            root,
            xmpp: None,
            former: Arc::default(),
        }
    }

    /// The same site, which had these roots before, each a public URL with its prefix.
    #[must_use]
    pub fn with_former(self, roots: &[Url]) -> Self {
        Self {
            former: roots.into(),
            ..self
        }
    }

    /// The same site, whose feeds are nodes of this service of XMPP, too.
    #[must_use]
    pub fn with_xmpp(self, service: Option<&str>) -> Self {
        Self {
            xmpp: service.map(Into::into),
            ..self
        }
    }

    /// The URI of a view over XMPP, where it is served there (XMPP-61).
    pub fn xmpp(&self, name: &str, order: Order, filter: &Filter) -> Option<String> {
        let service = self.xmpp.as_ref()?;
        let query = Query {
            order,
            filter: filter.clone(),
            ..Query::default()
        };
        let node = if query == Query::default() {
            name.to_owned()
        } else {
            format!("{name}?{query}")
        };
        Some(xmpp_node_uri(service, &node))
    }

    /// The same site below a secret: every URL that it prints holds the token, so that it works by
    /// itself (U-1).
    #[must_use]
    pub fn below_secret(&self, token: &str) -> Self {
        let root = format!("{}/{SECRET}/{token}", self.root);
        Self {
            root,
            ..self.clone()
        }
    }

    /// The URL by which consumers reach us.
    pub fn public_url(&self) -> &Url {
        &self.public
    }

    /// The URL before every path of ours.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// The list of feeds.
    pub fn list(&self) -> String {
        self.print(&Endpoint::List)
    }

    /// The list of feeds as OPML.
    pub fn outline(&self) -> String {
        self.print(&Endpoint::Outline)
    }

    /// The members of a group as OPML.
    pub fn outline_of(&self, name: &str) -> String {
        self.print(&Endpoint::OutlineOf(name.to_owned()))
    }

    /// The hub for every feed.
    pub fn hub(&self) -> String {
        self.print(&Endpoint::Hub)
    }

    /// The URL of callbacks before their tokens, with a slash at its end.
    pub fn callbacks(&self) -> String {
        format!("{}/{CALLBACKS}/", self.root)
    }

    /// The description of a feed.
    pub fn about(&self, name: &str) -> String {
        self.print(&Endpoint::About(name.to_owned()))
    }

    /// The URL of a feed that negotiates the representation.
    pub fn negotiated(&self, name: &str) -> String {
        self.print(&Endpoint::Negotiated(name.to_owned()))
    }

    /// The stream of the changes of a feed.
    pub fn events(&self, name: &str) -> String {
        self.print(&Endpoint::Events(name.to_owned()))
    }

    /// The canonical base URL of a view: identity of the feed, `rel=self`, and the WebSub topic
    /// (SF-43, SF-44, SF-58). Classic representations have one order, so it is not spelt.
    pub fn base(&self, name: &str, representation: Representation, order: Order) -> String {
        self.topic_url(name, representation, order, &Filter::All)
    }

    /// The canonical base URL of a view with a filter.
    pub fn topic_url(
        &self,
        name: &str,
        representation: Representation,
        order: Order,
        filter: &Filter,
    ) -> String {
        let query = Query {
            order,
            filter: filter.clone(),
            ..Query::default()
        };
        match representation.audience() {
            Audience::Full => self.page(name, representation, &query),
            Audience::Classic => {
                let base = self.print(&Endpoint::Page(name.to_owned(), representation));
                if filter.has_terms() {
                    format!("{base}?{}", query.of_filter())
                } else {
                    base
                }
            }
        }
    }

    /// An archive of a classic view.
    pub fn archive(
        &self,
        name: &str,
        representation: Representation,
        place: ArchiveAddress,
    ) -> String {
        self.print(&Endpoint::Archive(name.to_owned(), representation, place))
    }

    /// A page of a view, its range spelt out.
    pub fn page(&self, name: &str, representation: Representation, query: &Query) -> String {
        format!(
            "{}?{query}",
            self.print(&Endpoint::Page(name.to_owned(), representation))
        )
    }

    /// The links of a document.
    pub fn links(
        &self,
        name: &str,
        representation: Representation,
        order: Order,
        filter: &Filter,
        next: Option<String>,
    ) -> Links {
        Links {
            base: self.topic_url(name, representation, order, filter),
            hub: self.hub(),
            next,
            alternates: self.alternates(name, representation, order, filter),
            about: self.about(name),
            list: self.list(),
            topic: self.topic_of_page(name, filter),
            xmpp: self.xmpp(name, order, filter),
            archives: ArchiveLinks::default(),
            is_old_address: false,
            cloud: None,
            is_live_view: filter.asks_for_live_alone(),
        }
    }

    /// The topic that a page for people names as `self`: pages are not pushed, and whoever
    /// subscribes to what they show is pushed the feed in Atom.
    fn topic_of_page(&self, name: &str, filter: &Filter) -> String {
        let topic = self.negotiated(name);
        if !filter.has_terms() {
            return topic;
        }
        let filter = filter.clone();
        let query = Query {
            filter,
            ..Query::default()
        };
        format!("{topic}?{}", query.of_filter())
    }

    /// The `Link` header of pages and pushes of a view. That of a page for people names the topic,
    /// the hub and the formats.
    pub fn link_header(
        &self,
        name: &str,
        representation: Representation,
        order: Order,
        filter: &Filter,
    ) -> String {
        if representation == Representation::PAGE {
            let mut header = link_header(&self.topic_of_page(name, filter), &self.hub());
            for Alternate {
                href, media_type, ..
            } in self.alternates(name, representation, order, filter)
            {
                let _ = write!(
                    header,
                    ", <{href}>; rel=\"alternate\"; type=\"{media_type}\""
                );
            }
            return header;
        }
        let base = self.topic_url(name, representation, order, filter);
        link_header(&base, &self.hub())
    }

    /// The same feed in other representations that subscribers or people use. Where there is a
    /// classic one, that: a reader that followed another to the Smart Feed would find the oldest
    /// item first.
    fn alternates(
        &self,
        name: &str,
        own: Representation,
        order: Order,
        filter: &Filter,
    ) -> Vec<Alternate> {
        let is_for_readers = own.is_classic() || own.is_page();
        let is_used = |other: &Representation| other.is_alternate() || other.is_page();
        let is_apt =
            |other: &Representation| other.is_classic() || !(is_for_readers || other.has_classic());
        let others =
            Representation::all().filter(|other| *other != own && is_used(other) && is_apt(other));
        let alternate = |other: Representation| Alternate {
            href: self.topic_url(name, other, order, filter),
            media_type: other.media_type(),
            title: other.title(),
        };
        others.map(alternate).collect()
    }

    /// The place at which listeners of rssCloud register, as a `cloud` element names it; `None`
    /// where our URL has no host.
    pub fn cloud(&self) -> Option<CloudEndpoint> {
        let url = Url::parse(&self.print(&Endpoint::Cloud)).ok()?;
        let (domain, port) = (url.host_str()?.to_owned(), url.port_or_known_default()?);
        Some(CloudEndpoint {
            domain,
            port,
            path: url.path().to_owned(),
        })
    }

    fn print(&self, endpoint: &Endpoint) -> String {
        format!("{}{endpoint}", self.root)
    }

    // Decides: Which URL is which view?
    /// The endpoint that the path of a request names, below a secret or not. Whatever stands before
    /// the prefix in the public URL, a front proxy has taken off.
    pub fn endpoint(&self, path: &str) -> Option<Endpoint> {
        Some(self.place_below("", path)?.0)
    }

    /// The token in the path of a request.
    pub fn secret(&self, path: &str) -> Option<String> {
        self.place_below("", path)?.1
    }

    /// True for the path of a request that is below a secret, however it is spelt and whatever it
    /// names: a path that others would take for the same counts, too.
    pub fn is_below_secret(&self, path: &str) -> bool {
        self.is_below(path, |own| matches!(own, [SECRET, _, ..]))
    }

    /// The secret in the path of a request for the page about the readers of a site. A slash behind it
    /// changes nothing: the origin of the site would learn the secret otherwise.
    pub fn readers_secret<'a>(&self, path: &'a str) -> Option<&'a str> {
        let mut rest = path;
        for step in self.prefix.iter().map(String::as_str).chain([READERS]) {
            rest = rest.strip_prefix('/')?.strip_prefix(step)?;
        }
        let secret = rest.strip_prefix('/')?.trim_end_matches('/');
        (!secret.is_empty()).then_some(secret)
    }

    // Decides: Which paths of a site are ours, whatever they name?
    /// True for the path of a request that is among ours, however it is spelt and whether or not it
    /// names anything: below a prefix every path, else the list of feeds, the hub, what is below
    /// them, and what is below a secret.
    pub fn is_own(&self, path: &str) -> bool {
        let is_own =
            |own: &[&str]| matches!(own, ["feeds" | "feeds.opml" | "hub", ..] | [SECRET, _, ..]);
        self.is_below(path, |own| !self.prefix.is_empty() || is_own(own))
    }

    /// True for the path of a request that is below the list of feeds, whether or not it names one.
    pub fn is_below_feeds(&self, path: &str) -> bool {
        self.is_below(path, |own| matches!(own, ["feeds", _, ..]))
    }

    /// True if the steps of a path below the prefix are such. Servers read a path in several ways:
    /// escaped slashes, backslashes, empty steps and dots count as the most generous one reads them.
    fn is_below(&self, path: &str, are_such: impl Fn(&[&str]) -> bool) -> bool {
        let path = percent_decode_str(path).decode_utf8_lossy();
        let mut steps: Vec<&str> = Vec::new();
        for step in path.split(['/', '\\']) {
            match step {
                "" | "." => {}
                ".." => drop(steps.pop()),
                _ => steps.push(step),
            }
        }
        let prefix: Vec<&str> = self.prefix.iter().map(String::as_str).collect();
        steps.strip_prefix(&prefix[..]).is_some_and(are_such)
    }

    /// The topic that a URL means, when it is the base URL of a view of ours. Scheme, case of the
    /// host, escapes without need, a slash at the end and a missing order do not matter (HUB-8,
    /// HUBS 5.3); a range, or a parameter that means nothing, is no part of a topic.
    pub fn topic(&self, url: &str) -> Option<Topic> {
        let url = Url::parse(url)
            .ok()
            .filter(|url| url.fragment().is_none())?;
        let path = url.path().trim_end_matches('/');
        let present = || {
            let is_own = is_at(&url, &self.public);
            is_own.then(|| self.place_below(self.public.path(), path))?
        };
        let (endpoint, secret) = present().or_else(|| Some(self.formerly(&url)?.0))?;
        let (name, representation) = match endpoint {
            Endpoint::Page(name, representation) => (name, representation),
            Endpoint::Negotiated(name) => (name, Representation::of(Audience::Full).next()?),
            _ => return None,
        };
        if !Query::is_ours(url.query().unwrap_or_default()) {
            return None;
        }
        let raw = url.query().unwrap_or_default();
        if representation.is_classic() && ClassicQuery::parse(raw).is_err() {
            return None;
        }
        let query = Query::parse(raw).ok().filter(Query::is_whole)?;
        let order = if representation.is_classic() {
            Order::default()
        } else {
            query.order
        };
        Some(Topic {
            name,
            order,
            filter: query.filter,
            representation,
            secret,
        })
    }

    /// The endpoint that a path names below another path and the prefix, and the token before it.
    /// Paths may escape what need not be escaped (RFC 3986 section 6.2.2.2).
    fn place_below(&self, above: &str, path: &str) -> Option<(Endpoint, Option<String>)> {
        let above = above.split('/').filter(|step| !step.is_empty());
        place(above.chain(self.prefix.iter().map(String::as_str)), path)
    }

    /// The endpoint that a URL below a former root names, the token before it, and the path that it
    /// has below every root.
    fn formerly<'a>(&self, url: &'a Url) -> Option<((Endpoint, Option<String>), &'a str)> {
        let below = |root: &Url| {
            let path = url.path().strip_prefix(root.path().trim_end_matches('/'))?;
            (path.is_empty() || path.starts_with('/')).then_some(())?;
            let place = place(std::iter::empty(), path.trim_end_matches('/'))?;
            is_at(url, root).then_some((place, path))
        };
        self.former.iter().find_map(below)
    }

    // Decides: Which URL leads to another one of ours?
    /// The URL that one below a former root has now (W-17); `None` for what is none, and for what is
    /// at its place.
    pub fn moved(&self, url: &Url) -> Option<String> {
        let is_present = is_at(url, &self.public)
            && (self.endpoint(url.path()).is_some()
                || self.place_below(self.public.path(), url.path()).is_some());
        if self.former.is_empty() || is_present {
            return None;
        }
        let (_, path) = self.formerly(url)?;
        let query = url.query().map(|query| format!("?{query}"));
        Some(format!("{}{path}{}", self.root, query.unwrap_or_default()))
    }

    /// The spellings that a topic of ours had below former roots.
    pub fn former_spellings(&self, topic: &str) -> impl Iterator<Item = String> {
        let path = topic.strip_prefix(self.root.as_str());
        let former = path.map(|path| {
            let spelt = |root: &Url| format!("{}{path}", root.as_str().trim_end_matches('/'));
            self.former.iter().map(spelt).collect::<Vec<_>>()
        });
        former.unwrap_or_default().into_iter()
    }
}

/// The endpoint that a path names below some steps, and the token before it.
fn place<'a>(
    above: impl Iterator<Item = &'a str>,
    path: &str,
) -> Option<(Endpoint, Option<String>)> {
    let unescaped = |step| percent_decode_str(step).decode_utf8().ok();
    let steps: Vec<Cow<'_, str>> = path
        .split('/')
        .skip(1)
        .map(unescaped)
        .collect::<Option<_>>()?;
    let steps: Vec<&str> = steps.iter().map(AsRef::as_ref).collect();
    let mut rest = &steps[..];
    for step in above {
        rest = rest.strip_prefix(&[step])?;
    }
    match *rest {
        [SECRET, token, ref rest @ ..] if matches!(rest, ["feeds" | "feeds.opml" | "hub", ..]) => {
            Some((Endpoint::at(rest)?, Some(token.to_owned())))
        }
        _ => Some((Endpoint::at(rest)?, None)),
    }
}

/// True for URLs at the host and port of another, whichever of the two schemes a front proxy speaks.
fn is_at(url: &Url, root: &Url) -> bool {
    let is_default = |url: &Url| matches!(url.port_or_known_default(), Some(80 | 443));
    let same_port = url.port_or_known_default() == root.port_or_known_default()
        || (is_default(url) && is_default(root));
    matches!(url.scheme(), "http" | "https") && url.host() == root.host() && same_port
}
