//! Faults of a feed as values; the words for the operator are made from them.

use crate::{secret::public_text, stamp::Stamp};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A fault of a feed, for its operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultNote {
    /// The last fault.
    pub kind: FaultKind,
    /// Time since which polls have failed in a row.
    pub since: Stamp,
}

/// A reason for which a poll failed. `Display` says it without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An answer without a document.
    Refused {
        /// Its status.
        status: u16,
        /// True when the configured URL holds credentials.
        has_credentials: bool,
    },
    /// No answer, or none that could be read.
    NoAnswer {
        /// Whose fault that is.
        whose: Whose,
        /// The client's reason, for people.
        reason: String,
        /// Step of the exchange that failed; `None` in what an older everfeed stored.
        cause: Option<NoAnswerCause>,
    },
    /// A body that is no feed.
    NotAFeed {
        /// Description of what it is instead.
        reason: String,
        /// Kind of the body; `None` in what an older everfeed stored.
        kind: Option<BodyKind>,
    },
    /// The document of another feed.
    DifferentFeed {
        /// Its title.
        title: String,
    },
    /// The document of a URL that was changed, which shares nothing with what is held.
    Unrecognised {
        /// The name of the feed, for the command that accepts it.
        feed: String,
        /// The URL before, without secrets.
        from: String,
        /// The URL now, without secrets.
        to: String,
        /// Title of the document; empty where it has none.
        title: String,
    },
    /// A document without a feed that says where the feed is now (`redirect` of RSS).
    SaysMoved {
        /// The new address.
        to: String,
    },
    /// A web page.
    WebPage {
        /// Description of the page.
        reason: String,
        /// The feeds that it names: URLs, with titles.
        feeds: Vec<String>,
        /// True when the same URL has answered with a feed before.
        was_feed: bool,
    },
    /// The answer of a wall against robots, in the place of the publisher's. It counts as 429.
    BotWall {
        /// The vendor of the wall.
        vendor: String,
        /// Its status.
        status: u16,
    },
    /// An answer of this everfeed itself.
    LeadsBack,
    /// The store could not be reached, and nothing was done. No poll counts as failed for that.
    StoreAway {
        /// The store's reason, for people.
        reason: String,
    },
    /// The quota of the feed is reached: nothing is deleted, and nothing new is kept.
    Quota {
        /// Bytes that its items would take.
        bytes: u64,
        /// Its quota.
        quota_bytes: u64,
    },
    /// A failure on our side: the store, or a bug.
    Internal {
        /// The cause, for people.
        reason: String,
    },
}

/// A fault as everybody may know it: without an address, a title or a text of anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicFault {
    /// The event, in words.
    words: &'static str,
    /// The status, where that is the event.
    status: Option<u16>,
}

impl fmt::Display for PublicFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words)?;
        match self.status {
            Some(status) => write!(f, " ({status})"),
            None => Ok(()),
        }
    }
}

/// Step of an exchange that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswerCause {
    /// Looking up the host.
    Resolve,
    /// Connecting.
    Connect,
    /// The TLS handshake.
    Tls,
    /// The answer did not come in time.
    Timeout,
    /// A redirect or an address that is not followed.
    Redirect,
    /// The answer is larger than is read.
    TooLarge,
    /// The answer was cut, damaged, or no HTTP.
    Broken,
    /// The request was not sent.
    Local,
}

/// Kind of a body that is no feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// Nothing.
    Empty,
    /// A web page.
    Html,
    /// JSON.
    Json,
    /// XML of another kind.
    Xml,
    /// Anything else.
    Other,
    /// A list of feeds (OPML), where no feed has been.
    Opml,
}

/// Whose fault something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Whose {
    /// The publisher's server.
    Upstream,
    /// The network on the way, or the name servers.
    Network,
    /// The configuration of the feed: what it lacks, or a limit.
    Configuration,
    /// Ours: process, disk, clock.
    Ours,
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Upstream => "upstream",
            Self::Network => "network",
            Self::Configuration => "configuration",
            Self::Ours => "ours",
        })
    }
}

