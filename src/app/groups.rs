//! Groups and parts while everything runs: each group gets the members that the catalog says, and
//! items come and go in batches; not what a batch does.

use crate::{
    catalog::{Catalog, CatalogSnapshot, RegisteredFeed},
    feed::{order::Order, record::FeedNo},
    notify::Notify,
    render::{Representation, Site},
    store::{GROUP_BATCH_ITEMS, GroupStep, Store, StoreError, WantedGroup},
};
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// Time until a step is repeated after the store failed.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Gives groups their members, and parts their items.
pub struct GroupKeeper {
    /// The store of all feeds.
    pub store: Arc<dyn Store>,
    /// Wake-ups of the readers.
    pub notify: Arc<Notify>,
    /// The registered feeds.
    pub catalog: Catalog,
    /// The URLs of the members.
    pub site: Site,
}

impl GroupKeeper {
    /// Brings groups to what the catalog says, now and after each change of it, until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let mut changes = self.catalog.watch();
        loop {
            let snapshot = changes.borrow_and_update().clone();
            let wait = tokio::select! {
                biased;
                kept = self.keep(&snapshot) => kept.err(),
                () = stop.cancelled() => return,
            };
            let again = async {
                match wait {
                    Some(error) => {
                        warn!(
                            "The members of groups, or the parts of feeds, could not be changed, will try again: {error}"
                        );
                        tokio::time::sleep(AGAIN_AFTER).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                changed = changes.changed() => if changed.is_err() { return },
                () = again => {}
            }
        }
    }

    /// Brings every group to what a snapshot says.
    async fn keep(&self, snapshot: &CatalogSnapshot) -> Result<(), StoreError> {
        for part in snapshot.parts() {
            match self.fill(part).await {
                Err(StoreError::UnknownFeed(_)) => {}
                // Limit: a part with a damaged item stays as it is, and is not read before it is
                // whole.
                Err(error @ (StoreError::Damaged(_) | StoreError::DamagedItem { .. })) => {
                    warn!("A part of a feed cannot be filled: {error}");
                }
                filled => filled?,
            }
        }
        for group in snapshot.groups() {
            match self.settle(snapshot, group).await {
                // Forgotten meanwhile: the next snapshot does not have it.
                Err(StoreError::UnknownFeed(_)) => {}
                settled => settled?,
            }
        }
        Ok(())
    }

    /// Takes the items into a part that is new, or has another filter.
    async fn fill(&self, part: FeedNo) -> Result<(), StoreError> {
        let held = self.store.group(part).await?;
        if held.is_none_or(|group| group.is_settled()) {
            // Its commits have announced it.
            return Ok(());
        }
        loop {
            let step = self.store.advance_group(part, GROUP_BATCH_ITEMS).await?;
            self.announce(&step);
            if step.is_settled {
                return Ok(());
            }
        }
    }

    /// Gives a group its members, and takes their items in and out.
    async fn settle(
        &self,
        snapshot: &CatalogSnapshot,
        group: &RegisteredFeed,
    ) -> Result<(), StoreError> {
        let Some(wanted) = self.wanted(snapshot, group) else {
            return Ok(());
        };
        let name = &group.settings.name;
        let members = wanted.members.len();
        let mut step = self.store.set_group(group.no, wanted).await?;
        self.announce(&step);
        let is_moving = !step.is_settled;
        while !step.is_settled || !step.feed.is_ready() {
            step = self
                .store
                .advance_group(group.no, GROUP_BATCH_ITEMS)
                .await?;
            self.announce(&step);
        }
        if is_moving {
            let items = step.feed.items.live;
            info!(feed.name = %name, members, items, "Group `{name}` has its members; feeds: {members}, posts: {items}");
        }
        Ok(())
    }

    /// The wish for a group that a snapshot says.
    fn wanted(&self, snapshot: &CatalogSnapshot, group: &RegisteredFeed) -> Option<WantedGroup> {
        let metadata = Arc::new(group.settings.group.as_ref()?.metadata());
        let url = |name: &str| self.site.base(name, Representation::ATOM, Order::default());
        let members = snapshot
            .members(group.no)?
            .iter()
            .filter_map(|no| snapshot.feed_no(*no));
        let members = members
            .map(|member| (member.no, url(&member.settings.name)))
            .collect();
        Some(WantedGroup { metadata, members })
    }

    fn announce(&self, step: &GroupStep) {
        self.notify.moved(step.feed.no, step.feed.head());
    }
}
