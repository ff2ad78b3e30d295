//! Texts in the other form: markup as plain words, plain words as HTML; not the sanitising of
//! either.

use everfeed_adapters::text::entities::{Resolved, resolve};
use everfeed_adapters::{Body, Entry, Text, TextKind};
use std::borrow::Cow;

/// The words alone, on one line: for titles in formats that know no markup there.
pub fn plain(text: &Text) -> Cow<'_, str> {
    let words = match text.kind {
        TextKind::Plain => return without_breaks(&text.value),
        TextKind::Html | TextKind::Xhtml if text.value.contains(['<', '&']) => {
            Cow::Owned(words_of(&text.value))
        }
        TextKind::Html | TextKind::Xhtml => Cow::Borrowed(text.value.as_str()),
        // Bytes are no words.
        TextKind::Base64 => Cow::Borrowed(""),
    };
    on_one_line(words)
}

/// Bytes of a text in which its first words are looked for.
const LEAD_BYTES_READ_MAX: usize = 16 << 10;

/// Characters of a title that is made of a text.
const LEAD_CHARS_MAX: usize = 80;

/// The title of a post in plain words, when it has one.
pub(super) fn title(entry: &Entry) -> Option<Cow<'_, str>> {
    entry
        .title
        .as_ref()
        .map(plain)
        .filter(|title| !title.is_empty())
}

// Decides: What is the title of a post without one?
/// The first words of a post, of its summary or else of its content: a title for formats that
/// demand one where the post has none (LEGACY D-1). At most [`LEAD_CHARS_MAX`] characters, whole
/// words where they are not longer than that, and an ellipsis when more follow.
pub(super) fn lead(entry: &Entry) -> Option<String> {
    let first_of = |html: Cow<'_, str>| {
        let most = LEAD_BYTES_READ_MAX.min(html.len());
        let read = &html[..(0..=most)
            .rev()
            .find(|at| html.is_char_boundary(*at))
            .unwrap_or_default()];
        let words = on_one_line(Cow::Owned(words_of(read)));
        (!words.is_empty()).then(|| shortened(&words, read.len() < html.len()))
    };
    let summary = ShownText::of(entry.summary.as_ref());
    let content = || entry.content.as_ref().and_then(ShownText::in_place);
    summary
        .and_then(|summary| first_of(summary.html()))
        .or_else(|| first_of(content()?.html()))
}

/// The words as far as they fit, with an ellipsis when some are left out.
fn shortened(words: &str, goes_on: bool) -> String {
    let Some((end, _)) = words.char_indices().nth(LEAD_CHARS_MAX) else {
        return if goes_on {
            format!("{words}…")
        } else {
            words.to_owned()
        };
    };
    let whole = if words[end..].starts_with(' ') {
        Some(end)
    } else {
        words[..end].rfind(' ')
    };
    format!("{}…", words[..whole.unwrap_or(end)].trim_end())
}

/// A title that keeps its markup, without the elements `script` and `style`. Without markup, it is
/// on one line.
pub(super) fn on_one_line_of(title: &Text) -> Cow<'_, Text> {
    let value = match title.kind {
        TextKind::Plain => without_breaks(&title.value),
        TextKind::Html => without_unread(&title.value),
        TextKind::Xhtml | TextKind::Base64 => Cow::Borrowed(title.value.as_str()),
    };
    match value {
        Cow::Owned(value) => Cow::Owned(Text {
            value,
            ..title.clone()
        }),
        Cow::Borrowed(_) => Cow::Borrowed(title),
    }
}

/// An HTML fragment without the elements whose insides nobody reads.
fn without_unread(html: &str) -> Cow<'_, str> {
    let (mut out, mut rest) = (String::new(), html);
    let mut from = 0;
    while let Some(at) = rest[from..].find('<') {
        let at = from + at;
        let used = unread_len(&rest[at..]).unwrap_or_default();
        if used > 0 {
            out.push_str(&rest[..at]);
            (rest, from) = (&rest[at + used..], 0);
        } else {
            from = at + tag_len(&rest[at..]).max(1);
        }
    }
    if rest.len() == html.len() {
        Cow::Borrowed(html)
    } else {
        Cow::Owned(out + rest)
    }
}

/// The text as HTML: for formats whose texts are HTML.
fn html(text: &Text) -> Cow<'_, str> {
    match text.kind {
        TextKind::Plain if text.value.contains(['<', '&', '>']) => Cow::Owned(
            text.value
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;"),
        ),
        TextKind::Plain | TextKind::Html | TextKind::Xhtml => Cow::Borrowed(text.value.as_str()),
        TextKind::Base64 => Cow::Borrowed(""),
    }
}

/// A text that somebody can see; its writer chooses the form.
#[derive(Clone, Copy)]
pub(super) struct ShownText<'a>(&'a Text);

impl<'a> ShownText<'a> {
    /// The text, unless nobody could see it.
    pub(super) fn of(text: Option<&'a Text>) -> Option<Self> {
        text.filter(|text| !text.value.trim().is_empty()).map(Self)
    }

