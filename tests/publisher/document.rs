//! Posts as the document that a publisher sends: RSS 2.0 or Atom. What is wrong with them is the
//! publisher's business.

use super::{publisher::Post, scenario::Churn};
use chrono::{DateTime, Utc};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
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
    /// The same after an import that gave each post the number of another.
    Renumbered,
    /// Ids are no URLs, and links are others.
    Other,
}

/// By how much an import moves the numbers of posts.
const RENUMBERED_BY: u32 = 7;

impl Address {
    fn site(self) -> String {
        format!("{}://{}/", self.scheme, self.host)
    }

    fn id(self, post: u32) -> String {
        match self.software {
            Software::Plain => self.link(post),
            Software::WordPress => format!("{}?p={post}", self.site()),
            Software::Renumbered => format!("{}?p={}", self.site(), post + RENUMBERED_BY),
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

const WORDS: [&str; 24] = [
    "rain", "window", "garden", "letter", "harbour", "candle", "mountain", "engine", "silver",
    "morning", "bread", "river", "paper", "winter", "road", "stone", "teacher", "violin", "bridge",
    "shadow", "kitchen", "forest", "island", "before",
];

/// So many words, the same for each seed.
fn words(seed: u64, count: usize) -> Vec<String> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let word = |()| WORDS[rng.random_range(0..WORDS.len())].to_owned();
    std::iter::repeat_n((), count).map(word).collect()
}

/// The text of a post, of which each edit replaces a word.
fn text(post: u32, version: u32) -> String {
    let mut text = words(post.into(), 40);
    for edit in 1..=version {
        let new = words(u64::from(post) << 16 | u64::from(edit), 3);
        let place = (post * 5 + edit * 11) as usize % text.len();
        text[place] = new.concat();
    }
    text.join(" ")
}

/// The article on which a comment is.
pub(crate) fn article(comment: u32) -> u32 {
    comment / 4 * 7 % 9
}

/// The author of a comment, and its text, which may be that of another one.
pub(crate) fn comment(comment: u32) -> (&'static str, String) {
    let name = ["Anna", "Ben", "Chen", "Dora", "Emil"][comment as usize % 5];
    if comment.is_multiple_of(6) {
        return (name, "Thanks!".to_owned());
    }
    let count = 4 + comment as usize % 15;
    (name, words(comment.into(), count).join(" "))
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
    /// Chance, or the hour, by which parts of its posts move; 0 where none does.
    pub draw: u64,
}

/// The words of a post in a document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PostWords {
    pub title: String,
    pub text: String,
    pub tag: Option<String>,
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
    /// The posts are comments, and the page of each is that of an article.
    pub is_of_comments: bool,
    pub churn: Churn,
}

impl Document {
    pub(crate) fn render(&self) -> String {
        match self.format {
            Format::Rss => self.rss(),
            Format::Atom => self.atom(),
        }
    }

    fn link(&self, post: u32) -> String {
        let site = self.address.site();
        match self.habit.links_elsewhere {
            true => format!("http://news.example/{post}/"),
            false if self.habit.is_of_comments => {
                format!("{site}article-{}/#comment-{post}", article(post))
            }
            false => self.address.link(post),
        }
    }

    fn id(&self, post: &Post) -> String {
        match self.habit.churn {
            Churn::Revisions => format!("{}#{}", self.link(post.id), post.version),
            _ if self.habit.is_of_comments => self.link(post.id),
            _ => self.address.id(post.id),
        }
    }

    /// The words of a post as this document shows them.
    pub(crate) fn words(&self, post: &Post) -> PostWords {
        let Post { id, version, .. } = *post;
        if self.habit.is_of_comments {
            let (name, text) = comment(id);
            let title = format!("Comment on Article {} by {name}", article(id));
            let tag = (version > 0).then(|| tag(version));
            return PostWords { title, text, tag };
        }
        if self.habit.churn == Churn::None {
            return PostWords {
                title: title(id, self.habit.short_titles),
                text: format!("About {id}."),
                tag: Some(tag(version)),
            };
        }
        let (title, text) = self.moving_words(post);
        PostWords {
            title,
            text,
            tag: None,
        }
    }

    /// Title and text of a post of which parts move.
    fn moving_words(&self, post: &Post) -> (String, String) {
        let Post { id, version, .. } = *post;
        let (title, text) = (title(id, false), text(id, version));
        let is_other_node = self.draw & 1 == 1;
        let count = self.draw + u64::from(id);
        match self.habit.churn {
            Churn::None | Churn::Rebuilds => (title, text),
            Churn::Revisions => (
                format!("{title}, {}", words(version.into(), 2).join(" ")),
                text,
            ),
            Churn::Versions => (format!("version {version} of post {id}"), text),
            Churn::Counts => (format!("{title} ({count} comments)"), text),
            Churn::Claps => {
                let claps = format!("{}.{}K claps", 1 + count / 30, count / 3 % 10);
                (title, format!("{text}. {claps}"))
            }
            Churn::Related => {
                let related: Vec<String> = (0..3)
                    .map(|n| words((self.draw ^ u64::from(id)) % 60 + n, 5).join(" "))
                    .collect();
                (title, format!("{text}. Related: {}", related.join("; ")))
            }
            Churn::Schemes => {
                let scheme = if is_other_node { "https" } else { "http" };
                (title, format!("{text}. See {scheme}://blog.example/about"))
            }
            Churn::Languages if is_other_node => (format!("Beitrag {id}"), text),
            Churn::Languages => (title, text),
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
            let (id, link) = (self.id(post), self.link(post.id));
            let PostWords {
                title,
                text: words,
                tag,
            } = self.words(post);
            let tag = tag.map_or_else(String::new, |tag| format!("<category>{tag}</category>"));
            let date = self.dated("pubDate", date(post.published).to_rfc2822());
            write!(
                text,
                "<item><title>{title}</title><link>{link}</link><guid isPermaLink=\"false\">{id}</guid>\
                 {date}{tag}<description>{words}</description></item>"
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
            let (id, link) = (self.id(post), self.link(post.id));
            let PostWords {
                title,
                text: words,
                tag,
            } = self.words(post);
            let tag = tag.map_or_else(String::new, |tag| format!("<category term=\"{tag}\"/>"));
            let (published, updated) = (
                self.dated("published", date(post.published).to_rfc3339()),
                self.dated("updated", date(post.updated).to_rfc3339()),
            );
            write!(
                text,
                "<entry><title>{title}</title><link href=\"{link}\"/><id>{id}</id>{published}{updated}\
                 {tag}<content>{words}</content></entry>"
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
