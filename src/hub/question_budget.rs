//! The budget of questions to addresses that do not answer as asked: so many an hour, however the
//! address is spelt; not when a question is due. How fast they follow one another, confirmed or
//! not, is in [`question_pace`](super::question_pace).
//!
//! A question is counted for the host and port of its callback, and for the IP addresses behind
//! them. What confirms one clears the count. Callbacks that were verified before have counts of
//! their own. One client has a part of each count, and a client that has none of a count yet is not
//! shut out by the others where subscribers are known to be.

use super::{
    admission::ClientNet,
    question_pace::{PaceKey, QuestionPace, pace_keys},
};
use crate::catalog::Destination;
use crate::locks::lock;
use reqwest::dns::{Name, Resolve};
use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

/// Questions an hour to one destination that confirms none.
const DESTINATION_QUESTIONS: usize = 12;
/// Questions an hour to one machine, all its ports together, that confirms none: many a site may
/// live there.
const MACHINE_QUESTIONS: usize = 120;
/// Part of the questions to one destination or machine that one client may cause: one divided by
/// this.
const CLIENT_SHARE: usize = 2;
/// Questions an hour to a destination or machine that confirmed others, in multiples of its usual
/// ones, when each of those beyond is the first of its client: many clients that lie in wait shut
/// out nobody with fewer addresses than that.
const NEWCOMERS_FACTOR: usize = 10;
/// The time in which they are counted.
const HOUR: Duration = Duration::from_secs(3600);
/// The longest look-up of a name. Without its addresses, a host is counted by its name alone.
const LOOK_UP: Duration = Duration::from_secs(2);
/// Addresses of one name that are counted at most.
const ADDRESSES_MAX: usize = 4;
/// The longest wait before room is looked for again, in case nothing wakes who waits.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// Counts that are kept at least before those of the past are swept.
const SWEEP_MIN: usize = 4096;

/// Budget of questions without the answer asked for.
pub(super) struct QuestionBudget {
    resolver: Arc<dyn Resolve>,
    counts: Mutex<QuestionCounts>,
}

#[derive(Default)]
struct QuestionCounts {
    asked: HashMap<BudgetKey, Unconfirmed>,
    pace: QuestionPace,
    sweep_at: usize,
}

/// Anything that questions are counted for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum BudgetKey {
    Destination(Destination),
    Address(IpAddr, u16),
    Machine(IpAddr),
    KnownCallback(String),
    KnownMachine(IpAddr),
}

impl BudgetKey {
    /// Questions an hour. A destination that confirmed others has more room: nobody else's wrong
    /// callbacks shut its own out.
    fn questions_max(&self, has_confirmed: bool) -> usize {
        match self {
            Self::Destination(_) | Self::Address(..) if has_confirmed => MACHINE_QUESTIONS,
            Self::Destination(_) | Self::Address(..) | Self::KnownCallback(_) => {
                DESTINATION_QUESTIONS
            }
            Self::Machine(_) | Self::KnownMachine(_) => MACHINE_QUESTIONS,
        }
    }

    /// Questions an hour that one client may cause. For a callback that is known only its own
    /// client asks.
    fn of_client_max(&self, questions_max: usize) -> usize {
        match self {
            Self::KnownCallback(_) | Self::KnownMachine(_) => questions_max,
            Self::Destination(_) | Self::Address(..) | Self::Machine(_) => {
                questions_max / CLIENT_SHARE
            }
        }
    }
}

/// The last questions without the answer asked for, oldest first: their times, and the clients that
/// caused them.
#[derive(Default)]
struct Unconfirmed {
    at: VecDeque<(Instant, ClientNet)>,
    cleared: Arc<Notify>,
    /// True once a question was confirmed there.
    has_confirmed: bool,
}

/// Everything that the questions to one callback are counted for, and the client that causes them.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    keys: Vec<BudgetKey>,
    paced: Vec<PaceKey>,
    client: ClientNet,
    /// Addresses behind the host of the callback, as far as they are known.
    pub(super) addresses: Vec<IpAddr>,
}

/// There is no room for a question now.
struct Blocked {
    cleared: Arc<Notify>,
    wait: Duration,
}

impl QuestionBudget {
    pub(super) fn new(resolver: Arc<dyn Resolve>) -> Self {
        Self {
            resolver,
            counts: Mutex::default(),
        }
    }

