//! One push: the page after the acknowledged cursor, delivered once when there is room; not how it
//! is carried, and not when to try again.

use super::{
    ChainStart, Shared,
    callback_permits::{CallbackPermit, RequestPurpose},
    deliver::{Deliver, Delivered, Delivery, NotTaken, PushValidators, ResourcePush, way_to},
};
use crate::{
    auth::PrincipalId,
    feed::{cursor::Toc, page::Degraded, stamp::Stamp, view::View},
    mistakes::{Mistake, is_made},
    readers::{PushMax, ReadError, ReadRequest, Rendered},
    render::{Representation, Site},
    store::subscriptions::{Directive, Progress, PushWishes, Target, Told},
};
use std::{sync::Arc, time::Duration};

/// A push to make. It holds no items: they are read when there is room to send them, so every try
/// carries the newest state.
pub(super) struct Push {
    pub(super) view: View,
    pub(super) representation: Representation,
    /// The stored position; `None` until the feed is served.
    pub(super) stored: Option<PushPosition>,
    pub(super) max: PushMax,
    /// The address that its body calls its own, where that is not the canonical one.
    pub(super) own_url: Option<Arc<str>>,
    /// Readers whom the target serves, as it said last.
    pub(super) on_behalf_of: Option<u32>,
    /// True for a target whose word on that counts.
    pub(super) may_speak_for_many: bool,
    /// The principal for whom it is made, who is checked once more when there is room.
    pub(super) principal: Option<PrincipalId>,
    /// The site below the secret of its topic.
    pub(super) site: Option<Arc<Site>>,
    pub(super) target: Target,
    /// True for a resource that is pushed as it is.
    pub(super) is_resource: bool,
    /// The last change of the channel that its target knows of.
    pub(super) channel_t: Option<Stamp>,
    /// True where later ones are told without items, too (P03-10).
    pub(super) tells_channel: bool,
    /// True where it is due without any news.
    pub(super) is_heartbeat: bool,
}

/// The name, for the store, of what is pushed of a resource: its own bytes.
pub(super) const RESOURCE: &str = "resource";

/// The place of a subscription in its view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PushPosition {
    /// The last cursor that was pushed.
    pub(super) acked: String,
    /// The cursor after which the view is read: behind what was hidden since.
    pub(super) position: String,
}

impl PushPosition {
    pub(super) fn of(progress: &Progress) -> Option<Self> {
        Some(Self {
            acked: progress.acked.clone()?,
            position: progress.position()?.to_owned(),
        })
    }

    /// The read of the push that comes next.
    pub(super) fn reading(
        &self,
        view: View,
        representation: Representation,
        max: PushMax,
        own_url: Option<Arc<str>>,
        target: &Target,
    ) -> ReadRequest {
        ReadRequest::push(view, representation, &self.position, max, own_url)
            .following(&self.acked)
            .with_deletions(target.wishes().deletions)
            .for_old_subscriber(target.is_legacy())
    }
}

/// End of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PushOutcome {
    /// Nothing stands after the cursor, or the feed is not served yet.
    Nothing,
    /// The feed is served now; this is where the subscription starts.
    Settled(ChainStart),
    /// The position has moved.
    Advanced(Advance),
    /// The target wants no more (HUB-21).
    Gone,
    /// It did not take the push.
    Failed(NotTaken),
    /// Nobody answers at its destination, so it was not tried.
    Postponed { wait: Duration },
    /// We could not even try.
    Ours(String),
    /// We are stopping.
    Stopped,
}

/// A step forward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Advance {
    pub(super) from: String,
    pub(super) to: String,
    /// The position behind hidden items, where that is not `to`.
    pub(super) scanned: Option<String>,
    /// True while more is waiting.
    pub(super) more: bool,
    /// Readers whom the target serves, as far as it says so.
    pub(super) on_behalf_of: Option<u32>,
    /// The last change of the channel that it knows of by then.
    pub(super) channel_t: Option<Stamp>,
    /// True where the target was sent something.
    pub(super) is_delivered: bool,
}

// Decides: What is pushed, and when is it read?
/// Delivers the page after `push.stored`, when there is one.
pub(super) async fn push(shared: Arc<Shared>, push: Push) -> PushOutcome {
    match attempt(&shared, push).await {
        Ok(outcome) => outcome,
        Err(ReadError::NotReady | ReadError::UnknownFeed | ReadError::UnknownArchive) => {
            PushOutcome::Nothing
        }
        Err(busy @ ReadError::Busy) => PushOutcome::Ours(busy.to_string()),
        Err(ReadError::Store(error)) => PushOutcome::Ours(error.to_string()),
    }
}

