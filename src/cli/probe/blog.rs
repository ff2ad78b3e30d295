//! A blog, looked at once: its feeds, its software, and what its feeds say of themselves. Not what
//! is configured for it.

use super::{
    Trouble,
    findings::Findings,
    history,
    sheet::tame,
    source::{self, Given},
};
use crate::{
    app::{
        ping::is_near,
        probe::{Choice, DocumentFormat, USUAL_PATHS},
    },
    config::Config,
    feed::pushed_feed::links_with,
    secret::masked,
    setting::holds_controls,
};
use everfeed_adapters::{
    Format, NotAFeed, SlicedDocument, links_of_page, named_feeds, platforms::Platforms, slice,
};
use std::{collections::HashSet, fmt};
use url::Url;

/// Feeds of a page that are read.
const FEEDS_READ_MAX: usize = 8;

/// Entries of a feed by which it is compared with the other feeds of its page.
const ENTRIES_COMPARED_MAX: usize = 50;

/// A blog.
pub(in crate::cli) struct Blog {
    /// The URL that answered, after redirects, without credentials.
    pub(in crate::cli) url: Url,
    /// The software that made it, if it is recognised.
    pub(in crate::cli) software: Option<String>,
    /// `Server` of the answer, if it named one.
    pub(in crate::cli) server: Option<String>,
    /// Its feeds, the first one of posts first.
    pub(in crate::cli) feeds: Vec<BlogFeed>,
    /// Reasons why feeds that the page names are not among them.
    pub(in crate::cli) unusable: Vec<String>,
    /// True when the URL was that of a feed, and not of a page.
    pub(in crate::cli) is_feed: bool,
}

/// The content of a feed of a blog, beside the other feeds of its page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) enum FeedKind {
    /// Posts.
    Posts,
    /// The posts of another feed, in another format.
    SamePosts,
    /// Comments.
    Comments,
}

/// A feed of a blog.
#[derive(Clone)]
pub(in crate::cli) struct BlogFeed {
    pub(in crate::cli) url: Url,
    pub(in crate::cli) kind: FeedKind,
    pub(in crate::cli) format: Format,
    /// Pages of its entries.
    pub(in crate::cli) links: HashSet<String>,
    pub(in crate::cli) title: Option<String>,
    pub(in crate::cli) entries: usize,
    /// The hubs that it names.
    pub(in crate::cli) hubs: Vec<String>,
    /// The known ways to its older entries, in words.
    pub(in crate::cli) archives: Vec<String>,
    /// The document.
    pub(in crate::cli) bytes: Vec<u8>,
}

impl Blog {
    // Decides: Which feeds of a page are taken?
    /// The feeds that are taken: the first one of posts, or `all`.
    pub(in crate::cli) fn taken(&self, all: bool) -> Result<&[BlogFeed], Trouble> {
        let has_posts = |feed: &BlogFeed| self.is_feed || feed.kind != FeedKind::Comments;
        if all {
            Ok(&self.feeds)
        } else if self.feeds.first().is_some_and(has_posts) {
            Ok(&self.feeds[..1])
        } else {
            let list: String = self
                .feeds
                .iter()
                .map(|feed| format!("\n  {feed}"))
                .collect();
            Err(Trouble::misused_lines(&format!(
                "{} names feeds of comments only. Give the URL of one, or --all; nothing was changed:{list}",
                self.url
            )))
        }
    }
}

/// A feed in one line, for the operator.
impl fmt::Display for BlogFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&tame(&masked(self.url.as_str())))?;
        if let Some(title) = &self.title {
            write!(f, " “{}”", tame(title))?;
        }
        match &self.kind {
            FeedKind::Posts => write!(f, ", posts: {}", self.entries),
            FeedKind::SamePosts => write!(f, ", the same posts as {}", words_of(self.format)),
            FeedKind::Comments => write!(f, ", comments: {}", self.entries),
        }
    }
}

/// The name of a format, for the operator.
fn words_of(format: Format) -> &'static str {
    match format {
        Format::Rss => "RSS",
        Format::Rdf => "RSS 1.0",
        Format::Atom => "Atom",
        Format::Cdf => "CDF",
        Format::JsonFeed => "JSON Feed",
        Format::Resource => "a document",
    }
}

/// The URL that somebody gave, also without a scheme.
pub(in crate::cli) fn address(text: &str) -> Result<Url, Trouble> {
    if holds_controls(text) {
        return Err(Trouble::misused(format!(
            "{} holds control characters. Give a URL on one line, without any",
            tame(&masked(text))
        )));
    }
    let text = text.trim();
    let whole = if text.contains("://") {
        text.to_owned()
    } else {
        format!("https://{text}")
    };
    let url = Url::parse(&whole).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let mut url = url.ok_or_else(|| {
        let shown = masked(text);
        Trouble::misused(format!(
            "{shown} is no address of a blog. Give an http or https URL, such as https://blog.example.org/"
        ))
    })?;
    url.set_fragment(None);
    if !text.contains("://") && is_near(&url) {
        // Nobody has a certificate for a name of this machine. It fails for no URL of http or https.
        let _ = url.set_scheme("http");
    }
    Ok(url)
}

