//! What the operator sees of a subscription and does with one; not how it is pushed to.

use super::{Component, notice, subscribers::Subscriber};
use crate::{
    feed::cursor::Toc,
    store::{StoreError, SubscriptionNo},
    xmpp::{EndedSubscription, SubscriptionState},
};

impl Component {
    /// State of a subscription; `None` when there is none of this number.
    pub fn subscription(&self, number: u64) -> Option<SubscriptionState> {
        let subscriber = self.subscriber(number)?;
        let fault = (!self.state().is_online).then(|| NO_STREAM.to_owned());
        let bounced = subscriber.bounced.as_ref();
        let bounced = bounced.map(|(failure, _)| format!("it came back: {}", failure.condition));
        let is_failing = fault.is_some() || bounced.is_some();
        let is_unproved = self.pusher.proofs.is_waiting(subscriber.no);
        let unproved = is_unproved.then(|| UNPROVED.to_owned());
        let taken = subscriber.taken_at.map(|_| "taken".to_owned());
        let bounced_at = subscriber.bounced.as_ref().map(|(_, at)| *at);
        Some(SubscriptionState {
            is_failing,
            lag_secs: self.lag_secs(&subscriber),
            last_answer: fault.or(bounced).or(unproved).or(taken),
            answered_at: bounced_at.or(subscriber.taken_at),
        })
    }

    /// Seconds between the newest change of what is read for a subscriber and the last one that was
    /// looked at for it, and is taken.
    fn lag_secs(&self, subscriber: &Subscriber) -> Option<u64> {
        let head = self.pusher.head_for(subscriber)?;
        let taken = subscriber.taken.as_ref()?;
        let of_cursor = || Toc::parse(&taken.cursor)?.t.stamp();
        let through = taken.through.or_else(of_cursor)?;
        Some(head.last_t.secs_since(through))
    }

    /// Forgets what came back from an address, asks it if it is there, and pushes what is due to it.
    /// False when there is none of this number.
    pub fn retry(&self, number: u64) -> bool {
        self.supervisor.subscribers.retry(SubscriptionNo(number))
    }

    /// Ends a subscription, and tells its subscriber while there is a stream. `None` when there is
    /// none of this number.
    pub async fn end(&self, number: u64) -> Result<Option<EndedSubscription>, StoreError> {
        let Some(subscriber) = self.subscriber(number) else {
            return Ok(None);
        };
        self.supervisor.subscribers.end(subscriber.no).await?;
        Ok(Some(
            match self.pusher.tell(&subscriber, notice::ended).await {
                Ok(()) => EndedSubscription::Told,
                Err(_) => EndedSubscription::Untold,
            },
        ))
    }

    /// Removes every subscription of addresses at a domain, and says nothing to them; tells how many
    /// there were.
    pub async fn forget(&self, domain: &str) -> Result<usize, StoreError> {
        let subscribers = &self.supervisor.subscribers;
        let of_domain = subscribers.of_domain(domain);
        for no in &of_domain {
            subscribers.end(*no).await?;
        }
        Ok(of_domain.len())
    }

    fn subscriber(&self, number: u64) -> Option<Subscriber> {
        let those = self.supervisor.subscribers.those(&[SubscriptionNo(number)]);
        those.into_iter().next()
    }
}

const NO_STREAM: &str = "there is no stream to the server of XMPP";
const UNPROVED: &str = "written, not answered yet";
