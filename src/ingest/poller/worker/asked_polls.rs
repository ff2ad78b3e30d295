//! Polls and looks that others ask for, operators and readers; not their answers (`requests`).

use super::Worker;
use crate::{
    feed::schedule::PollState,
    ingest::{
        poller::{
            reader_polls::WantedPoll,
            requests::{PollAnswer, PollRequest},
        },
        polls::PollSaving,
    },
};
use tokio::sync::mpsc;

/// The ways by which others ask for polls.
pub(super) struct AskedPolls {
    /// Operators.
    pub(super) requests: mpsc::Receiver<PollRequest>,
    /// Readers of old addresses.
    pub(super) looks: mpsc::Receiver<WantedPoll>,
}

impl AskedPolls {
    /// Requests that nobody makes.
    pub(super) fn of_nobody() -> Self {
        Self {
            requests: mpsc::channel(1).1,
            looks: mpsc::channel(1).1,
        }
    }
}

impl Worker<'_> {
    /// Takes in a request for a poll. One for a feed that is being polled is answered by that poll.
    pub(super) fn requested(&mut self, request: PollRequest) {
        // Whoever added a feed may ask for its poll at once.
        self.take_over_changes();
        let (feed, now) = (request.feed, self.now());
        if self.feeds.contains_key(&feed) && self.poller.status(feed).is_none() {
            return self.agenda.awaited.defer(request);
        }
        if request.accepts_url
            && let Some(state) = self.poller.status(feed).and_then(PollState::consented)
        {
            self.saving.note(feed, &state, PollSaving::AtOnce);
            self.poller.remember(feed, &state);
        }
        let polled = self
            .subject(feed, now)
            .map(|(_, state, hosts)| (state, self.pauses.until(&hosts)));
        if self.agenda.awaited.take_in(request, polled, now) && !self.lanes.are_polling(feed) {
            self.lanes.polls.put(feed, now);
        }
    }

    /// Takes in a look. One at a feed that is being polled ends with that poll.
    pub(super) fn look_wanted(&mut self, look: WantedPoll) {
        self.take_over_changes();
        let feed = look.feed;
        if self.feeds.contains_key(&feed) {
            self.agenda.looks.insert(feed, look);
            self.lanes.looks.put(feed, self.now());
        }
    }

    /// Answers every request for a poll whose poll is not under way.
    pub(super) fn turn_away(&mut self, answer: &PollAnswer) {
        for feed in self.agenda.awaited.feeds() {
            if !self.lanes.are_polling(feed) {
                self.agenda.awaited.tell(feed, answer);
            }
        }
    }
}