/// Looks at a blog or a feed. The limits are those of the configuration, where there is one.
pub(in crate::cli) fn look(url: &Url, config: Option<&Config>) -> Result<Blog, Trouble> {
    let given = read(url, config)?;
    let answered = answered(&given, url);
    match slice(&given.bytes, &given.hints()) {
        Ok(window) => {
            let moved = given
                .moved_to
                .as_ref()
                .filter(|_| url.username().is_empty());
            let moved = moved.and_then(|moved| Url::parse(moved).ok());
            let (feed, software) = feed_of(&given, &window, moved.unwrap_or_else(|| url.clone()));
            Ok(Blog {
                url: answered,
                software,
                server: server_of(&given),
                feeds: vec![feed],
                unusable: Vec::new(),
                is_feed: true,
            })
        }
        Err(NotAFeed::Html { .. }) => look_at_page(&given, &answered, url, config),
        Err(error) => Err(given.no_feed(&error)),
    }
}

/// The `Server` of an answer.
fn server_of(given: &Given) -> Option<String> {
    let mut headers = given.headers.iter();
    let server = headers.find(|(name, _)| name.as_str().eq_ignore_ascii_case("server"));
    server.map(|(_, value)| value.as_str().to_owned())
}

/// Finds the feeds that a page names, else those at the usual places of its software.
fn look_at_page(
    given: &Given,
    answered: &Url,
    asked: &Url,
    config: Option<&Config>,
) -> Result<Blog, Trouble> {
    let headers = given.headers.iter();
    let headers: Vec<_> = headers
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let platforms = Platforms::embedded();
    let platform = platforms.of_page(&given.bytes, &given.hints(), &headers);
    let named = named_feeds(&given.bytes, &given.hints());
    let named = named.iter().filter_map(|feed| {
        let url = Url::parse(&feed.link.href).ok()?;
        // The page itself is no feed, under whichever address it was asked for.
        (url != *asked).then_some((url, feed.is_of_comments))
    });
    let named: Vec<_> = named.take(FEEDS_READ_MAX).collect();
    let is_named = !named.is_empty();
    let usual = platform
        .map(|profile| profile.usual_paths()[0].clone())
        .unwrap_or_default();
    let usual = usual.into_iter().chain(USUAL_PATHS.map(str::to_owned));
    let usual = usual.filter_map(|path| Some((answered.join(&path).ok()?, false)));
    let candidates = if is_named { named } else { usual.collect() };
    let mut software = platform.map(|profile| tame(&profile.title));
    let mut feeds = Vec::new();
    let mut unusable = Vec::new();
    for (mut candidate, is_of_comments) in candidates {
        lend_credentials(asked, &mut candidate);
        let read = source::read_named(&candidate, asked, config);
        let read = read.and_then(|given| match slice(&given.bytes, &given.hints()) {
            Ok(window) => Ok(feed_of(&given, &window, candidate)),
            Err(error) => Err(given.no_feed(&error)),
        });
        match read {
            Ok((mut feed, by)) => {
                software = software.or(by);
                if is_of_comments {
                    feed.kind = FeedKind::Comments;
                }
                feeds.push(feed);
                // The other usual addresses show the same posts.
                if !is_named {
                    break;
                }
            }
            Err(error) => unusable.push(error),
        }
    }
    if feeds.is_empty() {
        return Err(match unusable.into_iter().next() {
            Some(trouble) if is_named => trouble,
            _ => Trouble::new(format!(
                "no feed is known of {}: the page names none, and none is at the usual addresses. If it has one, give the URL of that",
                given.name
            )),
        });
    }
    Ok(Blog {
        url: answered.clone(),
        software,
        server: server_of(given),
        feeds: ordered(feeds),
        unusable: unusable.iter().map(ToString::to_string).collect(),
        is_feed: false,
    })
}

/// Feeds of a page in the order in which they are taken: of posts, before empty ones, before those
/// of comments. One that shows the posts of an earlier feed in another format is marked.
fn ordered(mut feeds: Vec<BlogFeed>) -> Vec<BlogFeed> {
    feeds.sort_by_key(|feed| (feed.kind == FeedKind::Comments, feed.entries == 0));
    for at in 1..feeds.len() {
        let (before, rest) = feeds.split_at_mut(at);
        let feed = &mut rest[0];
        let shows_posts_of = |other: &BlogFeed| {
            other.format != feed.format && other.links.iter().any(|link| feed.links.contains(link))
        };
        if feed.kind == FeedKind::Posts && before.iter().any(shows_posts_of) {
            feed.kind = FeedKind::SamePosts;
        }
    }
    feeds
}

