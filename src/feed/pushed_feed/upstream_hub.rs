//! A subscription at a hub of others, step by step: WebSub, and PubSubHubbub 0.3 and 0.4 (UPSTREAM
//! U-2 to U-11).

use super::{
    CallbackRoot, DueRequest, PushPath, PushReception, PushService, RequestEnd, after_failure,
    after_refusal,
};
use crate::{secret::Secret, stamp::Stamp};
use url::form_urlencoded;

/// Seconds of the lease that is asked for.
const LEASE_SECS: u64 = 10 * 86_400;
/// Seconds of the longest lease that counts.
const LEASE_SECS_MAX: u64 = 14 * 86_400;
/// Seconds of a lease whose hub does not say how long it is.
const LEASE_SECS_UNSAID: u64 = 86_400;
/// Seconds between two renewals at least.
const RENEWAL_SECS_MIN: u64 = 300;
/// Seconds in which a hub has to verify what it took.
const VERIFY_SECS: u64 = 3600;
/// Seconds after the end of a lease in which a push is still expected.
const LATE_PUSH_SECS: u64 = 3600;
/// Seconds in which a hub has to verify that it is left.
const LEAVE_SECS: u64 = 86_400;
/// Requests at most by which a hub is left.
const LEAVE_TRIES: u32 = 3;
/// Failures in a row from which on another service is asked.
const FAILURES_FEW: u32 = 3;

/// A subscription at a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamHub {
    /// The hub.
    pub url: String,
    /// The topic, byte for byte as it is sent.
    pub topic: String,
    /// True while the feed names the hub; else it is left.
    pub is_named: bool,
    /// The lease in force.
    pub lease: Option<PushLease>,
    /// The lease before, whose path is answered until its end.
    pub former: Option<PushLease>,
    /// The request that is not verified yet.
    pub asked: Option<PushAsked>,
    /// Time of the next request, unless an answer comes before.
    pub next_at: Stamp,
    /// Failures in a row.
    pub failures: u32,
    /// Refusals in a row.
    pub refusals: u32,
    /// The last failure or refusal, in words.
    pub why: Option<String>,
}

/// A subscription that a hub has verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushLease {
    /// Its callback.
    pub path: PushPath,
    /// Since when it holds.
    pub since: Stamp,
    /// Its end.
    pub until: Stamp,
}

/// A request to a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushAsked {
    /// Its callback.
    pub path: PushPath,
    /// The thing that was asked for.
    pub mode: HubMode,
    /// Time at which it was sent.
    pub at: Stamp,
    /// True once it has taken too long. It may still be verified.
    pub is_late: bool,
}

/// A thing that is asked of a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HubMode {
    /// To push.
    Subscribe,
    /// To push no more.
    Unsubscribe,
}

impl HubMode {
    const fn word(self) -> &'static str {
        match self {
            Self::Subscribe => "subscribe",
            Self::Unsubscribe => "unsubscribe",
        }
    }

    /// The mode that this word says.
    pub fn parse(word: &str) -> Option<Self> {
        let known = [Self::Subscribe, Self::Unsubscribe];
        known.into_iter().find(|mode| mode.word() == word)
    }
}

/// The answer to a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verified {
    /// Yes, and something has changed by it.
    New,
    /// Yes: the hub asks once more.
    Again,
    /// No.
    No,
}

impl PushPath {
    fn is(&self, token: &str) -> bool {
        self.token.reveal() == token
    }
}

impl PushLease {
    /// True until its end.
    pub fn holds(&self, now: Stamp) -> bool {
        now < self.until
    }

    /// Time at which it is renewed: two thirds of it.
    fn renew_at(&self) -> Stamp {
        let secs = self.until.secs_since(self.since);
        self.since.plus_secs((secs / 3 * 2).max(RENEWAL_SECS_MIN))
    }
}

impl UpstreamHub {
    pub(super) fn new(url: &str, topic: &str, now: Stamp) -> Self {
        Self {
            url: url.to_owned(),
            topic: topic.to_owned(),
            is_named: true,
            lease: None,
            former: None,
            asked: None,
            next_at: now,
            failures: 0,
            refusals: 0,
            why: None,
        }
    }

    /// Takes in whether the feed names the hub.
    pub(super) fn name(&mut self, is_named: bool, now: Stamp) {
        if is_named != self.is_named {
            self.is_named = is_named;
            (self.asked, self.next_at) = (None, now);
            (self.failures, self.refusals, self.why) = (0, 0, None);
        }
    }

    /// True for a hub that has not done what it should several times.
    pub(super) fn is_failing(&self) -> bool {
        self.failures >= FAILURES_FEW || self.refusals > 0
    }

