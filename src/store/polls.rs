//! Polls and walks as a store keeps them: poll states, host pauses, archive walks and their staged
//! pages; not when any of them is due.

use super::StoreFuture;
use crate::feed::{
    archive::{ArchiveWalk, StagedPage, StagedWalk},
    record::FeedNo,
    schedule::{Pause, PollState},
};

/// Seconds after which a poll state that was noted is on disk at the latest.
// Limit: a process that dies has forgotten the polls of its last seconds that changed nothing. They
// are made once more.
pub const POLLS_LATE_SECS: u64 = 3;

/// Poll states and host pauses. The state of an earlier poll never takes the place of one of a later
/// poll, whichever call comes last.
pub trait Polls: Send + Sync {
    /// The poll states of the feeds after this number, by number, at most so many.
    fn polls(&self, after: Option<FeedNo>, max: usize)
    -> StoreFuture<'_, Vec<(FeedNo, PollState)>>;

    /// The poll state of a feed; `None` before its first poll.
    fn poll(&self, feed: FeedNo) -> StoreFuture<'_, Option<PollState>>;

    /// Saves poll states and host pauses, all or none. With a new pause those that are over are
    /// forgotten. The last poll state of a feed may come after the feed was forgotten: it is passed
    /// over.
    fn save_polls(
        &self,
        polls: Vec<(FeedNo, PollState)>,
        pauses: Vec<HostPause>,
    ) -> StoreFuture<'_, ()>;

    /// Saves poll states of which nothing is lost but a poll: they are read back at once, and are on
    /// disk [`POLLS_LATE_SECS`] later at the latest, or with the next change that is durable at
    /// once. All or none, as [`save_polls`](Self::save_polls).
    fn note_polls(&self, polls: Vec<(FeedNo, PollState)>) -> StoreFuture<'_, ()>;

    /// The pauses of the authorities after this one, by name, at most so many.
    fn host_pauses(&self, after: Option<String>, max: usize) -> StoreFuture<'_, Vec<HostPause>>;
}

/// An authority and its pause.
pub type HostPause = (String, Pause);

/// Archive walks.
pub trait Walks: Send + Sync {
    /// The walks of the feeds after this number, by number, without what they have seen, at most so
    /// many.
    fn walks(
        &self,
        after: Option<FeedNo>,
        max: usize,
    ) -> StoreFuture<'_, Vec<(FeedNo, ArchiveWalk)>>;

    /// The walk of a feed, without what it has seen; `None` before the first.
    fn walk(&self, feed: FeedNo) -> StoreFuture<'_, Option<ArchiveWalk>>;

    /// Keeps a walk and the page that it has just read, in one. A page of the same number is
    /// replaced. They are read back at once, and are on disk [`POLLS_LATE_SECS`] later at the latest:
    /// a kill costs the pages of that time once more.
    fn stage(
        &self,
        feed: FeedNo,
        walk: ArchiveWalk,
        page: Option<StagedPage>,
    ) -> StoreFuture<'_, ()>;

    /// The walk of a feed and its staged pages, as many as a walk may read: those that wait to be
    /// committed, and the traces of those that are.
    fn staged(&self, feed: FeedNo) -> StoreFuture<'_, StagedWalk>;
}
