//! The lanes of the poller, one a kind of job, and what is done with all of them at once; not what
//! one lane does, nor a job.

use super::jobs::{CheckJob, PollJob, ReaderPollJob, RecallJob, WalkJob};
use crate::{
    feed::{record::FeedNo, stamp::Stamp},
    ingest::{
        host_pauses::HostPauses,
        lane::{Joined, Lane, LaneJob},
    },
};

/// The lanes, one a kind of job.
#[derive(Default)]
pub(super) struct Lanes {
    pub(super) polls: Lane<PollJob>,
    pub(super) looks: Lane<ReaderPollJob>,
    pub(super) walks: Lane<WalkJob>,
    pub(super) checks: Lane<CheckJob>,
    pub(super) recalls: Lane<RecallJob>,
}

/// A task that has ended, by lane.
pub(super) enum LaneEvent {
    Polled(Joined<<PollJob as LaneJob>::Result>),
    Looked(Joined<<ReaderPollJob as LaneJob>::Result>),
    Stepped(Joined<<WalkJob as LaneJob>::Result>),
    Checked(Joined<<CheckJob as LaneJob>::Result>),
    Recalled(Joined<<RecallJob as LaneJob>::Result>),
}

impl Lanes {
    /// The lanes, with so many polls in flight at most.
    pub(super) fn with_polls(in_flight_max: usize) -> Self {
        Self {
            polls: Lane::with_limit(in_flight_max),
            ..Self::default()
        }
    }

    /// Waits for the next task that ends, in any lane. Safe to drop while it waits.
    pub(super) async fn next(&mut self) -> LaneEvent {
        // In this order, so that a run with the same chances ends the same. The most frequent ones
        // come last, and keep nobody waiting.
        tokio::select! {
            biased;
            joined = self.looks.next() => LaneEvent::Looked(joined),
            joined = self.recalls.next() => LaneEvent::Recalled(joined),
            joined = self.checks.next() => LaneEvent::Checked(joined),
            joined = self.walks.next() => LaneEvent::Stepped(joined),
            joined = self.polls.next() => LaneEvent::Polled(joined),
        }
    }

    pub(super) fn next_at(&self) -> Stamp {
        let next_at = [
            self.polls.next_at(),
            self.looks.next_at(),
            self.walks.next_at(),
            self.checks.next_at(),
            self.recalls.next_at(),
        ];
        next_at.into_iter().min().unwrap_or(Stamp::MAX)
    }

    /// Each of these places has become free.
    pub(super) fn call_up(&mut self, places: &[String]) {
        for place in places {
            self.polls.call_up(place);
            self.walks.call_up(place);
            self.checks.call_up(place);
        }
    }

    /// Calls up whoever waits for a place that is free.
    pub(super) fn call_up_for_free(&mut self, pauses: &HostPauses) {
        self.polls.call_up_for_free(pauses);
        self.walks.call_up_for_free(pauses);
        self.checks.call_up_for_free(pauses);
    }

    pub(super) fn remove(&mut self, feed: FeedNo) {
        self.polls.remove(feed);
        self.looks.remove(feed);
        self.walks.remove(feed);
        self.checks.remove(feed);
        self.recalls.remove(feed);
    }

    /// True while a document of the feed is asked for.
    pub(super) fn are_polling(&self, feed: FeedNo) -> bool {
        self.polls.is_busy_with(feed) || self.looks.is_busy_with(feed)
    }

    pub(super) fn are_idle(&self) -> bool {
        self.polls.is_idle()
            && self.looks.is_idle()
            && self.walks.is_idle()
            && self.checks.is_idle()
            && self.recalls.is_idle()
    }

    pub(super) async fn shutdown(&mut self) {
        self.polls.shutdown().await;
        self.looks.shutdown().await;
        self.walks.shutdown().await;
        self.checks.shutdown().await;
        self.recalls.shutdown().await;
    }
}
