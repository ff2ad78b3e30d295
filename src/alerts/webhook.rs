//! An alert by webhook: a POST of the message, signed as Standard Webhooks say.

use super::message::AlertMessage;
use crate::{
    clock::Clock,
    layers::{Client, Request, Trusted},
    secret::Secret,
    standard_webhooks,
};
use http::{
    HeaderValue,
    header::{CONTENT_TYPE, USER_AGENT},
};
use std::{sync::Arc, time::UNIX_EPOCH};
use url::Url;

/// The way to a webhook.
pub(super) struct AlertWebhook {
    /// A client that follows no redirects, and whose calls end.
    pub(super) client: Client,
    pub(super) user_agent: HeaderValue,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) url: Url,
    pub(super) secret: Secret,
    pub(super) public_url: String,
}

impl AlertWebhook {
    /// Sends a message. The error is the reason for which it did not arrive.
    pub(super) async fn send(&self, message: &AlertMessage) -> Result<(), String> {
        let request = self.request(message).ok_or("the request cannot be made")?;
        let answer = self.client.send(request).await;
        let answer = answer.map_err(|error| error.to_string())?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status if status.is_redirection() => Err(format!(
                "it answered {status}, and redirects are not followed: give the last URL"
            )),
            status => Err(format!("it answered {status}")),
        }
    }

    fn request(&self, message: &AlertMessage) -> Option<Request> {
        let body = serde_json::to_vec(&message.json(&self.public_url)).ok()?;
        let sent_at = self.clock.now().duration_since(UNIX_EPOCH);
        let sent_at = sent_at.unwrap_or_default().as_secs();
        let key = standard_webhooks::key(&self.secret)?;
        let signature = standard_webhooks::signature(&key, &message.id, sent_at, &body);
        http::Request::post(self.url.as_str())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, &self.user_agent)
            .header("webhook-id", &message.id)
            .header("webhook-timestamp", sent_at)
            .header("webhook-signature", signature)
            // The operator named this address.
            .extension(Trusted::origin_of(&self.url))
            .body(body.into())
            .ok()
    }
}
