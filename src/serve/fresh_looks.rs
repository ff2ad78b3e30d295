//! Looks at the origins of old feeds, as the server asks for them; not when one is due, nor how it is made.

use crate::feed::record::FeedNo;
use futures_util::future::BoxFuture;

/// Whoever has the origin of an old feed asked because somebody reads it.
pub trait FreshLooks: Send + Sync {
    /// True while a reader of a copy that may be `fresh_secs` old at most would have its origin asked, or would wait for it.
    fn is_wanted(&self, feed: FeedNo, fresh_secs: u64) -> bool;

    /// Has the origin asked, once for all readers, if the copy is older than `fresh_secs`. What is returned ends when the copy is as
    /// fresh as it becomes within half a second; `None` when a reader does not wait.
    fn look(&self, feed: FeedNo, fresh_secs: u64) -> Option<BoxFuture<'static, ()>>;
}
