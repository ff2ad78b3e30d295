//! Pushes, one at a time: the view is read behind the position, and what is found there is pushed;
//! not what is due.

use super::{SubscriptionTask, row::Acknowledgement};
use crate::{
    feed::{
        record::{FeedNo, Head},
        stamp::Stamp,
        view::View,
    },
    hub::{
        Config, Shared,
        deliver::NotTaken,
        index::RestKind,
        legacy_topic,
        next_step::{Offer, PushStage},
        push::{self, Advance, Push, PushOutcome, PushPosition, RESOURCE},
        remembered::Remembered,
        retry_schedule,
    },
    readers::{PushMax, ReadRequest},
    render::{PositionLocation, Representation},
    secret::logged_url,
    store::{
        Subscription,
        subscriptions::{Attempts, Target},
    },
};
use futures_util::future::{self, BoxFuture, FutureExt as _};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep_until};
use tracing::{debug, info, warn};

/// The next push of a subscription.
pub(super) struct Pushing {
    /// Looks whether there is something to push.
    pub(super) look: Option<BoxFuture<'static, Found>>,
    /// Waits until there may be something, while the task cannot end.
    pub(super) wait: Option<BoxFuture<'static, Found>>,
    /// The state at which there was nothing to push.
    nothing: Option<Nothing>,
    /// A state up to which there was nothing to push when the task began.
    seen: Option<Head>,
    /// The feed that is read: that of the subscription, or the part that its principal sees.
    read: Option<FeedNo>,
    pub(super) push: Option<BoxFuture<'static, PushOutcome>>,
    /// The last push, when it was taken and the store could not keep that: it is not sent again.
    taken: Option<Advance>,
    /// True when there is something to push.
    pub(super) is_behind: bool,
    /// The size of the next one at most; of the items fewer than `most` has while its subscriber
    /// takes no more.
    max: PushMax,
    most: PushMax,
    /// True when it is due even without items and without news of the channel.
    is_heartbeat: bool,
    /// Time of the last delivery, or of the start.
    delivered_at: Instant,
    /// Time up to which pushes of the channel alone are used up.
    channel_spent: Instant,
    /// The last change of the channel that the subscriber knows of, where the store has none.
    unstored_channel: Option<Stamp>,
}

/// News that a subscription is pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Items, or hidden ones that are to be passed.
    Items,
    /// Another title, picture or description of the feed.
    Channel,
    /// Nothing, and for so long that a heartbeat is due.
    Silence,
    /// Nothing.
    Nothing(Nothing),
    /// The feed has moved since there was nothing.
    Moved,
}

/// The state in which there is nothing to push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nothing {
    /// The head of the feed that is read; `None` for one that was never announced, or is not read.
    head: Option<Head>,
    /// Time at which there may be something all the same.
    again_at: Option<Instant>,
}

/// Time in which one push of the channel alone is made, where they are many: a channel that changes
/// with every poll is no flood.
const CHANNEL_APART: Duration = Duration::from_secs(600);
/// Such pushes that are made at once at most.
const CHANNEL_AT_ONCE: u32 = 5;

/// The reason told of a push that was not tried.
const CLOSED: &str = "its host does not answer, so it is left alone for a while";

impl Pushing {
    pub(super) fn new(config: &Config, target: &Target, remembered: &Remembered) -> Self {
        let mut most = config.push_max();
        if matches!(target, Target::Webhook(_)) {
            // A message tells one change.
            most.items = 1;
        }
        let mut max = most;
        max.items = remembered.items_max.unwrap_or(max.items);
        let now = Instant::now();
        Self {
            look: None,
            wait: None,
            nothing: None,
            seen: None,
            read: None,
            push: None,
            taken: None,
            is_behind: false,
            max,
            most,
            is_heartbeat: false,
            delivered_at: remembered.delivered_at.unwrap_or(now),
            channel_spent: remembered.channel_spent.unwrap_or(now),
            unstored_channel: remembered.channel_t,
        }
    }

