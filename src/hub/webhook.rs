//! Webhooks of the configuration: URLs that get every change of a feed, as subscriptions whose terms
//! the operator sets; not how a change is delivered.

use super::{Hub, Shared};
use crate::{
    feed::{filter::Filter, order::Order, view::View},
    render::Representation,
    secret::Secret,
    setting::RefusedSetting,
    standard_webhooks,
    store::{
        StoreError, Subscription, SubscriptionNo,
        subscriptions::{
            Intent, Lease, LeaseTerms, NewSubscription, Pending, Progress, Start, Target,
            WebhookTarget,
        },
    },
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use tracing::{info, warn};
use url::Url;

/// Webhooks at most.
pub const WEBHOOKS_MAX: usize = 100;
/// Lease of a webhook, seconds: ten years from each start. Its place in the configuration decides.
const LEASE_SECS: u64 = 315_360_000;

/// `[[webhook]]`: a URL that gets every change of a feed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookSettings {
    /// The URL. It may be at any address, as the operator names it.
    pub url: Url,
    /// The name of the feed, or of the group.
    pub feed: String,
    /// The filter, as it is spelt in the query of a page; empty for every change.
    #[serde(default)]
    pub filter: String,
    /// The secret that signs: `whsec_` and the base64 of its key.
    pub secret: Secret,
}

impl WebhookSettings {
    /// Everything in it that cannot be meant, whatever feeds there are.
    pub fn problems(&self) -> Vec<RefusedSetting> {
        let mut problems = Vec::new();
        let is_bare = self.url.username().is_empty()
            && self.url.password().is_none()
            && self.url.fragment().is_none();
        if !matches!(self.url.scheme(), "http" | "https") || !is_bare {
            let wanted = "give an http or https URL without a password and without `#`";
            problems.push(RefusedSetting::new("url", "another URL", wanted));
        }
        if let Err(why) = Filter::spelt(&self.filter) {
            problems.push(RefusedSetting::new(
                "filter",
                format!("\"{}\"", self.filter),
                why,
            ));
        }
        if standard_webhooks::key(&self.secret).is_none() {
            let wanted = standard_webhooks::SECRET_WANTED;
            problems.push(RefusedSetting::new("secret", "***", wanted));
        }
        problems
    }
}

impl Hub {
    /// Makes the subscriptions of webhooks, or renews their terms; a new one begins with the next
    /// change. Tells their numbers.
    pub(super) async fn register_webhooks(
        &self,
        webhooks: &[WebhookSettings],
    ) -> Result<BTreeSet<SubscriptionNo>, StoreError> {
        let mut registered = BTreeSet::new();
        for webhook in webhooks {
            let catalog = self.shared.gate.catalog.snapshot();
            let feed = catalog.feed(&webhook.feed).map(|feed| feed.no);
            // One whose feed is not there any more keeps its position, and waits.
            let Some(feed) = feed.or(catalog.withdrawn(&webhook.feed)) else {
                warn!(
                    "A webhook is for the feed `{}`, which there is not",
                    webhook.feed
                );
                continue;
            };
            // The configuration was checked.
            let Ok(filter) = Filter::spelt(&webhook.filter) else {
                continue;
            };
            let view = View {
                feed,
                order: Order::MODIFIED,
                filter,
            };
            let sub = registered_one(&self.shared, webhook, view).await?;
            registered.insert(sub);
        }
        Ok(registered)
    }
}

async fn registered_one(
    shared: &Shared,
    webhook: &WebhookSettings,
    view: View,
) -> Result<SubscriptionNo, StoreError> {
    let store = &shared.store;
    let site = shared.readers.site();
    let form = Representation::JSON;
    let topic = site.topic_url(&webhook.feed, form, view.order, &view.filter);
    let target = Target::Webhook(WebhookTarget::new(
        webhook.url.as_str(),
        webhook.secret.clone(),
    ));
    let now = shared.now();
    let terms = LeaseTerms {
        secs: LEASE_SECS,
        auto_refresh: false,
    };
    let lease = Some(Lease {
        until: now.plus_secs(LEASE_SECS),
        terms,
    });
    let known = shared
        .find_subscription(view.feed, &topic, target.address())
        .await?;
    let (known, position) = match known {
        Some((sub, _)) => (sub, None),
        None => {
            let acked = shared.head(&view).await?;
            let pending = Pending {
                intent: Intent::Subscribe {
                    target: target.clone(),
                    lease: terms,
                },
                attempts: 0,
                next_try: now,
                give_up_at: now,
                start: Start::Head(acked.clone()),
                principal: None,
                scanned: None,
            };
            let new = NewSubscription {
                view: view.clone(),
                representation: Representation::JSON.name(),
                topic,
                target: target.clone(),
                pending,
            };
            let position = Progress {
                acked,
                ..Progress::default()
            };
            let made = store.subscribe(new).await?;
            let host = super::host_of(webhook.url.as_str());
            info!(callback.host = %host, "Changes of `{}` go to a webhook at {host} from now on", webhook.feed);
            (made, Some(position))
        }
    };
    let no = known.no;
    let renewed = Subscription {
        view,
        target,
        lease,
        pending: None,
        ..known
    };
    store.change_subscription(renewed, position).await?;
    Ok(no)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_that_cannot_be_meant_is_refused_by_its_key_and_its_secret_is_not_shown() {
        let good = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let check = |url: &str, filter: &str, secret: &str, expect: &[&str]| {
            let text = format!(
                "url = {url:?}\nfeed = \"blog\"\nfilter = {filter:?}\nsecret = {secret:?}\n"
            );
            let settings: WebhookSettings = toml::from_str(&text).unwrap();
            let problems = settings.problems();
            let keys: Vec<&str> = problems.iter().map(|problem| &*problem.key).collect();
            assert_eq!(keys, expect, "{text}");
            let told = format!(
                "{settings:?} {problems:?} {}",
                serde_json::to_string(&settings).unwrap()
            );
            assert!(!told.contains(secret), "{told}");
        };
        check("https://a.example/hook?x=1", "category=news", good, &[]);
        check("http://127.0.0.1:9000/", "", good, &[]);
        check("ftp://a.example/", "", good, &["url"]);
        check("http://u:p@a.example/", "", good, &["url"]);
        check("http://a.example/#x", "", good, &["url"]);
        check("http://a.example/", "colour=red", good, &["filter"]);
        check("http://a.example/", "deleted=perhaps", good, &["filter"]);
        check("http://a.example/", "", "whsec_c2hvcnQ=", &["secret"]);
        check(
            "http://a.example/",
            "",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            &["secret"],
        );
        check(
            "http://a.example/",
            "",
            "whsec_***not base64***",
            &["secret"],
        );
    }
}
