//! One document, fetched as polling would fetch it: the same client stack, one unconditional GET.
//! Nothing is stored, and what the document says is not looked at.

use crate::{
    clock::{self, Clock},
    feed::{
        absence::Coverage,
        record::FeedNo,
        schedule::{Failure, FaultKind, Plan, PollState},
        stamp::Stamp,
    },
    ingest::{self, FeedSpec, LegacyPlace, Upstream, upstream::DocumentReply},
    layers::{self, Governor},
};
use bytes::Bytes;
use http::HeaderMap;
use std::sync::Arc;
use url::Url;

pub use super::site_feeds::USUAL_PATHS;
pub use crate::ingest::{DocumentFormat, platform::Choice};

/// A body and what came with it.
#[derive(Debug)]
pub struct ProbedDocument {
    /// The document, inflated.
    pub body: Bytes,
    /// `Content-Type`, if it is text.
    pub content_type: Option<String>,
    /// All headers of the answer.
    pub headers: Box<HeaderMap>,
    /// The URL that answered, after redirects.
    pub base_url: String,
    /// The URL that names the document, where that was asked for as it is instead of as a feed.
    pub resource: Option<String>,
    /// The end of the permanent redirects, if all redirects were permanent.
    pub moved_to: Option<String>,
    /// True when the server sent only the entries that it takes for new (226), which nobody asked
    /// for.
    pub is_part: bool,
}

/// Asks once, for a feed or for whatever is there. `contact_url` is where the publisher finds out
/// who asked; loopback and private addresses are allowed for `url` itself, as for a feed that is
/// configured.
pub async fn fetch(
    limits: &ingest::Config,
    contact_url: Option<Url>,
    url: &Url,
    format: DocumentFormat,
) -> Result<ProbedDocument, Failure> {
    let feed = FeedSpec::new(FeedNo(0), "probe", url.clone()).with(|feed| feed.format = format);
    ask_once(limits, contact_url, &feed).await
}

/// Asks once for the page at `url`, under the name by which readers know its site: the root
/// `known_as`.
pub async fn fetch_known_as(
    limits: &ingest::Config,
    url: &Url,
    known_as: &Url,
) -> Result<ProbedDocument, Failure> {
    let mut feed = FeedSpec::new(FeedNo(0), "probe", url.clone());
    feed.legacy = Some(LegacyPlace::at(known_as.clone()).into());
    ask_once(limits, None, &feed).await
}

async fn ask_once(
    limits: &ingest::Config,
    contact_url: Option<Url>,
    feed: &FeedSpec,
) -> Result<ProbedDocument, Failure> {
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
) -> Result<ProbedDocument, Failure> {
    // A feed that was never polled is asked for without validators.
    let state = PollState::unpolled(feed.bare_url().as_str());
    let plan: Plan = state.plan(0, Stamp::from_micros(clock.now_us()));
    match upstream.fetch(feed, &plan, &state, 0).await {
        DocumentReply::Document(fetched) => Ok(ProbedDocument {
            body: fetched.body,
            content_type: fetched.content_type,
            headers: fetched.headers,
            base_url: fetched.base_url,
            resource: fetched.resource,
            moved_to: fetched.answer.moved_to,
            is_part: fetched.coverage == Coverage::Delta,
        }),
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
