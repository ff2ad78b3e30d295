//! The feed that a configured page names: which address is asked in the place of the page; not how it
//! is found.

use crate::stamp::Stamp;

/// The feed of a page that is configured in the place of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFeed {
    /// Its address.
    pub url: String,
    /// Since when it is polled.
    pub since: Stamp,
    /// True once its address has ceased to answer with a feed: the page is asked again.
    pub is_lost: bool,
}

/// The address of a feed that a request asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AskedAddress {
    /// The configured one.
    #[default]
    Configured,
    /// The one to which the feed has moved.
    Moved,
    /// The one to which its documents say that it has moved.
    Announced,
    /// The one that the configured page names.
    NamedByPage,
}

impl NamedFeed {
    // Decides: Is a page or the feed that it names asked?
    /// The named feed after a good answer to a request for `asked`.
    pub(super) fn after(
        held: Option<Self>,
        address: AskedAddress,
        asked: &str,
        now: Stamp,
    ) -> Option<Self> {
        match address {
            // The configured address is that of a feed itself.
            AskedAddress::Configured => None,
            AskedAddress::Moved | AskedAddress::Announced => held,
            AskedAddress::NamedByPage => {
                let held = held.filter(|held| held.url == asked && !held.is_lost);
                held.or_else(|| {
                    Some(Self {
                        url: asked.to_owned(),
                        since: now,
                        is_lost: false,
                    })
                })
            }
        }
    }
}
