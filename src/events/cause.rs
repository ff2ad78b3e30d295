//! Causes of events, and whose faults they are.

use crate::feed::schedule::Whose;

/// Characters of the key of a cause at most.
const KEY_CHARS_MAX: usize = 200;

/// Cause of an event. Findings with the same cause are one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cause {
    /// The part of everfeed that it concerns.
    pub topic: EventTopic,
    /// Key of the cause within its topic, such as the name of a host.
    pub key: String,
}

impl Cause {
    /// A cause with this key, which is cut where it is too long.
    pub fn new(topic: EventTopic, key: &str) -> Self {
        Self {
            topic,
            key: crate::one_line::one_line(key, KEY_CHARS_MAX),
        }
    }
}

/// Part of everfeed that an event concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventTopic {
    /// Feeds whose polls fail.
    Feeds,
    /// Most hosts at once.
    Network,
    /// A feed that has moved.
    Moved,
    /// Items that may be missing.
    Gap,
    /// Most posts of a feed edited at once.
    MassEdit,
    /// Too many posts of a feed missing at once.
    Quarantine,
    /// Subscribers that take no pushes.
    Subscribers,
    /// A reload that was refused.
    Reload,
    /// The certificate of HTTPS.
    Certificate,
    /// The disk of the store.
    Disk,
    /// The store.
    Store,
    /// A store that was restored from a copy.
    Restore,
    /// The feeds of a site that are looked for.
    Site,
    /// A list of feeds (OPML) that is read at intervals.
    Opml,
    /// The connection to a server of XMPP.
    Xmpp,
    /// Search engines that are told of the pages of a site.
    SearchEngines,
    /// An alert that could not be sent.
    Alert,
    /// Causes beyond those that are told one by one.
    Others,
}

impl EventTopic {
    /// Its name for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Feeds => "feeds",
            Self::Network => "network",
            Self::Moved => "moved",
            Self::Gap => "gap",
            Self::MassEdit => "mass_edit",
            Self::Quarantine => "quarantine",
            Self::Subscribers => "subscribers",
            Self::Reload => "reload",
            Self::Certificate => "certificate",
            Self::Disk => "disk",
            Self::Store => "store",
            Self::Restore => "restore",
            Self::Site => "site",
            Self::Opml => "opml",
            Self::Xmpp => "xmpp",
            Self::SearchEngines => "search_engines",
            Self::Alert => "alert",
            Self::Others => "others",
        }
    }
}

/// Whose fault a cause is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultOwner {
    /// The publisher's server.
    Upstream,
    /// The network on the way, or the name servers.
    Network,
    /// The configuration.
    Configuration,
    /// This everfeed.
    Ours,
    /// The machine that everfeed runs on.
    Machine,
    /// A subscriber.
    Subscriber,
    /// The receiver of alerts, or the server on the way to it.
    Receiver,
    /// Another server that everfeed needs, such as a certificate authority.
    Service,
    /// Nobody: something that happens.
    Nobody,
}

impl FaultOwner {
    /// Its name for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Upstream => "upstream",
            Self::Network => "network",
            Self::Configuration => "configuration",
            Self::Ours => "ours",
            Self::Machine => "machine",
            Self::Subscriber => "subscriber",
            Self::Receiver => "receiver",
            Self::Service => "service",
            Self::Nobody => "nobody",
        }
    }

    /// Its words, which follow "the fault is".
    pub const fn words(self) -> &'static str {
        match self {
            Self::Upstream => "the publisher's",
            Self::Network => "in the network on the way, or in its name servers",
            Self::Configuration => "in your configuration",
            Self::Ours => "everfeed's, not the publisher's",
            Self::Machine => "this machine's",
            Self::Subscriber => "the subscriber's",
            Self::Receiver => "the receiver's, or a server's on the way to it",
            Self::Service => "another server's",
            Self::Nobody => "nobody's",
        }
    }
}

impl From<Whose> for FaultOwner {
    fn from(whose: Whose) -> Self {
        match whose {
            Whose::Upstream => Self::Upstream,
            Whose::Network => Self::Network,
            Whose::Configuration => Self::Configuration,
            Whose::Ours => Self::Ours,
        }
    }
}
