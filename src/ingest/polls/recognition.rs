//! Is the document of a changed URL one of the same feed? Asked before anything of it is stored;
//! not of a URL that stays, and not which items its entries are.

use super::Poll;
use crate::{
    feed::{
        reconcile::{KinshipSigns, WindowState, keys_needed, observe},
        record::FeedRecord,
        schedule::{AskedAddress, Failure, FaultKind, UrlChange},
    },
    ingest::documents::Sliced,
    secret::masked_with_query,
};
use std::sync::Arc;

impl Poll<'_> {
    /// Refuses the first document of a changed URL while it shares nothing with what is held and
    /// the operator has not accepted it. Where nothing is held there is nothing to mix up.
    pub(super) async fn recognise(
        &self,
        sliced: &Arc<Sliced>,
        address: AskedAddress,
    ) -> Result<(), Failure> {
        if address == AskedAddress::Announced {
            return self.recognise_announced(sliced).await;
        }
        let Some(change) = &self.state.url_change else {
            return Ok(());
        };
        let title = title_of(sliced);
        // What the operator saw is accepted, not what came in its place since.
        if self.state.has_consent() && self.state.asked_about() == Some(&title) {
            return Ok(());
        }
        let record = self.context.store.feed(self.feed.no).await?;
        if record.items.total == 0 || self.is_akin(&record, sliced).await? {
            return Ok(());
        }
        Err(Failure::of(self.unrecognised(change, title)))
    }

    /// Refuses the first document at an address that documents announce, if it shares nothing with what
    /// is held.
    async fn recognise_announced(&self, sliced: &Arc<Sliced>) -> Result<(), Failure> {
        let announced = self.state.health.announced.as_ref();
        if announced.is_some_and(|announced| announced.is_taken) {
            return Ok(());
        }
        let record = self.context.store.feed(self.feed.no).await?;
        if record.items.total == 0 || self.is_akin(&record, sliced).await? {
            return Ok(());
        }
        Err(Failure::of(FaultKind::DifferentFeed {
            title: title_of(sliced),
        }))
    }

    /// True when a document shares a key, a link, or a title and a date with an item that is held.
    async fn is_akin(&self, record: &FeedRecord, sliced: &Arc<Sliced>) -> Result<bool, Failure> {
        let (store, document) = (&self.context.store, Arc::clone(sliced));
        let namespace = record.ids.namespace.clone();
        let (keys, signs) = self
            .context
            .compute(move || {
                let nothing = WindowState::default();
                let seen = observe(
                    &nothing,
                    &document.window,
                    document.profile.clone(),
                    document.coverage,
                );
                (
                    keys_needed(&namespace, &nothing, &seen),
                    KinshipSigns::of(&seen),
                )
            })
            .await?;
        if !store.ids(record.no, keys).await?.is_empty() {
            return Ok(true);
        }
        let found = store.witnessed(record.no, signs.keys()).await?;
        Ok(signs.are_shared_by(&found.items))
    }

    fn unrecognised(&self, change: &UrlChange, title: String) -> FaultKind {
        FaultKind::Unrecognised {
            feed: self.feed.name.clone(),
            from: masked_with_query(&change.from),
            to: masked_with_query(self.feed.bare_url().as_str()),
            title,
        }
    }
}

/// The title of a document; empty where it has none.
fn title_of(sliced: &Sliced) -> String {
    let title = sliced.window.metadata.title.as_ref();
    title.map(|title| title.value.clone()).unwrap_or_default()
}
