//! The settings beside feeds and groups that a reload puts in force while everything runs: the terms of
//! the hub, the webhooks, the requests to publishers, the alerts, the credentials of origins, and the
//! lists of feeds. All others wait for a start.

use super::upstream_ways::UpstreamWays;
use crate::{
    alerts::AlertSettings,
    catalog::OpmlSettings,
    config::Config,
    hub::{self, Hub, WebhookSettings},
    ingest::{self, CredentialSettings, Credentials},
    setting::differing_keys,
    store::StoreError,
};
use std::sync::Arc;
use tokio::sync::watch;
use url::Url;

/// The settings in force. Cheap to clone; the clones are one.
#[derive(Clone)]
pub(super) struct LiveSettings {
    in_force: Arc<watch::Sender<InForce>>,
    /// Those that requests to publishers read.
    credentials: Credentials,
}

/// The settings, as they are in force.
#[derive(Clone, Debug, PartialEq, Eq)]
struct InForce {
    hub: hub::Config,
    webhooks: Vec<WebhookSettings>,
    upstream: ingest::Config,
    alerts: Vec<AlertSettings>,
    credentials: Vec<CredentialSettings>,
    lists: Vec<OpmlSettings>,
}

/// The lists of feeds in force, and their changes.
pub(super) struct LiveLists(watch::Receiver<InForce>);

/// Wakes when settings may have changed.
pub(super) struct SettingsChanges(watch::Receiver<InForce>);

impl LiveLists {
    /// The lists in force.
    pub(super) fn now(&self) -> Vec<OpmlSettings> {
        self.0.borrow().lists.clone()
    }

    /// Wakes when they may have changed from now on.
    pub(super) fn changes(&self) -> SettingsChanges {
        SettingsChanges(self.0.clone())
    }
}

impl SettingsChanges {
    /// Waits for a change. An error is the end of the process that would change them.
    pub(super) async fn changed(&mut self) -> Result<(), watch::error::RecvError> {
        self.0.changed().await
    }
}

/// The alerts in force, and their changes.
pub(super) struct LiveAlerts(watch::Receiver<InForce>);

impl LiveSettings {
    /// Those of a configuration at the start.
    pub(super) fn of(config: &Config) -> Self {
        let in_force = InForce {
            hub: config.hub.clone(),
            webhooks: config.webhook.clone(),
            upstream: config.upstream.clone(),
            alerts: config.alert.clone(),
            credentials: config.credentials.clone(),
            lists: config.opml.clone(),
        };
        Self {
            credentials: Credentials::of(&in_force.credentials),
            in_force: Arc::new(watch::Sender::new(in_force)),
        }
    }

    /// The credentials that each request reads.
    pub(super) fn credentials(&self) -> Credentials {
        self.credentials.clone()
    }

    /// The terms of the hub.
    pub(super) fn hub(&self) -> hub::Config {
        self.in_force.borrow().hub.clone()
    }

    /// The terms of requests to publishers.
    pub(super) fn upstream(&self) -> ingest::Config {
        self.in_force.borrow().upstream.clone()
    }

    /// Puts those of a configuration in force, here and in the work of this process. Tells the keys
    /// that changed. An error changes nothing.
    pub(super) fn reload_upstream(
        &self,
        config: &Config,
        public_url: &Url,
        ways: Option<&UpstreamWays>,
    ) -> anyhow::Result<Vec<String>> {
        let before = self.upstream();
        let after = before.reloaded(&config.upstream);
        let keys = upstream_keys(&before, &after);
        if keys.is_empty() {
            return Ok(keys);
        }
        if let Some(ways) = ways {
            ways.reload(&after, after.contact_url_or(public_url))?;
        }
        self.in_force
            .send_modify(|in_force| in_force.upstream = after);
        Ok(keys)
    }

    /// The webhooks.
    pub(super) fn webhooks(&self) -> Vec<WebhookSettings> {
        self.in_force.borrow().webhooks.clone()
    }

    /// The alerts, for whoever sends them.
    pub(super) fn alerts(&self) -> LiveAlerts {
        LiveAlerts(self.in_force.subscribe())
    }

    /// The lists of feeds, for whoever reads them.
    pub(super) fn lists(&self) -> LiveLists {
        LiveLists(self.in_force.subscribe())
    }

