//! Push from upstream for a feed.

use super::{
    StoredKind,
    table::{stored_enums, stored_structs},
};
use crate::feed::pushed_feed::{
    CloudAddress, HubMode, NamedPush, PushAsked, PushLease, PushPath, PushTally, PushedFeed,
    UpstreamCloud, UpstreamHub,
};

impl StoredKind for PushedFeed {
    const NAME: &'static str = "pushed-feed";
}

stored_structs! {
    PushedFeed { named, hubs, cloud, tally, root }
    NamedPush { topics, hubs, cloud, is_by_table }
    CloudAddress { is_https, domain, port, path }
    UpstreamHub {
        url, topic, is_named, lease, former, asked, next_at, failures, refusals, why,
    }
    UpstreamCloud { address, url, path, since, registered_at, next_at, failures, why }
    PushLease { path, since, until }
    PushAsked { path, mode, at, is_late }
    PushPath { token, secret }
    PushTally { last_push, pushes, misses, untold_since }
}

stored_enums! {
    HubMode { 0 Subscribe, 1 Unsubscribe }
}
