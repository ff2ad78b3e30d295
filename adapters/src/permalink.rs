//! Recognition of an entry on a web page, to find out if an entry that left its feed is still
//! there. A page that merely answers, as a front page or a "not found" with status 200 does, shows
//! nothing.

use crate::text::{encoding, entities::unescape};
use crate::{Entry, Hints, Text, TextKind};

/// Words of a content that stand for it where there is no title.
const WORDS_ENOUGH: usize = 8;

/// The shortest id, in bytes, that does not stand in a page by chance.
const ID_BYTES_MIN: usize = 12;

/// True when a page holds the entry: its title, the first eight words of what it says, or its id.
/// The page may be in any state, and cut; upper case, punctuation and typographic marks make no
/// difference, as templates change them.
///
/// ```
/// use everfeed_adapters::{Entry, Hints, Text, shows_entry};
///
/// let entry = Entry { title: Some(Text::plain("Fish’n’Chips, & a café")), ..Entry::default() };
/// let shows = |page: &str| shows_entry(page.as_bytes(), &Hints::default(), &entry);
/// assert!(shows("<title>My blog: Fish&#8217;n'chips, &amp;\n a caf&eacute;</title>"));
/// assert!(!shows("<title>My blog</title><p>There is nothing here."));
/// ```
pub fn shows_entry(page: &[u8], hints: &Hints<'_>, entry: &Entry) -> bool {
    PageText::new(page, hints).shows(entry)
}

/// The text of a web page, ready to be searched for many entries.
#[derive(Clone, Debug)]
pub struct PageText {
    page: String,
    /// Words with those of tags, for what stands in their attributes.
    tagged: String,
    /// Words without tags, for what is interrupted by them.
    untagged: String,
}

impl PageText {
    /// Text of a page in any state.
    pub fn new(page: &[u8], hints: &Hints<'_>) -> Self {
        let page = encoding::decode(page, hints.content_type).text.to_string();
        let [tagged, untagged] = [words(&unescape(&page)), words(&unescape(&untagged(&page)))];
        Self {
            page,
            tagged,
            untagged,
        }
    }

    /// True when the page holds the entry, as in [`shows_entry`].
    pub fn shows(&self, entry: &Entry) -> bool {
        self.count(entry) > 0
    }

    /// True when the page holds the first words of what the entry says; `None` if it says too
    /// little to tell.
    pub fn shows_text(&self, entry: &Entry) -> Option<bool> {
        let opening = opening(entry)?;
        Some(self.tagged.contains(&opening) || self.untagged.contains(&opening))
    }

    /// True when an element of the page has this name, to which the fragment of an address leads.
    pub fn has_anchor(&self, fragment: &str) -> bool {
        let is_name = |at: usize| {
            let before = self.page[..at].trim_end_matches(['"', '\'']);
            let after = &self.page[at + fragment.len()..];
            let ends_with = |name: &str| {
                let start = before.len().checked_sub(name.len());
                let end = start.and_then(|start| before.as_bytes().get(start..));
                end.is_some_and(|end| end.eq_ignore_ascii_case(name.as_bytes()))
            };
            (ends_with("id=") || ends_with("name="))
                && after
                    .starts_with(|c: char| matches!(c, '"' | '\'' | '>' | '/') || c.is_whitespace())
        };
        !fragment.is_empty() && self.page.match_indices(fragment).any(|(at, _)| is_name(at))
    }

    /// Number of times that the page holds the entry: a page of another entry may name it, too, but
    /// less often than its own.
    pub fn count(&self, entry: &Entry) -> usize {
        // An id that is an address may be the very one that was asked for, and many a "not found"
        // repeats that.
        let id = entry
            .id
            .as_deref()
            .filter(|id| id.len() >= ID_BYTES_MIN && !id.contains("//"));
        let ids = id.map_or(0, |id| self.page.matches(id).count());
        let times =
            |mark: &String| occurrences(&self.tagged, mark).max(occurrences(&self.untagged, mark));
        ids + marks(entry).iter().map(times).sum::<usize>()
    }
}