    /// Time at which something is to be done.
    pub(super) fn next_at(&self) -> Stamp {
        if self.is_named || self.lease.is_some() {
            self.next_at
        } else {
            Stamp::MAX
        }
    }

    // Decides: When is a hub asked again?
    /// The request that is due, or `None` where its hub is only to wait.
    pub(super) fn errand(
        &mut self,
        topics: &[String],
        root: CallbackRoot<'_>,
        now: Stamp,
        fresh: impl FnOnce() -> PushPath,
    ) -> Option<DueRequest> {
        if !self.is_named {
            return self.leaving_errand(root, now);
        }
        let awaited = self.asked.as_mut().filter(|asked| !asked.is_late);
        if let Some(asked) = awaited {
            asked.is_late = true;
            self.failures = self.failures.saturating_add(1);
            self.why = Some("the hub took the request and did not verify it".to_owned());
            let is_last = topics.last().is_none_or(|last| *last == self.topic);
            if self.lease.is_none() && topics.len() > 1 {
                // It may know the feed by another name.
                let at = topics.iter().position(|topic| *topic == self.topic);
                let next = at.map_or(0, |at| (at + 1) % topics.len());
                self.topic.clone_from(&topics[next]);
                self.asked = None;
            }
            if is_last {
                self.next_at = after_failure(self.failures, None, now);
                return None;
            }
        }
        // The same path once more, so that a hub that verifies late is believed.
        let path = match self.asked.take() {
            Some(asked) => asked.path,
            None => fresh(),
        };
        let path = PushPath {
            secret: path.secret.filter(|_| self.url.starts_with("https:")),
            ..path
        };
        self.next_at = now.plus_secs(VERIFY_SECS);
        Some(self.send(path, HubMode::Subscribe, root, now))
    }

    fn leaving_errand(&mut self, root: CallbackRoot<'_>, now: Stamp) -> Option<DueRequest> {
        self.failures = self.failures.saturating_add(1);
        self.next_at = now.plus_secs(LEAVE_SECS);
        let lease = self.lease.clone();
        if self.failures > LEAVE_TRIES {
            self.end_lease();
            return None;
        }
        Some(self.send(lease?.path, HubMode::Unsubscribe, root, now))
    }

    fn send(
        &mut self,
        path: PushPath,
        mode: HubMode,
        root: CallbackRoot<'_>,
        now: Stamp,
    ) -> DueRequest {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("hub.callback", &root.callback(&path))
            .append_pair("hub.mode", mode.word())
            .append_pair("hub.topic", &self.topic)
            // Before WebSub a hub had to be told when to ask; a later one passes it over.
            .append_pair("hub.verify", "async");
        if mode == HubMode::Subscribe {
            form.append_pair("hub.lease_seconds", &LEASE_SECS.to_string());
            if let Some(secret) = &path.secret {
                form.append_pair("hub.secret", secret.reveal());
            }
        }
        self.asked = Some(PushAsked {
            path,
            mode,
            at: now,
            is_late: false,
        });
        DueRequest {
            url: self.url.clone(),
            form: form.finish(),
            to: PushService::Hub {
                url: self.url.clone(),
                topic: self.topic.clone(),
            },
        }
    }

    /// Takes in the answer to a request. A lease that is in force stays.
    pub(super) fn ended(&mut self, end: &RequestEnd, now: Stamp) {
        let Some(asked) = &self.asked else {
            // It was verified before it was answered.
            return;
        };
        if asked.mode == HubMode::Unsubscribe {
            // A hub that knows nothing of it any more has been left.
            if matches!(end, RequestEnd::Refused { .. }) {
                self.end_lease();
            }
            return;
        }
        match end {
            RequestEnd::Taken => {}
            RequestEnd::Postponed { wait_secs } => {
                self.next_at = now.plus_secs(*wait_secs);
                if let Some(asked) = &mut self.asked {
                    asked.is_late = true;
                }
            }
            RequestEnd::Refused { why } => {
                self.refuse(why.clone(), now);
                self.asked = None;
            }
            RequestEnd::Failed {
                why,
                retry_after_secs,
            } => {
                self.failures = self.failures.saturating_add(1);
                self.why = Some(why.clone());
                self.next_at = after_failure(self.failures, *retry_after_secs, now);
                // It may have been taken all the same.
                if let Some(asked) = &mut self.asked {
                    asked.is_late = true;
                }
            }
        }
    }

    fn refuse(&mut self, why: String, now: Stamp) {
        self.refusals = self.refusals.saturating_add(1);
        self.why = Some(why);
        self.next_at = after_refusal(self.refusals, now);
    }

