//! When a feed is polled next, and what is remembered between polls; not the polling.

use super::stamp::Stamp;
use everfeed_adapters::{Digest, platforms::Detected};
use serde::Serialize;

mod calendar;
mod interval;
mod next;
mod retry_after;

pub use next::{Answer, Document, Failure, Outcome, next};
pub use retry_after::{host_pause_until, retry_after_secs};

#[cfg(test)]
mod tests;

/// What is remembered of a feed's polls. Saved after every poll.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PollState {
    /// The configured URL that all this was learned from; another one starts afresh.
    pub url: String,
    /// `ETag` of the last answer that carried one, verbatim, with `last_modified` as one pair (FRB 014).
    pub etag: Option<String>,
    /// `Last-Modified` of the same answer, verbatim.
    pub last_modified: Option<String>,
    /// The URL that sent the two, after redirects: they are sent to no other.
    pub validators_url: Option<String>,
    /// Digest of the last good body.
    pub body: Option<Digest>,
    /// When the feed is due; [`Stamp::MAX`] when only a hint or a restart polls it again.
    pub next_at: Stamp,
    /// When it was last polled, whatever came of it.
    pub polled_at: Option<Stamp>,
    /// When it last answered well, 304 included.
    pub good_at: Option<Stamp>,
    /// When an unconditional GET last succeeded.
    pub unconditional_at: Option<Stamp>,
    /// Whether another one would prove or clear up something that is missed.
    pub wants_audit: bool,
    /// Whether the last good answer changed nothing: 304, or the last body again.
    pub at_rest: bool,
    /// From when on the next poll commits what is held back of entries that change with every poll; `None`: nothing is.
    pub held_until: Option<Stamp>,
    /// When new items last came, newest last, at most [`PollState::ARRIVALS_MAX`].
    pub arrivals: Vec<Stamp>,
    /// Polls that failed in a row.
    pub failures: u32,
    /// What is wrong now, and whose fault it is.
    pub fault: Option<FaultNote>,
    /// What was odd about the last good document, for the operator. No fault: the feed goes on.
    pub remark: Option<String>,
    /// The software that makes the feed, as its documents show it; certain signs of another replace it, none do not.
    pub platform: Option<Detected>,
    /// Set by 410: polling is paused.
    pub gone_at: Option<Stamp>,
    /// Where permanent redirects have led, and since when they agree.
    pub moved: Option<Moved>,
    /// Seconds that the document asks for between polls (`ttl`, `sy:*`).
    pub hinted_secs: Option<u64>,
    /// Hours of the day, GMT, in which the publisher wants no polls.
    pub skip_hours: Vec<u8>,
    /// Days of the week, Monday 0, in which the publisher wants no polls.
    pub skip_days: Vec<u8>,
}

/// Permanent redirects that agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Where to.
    pub url: String,
    /// Since when every answer says so.
    pub since: Stamp,
}

/// What is wrong with a feed, for its operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultNote {
    /// Whose fault it is.
    pub whose: Whose,
    /// What happened, without secrets.
    pub text: String,
    /// The HTTP status, if an answer came.
    pub status: Option<u16>,
    /// Since when polls have failed in a row.
    pub since: Stamp,
}

/// Whose fault something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Whose {
    /// The publisher's server or what lies on the way to it.
    Upstream,
    /// Ours: configuration, disk, clock.
    Ours,
}

/// The bounds within which intervals are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Seconds between polls at least, when the operator says so. `None`: an hour, which a feed that names a shorter
    /// rhythm in its document lowers (DESIGN section 9, row POLLING 1.5).
    pub min_secs: Option<u64>,
    /// Seconds between polls at most, back-off included. Only `Retry-After`, 410 and the publisher's skipHours and
    /// skipDays exceed it.
    pub max_secs: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self { min_secs: None, max_secs: 86_400 }
    }
}

/// What the next request is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Which URL.
    pub url: String,
    /// Whether to send the validators, if there are any.
    pub conditional: bool,
}

/// Two unconditional GETs lie this far apart at most: a validator may hide a deletion for ever (POLLING 0.3).
const UNCONDITIONAL_SECS: u64 = 7 * 86_400;

/// Seconds for which permanent redirects must agree before they are believed (POLLING 0.7).
const MOVED_SECS: u64 = 7 * 86_400;

