//! OPML: the feeds that a list of feeds names, with the folders that they are in. Not whether there
//! is a feed at their addresses.

use crate::text::markup::split;
use crate::text::markup::tokens::{Token, Tokens, attributes};
use crate::text::{encoding, present};

/// Limit of a list, bytes.
pub const OPML_BYTES_MAX: usize = 16 << 20;

/// Limit of the outlines of a list that is imported once, folders included.
pub const OUTLINES_MAX: usize = 20_000;

/// Limit of the folders in which a feed is: one that is deeper counts as in the last of them.
pub const FOLDERS_DEEP_MAX: usize = 8;

/// Characters of a title and of the name of a folder at most; the rest is left out.
const NAME_CHARS_MAX: usize = 200;

/// A list of feeds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opml {
    /// The feeds, in the order of the list.
    pub feeds: Vec<OutlinedFeed>,
    /// Outlines with an address that is that of no feed.
    pub others: Vec<OtherOutline>,
    /// True if the list ends before its last tag.
    pub is_cut: bool,
}

/// A feed of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlinedFeed {
    /// The address as the list has it.
    pub url: String,
    /// The title, or else the text of the outline.
    pub title: Option<String>,
    /// The folders that it is in, the outermost first.
    pub folders: Vec<String>,
    /// True if it is in more folders than [`FOLDERS_DEEP_MAX`].
    pub is_too_deep: bool,
}

/// An outline with another address than that of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherOutline {
    /// The address as the list has it.
    pub url: String,
    /// The title, or else the text of the outline.
    pub title: Option<String>,
    /// True if the address is that of another list.
    pub is_list: bool,
}

/// Bytes that are no OPML, or more of it than is read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOpml {
    /// Too many bytes.
    #[error("the list is larger than {OPML_BYTES_MAX} bytes")]
    TooLong,
    /// Too many outlines: more than this number.
    #[error("the list has more than {0} outlines; split it")]
    TooManyOutlines(usize),
    /// A document type, in which entities may be declared.
    #[error("the list has a document type (<!DOCTYPE>), which is not read; take that line out")]
    DocumentType,
    /// Something else.
    #[error("this is no OPML: {0}")]
    Other(String),
}

/// Reads a list. Whatever is odd in it is left out or mended, as in a feed.
///
/// ```
/// let list = br#"<opml version="2.0"><body><outline text="Friends">
///     <outline text="A blog" xmlUrl="https://blog.example/feed"/></outline></body></opml>"#;
/// let list = everfeed_adapters::opml(list)?;
/// assert_eq!(list.feeds[0].url, "https://blog.example/feed");
/// assert_eq!(list.feeds[0].folders, ["Friends"]);
/// # Ok::<(), everfeed_adapters::NotOpml>(())
/// ```
pub fn opml(bytes: &[u8]) -> Result<Opml, NotOpml> {
    opml_within(bytes, OUTLINES_MAX)
}

/// Reads a list of at most so many outlines, folders included.
pub fn opml_within(bytes: &[u8], outlines_max: usize) -> Result<Opml, NotOpml> {
    if bytes.len() > OPML_BYTES_MAX {
        return Err(NotOpml::TooLong);
    }
    let document = encoding::decode(bytes, None);
    let mut tokens = Tokens::new(&document.text);
    let start = root(&mut tokens)?;
    if holds_document_type(&document.text[..start]) {
        return Err(NotOpml::DocumentType);
    }
    let mut reading = OutlineReading {
        outlines_max,
        ..OutlineReading::default()
    };
    let mut is_ended = false;
    while let Some((token, _)) = tokens.next() {
        match token {
            Token::Start {
                name,
                attributes,
                empty,
            } if is(name, "outline") => reading.begin(attributes, empty)?,
            Token::End { name } if is(name, "outline") => reading.end(),
            Token::End { name } if is(name, "opml") => is_ended = true,
            _ => {}
        }
    }
    reading.list.is_cut = !is_ended;
    Ok(reading.list)
}

/// Place of the root element, if that is the one of OPML.
fn root(tokens: &mut Tokens<'_>) -> Result<usize, NotOpml> {
    while let Some((token, place)) = tokens.next() {
        match token {
            Token::Start { name, .. } if is(name, "opml") => return Ok(place.start),
            Token::Start { name, .. } => {
                let root: String = name.chars().take(NAME_CHARS_MAX).collect();
                return Err(NotOpml::Other(format!("its root element is `{root}`")));
            }
            Token::Text(text) if text.trim().is_empty() => {}
            _ => break,
        }
    }
    Err(NotOpml::Other("it does not begin with `<opml>`".to_owned()))
}

fn holds_document_type(before: &str) -> bool {
    let mut marks = memchr::memmem::find_iter(before.as_bytes(), b"<!");
    marks.any(|at| {
        let word = before.as_bytes().get(at + 2..at + 9);
        word.is_some_and(|word| word.eq_ignore_ascii_case(b"doctype"))
    })
}

fn is(name: &str, local: &str) -> bool {
    split(name).1.eq_ignore_ascii_case(local)
}

