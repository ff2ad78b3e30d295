//! Posts as the document that a publisher sends: RSS 2.0 or Atom. What is wrong with them is the
//! publisher's business.

use super::publisher::Post;
use chrono::{DateTime, Utc};
use std::fmt::Write as _;

/// 2026-06-01, the hour 0 of every publisher, in seconds since 1970.
pub(crate) const START_SECS: u64 = 1_780_272_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Rss,
    Atom,
}

/// Parts of the ids and links of posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub scheme: &'static str,
    pub host: &'static str,
    pub software: Software,
}

/// The style of ids and links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Software {
    /// Ids are the links.
    Plain,
    /// Known for validators that hide deletions, and recognised by its ids.
    WordPress,
    /// Ids are no URLs, and links are others.
    Other,
}

impl Address {
    fn site(self) -> String {
        format!("{}://{}/", self.scheme, self.host)
    }

    fn id(self, post: u32) -> String {
        match self.software {
            Software::Plain => self.link(post),
            Software::WordPress => format!("{}?p={post}", self.site()),
            Software::Other => format!("urn:post:{post}"),
        }
    }

    fn link(self, post: u32) -> String {
        let folder = if self.software == Software::Other {
            "posts/post-"
        } else {
            ""
        };
        format!("{}{folder}{post}/", self.site())
    }
}

/// The form of `Post::version` in a document.
pub(crate) fn tag(version: u32) -> String {
    format!("version-{version}")
}

/// The title of a post. A short one stands in every page of the blog.
pub(crate) fn title(post: u32, is_short: bool) -> String {
    if is_short {
        "Post".to_owned()
    } else {
        format!("Post {post}")
    }
}

/// The post whose page stands at this address or path.
pub(crate) fn post_at(url: &str) -> Option<u32> {
    let digits: String = url
        .trim_end_matches('/')
        .chars()
        .rev()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.chars().rev().collect::<String>().parse().ok()
}

/// A document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Document {
    pub posts: Vec<Post>,
    pub address: Address,
    pub format: Format,
    pub habit: Habit,
}

/// Habits of the software that show in every document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Habit {
    /// Every title is the same word.
    pub short_titles: bool,
    /// The document says that it is the whole feed.
    pub is_complete: bool,
    /// Name of the software, if the document tells.
    pub generator: Option<&'static str>,
    /// Posts are linked to at another host.
    pub links_elsewhere: bool,
    /// Neither posts nor the feed have dates.
    pub is_undated: bool,
}

impl Document {
    pub(crate) fn render(&self) -> String {
        match self.format {
            Format::Rss => self.rss(),
            Format::Atom => self.atom(),
        }
    }

    fn link(&self, post: u32) -> String {
        match self.habit.links_elsewhere {
            true => format!("http://news.example/{post}/"),
            false => self.address.link(post),
        }
    }

    /// The elements by which a feed tells of its habits, alike in RSS and Atom.
    fn habit_markup(&self) -> String {
        let complete = if self.habit.is_complete {
            "<complete xmlns=\"http://purl.org/syndication/history/1.0\"/>"
        } else {
            ""
        };
        let generator = self
            .habit
            .generator
            .map(|name| format!("<generator>{name}</generator>"))
            .unwrap_or_default();
        format!("{complete}{generator}")
    }

    /// An element with a date, of a document that has any.
    fn dated(&self, name: &str, date: String) -> String {
        if self.habit.is_undated {
            String::new()
        } else {
            format!("<{name}>{date}</{name}>")
        }
    }

    fn rss(&self) -> String {
        let habit = self.habit_markup();
        let mut text = format!(
            "<rss version=\"2.0\"><channel><title>Blog</title><link>{}</link><description>Posts</description>{habit}",
            self.address.site()
        );
        for post in &self.posts {
            let (id, link) = (self.address.id(post.id), self.link(post.id));
            let (title, tag) = (title(post.id, self.habit.short_titles), tag(post.version));
            let date = self.dated("pubDate", date(post.published).to_rfc2822());
            write!(
                text,
                "<item><title>{title}</title><link>{link}</link><guid isPermaLink=\"false\">{id}</guid>\
                 {date}<category>{tag}</category><description>About {}.</description></item>",
                post.id
            )
            .unwrap();
        }
        text + "</channel></rss>"
    }

    fn atom(&self) -> String {
        let newest = self
            .posts
            .iter()
            .map(|post| post.updated)
            .fold(0.0, f64::max);
        let habit = self.habit_markup();
        let mut text = format!(
            "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>Blog</title><id>tag:blog.example,2020:feed</id>\
             <link href=\"{}\"/>{}{habit}",
            self.address.site(),
            self.dated("updated", date(newest).to_rfc3339())
        );
        for post in &self.posts {
            let (id, link) = (self.address.id(post.id), self.link(post.id));
            let (title, tag) = (title(post.id, self.habit.short_titles), tag(post.version));
            let (published, updated) = (
                self.dated("published", date(post.published).to_rfc3339()),
                self.dated("updated", date(post.updated).to_rfc3339()),
            );
            write!(
                text,
                "<entry><title>{title}</title><link href=\"{link}\"/><id>{id}</id>{published}{updated}\
                 <category term=\"{tag}\"/><content>About {}.</content></entry>",
                post.id
            )
            .unwrap();
        }
        text + "</feed>"
    }
}

/// The date of an hour, to the second.
fn date(hour: f64) -> DateTime<Utc> {
    DateTime::from_timestamp(START_SECS as i64 + (hour * 3600.0) as i64, 0).unwrap()
}
