//! One document, fetched as polling would fetch it: the same client stack, one unconditional GET.
//! Nothing is stored, and what the document says is not looked at.

use crate::{
    clock::{self, Clock},
    feed::{
        record::FeedNo,
        schedule::{Failure, FaultKind, Plan, PollState},
        stamp::Stamp,
    },
    ingest::{self, FeedSpec, Fetched, LegacyAddress, Upstream, upstream::DocumentReply},
    layers::{self, Governor},
};
use std::sync::Arc;
use url::Url;

pub use super::site_feeds::USUAL_PATHS;
pub use crate::ingest::{DocumentFormat, platform::Choice};
pub use crate::layers::is_private_host;

/// Asks once, for a feed or for whatever is there. `contact_url` is where the publisher finds out
/// who asked; loopback and private addresses are allowed for `url` itself, as for a feed that is
/// configured.
pub async fn fetch(
    limits: &ingest::Config,
    contact_url: Option<Url>,
    url: &Url,
    format: DocumentFormat,
) -> Result<Fetched, Failure> {
    let feed = FeedSpec::new(FeedNo(0), "probe", url.clone()).with(|feed| feed.format = format);
    ask_once(limits, contact_url, &feed).await
}

/// Asks once for a feed that the page at `page` names. At another origin than that of the page, only
/// public addresses are allowed.
pub async fn fetch_named(
    limits: &ingest::Config,
    contact_url: Option<Url>,
    url: &Url,
    page: &Url,
) -> Result<Fetched, Failure> {
    let feed = FeedSpec::new(FeedNo(0), "probe", url.clone());
    let feed = feed.with(|feed| feed.public_hosts_only = url.origin() != page.origin());
    ask_once(limits, contact_url, &feed).await
}

/// Asks once for the page at `url`, under the name by which readers know its site: the root
/// `known_as`.
pub async fn fetch_known_as(
    limits: &ingest::Config,
    url: &Url,
    known_as: &Url,
) -> Result<Fetched, Failure> {
    let mut feed = FeedSpec::new(FeedNo(0), "probe", url.clone());
    feed.legacy = Some(LegacyAddress::at(known_as.clone()).into());
    ask_once(limits, None, &feed).await
}

async fn ask_once(
    limits: &ingest::Config,
    contact_url: Option<Url>,
    feed: &FeedSpec,
) -> Result<Fetched, Failure> {
    let client = layers::upstream(&limits.client(), Governor::default())
        .map_err(|error| Failure::ours(format!("no client could be made: {error}")))?;
    let clock: Arc<dyn Clock> = Arc::new(clock::System);
    let upstream = Upstream::new(client, contact_url, clock.clone());
    ask(&upstream, feed, &*clock).await
}

/// Asks once for the document of a feed, registered or not.
pub(super) async fn ask(
    upstream: &Upstream,
    feed: &FeedSpec,
    clock: &dyn Clock,
) -> Result<Fetched, Failure> {
    // A feed that was never polled is asked for without validators.
    let state = PollState::unpolled(feed.bare_url().as_str());
    let plan: Plan = state.plan(0, Stamp::from_micros(clock.now_us()));
    match upstream.fetch(feed, &plan, &state, 0).await {
        DocumentReply::Document(fetched) => Ok(fetched),
        DocumentReply::Failed { failure, .. } => Err(failure),
        DocumentReply::Unchanged(_) => Err(Failure::of(FaultKind::Refused {
            status: 304,
            has_credentials: false,
        })),
        DocumentReply::Deferred { wait_secs } => Err(Failure::ours(format!(
            "this host was asked often enough; try again in {wait_secs} s"
        ))),
    }
}
