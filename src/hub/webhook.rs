//! Webhooks of the configuration: URLs that get every change of a feed, as subscriptions whose terms
//! the operator sets; not how a change is delivered.

use super::{
    Hub, Shared,
    command::TaskCommand,
    desk::{commanded, key_of},
};
use crate::{
    feed::{filter::Filter, order::Order, record::FeedNo, view::View},
    render::Representation,
    secret::Secret,
    setting::RefusedSetting,
    standard_webhooks,
    store::{
        StoreError, Subscription, SubscriptionNo, listing,
        subscriptions::{
            Intent, Lease, LeaseTerms, NewSubscription, Pending, Progress, Start, Target,
            WebhookTarget,
        },
    },
};
use futures_util::TryStreamExt as _;
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
            if let Some(view) = self.view_of(webhook) {
                let sub = registered_one(&self.shared, webhook, view).await?;
                registered.insert(sub);
            }
        }
        Ok(registered)
    }

    /// Puts other webhooks in force while the hub works. Those that stay keep their positions, and one
    /// whose secret changed signs with the new one from its next try on; a new one begins with the next
    /// change; all others end. After an error some of them may be in force, and the same call completes
    /// it.
    pub async fn reload_webhooks(&self, webhooks: &[WebhookSettings]) -> Result<(), StoreError> {
        let mut in_force = BTreeSet::new();
        for webhook in webhooks {
            let Some(view) = self.view_of(webhook) else {
                continue;
            };
            let no = match self.registered_before(webhook, &view).await? {
                Some(sub) => {
                    self.retarget(&sub, webhook).await;
                    sub.no
                }
                None => {
                    let no = registered_one(&self.shared, webhook, view).await?;
                    if let Some((sub, progress)) = self.shared.store.subscription(no).await? {
                        self.take_in(&sub, &progress);
                    }
                    no
                }
            };
            in_force.insert(no);
        }
        let mut ended = Vec::new();
        let mut stored = listing::subscriptions(&*self.shared.store, None);
        while let Some((sub, _)) = stored.try_next().await? {
            if matches!(sub.target, Target::Webhook(_)) && !in_force.contains(&sub.no) {
                ended.push(sub);
            }
        }
        for sub in ended {
            let host = super::host_of(sub.target.url());
            info!(callback.host = %host, "A webhook at {host} ends: it is not configured any more");
            self.end_webhook(&sub).await?;
        }
        Ok(())
    }

    /// The subscription of a webhook that this hub has at work or at rest.
    async fn registered_before(
        &self,
        webhook: &WebhookSettings,
        view: &View,
    ) -> Result<Option<Subscription>, StoreError> {
        let shared = &self.shared;
        let (topic, target) = (webhook.topic(shared, view), webhook.target());
        let known = shared.find_subscription(view.feed, &topic, target.address());
        let known = known.await?.map(|(sub, _)| sub);
        Ok(known.filter(|sub| shared.index.knows(key_of(sub))))
    }

    async fn retarget(&self, sub: &Subscription, webhook: &WebhookSettings) {
        let target = webhook.target();
        if sub.target == target {
            return;
        }
        if let Some(mailbox) = self.mailbox(key_of(sub)) {
            let target = Box::new(target);
            let retarget = |done| TaskCommand::Retarget { target, done };
            commanded(&mailbox, retarget).await;
        }
    }

    /// Ends the subscription of a webhook. Its protocol has no word for an end.
    async fn end_webhook(&self, sub: &Subscription) -> Result<(), StoreError> {
        let end = |done| TaskCommand::End {
            is_told: false,
            done,
        };
        let is_ended = match self.mailbox(key_of(sub)) {
            Some(mailbox) => commanded(&mailbox, end).await,
            None => false,
        };
        if !is_ended {
            self.shared.store.end_subscription(sub.no).await?;
        }
        Ok(())
    }

    /// The view of a webhook; `None` for a feed that there is not. One whose feed is not there any more
    /// keeps its position, and waits.
    fn view_of(&self, webhook: &WebhookSettings) -> Option<View> {
        let catalog = self.shared.gate.catalog.snapshot();
        let feed = catalog.feed(&webhook.feed).map(|feed| feed.no);
        let Some(feed) = feed.or(catalog.withdrawn(&webhook.feed)) else {
            warn!(
                "A webhook is for the feed `{}`, which there is not",
                webhook.feed
            );
            return None;
        };
        webhook.view(feed)
    }
}

impl WebhookSettings {
    /// The items that it gets of its feed; `None` for a filter that was refused.
    fn view(&self, feed: FeedNo) -> Option<View> {
        Some(View {
            feed,
            order: Order::MODIFIED,
            filter: Filter::spelt(&self.filter).ok()?,
        })
    }

    fn topic(&self, shared: &Shared, view: &View) -> String {
        let site = shared.readers.site();
        site.topic_url(&self.feed, Representation::JSON, view.order, &view.filter)
    }

    fn target(&self) -> Target {
        Target::Webhook(WebhookTarget::new(self.url.as_str(), self.secret.clone()))
    }
}

async fn registered_one(
    shared: &Shared,
    webhook: &WebhookSettings,
    view: View,
) -> Result<SubscriptionNo, StoreError> {
    let store = &shared.store;
    let (topic, target) = (webhook.topic(shared, &view), webhook.target());
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
