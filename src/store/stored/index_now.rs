//! `IndexNow` for a site.

use super::{
    StoredKind,
    table::{stored_enums, stored_newtypes, stored_structs},
};
use crate::feed::index_now::{
    IndexNow, IndexNowFault, IndexNowFaultKind, PostponedPage, UrlHash, UrlPing,
};

impl StoredKind for IndexNow {
    const NAME: &'static str = "index-now";
}

stored_newtypes! { UrlHash }

stored_structs! {
    IndexNow { key, since, cursors, pings, postponed, next_at, failures, fault, accepted, accepted_at }
    UrlPing { url, at, is_gone }
    PostponedPage { feed, item, until }
    IndexNowFault { kind, since, why }
}

stored_enums! {
    IndexNowFaultKind { 0 KeyUnread, 1 Failing, 2 Refused, 3 Forbidden }
}
