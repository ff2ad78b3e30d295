//! Proof that the server has read what was written to it: a ping behind it that is answered. Until
//! then a position is kept in memory, for as long as the stream lasts; not how pushes are written.

use super::{
    element::Element,
    ns,
    reached::Reached,
    stream,
    subscribers::{Subscriber, Subscribers},
};
use crate::{
    clock::Clock,
    feed::stamp::Stamp,
    locks::lock,
    store::{Store, SubscriptionNo, subscriptions::Acknowledged},
};
use bytes::Bytes;
use jid::Jid;
use std::{
    collections::HashMap,
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use tracing::warn;

/// Seconds between two pings for a proof, at least.
const PING_SECS: u64 = 1;
/// Seconds after which the next ping is sent where the last one was not answered.
const PING_AGAIN_SECS: u64 = 60;
/// Positions that are saved in one transaction at most.
const TOGETHER_MAX: usize = 4_096;
/// The beginning of the id of a ping for a proof.
const PROOF: &str = "proof-";

/// Positions that are not proved, and the pings that prove them.
pub(super) struct Proofs {
    jid: String,
    store: Arc<dyn Store>,
    subscribers: Arc<Subscribers>,
    clock: Arc<dyn Clock>,
    unproved: Mutex<Unproved>,
    /// The ping that was answered last.
    answered: watch::Sender<u64>,
}

impl Proofs {
    pub(super) fn new(
        jid: String,
        store: Arc<dyn Store>,
        subscribers: Arc<Subscribers>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        // By chance, so that no answer to a process before this one is taken for a proof.
        let before = u64::from(rand::random::<u32>());
        Self {
            jid,
            store,
            subscribers,
            clock,
            unproved: Mutex::new(Unproved::new(before)),
            answered: watch::Sender::new(before),
        }
    }

    /// Notes a stanza of the server. A ping for a proof comes back, as its address is ours, and then
    /// its answer does; either proves what was written before it.
    pub(super) fn note(&self, stanza: &Element) {
        let id = stanza.attribute("id").and_then(|id| id.strip_prefix(PROOF));
        let Some(ping) = id.and_then(|ping| ping.parse().ok()) else {
            return;
        };
        let from = stanza.attribute("from").and_then(|jid| Jid::new(jid).ok());
        if stanza.is(ns::COMPONENT, "iq") && from.is_some() && from == Jid::new(&self.jid).ok() {
            self.answered.send_replace(ping);
        }
    }

    /// The place up to which everything was written to a subscriber; `None` until its feed is
    /// served.
    pub(super) fn written_to(&self, subscriber: &Subscriber) -> Option<Reached> {
        let unproved = lock(&self.unproved);
        let written = unproved.furthest(subscriber.no);
        written.or(subscriber.taken.as_ref()).cloned()
    }

    /// True if something was written to a subscriber that is not proved.
    pub(super) fn is_waiting(&self, no: SubscriptionNo) -> bool {
        lock(&self.unproved).furthest(no).is_some()
    }

    /// Notes that everything up to a place was written to subscribers.
    pub(super) fn note_written(&self, subscribers: &[Subscriber], reached: &Reached) {
        let mut unproved = lock(&self.unproved);
        for subscriber in subscribers {
            unproved.written.insert(subscriber.no, reached.clone());
        }
    }

    /// Notes a look at the feed of a subscriber that found nothing to write.
    pub(super) fn note_look(&self, no: SubscriptionNo, look: impl FnOnce(&mut Reached)) {
        if let Some(written) = lock(&self.unproved).furthest_mut(no) {
            return look(written);
        }
        self.subscribers.change(no, |subscriber| {
            if let Some(taken) = &mut subscriber.taken {
                look(taken);
            }
        });
    }

    /// Forgets what was written to a stream that has ended and is not proved, so that it is written
    /// again.
    pub(super) fn forget_unproved(&self) {
        lock(&self.unproved).forget();
    }

    /// The next ping, once it is due. It goes behind what was written.
    pub(super) fn next_ping(&self) -> Option<Bytes> {
        let ping = lock(&self.unproved).ask(Instant::now())?;
        let ping = stream::ping(&self.jid, &self.jid, &format!("{PROOF}{ping}"));
        Some(ping.written(ns::COMPONENT))
    }

    /// Waits until a ping is answered, or until the next is due.
    pub(super) async fn changed(&self) {
        let mut answered = self.answered.subscribe();
        let (due, asked) = {
            let unproved = lock(&self.unproved);
            (unproved.due(Instant::now()), unproved.open_ping())
        };
        let next_is_due = async {
            match due {
                Some(due) => sleep_until(due).await,
                None => pending().await,
            }
        };
        let is_answered = async {
            // The sender is ours.
            let _ = answered.wait_for(|ping| Some(*ping) == asked).await;
        };
        tokio::select! {
            () = is_answered => {}
            () = next_is_due => {}
        }
    }

    /// Keeps the positions that are proved by now. Where the store does not take one, it takes it
    /// with the next of its subscriber.
    pub(super) async fn keep_proved(&self) {
        let proved = lock(&self.unproved).prove(*self.answered.borrow());
        let now = Stamp::from_micros(self.clock.now_us());
        let numbers: Vec<_> = proved.keys().copied().collect();
        for (no, reached) in proved {
            self.subscribers.change(no, |subscriber| {
                subscriber.taken = Some(reached);
                subscriber.taken_at = Some(now);
            });
        }
        for part in numbers.chunks(TOGETHER_MAX) {
            self.save(&self.subscribers.those(part)).await;
        }
    }

    async fn save(&self, subscribers: &[Subscriber]) {
        let acknowledged = |subscriber: &Subscriber| {
            let taken = subscriber.taken.clone()?;
            Some(Acknowledged {
                subscription: subscriber.no,
                from: subscriber.saved.clone().unwrap_or_default(),
                to: taken.cursor,
                on_behalf_of: None,
                scanned: taken.looked,
                channel_t: None,
            })
        };
        let all: Vec<_> = subscribers.iter().filter_map(acknowledged).collect();
        let moved = match self.store.acknowledge(all.clone()).await {
            Ok(moved) => moved,
            Err(error) => {
                warn!("Positions over XMPP could not be saved: {error}");
                vec![false; all.len()]
            }
        };
        for (acknowledged, moved) in all.into_iter().zip(moved) {
            let no = acknowledged.subscription;
            let saved = if moved {
                Some(acknowledged.to)
            } else {
                match self.store.subscription(no).await {
                    Ok(Some((_, progress))) => progress.acked,
                    Ok(None) => {
                        self.subscribers.forget(no);
                        continue;
                    }
                    Err(_) => continue,
                }
            };
            self.subscribers
                .change(no, |subscriber| subscriber.saved = saved);
        }
    }
}

/// Positions of subscribers up to which everything was written, as long as that is not proved.
#[derive(Debug)]
struct Unproved {
    /// Those that were written since the last ping.
    written: HashMap<SubscriptionNo, Reached>,
    /// Those that were written before it, while it is not answered.
    asked: HashMap<SubscriptionNo, Reached>,
    last_ping: u64,
    last_ping_at: Option<Instant>,
}

impl Unproved {
    fn new(last_ping: u64) -> Self {
        Self {
            written: HashMap::new(),
            asked: HashMap::new(),
            last_ping,
            last_ping_at: None,
        }
    }

    fn furthest(&self, no: SubscriptionNo) -> Option<&Reached> {
        self.written.get(&no).or_else(|| self.asked.get(&no))
    }

    fn furthest_mut(&mut self, no: SubscriptionNo) -> Option<&mut Reached> {
        let written = self.written.get_mut(&no);
        written.or_else(|| self.asked.get_mut(&no))
    }

    /// The ping that is not answered.
    fn open_ping(&self) -> Option<u64> {
        (!self.asked.is_empty()).then_some(self.last_ping)
    }

    /// Time of the next ping, while anything is unproved.
    fn due(&self, now: Instant) -> Option<Instant> {
        if self.written.is_empty() && self.asked.is_empty() {
            return None;
        }
        let pause = match self.open_ping() {
            Some(_) => Duration::from_secs(PING_AGAIN_SECS),
            None => Duration::from_secs(PING_SECS),
        };
        Some(self.last_ping_at.map_or(now, |at| at + pause))
    }

    /// The next ping, once it is due: it proves everything that was written by now.
    fn ask(&mut self, now: Instant) -> Option<u64> {
        self.due(now).filter(|due| *due <= now)?;
        self.asked.extend(self.written.drain());
        self.last_ping = self.last_ping.wrapping_add(1);
        self.last_ping_at = Some(now);
        Some(self.last_ping)
    }

    // Decides: When is a push over XMPP taken?
    /// The positions that the answer to a ping proves: those that were written before it.
    fn prove(&mut self, ping: u64) -> HashMap<SubscriptionNo, Reached> {
        if self.open_ping() == Some(ping) {
            std::mem::take(&mut self.asked)
        } else {
            HashMap::new()
        }
    }

    fn forget(&mut self) {
        self.written.clear();
        self.asked.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: SubscriptionNo = SubscriptionNo(1);
    const TWO: SubscriptionNo = SubscriptionNo(2);

    fn at(cursor: &str) -> Reached {
        Reached::at(cursor.to_owned())
    }

    fn after(start: Instant, secs: u64) -> Instant {
        start + Duration::from_secs(secs)
    }

    #[test]
    fn an_answer_proves_what_was_written_before_its_ping_and_nothing_more() {
        let (mut unproved, start) = (Unproved::new(6), Instant::now());
        assert_eq!(unproved.ask(start), None);
        unproved.written.insert(ONE, at("a"));
        unproved.written.insert(TWO, at("a"));
        assert_eq!(unproved.ask(start), Some(7));
        unproved.written.insert(ONE, at("b"));
        assert_eq!(unproved.prove(6), HashMap::new());
        assert_eq!(unproved.furthest(ONE), Some(&at("b")));
        let proved = HashMap::from([(ONE, at("a")), (TWO, at("a"))]);
        assert_eq!(unproved.prove(7), proved);
        assert_eq!(unproved.prove(7), HashMap::new());
        assert_eq!(unproved.furthest(ONE), Some(&at("b")));
        assert_eq!(unproved.furthest(TWO), None);
        unproved.forget();
        assert_eq!(unproved.due(start), None);
    }

    #[test]
    fn there_is_a_ping_a_second_at_most_and_one_at_a_time_for_a_minute() {
        let (mut unproved, start) = (Unproved::new(0), Instant::now());
        unproved.written.insert(ONE, at("a"));
        assert_eq!(unproved.ask(start), Some(1));
        unproved.prove(1);
        unproved.written.insert(ONE, at("b"));
        assert_eq!(unproved.ask(start), None);
        assert_eq!(unproved.due(start), Some(after(start, 1)));
        assert_eq!(unproved.ask(after(start, 1)), Some(2));
        unproved.written.insert(TWO, at("c"));
        assert_eq!(unproved.ask(after(start, 60)), None);
        assert_eq!(unproved.ask(after(start, 61)), Some(3));
        // The answer to the one before may come late: the next proves all.
        assert_eq!(unproved.prove(2), HashMap::new());
        assert_eq!(
            unproved.prove(3),
            HashMap::from([(ONE, at("b")), (TWO, at("c"))])
        );
        // The next stream does not begin with more of them.
        unproved.written.insert(ONE, at("d"));
        unproved.forget();
        unproved.written.insert(ONE, at("d"));
        assert_eq!(unproved.ask(after(start, 61)), None);
    }
}
