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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        alerts::testing::message,
        clock::System,
        layers::{ClientConfig, callback},
    };
    use testkit::publisher::{Publisher, with_headers};

    /// What comes of an answer with this status.
    async fn check(status: u16, words: Option<&str>) {
        let answer = move |_: &_| with_headers(status, &[("location", "http://10.0.0.1/")], "");
        let hook = Publisher::of(answer).await;
        let way = AlertWebhook {
            client: callback(&ClientConfig::for_callbacks()).unwrap(),
            user_agent: HeaderValue::from_static("everfeed"),
            clock: Arc::new(System),
            url: Url::parse(&hook.url("/hook")).unwrap(),
            secret: Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
            public_url: "https://feeds.example/".into(),
        };
        let why = way.send(&message("a")).await.err();
        assert_eq!(why.is_some(), words.is_some(), "{why:?}");
        let why = why.unwrap_or_default();
        assert!(why.contains(words.unwrap_or_default()), "{why}");
        assert_eq!(hook.requests().len(), 1);
    }

    #[tokio::test]
    async fn any_2xx_takes_a_message_and_a_redirect_is_not_followed() {
        check(204, None).await;
        check(500, Some("it answered 500")).await;
        check(307, Some("redirects are not followed")).await;
    }
}
