//! The budget of questions to addresses that do not answer as asked: so many an hour, however the address is spelt; not when a
//! question is due.
//!
//! A question is counted for the host and port of its callback, and for the IP addresses behind them. What confirms one clears
//! the count, so whoever answers meets no limit. Callbacks that were verified before have counts of their own.

use super::destination::Destination;
use reqwest::dns::{Name, Resolve};
use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

/// Questions an hour to one destination that confirms none.
const DESTINATION_QUESTIONS: usize = 12;
/// Questions an hour to one machine, all its ports together, that confirms none: many a site may live there.
const MACHINE_QUESTIONS: usize = 120;
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
    /// Questions an hour. A destination that confirmed others has more room: nobody else's wrong callbacks shut its own out.
    fn questions_max(&self, has_confirmed: bool) -> usize {
        match self {
            Self::Destination(_) | Self::Address(..) if has_confirmed => MACHINE_QUESTIONS,
            Self::Destination(_) | Self::Address(..) | Self::KnownCallback(_) => DESTINATION_QUESTIONS,
            Self::Machine(_) | Self::KnownMachine(_) => MACHINE_QUESTIONS,
        }
    }
}

/// Times of the last questions without the answer asked for, oldest first.
#[derive(Default)]
struct Unconfirmed {
    at: VecDeque<Instant>,
    cleared: Arc<Notify>,
    /// True once a question was confirmed there.
    has_confirmed: bool,
}

/// Everything that the questions to one callback are counted for.
#[derive(Clone, Debug)]
pub(super) struct Counted(Vec<BudgetKey>);

/// There is no room for a question now.
struct Blocked {
    cleared: Arc<Notify>,
    wait: Duration,
}

impl QuestionBudget {
    pub(super) fn new(resolver: Arc<dyn Resolve>) -> Self {
        Self { resolver, counts: Mutex::default() }
    }

    /// Finds out what questions to this callback are counted for. `is_known` for one that was verified before.
    pub(super) async fn counted(&self, callback: &str, is_known: bool) -> Counted {
        let destination = Destination::of(callback);
        let addresses = self.addresses(&destination.host).await;
        let port = destination.port;
        let mut keys = Vec::new();
        if is_known {
            keys.push(BudgetKey::KnownCallback(callback.to_owned()));
            keys.extend(addresses.into_iter().map(BudgetKey::KnownMachine));
        } else {
            keys.push(BudgetKey::Destination(destination));
            keys.extend(addresses.iter().map(|address| BudgetKey::Address(*address, port)));
            keys.extend(addresses.into_iter().map(BudgetKey::Machine));
        }
        Counted(keys)
    }

    async fn addresses(&self, host: &str) -> Vec<IpAddr> {
        if let Ok(address) = host.parse() {
            return vec![address];
        }
        let Ok(name) = host.parse::<Name>() else { return Vec::new() };
        match timeout(LOOK_UP, self.resolver.resolve(name)).await {
            Ok(Ok(found)) => {
                let mut addresses: Vec<IpAddr> = found.map(|found| found.ip().to_canonical()).collect();
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

    /// QuestionCounts a question for all, or for none when one of them has no room.
    fn count(&self, Counted(keys): &Counted, now: Instant) -> Result<(), Blocked> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.sweep(now);
        for key in keys {
            let Some(asked) = counts.asked.get_mut(key) else { continue };
            asked.forget_past(now);
            if asked.at.len() >= key.questions_max(asked.has_confirmed)
                && let Some(oldest) = asked.at.front()
            {
                return Err(Blocked { cleared: asked.cleared.clone(), wait: *oldest + HOUR - now });
            }
        }
        for key in keys {
            counts.asked.entry(key.clone()).or_default().at.push_back(now);
        }
        Ok(())
    }

    /// A question was confirmed: the counts begin anew, and whoever waits for room may go on.
    pub(super) fn confirmed(&self, Counted(keys): &Counted) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        for key in keys {
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
        while self.at.front().is_some_and(|at| now.duration_since(*at) >= HOUR) {
            self.at.pop_front();
        }
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