    /// Answers the question of the hub whether a subscription is meant (UPSTREAM U-4, U-5).
    pub(super) fn verify(
        &mut self,
        token: &str,
        mode: HubMode,
        topic: &str,
        lease_secs: Option<u64>,
        now: Stamp,
    ) -> Verified {
        if topic != self.topic {
            return Verified::No;
        }
        let lease = |path: PushPath| {
            let secs = lease_secs.unwrap_or(LEASE_SECS_UNSAID);
            PushLease {
                path,
                since: now,
                until: now.plus_secs(secs.min(LEASE_SECS_MAX)),
            }
        };
        let is_asked = |asked: &mut PushAsked| asked.mode == mode && asked.path.is(token);
        if let Some(asked) = self.asked.take_if(is_asked) {
            match mode {
                HubMode::Subscribe => {
                    let new = lease(asked.path);
                    self.former = self.lease.replace(new).or(self.former.take());
                    self.is_verified();
                }
                HubMode::Unsubscribe => self.end_lease(),
            }
            return Verified::New;
        }
        let is_held = self.lease.as_ref().is_some_and(|held| held.path.is(token));
        match mode {
            // Our yes got lost, or the hub makes sure by itself that we are still there.
            HubMode::Subscribe if is_held && self.is_named => {
                if let Some(held) = self.lease.take() {
                    self.lease = Some(PushLease {
                        since: held.since,
                        ..lease(held.path)
                    });
                }
                self.is_verified();
                Verified::Again
            }
            HubMode::Unsubscribe if !self.is_named && self.is_former(token) => Verified::Again,
            _ => Verified::No,
        }
    }

    fn is_verified(&mut self) {
        (self.failures, self.refusals, self.why) = (0, 0, None);
        if let (Some(lease), None) = (&self.lease, &self.asked) {
            self.next_at = lease.renew_at();
        }
    }

    fn is_former(&self, token: &str) -> bool {
        self.former
            .as_ref()
            .is_some_and(|former| former.path.is(token))
    }

    fn end_lease(&mut self) {
        self.asked = None;
        self.former = self.lease.take().or(self.former.take());
    }

    /// Takes in that the hub will not push, or not any more; true for the token of this
    /// subscription (UPSTREAM U-10).
    pub(super) fn deny(
        &mut self,
        token: &str,
        topic: Option<&str>,
        reason: Option<&str>,
        now: Stamp,
    ) -> bool {
        let is_of = |path: &PushPath| path.is(token);
        let is_asked = self.asked.as_ref().is_some_and(|asked| is_of(&asked.path));
        let is_held = self.lease.as_ref().is_some_and(|lease| is_of(&lease.path));
        if topic.is_some_and(|topic| topic != self.topic) || !(is_asked || is_held) {
            return false;
        }
        if is_held {
            self.lease = None;
        }
        self.asked = None;
        let reason = reason.filter(|reason| !reason.trim().is_empty());
        let why = match reason {
            Some(reason) => format!("the hub denies the subscription: {reason}"),
            None => "the hub denies the subscription".to_owned(),
        };
        self.refuse(why, now);
        true
    }

    pub(super) fn received(&self, token: &str, now: Stamp) -> PushReception {
        let is_former = self.is_former(token);
        if !self.is_named && self.lease.is_none() && is_former {
            return PushReception::Left;
        }
        let leases = self.lease.iter().chain(&self.former);
        let mut live = leases.filter(|lease| now < lease.until.plus_secs(LATE_PUSH_SECS));
        let expected = |secret: &Option<Secret>| PushReception::Expected {
            secret: secret.clone(),
            is_named_by_feed: false,
        };
        if let Some(lease) = live.find(|lease| lease.path.is(token)) {
            return expected(&lease.path.secret);
        }
        match &self.asked {
            // What it sends before it has verified is a hint at most.
            Some(asked) if asked.path.is(token) => expected(&None),
            _ => PushReception::Unknown,
        }
    }

    pub(super) fn tokens(&self) -> impl Iterator<Item = &str> {
        let leases = self.lease.iter().chain(&self.former);
        let paths = leases.map(|lease| &lease.path);
        let asked = self.asked.iter().map(|asked| &asked.path);
        paths.chain(asked).map(|path| path.token.reveal())
    }

    /// Ends leases whose time is over.
    pub(super) fn expire(&mut self, now: Stamp) {
        let is_past = |lease: &mut PushLease| now >= lease.until.plus_secs(LATE_PUSH_SECS);
        self.former.take_if(is_past);
        self.lease.take_if(is_past);
    }

    /// True for a hub that was left, or never asked, with nothing more to answer.
    pub(super) fn is_over(&self, now: Stamp) -> bool {
        let is_live = |lease: &PushLease| lease.holds(now);
        !self.is_named && self.lease.is_none() && !self.former.as_ref().is_some_and(is_live)
    }
}
