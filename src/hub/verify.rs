//! Questions to targets, each in its place and turn, and the word that a subscription is no more; not
//! what a protocol asks, nor what follows.

use super::{
    Shared,
    callback_permits::RequestPurpose,
    deliver::{
        question::{Question, Verdict},
        way_to,
    },
};
use crate::{
    feed::stamp::Stamp,
    layers::{FetchError, error::Refused},
    store::subscriptions::Target,
};
use std::{sync::Arc, time::Duration};

/// Longest wait for room of somebody who waits for the answer, and the shortest of all others.
pub(super) const ROOM: Duration = Duration::from_secs(5);

/// A verdict, and when the question was put: a lease counts from there (HUB-13).
#[derive(Clone, Debug)]
pub(super) struct Answered {
    pub(super) verdict: Verdict,
    pub(super) sent_at: Stamp,
}

/// Puts a question. `held` is called when too many questions to its destination were not answered
/// as asked: it waits then.
pub(super) async fn ask(shared: Arc<Shared>, question: Question, held: impl Fn()) -> Answered {
    let (places, questions) = (&shared.places, &shared.questions);
    let Some(way) = way_to(&question.target, &shared) else {
        return Answered {
            verdict: Verdict::Refused("the hub serves no such target".to_owned()),
            sent_at: shared.now(),
        };
    };
    let room = if question.awaited {
        ROOM
    } else {
        question.wait_max.max(ROOM)
    };
    let entering = async {
        let url = question.target.url();
        let counted = questions
            .counted(&question.topic, url, question.is_known, question.client)
            .await;
        if shared.client.own.holds(url, &counted.addresses) {
            return Err(Verdict::Refused(FetchError::from(Refused::Own).to_string()));
        }
        questions.enter(&counted, held).await;
        let place = places
            .enter(&way.destination(), RequestPurpose::Question)
            .await;
        place
            .map(|place| (counted, place))
            .map_err(|_| Verdict::Busy)
    };
    let entered = tokio::time::timeout(room, entering)
        .await
        .unwrap_or(Err(Verdict::Busy));
    let (counted, mut place) = match entered {
        Ok(entered) => entered,
        Err(verdict) => {
            return Answered {
                verdict,
                sent_at: shared.now(),
            };
        }
    };
    let sent_at = shared.now();
    let verdict = way.ask(&question, &mut place).await;
    if matches!(verdict, Verdict::Confirmed(_)) {
        questions.confirmed(&counted);
    }
    Answered { verdict, sent_at }
}

/// The answer that a subscriber gets which asks again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Return {
    /// It may be subscribed again.
    Open,
    /// It is refused again.
    Closed,
}

/// Tells a subscriber once that its subscription is no more, for a reason that is not its own
/// (W-10), unless we stop before. Its answer means nothing.
pub(super) async fn deny(shared: &Shared, target: &Target, reason: &str, back: Return) {
    let told = async {
        if let Some(way) = way_to(target, shared)
            && let Some(request) = way.denial(reason, back == Return::Open)
            && let Ok(mut place) = shared
                .places
                .enter(&way.destination(), RequestPurpose::Push)
                .await
        {
            let _ = shared.client.send(request, &mut place).await;
        }
    };
    shared.stop.run_until_cancelled(told).await;
}

/// Warns a subscriber that its lease ends in so many seconds. True when it has heard.
pub(super) async fn warn(shared: Arc<Shared>, target: Target, left_secs: u64) -> bool {
    let way = way_to(&target, &shared);
    let Some((way, request)) = way.and_then(|way| {
        let request = way.warning(left_secs)?;
        Some((way, request))
    }) else {
        return true;
    };
    let Ok(mut place) = shared
        .places
        .enter(&way.destination(), RequestPurpose::Push)
        .await
    else {
        return false;
    };
    let answer = shared.client.send(request, &mut place).await;
    answer.is_ok_and(|answer| answer.status().is_success())
}