/// Seconds between two polls on hints.
const HINT_SECS: u64 = 5;

/// Seconds between two looks at a feed that said 410 (POLLING 1.5).
const GONE_SECS: u64 = 86_400;

impl PollState {
    /// Arrivals remembered.
    pub const ARRIVALS_MAX: usize = 10;

    /// A feed that was never polled: due at once.
    pub fn unpolled(url: &str) -> Self {
        Self { url: url.to_owned(), ..Self::default() }
    }

    /// What was saved, as it counts after a restart: a feed that is not due stays so (FRB 015, 037), unless its URL or
    /// its policy has changed, or the clock went back.
    pub fn resumed(self, url: &str, policy: &Policy, now: Stamp) -> Self {
        if self.url != url {
            // The items stay, and so do what is held back of them and the scrubbers that their digests were made with.
            let Self { arrivals, platform, held_until, .. } = self;
            return Self { arrivals, platform, held_until, ..Self::unpolled(url) };
        }
        let Some(polled_at) = self.polled_at else { return self };
        let next_at = if polled_at > now {
            self.next_at.min(now.plus_secs(interval::floor_secs(&self, policy)))
        } else if self.gone_at.is_some() {
            self.next_at.min(polled_at.plus_secs(GONE_SECS))
        } else if self.asked_to_stay_away() {
            self.next_at
        } else {
            let at = self.next_at.min(polled_at.plus_secs(policy.max_secs));
            calendar::step_out(at, &self.skip_hours, &self.skip_days)
        };
        Self { next_at, ..self }
    }

    /// The same after a change of the feed's settings while it is polled: the new policy counts at once.
    pub fn under(self, url: &str, policy: &Policy, now: Stamp) -> Self {
        let resumed = self.resumed(url, policy, now);
        let earliest = resumed.polled_at.filter(|at| *at <= now && resumed.next_at != Stamp::MAX);
        let earliest = earliest.map(|at| at.plus_secs(interval::floor_secs(&resumed, policy)));
        Self { next_at: resumed.next_at.max(earliest.unwrap_or_default()), ..resumed }
    }

    /// When a hint polls the feed. It ends a back-off; it never ends a `not_before` of the host; one that comes within
    /// five seconds of the last one that polled waits for their end; a feed that said 410 is looked at once a day.
    pub fn hinted_at(&self, last_hint: Option<Stamp>, host_not_before: Stamp, now: Stamp) -> Stamp {
        let rested = |since: Option<Stamp>, secs: u64| {
            // A moment that is still to come is of a clock that went back since.
            since.filter(|since| *since <= now).map_or(now, |since| since.plus_secs(secs))
        };
        let looked = self.polled_at.filter(|_| self.gone_at.is_some());
        rested(last_hint, HINT_SECS).max(rested(looked, GONE_SECS)).max(host_not_before).max(now)
    }

    /// What to ask for next. The configured URL is asked at least once a week, unconditionally, so that a redirect that
    /// was taken back is noticed, and so that no validator hides a deletion for ever; every `audit_secs` while something
    /// is missed.
    pub fn plan(&self, audit_secs: u64, now: Stamp) -> Plan {
        let recent = self.unconditional_at.is_some_and(|at| at <= now && now < self.audit_at(audit_secs));
        let conditional = recent && (self.etag.is_some() || self.last_modified.is_some());
        let moved = self.moved.as_ref().filter(|moved| conditional && moved.is_believed(now));
        Plan { url: moved.map_or(&self.url, |moved| &moved.url).clone(), conditional }
    }

    /// From when on the next request carries no validators.
    pub fn audit_at(&self, audit_secs: u64) -> Stamp {
        let secs = if self.wants_audit { audit_secs.min(UNCONDITIONAL_SECS) } else { UNCONDITIONAL_SECS };
        self.unconditional_at.map_or(Stamp::ZERO, |at| at.plus_secs(secs))
    }

    /// Whether the server named the time before which it wants no poll.
    fn asked_to_stay_away(&self) -> bool {
        self.fault.as_ref().is_some_and(|fault| matches!(fault.status, Some(429 | 503)))
    }
}

impl Moved {
    fn is_believed(&self, now: Stamp) -> bool {
        now >= self.since.plus_secs(MOVED_SECS)
    }
}