    /// Goes on after a rest. `behind` is given where there is something to push, and true where that
    /// is a heartbeat; `seen` is a state up to which there is nothing.
    pub(super) fn resume(
        &mut self,
        behind: Option<bool>,
        read: Option<FeedNo>,
        seen: Option<Head>,
    ) {
        self.is_behind = behind.is_some();
        self.is_heartbeat = behind.unwrap_or_default();
        (self.read, self.seen) = (read, seen);
    }

    /// Takes what the view has come to.
    pub(super) fn found(&mut self, found: Found) {
        match found {
            Found::Nothing(nothing) => self.nothing = Some(nothing),
            Found::Moved => self.look_anew(),
            Found::Items | Found::Channel | Found::Silence => {
                self.is_behind = true;
                self.is_heartbeat = found == Found::Silence;
            }
        }
        if found == Found::Channel {
            self.channel_spent = self.channel_spent.max(Instant::now()) + CHANNEL_APART;
        }
    }

    /// The state in which the subscription may rest, and the time at which it looks again; `None`
    /// while something is under way.
    pub(super) fn rest_kind(
        &self,
        sub: &Subscription,
        offer: Offer,
    ) -> Option<(RestKind, Option<Instant>)> {
        if self.look.is_some() || self.push.is_some() || self.taken.is_some() {
            return None;
        }
        if sub.lease.is_none() || offer != Offer::Served {
            return Some((RestKind::Waiting, None));
        }
        if self.is_behind {
            return Some((RestKind::Behind(self.is_heartbeat), None));
        }
        let nothing = self.nothing?;
        let kind = match representation(sub) {
            Some(_) => RestKind::Following,
            None => RestKind::Waiting,
        };
        Some((kind, nothing.again_at))
    }

    /// The head at which there was nothing to push.
    pub(super) fn seen_head(&self) -> Option<Head> {
        self.nothing.and_then(|nothing| nothing.head)
    }

    /// Everything of it that is remembered in a rest.
    pub(super) fn remembered(&self, target: &Target) -> Remembered {
        let has_heartbeats = target.wishes().heartbeat_secs.is_some();
        let is_smaller = self.max.items != self.most.items;
        Remembered {
            items_max: is_smaller.then_some(self.max.items),
            delivered_at: has_heartbeats.then_some(self.delivered_at),
            channel_spent: Some(self.channel_spent).filter(|spent| *spent > Instant::now()),
            channel_t: self.unstored_channel,
            ..Remembered::default()
        }
    }

    /// Time from which on the channel alone may be pushed.
    fn channel_from(&self) -> Instant {
        let at_once = CHANNEL_APART * (CHANNEL_AT_ONCE - 1);
        let from = self.channel_spent.checked_sub(at_once);
        from.unwrap_or_else(Instant::now)
    }

    pub(super) fn stage(&self) -> PushStage {
        if self.push.is_some() {
            PushStage::UnderWay
        } else if self.is_behind {
            PushStage::Behind
        } else if self.look.is_some() || self.nothing.is_some() {
            PushStage::Following
        } else {
            PushStage::Unknown
        }
    }

    /// Forgets what is known of the view. A push under way goes on.
    pub(super) fn look_anew(&mut self) {
        (self.look, self.wait, self.nothing, self.seen) = (None, None, None, None);
        (self.is_behind, self.is_heartbeat) = (false, false);
    }

    /// Forgets that there was nothing to push.
    pub(super) fn look_anew_after_nothing(&mut self) {
        if self.nothing.is_some() {
            self.look_anew();
        }
    }

    /// Forgets what is known of the view, unless it is of the feed that is to be read now.
    pub(super) fn look_at(&mut self, read: Option<FeedNo>) {
        if self.read != read {
            self.look_anew();
        }
    }

