//! The hints of feeds: when one leads to a poll, and when that poll is repeated without validators;
//! not during a pause of the host (`delays`).

use super::Worker;
use crate::{
    feed::{
        record::{FeedNo, Head},
        stamp::Stamp,
    },
    ingest::{
        FeedSpec,
        lane::Ended,
        polls::{PollEnd, Polled},
    },
    layers::is_near,
};
use std::{collections::BTreeSet, sync::Arc};

/// Seconds between two polls without validators that repeat polls on hints, at an origin on this
/// machine or its network.
const REPEAT_SECS: u64 = 60;

/// Hints of a feed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hint {
    /// Time from which on the one that waits may be polled for; `None` while none waits.
    pub(super) waits_until: Option<Stamp>,
    /// Time of the last poll on a hint.
    pub(super) polled_at: Option<Stamp>,
    /// The head of the feed when the poll on a hint began that is under way.
    pub(super) head: Option<Head>,
    /// Time of a poll without validators, which repeats one on a hint that was answered by 304.
    pub(super) repeat_at: Option<Stamp>,
    /// Time of the last one.
    pub(super) repeated_at: Option<Stamp>,
    /// True while one is under way.
    pub(super) is_repeating: bool,
}

impl Worker<'_> {
    /// Takes in hints of others.
    pub(super) fn hinted(&mut self, feeds: BTreeSet<FeedNo>) {
        for feed in feeds {
            let notify = &self.poller.parts.context.notify;
            if !self.feeds.contains_key(&feed) {
                notify.hint_heard(feed);
            } else if let Some(hint) = notify.hinted(feed) {
                self.poll_soon(feed, hint.not_before);
            }
        }
    }

    /// Has a feed polled for a hint, not before that time. One for a feed that is being polled
    /// counts after that: it may tell of something newer.
    pub(super) fn poll_soon(&mut self, feed: FeedNo, not_before: Stamp) {
        let hint = self.agenda.hints.entry(feed).or_default();
        hint.waits_until = Some(hint.waits_until.map_or(not_before, |at| at.min(not_before)));
        if !self.lanes.are_polling(feed) {
            self.enqueue(feed, self.now());
        }
    }

    // Decides: When is a poll on a ping repeated without validators?
    /// After a poll on a hint that was answered by 304, has the feed polled without validators:
    /// some publishers say 304 although a post was withdrawn. As often as once a minute at an
    /// origin on this machine or its network; elsewhere, since strangers can ping, once in
    /// `audit_secs`, other polls without validators included. One that was not sent, or whose
    /// document was not kept, is due again.
    pub(super) fn repeat_hinted(&mut self, feed: FeedNo, ended: &Ended<(Arc<FeedSpec>, Polled)>) {
        let Ended::Finished((spec, polled)) = ended else {
            return;
        };
        let (timetable, now) = (&polled.state.timetable, self.poller.parts.context.now());
        let is_conditional = timetable.unconditional_at != timetable.polled_at;
        let Some(hint) = self.agenda.hints.get_mut(&feed) else {
            return;
        };
        let has_repeated = std::mem::take(&mut hint.is_repeating);
        match polled.end {
            PollEnd::Postponed { wait_secs } | PollEnd::NotKept { wait_secs, .. }
                if has_repeated =>
            {
                hint.repeat_at = Some(now.plus_secs(wait_secs));
            }
            PollEnd::Unchanged if is_conditional && hint.head.is_some() => {
                let (gap_secs, last) = if is_near(&spec.url) {
                    (REPEAT_SECS, hint.repeated_at)
                } else {
                    (
                        spec.deletions.audit_secs,
                        hint.repeated_at.max(timetable.unconditional_at),
                    )
                };
                // A moment that is still to come is of a clock that went back since.
                let last = last.filter(|at| *at <= now);
                hint.repeat_at = Some(last.map_or(Stamp::ZERO, |at| at.plus_secs(gap_secs)));
            }
            _ => {}
        }
    }
}