impl FaultKind {
    /// True for the same fault again, which is logged once. The reason in words does not count: it
    /// may hold a number or a piece of a page that differs each time.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::NoAnswer { whose, cause, .. },
                Self::NoAnswer {
                    whose: other,
                    cause: of_other,
                    ..
                },
            ) => (whose, cause) == (other, of_other),
            (Self::NotAFeed { kind, .. }, Self::NotAFeed { kind: other, .. }) => kind == other,
            (Self::Quota { .. }, Self::Quota { .. }) => true,
            (
                Self::WebPage { was_feed, .. },
                Self::WebPage {
                    was_feed: other, ..
                },
            ) => was_feed == other,
            (
                Self::Unrecognised { from, to, .. },
                Self::Unrecognised {
                    from: before,
                    to: other,
                    ..
                },
            ) => (from, to) == (before, other),
            (Self::BotWall { vendor, .. }, Self::BotWall { vendor: other, .. }) => vendor == other,
            _ => self == other,
        }
    }

    /// Whose fault it is.
    pub fn whose(&self) -> Whose {
        match self {
            Self::Refused { status: 401, .. }
            | Self::Quota { .. }
            | Self::Unrecognised { .. }
            | Self::WebPage {
                was_feed: false, ..
            }
            | Self::NotAFeed {
                kind: Some(BodyKind::Opml),
                ..
            }
            | Self::LeadsBack => Whose::Configuration,
            Self::Refused { .. }
            | Self::BotWall { .. }
            | Self::NotAFeed { .. }
            | Self::DifferentFeed { .. }
            | Self::SaysMoved { .. }
            | Self::WebPage { was_feed: true, .. } => Whose::Upstream,
            Self::NoAnswer { whose, .. } => *whose,
            Self::Internal { .. } | Self::StoreAway { .. } => Whose::Ours,
        }
    }

    // Decides: In which words is the owner of a fault told?
    /// The owner of the fault, in words that follow "the fault is".
    pub fn owner(&self) -> &'static str {
        match (self.whose(), self) {
            (Whose::Configuration, _) => "in your configuration",
            (Whose::Network, _) => "in the network on the way, or in its name servers",
            (
                Whose::Upstream,
                Self::NoAnswer {
                    cause: Some(NoAnswerCause::Timeout | NoAnswerCause::Connect),
                    ..
                },
            ) => "the publisher's, or the network's on the way",
            (Whose::Upstream, _) => "the publisher's",
            (Whose::Ours, _) => "everfeed's, not the publisher's",
        }
    }

    // Decides: Which reason of a fault does everybody see?
    /// The fault for readers of the feed. Addresses, titles and reasons in words are for the operator:
    /// they may be those of a network that nobody else sees.
    pub fn public(&self) -> PublicFault {
        use NoAnswerCause::{Broken, Connect, Local, Redirect, Resolve, Timeout, Tls, TooLarge};
        let words = match self {
            Self::Refused { status: 404, .. } => "its address is not found",
            Self::Refused { status: 410, .. } => "its publisher says that it is gone for good",
            Self::Refused {
                status: 401 | 403, ..
            } => "its publisher refuses access",
            Self::Refused { status: 429, .. } => "its publisher asks for fewer requests",
            Self::Refused { status: 500.., .. } => "its server is out of order",
            Self::Refused { .. } => "its server sends no document",
            Self::BotWall { .. } => "a wall against robots stands before it",
            Self::NoAnswer { cause, .. } => match cause {
                Some(Resolve) => "the name of its server is not found",
                Some(Connect) => "its server cannot be reached",
                Some(Tls) => "its server has no good certificate",
                Some(Timeout) => "its server does not answer in time",
                Some(Redirect) => "its server leads on to where nobody follows",
                Some(TooLarge) => "its document is too large",
                Some(Broken) => "the answer of its server is damaged",
                Some(Local) | None => "it could not be asked for",
            },
            Self::NotAFeed { .. } | Self::WebPage { .. } => "its address has no feed",
            Self::DifferentFeed { .. } => "its address has another feed now",
            Self::SaysMoved { .. } => "its publisher says that it has moved",
            Self::Unrecognised { .. } => "its new address has another feed",
            Self::LeadsBack => "its settings here are wrong",
            Self::Quota { .. } => "it has as many posts as are kept",
            Self::StoreAway { .. } | Self::Internal { .. } => "a fault of this server",
        };
        let status = match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        };
        PublicFault { words, status }
    }

    /// True if the address that was asked has no feed, or none any more.
    pub fn says_no_feed(&self) -> bool {
        matches!(
            self,
            Self::Refused {
                status: 404 | 410,
                ..
            } | Self::NotAFeed { .. }
                | Self::WebPage { .. }
        )
    }

    /// The HTTP status, if an answer came; 429 of a wall against robots, whatever its own status was.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::BotWall { .. } => Some(429),
            Self::NotAFeed { .. }
            | Self::WebPage { .. }
            | Self::SaysMoved { .. }
            | Self::DifferentFeed { .. }
            | Self::Unrecognised { .. }
            | Self::Quota { .. } => Some(200),
            Self::NoAnswer { .. }
            | Self::LeadsBack
            | Self::Internal { .. }
            | Self::StoreAway { .. } => None,
        }
    }
}

