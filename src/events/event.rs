//! An event: a finding that has lasted, its end, or what happened once; and its words.

use super::{AffectedFeeds, Cause, FaultOwner, Finding, Severity};
use crate::feed::stamp::Stamp;

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its time. No other event has the same.
    pub at: Stamp,
    /// Its kind.
    pub kind: EventKind,
    /// Its cause.
    pub cause: Cause,
    /// True when something does not work.
    pub severity: Severity,
    /// Whose fault it is.
    pub whose: FaultOwner,
    /// The same in words that follow "the fault is".
    pub owner: String,
    /// Since when the fault lasts, or lasted.
    pub since: Stamp,
    /// One short line.
    pub title: String,
    /// The fault, in words.
    pub text: String,
    /// What to do; empty where nothing can be done.
    pub remedy: String,
    /// The feeds that it concerns.
    pub feeds: AffectedFeeds,
    /// The time at which a feed joined it last; `None` while it concerns those of its beginning.
    pub joined_at: Option<Stamp>,
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// A fault has lasted.
    Began,
    /// A fault has ended.
    Ended,
    /// A fault comes and goes: its ends are not reported until it has been away for a while.
    Unsteady,
    /// Something happened once.
    Happened,
}

impl EventKind {
    /// Its name for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Began => "began",
            Self::Ended => "ended",
            Self::Unsteady => "unsteady",
            Self::Happened => "happened",
        }
    }
}

impl Event {
    /// The event of a finding.
    pub(super) fn of(finding: &Finding, kind: EventKind, at: Stamp) -> Self {
        let Finding {
            cause,
            severity,
            whose,
            owner,
            since,
            title,
            text,
            remedy,
            feeds,
        } = finding.clone();
        Self {
            at,
            kind,
            cause,
            severity,
            whose,
            owner,
            since,
            title,
            text,
            remedy,
            feeds,
            joined_at: None,
        }
    }

    /// The time of its last change that readers are to see: a feed that joined, or its own.
    pub fn updated(&self) -> Stamp {
        self.joined_at.map_or(self.at, |joined| joined.max(self.at))
    }

    /// The type of the event for programs: its topic and its kind.
    pub fn type_name(&self) -> String {
        format!("{}.{}", self.cause.topic.name(), self.kind.name())
    }

    /// The time at which the fault ended; `None` for what has not ended.
    pub fn ended_at(&self) -> Option<Stamp> {
        (self.kind == EventKind::Ended).then_some(self.at)
    }

    /// The headline.
    pub fn headline(&self) -> String {
        match self.kind {
            EventKind::Began | EventKind::Happened => self.title.clone(),
            EventKind::Ended => format!("Ended: {}", self.title),
            EventKind::Unsteady => format!("Comes and goes: {}", self.title),
        }
    }

    /// Whose fault it is, since when, what to do: each a name and its text.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![(
            if self.kind == EventKind::Happened {
                "What happened"
            } else {
                "What is wrong"
            },
            self.text.clone(),
        )];
        if self.whose != FaultOwner::Nobody {
            facts.push(("Whose fault", format!("the fault is {}", self.owner)));
        }
        let since = shown(self.since);
        match self.kind {
            EventKind::Began => facts.push(("Since", since)),
            EventKind::Unsteady => {
                let words = format!(
                    "{since}; it has come and gone several times within an hour, and its end is reported once it has been away for an hour"
                );
                facts.push(("Since", words));
            }
            EventKind::Ended => {
                facts.push(("Lasted", format!("from {since} to {}", shown(self.at))));
            }
            EventKind::Happened => facts.push(("When", since)),
        }
        if !self.remedy.is_empty() && self.kind != EventKind::Ended {
            facts.push(("What to do", self.remedy.clone()));
        }
        if self.feeds.total > 0 {
            facts.push(("Feeds", self.feeds.words()));
        }
        if self.kind == EventKind::Ended {
            facts[0].0 = "What was wrong";
        }
        facts
    }

    /// The facts as lines of plain text.
    pub fn lines(&self) -> String {
        let facts = self.facts().into_iter();
        let lines: Vec<String> = facts
            .map(|(name, text)| format!("{name}: {text}"))
            .collect();
        lines.join("\n")
    }
}

/// A moment for people, to the second.
fn shown(at: Stamp) -> String {
    Stamp::from_secs(at.secs()).rfc3339()
}
