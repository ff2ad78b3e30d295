//! A registration at a cloud of others (rssCloud; UPSTREAM U-20 to U-23).

use super::{
    CallbackRoot, CloudAddress, DueRequest, PushPath, PushService, RequestEnd, after_failure,
};
use crate::stamp::Stamp;
use url::form_urlencoded;

/// Seconds for which a registration holds.
const REGISTERED_SECS: u64 = 90_000;
/// Seconds after which it is renewed.
const RENEWED_SECS: u64 = 86_400;

/// A registration at a cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamCloud {
    /// The cloud.
    pub address: CloudAddress,
    /// The URL by which it knows the feed.
    pub url: String,
    /// The callback; `None` before the first request.
    pub path: Option<PushPath>,
    /// Time of the first of those registrations without a gap.
    pub since: Option<Stamp>,
    /// Time of the last registration.
    pub registered_at: Option<Stamp>,
    /// Time of the next request.
    pub next_at: Stamp,
    /// Failures in a row.
    pub failures: u32,
    /// The last failure, in words.
    pub why: Option<String>,
}

impl UpstreamCloud {
    pub(super) fn new(address: CloudAddress, url: String, now: Stamp) -> Self {
        Self {
            address,
            url,
            path: None,
            since: None,
            registered_at: None,
            next_at: now,
            failures: 0,
            why: None,
        }
    }

    /// The registration. The cloud knows who it is by the address, so the path stays.
    pub(super) fn errand(
        &mut self,
        root: CallbackRoot<'_>,
        now: Stamp,
        fresh: impl FnOnce() -> PushPath,
    ) -> DueRequest {
        let path = self.path.get_or_insert_with(|| PushPath {
            secret: None,
            ..fresh()
        });
        let callback = format!("{}{}", root.url.path(), path.token.reveal());
        let is_https = root.url.scheme() == "https";
        let port = root.url.port_or_known_default().unwrap_or(80).to_string();
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("notifyProcedure", "")
            .append_pair(
                "protocol",
                if is_https { "https-post" } else { "http-post" },
            )
            .append_pair("port", &port)
            .append_pair("path", &callback)
            .append_pair("url1", &self.url)
            .append_pair("domain", root.url.host_str().unwrap_or_default())
            .finish();
        self.next_at = now.plus_secs(RENEWED_SECS);
        DueRequest {
            url: self.address.url(),
            form,
            to: PushService::Cloud,
        }
    }

    pub(super) fn ended(&mut self, end: &RequestEnd, now: Stamp) {
        match end {
            RequestEnd::Taken => {
                self.since = self.registered_since(now).or(Some(now));
                self.registered_at = Some(now);
                (self.failures, self.why) = (0, None);
                self.next_at = now.plus_secs(RENEWED_SECS);
            }
            RequestEnd::Postponed { wait_secs } => self.next_at = now.plus_secs(*wait_secs),
            RequestEnd::Refused { why } => self.fail(why, None, now),
            RequestEnd::Failed {
                why,
                retry_after_secs,
            } => self.fail(why, *retry_after_secs, now),
        }
    }

    fn fail(&mut self, why: &str, retry_after_secs: Option<u64>, now: Stamp) {
        self.failures = self.failures.saturating_add(1);
        self.why = Some(why.to_owned());
        self.next_at = after_failure(self.failures, retry_after_secs, now);
    }

    /// Since when it is registered without a gap; `None` while it is not.
    pub(super) fn registered_since(&self, now: Stamp) -> Option<Stamp> {
        let at = self.registered_at?;
        self.since.filter(|_| now < at.plus_secs(REGISTERED_SECS))
    }

    pub(super) fn token(&self) -> Option<&str> {
        self.path.as_ref().map(|path| path.token.reveal())
    }

    /// True for the token of its callback.
    pub fn is_at(&self, token: &str) -> bool {
        self.token() == Some(token)
    }

    /// True for the question whether this registration is meant.
    pub(super) fn is_meant(&self, token: &str, url: &str) -> bool {
        self.is_at(token) && self.url == url
    }
}
