//! Text cut into tokens with their places, and a way on behind broken ones; it knows no nesting and
//! no namespaces.
//!
//! quick-xml's reader is asked for document types alone: it makes a token of every reference in
//! escaped HTML, checks every token's characters again and has to begin anew behind each error.
//! Measured, that was half of what reading a feed cost.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;
use quick_xml::Reader;
use quick_xml::events::Event;

use super::{tag, unended};
use crate::text::entities::unescape;

/// One token. Declarations, processing instructions, comments and document types are passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'t> {
    /// A start tag, or an empty-element tag.
    Start {
        name: &'t str,
        attributes: &'t str,
        empty: bool,
    },
    /// An end tag.
    End { name: &'t str },
    /// Characters as they stand, references and all.
    Text(&'t str),
    /// The inside of a CDATA section.
    Literal(&'t str),
}

/// Limit of how often, on average, a byte is looked at once more because a tag before it was
/// broken. It keeps hostile input linear; a document in which every tag is broken needs two or
/// three.
const MENDINGS_MAX: usize = 16;

const COMMENT: &str = "<!--";
const SECTION: &str = "<![CDATA[";

/// The tokens of a text.
pub(crate) struct Tokens<'t> {
    text: &'t str,
    /// Start of the next token.
    at: usize,
    /// Number of bytes that were looked at in vain; see [`MENDINGS_MAX`].
    wasted: usize,
    mended: bool,
    cut: Option<usize>,
}

impl<'t> Tokens<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            wasted: 0,
            mended: false,
            cut: None,
        }
    }

    /// Start of the tag, comment or CDATA section inside which the text ended.
    pub(crate) fn cut_at(&self) -> Option<usize> {
        self.cut
    }

    /// True when a broken tag was met.
    pub(crate) fn is_mended(&self) -> bool {
        self.mended
    }

    /// The next token and its place in the text.
    pub(crate) fn next(&mut self) -> Option<(Token<'t>, Range<usize>)> {
        loop {
            let start = self.at;
            let bytes = self.text.as_bytes();
            let kind = match bytes.get(start)? {
                b'<' if self.at_loose_bracket(start) => {
                    self.at = start + 1;
                    TokenKind::Text
                }
                b'<' => {
                    let construct = self.construct(start);
                    self.at = construct.map_or(bytes.len(), |(_, length)| start + length);
                    if bytes.get(start + 1) == Some(&b'!') {
                        if let Some(section) = self.runaway_section(start) {
                            return Some(section);
                        }
                        if self.runaway_comment(start) {
                            continue;
                        }
                    }
                    if matches!(bytes.get(start + 1), Some(b'!' | b'?'))
                        && self.runaway_declaration(start, construct.is_some())
                    {
                        continue;
                    }
                    match construct {
                        Some((kind, _)) => kind,
                        None => self.mend(start)?,
                    }
                }
                _ => {
                    self.at = memchr::memchr(b'<', &bytes[start..])
                        .map_or(bytes.len(), |end| start + end);
                    TokenKind::Text
                }
            };
            if matches!(kind, TokenKind::OddTag) {
                self.cut_at_bracket(start);
            }
            let Some(token) = kind.token(&self.text[start..self.at]) else {
                continue;
            };
            return Some((token, start..self.at));
        }
    }

    /// The construct that begins at a `<`, and its length; `None` when it has no end, or an odd one.
    fn construct(&self, start: usize) -> Option<(TokenKind, usize)> {
        let rest = &self.text.as_bytes()[start..];
        // The offset keeps what opens a construct from closing it too.
        let end = |from: usize, closing: &[u8]| {
            memmem::find(rest.get(from..)?, closing).map(|at| from + at + closing.len())
        };
        match rest.get(1)? {
            b'!' if rest.starts_with(b"<!--") => Some((TokenKind::Skipped, end(4, b"-->")?)),
            b'!' if rest.starts_with(b"<![CDATA[") => {
                Some((TokenKind::Literal, literal_length(rest)?))
            }
            b'!' => Some((TokenKind::Skipped, document_type(&self.text[start..])?)),
            b'?' => end(1, b"?>")
                .filter(|length| *length > b"<?>".len())
                .map(|length| (TokenKind::Skipped, length)),
            _ => {
                let (length, holds_bracket) = tag_length(rest)?;
                let kind = if holds_bracket {
                    TokenKind::OddTag
                } else {
                    TokenKind::Tag
                };
                Some((kind, length))
            }
        }
    }

    /// A `<` that begins nothing, as in `a < b`.
    fn at_loose_bracket(&self, at: usize) -> bool {
        match self.text.as_bytes().get(at..) {
            Some([b'<', next, ..]) => {
                !(next.is_ascii_alphabetic()
                    || matches!(next, b'_' | b':' | b'/' | b'!' | b'?' | 0x80..))
            }
            _ => false,
        }
    }

    /// A tag with another inside: `<b <i>`, or a quote that is not closed before the next tag.
    fn cut_at_bracket(&mut self, start: usize) {
        let whole = &self.text[start..self.at];
        if self.is_worn_out() {
            return;
        }
        if let Some(length) = tag::length(whole).filter(|length| *length < whole.len()) {
            self.go_back(start + length);
        }
    }

    /// A CDATA section that nobody ended, so that it goes on into another one, or to the end of the
    /// text.
    fn runaway_section(&mut self, start: usize) -> Option<(Token<'t>, Range<usize>)> {
        let inside = self.text[start..self.at].strip_prefix(SECTION)?;
        let another = |at: usize| inside.as_bytes()[..=at].ends_with(SECTION.as_bytes());
        // Brackets are rare in HTML.
        let runs_on =
            self.at == self.text.len() || memchr::memchr_iter(b'[', inside.as_bytes()).any(another);
        if !runs_on || self.is_worn_out() {
            return None;
        }
        let (length, whole) = unended::section(inside)?;
        self.go_back(start + SECTION.len() + whole);
        Some((Token::Literal(&inside[..length]), start..self.at))
    }

    /// A comment that nobody ended, so that it goes on into another one, or to the end of the text;
    /// only its beginning is passed over then.
    fn runaway_comment(&mut self, start: usize) -> bool {
        let Some(inside) = self.text[start..self.at].strip_prefix(COMMENT) else {
            return false;
        };
        let runs_on = (self.at == self.text.len() || inside.contains(COMMENT))
            && !self.is_worn_out()
            && unended::entry_end(inside).is_some();
        if runs_on {
            self.go_back(start + COMMENT.len());
        }
        runs_on
    }

    /// A processing instruction or a document type that nobody ended, so that it swallows the tags
    /// of entries.
    fn runaway_declaration(&mut self, start: usize, ended: bool) -> bool {
        let whole = &self.text[start..self.at];
        if is_comment_or_section(whole) || self.is_worn_out() {
            return false;
        }
        let swallows = |length: usize| {
            let at = length + unended::entry_tag(&whole[length..])?;
            // The replacement of an entity may well hold an entry, in quotes.
            (!ended || whole.starts_with("<?") || !is_in_quotes(&whole[..at])).then_some(length)
        };
        let runs_on = declaration_length(whole)
            .filter(|length| *length < whole.len())
            .and_then(swallows);
        if let Some(length) = runs_on {
            self.go_back(start + length);
        }
        runs_on.is_some()
    }

    /// Reads on from a place that was passed already.
    fn go_back(&mut self, to: usize) {
        self.mended = true;
        self.wasted += self.at - to;
        self.at = to;
    }

    fn is_worn_out(&self) -> bool {
        self.wasted / MENDINGS_MAX > self.text.len()
    }

    /// After all of the text was looked at for the end of something. A tag (its quotes do not
    /// match) ends where it was meant to, an odd declaration behind the next `>` or before the next
    /// `<`; a comment or a CDATA section runs to the end of the text, which is cut then.
    fn mend(&mut self, start: usize) -> Option<TokenKind> {
        let rest = &self.text[start..];
        let is_declaration = rest.starts_with("<!") || rest.starts_with("<?");
        let end = if is_comment_or_section(rest) || self.is_worn_out() {
            None
        } else if is_declaration {
            declaration_length(rest)
        } else {
            tag::length(rest)
        };
        let Some(end) = end else {
            self.cut = Some(start);
            self.at = self.text.len();
            return None;
        };
        self.at = self.text.len();
        self.go_back(start + end);
        Some(if is_declaration {
            TokenKind::Skipped
        } else {
            TokenKind::OddTag
        })
    }
}

