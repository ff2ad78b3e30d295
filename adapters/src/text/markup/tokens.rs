//! quick-xml's tokens with their places, and a way on after its errors; it knows no nesting and no namespaces.

use std::ops::Range;

use quick_xml::Reader;
use quick_xml::events::Event;
use quick_xml::events::attributes::Attributes;

use super::tag;
use crate::text::entities::unescape;

/// One token. Declarations, processing instructions, comments and document types are passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'t> {
    /// A start tag, or an empty-element tag.
    Start { name: &'t str, attributes: &'t str, empty: bool },
    /// An end tag.
    End { name: &'t str },
    /// Characters as they stand.
    Text(&'t str),
    /// What stood between `&` and `;`.
    Reference(&'t str),
    /// The inside of a CDATA section.
    Literal(&'t str),
}

/// How often, on average, a byte may be looked at once more because a tag before it was broken. It keeps hostile input
/// linear; a document in which every tag is broken needs two or three.
const MENDINGS_MAX: usize = 16;

/// The tokens of a text.
pub(crate) struct Tokens<'t> {
    text: &'t str,
    reader: Reader<&'t [u8]>,
    /// Where the reader's own positions are counted from.
    origin: usize,
    /// How many bytes were looked at in vain; see [`MENDINGS_MAX`].
    wasted: usize,
    mended: bool,
    cut: Option<usize>,
}

impl<'t> Tokens<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, reader: reader(text), origin: 0, wasted: 0, mended: false, cut: None }
    }

    /// Where the tag, comment or CDATA section begins inside which the text ended.
    pub(crate) fn cut_at(&self) -> Option<usize> {
        self.cut
    }

    /// Whether a broken tag was met.
    pub(crate) fn is_mended(&self) -> bool {
        self.mended
    }

    /// Where the next token begins.
    pub(crate) fn position(&self) -> usize {
        // The reader counts in bytes of a slice, so the sum is an index into the text.
        self.origin + usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX)
    }

    /// The next token and its place in the text.
    pub(crate) fn next(&mut self) -> Option<(Token<'t>, Range<usize>)> {
        loop {
            let start = self.position();
            if self.at_loose_bracket(start) {
                self.restart(start + 1);
                return Some((Token::Text(&self.text[start..=start]), start..start + 1));
            }
            let kind = match self.reader.read_event() {
                Ok(Event::Eof) => return None,
                Ok(event) => Kind::of(&event),
                Err(_) => self.mend(start)?,
            };
            let Some(kind) = kind else { continue };
            let mut end = self.position();
            if matches!(kind, Kind::Tag) {
                end = self.cut_at_bracket(start, end);
            }
            let Some(token) = kind.token(&self.text[start..end]) else { continue };
            return Some((token, start..end));
        }
    }

    /// A `<` that begins nothing, as in `a < b`.
    fn at_loose_bracket(&self, at: usize) -> bool {
        match self.text.as_bytes().get(at..) {
            Some([b'<', next, ..]) => {
                !(next.is_ascii_alphabetic() || matches!(next, b'_' | b':' | b'/' | b'!' | b'?' | 0x80..))
            }
            _ => false,
        }
    }

    /// A tag with another inside: `<b <i>`, or a quote that is not closed before the next tag.
    fn cut_at_bracket(&mut self, start: usize, end: usize) -> usize {
        if memchr::memchr(b'<', &self.text.as_bytes()[start + 1..end]).is_none() || self.is_worn_out() {
            return end;
        }
        match tag::length(&self.text[start..end]) {
            Some(length) if start + length < end => {
                self.mended = true;
                self.wasted += end - start - length;
                self.restart(start + length);
                start + length
            }
            _ => end,
        }
    }

    fn is_worn_out(&self) -> bool {
        self.wasted / MENDINGS_MAX > self.text.len()
    }

    /// After an error of the reader, which looked at all of the text for the end of something. A tag (its quotes do not
    /// match) ends where it was meant to, an odd declaration at the next `>`; a comment or a CDATA section runs to the end
    /// of the text, which is cut then.
    fn mend(&mut self, start: usize) -> Option<Option<Kind>> {
        let rest = &self.text[start..];
        let is_declaration = rest.starts_with("<!") || rest.starts_with("<?");
        let end =
            if ["<!--", "<![CDATA["].iter().any(|opening| rest.starts_with(opening)) || self.is_worn_out() {
                None
            } else if is_declaration {
                memchr::memchr(b'>', rest.as_bytes()).map(|end| end + 1)
            } else {
                tag::length(rest)
            };
        let Some(end) = end else {
            self.cut = Some(start);
            self.restart(self.text.len());
            return None;
        };
        self.mended = true;
        self.wasted += rest.len() - end;
        self.restart(start + end);
        Some((!is_declaration).then_some(Kind::Tag))
    }

    fn restart(&mut self, at: usize) {
        self.reader = reader(&self.text[at..]);
        self.origin = at;
    }
}

/// What quick-xml found, without its borrowed events: the text itself says the rest.
#[derive(Clone, Copy)]
enum Kind {
    Tag,
    Text,
    Reference,
    Literal,
}

impl Kind {
    fn of(event: &Event<'_>) -> Option<Self> {
        match event {
            Event::Start(_) | Event::Empty(_) | Event::End(_) => Some(Self::Tag),
            Event::Text(_) => Some(Self::Text),
            Event::GeneralRef(_) => Some(Self::Reference),
            Event::CData(_) => Some(Self::Literal),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) | Event::Eof => None,
        }
    }

    fn token(self, raw: &str) -> Option<Token<'_>> {
        Some(match self {
            Self::Tag => return tag(raw),
            Self::Text => Token::Text(raw),
            Self::Reference => Token::Reference(raw.strip_prefix('&')?.strip_suffix(';')?),
            Self::Literal => Token::Literal(raw.strip_prefix("<![CDATA[")?.strip_suffix("]]>")?),
        })
    }
}

fn tag(raw: &str) -> Option<Token<'_>> {
    let inside = raw.strip_prefix('<')?;
    let inside = inside.strip_suffix('>').unwrap_or(inside);
    if let Some(name) = inside.strip_prefix('/') {
        return Some(Token::End { name: name_of(name) });
    }
    let (inside, empty) = match inside.strip_suffix('/') {
        Some(inside) => (inside, true),
        None => (inside, false),
    };
    let name = name_of(inside);
    Some(Token::Start { name, attributes: &inside[name.len()..], empty })
}

fn name_of(inside: &str) -> &str {
    inside.split([' ', '\t', '\n', '\r', '/']).next().unwrap_or(inside)
}

fn reader(text: &str) -> Reader<&[u8]> {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    reader
}

/// Name and value of each attribute, unquoted and value-less ones included; what cannot be read is left out. References
/// are replaced, and line ends and tabs are blanks (XML 1.0 section 3.3.3).
pub(crate) fn attributes(raw: &str) -> impl Iterator<Item = (&str, String)> {
    let mut attributes = Attributes::html(raw, 0);
    attributes.with_checks(false);
    attributes
        .flatten()
        .map(|found| (found.key.0, unescape(&found.value.replace(['\n', '\t'], " ")).into_owned()))
}