    /// The keys that would change if a configuration were put in force.
    pub(super) fn changes(&self, config: &Config) -> Vec<String> {
        let before = self.in_force.borrow();
        before.differing_keys(&before.reloaded(config))
    }

    /// Puts the webhooks of a configuration in force, here and in the hub of this process. True where
    /// they changed. After an error those before stay in force, and the next reload tries it again.
    pub(super) async fn reload_webhooks(
        &self,
        config: &Config,
        hub: Option<&Hub>,
    ) -> Result<bool, StoreError> {
        if self.webhooks() == config.webhook {
            return Ok(false);
        }
        if let Some(hub) = hub {
            hub.reload_webhooks(&config.webhook).await?;
        }
        let webhooks = config.webhook.clone();
        self.in_force
            .send_modify(|in_force| in_force.webhooks = webhooks);
        Ok(true)
    }

    /// Puts those of a configuration in force, but for its webhooks and `[upstream]`, here and in the hub of this
    /// process. Tells the keys that changed. Nothing of it can fail.
    pub(super) fn reload(&self, config: &Config, hub: Option<&Hub>) -> Vec<String> {
        let before = self.in_force.borrow().clone();
        let after = InForce {
            webhooks: before.webhooks.clone(),
            upstream: before.upstream.clone(),
            ..before.reloaded(config)
        };
        let changed = before.differing_keys(&after);
        if before.credentials != after.credentials {
            self.credentials.replace(&after.credentials);
        }
        if let Some(hub) = hub {
            hub.reload(&after.hub);
        }
        if before != after {
            self.in_force.send_replace(after);
        }
        changed
    }
}

impl InForce {
    /// The settings in force once a configuration is.
    fn reloaded(&self, config: &Config) -> Self {
        Self {
            hub: self.hub.reloaded(&config.hub),
            webhooks: config.webhook.clone(),
            upstream: self.upstream.reloaded(&config.upstream),
            alerts: config.alert.clone(),
            credentials: config.credentials.clone(),
            lists: config.opml.clone(),
        }
    }

    /// The keys in which others differ; of a list its name.
    fn differing_keys(&self, other: &Self) -> Vec<String> {
        let of_hub = differing_keys(&self.hub, &other.hub);
        let mut keys: Vec<String> = of_hub.iter().map(|key| format!("hub.{key}")).collect();
        if self.credentials != other.credentials {
            keys.push("credentials".to_owned());
        }
        keys.extend(upstream_keys(&self.upstream, &other.upstream));
        if self.webhooks != other.webhooks {
            keys.push("webhook".to_owned());
        }
        if self.alerts != other.alerts {
            keys.push("alert".to_owned());
        }
        if self.lists != other.lists {
            keys.push("opml".to_owned());
        }
        keys
    }
}

/// The keys in which two `[upstream]` differ.
fn upstream_keys(one: &ingest::Config, other: &ingest::Config) -> Vec<String> {
    let keys = differing_keys(one, other).into_iter();
    keys.map(|key| format!("upstream.{key}")).collect()
}

impl LiveAlerts {
    /// The alerts in force.
    pub(super) fn now(&mut self) -> Vec<AlertSettings> {
        self.0.borrow_and_update().alerts.clone()
    }

    /// True where they may have changed since they were read.
    pub(super) fn have_changed(&self) -> bool {
        self.0.has_changed().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::{Effect, effect},
        setting::by_key,
    };
    use serde_json::{Value, json};

    fn config(text: &str) -> Config {
        let start = "[server]\npublic_url = \"http://b.example\"\n[store]\npath = \"x\"\n";
        let feed = "[[feed]]\nname = \"blog\"\nurl = \"http://p.example/feed\"\n";
        Config::parse("test", &format!("{start}{text}{feed}")).unwrap()
    }

    #[test]
    fn each_key_of_the_hub_is_taken_in_as_the_table_of_keys_says() {
        let before = hub::Config::default();
        for (key, value) in by_key(&before) {
            let other = match &value {
                Value::Bool(is) => json!(!is),
                Value::Number(number) => json!(number.as_u64().unwrap() + 1),
                Value::Array(_) => json!(["https://reader.example/"]),
                other => panic!("{key}: {other}"),
            };
            let mut written = serde_json::to_value(&before).unwrap();
            written[&key] = other.clone();
            let new: hub::Config = serde_json::from_value(written).unwrap();
            let after = serde_json::to_value(before.reloaded(&new)).unwrap();
            let expect = match effect(&format!("hub.{key}")) {
                Effect::Reload => other,
                Effect::Restart => value,
            };
            assert_eq!(after[&key], expect, "{key}");
        }
    }

