//! The operator's word that a changed URL is that of the same feed; not the question, which a poll
//! asks.

use super::{explain, observed, open_existing, requested_poll};
use crate::{
    catalog::{Catalog, CatalogSnapshot, RegisteredFeed},
    config::Config,
    feed::schedule::PollState,
    ingest::{FeedSpec, Poller},
    serve::admin::OperatorAnswer,
    store::Store,
};

/// Accepts the changed URL of a feed of this process, polls it, and tells what came of it.
pub(super) async fn accept(catalog: &Catalog, poller: &Poller, name: &str) -> OperatorAnswer {
    let snapshot = catalog.snapshot();
    let feed = match polled_feed(&snapshot, name) {
        Ok(feed) => feed.no,
        Err(why) => return OperatorAnswer::Unknown(why),
    };
    let state = poller.status(feed);
    let asked_about = state.as_ref().and_then(PollState::asked_about);
    if asked_about.is_none() {
        return OperatorAnswer::NotNow(nothing_to_accept(name, state.as_ref()));
    }
    match requested_poll::told_of(name, poller.accept_url(feed)).await {
        OperatorAnswer::UpstreamFailed(why) => OperatorAnswer::UpstreamFailed(format!(
            "{why}\nthe url of `{name}` is not accepted: the document that was asked about did not come; \
             accept it when `everfeed status` asks again"
        )),
        OperatorAnswer::Away(why) => OperatorAnswer::Away(format!(
            "{why}\nthe acceptance holds for the next poll of `{name}`, and ends with it"
        )),
        told => told,
    }
}

/// Accepts the changed URL of a feed in a store that nobody serves, for its next poll.
pub async fn accept_url(config: &Config, name: &str) -> anyhow::Result<()> {
    let store = open_existing(config).await?;
    let accepted = accept_in(&*store, config, name).await;
    store.close().await?;
    accepted
}

async fn accept_in(store: &dyn Store, config: &Config, name: &str) -> anyhow::Result<()> {
    let catalog = observed(store, config).await?;
    let feed = polled_feed(&catalog, name).map_err(anyhow::Error::msg)?;
    let (spec, now) = (FeedSpec::from(feed), explain::now());
    let saved = store.poll(feed.no).await?;
    let state = saved.map(|state| state.resumed(spec.bare_url().as_str(), &spec.policy(), now));
    let nothing = nothing_to_accept(name, state.as_ref());
    let accepted = state.and_then(PollState::consented);
    let mut state = accepted.ok_or_else(|| anyhow::Error::msg(nothing))?;
    state.timetable.next_at = now;
    store.save_polls(vec![(feed.no, state)], Vec::new()).await?;
    Ok(())
}

/// A configured feed that is polled; else why there is none.
fn polled_feed<'a>(catalog: &'a CatalogSnapshot, name: &str) -> Result<&'a RegisteredFeed, String> {
    let feed = catalog
        .feed(name)
        .ok_or_else(|| format!("no feed `{name}` is configured"))?;
    if feed.is_group() {
        return Err(format!("`{name}` is a group, and has no url"));
    }
    Ok(feed)
}

/// Tells that no document waits to be accepted, and why.
fn nothing_to_accept(name: &str, state: Option<&PollState>) -> String {
    if state.is_some_and(|state| state.url_change.is_some()) {
        return format!(
            "{name}: there is nothing to accept yet: its url has changed, and the last poll has read no document \
             there; accept it when `everfeed status` asks"
        );
    }
    format!(
        "{name}: there is nothing to accept: its url has not changed, or a document of it is taken already"
    )
}
