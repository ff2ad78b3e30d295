//! A document that a hub pushed, taken in as a part of the feed before the poll that follows on it;
//! not who pushed it. It shows presence only: what it lacks is not missing, and a deletion in it
//! only starts a check of the item's page.

use super::{Poll, Polled, document::Settled};
use crate::{
    feed::{
        absence::Coverage,
        schedule::{Answer, Failure, Repeat},
    },
    ingest::{
        DocumentFormat, Fetched,
        documents::{Import, Sliced},
        feed_spec::reference_base,
        transact::{Decision, transact},
    },
    notify::PushedDocument,
};
use std::sync::Arc;
use tracing::debug;
use url::Url;

impl Poll<'_> {
    // Decides: Which pushed document is taken in, besides being a hint to poll?
    /// Takes in a document that a hub pushed. `None` where it is not taken: the poll that follows
    /// finds what it tells of.
    pub async fn pushed(&self, document: PushedDocument) -> Option<Polled> {
        let feed = self.feed;
        // A replay of the records could not tell that it came.
        let is_plain =
            !feed.keeps_document() && feed.format == DocumentFormat::Auto && feed.record.is_none();
        let was_read = self.state.document.body.is_some() && self.state.url_change.is_none();
        if !is_plain || !was_read {
            return None;
        }
        match self.take_in_pushed(document).await {
            Ok(polled) => polled,
            Err(failure) => {
                let name = &feed.name;
                debug!(feed.name = %name, "A pushed document of `{name}` is not taken in: {failure}");
                None
            }
        }
    }

    async fn take_in_pushed(&self, document: PushedDocument) -> Result<Option<Polled>, Failure> {
        let asked = self
            .state
            .plan(self.feed.deletions.audit_secs, self.answered_at)
            .url;
        let base_url = self
            .feed
            .public_url()
            .map_or_else(|| reference_base(&asked), Url::to_string);
        let fetched = Fetched {
            answer: Answer::default(),
            body: document.body,
            content_type: document.content_type,
            content_language: None,
            headers: Box::default(),
            base_url,
            resource: None,
            address: None,
            // Hubs leave out what they have pushed, and make heads of their own.
            coverage: Coverage::Delta,
            memory: None,
        };
        let (choice, known, platforms) = (
            self.feed.platform.clone(),
            self.state.document.platform.clone(),
            self.context.platforms.clone(),
        );
        let read_at = self.answered_at;
        let sliced = self.context.compute(move || {
            let Some(mut sliced) = Sliced::new(&fetched, None, true, read_at)? else {
                return Ok(None);
            };
            // A deletion in it is no more than a reason to look (UPSTREAM U-9).
            sliced.only_hints_deletions = true;
            let mut sliced = sliced.recognised(&choice, &platforms, known.as_ref(), &fetched);
            sliced.partial = Some("its hub pushed it");
            sliced.previous = Repeat::Changed;
            Ok::<_, Failure>(Some(Arc::new(sliced)))
        });
        let Some(sliced) = sliced.await??.filter(|sliced| !sliced.says_nothing()) else {
            return Ok(None);
        };
        let (sliced, import) = (&sliced, &Import::default());
        let settled = transact(
            self.context,
            self.feed,
            "a pushed document was decided on",
            |snapshot| async move {
                if !snapshot.record.is_ready() {
                    return Ok(Decision::Nothing);
                }
                let Some(decided) = self.decide(snapshot, sliced, import).await? else {
                    return Ok(Decision::Moved);
                };
                if decided.different_feed.is_some() || decided.changes_nothing() {
                    return Ok(Decision::Nothing);
                }
                let mut state = self.state.clone();
                state.document.deferred_until = decided.deferred_until();
                let polled = Polled::resting(state);
                Ok(Settled::of(decided, polled))
            },
        );
        Ok(settled.await?.map(|settled| self.settled(settled)))
    }
}
