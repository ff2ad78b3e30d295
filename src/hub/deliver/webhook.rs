//! A webhook: deliveries, each a POST of one change as JSON, signed as Standard Webhooks say; not which
//! change.

use super::{
    Deliver, Delivered, Delivery, answer,
    question::{Question, Verdict},
};
use crate::{
    catalog::Destination,
    clock::Clock,
    feed::{cursor::Toc, stamp::Stamp},
    hub::{callback_permits::CallbackPermit, client::CallbackClient},
    layers::{Request, Trusted},
    standard_webhooks,
    store::subscriptions::WebhookTarget,
};
use futures_util::future::{BoxFuture, FutureExt as _};
use http::header::{CONTENT_TYPE, USER_AGENT};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{sync::Arc, time::UNIX_EPOCH};
use url::Url;

/// The way to a webhook.
pub(super) struct WebhookWay {
    pub(super) client: CallbackClient,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) target: WebhookTarget,
}

impl Deliver for WebhookWay {
    fn destination(&self) -> Destination {
        Destination::of(self.target.url())
    }

    /// The operator wants it, so nobody is asked.
    fn ask<'a>(&'a self, _: &'a Question, _: &'a mut CallbackPermit) -> BoxFuture<'a, Verdict> {
        async { Verdict::unaskable() }.boxed()
    }

    fn deliver<'a>(
        &'a self,
        delivery: Delivery,
        place: &'a mut CallbackPermit,
    ) -> BoxFuture<'a, Delivered> {
        async move {
            let request = self.request(&delivery);
            answer::to(request, &self.client, place, &*self.clock).await
        }
        .boxed()
    }
}

impl WebhookWay {
    fn request(&self, delivery: &Delivery) -> Option<Request> {
        let page = &delivery.page;
        let message = if page.count == 0 {
            Message::of_channel(&page.body, &delivery.prev, page.head.metadata_t)?
        } else {
            Message::of(&page.body, &delivery.prev, &page.last_cursor)?
        };
        let sent_at = self.clock.now().duration_since(UNIX_EPOCH);
        let sent_at = sent_at.unwrap_or_default().as_secs();
        let key = standard_webhooks::key(&self.target.secret)?;
        let signature = standard_webhooks::signature(&key, &message.id, sent_at, &message.body);
        let url = Url::parse(self.target.url()).ok()?;
        http::Request::post(self.target.url())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, &self.client.user_agent)
            .header("webhook-id", message.id)
            .header("webhook-timestamp", sent_at)
            .header("webhook-signature", signature)
            // The operator named this address.
            .extension(Trusted::origin_of(&url))
            .body(message.body.into())
            .ok()
    }
}

/// One change, as it is sent.
struct Message {
    /// The same for each try of the same change: the id of the item, or `feed`, and its T in
    /// microseconds.
    id: String,
    body: Vec<u8>,
}

/// The parts of a page that a message is made of.
#[derive(Deserialize)]
struct PagePart<'a> {
    #[serde(borrow)]
    feed: &'a RawValue,
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

/// The parts of an activity that a message names.
#[derive(Deserialize)]
struct ActivityPart {
    id: String,
    verb: String,
    modified: String,
}

impl Message {
    /// The message of a page with one item; `None` for any other.
    fn of(page: &[u8], previous: &str, cursor: &str) -> Option<Self> {
        let page: PagePart<'_> = serde_json::from_slice(page).ok()?;
        let [item] = page.items[..] else { return None };
        let activity: ActivityPart = serde_json::from_str(item.get()).ok()?;
        let t = Toc::parse(cursor)?.t.micros();
        let kind = match activity.verb.as_str() {
            "delete" => "post.deleted",
            "update" => "post.updated",
            _ => "post.created",
        };
        let body = format!(
            "{{\"type\":\"{kind}\",\"timestamp\":{},\"data\":{{\"previous_cursor\":{},\"cursor\":{},\"feed\":{},\"item\":{}}}}}",
            text(&activity.modified)?,
            text(previous)?,
            text(cursor)?,
            page.feed,
            item
        );
        Some(Self {
            id: format!("{}_{t}", activity.id),
            body: body.into_bytes(),
        })
    }

    /// The message of a page without items: the feed itself has changed, at this time.
    fn of_channel(page: &[u8], cursor: &str, at: Stamp) -> Option<Self> {
        let page: PagePart<'_> = serde_json::from_slice(page).ok()?;
        let (at_text, cursor) = (text(&at.rfc3339())?, text(cursor)?);
        let body = format!(
            "{{\"type\":\"feed.updated\",\"timestamp\":{at_text},\"data\":{{\"previous_cursor\":{cursor},\"cursor\":{cursor},\"feed\":{}}}}}",
            page.feed
        );
        Some(Self {
            id: format!("feed_{}", at.micros()),
            body: body.into_bytes(),
        })
    }
}

/// A text in JSON.
fn text(value: &str) -> Option<String> {
    serde_json::to_string(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_several_items_or_none_is_no_message() {
        let page = |items: &str| format!("{{\"feed\":{{}},\"items\":[{items}]}}");
        let item = "{\"id\":\"a\",\"verb\":\"post\",\"modified\":\"2026-01-01T00:00:00Z\"}";
        let of = |items: &str| Message::of(page(items).as_bytes(), "1_0_1", "2_0_1");
        assert!(of("").is_none());
        assert!(of(&format!("{item},{item}")).is_none());
        let one = of(item).unwrap();
        assert_eq!(one.id, "a_2000000");
        assert!(serde_json::from_slice::<serde_json::Value>(&one.body).is_ok());
    }
}