fn is_comment_or_section(text: &str) -> bool {
    [COMMENT, SECTION]
        .iter()
        .any(|opening| text.starts_with(opening))
}

/// The length of a declaration or a processing instruction that was not ended as it should be: HTML
/// ends them at the first `>`, but that may be the one of a tag behind.
fn declaration_length(text: &str) -> Option<usize> {
    let inside = text.as_bytes().get(1..)?;
    let end = memchr::memchr2(b'<', b'>', inside)?;
    Some(1 + end + usize::from(inside[end] == b'>'))
}

/// True for a text that ends between two quotes.
fn is_in_quotes(text: &str) -> bool {
    let mut open = None;
    for quote in text.bytes().filter(|b| matches!(b, b'"' | b'\'')) {
        open = match open {
            None => Some(quote),
            Some(other) => (other != quote).then_some(other),
        };
    }
    open.is_some()
}

/// Kind of markup.
#[derive(Clone, Copy)]
enum TokenKind {
    Tag,
    /// With a `<` somewhere in it.
    OddTag,
    Text,
    Literal,
    /// No token: a comment, a declaration or a processing instruction.
    Skipped,
}

impl TokenKind {
    fn token(self, raw: &str) -> Option<Token<'_>> {
        Some(match self {
            Self::Tag | Self::OddTag => return tag(raw),
            Self::Text => Token::Text(raw),
            Self::Literal => Token::Literal(raw.strip_prefix("<![CDATA[")?.strip_suffix("]]>")?),
            Self::Skipped => return None,
        })
    }
}