/// Waits for a place, and pushes there.
async fn attempt(shared: &Shared, push: Push) -> Result<PushOutcome, ReadError> {
    // A feed that is not on offer any more is not pushed; its subscriptions wait, or end with their
    // leases.
    let Some(link) = shared.link(&push) else {
        return Ok(PushOutcome::Nothing);
    };
    let Some(stored) = push.stored.clone() else {
        let read = shared.gate.still_reads(push.principal, push.view.feed);
        return match read {
            Some(feed) => {
                let view = View { feed, ..push.view };
                let wishes = push.target.wishes();
                Box::pin(settle(shared, &view, push.representation, &wishes)).await
            }
            None => Ok(PushOutcome::Nothing),
        };
    };
    let Some(way) = way_to(&push.target, shared) else {
        return Ok(PushOutcome::Nothing);
    };
    let destination = way.destination();
    let entered = tokio::select! {
        biased;
        () = shared.stop.cancelled() => return Ok(PushOutcome::Stopped),
        entered = shared.places.enter(&destination, RequestPurpose::Push) => entered,
    };
    let place = match entered {
        Ok(place) => place,
        Err(closed) => {
            shared.metrics.push("postponed");
            return Ok(PushOutcome::Postponed { wait: closed.wait });
        }
    };
    // Thousands wait for a place at once, and few have one: what is needed there is made there.
    Box::pin(in_place(
        shared,
        push,
        Held {
            link,
            stored,
            way,
            place,
        },
    ))
    .await
}

/// Everything that a push has when it comes to its place.
struct Held {
    link: String,
    stored: PushPosition,
    way: Box<dyn Deliver>,
    place: CallbackPermit,
}

/// Reads what is newest, and delivers it.
async fn in_place(shared: &Shared, push: Push, held: Held) -> Result<PushOutcome, ReadError> {
    let Held {
        link,
        stored,
        way,
        mut place,
    } = held;
    let Some(feed) = shared.gate.still_reads(push.principal, push.view.feed) else {
        return Ok(PushOutcome::Nothing);
    };
    let view = View {
        feed,
        ..push.view.clone()
    };
    // Read only now: what was newest when we queued may be old by the time there is room.
    let form = push.representation;
    let own_url = push.own_url.clone();
    let reading = stored
        .reading(view, form, push.max, own_url, &push.target)
        .seen_from(push.site.clone());
    let mut page = shared.readers.read(&reading).await?;
    let is_still = !page.lies_beyond(&stored.position);
    if is_still {
        if !push.is_due_without_items(&page) {
            return Ok(PushOutcome::Nothing);
        }
        // A link of the chain that leads nowhere: what is previous is last.
        page = shared.readers.read(&reading.standing_still()).await?;
        if page.count > 0 || page.last_cursor != stored.acked {
            return Ok(PushOutcome::Nothing);
        }
    }
    let mut advance = Advance::over(&page, &push, &stored.acked);
    if is_still {
        advance = advance.staying(&stored.position);
    } else if page.count == 0 && !push.is_told_to_begin_anew(&page) {
        // Everything in it may be hidden, and yet it lies further on. Nothing is pushed.
        return Ok(PushOutcome::Advanced(advance.staying(page.goes_on_at())));
    }
    if !way.carries_items() && !is_still {
        // Read before the target hears of it: what comes later is another change.
        if let Some(head) = shared.head(reading.view()).await? {
            advance = Advance {
                to: head,
                scanned: None,
                more: false,
                ..advance
            };
        }
    }
    let mut resource = None;
    let mut directive = Directive::Patch;
    if push.is_resource && way.carries_items() {
        match resource_push(shared, &reading, &push.target).await? {
            ResourceState::Pushed(pushed, what) => {
                resource = Some(pushed);
                directive = what;
            }
            // Its subscriber has no word for a deletion.
            ResourceState::Untold if is_still => return Ok(PushOutcome::Nothing),
            ResourceState::Untold => {
                return Ok(PushOutcome::Advanced(advance.staying(page.goes_on_at())));
            }
            ResourceState::NotKept => {
                return Ok(PushOutcome::Ours("its document is not kept".to_owned()));
            }
        }
    }
    let channel_t = page.head.metadata_t;
    let has_items = page.count > 0;
    let delivery = Delivery {
        representation: form,
        link,
        prev: stored.acked,
        validators: push.validators(shared, &reading, &page, is_still),
        page,
        resource,
        directive,
    };
    let delivered = way.deliver(delivery, &mut place).await;
    shared.metrics.push(word(&delivered));
    Ok(match delivered {
        Delivered::Taken { on_behalf_of } => {
            if has_items {
                note_lag(shared, &advance.to);
            }
            PushOutcome::Advanced(Advance {
                on_behalf_of: on_behalf_of.filter(|_| push.may_speak_for_many),
                channel_t: Some(channel_t),
                is_delivered: true,
                ..advance
            })
        }
        Delivered::Gone => PushOutcome::Gone,
        Delivered::Failed(_) if is_made(Mistake::FailedPushTaken) => PushOutcome::Advanced(advance),
        Delivered::Failed(_) if is_made(Mistake::FailedPushEnds) => PushOutcome::Gone,
        Delivered::Failed(not_taken) => PushOutcome::Failed(not_taken),
        Delivered::Unsendable => PushOutcome::Ours("it cannot be put into a request".to_owned()),
    })
}

