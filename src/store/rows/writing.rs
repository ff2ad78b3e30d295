//! A transaction as the work in it sees it, and what it leaves behind for the engine: times, the mark
//! of the content, removals; not how it is made durable.

use super::{open_table::TableEdit as _, removed::Removed, tables::META};
use crate::{
    feed::stamp::Stamp,
    store::{StoreError, clock_guard::ClockGuard, content_mark::ContentMark, engine::RowWriter},
};

/// Key in META that says that the store is to be written anew.
pub(in crate::store) const REWRITE_KEY: &str = "rewrite";

/// A transaction as a job sees it.
pub(in crate::store) struct Writing<'t> {
    tx: &'t dyn RowWriter,
    /// Time at which the job began.
    pub(in crate::store) now: Stamp,
    pub(in crate::store) guard: ClockGuard,
    /// The mark of the content before the transaction; the generation of new feeds as it is now.
    content: ContentMark,
    /// The last T that was given out in the transaction, if any was.
    pub(in crate::store) last_t: Option<Stamp>,
    /// True once something may have been written.
    pub(in crate::store) touched: bool,
    /// True when what was written may not be on disk later than it is answered.
    pub(in crate::store) wants_sync: bool,
    /// True when what it removes must not stay in free pages of a file.
    pub(in crate::store) wants_rewrite: bool,
    /// Removals for good.
    pub(in crate::store) removed: Vec<Removed>,
}

impl<'t> Writing<'t> {
    /// A transaction that has begun at this time, over a store with this clock and mark.
    pub(in crate::store) fn over(
        tx: &'t dyn RowWriter,
        now: Stamp,
        guard: ClockGuard,
        content: ContentMark,
    ) -> Self {
        Self {
            tx,
            now,
            guard,
            content,
            last_t: None,
            touched: false,
            wants_sync: false,
            wants_rewrite: false,
            removed: Vec::new(),
        }
    }

    /// For reading. A job checks first and writes after: refused before the first write, it leaves
    /// no trace.
    pub(in crate::store) fn look(&self) -> &'t dyn RowWriter {
        self.tx
    }

    /// For writing. A job that fails after this is thrown out together with its transaction.
    pub(in crate::store) fn change(&mut self) -> &'t dyn RowWriter {
        self.sync();
        self.change_late()
    }

    /// For writing what may be on disk later: a kill takes it back, and costs a poll.
    pub(in crate::store) fn change_late(&mut self) -> &'t dyn RowWriter {
        self.touched = true;
        self.tx
    }

    /// Has everything of the transaction on disk when it is answered.
    pub(in crate::store) fn sync(&mut self) {
        self.wants_sync = true;
    }

    /// Has the store written anew once this is durable, at the latest at the next start, where free
    /// room keeps what was there.
    pub(in crate::store) fn request_rewrite(&mut self) -> Result<(), StoreError> {
        self.change().edit(META)?.write(REWRITE_KEY, &1_u32)?;
        self.wants_rewrite = true;
        Ok(())
    }

    /// Refuses a clock that cannot be right.
    pub(in crate::store) fn check_clock(&self) -> Result<(), StoreError> {
        self.guard.check(self.now)
    }

    /// Remembers that something was written now.
    pub(in crate::store) fn record_clock(&mut self) {
        self.guard.record(self.now);
    }

    /// Remembers that content was written, and the last T of its feed.
    pub(in crate::store) fn record_content(&mut self, last_t: Stamp) {
        self.last_t = self.last_t.max(Some(last_t));
    }

    /// The mark of the content after the transaction.
    pub(in crate::store) fn content(&self) -> ContentMark {
        self.last_t
            .map_or(self.content, |last_t| self.content.after_commit(last_t))
    }

    /// The generation of a feed that is made now.
    pub(in crate::store) fn new_generation(&self) -> Stamp {
        self.content.generation
    }

    /// Has feeds that are made from now on begin a generation after all that was given out: one of
    /// them may have the name of a feed that goes.
    pub(in crate::store) fn renew_generation(&mut self) {
        let now = self.content().last_t.max(self.now);
        self.content.generation = now.max(self.content.generation.next());
        self.record_content(Stamp::ZERO);
    }

    /// Remembers that something was removed for good: a backup must not bring it back.
    pub(in crate::store) fn record_removed(&mut self, removed: Removed) {
        self.removed.push(removed);
    }

    /// Takes the clock for right.
    pub(in crate::store) fn accept_clock(&mut self) {
        self.sync();
        self.guard.accept(self.now);
    }
}
