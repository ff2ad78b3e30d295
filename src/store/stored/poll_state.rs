//! Poll states.

use super::{
    StoredKind,
    table::{stored_enums, stored_structs},
};
use crate::feed::schedule::{
    AnnouncedMove, BodyKind, DocumentFacts, FaultKind, FaultNote, Health, NamedFeed, NoAnswerCause,
    PermanentMove, PollState, Repeat, Timetable, UrlChange, UrlConsent, ValidatorPair, Whose,
};
use everfeed_adapters::platforms::{Detected, Weight};

impl StoredKind for PollState {
    const NAME: &'static str = "poll-state";
}

stored_structs! {
    PollState { url, validators, timetable, health, document, url_change, named }
    NamedFeed { url, since, is_lost }
    UrlChange { from, consent }
    ValidatorPair { etag, last_modified, url }
    Timetable {
        next_at, polled_at, unconditional_at, wants_audit, arrivals, hinted_secs, skip_hours, skip_days,
        agrees_at,
    }
    Health { good_at, failures, fault, gone_at, moved, announced }
    DocumentFacts { body, repeat, deferred_until, remark, platform, broken_since, changed_running, has_suspects }
    PermanentMove { url, since }
    AnnouncedMove { url, since, is_taken }
    FaultNote { kind, since }
    Detected { platform, why, weight }
}

stored_enums! {
    Repeat { 0 Changed, 1 Unchanged }
    UrlConsent { 0 NotGiven, 1 Given }
    FaultKind {
        0 Refused { status, has_credentials },
        1 NoAnswer { whose, reason, cause },
        2 NotAFeed { reason, kind },
        3 DifferentFeed { title },
        4 StoreAway { reason },
        5 Internal { reason },
        6 Quota { bytes, quota_bytes },
        7 Unrecognised { feed, from, to, title },
        8 WebPage { reason, feeds, was_feed },
        9 LeadsBack,
        10 SaysMoved { to },
        11 BotWall { vendor, status },
    }
    NoAnswerCause { 0 Resolve, 1 Connect, 2 Timeout, 3 Redirect, 4 TooLarge, 5 Broken, 6 Local, 7 Tls }
    BodyKind { 0 Empty, 1 Html, 2 Json, 3 Xml, 4 Other, 5 Opml }
    Whose { 0 Upstream, 1 Ours, 2 Network, 3 Configuration }
    Weight { 0 Weak, 1 Strong }
}
