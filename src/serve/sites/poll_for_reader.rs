//! Looks at the origins of old feeds, as the server asks for them; not when one is due, nor how it
//! is made.

use crate::{catalog::FeedSettings, feed::record::FeedNo, layers::is_near};
use futures_util::future::BoxFuture;

/// `fresh_secs` of an origin on this machine or its network, which belongs to whoever runs everfeed
/// (DESIGN section 10).
const NEAR_FRESH_SECS: u64 = 60;
/// `fresh_secs` of any other origin.
const FAR_FRESH_SECS: u64 = 900;

/// Seconds for which the old document of a feed is given without asking its origin; 0: it is never
/// asked for readers.
pub(super) fn fresh_secs(feed: &FeedSettings) -> u64 {
    let given = feed.legacy.as_ref().and_then(|place| place.fresh_secs);
    given.unwrap_or(if is_near(&feed.url) {
        NEAR_FRESH_SECS
    } else {
        FAR_FRESH_SECS
    })
}

/// Whoever has the origin of an old feed asked because somebody reads it.
pub trait PollForReader: Send + Sync {
    /// True while a reader of a copy that may be `fresh_secs` old at most would have its origin
    /// asked, or would wait for it.
    fn is_wanted(&self, feed: FeedNo, fresh_secs: u64) -> bool;

    /// Has the origin asked, once for all readers, if the copy is older than `fresh_secs`. What is
    /// returned ends when the copy is as fresh as it becomes within three seconds; `None` when a
    /// reader does not wait.
    fn look(&self, feed: FeedNo, fresh_secs: u64) -> Option<BoxFuture<'static, ()>>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::SiteSettings;
    use url::Url;

    #[test]
    fn copies_of_an_origin_nearby_are_fresh_for_a_minute_and_others_for_a_quarter_of_an_hour() {
        let check = |origin: &str, given: Option<u64>, expect: u64| {
            let site = SiteSettings {
                fresh_secs: given,
                ..SiteSettings::new(Url::parse(origin).unwrap())
            };
            let (public, mut feeds) = (Url::parse("http://blog.example/").unwrap(), Vec::new());
            SiteSettings::join(&[site], 0, &["/feed.xml".into()], &public, &mut feeds);
            assert_eq!(fresh_secs(&feeds[0]), expect, "{origin}");
        };
        check("http://127.0.0.1:8081", None, 60);
        check("http://wordpress", None, 60);
        check("https://blog.example.org", None, 900);
        check("http://127.0.0.1:8081", Some(0), 0);
        check("https://blog.example.org", Some(5), 5);
    }
}
