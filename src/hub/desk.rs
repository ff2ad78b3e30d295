//! The operator's view of subscriptions, and what the operator does with one; not how one is made.

use super::{
    Hub,
    command::TaskCommand,
    host_of,
    index::{Key, Mailbox, Shown, Way},
};
use crate::{
    feed::{cursor::Toc, record::FeedNo},
    secret::logged_url,
    store::{
        StoreError, Subscription, SubscriptionNo, listing,
        subscriptions::{Progress, Target},
    },
};
use futures_util::TryStreamExt as _;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

/// Subscriptions that are told at once at most; the rest follows on another page.
const PAGE_MAX: usize = 1000;

/// The subscriptions that the operator wants to see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedSubscribers {
    /// Those to one feed; `None` for those to all.
    pub feed: Option<FeedNo>,
    /// Those at one host, or at one domain of XMPP.
    pub host: Option<String>,
    /// Those after this number.
    pub after: Option<u64>,
}

/// Subscriptions, in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriberPage {
    /// The subscriptions.
    pub subscribers: Vec<Subscriber>,
    /// The number after which more follow.
    pub next: Option<u64>,
}

/// A subscription, as the operator sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscriber {
    /// Its number.
    pub number: u64,
    /// The name of its feed; `None` for one that is not configured any more.
    pub feed: Option<String>,
    /// Its topic, without what may be secret.
    pub topic: String,
    /// The host of its callback, or the domain of its address: all of it that is shown.
    pub host: String,
    /// The dialect that it speaks.
    pub dialect: String,
    /// `pending`, `active` or `failing`.
    pub state: String,
    /// Seconds between the newest change and the last one that it has taken, while there is
    /// something to push; else 0, and `None` before the first verification.
    pub lag_secs: Option<u64>,
    /// The last answer to a delivery: `taken`, or why it was not.
    pub last_answer: Option<String>,
    /// Time of that answer, if it came since the start.
    pub answered_at: Option<String>,
    /// Time of the next try of what failed.
    pub next_try_at: Option<String>,
    /// End of the lease.
    pub lease_until: Option<String>,
}

impl Hub {
    /// Subscriptions as they are now.
    pub async fn subscribers(
        &self,
        wanted: &WantedSubscribers,
    ) -> Result<SubscriberPage, StoreError> {
        let mut page = SubscriberPage::default();
        let mut after = wanted.after.map(SubscriptionNo);
        loop {
            let store = &self.shared.store;
            let rows = store.subscriptions(wanted.feed, after, PAGE_MAX).await?;
            let Some((last, _)) = rows.last() else {
                return Ok(page);
            };
            after = Some(last.no);
            for (sub, progress) in &rows {
                let host = host(&sub.target);
                if wanted.host.as_ref().is_some_and(|wanted| *wanted != host) {
                    continue;
                }
                if page.subscribers.len() == PAGE_MAX {
                    page.next = page.subscribers.last().map(|last| last.number);
                    return Ok(page);
                }
                page.subscribers.push(self.subscriber(sub, progress, host));
            }
        }
    }

    fn subscriber(&self, sub: &Subscription, progress: &Progress, host: String) -> Subscriber {
        let Shown {
            failing,
            answered_at,
            is_behind,
        } = self.shared.index.shown(key_of(sub));
        let state = if sub.lease.is_none() {
            "pending"
        } else if failing.is_some() {
            "failing"
        } else {
            "active"
        };
        let lag_secs = if sub.lease.is_none() {
            None
        } else if is_behind {
            self.lag_secs(sub, progress)
        } else {
            Some(0)
        };
        let pending = sub.pending.as_ref().filter(|_| sub.lease.is_none());
        let next_try = failing.as_ref().map(|failing| failing.next_try);
        let next_try = next_try.or(pending.map(|pending| pending.next_try));
        let catalog = self.shared.gate.catalog.snapshot();
        let feed = catalog.feed_no(sub.feed());
        let taken = answered_at.map(|_| "taken".to_owned());
        Subscriber {
            number: sub.no.0,
            feed: feed.map(|feed| feed.settings.name.clone()),
            topic: logged_url(&sub.topic),
            host,
            dialect: sub.target.protocol().to_owned(),
            state: state.to_owned(),
            lag_secs,
            last_answer: failing.map(|failing| failing.why).or(taken),
            answered_at: answered_at.map(|at| at.rfc3339()),
            next_try_at: next_try.map(|at| at.rfc3339()),
            lease_until: sub.lease.map(|lease| lease.until.rfc3339()),
        }
    }

