//! Looks at the origins of old feeds, which those who read them at their old addresses cause: one
//! for all readers, and whether a reader waits for it. Not the polls that are due: looks have
//! places and a pace of their own.

use super::{Poller, inbox::Inbox};
use crate::{
    feed::{
        record::FeedNo,
        stamp::{SECOND_US, Stamp},
    },
    ingest::polls::PollEnd,
    locks::{lock, read},
};
use futures_util::future::BoxFuture;
use std::{collections::HashMap, sync::Mutex, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

/// Looks that wait to be taken in at most; one more reader gets the copy that there is.
const LOOKS_MAX: usize = 256;

/// Time for which readers wait at most for a look that another one began, from its beginning.
const SHARED_WAIT: Duration = Duration::from_millis(500);

/// Time for which the reader waits at most who begins a look.
pub const LONE_WAIT: Duration = Duration::from_secs(3);

/// Microseconds for which a feed whose look is put off is not examined again.
const QUIET_US: u64 = SECOND_US;

/// A look that a reader wants. Dropping it ends the wait of all readers.
pub(super) struct WantedPoll {
    pub(super) feed: FeedNo,
    began: Instant,
    _end: watch::Sender<()>,
}

/// The looks under way, and what came of the last one of each feed.
pub(super) struct ReaderPolls {
    pub(super) wanted: Inbox<WantedPoll>,
    notes: Mutex<HashMap<FeedNo, ReaderPollNote>>,
}

/// The looks at one feed.
#[derive(Debug, Default)]
struct ReaderPollNote {
    /// The look under way, which has ended when its sender has.
    under_way: Option<(watch::Receiver<()>, Instant)>,
    /// Pace of the last look.
    pace: ReaderPollPace,
    /// Time up to which no look is due, as far as is known.
    quiet_until: Stamp,
}

/// Time that a look took, which tells who waits for the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ReaderPollPace {
    /// It ended within [`SHARED_WAIT`], or there was none: all readers wait.
    #[default]
    Prompt,
    /// It took longer: the reader waits who begins a look.
    Slow,
    /// It failed: nobody waits until one succeeds.
    Failing,
}

impl ReaderPollPace {
    fn of(end: &PollEnd, took: Duration) -> Self {
        if !end.is_good() {
            Self::Failing
        } else if took > SHARED_WAIT {
            Self::Slow
        } else {
            Self::Prompt
        }
    }
}

impl ReaderPollNote {
    /// The look under way, and the end of the time for which readers wait for it who did not begin
    /// it.
    fn under_way(&self) -> Option<(watch::Receiver<()>, Instant)> {
        self.under_way
            .clone()
            .filter(|(end, _)| end.has_changed().is_ok())
    }

    fn is_quiet(&self, now: Stamp) -> bool {
        // A moment further away is of a clock that went back since.
        now < self.quiet_until && self.quiet_until.micros() - now.micros() <= QUIET_US
    }
}

impl Default for ReaderPolls {
    fn default() -> Self {
        Self {
            wanted: Inbox::new(LOOKS_MAX),
            notes: Mutex::default(),
        }
    }
}

impl ReaderPolls {
    /// Notes what came of a look, before those who wait for it are told.
    pub(super) fn ended(&self, look: &WantedPoll, end: &PollEnd) {
        let mut notes = lock(&self.notes);
        notes.entry(look.feed).or_default().pace = ReaderPollPace::of(end, look.began.elapsed());
    }

    /// Forgets a feed that is not polled any more.
    pub(super) fn forget(&self, feed: FeedNo) {
        lock(&self.notes).remove(&feed);
    }
}

impl Poller {
    /// True while a reader of a copy that may be `fresh_secs` old at most would have its origin
    /// asked, or would wait for the answer.
    pub fn wants_look(&self, feed: FeedNo, fresh_secs: u64) -> bool {
        let now = self.parts.context.now();
        if self.is_fresh(feed, fresh_secs, now) {
            return false;
        }
        let mut notes = lock(&self.looks.notes);
        let note = notes.entry(feed).or_default();
        match note.under_way() {
            Some((_, until)) => note.pace == ReaderPollPace::Prompt && Instant::now() < until,
            None => self.is_due(note, feed, fresh_secs, now),
        }
    }

    /// Has the origin of a feed asked, once for all readers, when the copy is older than
    /// `fresh_secs`; 0: never. What is returned ends with the look, or when it has taken too long;
    /// `None` when there is nothing to wait for.
    pub fn look(&self, feed: FeedNo, fresh_secs: u64) -> Option<BoxFuture<'static, ()>> {
        let now = self.parts.context.now();
        if self.is_fresh(feed, fresh_secs, now) {
            return None;
        }
        let mut notes = lock(&self.looks.notes);
        let note = notes.entry(feed).or_default();
        let (mut end, until, waits) = match note.under_way() {
            Some((end, until)) => (end, until, note.pace == ReaderPollPace::Prompt),
            None if !self.is_due(note, feed, fresh_secs, now) => return None,
            None => {
                let (sender, end) = watch::channel(());
                let began = Instant::now();
                let wanted = WantedPoll {
                    feed,
                    began,
                    _end: sender,
                };
                if !self.looks.wanted.put(wanted) {
                    return None;
                }
                note.under_way = Some((end.clone(), began + SHARED_WAIT));
                (end, began + LONE_WAIT, note.pace != ReaderPollPace::Failing)
            }
        };
        if !waits || Instant::now() >= until {
            return None;
        }
        // It ends by the end of its sender, or by the clock.
        Some(Box::pin(async move {
            drop(timeout_at(until, end.changed()).await)
        }))
    }

    /// True while the last poll of a feed is no older than that.
    fn is_fresh(&self, feed: FeedNo, fresh_secs: u64, now: Stamp) -> bool {
        let states = read(&self.states);
        let polled_at = states.get(&feed).and_then(|kept| kept.polled_at);
        // A feed that was never polled has no copy.
        let Some(polled_at) = polled_at.filter(|_| fresh_secs > 0) else {
            return true;
        };
        polled_at <= now && now < polled_at.plus_secs(fresh_secs)
    }

    fn is_due(&self, note: &mut ReaderPollNote, feed: FeedNo, fresh_secs: u64, now: Stamp) -> bool {
        if note.is_quiet(now) {
            return false;
        }
        let Some((state, hosts)) = self.state_and_hosts(feed, now) else {
            return false;
        };
        let at = state.look_at(fresh_secs, self.pauses.until(&hosts), now);
        note.quiet_until = at.min(Stamp::from_micros(now.micros() + QUIET_US));
        at <= now
    }
}