    /// The text of content that can be read in place: not binaries, not XML of other kinds, not
    /// references.
    pub(super) fn in_place(body: &'a Body) -> Option<Self> {
        let text = Self::of(Some(&body.text)).filter(|text| text.0.kind != TextKind::Base64)?;
        let media_type = body.media_type.as_deref().unwrap_or_default();
        let essence = media_type.split(';').next().unwrap_or_default().trim_end();
        (!essence.ends_with("xml")).then_some(text)
    }

    /// The words alone, on one line.
    pub(super) fn words(self) -> Cow<'a, str> {
        plain(self.0)
    }

    /// The text as HTML.
    pub(super) fn html(self) -> Cow<'a, str> {
        html(self.0)
    }

    /// The text with the markup that it came in.
    pub(super) fn marked(self) -> &'a Text {
        self.0
    }
}

/// True for the tab and for everything that one reader or another takes for the end of a line
/// (Unicode, UAX #14: BK, CR, LF, NL).
pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\t'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Plain words on one line: a blank for each break with the blanks around it. Two blanks that stand
/// alone are the publisher's.
fn without_breaks(words: &str) -> Cow<'_, str> {
    let trimmed = words.trim();
    if !trimmed.contains(is_break) {
        return if trimmed == words {
            Cow::Borrowed(words)
        } else {
            Cow::Owned(trimmed.to_owned())
        };
    }
    let lines = trimmed
        .split(is_break)
        .map(|line| line.trim_matches(' '))
        .filter(|line| !line.is_empty());
    Cow::Owned(lines.collect::<Vec<_>>().join(" "))
}

/// The words with one blank for each run of blanks and breaks. Blanks of other kinds stay: a title
/// in French has some.
fn on_one_line(words: Cow<'_, str>) -> Cow<'_, str> {
    let tidy = words.trim() == words && !words.contains(is_break) && !words.contains("  ");
    if tidy {
        return words;
    }
    let parts = words
        .trim()
        .split(|c| c == ' ' || is_break(c))
        .filter(|part| !part.is_empty());
    Cow::Owned(parts.collect::<Vec<_>>().join(" "))
}

/// Text content of an HTML fragment: tags and comments dropped, a blank where a tag ends a line,
/// references resolved.
fn words_of(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(at) = rest.find(['<', '&']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if ends_line(rest) {
            out.push(' ');
        }
        let used = if rest.starts_with('<') {
            markup_len(rest)
        } else {
            push_reference(&mut out, rest)
        };
        if used == 0 {
            out.push_str(&rest[..1]);
        }
        rest = &rest[used.max(1)..];
    }
    out.push_str(rest);
    out
}

/// True for a tag at the start that browsers begin a new line or cell at: of no element that stands
/// within lines.
fn ends_line(html: &str) -> bool {
    const WITHIN_LINES: [&str; 34] = [
        "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn",
        "em", "font", "i", "ins", "kbd", "mark", "q", "s", "samp", "script", "small", "span",
        "strike", "strong", "style", "sub", "sup", "time", "tt", "u", "var", "wbr",
    ];
    let Some(tag) = html.strip_prefix('<') else {
        return false;
    };
    let tag = tag.strip_prefix('/').unwrap_or(tag);
    let name = tag
        .split(|c: char| !c.is_ascii_alphanumeric())
        .next()
        .unwrap_or_default();
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && !WITHIN_LINES
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
}

/// Length of the markup at the start, 0 if there is none: a tag, a comment, or an element whose
/// inside nobody reads.
fn markup_len(html: &str) -> usize {
    unread_len(html).unwrap_or_else(|| tag_len(html))
}

/// Length of the element at the start if nobody reads its inside.
fn unread_len(html: &str) -> Option<usize> {
    const UNREAD: [&str; 2] = ["script", "style"];
    let is_unread = |name: &&&str| {
        let inside = &html.as_bytes()[1..];
        let begins =
            inside.len() > name.len() && inside[..name.len()].eq_ignore_ascii_case(name.as_bytes());
        begins
            && matches!(
                inside[name.len()],
                b'>' | b'/' | b' ' | b'\t' | b'\n' | b'\r' | 0x0c
            )
    };
    UNREAD
        .iter()
        .find(is_unread)
        .map(|name| html.len() - behind_end(html, name).len())
}

/// The rest behind the end tag of this name; nothing when there is none.
fn behind_end<'h>(html: &'h str, name: &str) -> &'h str {
    let mut rest = html;
    while let Some(at) = rest.find("</") {
        rest = &rest[at + 2..];
        let ends = rest.len() >= name.len()
            && rest.as_bytes()[..name.len()].eq_ignore_ascii_case(name.as_bytes());
        if ends {
            return rest.find('>').map_or("", |end| &rest[end + 1..]);
        }
    }
    ""
}

