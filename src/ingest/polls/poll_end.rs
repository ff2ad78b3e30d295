//! The end of a poll, for whoever asked for it; not the poll state, which is what is remembered of
//! it.

use crate::feed::{
    reconcile::{Change, PutKind},
    schedule::{FaultKind, PollOutcome},
    stamp::Stamp,
};

/// The end of a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PollEnd {
    /// The publisher answered that nothing has changed, or sent the last document again.
    Unchanged,
    /// A document was read, and what it changed is committed.
    Document(ChangeCounts),
    /// A document was read; until then it waits for the archives of its feed.
    AwaitsArchives(Stamp),
    /// Nothing was asked, because the host is asked by others; the poll is repeated after so many
    /// seconds.
    Postponed {
        /// Seconds.
        wait_secs: u64,
    },
    /// The publisher answered, and nothing of it could be kept because the store was away; the poll
    /// is repeated after so many seconds.
    NotKept {
        /// Cause and remedy, for the operator.
        cause: String,
        /// Seconds.
        wait_secs: u64,
    },
    /// It failed.
    Failed(FaultKind),
}

impl PollEnd {
    /// The end that an outcome stands for, before anything is committed.
    pub(super) fn of(outcome: &PollOutcome<'_>) -> Self {
        match outcome {
            PollOutcome::Unchanged(_) => Self::Unchanged,
            PollOutcome::Document(..) => Self::Document(ChangeCounts::default()),
            PollOutcome::Deferred { wait_secs } => Self::Postponed {
                wait_secs: *wait_secs,
            },
            PollOutcome::Failed(failure) => Self::Failed(failure.kind.clone()),
        }
    }

    /// True when the publisher answered as it should.
    pub fn is_good(&self) -> bool {
        matches!(
            self,
            Self::Unchanged | Self::Document(_) | Self::AwaitsArchives(_)
        )
    }

    /// The same with more that was committed. Deferred edits may be committed whatever the
    /// publisher answered.
    pub(in crate::ingest) fn with(self, more: ChangeCounts) -> Self {
        match self {
            Self::Document(counts) => Self::Document(counts.plus(more)),
            Self::Unchanged if more != ChangeCounts::default() => Self::Document(more),
            other => other,
        }
    }
}

/// Items that a poll changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeCounts {
    /// Items that were never there before.
    pub new: usize,
    /// Items with other content than before, those that live again included.
    pub edited: usize,
    /// Items that became tombstones.
    pub gone: usize,
}

impl ChangeCounts {
    /// Counts the changes of a commit.
    pub(super) fn of(changes: &[Change]) -> Self {
        let mut counts = Self::default();
        for change in changes {
            match change {
                Change::Put(put) if put.kind == PutKind::Added => counts.new += 1,
                Change::Put(_) => counts.edited += 1,
                Change::Delete(_) => counts.gone += 1,
            }
        }
        counts
    }

    pub(in crate::ingest) fn plus(self, more: Self) -> Self {
        Self {
            new: self.new + more.new,
            edited: self.edited + more.edited,
            gone: self.gone + more.gone,
        }
    }
}
