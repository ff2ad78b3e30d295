//! Parts of feeds as a start makes them. Compiled for tests only.

use super::{CatalogSnapshot, register::with_parts};
use crate::{feed::record::FeedRecord, store::Store};
use futures_util::FutureExt as _;

/// The same snapshot with the parts of its feeds, and each with its items. The store is one in
/// memory, which answers at once.
pub(crate) fn parted(
    store: &dyn Store,
    catalog: CatalogSnapshot,
) -> (CatalogSnapshot, Vec<FeedRecord>) {
    let now = "a store in memory answers at once";
    let every_feed = catalog.feeds().map(|feed| feed.no).collect();
    let catalog = with_parts(store, catalog, &every_feed).now_or_never();
    let catalog = catalog.expect(now).unwrap();
    let mut filled = Vec::new();
    for part in catalog.parts() {
        loop {
            let step = store.advance_group(part, 2).now_or_never();
            let step = step.expect(now).unwrap();
            if step.is_settled {
                filled.push(step.feed);
                break;
            }
        }
    }
    (catalog, filled)
}