/// An outline that is not ended yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenOutline {
    /// A folder with a name.
    Folder,
    /// A folder with a name in too many others.
    TooDeep,
    /// A comment: nothing in it counts.
    Comment,
    /// A feed, or an outline without a name.
    Other,
}

/// The list so far, and the place in it.
#[derive(Debug, Default)]
struct OutlineReading {
    list: Opml,
    open: Vec<OpenOutline>,
    folders: Vec<String>,
    too_deep: usize,
    comments: usize,
    outlines: usize,
    outlines_max: usize,
}

impl OutlineReading {
    fn begin(&mut self, attributes: &str, empty: bool) -> Result<(), NotOpml> {
        self.outlines += 1;
        if self.outlines > self.outlines_max {
            return Err(NotOpml::TooManyOutlines(self.outlines_max));
        }
        let outline = Outline::of(attributes);
        let open = self.take(outline, empty);
        if empty {
            return Ok(());
        }
        match open {
            OpenOutline::TooDeep => self.too_deep += 1,
            OpenOutline::Comment => self.comments += 1,
            OpenOutline::Folder | OpenOutline::Other => {}
        }
        self.open.push(open);
        Ok(())
    }

    /// Takes an outline in. What is in a comment is none.
    fn take(&mut self, outline: Outline, empty: bool) -> OpenOutline {
        if outline.is_comment || self.comments > 0 {
            return OpenOutline::Comment;
        }
        let title = outline.title.or(outline.text);
        if let Some(url) = outline.feed {
            let mut folders = self.folders.clone();
            if folders.is_empty() {
                folders.extend(outline.category);
            }
            self.list.feeds.push(OutlinedFeed {
                url,
                title,
                folders,
                is_too_deep: self.too_deep > 0,
            });
            return OpenOutline::Other;
        }
        if let Some(url) = outline.other {
            self.list.others.push(OtherOutline {
                url,
                title: title.clone(),
                is_list: outline.is_list,
            });
        }
        match title {
            Some(_) if empty => OpenOutline::Other,
            Some(name) if self.folders.len() < FOLDERS_DEEP_MAX => {
                self.folders.push(name);
                OpenOutline::Folder
            }
            Some(_) => OpenOutline::TooDeep,
            None => OpenOutline::Other,
        }
    }

    fn end(&mut self) {
        match self.open.pop() {
            Some(OpenOutline::Folder) => drop(self.folders.pop()),
            Some(OpenOutline::TooDeep) => self.too_deep -= 1,
            Some(OpenOutline::Comment) => self.comments -= 1,
            Some(OpenOutline::Other) | None => {}
        }
    }
}

/// The attributes of an outline, whatever the case of their names.
#[derive(Debug, Default)]
struct Outline {
    text: Option<String>,
    title: Option<String>,
    /// The address of a feed.
    feed: Option<String>,
    /// The address of something else: another list, or a page.
    other: Option<String>,
    is_list: bool,
    is_comment: bool,
    /// The first category, which some software has in the place of folders.
    category: Option<String>,
}

impl Outline {
    fn of(raw: &str) -> Self {
        let mut outline = Self::default();
        let mut link = None;
        let mut page = None;
        let mut kind = String::new();
        for (name, value) in attributes(raw) {
            let Some(value) = present(&value) else {
                continue;
            };
            match name.to_ascii_lowercase().as_str() {
                "text" => outline.text = Some(cut(&value)),
                "title" => outline.title = Some(cut(&value)),
                "xmlurl" => outline.feed = Some(value),
                "url" => link = Some(value),
                "htmlurl" => page = Some(value),
                "type" => kind = value.to_ascii_lowercase(),
                "iscomment" => outline.is_comment = value.eq_ignore_ascii_case("true"),
                "category" => outline.category = first_category(&value),
                _ => {}
            }
        }
        outline.is_list = matches!(kind.as_str(), "include" | "link" | "source") && link.is_some();
        if kind == "source" && outline.feed.is_some() {
            // The address of a list stands where that of a feed would.
            outline.is_list = true;
            link = outline.feed.take();
        }
        outline.other = link.or(page);
        outline
    }
}

/// The first of the categories of an outline, which stand between commas; the last step of one that
/// is a path.
fn first_category(value: &str) -> Option<String> {
    let mut categories = value.split(',');
    categories.find_map(|category| {
        let category = category.trim().trim_matches('/');
        present(category.rsplit('/').next()?).map(|name| cut(&name))
    })
}