    /// Forgets the push that was taken and is not kept: it is sent again.
    pub(super) fn forget_taken(&mut self) {
        self.taken = None;
    }

    /// Stops the push under way, too.
    pub(super) fn stop(&mut self) {
        self.push = None;
        self.forget_taken();
        self.look_anew();
    }
}

impl SubscriptionTask {
    /// Looks whether there is something after the position.
    pub(super) fn follow(&mut self) {
        // Who may read nothing more is told so with the next step.
        let read = self.place.shared.still_read(&self.row.sub);
        self.pushing.read = read;
        let channel_t = self.known_channel();
        let (sub, place) = (&self.row.sub, PushPosition::of(&self.row.progress));
        let Some((form, feed)) = representation(sub).zip(read) else {
            // Stored by a version that had the form; the subscription ends with its lease.
            self.pushing.nothing = Some(Nothing {
                head: None,
                again_at: None,
            });
            return;
        };
        let view = View {
            feed,
            ..sub.view.clone()
        };
        let own_url = legacy_topic(&self.place.shared.gate.catalog.snapshot(), sub);
        let (max, target) = (self.pushing.max, &sub.target);
        let after = |place: PushPosition| place.reading(view, form, max, own_url, target);
        let awaited = Awaited {
            after: place.map(after),
            seen: self.pushing.seen.take(),
            channel_t,
            channel_from: self.pushing.channel_from(),
            silence_end: self.heartbeat_at(),
        };
        let look = look(self.place.shared.clone(), feed, awaited);
        self.pushing.look = Some(look.boxed());
    }

    /// Waits for the feed to move where there is nothing to push, and the task cannot end.
    pub(super) fn wait_at_work(&mut self) {
        let pushing = &mut self.pushing;
        if let Some((feed, nothing)) = pushing.read.zip(pushing.nothing)
            && pushing.wait.is_none()
        {
            let shared = self.place.shared.clone();
            pushing.wait = Some(until_moved(shared, feed, nothing).boxed());
        }
    }

    /// Time of the next heartbeat.
    fn heartbeat_at(&self) -> Option<Instant> {
        let secs = self.row.sub.target.wishes().heartbeat_secs?;
        Some(self.pushing.delivered_at + Duration::from_secs(secs))
    }

    /// The last change of the channel that the subscriber knows of. Of what an older everfeed stored
    /// nobody knows: it is taken to know the present one.
    fn known_channel(&mut self) -> Option<Stamp> {
        let form = representation(&self.row.sub)?;
        if !is_channel_told(&self.row.sub, form) {
            return None;
        }
        if self.row.progress.channel_t.is_none() {
            self.pushing.unstored_channel = self.channel_now();
            self.row.progress.channel_t = self.pushing.unstored_channel;
        }
        self.row.progress.channel_t
    }

    /// The last change of the channel of the feed that is read.
    pub(super) fn channel_now(&self) -> Option<Stamp> {
        let shared = &self.place.shared;
        let feed = shared.still_read(&self.row.sub)?;
        let head = shared.readers.head(feed).ok()?;
        Some(head.metadata_t).filter(|_| head.ready)
    }

    /// Makes the next push, unless the last one is still to be kept.
    pub(super) async fn push_next(&mut self) {
        match self.pushing.taken.take() {
            Some(taken) => self.advance(taken).await,
            None => self.start_push(),
        }
    }

    fn start_push(&mut self) {
        let (sub, shared) = (&self.row.sub, &self.place.shared);
        let Some(representation) = representation(sub) else {
            return self.pushing.look_anew();
        };
        let push = Push {
            view: sub.view.clone(),
            representation,
            stored: PushPosition::of(&self.row.progress),
            max: self.pushing.max,
            own_url: legacy_topic(&shared.gate.catalog.snapshot(), sub),
            on_behalf_of: self.row.progress.on_behalf_of,
            may_speak_for_many: shared.config().may_speak_for_many(sub.target.url()),
            principal: sub.principal,
            site: shared.site_of(&sub.topic),
            target: sub.target.clone(),
            is_resource: sub.representation == RESOURCE,
            channel_t: self.row.progress.channel_t,
            tells_channel: is_channel_told(sub, representation),
            is_heartbeat: self.pushing.is_heartbeat,
        };
        self.pushing.push = Some(push::push(shared.clone(), push).boxed());
    }

