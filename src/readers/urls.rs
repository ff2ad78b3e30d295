//! Where we are reached from outside, and the way back from a URL to a view; how a view's URL is spelt, `render` knows.

use super::ReadRequest;
use crate::{
    feed::{
        order::Order,
        view::{Format, View},
    },
    render,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::{Url, form_urlencoded};

/// Where we are reached from outside.
#[derive(Clone, Debug)]
pub struct Urls {
    site: render::Site,
    root: Url,
}

/// What a URL of ours shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// The feed's name.
    pub name: String,
    /// In which order.
    pub order: Order,
    /// In which form.
    pub format: Format,
}

/// Everything but unreserved characters is escaped in a query value.
const QUERY_VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

impl Urls {
    /// From the public URL and the path prefix below which our own paths live.
    pub fn new(public_url: &Url, prefix: &str) -> Self {
        let mut root = public_url.clone();
        let path = format!("{}/{}", public_url.path().trim_end_matches('/'), prefix.trim_matches('/'));
        root.set_path(path.trim_end_matches('/'));
        Self { site: render::Site::new(public_url.as_str(), prefix), root }
    }

    /// The site that documents name.
    pub fn site(&self) -> &render::Site {
        &self.site
    }

    /// The hub.
    pub fn hub(&self) -> String {
        self.site.hub()
    }

    /// The canonical base URL of a view: identity of the feed, rel=self, and the WebSub topic (SF-43, SF-58).
    pub fn base(&self, name: &str, order: Order, format: Format) -> String {
        self.site.feed(name).base(format, order)
    }

    /// The page after this one (SF-53): the same question, from the last cursor on.
    pub(super) fn next(&self, name: &str, reading: &ReadRequest, last_cursor: &str) -> String {
        let base = self.base(name, reading.view.order, reading.view.format);
        let since = format!("cursor:{last_cursor}");
        let mut next =
            format!("{base}&since={}&max={}", utf8_percent_encode(&since, QUERY_VALUE), reading.max);
        if let Some(until) = &reading.until {
            next.push_str("&until=");
            next.extend(utf8_percent_encode(&until.raw, QUERY_VALUE));
        }
        next
    }

    /// The links of a document.
    pub(super) fn links(&self, name: &str, view: View, next: Option<String>) -> render::Urls {
        self.site.feed(name).of_view(view.format, view.order, Some(self.hub()), next)
    }

    /// What a URL of ours shows, when it is the URL of a view. Scheme, case of the host, a slash at the end and a
    /// missing order do not matter (HUBS 5.3); `since` and its like are no part of a topic.
    pub fn topic(&self, url: &str) -> Option<Topic> {
        let url = Url::parse(url).ok()?;
        let ours = |url: &Url| (url.host_str().map(str::to_ascii_lowercase), url.port_or_known_default());
        let (given, own) = (ours(&url), ours(&self.root));
        let default_port = |port: Option<u16>| matches!(port, Some(80 | 443));
        let same_port = given.1 == own.1 || (default_port(given.1) && default_port(own.1));
        if given.0 != own.0
            || !same_port
            || url.fragment().is_some()
            || !matches!(url.scheme(), "http" | "https")
        {
            return None;
        }
        let path = url.path().strip_prefix(self.root.path().trim_end_matches('/'))?;
        let path = path.strip_prefix("/feeds/")?.trim_end_matches('/');
        let (name, format) = match path.split_once('/') {
            Some((name, "classic.atom")) => (name, Format::ClassicAtom),
            Some((name, "classic.rss")) => (name, Format::ClassicRss),
            Some(_) => return None,
            None => match path.rsplit_once('.') {
                Some((name, "atom")) => (name, Format::Atom),
                Some((name, "json")) => (name, Format::Json),
                _ => (path, Format::Atom),
            },
        };
        let mut order = Order::MODIFIED;
        for (key, value) in form_urlencoded::parse(url.query().unwrap_or_default().as_bytes()) {
            match key.as_ref() {
                "order" => order = value.parse().ok()?,
                "since" | "until" | "max" | "timeout" | "callback" => return None,
                _ => {}
            }
        }
        Some(Topic { name: name.to_owned(), order, format })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(prefix: &str) -> Urls {
        Urls::new(&Url::parse("http://example.org:8080/").unwrap(), prefix)
    }

    #[test]
    fn every_base_url_leads_back_to_its_view() {
        for prefix in ["", "smart", "/a/b/"] {
            let urls = urls(prefix);
            for format in [Format::Atom, Format::Json] {
                for order in Order::ALL {
                    let topic = Topic { name: "blog".into(), order, format };
                    assert_eq!(urls.topic(&urls.base("blog", order, format)), Some(topic));
                }
            }
            let classic = urls.topic(&urls.base("blog", Order::MODIFIED, Format::ClassicRss)).unwrap();
            assert_eq!((classic.format, classic.order), (Format::ClassicRss, Order::MODIFIED));
        }
    }

    #[test]
    fn a_topic_is_known_by_its_other_spellings_too() {
        let check = |url: &str, known: bool| assert_eq!(urls("").topic(url).is_some(), known, "{url}");
        check("http://EXAMPLE.org:8080/feeds/blog.atom", true);
        check("https://example.org:8080/feeds/blog.atom/?order=created", true);
        check("http://example.org:8080/feeds/blog", true);
        check("http://example.org:8080/feeds/blog.atom?order=best", false);
        check("http://example.org:8080/feeds/blog.atom?since=cursor:", false);
        check("http://example.org:8080/feeds/blog.atom#x", false);
        check("http://example.com:8080/feeds/blog.atom", false);
        check("http://example.org/feeds/blog.atom", false);
        check("http://example.org:8080/other/blog.atom", false);
        check("/feeds/blog.atom", false);
    }
}
