//! A callback of WebSub or one of its ancestors: the question with a challenge, and deliveries, each a
//! POST of the page, signed; not which page.

use super::{
    Deliver, Delivered, Delivery, answer,
    question::{self, Question, Verdict},
};
use crate::{
    catalog::Destination,
    clock::Clock,
    feed::lineage::GENERATION,
    hub::{client::CallbackClient, places::Place, signature},
    layers::Request,
    store::subscriptions::{CallbackTarget, Dialect},
};
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use http::header::{CONTENT_TYPE, LINK, USER_AGENT};
use std::sync::Arc;

/// The way to a callback.
pub(super) struct CallbackWay {
    pub(super) client: CallbackClient,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) target: CallbackTarget,
}

impl Deliver for CallbackWay {
    fn destination(&self) -> Destination {
        Destination::of(&self.target.url)
    }

    fn ask<'a>(&'a self, question: &'a Question, place: &'a mut Place) -> BoxFuture<'a, Verdict> {
        async move {
            let challenge = question::challenge();
            let Some(request) = self.question(question, &challenge) else {
                return Verdict::unaskable();
            };
            let answer = self.client.send(request, place).await;
            let lenient = self.target.dialect == Dialect::Legacy && !question.awaited;
            question::judge(&answer, Some(&challenge), lenient, self.clock.now())
        }
        .boxed()
    }

    fn denial(&self, reason: &str, may_return: bool) -> Option<Request> {
        self.get(&[
            ("hub.mode", "denied"),
            ("hub.topic", self.target.topic_as_sent.as_str()),
            ("hub.reason", reason),
            ("hub.resubscribe", if may_return { "true" } else { "false" }),
        ])
    }

    fn deliver<'a>(&'a self, delivery: Delivery, place: &'a mut Place) -> BoxFuture<'a, Delivered> {
        async move {
            let Some(request) = self.request(&delivery) else {
                return Delivered::Unsendable;
            };
            answer::judge(&self.client.send(request, place).await, self.clock.now())
        }
        .boxed()
    }
}

impl CallbackWay {
    fn question(&self, question: &Question, challenge: &str) -> Option<Request> {
        let lease = question.lease_secs.map(|secs| secs.to_string());
        let mut params = vec![
            ("hub.mode", question.mode),
            ("hub.topic", self.target.topic_as_sent.as_str()),
            ("hub.challenge", challenge),
        ];
        let more = [
            ("hub.lease_seconds", lease.as_deref()),
            ("hub.verify_token", self.target.verify_token.as_deref()),
            ("hub.cursor", question.cursor.as_deref()),
        ];
        params.extend(
            more.into_iter()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        self.get(&params)
    }

    fn get(&self, params: &[(&str, &str)]) -> Option<Request> {
        let url = question::url(&self.target.url, params)?;
        let request = http::Request::get(url).header(USER_AGENT, &self.client.user_agent);
        request.body(Bytes::new()).ok()
    }

    /// The request. Its headers are these and no others; nothing of upstream's is passed on. The
    /// body goes uncompressed, since the signature is over the bytes sent (W-18).
    fn request(&self, delivery: &Delivery) -> Option<Request> {
        let Delivery {
            representation,
            link,
            prev,
            page,
        } = delivery;
        let mut request = http::Request::post(self.target.url.as_str())
            .header(CONTENT_TYPE, representation.content_type())
            .header(LINK, link)
            .header(USER_AGENT, &self.client.user_agent)
            .header("smart-feed-prev", prev)
            .header("smart-feed-last", page.last_cursor.as_str())
            .header(GENERATION, page.head.generation.to_string());
        if let Some(total) = page.total {
            request = request.header("smart-feed-total", total);
        }
        if let Some(secret) = &self.target.secret {
            let signature =
                signature::signature(self.target.algo, secret.reveal().as_bytes(), &page.body);
            request = request.header("x-hub-signature", signature);
        }
        request.body(page.body.clone()).ok()
    }
}
