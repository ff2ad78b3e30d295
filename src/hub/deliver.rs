//! Deliveries, by the protocol of their target: one delivery in, what came of it out. When one is
//! made, and when one is tried again, is the same for all of them and decided elsewhere.

use super::{Shared, places::Place};
use crate::{
    clock::Clock as _, readers::Rendered, render::Representation, store::subscriptions::Target,
};
use std::{sync::Arc, time::Duration};

mod answer;

mod callback;

pub(super) mod cloud;

/// A page on its way to a target.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    pub(super) representation: Representation,
    /// The `Link` header of the page, the same as on our own pages (HUB-19).
    pub(super) link: String,
    /// The stored cursor that the page follows on, as it was acknowledged.
    pub(super) prev: String,
    pub(super) page: Arc<Rendered>,
}

/// The result of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Delivered {
    /// The target has taken it.
    Taken {
        /// Readers whom the target serves, as far as it says so (W-19).
        on_behalf_of: Option<u32>,
    },
    /// The target wants no more (HUB-21).
    Gone,
    /// The target has not taken it.
    Failed(NotTaken),
    /// There is no way to put it into the protocol of the target.
    Unsendable,
}

/// A delivery that its target has not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NotTaken {
    pub(super) why: String,
    /// The wait that the target asks for.
    pub(super) retry_after: Option<Duration>,
    /// True when a smaller one may be taken.
    pub(super) too_large: bool,
}

/// True where a target is sent the items; one that is not reads them itself, after one word for all
/// of them.
pub(super) fn carries_items(target: &Target) -> bool {
    matches!(target, Target::Callback(_))
}

/// Makes a delivery once, in its place. The wait for its end is bounded.
pub(super) async fn deliver(
    shared: &Shared,
    target: &Target,
    delivery: &Delivery,
    place: &mut Place,
) -> Delivered {
    let user_agent = &shared.client.user_agent;
    let request = match target {
        Target::Callback(target) => callback::request(target, delivery, user_agent),
        Target::Cloud(target) => cloud::notification(target, user_agent),
    };
    let Some(request) = request else {
        return Delivered::Unsendable;
    };
    let answer = shared.client.send(request, place).await;
    answer::judge(&answer, shared.clock.now())
}
