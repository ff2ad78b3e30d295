//! Polls that an operator asks for and waits for; not hints, which nobody waits for.

use super::Poller;
use crate::{
    feed::{record::FeedNo, schedule::PollState, stamp::Stamp},
    ingest::polls::PollEnd,
};
use std::collections::HashMap;
use tokio::sync::oneshot;

/// Requests for polls that wait to be taken in at most.
pub(super) const REQUESTS_MAX: usize = 64;

/// Urgency of a poll that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// It ends a back-off, but not what the publisher asked for: `Retry-After`, and the day after a
    /// 410.
    Polite,
    /// It ends these, too, and no validators are sent: a publisher may answer 304 although a post
    /// was withdrawn.
    Now,
}

/// The answer to a request for a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PollAnswer {
    /// The poll has ended; the next one is due then.
    Ended {
        /// The end.
        end: PollEnd,
        /// Time of the next poll.
        next_at: Stamp,
    },
    /// The publisher asked for no poll before that time.
    NotBefore {
        /// The time.
        at: Stamp,
        /// True when the publisher said 410, that the feed is gone.
        is_gone: bool,
    },
    /// Nothing is polled, because nothing could be stored.
    StoreAway {
        /// Cause and remedy, for the operator.
        cause: String,
    },
    /// No feed of this number is polled.
    Unknown,
    /// The poller has stopped, or has as many requests as it takes.
    Busy,
}

/// A request for a poll.
pub(super) struct PollRequest {
    pub(super) feed: FeedNo,
    pub(super) urgency: Urgency,
    /// True when the operator accepts the changed URL of the feed.
    pub(super) accepts_url: bool,
    pub(super) answer: oneshot::Sender<PollAnswer>,
}

impl Poller {
    /// Polls a feed now, and tells what came of it.
    pub async fn poll(&self, feed: FeedNo, urgency: Urgency) -> PollAnswer {
        self.request(feed, urgency, false).await
    }

    /// Takes the next document of a feed whose URL was changed, whatever it shows, and polls it
    /// now; tells what came of it.
    pub async fn accept_url(&self, feed: FeedNo) -> PollAnswer {
        self.request(feed, Urgency::Now, true).await
    }

    async fn request(&self, feed: FeedNo, urgency: Urgency, accepts_url: bool) -> PollAnswer {
        let (answer, answered) = oneshot::channel();
        let request = PollRequest {
            feed,
            urgency,
            accepts_url,
            answer,
        };
        if !self.requests.put(request) {
            return PollAnswer::Busy;
        }
        answered.await.unwrap_or(PollAnswer::Busy)
    }
}

/// Polls that somebody waits for, by feed.
#[derive(Default)]
pub(super) struct AwaitedPolls {
    answers: HashMap<FeedNo, Vec<oneshot::Sender<PollAnswer>>>,
    /// Feeds whose next poll minds no pause and sends no validators, and whether that has begun.
    urgent: HashMap<FeedNo, bool>,
    /// Requests for feeds that were added just now: their poll states are being read.
    deferred: HashMap<FeedNo, Vec<PollRequest>>,
}

impl AwaitedPolls {
    // Decides: What overrides 410 and `Retry-After`?
    /// Notes that somebody waits for the poll of a feed; true when that is due now. Else it is
    /// answered at once: the feed is not polled, or its publisher asked for no poll yet. `polled`
    /// is the state of the feed, and the pause of its hosts.
    pub(super) fn take_in(
        &mut self,
        request: PollRequest,
        polled: Option<(PollState, Stamp)>,
        now: Stamp,
    ) -> bool {
        let PollRequest {
            feed,
            urgency,
            answer,
            ..
        } = request;
        let refusal = match (polled, urgency) {
            (None, _) => Some(PollAnswer::Unknown),
            (Some(_), Urgency::Now) => {
                // The poll under way may be another one.
                self.urgent.insert(feed, false);
                None
            }
            (Some((state, pause)), Urgency::Polite) => {
                // The operator may ask whether there is room by now.
                let at = if state.is_at_quota() {
                    pause
                } else {
                    state.hinted_at(None, pause, now)
                };
                let is_gone = state.health.gone_at.is_some();
                (at > now).then_some(PollAnswer::NotBefore { at, is_gone })
            }
        };
        match refusal {
            // Who has gone needs no answer.
            Some(refusal) => drop(answer.send(refusal)),
            None => self.answers.entry(feed).or_default().push(answer),
        }
        self.awaits(feed)
    }

    /// Keeps a request until the poll state of its feed is known.
    pub(super) fn defer(&mut self, request: PollRequest) {
        let of_feed = self.deferred.entry(request.feed);
        of_feed.or_default().push(request);
    }

    /// The requests that were kept for a feed.
    pub(super) fn take_deferred(&mut self, feed: FeedNo) -> Vec<PollRequest> {
        self.deferred.remove(&feed).unwrap_or_default()
    }

    /// True for a feed whose next poll minds no pause, and sends no validators.
    pub(super) fn is_urgent(&self, feed: FeedNo) -> bool {
        self.urgent.contains_key(&feed)
    }

    /// Notes that a poll of a feed begins, with the urgency that was asked for.
    pub(super) fn begin(&mut self, feed: FeedNo) {
        self.urgent
            .entry(feed)
            .and_modify(|has_begun| *has_begun = true);
    }

    /// True while somebody waits for a poll of a feed.
    pub(super) fn awaits(&self, feed: FeedNo) -> bool {
        self.answers.contains_key(&feed)
    }

    /// True while the urgent poll of a feed has not begun: another one that ends is not the answer.
    pub(super) fn awaits_urgent(&self, feed: FeedNo) -> bool {
        self.urgent.get(&feed) == Some(&false)
    }

    /// Feeds that somebody waits for.
    pub(super) fn feeds(&self) -> Vec<FeedNo> {
        let feeds = self.answers.keys().chain(self.deferred.keys());
        feeds.copied().collect()
    }

    /// Tells everybody who waits for a feed. Who has gone is passed over.
    pub(super) fn tell(&mut self, feed: FeedNo, answer: &PollAnswer) {
        self.urgent.remove(&feed);
        let deferred = self.take_deferred(feed).into_iter();
        let deferred = deferred.map(|request| request.answer);
        let answers = self.answers.remove(&feed).unwrap_or_default();
        for waiting in answers.into_iter().chain(deferred) {
            let _ = waiting.send(answer.clone());
        }
    }
}
