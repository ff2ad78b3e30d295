//! The feeds of a page in the order in which they are tried: those of posts before those of
//! comments. Not whether there is a feed at their addresses.

use super::{decoded, feeds_of_page};
use crate::{Hints, Link, detect};
use std::collections::HashSet;

/// A feed that a web page names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFeed {
    /// The link to it, resolved.
    pub link: Link,
    /// True if its address or its title says that it has comments, not posts.
    pub is_of_comments: bool,
}

/// Words of an address at which there are comments. Software writes them in English, whatever the
/// language of the blog.
const ADDRESS_WORDS: [&str; 6] = [
    "comments",
    "comment",
    "commentaires",
    "comentarios",
    "kommentare",
    "crss",
];

/// Beginnings of the words for comments in titles, in the languages of the blogs.
const TITLE_STEMS: [&str; 17] = [
    "comment",
    "coment",
    "komment",
    "komentar",
    "komentá",
    "reacties",
    "комментар",
    "коментар",
    "yorum",
    "hozzászólás",
    "σχολί",
    "σχόλι",
    "コメント",
    "评论",
    "留言",
    "댓글",
    "תגובות",
];

// Decides: Which feed of a page is tried first?
/// The feeds that a web page names, each address once and without the page itself: feeds of posts in
/// the order of the page, then feeds of comments.
///
/// ```
/// use everfeed_adapters::{Hints, named_feeds};
///
/// let page = br#"<!DOCTYPE html><title>Old blog</title>
///     <link rel="alternate" type="application/rss+xml" title="Old blog &raquo; Comments" href="/comments/feed/">
///     <link rel="alternate" type="application/rss+xml" title="Old blog &raquo; Feed" href="/feed/">"#;
/// let base_url = Some("http://example.org/");
/// let feeds = named_feeds(page, &Hints { base_url, ..Hints::default() });
/// assert_eq!(feeds[0].link.href, "http://example.org/feed/");
/// assert!(feeds[1].is_of_comments);
/// ```
pub fn named_feeds(bytes: &[u8], hints: &Hints<'_>) -> Vec<PageFeed> {
    let page = decoded(bytes, hints);
    let title = detect::title(&page.text).unwrap_or_default();
    let own = hints.base_url.map(without_fragment).unwrap_or_default();
    let known = PageWords {
        title: words(&title).collect(),
        address: words(path_of(own)).collect(),
    };
    let mut met = HashSet::from([own.to_owned()]);
    let mut feeds: Vec<PageFeed> = feeds_of_page(&page.text, hints.base_url)
        .into_iter()
        .filter(|link| met.insert(without_fragment(&link.href).to_owned()))
        .map(|link| PageFeed {
            is_of_comments: known.tells_of_comments(&link),
            link,
        })
        .collect();
    // The order of the page stays among equals.
    feeds.sort_by_key(|feed| feed.is_of_comments);
    feeds
}

/// Words that say nothing about a feed of a page, because the page has them, too: those of a blog
/// that is called "No comment".
struct PageWords {
    title: HashSet<String>,
    address: HashSet<String>,
}

impl PageWords {
    fn tells_of_comments(&self, link: &Link) -> bool {
        let mut address = words(path_of(&link.href)).filter(|word| !self.address.contains(word));
        if address.any(|word| ADDRESS_WORDS.contains(&word.as_str())) {
            return true;
        }
        let title = link.title.as_deref().unwrap_or_default();
        let mut title = words(title).filter(|word| !self.title.contains(word));
        title.any(|word| TITLE_STEMS.iter().any(|stem| word.contains(stem)))
    }
}

/// Path and query of an address.
fn path_of(url: &str) -> &str {
    let behind = url.split_once("://").map_or(url, |(_, behind)| behind);
    behind.find(['/', '?']).map_or("", |at| &behind[at..])
}

fn without_fragment(url: &str) -> &str {
    url.split('#').next().unwrap_or_default()
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths of the feeds, those of comments with a mark.
    fn check(page_url: &str, title: &str, links: &[(&str, &str)], expect: &[&str]) {
        let links = links.iter().map(|(href, title)| {
            format!("<link rel=alternate type=application/rss+xml title='{title}' href='{href}'>")
        });
        let page = format!("<head><title>{title}</title>{}", links.collect::<String>());
        let hints = Hints {
            base_url: Some(page_url),
            ..Hints::default()
        };
        let found: Vec<String> = named_feeds(page.as_bytes(), &hints)
            .iter()
            .map(|feed| {
                let mark = if feed.is_of_comments {
                    " (comments)"
                } else {
                    ""
                };
                format!("{}{mark}", path_of(&feed.link.href))
            })
            .collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn feeds_of_comments_come_last_by_their_address_or_their_title_in_any_language() {
        for (title, address) in [
            ("Blog &raquo; Comments Feed", "/comments/feed/"),
            ("Blog", "/?feed=comments-rss2"),
            ("Blog", "/feeds/comments/default"),
            ("Blog", "/index.php?tempskin=_rss2&amp;disp=comments"),
            ("Blog", "/comments.xml"),
            ("Blog &raquo; Kommentar-Feed", "/k/"),
            ("Blog &raquo; Flux des commentaires", "/k/"),
            ("Blog &raquo; RSS komentářů", "/k/"),
            ("Блог &raquo; Лента комментариев", "/k/"),
            ("ブログ &raquo; コメントフィード", "/k/"),
        ] {
            let path = address.replace("&amp;", "&");
            check(
                "https://e.org/",
                "Blog",
                &[(address, title), ("/feed/", "Blog &raquo; Feed")],
                &["/feed/", &format!("{path} (comments)")],
            );
        }
    }

    #[test]
    fn a_blog_may_be_called_after_comments() {
        let links = [
            ("/no-comment/feed/", "No Comment &raquo; Feed"),
            (
                "/no-comment/comments/feed/",
                "No Comment &raquo; Comments Feed",
            ),
        ];
        check(
            "https://e.org/no-comment/",
            "No Comment – a blog",
            &links,
            &["/no-comment/feed/", "/no-comment/comments/feed/ (comments)"],
        );
    }

    #[test]
    fn neither_the_page_itself_nor_an_address_named_twice_is_another_feed() {
        check(
            "https://e.org/blog",
            "Blog",
            &[
                ("/blog", "a"),
                ("/blog#top", "b"),
                ("/f", "c"),
                ("/f", "d"),
                ("#", "e"),
            ],
            &["/f"],
        );
    }

    #[test]
    fn a_page_that_names_many_feeds_names_a_few() {
        let links: Vec<(String, &str)> = (0..500).map(|n| (format!("/{n}"), "x")).collect();
        let links: Vec<(&str, &str)> = links.iter().map(|(a, b)| (a.as_str(), *b)).collect();
        let expect: Vec<String> = (0..16).map(|n| format!("/{n}")).collect();
        let expect: Vec<&str> = expect.iter().map(String::as_str).collect();
        check("https://e.org/", "Blog", &links, &expect);
    }
}
