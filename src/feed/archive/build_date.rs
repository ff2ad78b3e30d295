//! Older copies: pages that a cache gives in a state from before the pages around them, told by the
//! date at which the site was built. Between such a page and the one before it, posts may stand that
//! neither shows. Not the second reading.

use super::{ArchiveWalk, WalkedDocument};

/// Build dates of the documents of a walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BuildDates {
    /// The latest, in microseconds since 1970.
    pub(crate) latest_us: Option<i64>,
    /// True when two documents have had one date, so that it is of the site, and not of the entries
    /// of each.
    pub(crate) is_of_site: bool,
    /// Addresses of pages with an earlier one, at most [`OLDER_MAX`].
    pub(crate) older: Vec<String>,
}

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

    /// True for the date of an older copy.
    fn is_older(&self, built: i64) -> bool {
        self.is_of_site && self.latest_us.is_some_and(|latest| built < latest)
    }
}

impl ArchiveWalk {
    /// Takes note of a document, as [`BuildDates::note`] does; of one without a date nothing.
    pub(super) fn note_built(&mut self, seen: &WalkedDocument<'_>) -> Vec<String> {
        let Some(built) = built_us(seen) else {
            return Vec::new();
        };
        let dates = self.findings.built.get_or_insert_default();
        dates.note(seen.asked, built)
    }

    /// True for an older copy than the pages around it.
    pub(super) fn is_older_copy(&self, seen: &WalkedDocument<'_>) -> bool {
        let dates = self.findings.built.as_ref().zip(built_us(seen));
        dates.is_some_and(|(dates, built)| dates.is_older(built))
    }
}

fn built_us(seen: &WalkedDocument<'_>) -> Option<i64> {
    seen.metadata.updated.as_ref().and_then(|date| date.at_us)
}
