//! A callback of WebSub or one of its ancestors: the question with a challenge, and deliveries, each a
//! request with the page, signed; not which page.

use super::{
    Deliver, Delivered, Delivery, answer,
    question::{self, Question, Verdict},
};
use crate::{
    catalog::Destination,
    clock::Clock,
    feed::{lineage::GENERATION, page::DEGRADED, stamp::Stamp, view::Deletions},
    hub::{callback_permits::CallbackPermit, client::CallbackClient, signature},
    layers::Request,
    store::subscriptions::{CallbackTarget, Dialect, Told},
};
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use http::{
    HeaderName, HeaderValue, Method,
    header::{CONTENT_TYPE, DATE, ETAG, LAST_MODIFIED, LINK, USER_AGENT},
};
use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

/// The directive for a resource.
const METHOD_OVERRIDE: HeaderName = HeaderName::from_static("x-http-method-override");
/// The signature of a push, and of a challenge.
const SIGNATURE: HeaderName = HeaderName::from_static("x-hub-signature");
/// The longest header of a resource that is copied, bytes.
const COPIED_BYTES_MAX: usize = 1024;

// Decides: Which headers of a resource are copied?
/// A header as its publisher sent it; a longer one, or one that cannot be sent, is left out.
fn copied(text: Option<&String>) -> Option<HeaderValue> {
    let text = text.filter(|text| text.len() <= COPIED_BYTES_MAX)?;
    HeaderValue::try_from(text.as_str()).ok()
}

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

    fn ask<'a>(
        &'a self,
        question: &'a Question,
        place: &'a mut CallbackPermit,
    ) -> BoxFuture<'a, Verdict> {
        async move {
            let challenge = question::challenge();
            let Some(request) = self.question(question, &challenge) else {
                return Verdict::unaskable();
            };
            let answer = self.client.send(request, place).await;
            // Where the request names `async`, too, its verification goes on after the answer.
            let goes_on = !question.awaited || !question.wait_max.is_zero();
            let lenient = self.target.dialect == Dialect::Legacy && goes_on;
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

    /// Its mode is none of the specification's: only who asked for it gets it.
    fn warning(&self, left_secs: u64) -> Option<Request> {
        self.get(&[
            ("hub.mode", "expiring"),
            ("hub.topic", self.target.topic_as_sent.as_str()),
            ("hub.lease_seconds", left_secs.to_string().as_str()),
            ("hub.resubscribe", "true"),
        ])
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

impl CallbackWay {
    /// The question. It names every term that the answer confirms or may confirm. A callback that
    /// was to have a secret can check that the request had it: the challenge is signed with it.
    fn question(&self, question: &Question, challenge: &str) -> Option<Request> {
        let CallbackTarget {
            topic_as_sent,
            secret,
            algo,
            verify_token,
            wishes,
            ..
        } = &self.target;
        let mut params = vec![
            ("hub.mode", question.mode),
            ("hub.topic", topic_as_sent.as_str()),
            ("hub.challenge", challenge),
        ];
        if let Some(token) = verify_token {
            params.push(("hub.verify_token", token));
        }
        let text = |number: Option<u64>| number.map(|number| number.to_string());
        let (lease, heartbeat, warning) = (
            text(question.lease_secs),
            text(wishes.heartbeat_secs),
            text(wishes.warning_secs),
        );
        let methods = wishes.asked_methods();
        let deletions = wishes.deletions.map(|wish| match wish {
            Deletions::Announce => "announce",
            Deletions::Omit => "omit",
        });
        let is_renewal = if question.is_known { "true" } else { "false" };
        if lease.is_some() {
            let more = [
                ("hub.lease_seconds", lease.as_deref()),
                ("hub.cursor", question.cursor.as_deref()),
                ("hub.resubscribe", Some(is_renewal)),
                ("hub.format", question.form.as_deref()),
                ("hub.methods", methods.as_deref()),
                ("hub.deletions", deletions),
                ("hub.heartbeat_seconds", heartbeat.as_deref()),
                ("hub.warning_seconds", warning.as_deref()),
                (
                    "hub.signature_algo",
                    secret.as_ref().map(|_| signature::name(*algo)),
                ),
            ];
            let more = more.into_iter();
            params.extend(more.filter_map(|(name, value)| Some((name, value?))));
        }
        let mut request = self.get(&params)?;
        if let Some(secret) = secret {
            let signed =
                signature::signature(*algo, secret.reveal().as_bytes(), challenge.as_bytes());
            let signed = HeaderValue::try_from(signed).ok()?;
            request.headers_mut().insert(SIGNATURE, signed);
        }
        Some(request)
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
            validators,
            resource,
            directive,
        } = delivery;
        // POST is what every subscriber takes.
        let (method, directive) = match self.target.wishes.told(*directive) {
            Told::AsMethod => (
                Method::from_bytes(directive.method().as_bytes()).ok()?,
                None,
            ),
            Told::AsOverride => (Method::POST, Some(directive.method())),
            Told::Never => (Method::POST, None),
        };
        let (content_type, body) = match resource {
            // Bytes of which nobody says what they are have a type, too (RFC 9110 section 8.3).
            Some(resource) => (
                copied(resource.content_type.as_ref())
                    .unwrap_or(HeaderValue::from_static("application/octet-stream")),
                &resource.body,
            ),
            None => (
                HeaderValue::from_static(representation.content_type()),
                &page.body,
            ),
        };
        let mut request = http::Request::builder()
            .method(method)
            .uri(self.target.url.as_str())
            .header(CONTENT_TYPE, content_type)
            .header(LINK, link)
            .header(USER_AGENT, &self.client.user_agent)
            .header("smart-feed-prev", prev)
            .header("smart-feed-last", page.last_cursor.as_str())
            .header(GENERATION, page.head.generation.to_string());
        let date = |at: Option<Stamp>| {
            let at = UNIX_EPOCH + Duration::from_secs(at?.secs());
            HeaderValue::try_from(httpdate::fmt_http_date(at)).ok()
        };
        let (etag, last_modified) = match resource {
            Some(resource) => (
                copied(resource.etag.as_ref()),
                copied(resource.last_modified.as_ref()),
            ),
            None => (
                copied(validators.etag.as_ref()),
                date(validators.last_modified),
            ),
        };
        let deleted_at = resource.as_ref().and_then(|resource| resource.deleted_at);
        let headers = [
            (ETAG, etag),
            (LAST_MODIFIED, last_modified),
            (DATE, date(deleted_at.or(validators.date))),
            (METHOD_OVERRIDE, directive.map(HeaderValue::from_static)),
        ];
        for (name, value) in headers {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        if let Some(degraded) = page.degraded.filter(|it| it.begins_anew()) {
            request = request.header(DEGRADED, degraded.name());
        }
        if let Some(total) = page.total {
            request = request.header("smart-feed-total", total);
        }
        if let Some(secret) = &self.target.secret {
            let signature =
                signature::signature(self.target.algo, secret.reveal().as_bytes(), body);
            request = request.header(SIGNATURE, signature);
        }
        request.body(body.clone()).ok()
    }
}
