//! The operator's word that a changed URL is that of the same feed; not the question, which a poll
//! asks.

use super::{observed, open, requested_poll};
use crate::{
    catalog::{Catalog, CatalogSnapshot},
    clock::{self, Clock},
    config::Config,
    feed::{record::FeedNo, stamp::Stamp},
    ingest::{FeedSpec, Poller},
    serve::admin::OperatorAnswer,
};
use std::sync::Arc;

/// Accepts the changed URL of a feed of this process, polls it, and tells what came of it.
pub(super) async fn accept(catalog: &Catalog, poller: &Poller, name: &str) -> OperatorAnswer {
    let snapshot = catalog.snapshot();
    let feed = match polled_feed(&snapshot, name) {
        Ok(feed) => feed,
        Err(why) => return OperatorAnswer::Unknown(why),
    };
    if poller
        .status(feed)
        .is_none_or(|state| state.url_change.is_none())
    {
        return OperatorAnswer::NotNow(nothing_to_accept(name));
    }
    requested_poll::told_of(name, poller.accept_url(feed)).await
}

/// Accepts the changed URL of a feed in a store that nobody serves: its next document is taken.
pub async fn accept_url(config: &Config, name: &str) -> anyhow::Result<()> {
    let path = &config.store.path;
    anyhow::ensure!(path.exists(), "there is no store at {}", path.display());
    let clock: Arc<dyn Clock> = Arc::new(clock::System);
    let store = open(config, clock.clone()).await?;
    let accepted = async {
        let catalog = observed(&*store, config).await?;
        let feed = polled_feed(&catalog, name).map_err(anyhow::Error::msg)?;
        let spec = catalog.feed_no(feed).map(|feed| FeedSpec::from(&**feed));
        let now = Stamp::from_micros(clock.now_us());
        let saved = store.poll(feed).await?;
        let state = spec.zip(saved).and_then(|(spec, state)| {
            state
                .resumed(spec.bare_url().as_str(), &spec.policy, now)
                .consented()
        });
        let mut state = state.ok_or_else(|| anyhow::Error::msg(nothing_to_accept(name)))?;
        state.timetable.next_at = now;
        store.save_polls(vec![(feed, state)], Vec::new()).await?;
        Ok::<_, anyhow::Error>(())
    };
    let accepted = accepted.await;
    store.close().await?;
    accepted
}

/// The number of a configured feed that is polled; else why there is none.
fn polled_feed(catalog: &CatalogSnapshot, name: &str) -> Result<FeedNo, String> {
    let feed = catalog
        .feed(name)
        .ok_or_else(|| format!("no feed `{name}` is configured"))?;
    if feed.is_group() {
        return Err(format!("`{name}` is a group, and has no url"));
    }
    Ok(feed.no)
}

fn nothing_to_accept(name: &str) -> String {
    format!(
        "{name}: there is nothing to accept: its url has not changed, or a document of it is taken already"
    )
}