impl Push {
    /// True where the target is to hear of it although nothing stands after the cursor.
    fn is_due_without_items(&self, page: &Rendered) -> bool {
        if self.is_heartbeat {
            return true;
        }
        let Some(known) = self.channel_t else {
            return false;
        };
        self.tells_channel && known < page.head.metadata_t
    }

    /// True for a page that says that what the subscriber holds is of no use. Those that only show
    /// posts hold nothing.
    fn is_told_to_begin_anew(&self, page: &Rendered) -> bool {
        match page.degraded {
            Some(Degraded::Ahead) => true,
            Some(Degraded::Reset) => {
                matches!(self.target, Target::Callback(_)) && !is_made(Mistake::HiddenResetUntold)
            }
            Some(Degraded::Moved | Degraded::Time) | None => false,
        }
    }

    /// The validators of its page; `is_still` where it has no items.
    fn validators(
        &self,
        shared: &Shared,
        reading: &ReadRequest,
        page: &Rendered,
        is_still: bool,
    ) -> PushValidators {
        let channel_t = page.head.metadata_t;
        let mut date = Toc::parse(&page.last_cursor).and_then(|toc| toc.t.stamp());
        if is_still && self.tells_channel {
            date = date.map(|t| t.max(channel_t));
        }
        let mut validators = PushValidators {
            date,
            ..PushValidators::default()
        };
        if page.more {
            return validators;
        }
        validators.last_modified = Some(page.head.last_t.max(channel_t));
        let is_legacy_document = self.own_url.is_some() && self.representation.is_classic();
        if !is_legacy_document {
            // A document of the publisher has tags of its own.
            validators.etag = Some(shared.readers.etag(reading, page.head, ""));
        }
        validators
    }
}

impl Advance {
    /// The step over a page that follows on what was pushed last.
    fn over(page: &Rendered, push: &Push, acked: &str) -> Self {
        Self {
            from: acked.to_owned(),
            to: page.last_cursor.clone(),
            scanned: page.scanned.clone(),
            more: page.more,
            on_behalf_of: push.on_behalf_of,
            channel_t: push.channel_t,
            is_delivered: false,
        }
    }

    /// The same step where the chain stays as it is, and the view is read from `scanned` on.
    fn staying(mut self, scanned: &str) -> Self {
        self.to.clone_from(&self.from);
        self.scanned = None;
        if scanned != self.from {
            self.scanned = Some(scanned.to_owned());
        }
        self
    }
}

/// Notes the time from the last change of a push to its delivery.
fn note_lag(shared: &Shared, pushed: &str) {
    let Some(last) = Toc::parse(pushed) else {
        return;
    };
    let changed_us = last.t.stamp().unwrap_or_default().micros();
    let lag = Duration::from_micros(shared.now().micros().saturating_sub(changed_us));
    shared.metrics.push_lag(lag.as_secs_f64());
}

/// Push of a resource.
enum ResourceState {
    Pushed(ResourcePush, Directive),
    Untold,
    NotKept,
}

// Decides: How is a resource pushed, and who is told that it is gone?
/// The bytes of a resource as it is now. That it is gone is told only to who asked for directives:
/// a URL that merely takes pushes must never get a DELETE.
async fn resource_push(
    shared: &Shared,
    reading: &ReadRequest,
    target: &Target,
) -> Result<ResourceState, ReadError> {
    let feed = reading.view().feed;
    if let Some(deleted_at) = shared.readers.deleted_at(feed).await? {
        return Ok(match target.wishes().told(Directive::Delete) {
            Told::Never => ResourceState::Untold,
            Told::AsMethod | Told::AsOverride => {
                let deletion = ResourcePush {
                    deleted_at: Some(deleted_at),
                    ..ResourcePush::default()
                };
                ResourceState::Pushed(deletion, Directive::Delete)
            }
        });
    }
    let Some(document) = shared.store.document(feed).await? else {
        return Ok(ResourceState::NotKept);
    };
    let bytes = ResourcePush {
        body: document.body.into(),
        content_type: document.content_type,
        etag: document.etag,
        last_modified: document.last_modified,
        deleted_at: None,
    };
    Ok(ResourceState::Pushed(bytes, Directive::Put))
}

/// The word under which a delivery is counted.
fn word(delivered: &Delivered) -> &'static str {
    match delivered {
        Delivered::Taken { .. } => "delivered",
        Delivered::Gone => "gone",
        Delivered::Failed(_) | Delivered::Unsendable => "failed",
    }
}

/// The first position of a subscription that was made before its feed was served.
async fn settle(
    shared: &Shared,
    view: &View,
    representation: Representation,
    wishes: &PushWishes,
) -> Result<PushOutcome, ReadError> {
    let record = shared.store.feed(view.feed).await?;
    let Some(first) = record.completeness.first_cursor else {
        return Ok(PushOutcome::Nothing);
    };
    let start = shared
        .chain_start(view, representation, wishes, first)
        .await?;
    Ok(PushOutcome::Settled(start))
}