/// What a feed says of itself, and the software that made it.
fn feed_of(given: &Given, window: &SlicedDocument, url: Url) -> (BlogFeed, Option<String>) {
    let findings = Findings::of(given, window, Platforms::embedded(), &Choice::Auto);
    let metadata = &window.metadata;
    let title = metadata.title.as_ref().map(super::entries::words);
    let named = metadata
        .generator
        .as_ref()
        .map(|named| tame(&named.to_string()));
    let software = findings.profile.map(|profile| profile.title.clone());
    let feed = BlogFeed {
        url,
        kind: FeedKind::Posts,
        format: window.format,
        links: links_of(window),
        title: title.filter(|title| !title.is_empty()),
        entries: window.entries.len(),
        hubs: hubs(given, Some(window)),
        archives: history::recipes(&findings)
            .iter()
            .map(|way| tame(way))
            .collect(),
        bytes: given.bytes.clone(),
    };
    (feed, software.or(named))
}

/// Pages of the first entries.
fn links_of(window: &SlicedDocument) -> HashSet<String> {
    let entries = window.entries.iter().take(ENTRIES_COMPARED_MAX);
    let links = entries.filter_map(|entry| Some(entry.parse().0.permalink()?.to_owned()));
    links.collect()
}

/// The hubs and the own address that a document at a URL names.
pub(in crate::cli) struct NamedHubs {
    pub(in crate::cli) hubs: Vec<String>,
    /// `rel="self"`.
    pub(in crate::cli) own: Option<String>,
}

/// Fetches a document, and finds its hubs: by the `Link` header, else in the document (WebSub
/// section 4).
pub(in crate::cli) fn named_hubs(url: &Url) -> Result<NamedHubs, Trouble> {
    let given = read(url, None)?;
    let window = slice(&given.bytes, &given.hints()).ok();
    let own = link_targets(&given, "self").into_iter().next();
    let in_document = || Some(window.as_ref()?.metadata.link("self")?.to_owned());
    Ok(NamedHubs {
        hubs: hubs(&given, window.as_ref()),
        own: own.or_else(in_document),
    })
}

fn hubs(given: &Given, window: Option<&SlicedDocument>) -> Vec<String> {
    let mut hubs = link_targets(given, "hub");
    match window {
        _ if !hubs.is_empty() => {}
        Some(window) => hubs.extend(window.metadata.hubs().map(str::to_owned)),
        None => hubs = links_of_page(&given.bytes, &given.hints(), "hub"),
    }
    hubs.dedup();
    hubs
}

/// The targets of the `Link` headers with this relation, resolved (RFC 8288).
fn link_targets(given: &Given, rel: &str) -> Vec<String> {
    let base = given
        .base_url
        .as_deref()
        .and_then(|url| Url::parse(url).ok());
    let headers = given
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("link"));
    let links = headers.flat_map(|(_, value)| links_with(value, rel));
    let resolved = |target: &str| match &base {
        Some(base) => base.join(target).map(String::from).ok(),
        None => Some(target.to_owned()),
    };
    links.filter_map(resolved).collect()
}

/// Gives the credentials of the URL that was given to a feed of the same server.
fn lend_credentials(from: &Url, to: &mut Url) {
    if from.origin() == to.origin() && !from.username().is_empty() {
        // Both fail only for URLs without a host.
        let _ = to.set_username(from.username());
        let _ = to.set_password(from.password());
    }
}

fn read(url: &Url, config: Option<&Config>) -> Result<Given, Trouble> {
    source::read(url.as_str().as_ref(), config, DocumentFormat::Auto)
}

fn answered(given: &Given, url: &Url) -> Url {
    let answered = given
        .base_url
        .as_deref()
        .and_then(|url| Url::parse(url).ok());
    let mut answered = answered.unwrap_or_else(|| url.clone());
    let _ = answered.set_username("");
    let _ = answered.set_password(None);
    answered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_lack_its_scheme_and_nothing_else() {
        let check = |given: &str, expect: Option<&str>| {
            let found = address(given).ok().map(String::from);
            assert_eq!(found.as_deref(), expect, "{given}");
        };
        check("https://e.org/feed#top", Some("https://e.org/feed"));
        check(" e.org ", Some("https://e.org/"));
        check(
            "localhost:8081/rss.xml",
            Some("http://localhost:8081/rss.xml"),
        );
        check("ftp://e.org/", None);
        check("feed://e.org/", None);
        check("", None);
        check("http://", None);
        check("a blog", None);
    }
}
