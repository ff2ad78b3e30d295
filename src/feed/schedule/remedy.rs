//! What an operator can do about a fault of a feed, in words.

use super::{BodyKind, FaultKind, NoAnswerCause, Whose};

impl FaultKind {
    // Decides: What can an operator do about a fault of a feed?
    /// What to do. It names no feed: several may have the fault.
    pub fn remedy(&self) -> &'static str {
        const WAIT: &str = "nothing yet: everfeed keeps asking. If it lasts, tell the publisher";
        match self {
            Self::Refused { status: 401, .. } => {
                "give the credentials that the publisher wants in the `url` of the feed"
            }
            Self::Refused { status: 403, .. } => {
                "ask the publisher to admit everfeed, by its User-Agent or by your address; a firewall or a CDN may refuse it"
            }
            Self::Refused {
                status: 404 | 410, ..
            } => {
                "look for the feed at the publisher's site, and give its address as `url`; or remove the feed"
            }
            Self::Refused { status: 429, .. } => {
                "raise `poll.min_secs` of the feed: the publisher wants to be asked less often"
            }
            Self::Refused {
                status: 400..=499, ..
            } => {
                "open the `url` of the feed in a browser: is it still right? If so, tell the publisher"
            }
            Self::Refused { .. } => WAIT,
            Self::NoAnswer {
                cause: Some(NoAnswerCause::Resolve),
                ..
            } => {
                "check the host name in the `url` of the feed, and the name servers of this machine"
            }
            Self::NoAnswer {
                cause: Some(NoAnswerCause::Tls),
                ..
            } => {
                "tell the publisher that its certificate is refused; and check the clock and the certificates of this machine"
            }
            Self::NoAnswer {
                cause: Some(NoAnswerCause::Redirect),
                ..
            } => "give the address to which the publisher redirects as `url`, if you trust it",
            Self::NoAnswer {
                cause: Some(NoAnswerCause::TooLarge),
                ..
            } => {
                "ask the publisher for a shorter feed, or raise `upstream.wire_bytes_max` and `upstream.body_bytes_max`"
            }
            Self::NoAnswer {
                whose: Whose::Network,
                ..
            } => "check the network and the name servers of this machine; everfeed keeps asking",
            Self::NoAnswer { .. } => {
                "open the `url` of the feed from this machine, for instance with curl. everfeed keeps asking; if it lasts, tell the publisher"
            }
            Self::NotAFeed {
                kind: Some(BodyKind::Opml),
                ..
            } => {
                "give the address of a feed as `url`. The feeds of a list are added by `everfeed import`, or by an [[opml]] that is read again"
            }
            Self::NotAFeed { .. } | Self::DifferentFeed { .. } => {
                "open the `url` of the feed in a browser. If the feed is elsewhere now, give that address; else tell the publisher"
            }
            Self::SaysMoved { .. } => "give the new address as `url` of the feed",
            Self::WebPage { .. } => "give the address of the feed itself as `url`",
            Self::Unrecognised { .. } => {
                "run `everfeed accept FEED` if it is the same feed; if not, change its `url`"
            }
            Self::Quota { .. } => "raise `keep.quota_bytes` of the feed",
            Self::BotWall { .. } => {
                "ask the owner of the site to let requests for the feed through, or those whose User-Agent begins with \"everfeed/\"; signed requests (`upstream.identity`) may pass, too"
            }
            Self::LeadsBack => {
                "give the address of the old server as `origin` of the [[site]] or `url` of the [[feed]]"
            }
            Self::StoreAway { .. } | Self::Internal { .. } => {
                "look at the log of everfeed around this time, and report a bug if it tells of one"
            }
        }
    }
}