/// The length of a tag whose quotes match, and whether there is a `<` in it.
fn tag_length(bytes: &[u8]) -> Option<(usize, bool)> {
    let mut holds_bracket = false;
    let mut at = 1;
    loop {
        // Most tags are so short that nothing is faster than to look at each byte.
        at += bytes
            .get(at..)?
            .iter()
            .position(|b| matches!(b, b'>' | b'"' | b'\'' | b'<'))?;
        match bytes[at] {
            b'>' => return Some((at + 1, holds_bracket)),
            b'<' => holds_bracket = true,
            quote => {
                let value = &bytes[at + 1..];
                let length = memchr::memchr(quote, value)?;
                holds_bracket |= memchr::memchr(b'<', &value[..length]).is_some();
                at += 1 + length;
            }
        }
        at += 1;
    }
}

/// The length of a CDATA section. Brackets are rarer in HTML than what a search for all three
/// characters begins with.
fn literal_length(bytes: &[u8]) -> Option<usize> {
    let start = b"<![CDATA[".len();
    let mut brackets = memchr::memchr_iter(b']', &bytes[start..]).map(|at| start + at);
    brackets
        .find(|at| bytes[*at..].starts_with(b"]]>"))
        .map(|at| at + b"]]>".len())
}

/// The length of the document type, with all that it declares, at the start of the text.
fn document_type(text: &str) -> Option<usize> {
    let mut reader = Reader::from_str(text);
    match reader.read_event() {
        Ok(Event::DocType(_)) => usize::try_from(reader.buffer_position()).ok(),
        _ => None,
    }
}

fn tag(raw: &str) -> Option<Token<'_>> {
    let inside = raw.strip_prefix('<')?;
    let inside = inside.strip_suffix('>').unwrap_or(inside);
    if let Some(name) = inside.strip_prefix('/') {
        return Some(Token::End {
            name: name_of(name),
        });
    }
    let (inside, empty) = match inside.strip_suffix('/') {
        Some(inside) => (inside, true),
        None => (inside, false),
    };
    let name = name_of(inside);
    Some(Token::Start {
        name,
        attributes: &inside[name.len()..],
        empty,
    })
}

fn name_of(inside: &str) -> &str {
    let end = inside
        .bytes()
        .position(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r' | b'/'));
    &inside[..end.unwrap_or(inside.len())]
}

/// Name and value of each attribute, unquoted and value-less ones included; what cannot be read is
/// left out. References are replaced, and line ends and tabs are blanks (XML 1.0 section 3.3.3).
pub(crate) fn attributes(raw: &str) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
    tag::Attributes::new(raw).map(|(name, raw)| (name, value(raw)))
}

fn value(raw: &str) -> Cow<'_, str> {
    match memchr::memchr2(b'\n', b'\t', raw.as_bytes()) {
        Some(_) => Cow::Owned(unescape(&raw.replace(['\n', '\t'], " ")).into_owned()),
        None => unescape(raw),
    }
}