    /// Seconds between the newest change of the feed and the last one that was taken.
    fn lag_secs(&self, sub: &Subscription, progress: &Progress) -> Option<u64> {
        let head = self.notify.head(sub.feed())?;
        let acked = Toc::parse(progress.acked.as_deref()?)?;
        Some(head.last_t.secs_since(acked.t.stamp().unwrap_or_default()))
    }

    /// Tries a subscription now, whatever failed before. False when there is none of this number.
    pub async fn retry_subscription(&self, number: u64) -> Result<bool, StoreError> {
        let Some((_, mailbox)) = self.stored(number).await? else {
            return Ok(false);
        };
        Ok(commanded(&mailbox, TaskCommand::Retry).await)
    }

    /// Ends a subscription. True when its subscriber is told: it has confirmed once, and its protocol
    /// has a word for it. `None` when there is none of this number.
    pub async fn end_subscription(&self, number: u64) -> Result<Option<bool>, StoreError> {
        let stored = self.stored(number).await?;
        let Some((sub, mailbox)) = stored else {
            return Ok(None);
        };
        let has_word = sub.target.callback().is_some();
        let is_told = has_word && sub.lease.is_some();
        let end = |done| TaskCommand::End {
            is_told: true,
            done,
        };
        Ok(commanded(&mailbox, end).await.then_some(is_told))
    }

    /// Removes every subscription whose callback is at a host, and says nothing to it; tells how
    /// many there were.
    pub async fn forget_subscriber(&self, host: &str) -> Result<usize, StoreError> {
        let store = &self.shared.store;
        let mut keys = Vec::new();
        let mut stored = listing::subscriptions(&**store, None);
        while let Some((sub, _)) = stored.try_next().await? {
            if sub.target.is_of_hub() && host_of(sub.target.address()) == host {
                keys.push(key_of(&sub));
            }
        }
        let mut count = 0;
        for key in keys {
            let Some(mailbox) = self.mailbox(key) else {
                continue;
            };
            let end = |done| TaskCommand::End {
                is_told: false,
                done,
            };
            count += usize::from(commanded(&mailbox, end).await);
        }
        Ok(count)
    }

    /// A subscription, and the way to its task.
    async fn stored(&self, number: u64) -> Result<Option<(Subscription, Mailbox)>, StoreError> {
        let stored = self
            .shared
            .store
            .subscription(SubscriptionNo(number))
            .await?;
        Ok(stored.and_then(|(sub, _)| {
            let mailbox = self.mailbox(key_of(&sub))?;
            Some((sub, mailbox))
        }))
    }

    /// The way to the task of a subscription, which is called up if it rests.
    pub(super) fn mailbox(&self, key: Key) -> Option<Mailbox> {
        match self.shared.index.known_way(key)? {
            Way::Known(mailbox) => Some(mailbox),
            Way::AtRest(called_up, mailbox) => {
                self.shared.start_all(vec![called_up]);
                Some(mailbox)
            }
            Way::New(_) | Way::Full(_) => None,
        }
    }
}

/// Gives a command, and waits until it is carried out. False where the task has ended before.
pub(super) async fn commanded(
    mailbox: &Mailbox,
    command: impl FnOnce(oneshot::Sender<()>) -> TaskCommand,
) -> bool {
    let (done, is_done) = oneshot::channel();
    mailbox.send(command(done)).await.is_ok() && is_done.await.is_ok()
}

pub(super) fn key_of(sub: &Subscription) -> Key {
    Key::of(&sub.topic, sub.target.address())
}

/// The host of a callback, or the domain of an address of XMPP: all of it that is shown.
fn host(target: &Target) -> String {
    if let Target::Xmpp(xmpp) = target {
        return xmpp.domain().to_owned();
    }
    host_of(target.address())
}
