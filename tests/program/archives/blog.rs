//! A blog with archives of some kind: its posts and the documents that show them; not the faults of
//! its server.

use std::fmt::Write as _;
use testkit::publisher::{Answer, ok, with_headers};

/// Posts on a page, and in the live document.
const PER_PAGE: usize = 10;

/// The kind of archives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// WordPress: `?paged=N`, 404 behind the last.
    Paged,
    /// Ghost: `/rss/N/`; behind the last page a redirect to it.
    Ghost,
    /// Links `next`.
    Next,
    /// Archives that name one another (RFC 5005).
    Chain,
}

/// A blog.
pub(crate) struct Blog {
    kind: Kind,
    /// Newest first.
    pub(crate) posts: Vec<u32>,
    next: u32,
}

/// An answer before it is sent.
pub(crate) enum Reply {
    Feed { posts: Vec<u32>, head: String },
    Redirect(String),
    Status(u16),
    WebPage,
}

impl Blog {
    pub(crate) fn new(kind: Kind, posts: u32) -> Self {
        Self {
            kind,
            posts: (1..=posts).rev().collect(),
            next: posts + 1,
        }
    }

    pub(crate) fn delete(&mut self, post: u32) {
        self.posts.retain(|id| *id != post);
    }

    pub(crate) fn publish(&mut self) {
        self.posts.insert(0, self.next);
        self.next += 1;
    }

    /// Path of the feed.
    pub(crate) fn feed(&self) -> &'static str {
        if self.kind == Kind::Ghost {
            "/rss/"
        } else {
            "/feed"
        }
    }

    /// The number of the page that a target asks for, 0 of the live document.
    pub(crate) fn number(&self, target: &str) -> u64 {
        let names = ["paged=", "page=", "/archive/", "/rss/"];
        let behind = names
            .iter()
            .find_map(|name| target.split_once(name))
            .map_or("", |(_, behind)| behind);
        let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    }

    /// The answer to a request of a server without faults.
    pub(crate) fn answer(&self, target: &str) -> Reply {
        match self.number(target) {
            _ if target.contains("orderby=") => Reply::Status(404),
            0 if target == self.feed() || target == "/feed" => self.live(),
            0 => Reply::WebPage,
            number => self.page(number),
        }
    }

    pub(crate) fn live(&self) -> Reply {
        let newest: Vec<u32> = self.posts.iter().take(PER_PAGE).copied().collect();
        let head = match self.kind {
            Kind::Paged => "<generator>https://wordpress.org/?v=6.0</generator>".to_owned(),
            Kind::Ghost => "<generator>Ghost 1.2</generator>".to_owned(),
            Kind::Next => link("next", "/feed?page=2"),
            Kind::Chain => link("prev-archive", &format!("/archive/{}", self.archives())),
        };
        Reply::Feed {
            posts: newest,
            head,
        }
    }

    /// A page by its number.
    pub(crate) fn page(&self, number: u64) -> Reply {
        let pages = self.posts.len().div_ceil(PER_PAGE) as u64;
        if self.kind == Kind::Chain {
            return self.archive(number);
        }
        if number > pages {
            let last = format!("/rss/{pages}/");
            return if self.kind == Kind::Ghost {
                Reply::Redirect(last)
            } else {
                Reply::Status(404)
            };
        }
        if self.kind == Kind::Ghost && number == 1 {
            return Reply::Redirect("/rss/".to_owned());
        }
        let from = (usize::try_from(number).unwrap() - 1) * PER_PAGE;
        let posts = self
            .posts
            .iter()
            .skip(from)
            .take(PER_PAGE)
            .copied()
            .collect();
        let head = if self.kind == Kind::Next && number < pages {
            link("next", &format!("/feed?page={}", number + 1))
        } else {
            String::new()
        };
        Reply::Feed { posts, head }
    }

    fn archives(&self) -> u64 {
        (self.posts.len() / PER_PAGE) as u64
    }

    fn archive(&self, number: u64) -> Reply {
        if number == 0 || number > self.archives() {
            return Reply::Status(404);
        }
        let first = u32::try_from(number - 1).unwrap() * PER_PAGE as u32 + 1;
        let posts = (first..first + PER_PAGE as u32)
            .rev()
            .filter(|id| self.posts.contains(id))
            .collect();
        let mut head = "<fh:archive/>".to_owned();
        if number > 1 {
            head += &link("prev-archive", &format!("/archive/{}", number - 1));
        }
        if number < self.archives() {
            head += &link("next-archive", &format!("/archive/{}", number + 1));
        }
        Reply::Feed { posts, head }
    }
}

fn link(rel: &str, href: &str) -> String {
    format!("<atom:link rel=\"{rel}\" href=\"{href}\"/>")
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self::Status(status)
    }

    pub(crate) fn posts(posts: &[u32]) -> Self {
        Self::Feed {
            posts: posts.to_vec(),
            head: String::new(),
        }
    }

    pub(crate) fn redirect(target: &str) -> Self {
        Self::Redirect(target.to_owned())
    }

    pub(crate) fn web_page() -> Self {
        Self::WebPage
    }

    /// A page of a feed that is not this blog's.
    pub(crate) fn another_feed() -> Self {
        let head = "</channel><channel><title>Another</title><link>http://another.example/</link>";
        Self::Feed {
            posts: vec![90_001],
            head: head.to_owned(),
        }
    }

    /// The bytes that are sent.
    pub(crate) fn send(&self) -> Answer {
        match self {
            Self::Feed { posts, head } => ok("application/rss+xml", rss(posts, head)),
            Self::Redirect(target) => with_headers(302, &[("location", target)], ""),
            Self::Status(status) => with_headers(*status, &[], "nothing"),
            Self::WebPage => ok(
                "text/html",
                "<!doctype html><html><title>Blog</title><p>Hello</p></html>",
            ),
        }
    }
}

/// An RSS document; a head that begins a channel of its own replaces the blog's.
fn rss(posts: &[u32], head: &str) -> String {
    let mut out = String::from(
        "<rss version=\"2.0\" xmlns:atom=\"http://www.w3.org/2005/Atom\" \
         xmlns:fh=\"http://purl.org/syndication/history/1.0\">",
    );
    match head.strip_prefix("</channel>") {
        Some(own) => out += own,
        None => {
            let _ = write!(
                out,
                "<channel><title>Blog</title><link>http://blog.example/</link>{head}"
            );
        }
    }
    for post in posts {
        let (year, month, day) = (2000 + post / 336, 1 + post / 28 % 12, 1 + post % 28);
        let _ = write!(
            out,
            "<item><guid isPermaLink=\"false\">post-{post}</guid><title>Post {post}</title>\
             <pubDate>{day:02} {} {year} 10:00:00 GMT</pubDate></item>",
            MONTHS[month as usize - 1]
        );
    }
    out + "</channel></rss>"
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