/// Length of the tag or comment at the start, 0 if there is none. One that never ends swallows the
/// rest.
fn tag_len(html: &str) -> usize {
    let ends = |head: &str| html.find(head).map_or(html.len(), |at| at + head.len());
    match html.as_bytes() {
        [b'<', b'!', b'-', b'-', ..] => ends("-->"),
        [b'<', b'a'..=b'z' | b'A'..=b'Z' | b'/' | b'!' | b'?', ..] => ends(">"),
        _ => 0,
    }
}

/// The longest entity name of HTML, `CounterClockwiseContourIntegral`, has 31 letters.
const REFERENCE_CHARS_MAX: usize = 33;

/// Resolves the reference at the start and answers its length, 0 if it is none.
fn push_reference(out: &mut String, html: &str) -> usize {
    let Some(end) = html
        .bytes()
        .take(REFERENCE_CHARS_MAX)
        .position(|b| b == b';')
    else {
        return 0;
    };
    match resolve(&html[1..end]) {
        Some(Resolved::Character(c)) => out.push(c),
        Some(Resolved::Characters(characters)) => out.push_str(characters),
        Some(Resolved::Nothing) => {}
        None => return 0,
    }
    end + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_words() {
        let check =
            |html: &str, expect: &str| assert_eq!(plain(&Text::html(html)), expect, "{html}");
        check("<b>Fish</b> &amp; chips", "Fish & chips");
        check(
            "It&#146;s &hellip; &#x2014; caf&eacute;&nbsp;",
            "It’s … — café",
        );
        check("a <!-- > -->b<br/>c", "a b c");
        check(
            "<p>a</p><P class=x>b</P><td>c</td>x<Em>d</eM>e<wbr>f 1<2",
            "a b c xdef 1<2",
        );
        check("1 < 2 & 3 &unknown; &#0;x&#xD800;", "1 < 2 & 3 &unknown; x");
        check("cut <a href=", "cut");
        check(
            "a<SCRIPT src=x>b</p>c</script >d<style>e</STYLE>f<scripted>g",
            "adf g",
        );
        check("a<script>b", "a");
        check("&\u{e9};;;;", "&\u{e9};;;;");
        check("two\n  lines", "two lines");
        check(
            "a\u{2028}b\u{2029} c\u{85}d\u{b}e\u{c}f\r\ng\th&#8232;i",
            "a b c d e f g h i",
        );
        check(" \u{a0}Quoi\u{a0}?\u{2028}", "Quoi\u{a0}?");
        assert_eq!(on_one_line_of(&Text::plain("a\u{2028}b")).value, "a b");
        assert_eq!(
            on_one_line_of(&Text::html("<b>a</b>\nb")).value,
            "<b>a</b>\nb"
        );
        for (title, expect) in [
            (
                "<em>a</em><script>alert(1)</script> b<STYLE a='<'>c</STYLE>",
                "<em>a</em> b",
            ),
            ("<a title='<script>'>x</a>", "<a title='<script>'>x</a>"),
            ("a < b <!-- <script> --> c", "a < b <!-- <script> --> c"),
            ("a<script>never ends", "a"),
            ("<scripts>x</scripts>", "<scripts>x</scripts>"),
        ] {
            assert_eq!(on_one_line_of(&Text::html(title)).value, expect);
        }
        assert_eq!(plain(&Text::plain("<b> & ")), "<b> &");
    }

    #[test]
    fn the_lead_of_a_post_is_its_first_words() {
        // LEGACY D-1.
        let check = |summary: &str, content: &str, expect: Option<&str>| {
            let text = |html: &str| (!html.is_empty()).then(|| Text::html(html));
            let content = text(content).map(|text| Body {
                text,
                ..Body::default()
            });
            let entry = Entry {
                summary: text(summary),
                content,
                ..Entry::default()
            };
            assert_eq!(lead(&entry).as_deref(), expect, "{summary}");
        };
        check(
            "<p>One</p><p>two &amp; three</p>",
            "four",
            Some("One two & three"),
        );
        check("<p> &nbsp;</p>", "<img src=x>", None);
        check("<p><img src=x></p>", "four", Some("four"));
        check("", "", None);
        let word = "é".repeat(79);
        check(&format!("{word} x"), "", Some(&format!("{word}…")));
        check(&format!("{word}x y"), "", Some(&format!("{word}x…")));
        check(&format!("{word}xyz"), "", Some(&format!("{word}x…")));
        check(&format!("a {word}"), "", Some("a…"));
        check(&format!("{word}x"), "", Some(&format!("{word}x")));
        let far = format!("<style>{}</style>a", "x".repeat(LEAD_BYTES_READ_MAX));
        check(&far, "b", Some("b"));
        check(
            &format!("é<i title='{}'>a</i>", "é".repeat(LEAD_BYTES_READ_MAX)),
            "",
            Some("é…"),
        );
    }

    #[test]
    fn plain_words_become_html() {
        assert_eq!(html(&Text::plain("a < b & c")), "a &lt; b &amp; c");
        assert_eq!(html(&Text::html("<b>a</b>")), "<b>a</b>");
    }
}
