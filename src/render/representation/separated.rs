//! CSV and TSV (V-1..V-3): a header row, then an item a row; for spreadsheets, databases and
//! scripts. The position of the page stands in the headers of the answer. Not a place for all that
//! an entry holds.
//!
//! A cell that a spreadsheet would take for a formula gets an apostrophe before it. TSV has no
//! quotes: a tab, a line feed, a carriage return and a backslash are written `\t`, `\n`, `\r` and
//! `\\`, as the databases PostgreSQL and MySQL load them.

use super::{FULL, Media, Negotiation, SyntaxRow};
use crate::{
    feed::moment::Moment,
    render::{
        document::{Audience, Document},
        people::ShownPerson,
        post::{self, ItemProjection, ShownPost},
        text::{ShownText, is_break},
    },
};
use csv::{QuoteStyle, Terminator, Writer, WriterBuilder};
use std::borrow::Cow;

#[cfg(test)]
mod tests;

/// The columns. New ones are added at the end, so that scripts which count them go on.
const COLUMNS: [&str; 18] = [
    "id",
    "url",
    "title",
    "published",
    "updated",
    "modified",
    "deleted",
    "author",
    "author_url",
    "body",
    "guid",
    "created",
    "reason",
    "summary",
    "categories",
    "enclosures",
    "comments",
    "language",
];

/// The cells of an item, as they are before any syntax escapes them.
type Cells<'a> = [Cow<'a, str>; COLUMNS.len()];

/// One of the two syntaxes.
#[derive(Clone, Copy)]
enum Separator {
    Comma,
    Tab,
}

/// Comma-separated values.
pub(super) static CSV: SyntaxRow = SyntaxRow {
    suffix: "csv",
    title: "CSV",
    standard: "CSV (RFC 4180)",
    etag: "v",
    media: Media::of("text/csv; charset=utf-8", Negotiation::Name).without_position(),
    audiences: FULL,
    is_alternate: false,
    write: |document, audience| Separator::Comma.document(document, audience),
    item: |lone| Separator::Comma.row(lone.item),
};

/// Tab-separated values.
pub(super) static TSV: SyntaxRow = SyntaxRow {
    suffix: "tsv",
    title: "TSV",
    standard: "tab-separated values, escaped by \\t, \\n, \\r and \\\\",
    etag: "t",
    media: Media::of(
        "text/tab-separated-values; charset=utf-8",
        Negotiation::Name,
    )
    .without_position(),
    audiences: FULL,
    is_alternate: false,
    write: |document, audience| Separator::Tab.document(document, audience),
    item: |lone| Separator::Tab.row(lone.item),
};

impl Separator {
    fn document(self, document: &Document<'_>, audience: Audience) -> Vec<u8> {
        let mut out = self.writer(document.capacity_bytes());
        self.write(&mut out, COLUMNS.map(Cow::Borrowed));
        for item in post::items(document, audience) {
            self.write(&mut out, cells(item));
        }
        finished(out)
    }

    /// A row with the end of its line.
    fn row(self, item: ItemProjection<'_>) -> Vec<u8> {
        let mut out = self.writer(0);
        self.write(&mut out, cells(item));
        finished(out)
    }

    fn writer(self, capacity_bytes: usize) -> Writer<Vec<u8>> {
        let mut builder = WriterBuilder::new();
        match self {
            Self::Comma => builder.terminator(Terminator::CRLF),
            Self::Tab => {
                let quote_style = QuoteStyle::Never;
                builder
                    .delimiter(b'\t')
                    .quote_style(quote_style)
                    .terminator(Terminator::Any(b'\n'))
            }
        };
        builder.from_writer(Vec::with_capacity(capacity_bytes))
    }

    fn write(self, out: &mut Writer<Vec<u8>>, cells: Cells<'_>) {
        let cells = cells.map(without_controls).map(without_formula);
        let written = match self {
            Self::Comma => out.write_record(cells.iter().map(|cell| cell.as_bytes())),
            Self::Tab => {
                let cells = cells.map(escaped);
                out.write_record(cells.iter().map(|cell| cell.as_bytes()))
            }
        };
        written.expect("rows have as many cells as the header, and memory takes them");
    }
}

fn finished(out: Writer<Vec<u8>>) -> Vec<u8> {
    out.into_inner().expect("writing to memory does not fail")
}

