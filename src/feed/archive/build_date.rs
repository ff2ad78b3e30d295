//! Older copies: pages that a cache gives in a state from before the pages around them, told by the
//! date at which the site was built. Between such a page and the one before it, posts may stand that
//! neither shows. Not the second reading.

use super::{ArchiveWalk, WalkedDocument, strategy::Strategy};
use everfeed_adapters::{Date, SlicedDocument};

/// Build dates of the documents of a walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildDates {
    /// The latest, in microseconds since 1970.
    pub latest_us: Option<i64>,
    /// True when two documents have had one date, so that it is of the site, and not of the entries
    /// of each.
    pub is_of_site: bool,
    /// Addresses of pages with an earlier one, at most [`OLDER_MAX`].
    pub older: Vec<String>,
    /// The last page of links that has a date, and that date.
    pub last: Option<(String, i64)>,
    /// The page that was built before the one behind it, and its date.
    pub doubted: Option<(String, i64)>,
    /// Number of such pages. Where there are several, each page has the date of its own last change.
    pub inversions: u32,
}

/// Days on which a page is read again that may be an older copy. Where it is none, nothing else would
/// tell.
const DOUBTED_READ_MAX: u8 = 3;

/// Pages that are remembered until it is known whose date they bear.
const OLDER_MAX: usize = 10;

impl BuildDates {
    // Decides: Is a page of archives an older copy from a cache?
    /// Takes note of the document of an address, by its date in microseconds. Returns the pages that
    /// are known to be older copies since.
    fn note(&mut self, asked: &str, built: i64) -> Vec<String> {
        match self.latest_us {
            Some(latest) if built < latest => {
                if self.older.len() < OLDER_MAX {
                    self.older.push(asked.to_owned());
                }
            }
            Some(latest) if built == latest => self.is_of_site = true,
            _ => self.latest_us = Some(built),
        }
        if self.is_of_site {
            std::mem::take(&mut self.older)
        } else {
            Vec::new()
        }
    }

    /// Takes note of a page of links. Returns the page that may be an older copy since: the page
    /// before this one, which holds newer posts and was built earlier. `is_built` when no entry has
    /// the date of this page, so that it is more than that of a post.
    fn note_behind(&mut self, asked: &str, date: i64, is_built: bool) -> Option<String> {
        let before = self.last.replace((asked.to_owned(), date));
        let is_inverted = |(before, at): &(String, i64)| is_built && *at < date && before != asked;
        let (before, at) = before.filter(is_inverted)?;
        self.inversions = self.inversions.saturating_add(1);
        self.doubted = (self.inversions == 1).then(|| (before.clone(), at));
        self.doubted.is_some().then_some(before)
    }

    /// True for the date of an older copy.
    fn is_older(&self, built: i64) -> bool {
        self.is_of_site && self.latest_us.is_some_and(|latest| built < latest)
    }
}

impl ArchiveWalk {
    /// Takes note of a document, as [`BuildDates::note`] and [`BuildDates::note_behind`] do. Archives
    /// stay as they were written, so that an older one than another is none.
    pub(super) fn note_built(&mut self, seen: &WalkedDocument<'_>) -> Vec<String> {
        let Some(date) = head_us(seen) else {
            return Vec::new();
        };
        let is_archive = matches!(self.strategy(), Some(Strategy::Archives));
        let is_linked = self.strategy().is_some_and(Strategy::follows_links);
        let is_linked = is_linked && !self.findings.held_whole;
        let dates = self.findings.built.get_or_insert_default();
        let mut older = Vec::new();
        if !is_archive {
            older = dates.note(seen.asked, date);
        }
        if is_linked {
            older.extend(dates.note_behind(seen.asked, date, seen.is_built));
        }
        older
    }

    /// The date of the last page of links that has one, in microseconds.
    pub fn last_date_us(&self) -> Option<i64> {
        let last = self.findings.built.as_ref()?.last.as_ref();
        last.map(|(_, at)| *at)
    }

    /// True for an older copy than the pages around it.
    pub(super) fn is_older_copy(&self, seen: &WalkedDocument<'_>) -> bool {
        let dates = self.findings.built.as_ref().zip(head_us(seen));
        dates.is_some_and(|(dates, built)| dates.is_older(built))
    }

    /// True for the page that may be an older copy while it comes with the same date, up to
    /// [`DOUBTED_READ_MAX`] days.
    pub(super) fn may_be_older_copy(&self, seen: &WalkedDocument<'_>) -> bool {
        let dates = self.findings.built.as_ref();
        let doubted = dates.and_then(|dates| dates.doubted.as_ref());
        let rounds = self.retry.as_ref().map_or(0, |retry| retry.rounds);
        rounds < DOUBTED_READ_MAX
            && doubted.is_some_and(|(url, at)| url == seen.asked && head_us(seen) == Some(*at))
    }
}

fn head_us(seen: &WalkedDocument<'_>) -> Option<i64> {
    seen.metadata.updated.as_ref().and_then(|date| date.at_us)
}

/// True for a document whose date is later than another, in microseconds, and the time at which it
/// was built: where an entry has the same date, it may be no more than that of its newest entry.
pub fn is_built_after(document: &SlicedDocument, before: i64) -> bool {
    let updated = document.metadata.updated.as_ref();
    let Some(built) = updated
        .and_then(|date| date.at_us)
        .filter(|at| before < *at)
    else {
        return false;
    };
    let is_it = |date: &Date| {
        date.at_us
            .is_some_and(|at| at.abs_diff(built) <= SAME_DATE_US)
    };
    let mut entries = document.entries.iter().map(|entry| entry.parse().0);
    !entries.any(|entry| entry.published.iter().chain(&entry.updated).any(is_it))
}

/// Microseconds by which the date of an entry and that of its document may differ and be one.
const SAME_DATE_US: u64 = 5_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use everfeed_adapters::{Hints, slice};

    #[test]
    fn a_document_is_built_at_its_own_date_unless_an_entry_has_it() {
        let check = |head: &str, entry: &str, before: i64, expect: bool| {
            let document = format!(
                "<rss version=\"2.0\"><channel><title>A blog</title>{head}<item><guid>1</guid>\
                 <title>A post</title>{entry}</item></channel></rss>"
            );
            let sliced = slice(document.as_bytes(), &Hints::default()).unwrap();
            let is_built = is_built_after(&sliced, before * 1_000_000);
            assert_eq!(is_built, expect, "{document} after {before}");
        };
        let head = "<lastBuildDate>Sat, 01 Jan 2022 10:00:00 GMT</lastBuildDate>";
        let date = |at: &str| format!("<pubDate>Sat, 01 Jan 2022 {at} GMT</pubDate>");
        check(head, &date("09:00:00"), 1_641_031_199, true);
        check(head, &date("09:00:00"), 1_641_031_200, false);
        check(head, "", 0, true);
        check(head, &date("10:00:00"), 0, false);
        check(head, &date("09:59:56"), 0, false);
        check("", &date("09:00:00"), 0, false);
    }
}