    /// Finds out what a question about a topic to this callback is counted for, which this client
    /// causes. `is_known` for one that was verified before.
    pub(super) async fn counted(
        &self,
        topic: &str,
        callback: &str,
        is_known: bool,
        client: ClientNet,
    ) -> Counted {
        let destination = Destination::of(callback);
        let addresses = self.addresses(&destination.host).await;
        let port = destination.port;
        let paced = pace_keys(topic, callback, &addresses);
        let mut keys = Vec::new();
        if is_known {
            keys.push(BudgetKey::KnownCallback(callback.to_owned()));
            keys.extend(addresses.iter().copied().map(BudgetKey::KnownMachine));
        } else {
            keys.push(BudgetKey::Destination(destination));
            for address in &addresses {
                keys.push(BudgetKey::Address(*address, port));
            }
            keys.extend(addresses.iter().copied().map(BudgetKey::Machine));
        }
        Counted {
            keys,
            paced,
            client,
            addresses,
        }
    }

    async fn addresses(&self, host: &str) -> Vec<IpAddr> {
        if let Ok(address) = host.parse() {
            return vec![address];
        }
        let Ok(name) = host.parse::<Name>() else {
            return Vec::new();
        };
        match timeout(LOOK_UP, self.resolver.resolve(name)).await {
            Ok(Ok(found)) => {
                let mut addresses: Vec<IpAddr> =
                    found.map(|found| found.ip().to_canonical()).collect();
                addresses.sort_unstable();
                addresses.dedup();
                addresses.truncate(ADDRESSES_MAX);
                addresses
            }
            _ => Vec::new(),
        }
    }

    /// Waits for room and counts a question. `held` is called when there is none at once.
    pub(super) async fn enter(&self, counted: &Counted, held: impl Fn()) {
        while let Err(Blocked { cleared, wait }) = self.count(counted, Instant::now()) {
            held();
            let _ = timeout(wait.min(LOOK_AGAIN), cleared.notified()).await;
        }
    }

    /// Counts a question for all, or for none when one of them has no room.
    fn count(&self, counted: &Counted, now: Instant) -> Result<(), Blocked> {
        let (keys, paced, client) = (&counted.keys, &counted.paced, counted.client);
        let mut counts = lock(&self.counts);
        counts.sweep(now);
        for key in keys {
            let Some(asked) = counts.asked.get_mut(key) else {
                continue;
            };
            asked.forget_past(now);
            if let Some(since) = asked.full_since(key, client) {
                return Err(Blocked {
                    cleared: asked.cleared.clone(),
                    wait: since + HOUR - now,
                });
            }
        }
        if let Some(wait) = counts.pace.wait(paced, now) {
            return Err(Blocked {
                cleared: Arc::default(),
                wait,
            });
        }
        for key in keys {
            let asked = counts.asked.entry(key.clone()).or_default();
            asked.at.push_back((now, client));
        }
        counts.pace.count(paced, now);
        Ok(())
    }

    /// A question was confirmed: the counts begin anew, and whoever waits for room may go on.
    pub(super) fn confirmed(&self, counted: &Counted) {
        let mut counts = lock(&self.counts);
        for key in &counted.keys {
            if let Some(asked) = counts.asked.get_mut(key) {
                asked.at.clear();
                asked.has_confirmed = true;
                asked.cleared.notify_waiters();
            }
        }
    }
}

impl Unconfirmed {
    fn forget_past(&mut self, now: Instant) {
        while let Some((at, _)) = self.at.front()
            && now.duration_since(*at) >= HOUR
        {
            self.at.pop_front();
        }
    }

    // Decides: How many questions may go unconfirmed?
    /// The times of the questions that a client caused, oldest first.
    fn of_client(&self, client: ClientNet) -> impl Iterator<Item = Instant> {
        self.at
            .iter()
            .filter(move |(_, other)| *other == client)
            .map(|(at, _)| *at)
    }

    /// The time of the question that has to be an hour old before this client may cause another;
    /// `None` when it may now.
    fn full_since(&self, key: &BudgetKey, client: ClientNet) -> Option<Instant> {
        let most = key.questions_max(self.has_confirmed);
        let of_client: Vec<Instant> = self.of_client(client).collect();
        if of_client.len() >= key.of_client_max(most) {
            return of_client.first().copied();
        }
        let is_newcomer = self.has_confirmed && of_client.is_empty();
        let of_all_max = if is_newcomer {
            most * NEWCOMERS_FACTOR
        } else {
            most
        };
        if self.at.len() < of_all_max {
            return None;
        }
        self.at.front().map(|(at, _)| *at)
    }
}

impl QuestionCounts {
    /// Forgets what is over, at a cost in proportion to what came since.
    fn sweep(&mut self, now: Instant) {
        if self.asked.len() >= self.sweep_at.max(SWEEP_MIN) {
            self.asked.retain(|_, asked| {
                asked.forget_past(now);
                !asked.at.is_empty()
            });
            self.sweep_at = self.asked.len() * 2;
        }
    }
}
