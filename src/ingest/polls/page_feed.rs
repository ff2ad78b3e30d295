//! A web page at the URL of a feed: the feed that it names is asked in its place. Not which feeds a
//! page names.

use super::Poll;
use crate::{
    feed::schedule::{AskedAddress, Plan},
    ingest::{DocumentFormat, Fetched, Upstream, upstream::DocumentReply},
};
use everfeed_adapters::{Hints, NotAFeed, named_feeds, slice};

/// Feeds of a page that are asked for in one poll, until one answers with a feed.
const TRIES_MAX: usize = 3;

impl Poll<'_> {
    // Decides: Which feed is polled where a page is configured?
    /// The answer of the first feed of posts that a page names, in the place of the page. Any other
    /// answer stays as it is, and so does a page at an address that was a feed before: an error, as a
    /// rule.
    pub(super) async fn or_named_feed(
        &self,
        upstream: &Upstream,
        subscribers: usize,
        reply: DocumentReply,
    ) -> DocumentReply {
        let DocumentReply::Document(page) = &reply else {
            return reply;
        };
        // What a site has at an address is shown there, so no other feed may take its place.
        let is_configured =
            page.answer.address == AskedAddress::Configured && self.feed.legacy.is_none();
        if self.feed.format != DocumentFormat::Auto || !is_configured || !self.state.may_be_page() {
            return reply;
        }
        let document = page.clone();
        let named = self.context.compute(move || named_by(&document)).await;
        // A failure to compute is told where the document is read.
        for url in named.unwrap_or_default() {
            let plan = Plan {
                url,
                conditional: false,
                address: AskedAddress::NamedByPage,
            };
            let found = upstream.fetch(self.feed, &plan, self.state, subscribers);
            match found.await {
                DocumentReply::Document(found) => {
                    let document = found.clone();
                    let is_feed = self.context.compute(move || is_feed(&document)).await;
                    if is_feed.unwrap_or_default() {
                        return DocumentReply::Document(found);
                    }
                }
                // Our own pace: the poll is repeated whole.
                deferred @ DocumentReply::Deferred { .. } => return deferred,
                DocumentReply::Failed { .. } | DocumentReply::Unchanged(_) => {}
            }
        }
        reply
    }
}

/// The addresses of the first feeds of posts that a document names, if it is a web page.
fn named_by(page: &Fetched) -> Vec<String> {
    let hints = hints(page);
    if !matches!(slice(&page.body, &hints), Err(NotAFeed::Html { .. })) {
        return Vec::new();
    }
    let named = named_feeds(&page.body, &hints).into_iter();
    let named = named.filter(|feed| !feed.is_of_comments);
    named.map(|feed| feed.link.href).take(TRIES_MAX).collect()
}

fn is_feed(document: &Fetched) -> bool {
    slice(&document.body, &hints(document)).is_ok()
}

fn hints(document: &Fetched) -> Hints<'_> {
    Hints {
        content_type: document.content_type.as_deref(),
        base_url: Some(&document.base_url),
        ..Hints::default()
    }
}
