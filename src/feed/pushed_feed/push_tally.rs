//! The tally of pushes against polls: a service that does not tell of news is noticed (UPSTREAM
//! U-12).

use crate::stamp::Stamp;

/// News that a poll found and no push told of, until a service is not trusted any more.
const MISSES_MAX: u32 = 3;
/// Seconds between a poll that found news and the push that tells of them: a hub fetches and sends
/// for a while, and a poll may come first.
const GRACE_SECS: u64 = 900;

/// Pushes that came, and news that none told of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushTally {
    /// Time of the last push.
    pub last_push: Option<Stamp>,
    /// Pushes since the service was last trusted anew.
    pub pushes: u32,
    /// News since then that no push told of, less those pushes that told of some.
    pub misses: u32,
    /// Time of a poll that found news of which no push has told yet.
    pub untold_since: Option<Stamp>,
}

/// The service that tells of news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushedBy<'a> {
    /// The hub with this URL, since then.
    Hub(&'a str, Stamp),
    /// The cloud with this host, since then.
    Cloud(&'a str, Stamp),
}

impl PushedBy<'_> {
    /// Since when it is to tell of news.
    pub fn since(&self) -> Stamp {
        match self {
            Self::Hub(_, since) | Self::Cloud(_, since) => *since,
        }
    }
}

impl PushTally {
    /// Takes in a push.
    pub fn pushed(&mut self, now: Stamp) {
        self.settle(now);
        self.untold_since = None;
        self.misses = self.misses.saturating_sub(1);
        self.pushes = self.pushes.saturating_add(1);
        self.last_push = Some(now);
    }

    /// Takes in that a poll found news while a service was to tell of them.
    pub(super) fn found_by_poll(&mut self, now: Stamp) {
        self.settle(now);
        let is_told = self
            .last_push
            .is_some_and(|at| at <= now && now <= at.plus_secs(GRACE_SECS));
        if !is_told {
            self.untold_since.get_or_insert(now);
        }
    }

    // Decides: Which silence of a hub counts?
    /// Counts news of which no push has told in time.
    fn settle(&mut self, now: Stamp) {
        let is_late = |since: Stamp| now > since.plus_secs(GRACE_SECS);
        if self.untold_since.is_some_and(is_late) {
            self.untold_since = None;
            self.misses = self.misses.saturating_add(1);
        }
    }

    /// A service was subscribed at anew: one that was not trusted gets another chance.
    pub(super) fn renewed(&mut self, now: Stamp) {
        self.settle(now);
        if self.misses >= MISSES_MAX {
            (self.misses, self.pushes) = (0, 0);
        }
    }

    /// The feed is another topic: what was told of the former one counts no more.
    pub(super) fn begin_anew(&mut self) {
        (self.misses, self.pushes, self.untold_since) = (0, 0, None);
    }

    /// True for a service that has told of news, and not missed too many.
    pub(super) fn is_good(&self, now: Stamp) -> bool {
        let mut settled = self.clone();
        settled.settle(now);
        settled.pushes > 0 && settled.misses < MISSES_MAX
    }

    /// True for a service that is not trusted.
    pub fn is_silent(&self, now: Stamp) -> bool {
        let mut settled = self.clone();
        settled.settle(now);
        settled.misses >= MISSES_MAX
    }
}