    /// Lets the push under way come to its end, so that what was taken is not sent again after a
    /// restart. How long that may take is bounded by the client, and by whoever stops us.
    pub(super) async fn finish_push(&mut self) {
        if let Some(taken) = self.pushing.taken.take() {
            self.advance(taken).await;
        }
        if let Some(push) = self.pushing.push.take() {
            let outcome = push.await;
            self.pushed(outcome).await;
        }
    }

    pub(super) async fn pushed(&mut self, outcome: PushOutcome) {
        match outcome {
            PushOutcome::Nothing => {
                self.pushing.delivered_at = Instant::now();
                self.pushing.look_anew();
            }
            PushOutcome::Stopped => {}
            PushOutcome::Settled(start) => {
                self.row.progress.acked = Some(start.acked);
                self.row.progress.scanned = start.scanned;
                self.pushing.look_anew();
                self.row.save().await;
            }
            PushOutcome::Advanced(advance) => {
                // What is hidden is passed without a delivery.
                if advance.is_delivered {
                    self.pushing.delivered_at = Instant::now();
                    self.place.note_answer();
                }
                self.advance(advance).await;
            }
            PushOutcome::Gone => self.gone().await,
            PushOutcome::Failed(not_taken) => {
                self.place.note_answer();
                self.failed(not_taken).await;
            }
            PushOutcome::Postponed { wait } => {
                // Kept in memory only: it says nothing of this subscription.
                let shared = &self.place.shared;
                let at = retry_schedule::postponed_until(shared.now(), wait, (shared.jitter)());
                self.row.progress.attempts.next_try = at;
                self.note_failing(CLOSED.to_owned());
            }
            PushOutcome::Ours(why) => {
                warn!(
                    "A push of `{}` could not be made: {why}",
                    self.row.shown_topic()
                );
                self.row.pause();
            }
        }
    }

    async fn advance(&mut self, advance: Advance) {
        let more = advance.more;
        let failed = self.row.progress.attempts.failed;
        match self.row.advance(advance.clone()).await {
            Acknowledgement::Kept => {}
            Acknowledgement::Overtaken => return,
            Acknowledgement::Unkept => {
                // Nothing is delivered when it is kept later.
                let is_delivered = false;
                self.pushing.taken = Some(Advance {
                    is_delivered,
                    ..advance
                });
                return;
            }
        }
        self.place.note_failing(None);
        if failed > 0 {
            let (host, topic) = (self.row.host(), self.row.shown_topic());
            info!(callback.host = %host, "Pushes of `{topic}` are taken again at {host}, after {failed} that were not");
        }
        self.pushing.look_anew();
        self.pushing.is_behind = more;
        self.pushing.max = self.pushing.most;
        self.pushing.unstored_channel = None;
    }

    /// The subscription stays, whatever fails, until its lease ends (HUB-22).
    async fn failed(&mut self, not_taken: NotTaken) {
        let why = not_taken.why;
        if not_taken.too_large {
            // Fewer items are all that can help a subscriber with a small limit.
            let max = &mut self.pushing.max;
            max.items = (max.items / 2).max(1);
        }
        let (host, topic) = (self.row.host(), self.row.shown_topic());
        debug!(callback.host = %host, "A push of `{topic}` was not taken by {host}: {why}");
        let failed = self.row.progress.attempts.failed.saturating_add(1);
        let now = self.place.shared.now();
        let chance = (self.place.shared.jitter)();
        let next_try = retry_schedule::delivery_at(now, failed, not_taken.retry_after, chance);
        if failed == 1 {
            let at = next_try.rfc3339();
            warn!(callback.host = %host, "Pushes of `{topic}` are not taken at {host}: {why}; the next try is at {at}");
        }
        let since = self.row.progress.attempts.since.filter(|_| failed > 1);
        self.row
            .note_attempts(Attempts {
                failed,
                next_try,
                failure: Some(why.clone()),
                since: since.or(Some(now)),
            })
            .await;
        self.note_failing(why);
    }

