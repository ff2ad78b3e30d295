//! quick-xml's tokens with their places, and a way on after its errors; it knows no nesting and no namespaces.

use std::ops::Range;

use quick_xml::Reader;
use quick_xml::events::Event;
use quick_xml::events::attributes::Attributes;

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

/// How often a broken tag may be mended in one document. Each mending may cost one look at the rest of it, so this is
/// what keeps hostile input linear.
const MENDINGS_MAX: u32 = 64;

/// The tokens of a text.
pub(crate) struct Tokens<'t> {
    text: &'t str,
    reader: Reader<&'t [u8]>,
    /// Where the reader's own positions are counted from.
    origin: usize,
    mendings: u32,
    cut: Option<usize>,
}

impl<'t> Tokens<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, reader: reader(text), origin: 0, mendings: 0, cut: None }
    }

    /// Where the tag, comment or CDATA section begins inside which the text ended.
    pub(crate) fn cut_at(&self) -> Option<usize> {
        self.cut
    }

    /// Whether a broken tag was met.
    pub(crate) fn is_mended(&self) -> bool {
        self.mendings > 0
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

    /// `<b <i>`: the first tag ends where the second begins, unless that bracket is quoted.
    fn cut_at_bracket(&mut self, start: usize, end: usize) -> usize {
        let inside = &self.text.as_bytes()[start + 1..end];
        if memchr::memchr(b'<', inside).is_none() || self.mendings >= MENDINGS_MAX {
            return end;
        }
        let mut quote = None;
        for (at, &byte) in inside.iter().enumerate() {
            match (quote, byte) {
                (None, b'"' | b'\'') => quote = Some(byte),
                (Some(open), _) if open == byte => quote = None,
                (None, b'<') => {
                    self.mendings += 1;
                    self.restart(start + 1 + at);
                    return start + 1 + at;
                }
                _ => {}
            }
        }
        end
    }

    /// After an error of the reader: nearly always a construct that never ends. A tag (its quotes do not match) and an
    /// odd declaration end at the next `>`; a comment or a CDATA section runs to the end of the text, which is cut then.
    fn mend(&mut self, start: usize) -> Option<Option<Kind>> {
        let rest = &self.text[start..];
        let endless = ["<!--", "<![CDATA["].iter().any(|opening| rest.starts_with(opening));
        let end = memchr::memchr(b'>', rest.as_bytes());
        let (Some(end), false, true) = (end, endless, self.mendings < MENDINGS_MAX) else {
            self.cut = Some(start);
            self.restart(self.text.len());
            return None;
        };
        self.mendings += 1;
        self.restart(start + end + 1);
        Some((!rest.starts_with("<!") && !rest.starts_with("<?")).then_some(Kind::Tag))
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
