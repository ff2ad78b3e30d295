//! Dates of a document that its consumers are not shown, because nobody can mean them: what the
//! operator is told of them.

use super::{Observation, ObservedEntry, decide::believable};
use crate::{item::plausible, stamp::Stamp};
use everfeed_adapters::{Date, Entry, Note};

/// A note for each date in the entries that were read now. (Dates that could not be understood have
/// their notes already.)
pub fn unshown_dates(seen: &Observation, now: Stamp) -> Vec<Note> {
    let parsed = seen.entries.iter().filter_map(ObservedEntry::parsed);
    let read = parsed.map(|reading| &reading.entry);
    let text = |date: &Date| {
        Note::Other(format!(
            "a date that cannot be meant is not shown: {}",
            date.raw
        ))
    };
    read.flat_map(|entry| unshown(entry, now))
        .map(text)
        .collect()
}

/// The dates of an entry that are not shown: those that were understood and cannot be meant, and of
/// publications to come.
pub fn unshown(entry: &Entry, now: Stamp) -> impl Iterator<Item = &Date> {
    let published = entry
        .published
        .as_ref()
        .filter(move |date| date.at_us.is_some_and(|at| !believable(at, now)));
    let updated = entry
        .updated
        .as_ref()
        .filter(|date| date.at_us.is_some() && plausible(date.at_us).is_none());
    published.into_iter().chain(updated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use everfeed_adapters::text::date::parse;

    #[test]
    fn what_is_not_shown_is_told() {
        let date = |raw: &str| {
            Some(Date {
                raw: raw.to_owned(),
                at_us: parse(raw),
            })
        };
        let now = Stamp::from_secs(1_780_272_000);
        let check = |published: &str, updated: &str, told: &[&str]| {
            let entry = Entry {
                published: date(published),
                updated: date(updated),
                ..Entry::default()
            };
            let found: Vec<_> = unshown(&entry, now).map(|date| date.raw.as_str()).collect();
            assert_eq!(found, told);
        };
        check("1955-04-11", "2026-01-01", &[]);
        check("2099-01-01", "2099-01-01", &["2099-01-01"]);
        check("0001-01-01", "9999-12-31", &["0001-01-01", "9999-12-31"]);
        // Not understood: its own note tells.
        check(
            "31 Foo 2003",
            "1970-01-01T00:00:00Z",
            &["1970-01-01T00:00:00Z"],
        );
    }
}