    async fn gone(&mut self) {
        let host = self.row.host();
        info!(callback.host = %host, "`{}` is gone at {host}: it answered 410", self.row.shown_topic());
        // What is subscribed anew starts anew.
        (self.row.progress.acked, self.row.progress.scanned) = (None, None);
        self.retire().await;
    }
}

/// The representation that a subscription asked for.
fn representation(sub: &Subscription) -> Option<Representation> {
    let named = if sub.representation == RESOURCE {
        // By it changes are found.
        Some(Representation::ATOM)
    } else {
        Representation::named(&sub.representation)
    };
    if named.is_none() {
        warn!(
            "`{}` is not pushed: there is no representation `{}`",
            logged_url(&sub.topic),
            sub.representation
        );
    }
    named
}

/// True where a change of the channel alone is told: the form of the topic shows it.
fn is_channel_told(sub: &Subscription, form: Representation) -> bool {
    sub.representation != RESOURCE && form.position_place() == PositionLocation::Body
}

/// News for which a subscription looks.
struct Awaited {
    /// The read of its next push; `None` before there is a position.
    after: Option<ReadRequest>,
    /// A state up to which there is nothing.
    seen: Option<Head>,
    /// The last change of the channel that it knows of, where it is told of later ones.
    channel_t: Option<Stamp>,
    /// Time from which on it is told of the channel alone.
    channel_from: Instant,
    /// Time of its next heartbeat.
    silence_end: Option<Instant>,
}

// Decides: What is news for a subscription?
/// Looks whether there is something to push.
async fn look(shared: Arc<Shared>, feed: FeedNo, awaited: Awaited) -> Found {
    let head = shared.readers.head(feed).ok();
    let mut nothing = Nothing {
        head,
        again_at: None,
    };
    let Some(head) = head.filter(|head| head.ready) else {
        return Found::Nothing(nothing);
    };
    let Some(after) = awaited.after else {
        return Found::Items;
    };
    match shared.readers.look_behind(after, awaited.seen).await {
        Ok(None) => {}
        // A read that fails is tried again by the push.
        Ok(Some(_)) | Err(_) => return Found::Items,
    }
    let now = Instant::now();
    if awaited
        .channel_t
        .is_some_and(|known| head.metadata_t > known)
    {
        if awaited.channel_from <= now {
            return Found::Channel;
        }
        nothing.again_at = Some(awaited.channel_from);
    }
    if let Some(end) = awaited.silence_end {
        if end <= now {
            return Found::Silence;
        }
        nothing.again_at = Some(nothing.again_at.map_or(end, |again_at| again_at.min(end)));
    }
    Found::Nothing(nothing)
}

/// Waits until there may be something to push where there was nothing.
async fn until_moved(shared: Arc<Shared>, feed: FeedNo, nothing: Nothing) -> Found {
    let moved = async {
        let Ok(mut head) = shared.readers.watch(feed) else {
            // A feed that was never announced is looked for again with the longest wait.
            return future::pending().await;
        };
        let moved = head.wait_for(|head| Some(*head) != nothing.head);
        if moved.await.map(|_| ()).is_err() {
            future::pending::<()>().await;
        }
    };
    let again = async {
        match nothing.again_at {
            Some(at) => sleep_until(at).await,
            None => future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = moved => {}
        () = again => {}
    }
    Found::Moved
}
