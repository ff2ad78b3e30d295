//! The condition of a store: can changes be committed, and if not, for which reason and since when;
//! not how it recovers.

use super::nodes::Nodes;
use crate::feed::stamp::Stamp;
use std::time::Duration;

/// The condition of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StoreCondition {
    /// Changes can be committed.
    #[default]
    Sound,
    /// Nothing can be committed.
    Away(Outage),
}

/// A time in which nothing can be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The cause and what to do, for the operator.
    pub cause: String,
    /// Time of its discovery.
    pub since: Stamp,
    /// Step that ends it.
    pub remedy: Remedy,
}

/// Step that ends an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The store tries again by itself, and reads what it holds meanwhile.
    TriesAgain,
    /// The store tries again by itself, and cannot read meanwhile.
    OpensAgain,
    /// The store tries again by itself, and reads what it can meanwhile. It is kept elsewhere: another
    /// process would not do better.
    ComesBack,
    /// Another file is at the path of the store by now: only a new process can take it up.
    Restart,
}

impl StoreCondition {
    /// The outage, if there is one.
    pub fn outage(&self) -> Option<&Outage> {
        match self {
            Self::Sound => None,
            Self::Away(outage) => Some(outage),
        }
    }
}

/// Figures of the file of a store, for the operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileFigures {
    /// Its length, in bytes.
    pub bytes: u64,
    /// Faults of the disk or of the file since the start.
    pub faults: u64,
}

/// Faults of what a store remembers of removals for good, beside its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovalFaults {
    /// The reason for which an older copy brings back what was removed last.
    pub unwritten: Option<String>,
    /// The reason for which an older copy brings back some of what was removed before.
    pub unread: Option<String>,
}

/// A copy of a whole store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupReport {
    /// Values in it.
    pub values: u64,
    /// Values of those that were damaged in the store and are in the copy as they were.
    pub damaged: u64,
    /// Length of its file, in bytes.
    pub bytes: u64,
}

/// A store that tells its condition without being asked for anything else.
pub trait Watched: Send + Sync {
    /// Its condition now. Never waits.
    fn condition(&self) -> StoreCondition {
        StoreCondition::Sound
    }

    /// Figures of its file; zeros for a store without one. Never waits for the disk.
    fn figures(&self) -> FileFigures {
        FileFigures::default()
    }

    /// The reason for which its file may still hold what was forgotten, in free pages, until the
    /// next start; `None` when it does not.
    fn keeps_forgotten(&self) -> Option<String> {
        None
    }

    /// True when the process before this one did not close the store: what it noted late is not
    /// there, and it may have died of what it did last.
    fn ended_uncleanly(&self) -> bool {
        false
    }

    /// Time for which poll states that may be noted late gather before they are noted. A store that
    /// keeps them back itself needs none.
    fn polls_gather(&self) -> Duration {
        Duration::ZERO
    }

    /// The words for a store that was restored from a copy in the last days; `None` for any other.
    fn restored(&self) -> Option<String> {
        None
    }

    /// The conversation with other processes on the store; `None` for a store that is served by one
    /// process alone.
    fn nodes(&self) -> Option<&Nodes> {
        None
    }

    /// Faults of what it remembers of removals.
    fn removal_faults(&self) -> RemovalFaults {
        RemovalFaults::default()
    }
}
