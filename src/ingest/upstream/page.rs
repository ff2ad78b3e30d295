//! One question for the page of an item: whether it is there. Not what its answer proves.

use super::{CROWDED_SECS, Upstream, bot_wall::bot_wall, whole_secs};
use crate::{
    ingest::{FeedSpec, host_pauses::authority_of},
    layers::{FetchError, FirstBytes, HomeOnly, Landing},
    secret::logged_url,
};
use bytes::Bytes;
use http::{
    HeaderValue, Request, StatusCode,
    header::{CONTENT_TYPE, USER_AGENT},
};
use url::Url;

/// Bytes of a page that are looked at, inflated: titles stand in the head, but heads are full of
/// scripts.
const PAGE_BYTES_MAX: u64 = 1024 * 1024;

/// Outcome of a request for a page.
#[derive(Debug)]
pub enum PageReply {
    /// An answer.
    Answer(PageAnswer),
    /// A redirect to another host, or one that cannot be followed: where that leads is none of our
    /// business.
    Elsewhere,
    /// No answer.
    Failed,
    /// Our own governor held the request back.
    Deferred {
        /// Seconds until there is room.
        wait_secs: u64,
    },
}

/// An answer to a request for a page.
#[derive(Debug)]
pub struct PageAnswer {
    /// The status.
    pub status: StatusCode,
    /// `Content-Type`, if it is text.
    pub content_type: Option<String>,
    /// The first bytes of it.
    pub body: Bytes,
    /// True when there may be more of it, which was not read.
    pub is_cut: bool,
    /// The host that answered.
    pub host: Option<String>,
    /// The URL that answered, after redirects.
    pub landing: Option<Url>,
    /// `Retry-After`, as far as it counts.
    pub retry_after_secs: Option<u64>,
}

impl Upstream {
    /// Sends one GET for the page of an item, which is read no further than it must be. `url` is of
    /// the feed's own origin.
    pub async fn page(&self, feed: &FeedSpec, url: &str) -> PageReply {
        let reply = match self.page_request(feed, url) {
            Ok(request) => self.client().send(request).await,
            Err(error) => Err(error),
        };
        let response = match reply {
            Ok(response) => response,
            Err(FetchError::Throttled { wait }) => {
                return PageReply::Deferred {
                    wait_secs: whole_secs(wait),
                };
            }
            // Our own memory was short: the page said nothing.
            Err(FetchError::Crowded) => {
                return PageReply::Deferred {
                    wait_secs: CROWDED_SECS,
                };
            }
            Err(error) => {
                tracing::debug!(feed.name = %feed.name, url = logged_url(url), "No page: {error}");
                let leads_away = matches!(error, FetchError::BadRedirect(_));
                return if leads_away {
                    PageReply::Elsewhere
                } else {
                    PageReply::Failed
                };
            }
        };
        let (parts, body) = response.into_parts();
        let landing = parts
            .extensions
            .get::<Landing>()
            .map(|landing| landing.url.clone());
        let host = landing.as_ref().and_then(authority_of);
        // Whatever a wall against robots answers, the page said nothing.
        let status = match bot_wall(parts.status, &parts.headers, &body) {
            Some(_) => StatusCode::TOO_MANY_REQUESTS,
            None => parts.status,
        };
        let retry_after_secs = self.retry_after_secs(status, &parts.headers);
        let content_type = super::text(&parts.headers, CONTENT_TYPE);
        let is_cut = body.len() as u64 >= PAGE_BYTES_MAX;
        PageReply::Answer(PageAnswer {
            status,
            content_type,
            body,
            is_cut,
            host,
            landing,
            retry_after_secs,
        })
    }

    fn page_request(&self, feed: &FeedSpec, url: &str) -> Result<Request<Bytes>, FetchError> {
        let url = Url::parse(url).map_err(|_| FetchError::BadUrl)?;
        // The address was named by an entry, and whoever writes one does not learn the password.
        let may_tell = feed.deletions.page_credentials;
        let mut request = self.get(
            feed,
            &url,
            HeaderValue::from_static("text/html, */*;q=0.5"),
            may_tell,
        )?;
        let agent = self.user_agent("looks whether a post that left its feed is still there");
        request.headers_mut().insert(USER_AGENT, agent);
        request.extensions_mut().insert(HomeOnly);
        request.extensions_mut().insert(FirstBytes(PAGE_BYTES_MAX));
        Ok(request)
    }
}