/// In the operator's words.
impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { status: 410, .. } => {
                f.write_str("the publisher says that the feed is gone for good (410)")
            }
            Self::Refused { status: 429, .. } => {
                f.write_str("the publisher asks us to come less often (429)")
            }
            Self::Refused { status: 401, has_credentials: true } => {
                f.write_str("the publisher wants other credentials than the URL holds (401)")
            }
            Self::Refused { status: 401, has_credentials: false } => f.write_str(
                "the publisher wants credentials (401); give them in the URL, as https://user:password@host/",
            ),
            Self::Refused { status: 304, .. } => {
                f.write_str("the publisher answered 304 Not Modified to a request without validators")
            }
            Self::Refused { status, .. } => match reason_phrase(*status) {
                Some(phrase) => write!(f, "the publisher answered {status} {phrase}"),
                None => write!(f, "the publisher answered {status}"),
            },
            Self::NoAnswer { reason, .. }
            | Self::NotAFeed { reason, .. }
            | Self::StoreAway { reason }
            | Self::Internal { reason } => f.write_str(reason),
            Self::Quota { bytes, quota_bytes } => write!(
                f,
                "the quota is reached. With the posts that the publisher shows now, the feed would keep {bytes} bytes; its quota is \
                 {quota_bytes}. Nothing is deleted, nothing new is kept, and the publisher is asked once a day. \
                 Raise `keep.quota_bytes` of the feed, or give 0 for none"
            ),
            Self::SaysMoved { to } => write!(
                f,
                "the document holds no feed; it says that the feed has moved to {}. Give that as the url. everfeed asks there once \
                 the document has said so for 7 days",
                public_text(to)
            ),
            Self::DifferentFeed { title } => write!(f, "the URL answers with another feed, \"{title}\""),
            Self::Unrecognised { feed, from, to, title } => {
                let named = if title.is_empty() { String::new() } else { format!(", \"{title}\",") };
                write!(
                    f,
                    "another feed? The url was {from} and is {to}. The document there{named} shares no key, no link, and no \
                     title and date with what is held. Nothing of it is stored, and what is held is served. If it is the \
                     same feed, run `everfeed accept {feed}`; if not, change `url` (of a feed of a [[site]]: `origin`)"
                )
            }
            Self::WebPage { reason, feeds, was_feed } => {
                write!(f, "{reason}; ")?;
                match (feeds.is_empty(), was_feed) {
                    (false, false) => write!(f, "give the url of one of the feeds that it names: {}", feeds.join(", ")),
                    (false, true) => write!(f, "it names these feeds: {}", feeds.join(", ")),
                    (true, false) => f.write_str("it names no feeds; give the url of the feed itself"),
                    (true, true) => f.write_str("the url has answered with a feed before"),
                }
            }
            Self::BotWall { vendor, status } => write!(
                f,
                "a wall against robots ({vendor}) answered {status} in the place of the publisher. Ask the owner of the site to let \
                 requests for the feed through, or those whose User-Agent begins with \"everfeed/\"; signed requests \
                 (upstream.identity) may pass, too"
            ),
            Self::LeadsBack => f.write_str(
                "the address leads back to this everfeed itself. Give the old server's address as `origin` of the [[site]] or `url` \
                 of the [[feed]]",
            ),
        }
    }
}