fn cut(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .take(NAME_CHARS_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The feeds of a body: address, title, folders.
    fn check(body: &str, expect: &[(&str, &str, &[&str])]) {
        let list = opml(format!("<opml version='2.0'><body>{body}</body></opml>").as_bytes());
        let list = list.unwrap();
        let found: Vec<_> = list
            .feeds
            .iter()
            .map(|feed| {
                let folders: Vec<&str> = feed.folders.iter().map(String::as_str).collect();
                (
                    feed.url.as_str(),
                    feed.title.as_deref().unwrap_or(""),
                    folders,
                )
            })
            .collect();
        let expect: Vec<_> = expect
            .iter()
            .map(|(a, b, c)| (*a, *b, c.to_vec()))
            .collect();
        assert_eq!(found, expect, "{body}");
        assert!(!list.is_cut);
    }

    #[test]
    fn any_outline_with_the_address_of_a_feed_is_one() {
        check(
            "<outline type='rss' text='t' title='T' xmlUrl='http://a/'/>\
             <OUTLINE TEXT='B &amp; C' XMLURL='http://b/?x=1&y=2'/>\
             <outline xmlurl='http://c/'></outline>\
             <outline text='d' title=' ' xmlUrl='http://d/'><outline xmlUrl='http://e/'/></outline>",
            &[
                ("http://a/", "T", &[]),
                ("http://b/?x=1&y=2", "B & C", &[]),
                ("http://c/", "", &[]),
                ("http://d/", "d", &[]),
                ("http://e/", "", &[]),
            ],
        );
    }

    #[test]
    fn folders_are_the_outlines_around_a_feed_else_its_category() {
        check(
            "<outline text='Tech'><outline title='Rust'><outline xmlUrl='http://a/'/></outline>\
             <outline xmlUrl='http://b/' category='no'/></outline><outline xmlUrl='http://c/'/>\
             <outline><outline xmlUrl='http://d/' category=',/x/News, other'/></outline>\
             <outline text='empty'/><outline xmlUrl='http://e/' category='/'/></outline>",
            &[
                ("http://a/", "", &["Tech", "Rust"]),
                ("http://b/", "", &["Tech"]),
                ("http://c/", "", &[]),
                ("http://d/", "", &["News"]),
                ("http://e/", "", &[]),
            ],
        );
    }

    #[test]
    fn comments_count_for_nothing_and_what_names_no_feed_is_told() {
        let list = opml(
            b"<opml><outline isComment='TRUE' text='x'><outline xmlUrl='http://a/'/></outline>\
              <outline text='L' type='include' url='http://l/'/><outline type='source' xmlUrl='http://s/'/>\
              <outline text='P' htmlUrl='http://p/'/><outline text='note'/></opml>",
        )
        .unwrap();
        assert!(list.feeds.is_empty());
        let others = list.others.iter();
        let others: Vec<_> = others
            .map(|other| (other.title.as_deref(), other.url.as_str(), other.is_list))
            .collect();
        assert_eq!(
            others,
            [
                (Some("L"), "http://l/", true),
                (None, "http://s/", true),
                (Some("P"), "http://p/", false),
            ]
        );
    }

    #[test]
    fn a_list_that_is_cut_is_read_as_far_as_it_goes() {
        let list =
            opml(b"<opml><body><outline text='F'><outline xmlUrl='http://a/'/><outl").unwrap();
        assert_eq!((list.feeds.len(), list.is_cut), (1, true));
    }

    #[test]
    fn outlines_nested_deep_are_in_the_outermost_folders() {
        let deep = 10_000;
        let body = "<outline text='f'>".repeat(deep) + "<outline xmlUrl='http://a/'/>";
        let body = body + &"</outline>".repeat(deep) + "<outline xmlUrl='http://b/'/>";
        let list = opml(format!("<opml>{body}</opml>").as_bytes()).unwrap();
        let found = list
            .feeds
            .iter()
            .map(|feed| (feed.folders.len(), feed.is_too_deep));
        let found: Vec<_> = found.collect();
        assert_eq!(found, [(FOLDERS_DEEP_MAX, true), (0, false)]);
    }

    #[test]
    fn what_is_no_list_or_too_much_of_one_is_refused() {
        let refused = |text: &str| opml(text.as_bytes()).unwrap_err();
        let of = |root: &str| NotOpml::Other(format!("its root element is `{root}`"));
        assert_eq!(refused("<!DOCTYPE html><html>"), of("html"));
        assert_eq!(refused("<rss/>"), of("rss"));
        for text in ["", "x", "{\"a\": 1}", "<![CDATA[<opml>]]>"] {
            assert!(matches!(refused(text), NotOpml::Other(_)), "{text}");
        }
        let bomb = "<?xml version='1.0'?><!DOCTYPE opml [<!ENTITY a 'http://a/'><!ENTITY b '&a;&a;'>]>\
                    <opml><outline xmlUrl='&b;'/></opml>";
        assert_eq!(refused(bomb), NotOpml::DocumentType);
        let many = "<outline xmlUrl='http://a/'/>".repeat(100_000);
        assert_eq!(
            refused(&format!("<opml>{many}</opml>")),
            NotOpml::TooManyOutlines(OUTLINES_MAX)
        );
        let within = opml_within(format!("<opml>{many}</opml>").as_bytes(), 100_000);
        assert_eq!(within.unwrap().feeds.len(), 100_000);
        assert_eq!(refused(&" ".repeat(OPML_BYTES_MAX + 1)), NotOpml::TooLong);
    }
}
