//! `pleaseNotify` of rssCloud: a listener registers, is tried at once, and is answered what came of
//! that (LEGACY C-4). Its registration is a subscription like all others.

use super::{Hub, HubAnswer, HubSender, Registration, TopicAsk, all_confirmed};
use crate::{
    edge::{
        fields::text,
        xml_rpc::{done_answer, fault_answer},
    },
    hub::{
        deliver,
        form::{CloudRequest, Mode, is_call},
        lease,
    },
    store::subscriptions::{Intent, LeaseTerms, Pending, PushWishes},
};
use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};
use quick_xml::escape::escape;
use std::net::IpAddr;

/// The lease of a registration, seconds: 25 hours, so that one renewal a day does. The bounds of
/// all leases count here, too.
const LEASE_SECS: &str = "90000";

/// The code of faults: that of the first cloud.
const FAULT: i32 = 4;

impl Hub {
    /// Answers `pleaseNotify`, in XML as the protocol has it, or in JSON for those who want nothing
    /// else; a call of XML-RPC by its response.
    pub(super) async fn please_notify(
        &self,
        request: &Request<Bytes>,
        client: Option<IpAddr>,
    ) -> Response<Bytes> {
        let answer = if !self.shared.config().rsscloud {
            HubAnswer::new(
                StatusCode::NOT_FOUND,
                "rssCloud is turned off here; /hub takes WebSub",
            )
        } else if request.method() != Method::POST {
            HubAnswer::new(StatusCode::METHOD_NOT_ALLOWED, "use POST here")
        } else {
            self.register(request, client)
                .await
                .unwrap_or_else(|answer| answer)
        };
        let accept = text(request.headers(), &ACCEPT).unwrap_or_default();
        let is_json = accept.contains("json") && !accept.contains("xml");
        let (is_success, said) = (answer.status.is_success(), answer.text.clone());
        let is_call = is_call(text(request.headers(), &CONTENT_TYPE));
        let mut response = answer.respond();
        let (media_type, body) = if is_call {
            // Calls are answered 200, faults too.
            *response.status_mut() = StatusCode::OK;
            let body = if is_success {
                done_answer()
            } else {
                fault_answer(FAULT, &said)
            };
            ("text/xml; charset=utf-8", body)
        } else if is_json {
            let body = serde_json::json!({ "success": is_success, "msg": said }).to_string();
            ("application/json; charset=utf-8", body)
        } else {
            let said = escape(&said);
            let body = format!(
                "<?xml version=\"1.0\"?>\n<notifyResult success=\"{is_success}\" msg=\"{said}\"/>\n"
            );
            ("text/xml; charset=utf-8", body)
        };
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        *response.body_mut() = Bytes::from(body);
        response
    }

    async fn register(
        &self,
        request: &Request<Bytes>,
        client: Option<IpAddr>,
    ) -> Result<HubAnswer, HubAnswer> {
        if self.shared.stop.is_cancelled() {
            return Err(HubAnswer::busy("the hub is stopping"));
        }
        let content_type = text(request.headers(), &CONTENT_TYPE);
        let asked = CloudRequest::parse(content_type, request.body(), client)?;
        self.check_address(&asked.url, ["domain", "port"])?;
        let sender = HubSender::of(request, client);
        let mut registrations: Vec<Registration> = Vec::with_capacity(asked.feeds.len());
        for feed in &asked.feeds {
            let ask = TopicAsk {
                spelt: feed,
                mode: Mode::Subscribe,
                format: None,
                accept: None,
            };
            let subject = self.subject(ask, &sender).await?;
            let target = deliver::listener(&asked, &subject.spelt);
            let registration = self.registration(subject, target).await?;
            // One feed in several spellings is one.
            let is_new = |known: &Registration| known.key != registration.key;
            if registrations.iter().all(is_new) {
                registrations.push(registration);
            }
        }
        self.admit(&registrations, &asked.url, &sender)?;
        let secs = lease::grant(Some(LEASE_SECS), &self.shared.config()).secs;
        let mut awaited = Vec::new();
        for registration in registrations {
            let (subject, target) = (&registration.subject, registration.target.clone());
            let now = self.shared.now();
            let (start, scanned) = self.start_of(subject, &PushWishes::default()).await?;
            let pending = Pending {
                intent: Intent::Subscribe {
                    target,
                    lease: LeaseTerms {
                        secs,
                        auto_refresh: false,
                    },
                },
                attempts: 0,
                next_try: now,
                // The listener waits for the answer, and is asked once.
                give_up_at: now,
                start,
                principal: subject.principal,
                scanned,
            };
            awaited.extend(self.command(&registration, &sender, pending, true).await?);
        }
        let refused = format!("{} did not confirm", asked.url);
        all_confirmed(
            awaited,
            false,
            &refused,
            "the hub is too busy to try it now",
        )
        .await?;
        let text = format!(
            "{} is notified of changes for {secs} seconds from now",
            asked.url
        );
        Ok(HubAnswer::new(StatusCode::OK, text))
    }
}