/// Number of times that a phrase stands in a text of words. Two in a row share the space between
/// them.
fn occurrences(words: &str, phrase: &str) -> usize {
    let (mut count, mut rest) = (0, words);
    while let Some(at) = rest.find(phrase) {
        count += 1;
        rest = &rest[at + phrase.len() - 1..];
    }
    count
}

/// Phrases that stand for an entry: its title, and its first words. A title of one word stands in
/// many a page by chance, so that it counts only where nothing else does.
fn marks(entry: &Entry) -> Vec<String> {
    let title = entry.title.as_ref().and_then(title);
    let opening = opening(entry);
    let is_telling = |title: &String| opening.is_none() || title.split_whitespace().count() > 1;
    title
        .filter(is_telling)
        .into_iter()
        .chain(opening.clone())
        .collect()
}

fn title(title: &Text) -> Option<String> {
    Some(words_of(title)).filter(|title| !title.trim().is_empty())
}

/// The first words of what an entry says, if it says enough.
fn opening(entry: &Entry) -> Option<String> {
    let said = entry
        .content
        .as_ref()
        .map(|content| &content.text)
        .or(entry.summary.as_ref())?;
    let said = words_of(said);
    let words: Vec<&str> = said.split_whitespace().take(WORDS_ENOUGH).collect();
    (words.len() == WORDS_ENOUGH).then(|| format!(" {} ", words.join(" ")))
}

fn words_of(text: &Text) -> String {
    match text.kind {
        TextKind::Plain => words(&text.value),
        TextKind::Html | TextKind::Xhtml => words(&unescape(&untagged(&text.value))),
        TextKind::Base64 => String::new(),
    }
}

/// A fragment without its tags.
fn untagged(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        out.push_str(before);
        rest = tag.split_once('>').map_or("", |(_, after)| after);
    }
    out + rest
}

