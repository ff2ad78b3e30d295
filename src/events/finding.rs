//! A finding: something that is wrong now, whose fault it is, since when, and what to do.

use super::{Cause, FaultOwner};
use crate::{feed::stamp::Stamp, one_line::one_line};

/// Feeds that an event names at most; the others are counted.
pub const FEEDS_NAMED_MAX: usize = 10;
/// Characters of a title at most.
const TITLE_CHARS_MAX: usize = 160;
/// Characters of a text at most.
const TEXT_CHARS_MAX: usize = 600;
/// Characters of the name of a feed at most.
const NAME_CHARS_MAX: usize = 100;

/// Something that is wrong now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its cause.
    pub cause: Cause,
    /// True when the operator has to act, or others do.
    pub severity: Severity,
    /// Whose fault it is.
    pub whose: FaultOwner,
    /// The same in words that follow "the fault is".
    pub owner: String,
    /// Since when.
    pub since: Stamp,
    /// One short line: who or what fails.
    pub title: String,
    /// The fault, in words.
    pub text: String,
    /// What to do.
    pub remedy: String,
    /// The feeds that it concerns.
    pub feeds: AffectedFeeds,
}

/// Weight of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Something does not work.
    Fault,
    /// Everything works, and the operator should know.
    Notice,
}

/// Feeds of which the first are named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AffectedFeeds {
    /// Names of the first.
    pub names: Vec<String>,
    /// The number of all.
    pub total: u32,
}

impl AffectedFeeds {
    /// One feed.
    pub fn one(name: &str) -> Self {
        let mut feeds = Self::default();
        feeds.add(name);
        feeds
    }

    /// Adds one.
    pub fn add(&mut self, name: &str) {
        self.total = self.total.saturating_add(1);
        if self.names.len() < FEEDS_NAMED_MAX {
            self.names.push(one_line(name, NAME_CHARS_MAX));
        }
    }

    /// True where there are feeds that are not among those before: a name, or a greater number. One
    /// that is not named and comes for another is not noticed.
    pub fn has_joined(&self, before: &Self) -> bool {
        let is_new = |name: &String| !before.names.contains(name);
        // Those that were not named move up when others leave.
        let are_all_named = before.total as usize <= before.names.len();
        self.total > before.total || (are_all_named && self.names.iter().any(is_new))
    }

    /// Them in words: the names, and the number of the others.
    pub fn words(&self) -> String {
        let names = self.names.join(", ");
        match (self.total as usize).saturating_sub(self.names.len()) {
            0 => names,
            more => format!("{names} and {more} more"),
        }
    }
}

impl Finding {
    /// A finding whose texts may be those of others: each becomes one line, and is cut where it is
    /// too long.
    pub fn new(cause: Cause, whose: FaultOwner, since: Stamp, title: &str, text: &str) -> Self {
        Self {
            cause,
            severity: Severity::Fault,
            whose,
            owner: whose.words().to_owned(),
            since,
            title: one_line(title, TITLE_CHARS_MAX),
            text: one_line(text, TEXT_CHARS_MAX),
            remedy: String::new(),
            feeds: AffectedFeeds::default(),
        }
    }

    /// The same with this remedy.
    #[must_use]
    pub fn remedy(self, remedy: &str) -> Self {
        Self {
            remedy: one_line(remedy, TEXT_CHARS_MAX),
            ..self
        }
    }

    /// The same of something that works.
    #[must_use]
    pub fn notice(self) -> Self {
        Self {
            severity: Severity::Notice,
            ..self
        }
    }
}
