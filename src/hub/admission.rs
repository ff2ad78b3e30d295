//! Admission of requests to the hub: so many from one client, whatever they ask for; not whether
//! there is room for what they ask.

use crate::client_net::client_net;
use crate::layers::{Governor, Throttled};
use std::{net::IpAddr, num::NonZeroU32};

/// Topics of requests to subscribe of one client: so many at once, so many a second from then on
/// (HUBS 5.2). An aggregator that follows many feeds is one client. One that a renewal is for
/// counts for its callback instead.
const SUBSCRIBE_BURST: NonZeroU32 = NonZeroU32::new(100).expect("100 is not 0");
const SUBSCRIBE_PER_SEC: NonZeroU32 = NonZeroU32::new(10).expect("10 is not 0");
/// URLs of requests to publish of one client.
const PUBLISH_BURST: NonZeroU32 = NonZeroU32::new(100).expect("100 is not 0");
const PUBLISH_PER_SEC: NonZeroU32 = NonZeroU32::new(10).expect("10 is not 0");

/// A client as it is counted: an address of version 4, or a network of version 6, of which one
/// client has all addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClientNet(Option<IpAddr>);

impl ClientNet {
    /// The client at an address; all whose address is not known are one.
    pub(super) fn of(address: Option<IpAddr>) -> Self {
        Self(address.map(client_net))
    }

    /// False for all those whose address is not known.
    pub(super) fn is_known(self) -> bool {
        self.0.is_some()
    }

    fn key(self) -> String {
        self.0
            .map(|address| address.to_string())
            .unwrap_or_default()
    }
}

/// Counts of requests.
pub(super) struct Admission {
    subscribers: Governor,
    renewals: Governor,
    publishers: Governor,
}

impl Admission {
    pub(super) fn new() -> Self {
        let subscribers = || Governor::new(SUBSCRIBE_BURST, SUBSCRIBE_PER_SEC);
        let publishers = Governor::new(PUBLISH_BURST, PUBLISH_PER_SEC);
        Self {
            subscribers: subscribers(),
            renewals: subscribers(),
            publishers,
        }
    }

    // Decides: May a client subscribe again now?
    /// Lets a client subscribe to so many topics.
    pub(super) fn subscribe(&self, client: ClientNet, topics: usize) -> Result<(), Throttled> {
        self.subscribers.admit_now(&client.key(), cost(topics))
    }

    /// Lets a callback that is subscribed already renew so many of its subscriptions, whoever asks
    /// for it: no flood of others is in its way.
    pub(super) fn renew(&self, callback: &str, topics: usize) -> Result<(), Throttled> {
        self.renewals.admit_now(callback, cost(topics))
    }

    /// Lets a client say that so many URLs have changed.
    pub(super) fn publish(&self, client: ClientNet, urls: usize) -> Result<(), Throttled> {
        self.publishers.admit_now(&client.key(), cost(urls))
    }
}

fn cost(count: usize) -> NonZeroU32 {
    u32::try_from(count)
        .ok()
        .and_then(NonZeroU32::new)
        .unwrap_or(NonZeroU32::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_of_version_six_has_a_network() {
        let of = |text: &str| ClientNet::of(Some(text.parse().unwrap()));
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }

    #[tokio::test(start_paused = true)]
    async fn twenty_topics_cost_twenty_and_nobody_is_locked_out_by_another() {
        let admission = Admission::new();
        let of = |text: &str| ClientNet::of(Some(text.parse().unwrap()));
        for _ in 0..5 {
            assert_eq!(admission.subscribe(of("192.0.2.1"), 20), Ok(()));
        }
        assert!(admission.subscribe(of("192.0.2.1"), 1).is_err());
        assert_eq!(admission.subscribe(of("192.0.2.2"), 1), Ok(()));
        assert_eq!(
            admission.renew("http://a.example/", 1),
            Ok(()),
            "known callbacks have their own count"
        );
        tokio::time::advance(std::time::Duration::from_secs(2)).await;
        assert_eq!(admission.subscribe(of("192.0.2.1"), 20), Ok(()));
    }
}
