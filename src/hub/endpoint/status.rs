//! The state of a subscription (`hub.mode=status`), told to whoever proves to be its subscriber; not
//! to anybody else, who learns nothing of which subscriptions there are.

use super::{Hub, HubAnswer, HubSender, TopicAsk, slow_down};
use crate::{
    feed::view::Deletions,
    hub::form::{Mode, RefusedForm, StatusRequest},
    readers::usual_deletions,
    render::Representation,
    store::{
        Subscription,
        subscriptions::{CallbackTarget, Directive, Progress, Told},
    },
};
use http::StatusCode;
use serde_json::json;
use sha2::{Digest as _, Sha256};

impl Hub {
    pub(super) async fn status(
        &self,
        asked: &StatusRequest,
        sender: &HubSender,
    ) -> Result<HubAnswer, HubAnswer> {
        // Guesses cost as much as requests to subscribe.
        self.admission
            .subscribe(sender.net, 1)
            .map_err(|full| slow_down(full.wait))?;
        let ask = TopicAsk {
            spelt: &asked.topic,
            mode: Mode::Unsubscribe,
            format: asked.format.as_deref(),
            accept: sender.accept.as_deref(),
        };
        let subject = self.subject(ask, sender).await?;
        let found = self
            .shared
            .find_subscription(subject.view.feed, &subject.topic, &asked.callback)
            .await?;
        let found = match found {
            Some(found) => Some(found),
            None => {
                let translated = self.shared.find_translated(&subject, &asked.callback);
                translated.await?
            }
        };
        let proven = found.filter(|(sub, _)| {
            let callback = sub.target.callback();
            callback.is_some_and(|callback| is_proof(asked.proof.reveal(), callback))
        });
        let (sub, progress) = proven.ok_or(RefusedForm::Unproven)?;
        Ok(HubAnswer {
            media_type: "application/json; charset=utf-8",
            ..HubAnswer::new(StatusCode::OK, told(&sub, &progress))
        })
    }
}

// Decides: Who is told the state of a subscription?
/// True for the secret of a subscription; for its token where it has no secret. One without either
/// is told to nobody.
fn is_proof(given: &str, callback: &CallbackTarget) -> bool {
    let token = callback.verify_token.as_deref();
    let known = callback.secret.as_ref().map(|secret| secret.reveal());
    let Some(known) = known.or(token).filter(|known| !known.is_empty()) else {
        return false;
    };
    // Digests differ at places that say nothing of how much was guessed right.
    Sha256::digest(given) == Sha256::digest(known)
}

fn told(sub: &Subscription, progress: &Progress) -> String {
    let attempts = &progress.attempts;
    let failing = (attempts.failed > 0).then(|| {
        json!({
            "failures": attempts.failed,
            "reason": attempts.failure,
            "since": attempts.since.map(|at| at.rfc3339()),
            "next_try": attempts.next_try.rfc3339(),
        })
    });
    let usual = Representation::named(&sub.representation).map(usual_deletions);
    let wishes = sub.target.wishes();
    let deletions = wishes.deletions.or(usual);
    let told = |way| -> Vec<_> {
        let all = Directive::ALL.into_iter();
        let told = all.filter(|directive| wishes.told(*directive) == way);
        told.map(Directive::method).collect()
    };
    let state = json!({
        "topic": sub.topic,
        "state": if sub.lease.is_some() { "subscribed" } else { "pending" },
        "is_request_pending": sub.pending.is_some(),
        "format": sub.representation,
        "deletions": deletions.map(|wish| match wish {
            Deletions::Announce => "announce",
            Deletions::Omit => "omit",
        }),
        "lease_until": sub.lease.map(|lease| lease.until.rfc3339()),
        "lease_seconds": sub.lease.map(|lease| lease.terms.secs),
        "heartbeat_seconds": wishes.heartbeat_secs,
        "warning_seconds": wishes.warning_secs,
        "methods": told(Told::AsMethod),
        "overrides": told(Told::AsOverride),
        "last_cursor": progress.acked,
        "failing": failing,
    });
    format!("{state:#}")
}
