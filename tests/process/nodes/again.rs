//! A request that is made again, at each node in turn, comes to what one comes to. So whoever is
//! told that a request may have been done makes it again.

use super::World;
use http::Method;
use serde_json::Value;
use testkit::wait::until;

/// The feed that is registered.
const FEED: &str = "again";

impl World {
    /// Makes each request at each node.
    pub(super) async fn check_again(&self) {
        self.subscribe_again().await;
        self.register_again().await;
        self.poll_again().await;
    }

    /// One subscription, however often it is asked for.
    async fn subscribe_again(&self) {
        let topic = self.blogs.names().next().unwrap();
        let callback = self.subscriber.callback(FEED);
        let rows = || self.cluster.ask("SELECT count(*) FROM rows_subs");
        let before: u32 = rows().parse().unwrap();
        for node in &self.cluster.nodes {
            node.reader.subscribe(topic, &callback).await;
        }
        let confirmed = async || self.subscriber.chain(FEED).is_subscribed;
        until("the subscription is confirmed", confirmed).await;
        assert_eq!(rows(), (before + 1).to_string());
        self.subscriber.leaves(FEED);
        for node in &self.cluster.nodes {
            let status = node.reader.ask_hub("unsubscribe", topic, &callback).await;
            assert!(matches!(status, Some(202 | 204)), "{status:?}");
        }
        let ended = async || rows() == before.to_string();
        until("the subscription has ended", ended).await;
    }

    /// One feed, and no second change.
    async fn register_again(&self) {
        let path = format!("/feeds/{FEED}");
        let keys = format!("{{\"url\": \"{}?again\"}}", self.quiet.url("/rss.xml"));
        for (node, status) in [(0, 201), (1, 200), (2, 200)] {
            let answer = self.operator(node, Method::PUT, &path, &keys).await;
            assert_eq!(answer.status, status, "{:?}", answer.body);
        }
        let listed = self.operator(0, Method::GET, "/feeds", "").await;
        let listed: Value = serde_json::from_slice(&listed.body).unwrap();
        let names = listed["feeds"].as_array().unwrap().iter();
        let count = names.filter(|feed| feed["name"] == FEED).count();
        assert_eq!(count, 1, "{listed}");
        for (node, status) in [(1, 204), (2, 404), (0, 404)] {
            let answer = self.operator(node, Method::DELETE, &path, "").await;
            assert_eq!(answer.status, status, "{:?}", answer.body);
        }
    }

    /// A poll and a ping of a feed that did not change store nothing.
    async fn poll_again(&self) {
        let name = self.blogs.names().next().unwrap();
        let last = || {
            let last = format!(
                "SELECT max(encode(key, 'hex')) FROM rows_items WHERE substring(key FOR 4) = \
                 (SELECT value FROM rows_feed_names WHERE key = convert_to('{name}', 'UTF8'))"
            );
            self.cluster.ask(&last)
        };
        let before = last();
        let at = format!("/poll/{name}?now");
        for node in 0..self.cluster.nodes.len() {
            let answer = self.operator(node, Method::POST, &at, "").await;
            assert_eq!(answer.status, 200, "{:?}", answer.body);
        }
        assert_eq!(last(), before);
    }
}