/// Without control characters, at which many readers of tables stop; of the ends of lines that only
/// some readers know there is left the one that all know.
fn without_controls(cell: Cow<'_, str>) -> Cow<'_, str> {
    if !has_odd(&cell) {
        return cell;
    }
    let kept = |c: char| {
        if is_odd(c) {
            is_break(c).then_some('\n')
        } else {
            Some(c)
        }
    };
    Cow::Owned(cell.chars().filter_map(kept).collect())
}

/// True for a character that does not stay as it is.
fn is_odd(c: char) -> bool {
    (c.is_control() || is_break(c)) && !matches!(c, '\t' | '\n' | '\r')
}

/// True for a text with an odd character. It looks at bytes: a cell may be a whole post, and nearly
/// none has one.
fn has_odd(cell: &str) -> bool {
    let bytes = cell.as_bytes();
    // Without a way out, so that many bytes are compared at once.
    let has_ascii = bytes.iter().fold(false, |odd, &byte| {
        odd | (byte < b' ') & (byte != b'\t') & (byte != b'\n') & (byte != b'\r') | (byte == 0x7F)
    });
    // The others begin with one of two bytes, as much else does: U+0080 to U+009F, U+2028 and
    // U+2029.
    has_ascii || memchr::memchr2_iter(0xC2, 0xE2, bytes).any(|at| cell[at..].starts_with(is_odd))
}

/// Characters at the beginning of a cell that make it a formula in one spreadsheet or another; the
/// last four are the full-width forms of the first four.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// The cell with an apostrophe before it when a spreadsheet would take it for a formula, be there
/// white space, characters that nobody sees, or apostrophes in front. So whoever takes the first
/// apostrophe off such a cell has what it was.
fn without_formula(cell: Cow<'_, str>) -> Cow<'_, str> {
    let is_fill = |c: char| c == '\'' || c.is_whitespace() || is_unseen(c);
    let is_formula = cell.trim_start_matches('\'').starts_with(FORMULA)
        || cell.trim_start_matches(is_fill).starts_with(FORMULA);
    if is_formula {
        Cow::Owned(format!("'{cell}"))
    } else {
        cell
    }
}

/// True for characters that are not shown (Unicode, `Default_Ignorable_Code_Point`).
fn is_unseen(c: char) -> bool {
    matches!(
        c,
        '\u{AD}'
            | '\u{34F}'
            | '\u{61C}'
            | '\u{115F}'..='\u{1160}'
            | '\u{17B4}'..='\u{17B5}'
            | '\u{180B}'..='\u{180F}'
            | '\u{200B}'..='\u{200F}'
            | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}'
            | '\u{FFA0}'
            | '\u{FFF0}'..='\u{FFF8}'
            | '\u{1BCA0}'..='\u{1BCA3}'
            | '\u{1D173}'..='\u{1D17A}'
            | '\u{E0000}'..='\u{E0FFF}'
    )
}

/// A cell of TSV on one line.
fn escaped(cell: Cow<'_, str>) -> Cow<'_, str> {
    let next = |rest: &str| {
        rest.bytes()
            .position(|byte| matches!(byte, b'\\' | b'\t' | b'\n' | b'\r'))
    };
    let Some(first) = next(&cell) else {
        return cell;
    };
    let mut out = String::with_capacity(cell.len() + 16);
    let (mut rest, mut found) = (&*cell, Some(first));
    while let Some(at) = found {
        out.push_str(&rest[..at]);
        out.push_str(match rest.as_bytes()[at] {
            b'\t' => "\\t",
            b'\n' => "\\n",
            b'\r' => "\\r",
            _ => "\\\\",
        });
        rest = &rest[at + 1..];
        found = next(rest);
    }
    Cow::Owned(out + rest)
}

/// `body` and `summary` are HTML; several authors and categories are joined by `; `, several files
/// by a blank, which no URL holds. A tombstone has nothing in most of them.
fn cells<'a>(shown: ItemProjection<'a>) -> Cells<'a> {
    let item = shown.item();
    let stamp = |at: Moment| -> Cow<'a, str> { Cow::Owned(at.rfc3339()) };
    let gone = shown.tombstone();
    let cell = |value: fn(ShownPost<'a>) -> Option<Cow<'a, str>>| {
        shown.post().and_then(value).unwrap_or_default()
    };
    [
        Cow::Owned(item.id.to_string()),
        cell(ShownPost::permalink),
        cell(ShownPost::title),
        item.published().map(stamp).unwrap_or_default(),
        stamp(item.updated()),
        stamp(item.modified.into()),
        Cow::Borrowed(if gone.is_some() { "true" } else { "false" }),
        cell(|post| joined(post.authors().names().map(Cow::Borrowed), "; ")),
        cell(|post| post.authors().iter().find_map(ShownPerson::url)),
        cell(|post| post.content().map(ShownText::html)),
        Cow::Borrowed(item.given_id()),
        stamp(item.created.into()),
        Cow::Borrowed(gone.map_or("", |gone| gone.reason.code())),
        cell(|post| post.summary().map(ShownText::html)),
        cell(|post| joined(post.tags().terms().map(Cow::Borrowed), "; ")),
        cell(|post| joined(post.attached().map(|file| file.href), " ")),
        cell(ShownPost::comments),
        cell(|post| post.language().map(Cow::Borrowed)),
    ]
}

fn joined<'a>(mut parts: impl Iterator<Item = Cow<'a, str>>, by: &str) -> Option<Cow<'a, str>> {
    let first = parts.next()?;
    Some(parts.fold(first, |all, part| Cow::Owned(format!("{all}{by}{part}"))))
}