/// Reason phrase of the statuses that publishers send (RFC 9110 section 15).
fn reason_phrase(status: u16) -> Option<&'static str> {
    let phrase = match status {
        204 => "No Content",
        206 => "Partial Content",
        300 => "Multiple Choices",
        400 => "Bad Request",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Timeout",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => return None,
    };
    Some(phrase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_feeds_in_the_place_of_a_feed_is_the_configurations_fault() {
        let list = FaultKind::NotAFeed {
            reason: "the document is OPML".to_owned(),
            kind: Some(BodyKind::Opml),
        };
        assert_eq!(list.whose(), Whose::Configuration);
        assert!(list.remedy().contains("everfeed import"));
    }

    #[test]
    fn a_fault_is_the_same_whatever_its_words_hold() {
        let page = |title: &str, kind| FaultKind::NotAFeed {
            reason: format!("a page, {title}"),
            kind: Some(kind),
        };
        assert!(page("11:59", BodyKind::Html).is_same(&page("12:00", BodyKind::Html)));
        assert!(!page("11:59", BodyKind::Html).is_same(&page("11:59", BodyKind::Json)));
        let silent = |secs: u8, cause| FaultKind::NoAnswer {
            whose: Whose::Upstream,
            reason: format!("nothing within {secs} s"),
            cause: Some(cause),
        };
        assert!(silent(1, NoAnswerCause::Timeout).is_same(&silent(2, NoAnswerCause::Timeout)));
        assert!(!silent(1, NoAnswerCause::Timeout).is_same(&silent(1, NoAnswerCause::Resolve)));
        let other = |title: &str| FaultKind::DifferentFeed {
            title: title.into(),
        };
        assert!(other("a").is_same(&other("a")) && !other("a").is_same(&other("b")));
    }

    #[test]
    fn a_fault_says_what_happened_and_whose_fault_it_is() {
        let check = |kind: FaultKind, whose, status, words: &str| {
            assert_eq!((kind.whose(), kind.status()), (whose, status), "{kind:?}");
            assert!(
                kind.to_string().contains(words),
                "{kind} does not say {words}"
            );
        };
        let refused = |status| FaultKind::Refused {
            status,
            has_credentials: false,
        };
        check(
            refused(410),
            Whose::Upstream,
            Some(410),
            "gone for good (410)",
        );
        check(
            refused(401),
            Whose::Configuration,
            Some(401),
            "https://user:password@host/",
        );
        check(
            refused(500),
            Whose::Upstream,
            Some(500),
            "answered 500 Internal Server Error",
        );
        let other = FaultKind::DifferentFeed {
            title: "Parked".into(),
        };
        check(
            other,
            Whose::Upstream,
            Some(200),
            "another feed, \"Parked\"",
        );
        check(
            FaultKind::Internal {
                reason: "the disk is full".into(),
            },
            Whose::Ours,
            None,
            "the disk is full",
        );
    }
}
