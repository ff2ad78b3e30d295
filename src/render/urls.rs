//! The URLs that documents name: where a feed's views live under a site, and which links one view carries; not the
//! router that answers them.

use crate::feed::{order::Order, view::Format};

/// The place under which everything of ours is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    root: String,
}

/// The URLs of one feed.
#[derive(Clone, Copy, Debug)]
pub struct FeedUrls<'a> {
    site: &'a Site,
    name: &'a str,
}

/// The links of one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Urls {
    /// Canonical base URL of the view, its order spelt out: `rel=self` and JSON `url`, the same on every page (SF-51, SF-58).
    pub base: String,
    /// The hub that takes subscriptions to `base`.
    pub hub: Option<String>,
    /// The next page, when the range holds more (SF-53). Pushes and classic views leave it out.
    pub next: Option<String>,
    /// Other forms of the feed, and its description.
    pub alternates: Vec<Alternate>,
}

/// A link to another form of the same feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternate {
    /// `alternate` or `describedby`.
    pub rel: &'static str,
    /// Where it is.
    pub href: String,
    /// What it is.
    pub media_type: &'static str,
    /// What a person would call it.
    pub title: &'static str,
}

impl Site {
    /// From the public origin and the prefix of our own paths, for instance `https://example.org` and `/smart`.
    pub fn new(public_url: &str, prefix: &str) -> Self {
        let prefix = prefix.trim_matches('/');
        let origin = public_url.trim_end_matches('/');
        let root = if prefix.is_empty() { origin.to_owned() } else { format!("{origin}/{prefix}") };
        Self { root }
    }

    /// The list of feeds.
    pub fn list(&self) -> String {
        format!("{}/feeds", self.root)
    }

    /// The hub for every feed (SF-78).
    pub fn hub(&self) -> String {
        format!("{}/hub", self.root)
    }

    /// One feed.
    pub const fn feed<'a>(&'a self, name: &'a str) -> FeedUrls<'a> {
        FeedUrls { site: self, name }
    }
}

impl FeedUrls<'_> {
    /// The URL that negotiates the format.
    pub fn negotiated(&self) -> String {
        format!("{}/feeds/{}", self.site.root, self.name)
    }

    /// The description document.
    pub fn about(&self) -> String {
        format!("{}/about", self.negotiated())
    }

    /// The canonical base URL of a view (SF-43, SF-44). Classic views have one order, so it is not spelt.
    pub fn base(&self, format: Format, order: Order) -> String {
        let feed = self.negotiated();
        match format {
            Format::Atom => format!("{feed}.atom?order={order}"),
            Format::Json => format!("{feed}.json?order={order}"),
            Format::ClassicAtom => format!("{feed}/classic.atom"),
            Format::ClassicRss => format!("{feed}/classic.rss"),
        }
    }

    /// The links of a document of this view.
    pub fn of_view(&self, format: Format, order: Order, hub: Option<String>, next: Option<String>) -> Urls {
        Urls { base: self.base(format, order), hub, next, alternates: self.alternates(format, order) }
    }

    /// The same feed in other forms, then its description. A classic view names only the other one: a reader that
    /// followed it to the Smart Feed would find the oldest item first.
    fn alternates(&self, format: Format, order: Order) -> Vec<Alternate> {
        let others: &[Format] = match format {
            Format::Atom => &[Format::Json, Format::ClassicAtom, Format::ClassicRss],
            Format::Json => &[Format::Atom, Format::ClassicAtom, Format::ClassicRss],
            Format::ClassicAtom => &[Format::ClassicRss],
            Format::ClassicRss => &[Format::ClassicAtom],
        };
        let others = others.iter().map(|other| Alternate {
            rel: "alternate",
            href: self.base(*other, order),
            media_type: other.media_type(),
            title: title(*other),
        });
        let about = Alternate {
            rel: "describedby",
            href: self.about(),
            media_type: "text/html",
            title: "About this feed",
        };
        others.chain([about]).collect()
    }
}

const fn title(format: Format) -> &'static str {
    match format {
        Format::Atom => "Smart Feed (Atom)",
        Format::Json => "Smart Feed (JSON)",
        Format::ClassicAtom => "Newest posts (Atom)",
        Format::ClassicRss => "Newest posts (RSS)",
    }
}

impl Urls {
    /// A page for people about the feed.
    pub(super) fn about(&self) -> &str {
        let found = self.alternates.iter().find(|link| link.rel == "describedby");
        found.map_or(&self.base, |link| &link.href)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_stand_under_the_public_origin_and_the_prefix() {
        let check = |site: Site, root: &str| {
            assert_eq!(site.list(), format!("{root}/feeds"));
            assert_eq!(site.hub(), format!("{root}/hub"));
            let feed = site.feed("blog");
            assert_eq!(
                feed.base(Format::Json, Order::CREATED_REVERSE),
                format!("{root}/feeds/blog.json?order=-created")
            );
            assert_eq!(
                feed.base(Format::ClassicRss, Order::MODIFIED),
                format!("{root}/feeds/blog/classic.rss")
            );
            assert_eq!(feed.about(), format!("{root}/feeds/blog/about"));
        };
        check(Site::new("http://127.0.0.1:8080", ""), "http://127.0.0.1:8080");
        check(Site::new("https://example.org/", "/smart/"), "https://example.org/smart");
    }
}