/// Letters and digits in lower case, with one space around each run of them.
fn words(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(' ');
    for c in text.chars() {
        if c.is_alphanumeric() {
            out.extend(c.to_lowercase());
        } else if !out.ends_with(' ') {
            out.push(' ');
        }
    }
    if !out.ends_with(' ') {
        out.push(' ');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Body;

    fn check(entry: &Entry, page: &str, expect: bool) {
        let hints = Hints {
            content_type: Some("text/html"),
            ..Hints::default()
        };
        assert_eq!(
            shows_entry(page.as_bytes(), &hints, entry),
            expect,
            "{page}"
        );
    }

    fn titled(title: Text) -> Entry {
        Entry {
            title: Some(title),
            id: Some("http://x/?p=17".into()),
            ..Entry::default()
        }
    }

    #[test]
    fn a_title_counts_wherever_it_stands() {
        let entry = titled(Text::html("Why <em>we</em> left &mdash; part 2"));
        check(&entry, "<h1>WHY WE LEFT - PART 2</h1>", true);
        check(
            &entry,
            "<meta property='og:title' content=\"Why we left &#8212; part 2\">",
            true,
        );
        check(
            &entry,
            "<script>{\"title\":\"Why we left \u{2014} part 2\"}</script>",
            true,
        );
        check(&entry, "<h1>Why we left</h1> part 1, part 2", false);
        check(&entry, "<h1>Why we left: part 20</h1>", false);
        check(&entry, "", false);
    }

    #[test]
    fn a_not_found_that_repeats_the_address_shows_nothing() {
        check(
            &titled(Text::plain("A post")),
            "<h1>Not found</h1> http://x/?p=17 is not here",
            false,
        );
        let entry = Entry {
            id: Some("tag:x.org,2004:post-17".into()),
            ..titled(Text::plain("A post"))
        };
        check(&entry, "<article id='tag:x.org,2004:post-17'>", true);
        let entry = Entry {
            id: Some("17".into()),
            ..titled(Text::plain("A post"))
        };
        check(&entry, "17 posts were found", false);
    }

    #[test]
    fn without_a_title_the_first_words_count_if_there_are_enough() {
        let said = |text: &str| Entry {
            content: Some(Body {
                text: Text::html(text),
                ..Body::default()
            }),
            ..Entry::default()
        };
        let words = "<p>One two <b>three</b> four, five six seven eight nine</p>";
        check(
            &said(words),
            "x one two three four five six seven eight and so on",
            true,
        );
        check(&said(words), "one two three four five six seven", false);
        check(&said("<p>Hello!</p>"), "Hello!", false);
        check(&titled(Text::plain("***")), "***", false);
    }

    #[test]
    fn a_page_with_another_title_shows_the_entry_by_its_words() {
        let words = "One two three four five six seven eight nine";
        let content = Some(Body {
            text: Text::html(words),
            ..Body::default()
        });
        let entry = |title: &str| Entry {
            title: Some(Text::plain(title)),
            content: content.clone(),
            ..Entry::default()
        };
        check(
            &entry("The old title"),
            &format!("<h1>A new title</h1><p>{words}"),
            true,
        );
        check(
            &entry("The old title"),
            "<h1>The <em>old</em> title</h1>",
            true,
        );
        check(
            &entry("Home"),
            "<nav><a href='/'>Home</a></nav><h1>Not found</h1>",
            false,
        );
        check(&entry("Home"), &format!("<h1>Home</h1><p>{words}"), true);
        check(&titled(Text::plain("Home")), "<h1>Home</h1>", true);
    }

    #[test]
    fn its_own_page_names_an_entry_more_often_than_the_margin_of_another() {
        let entry = titled(Text::plain("A post"));
        let count = |page: &str| PageText::new(page.as_bytes(), &Hints::default()).count(&entry);
        assert_eq!(
            count("<title>A post - blog</title><h1>A post</h1><ul><li>A post</li></ul>"),
            3
        );
        assert_eq!(
            count("<title>Blog</title><h1>Another</h1><ul><li>A post</li></ul>"),
            1
        );
        assert_eq!(count("a post a post"), 2);
        assert_eq!(count("<h1>Nothing</h1>"), 0);
    }

    #[test]
    fn the_first_words_and_the_anchor_of_an_entry_tell_it_from_its_namesakes() {
        let page = |page: &str| PageText::new(page.as_bytes(), &Hints::default());
        let entry = Entry {
            content: Some(Body {
                text: Text::html("One two three four five six seven eight nine"),
                ..Body::default()
            }),
            ..titled(Text::plain("By Anna"))
        };
        let there = page("<li id=\"comment-7\">By Anna: one two three, four five six seven eight");
        assert_eq!(there.shows_text(&entry), Some(true));
        assert!(there.has_anchor("comment-7") && !there.has_anchor("comment-"));
        let other = page("<li id=comment-77>By Anna: hello <a href='#comment-7'>answer</a>");
        assert_eq!(other.shows_text(&entry), Some(false));
        assert!(!other.has_anchor("comment-7") && other.has_anchor("comment-77"));
        assert!(!other.has_anchor(""));
        assert_eq!(other.shows_text(&titled(Text::plain("By Anna"))), None);
        assert!(page("<A NAME='x'>").has_anchor("x") && !page("<a grid=x>").has_anchor("rid"));
    }

    #[test]
    fn a_page_in_any_state_does() {
        let entry = titled(Text::plain("Größe"));
        let hints = |content_type| Hints {
            content_type,
            ..Hints::default()
        };
        assert!(shows_entry(
            b"<h1>Gr\xf6\xdfe",
            &hints(Some("text/html; charset=iso-8859-1")),
            &entry
        ));
        assert!(!shows_entry(b"\x1f\x8b\x00\xff\xfe", &hints(None), &entry));
    }
}
