//! Looks at the origins of old feeds, which the server asks for and the poller makes.

use crate::{feed::record::FeedNo, ingest::Poller, serve::fresh_looks::FreshLooks};
use futures_util::future::BoxFuture;

impl FreshLooks for Poller {
    fn is_wanted(&self, feed: FeedNo, fresh_secs: u64) -> bool {
        self.wants_look(feed, fresh_secs)
    }

    fn look(&self, feed: FeedNo, fresh_secs: u64) -> Option<BoxFuture<'static, ()>> {
        Poller::look(self, feed, fresh_secs)
    }
}