    #[test]
    fn a_reload_tells_each_key_that_changed_and_whoever_asks_has_it() {
        let live = LiveSettings::of(&config(""));
        let mut alerts = live.alerts();
        assert!(alerts.now().is_empty() && !alerts.have_changed());
        let credentials = live.credentials();
        let new = config(
            "[hub]\nlease_max_secs = 5000000\nin_flight_max = 7\n\
             [[credentials]]\norigin = \"http://p.example\"\nbearer = \"x\"\n\
             [[alert]]\ncommand = [\"/bin/true\"]\n",
        );
        let would_change = live.changes(&new);
        let changed = live.reload(&new, None);
        assert_eq!(would_change, changed);
        assert_eq!(changed, ["hub.lease_max_secs", "credentials", "alert"]);
        assert_eq!(live.hub().lease_max_secs, 5_000_000);
        assert_eq!(
            live.hub().in_flight_max,
            hub::Config::default().in_flight_max
        );
        let url = url::Url::parse("http://p.example/feed").unwrap();
        assert_eq!(credentials.at(&url).len(), 1);
        assert!(alerts.have_changed() && alerts.now().len() == 1);
        assert!(live.reload(&new, None).is_empty() && !alerts.have_changed());
        live.reload(&config(""), None);
        assert!(credentials.at(&url).is_empty());
    }

    #[tokio::test]
    async fn a_reload_has_the_webhooks_of_the_file_and_tells_that_they_changed() {
        let live = LiveSettings::of(&config(""));
        let webhook = "[[webhook]]\nurl = \"http://hook.example/\"\nfeed = \"blog\"\n\
                       secret = \"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"\n";
        let new = config(webhook);
        assert_eq!(live.changes(&new), ["webhook"]);
        // What cannot fail leaves them alone.
        assert!(live.reload(&new, None).is_empty() && live.webhooks().is_empty());
        assert!(live.reload_webhooks(&new, None).await.unwrap());
        assert_eq!(live.webhooks(), new.webhook);
        assert!(live.changes(&new).is_empty());
        assert!(!live.reload_webhooks(&new, None).await.unwrap());
    }

    #[test]
    fn each_key_of_upstream_is_taken_in_as_the_table_of_keys_says() {
        let before = ingest::Config::default();
        for (key, value) in by_key(&before) {
            let other = match (&*key, &value) {
                ("contact_url", _) => json!("https://contact.example/"),
                ("signature_agent", _) => json!("dictionary"),
                ("large_domains", _) => json!(["large.example"]),
                (_, Value::Null) => json!("/a/key.pem"),
                (_, Value::Number(number)) => json!(number.as_u64().unwrap() + 1),
                other => panic!("{other:?}"),
            };
            let mut written = serde_json::to_value(&before).unwrap();
            written[&key] = other.clone();
            let new: ingest::Config = serde_json::from_value(written).unwrap();
            let after = serde_json::to_value(before.reloaded(&new)).unwrap();
            let expect = match effect(&format!("upstream.{key}")) {
                Effect::Reload => other,
                Effect::Restart => value,
            };
            assert_eq!(after[&key], expect, "{key}");
        }
    }

    #[test]
    fn a_reload_tells_the_keys_of_upstream_and_whoever_begins_to_work_has_them() {
        let live = LiveSettings::of(&config(""));
        let new = config("[upstream]\ntotal_secs = 7\npolls_in_flight_max = 9\n");
        assert_eq!(live.changes(&new), ["upstream.total_secs"]);
        let url = Url::parse("http://b.example/").unwrap();
        let changed = live.reload_upstream(&new, &url, None).unwrap();
        assert_eq!(changed, ["upstream.total_secs"]);
        assert_eq!(live.upstream().total_secs, 7);
        let usual = ingest::Config::default().polls_in_flight_max;
        assert_eq!(live.upstream().polls_in_flight_max, usual);
        assert!(live.reload_upstream(&new, &url, None).unwrap().is_empty());
    }
}
