//! Webhooks of the configuration get each change once, in order and signed.

use super::rig::{Call, Reply, Rig};
use crate::{
    feed::cursor::Toc,
    hub::{Config, ProcessAddresses, WantedSubscribers, WebhookSettings},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;
use std::sync::Arc;

const KEY: [u8; 32] = [7; 32];

fn webhook(filter: &str) -> WebhookSettings {
    let secret = format!("whsec_{}", STANDARD.encode(KEY));
    let text = format!(
        "url = \"http://hook.example/x\"\nfeed = \"blog\"\nfilter = \"{filter}\"\nsecret = \"{secret}\"\n"
    );
    toml::from_str(&text).unwrap()
}

/// A hub with this webhook, which was started with it.
async fn rig(webhooks: Vec<WebhookSettings>) -> Rig {
    let mut rig = Rig::new().await;
    rig.add(1).await;
    rig.webhooks = webhooks;
    rig.killed().await
}

/// The message of a call whose signature is checked.
fn message(call: &Call) -> Value {
    let mut mac = Hmac::<Sha256>::new_from_slice(&KEY).unwrap();
    let (id, at) = (call.header("webhook-id"), call.header("webhook-timestamp"));
    mac.update(format!("{id}.{at}.").as_bytes());
    mac.update(&call.body);
    let signature = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    assert_eq!(call.header("webhook-signature"), signature);
    serde_json::from_slice(&call.body).unwrap()
}

fn kinds(calls: &[Call]) -> Vec<String> {
    let kind = |call: &Call| message(call)["type"].as_str().unwrap().to_owned();
    calls.iter().map(kind).collect()
}

#[tokio::test(start_paused = true)]
async fn each_change_is_a_signed_message_of_its_own_in_order_with_its_cursors() {
    let rig = rig(vec![webhook("")]).await;
    rig.add_all(2..5).await;
    rig.edit(2, "another").await;
    rig.delete(3).await;
    rig.wait(5).await;
    let calls = rig.net.taken();
    let expect = [
        "post.created",
        "post.created",
        "post.created",
        "post.updated",
        "post.deleted",
    ];
    // Of several changes of one post the last one counts, as everywhere.
    let told = kinds(&calls);
    assert_eq!(told[told.len() - 2..], expect[3..], "{told:?}");
    let mut previous: Option<Value> = None;
    for call in &calls {
        let data = message(call)["data"].clone();
        assert_eq!(call.url, "http://hook.example/x");
        let cursor = Toc::parse(data["cursor"].as_str().unwrap()).unwrap();
        let t = cursor.t.micros();
        let id = format!("{}_{t}", data["item"]["id"].as_str().unwrap());
        assert_eq!(call.header("webhook-id"), id);
        if let Some(previous) = previous {
            assert_eq!(data["previous_cursor"], previous);
        }
        previous = Some(data["cursor"].clone());
    }
    assert_eq!(previous.unwrap(), rig.head().await, "it ends at the newest");
}

// Its protocol has no word for an end.
#[tokio::test(start_paused = true)]
async fn a_webhook_that_is_there_before_its_feed_hears_of_changes_alone() {
    let mut rig = Rig::unready(Config::default()).await;
    rig.webhooks = vec![webhook("")];
    let rig = rig.killed().await;
    rig.commit(vec![]).await;
    rig.wait(1).await;
    assert_eq!(kinds(&rig.net.pushes()), [""; 0]);
    rig.add(1).await;
    assert_eq!(kinds(&rig.net.pushes()), ["post.created"]);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_the_operator_ends_is_not_told() {
    let rig = rig(vec![webhook("")]).await;
    let wanted = WantedSubscribers::default();
    let number = rig.hub.subscribers(&wanted).await.unwrap().subscribers[0].number;
    assert_eq!(rig.hub.end_subscription(number).await.unwrap(), Some(false));
    rig.wait(1).await;
    assert_eq!(rig.net.taken().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_not_taken_is_tried_again_under_the_same_id_and_restarts_lose_nothing() {
    let rig = rig(vec![webhook("")]).await;
    rig.net.on_push(|_| Reply::status(500));
    rig.add(2).await;
    rig.wait(60).await;
    let tries = rig.net.taken();
    assert!(tries.len() > 1);
    for next in &tries[1..] {
        assert_eq!(next.header("webhook-id"), tries[0].header("webhook-id"));
    }
    rig.net.willing();
    let rig = rig.killed().await;
    rig.add(3).await;
    rig.wait(3600).await;
    let calls = rig.net.taken();
    assert_eq!(kinds(&calls), ["post.created", "post.created"]);
    assert_eq!(calls[0].header("webhook-id"), tries[0].header("webhook-id"));
    let rig = rig.killed().await;
    rig.wait(60).await;
    assert!(rig.net.taken().is_empty(), "nothing is sent twice");
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_is_not_configured_any_more_ends_and_a_new_one_begins_with_the_next_change()
{
    let mut rig = rig(vec![webhook("")]).await;
    rig.webhooks.clear();
    let mut rig = rig.killed().await;
    assert!(rig.subs().await.is_empty());
    rig.add(2).await;
    rig.webhooks = vec![webhook("")];
    let rig = rig.killed().await;
    rig.wait(5).await;
    assert!(rig.net.taken().is_empty());
    rig.add(3).await;
    rig.wait(5).await;
    assert_eq!(rig.net.taken().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_filter_passes_what_it_hides_and_410_ends_a_webhook() {
    let rig = rig(vec![webhook("deleted=only")]).await;
    rig.add_all(2..4).await;
    rig.delete(2).await;
    rig.wait(5).await;
    assert_eq!(kinds(&rig.net.taken()), ["post.deleted"]);
    rig.net.on_push(|_| Reply::status(410));
    rig.delete(3).await;
    rig.wait(5).await;
    assert!(rig.subs().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_leads_back_to_us_is_not_sent_and_the_operator_is_told() {
    let rig = rig(vec![webhook("")]).await;
    let own = ProcessAddresses {
        site_hosts: Arc::new(|| vec!["hook.example".to_owned()]),
        answers: std::sync::Arc::new(|_| true),
        ..ProcessAddresses::default()
    };
    let rig = rig.beside(crate::hub::Config::default(), own).await;
    rig.add(2).await;
    rig.wait(5).await;
    assert!(rig.net.taken().is_empty());
    let listed = rig.hub.subscribers(&WantedSubscribers::default()).await;
    let listed = listed.unwrap().subscribers.remove(0);
    assert_eq!((&*listed.dialect, &*listed.state), ("webhook", "failing"));
    // Once it leads elsewhere, it gets what it missed.
    let rig = rig
        .beside(crate::hub::Config::default(), ProcessAddresses::default())
        .await;
    rig.wait(3600).await;
    assert_eq!(kinds(&rig.net.taken()), ["post.created"]);
}

#[tokio::test(start_paused = true)]
async fn a_reload_begins_and_ends_webhooks_and_those_that_stay_keep_their_positions() {
    let stays = webhook("");
    let rig = rig(vec![stays.clone()]).await;
    rig.net.on_push(|_| Reply::status(500));
    rig.add(2).await;
    rig.wait(5).await;
    let refused = rig.net.taken();
    // A second one begins with the next change; the first still has what was refused.
    let second = WebhookSettings {
        url: "http://hook.example/second".parse().unwrap(),
        ..webhook("")
    };
    let both = [stays, second.clone()];
    rig.hub.reload_webhooks(&both).await.unwrap();
    rig.hub.reload_webhooks(&both).await.unwrap();
    assert_eq!(rig.subs().await.len(), 2);
    rig.net.willing();
    rig.add(3).await;
    rig.wait(3600).await;
    let calls = rig.net.taken();
    let of = |end: &str| -> Vec<Call> {
        let calls = calls.iter().filter(|call| call.url.ends_with(end));
        calls.cloned().collect()
    };
    assert_eq!(kinds(&of("/x")), ["post.created", "post.created"]);
    assert_eq!(kinds(&of("/second")), ["post.created"]);
    let (first_try, id) = (&refused[0], of("/x")[0].header("webhook-id").to_owned());
    assert_eq!(first_try.header("webhook-id"), id);
    // One that is not configured any more gets nothing, and the other goes on.
    rig.hub.reload_webhooks(&[second]).await.unwrap();
    rig.add(4).await;
    rig.wait(3600).await;
    let urls: Vec<String> = rig.net.taken().into_iter().map(|call| call.url).collect();
    assert_eq!(urls, ["http://hook.example/second"]);
    assert_eq!(rig.subs().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_reload_changes_the_secret_of_a_webhook_and_sends_nothing_twice() {
    let old = WebhookSettings {
        secret: crate::secret::Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        ..webhook("")
    };
    let rig = rig(vec![old]).await;
    rig.add(2).await;
    rig.wait(5).await;
    assert_eq!(rig.net.taken().len(), 1);
    rig.hub.reload_webhooks(&[webhook("")]).await.unwrap();
    rig.add(3).await;
    rig.wait(5).await;
    // The signature is checked with the new one.
    assert_eq!(kinds(&rig.net.taken()), ["post.created"]);
}
