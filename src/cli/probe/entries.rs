//! The entries as a table, and what was odd about them; not what the document says of itself.

use super::sheet::{self, Column, Keep};
use crate::{feed::item::plausible, render};
use chrono::DateTime;
use everfeed_adapters::{Date, Entry, Key, Note, RawEntry, SlicedDocument, Text, TextKind};

/// Entries shown unless all are asked for.
pub(super) const SHOWN_MAX: usize = 20;

/// Notes of entries shown.
const NOTES_MAX: usize = 12;

/// Dates as they are shown, in UTC.
pub(super) const MINUTE: &str = "%Y-%m-%d %H:%M";
const DAY: &str = "%Y-%m-%d";

/// Stands for a date that is the one beside it, and leaves room for names.
const SAME: &str = "=";

/// On fewer columns than this, a date that is cut to its day leaves more room for names.
const MINUTES_WIDTH: usize = 90;

/// Columns of a date that could not be understood.
const RAW_DATE_COLUMNS: usize = 14;

/// Hexadecimal digits of a digest that tell it from the others of a document.
const DIGEST_CHARS: usize = 12;

/// An entry that was read.
pub(super) struct Read<'w> {
    pub(super) raw: &'w RawEntry,
    pub(super) entry: Entry,
    pub(super) notes: Vec<Note>,
}

impl Read<'_> {
    /// True when one of its dates cannot be meant: .NET's zero, the year 2106.
    pub(super) fn has_implausible_date(&self) -> bool {
        [&self.entry.published, &self.entry.updated]
            .into_iter()
            .flatten()
            .any(is_implausible)
    }
}

/// Reads every entry.
pub(super) fn read(window: &SlicedDocument) -> Vec<Read<'_>> {
    let read = |raw| {
        let (entry, notes) = RawEntry::parse(raw);
        Read { raw, entry, notes }
    };
    window.entries.iter().map(read).collect()
}

/// The first entries, one a line, within so many columns.
pub(super) fn table(entries: &[Read<'_>], shown_max: usize, width: usize) -> Vec<String> {
    if entries.is_empty() {
        return Vec::new();
    }
    let form = if width < MINUTES_WIDTH { DAY } else { MINUTE };
    let shown = entries.iter().take(shown_max).enumerate();
    let rows: Vec<_> = shown.map(|(at, read)| row(at, read, form)).collect();
    let columns = [
        Column::text(""),
        Column::number("#"),
        Column::text("from"),
        Column::cut("id", Keep::End, 2),
        Column::text("published"),
        Column::text("updated"),
        Column::number("bytes"),
        Column::cut("title", Keep::Start, 3),
    ];
    let mut lines = sheet::table(&columns, &rows, width);
    let rest = entries.len().saturating_sub(shown_max);
    if rest > 0 {
        lines.push(format!("and {} more; --all shows them", number(rest)));
    }
    lines
}

fn row(at: usize, read: &Read<'_>, form: &str) -> Vec<String> {
    let Read { raw, entry, notes } = read;
    let weak = if raw.key.is_weak() { " (weak)" } else { "" };
    let id = match &raw.key {
        Key::Id(id) | Key::Link(id) => sheet::tame(id),
        // It stands in its own column.
        Key::Title(_) => String::new(),
        Key::Digest(digest) => digest.chars().take(DIGEST_CHARS).collect(),
    };
    let told = |told: &Option<Date>| {
        told.as_ref()
            .map_or_else(String::new, |told| date(told, form))
    };
    let (published, mut updated) = (told(&entry.published), told(&entry.updated));
    if updated == published && !updated.is_empty() {
        updated = SAME.to_owned();
    }
    let mark = if notes.is_empty() { "" } else { "!" };
    vec![
        mark.to_owned(),
        (at + 1).to_string(),
        format!("{}{weak}", raw.named_by()),
        id,
        published,
        updated,
        size(entry),
        entry.title.as_ref().map(words).unwrap_or_default(),
    ]
}

/// Bytes of the content, or of the summary where there is nothing else.
fn size(entry: &Entry) -> String {
    let mut bytes = entry.summary.as_ref().map(|summary| summary.value.len());
    if let Some(content) = &entry.content {
        let value = &content.text.value;
        let of_content = match content.text.kind {
            // Four characters stand for three bytes.
            TextKind::Base64 => value.trim_end_matches('=').len() * 3 / 4,
            TextKind::Plain | TextKind::Html | TextKind::Xhtml => value.len(),
        };
        if of_content > 0 {
            bytes = Some(of_content);
        }
    }
    bytes.map(number).unwrap_or_default()
}

/// Oddities, each once with the numbers of its entries.
pub(super) fn oddities(entries: &[Read<'_>]) -> Vec<String> {
    let mut told: Vec<(&Note, Vec<usize>)> = Vec::new();
    for (at, read) in entries.iter().enumerate() {
        for note in &read.notes {
            let known = told.iter().position(|(known, _)| *known == note);
            match known {
                Some(known) => told[known].1.push(at + 1),
                // One more than is told says that there are more.
                None if told.len() <= NOTES_MAX => told.push((note, vec![at + 1])),
                None => {}
            }
        }
    }
    let mut lines = Vec::new();
    for (note, numbers) in told.iter().take(NOTES_MAX) {
        let entries = if numbers.len() == 1 {
            "entry"
        } else {
            "entries"
        };
        lines.push(sheet::tame(&format!(
            "{entries} {}: {note}",
            ranges(numbers)
        )));
    }
    if told.len() > NOTES_MAX {
        lines.push("and more of other entries".to_owned());
    }
    lines
}

/// Rising numbers, those that follow each other joined: `1-3, 7`.
pub(super) fn ranges(numbers: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let shown = runs.iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// True for a date that was understood, and still cannot be meant.
fn is_implausible(date: &Date) -> bool {
    date.at_us.is_some() && plausible(date.at_us).is_none()
}

/// A date in UTC, `form` as chrono has it, with a question mark if it cannot be meant; its own text
/// where it could not be understood.
pub(super) fn date(date: &Date, form: &str) -> String {
    let Some(at) = date.at_us.and_then(DateTime::from_timestamp_micros) else {
        let raw = sheet::cut(&sheet::tame(&date.raw), RAW_DATE_COLUMNS, Keep::Start);
        return format!("“{raw}”");
    };
    let doubt = if is_implausible(date) { "?" } else { "" };
    format!("{}{doubt}", at.format(form))
}

/// A text's words, without its markup.
pub(super) fn words(text: &Text) -> String {
    sheet::tame(&render::words(text))
}

/// A number with its thousands told apart.
pub(super) fn number(number: impl std::fmt::Display) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<_> = groups.map(String::from_utf8_lossy).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_easy_to_read() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(|n: u32| number(n)),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(ranges(&[1, 2, 3, 5, 7, 8]), "1-3, 5, 7, 8");
        assert_eq!(ranges(&[]), "");
    }
}
