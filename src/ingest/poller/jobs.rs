//! The kinds of job that the poller runs, each in a lane of its own.

use crate::{
    feed::{
        archive::ArchiveWalk,
        record::FeedRecord,
        schedule::{Failure, PollState},
        stamp::Stamp,
    },
    ingest::{
        Context, FeedSpec, Upstream,
        checks::{Check, Checked},
        lane::LaneJob,
        polls::{ChangeCounts, Poll, PollEnd, Polled},
        transact::correct_times,
        walks::{ArchiveReader, Stepped},
    },
};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The parts that jobs need.
#[derive(Clone)]
pub(super) struct JobParts {
    pub(super) context: Context,
    pub(super) upstream: Upstream,
    /// The way of looks, with a pace of its own.
    pub(super) look_upstream: Upstream,
}

/// One poll.
pub(super) struct PollJob {
    pub(super) parts: JobParts,
    pub(super) spec: Arc<FeedSpec>,
    pub(super) state: PollState,
    /// True when no validators are sent.
    pub(super) is_unconditional: bool,
}

/// One poll that a reader at an old address waits for.
pub(super) struct ReaderPollJob(pub(super) PollJob);

/// One step of an archive walk; without a walk, the beginning of one more.
pub(super) struct WalkJob {
    pub(super) parts: JobParts,
    pub(super) spec: Arc<FeedSpec>,
    pub(super) state: PollState,
    pub(super) walk: Option<ArchiveWalk>,
}

/// One permalink check.
pub(super) struct CheckJob {
    pub(super) parts: JobParts,
    pub(super) spec: Arc<FeedSpec>,
    pub(super) state: PollState,
}

/// Reading what the store knows of a feed that was added or changed, or whose times may be of a
/// clock that ran ahead.
pub(super) struct RecallJob {
    pub(super) parts: JobParts,
    pub(super) spec: Arc<FeedSpec>,
}

/// Facts of a feed that the store holds.
pub(super) struct Recalled {
    /// Its record; in a box, because the other events of lanes are smaller.
    pub(super) record: Box<FeedRecord>,
    /// Its poll state; `None` when it was never polled.
    pub(super) state: Option<PollState>,
    /// Its archive walk, whether it is over or not.
    pub(super) walk: Option<ArchiveWalk>,
    /// True for a feed of a site that was polled, and of which no document is kept for its plain
    /// readers.
    pub(super) lacks_document: bool,
}

impl LaneJob for PollJob {
    const KIND: &'static str = "poll";
    const IN_FLIGHT_MAX: usize = 64;
    /// With the feed as it was when the poll began.
    type Result = (Arc<FeedSpec>, Polled);

    fn feed_name(&self) -> &str {
        &self.spec.name
    }

    async fn run(self, stop: CancellationToken) -> Option<Self::Result> {
        let Self {
            parts,
            spec,
            state,
            is_unconditional,
        } = self;
        let (state, pushed, check_at) = take_in_pushed(&parts.context, &spec, state).await;
        let poll = Poll::new(&parts.context, &spec, &state);
        let poll = if is_unconditional {
            poll.unconditional()
        } else {
            poll
        };
        let mut polled = poll.run(&parts.upstream, &stop).await?;
        polled.end = polled.end.with(pushed);
        polled.check_at = polled.check_at.or(check_at);
        Some((spec, polled))
    }
}

/// Takes in the documents of a feed that were pushed; its state after that, what they changed, and
/// the time of the next permalink check.
async fn take_in_pushed(
    context: &Context,
    spec: &FeedSpec,
    mut state: PollState,
) -> (PollState, ChangeCounts, Option<Stamp>) {
    let mut check_at = None;
    let mut counts = ChangeCounts::default();
    let push = context.notify.upstream_push();
    let documents = push.map(|push| push.take_documents(spec.no));
    for document in documents.unwrap_or_default() {
        let Some(polled) = Poll::new(context, spec, &state).pushed(document).await else {
            continue;
        };
        if let PollEnd::Document(of_document) = polled.end {
            counts = counts.plus(of_document);
        }
        check_at = polled.check_at.or(check_at);
        state = polled.state;
    }
    (state, counts, check_at)
}

impl LaneJob for ReaderPollJob {
    const KIND: &'static str = "look for a reader";
    const IN_FLIGHT_MAX: usize = 16;
    type Result = <PollJob as LaneJob>::Result;

    fn feed_name(&self) -> &str {
        &self.0.spec.name
    }

    async fn run(self, stop: CancellationToken) -> Option<Self::Result> {
        let PollJob {
            parts, spec, state, ..
        } = self.0;
        let polled = Poll::new(&parts.context, &spec, &state)
            .run(&parts.look_upstream, &stop)
            .await?;
        Some((spec, polled))
    }
}

impl LaneJob for WalkJob {
    const KIND: &'static str = "step of an archive walk";
    const IN_FLIGHT_MAX: usize = 16;
    type Result = Stepped;

    fn feed_name(&self) -> &str {
        &self.spec.name
    }

    async fn run(self, stop: CancellationToken) -> Option<Stepped> {
        let Self {
            parts,
            spec,
            state,
            walk,
        } = self;
        let reader = ArchiveReader::new(&parts.context, &parts.upstream, &spec, &state);
        match walk {
            Some(walk) => reader.go_on(walk, &stop).await,
            None => reader.begin_again(&stop).await,
        }
    }
}

impl LaneJob for CheckJob {
    const KIND: &'static str = "permalink check";
    const IN_FLIGHT_MAX: usize = 16;
    type Result = Checked;

    fn feed_name(&self) -> &str {
        &self.spec.name
    }

    async fn run(self, stop: CancellationToken) -> Option<Checked> {
        Check::new(&self.parts.context, &self.spec, &self.state)
            .run(&self.parts.upstream, &stop)
            .await
    }
}

impl LaneJob for RecallJob {
    const KIND: &'static str = "look-up of a feed";
    const IN_FLIGHT_MAX: usize = 4;
    type Result = Result<Recalled, Failure>;

    fn feed_name(&self) -> &str {
        &self.spec.name
    }

    async fn run(self, stop: CancellationToken) -> Option<Self::Result> {
        tokio::select! {
            recalled = self.recall() => Some(recalled),
            () = stop.cancelled() => None,
        }
    }
}

impl RecallJob {
    async fn recall(&self) -> Result<Recalled, Failure> {
        let (store, feed) = (&self.parts.context.store, self.spec.no);
        correct_times(&self.parts.context, &self.spec).await?;
        let (record, state) = (store.feed(feed).await?, store.poll(feed).await?);
        let is_of_site = self.spec.legacy_url().is_some();
        // By what was stored before the look: the first poll may be under way, which keeps its own.
        let was_read = state
            .as_ref()
            .is_some_and(|state| state.document.body.is_some());
        Ok(Recalled {
            record: Box::new(record),
            state,
            walk: store.walk(feed).await?,
            lacks_document: is_of_site && was_read && store.document(feed).await?.is_none(),
        })
    }
}

/// Time at which the archive walk of a feed goes on, the commit of its end included; `None` for one
/// whose end is committed.
pub(super) fn goes_on_at(walk: &ArchiveWalk, record: &FeedRecord) -> Option<Stamp> {
    // Of one that is over, only the commit may be missing.
    let at = || {
        if walk.is_over() {
            Stamp::ZERO
        } else {
            walk.next_at()
        }
    };
    (!crate::ingest::walks::is_settled(walk, record)).then(at)
}
