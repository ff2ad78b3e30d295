//! A listener of rssCloud: how it is tried, and deliveries, each a POST of the feed's URL, and nothing
//! of its items (LEGACY C-4); not when.

use super::{
    Deliver, Delivered, Delivery, NotTaken, answer,
    question::{self, Question, Verdict},
};
use crate::{
    catalog::Destination,
    clock::Clock,
    edge::xml_rpc::{call, is_done},
    hub::{callback_permits::CallbackPermit, client::CallbackClient},
    layers::{FetchError, Request},
    store::subscriptions::CloudTarget,
};
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use http::{
    Response,
    header::{CONTENT_TYPE, USER_AGENT},
};
use std::sync::Arc;
use url::form_urlencoded;

/// The way to a listener.
pub(super) struct CloudWay {
    pub(super) client: CallbackClient,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) target: CloudTarget,
}

impl Deliver for CloudWay {
    fn destination(&self) -> Destination {
        Destination::of(self.target.url())
    }

    /// One notification speaks of everything that has changed: the listener reads the feed as it is
    /// now.
    fn carries_items(&self) -> bool {
        false
    }

    /// One that named its domain is to echo the challenge; one at the address from which the request
    /// came is tried, and any 2xx will do.
    fn ask<'a>(&'a self, _: &'a Question, place: &'a mut CallbackPermit) -> BoxFuture<'a, Verdict> {
        async move {
            let challenge = self.target.is_challenged.then(question::challenge);
            let request = match &challenge {
                Some(challenge) => self.question(challenge),
                None => self.notification(),
            };
            let Some(request) = request else {
                return Verdict::unaskable();
            };
            let answer = self.client.send(request, place).await;
            if let Some(why) = self.fault(&answer) {
                return Verdict::Refused(why.to_owned());
            }
            question::judge(&answer, challenge.as_deref(), false, self.clock.now())
        }
        .boxed()
    }

    fn deliver<'a>(
        &'a self,
        _: Delivery,
        place: &'a mut CallbackPermit,
    ) -> BoxFuture<'a, Delivered> {
        async move {
            let Some(request) = self.notification() else {
                return Delivered::Unsendable;
            };
            let answer = self.client.send(request, place).await;
            if let Some(why) = self.fault(&answer) {
                return Delivered::Failed(NotTaken {
                    why: why.to_owned(),
                    retry_after: None,
                    too_large: false,
                });
            }
            answer::judge(&answer, self.clock.now())
        }
        .boxed()
    }
}

impl CloudWay {
    fn question(&self, challenge: &str) -> Option<Request> {
        let feed_url = self.target.feed_url.as_str();
        let params = [("url", feed_url), ("challenge", challenge)];
        let url = question::url(self.target.url(), &params)?;
        let request = http::Request::get(url).header(USER_AGENT, &self.client.user_agent);
        request.body(Bytes::new()).ok()
    }

    /// The reason why an answer to a call is no yes, whatever its status.
    fn fault(&self, answer: &Result<Response<Bytes>, FetchError>) -> Option<&'static str> {
        self.target.procedure.as_ref()?;
        let answer = answer.as_ref().ok()?;
        let is_no = answer.status().is_success() && !is_done(answer.body());
        is_no.then_some("its answer is no response of XML-RPC, or a fault")
    }

    /// The request that says that a feed has changed.
    fn notification(&self) -> Option<Request> {
        let request =
            http::Request::post(self.target.url()).header(USER_AGENT, &self.client.user_agent);
        if let Some(procedure) = &self.target.procedure {
            let body = call(procedure, &self.target.feed_url);
            return request
                .header(CONTENT_TYPE, "text/xml; charset=utf-8")
                .body(Bytes::from(body))
                .ok();
        }
        let body = form_urlencoded::Serializer::new(String::new())
            .append_pair("url", &self.target.feed_url)
            .finish();
        request
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Bytes::from(body))
            .ok()
    }
}
