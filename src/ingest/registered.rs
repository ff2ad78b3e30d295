//! From a feed of the catalog to the feed that is polled.

use super::{FeedSpec, feed_spec::Keeping};
use crate::catalog::RegisteredFeed;

impl From<&RegisteredFeed> for FeedSpec {
    fn from(feed: &RegisteredFeed) -> Self {
        let settings = &feed.settings;
        Self {
            no: feed.no,
            name: settings.name.clone(),
            url: settings.url.clone(),
            aliases: settings.aliases.clone(),
            import: (settings.import.pages_max > 0).then_some(settings.import),
            format: settings.format,
            policy: settings.poll.policy(),
            deletions: settings.deletions,
            keeping: Keeping {
                limits: settings.keep.limits(),
                record: settings.record.clone(),
                legacy_url: settings.legacy.as_ref().map(|place| place.url.clone()),
            },
            platform: settings.platform.clone(),
        }
    }
}
