//! What the poller tells of its polls, and asks; not what becomes of it.

use super::Shared;
use crate::{
    feed::{pushed_feed::NamedPush, record::FeedNo, stamp::Stamp},
    locks::lock,
    notify::{PushedDocument, UpstreamPush},
};
use tracing::warn;

impl UpstreamPush for Shared {
    fn works(&self, feed: FeedNo, now: Stamp) -> bool {
        let rows = lock(&self.rows);
        rows.row(feed).is_some_and(|row| row.works(now))
    }

    fn document_taken(&self, feed: FeedNo, named: NamedPush) {
        self.name(feed, named);
    }

    fn found_by_poll(&self, feed: FeedNo, polled_before: Option<Stamp>, now: Stamp) {
        if lock(&self.rows).row(feed).is_none() {
            return;
        }
        let (was_silent, is_silent) = self.change(feed, |row| {
            let was_silent = row.tally.is_silent(now);
            row.found_by_poll(polled_before, now);
            (was_silent, row.tally.is_silent(now))
        });
        if is_silent && !was_silent {
            let name = self.name_of(feed);
            warn!(feed.name = %name, "The hub of `{name}` has not told of news several times: the feed is polled as usual until the subscription is renewed");
        }
    }

    fn take_documents(&self, feed: FeedNo) -> Vec<PushedDocument> {
        lock(&self.documents).take(feed)
    }
}

impl Shared {
    /// Takes in the services that a feed names. Our own hub is none.
    pub(super) fn name(&self, feed: FeedNo, mut named: NamedPush) {
        let catalog = self.parts.catalog.snapshot();
        if !catalog
            .feed_no(feed)
            .is_some_and(|feed| super::may_be_pushed(feed))
        {
            return;
        }
        let is_own = |url: &str| (self.parts.is_own)(url);
        named.hubs.retain(|hub| !is_own(hub));
        named.cloud = named.cloud.filter(|cloud| !is_own(&cloud.url()));
        if named.hubs.is_empty() && named.cloud.is_none() {
            named = NamedPush::default();
        }
        let held = lock(&self.rows).row(feed).map(|row| row.named == named);
        if held.unwrap_or(named == NamedPush::default()) {
            return;
        }
        let now = self.now();
        self.change(feed, |row| row.rename(named, now));
    }

    /// The name of a feed, for the log.
    pub(super) fn name_of(&self, feed: FeedNo) -> String {
        let catalog = self.parts.catalog.snapshot();
        let feed = catalog.feed_no(feed);
        feed.map_or_else(String::new, |feed| feed.settings.name.clone())
    }
}
