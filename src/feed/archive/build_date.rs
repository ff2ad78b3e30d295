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
    /// Takes note of a document. The answer are the addresses of pages that are older copies, as far
    /// as that is known since this one.
    // Decides: Is a page of archives an older copy from a cache?
    fn note(&mut self, seen: &WalkedDocument<'_>) -> Vec<String> {
        let Some(built) = built_us(seen) else {
            return Vec::new();
        };
        match self.latest_us {
            Some(latest) if built < latest => {
                if self.older.len() < OLDER_MAX {
                    self.older.push(seen.asked.to_owned());
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

    /// True for an older copy that a second request got as well.
    fn is_older(&self, seen: &WalkedDocument<'_>) -> bool {
        let is_before = |latest: i64| built_us(seen).is_some_and(|built| built < latest);
        self.is_of_site && self.latest_us.is_some_and(is_before)
    }
}

impl ArchiveWalk {
    /// Takes note of a document, as [`BuildDates::note`] does; of one without a date nothing.
    pub(super) fn note_built(&mut self, seen: &WalkedDocument<'_>) -> Vec<String> {
        if built_us(seen).is_none() {
            return Vec::new();
        }
        self.findings.built.get_or_insert_default().note(seen)
    }

    /// True for an older copy than the pages around it.
    pub(super) fn is_older_copy(&self, seen: &WalkedDocument<'_>) -> bool {
        let built = self.findings.built.as_ref();
        built.is_some_and(|built| built.is_older(seen))
    }
}

fn built_us(seen: &WalkedDocument<'_>) -> Option<i64> {
    seen.metadata.updated.as_ref().and_then(|date| date.at_us)
}
