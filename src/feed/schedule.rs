//! Time of a feed's next poll, and the state that is remembered between polls; not the polling.

use super::stamp::Stamp;
use everfeed_adapters::{Digest, platforms::Detected};

mod announced_move;
mod calendar;
mod fault;
mod interval;
mod look;
mod named_feed;
mod next;
mod permanent_move;
mod remedy;
mod retry_after;

pub use announced_move::AnnouncedMove;
pub use fault::{BodyKind, FaultKind, FaultNote, NoAnswerCause, PublicFault, Whose};
pub use interval::FLOOR_SECS;
pub use named_feed::{AskedAddress, NamedFeed};
pub use next::{Answer, Failure, PollOutcome, PolledDocument, next};
pub use permanent_move::PermanentMove;
pub use retry_after::{Pause, RETRY_AFTER_SECS_MAX, host_pause_until, retry_after_secs};

#[cfg(test)]
mod tests;

/// Memory of a feed's polls. Saved after every poll.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PollState {
    /// The configured URL that all this was learned from; another one starts afresh.
    pub url: String,
    /// Validators of the last answer that carried any.
    pub validators: Option<ValidatorPair>,
    /// Times of polls, past and next.
    pub timetable: Timetable,
    /// Success and failure of polls.
    pub health: Health,
    /// Facts of the last good document.
    pub document: DocumentFacts,
    /// The change of the configured URL, until a document of the new one is taken.
    pub url_change: Option<UrlChange>,
    /// The feed that is polled in the place of the configured page; `None` where a feed is configured,
    /// or where the page has not been read yet.
    pub named: Option<NamedFeed>,
}

/// A change of a feed's configured URL, until a document of the new one is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlChange {
    /// The URL whose documents were taken last, without credentials.
    pub from: String,
    /// The operator's word on it.
    pub consent: UrlConsent,
}

/// The operator's word on a new URL whose document shares nothing with what is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UrlConsent {
    /// None: such a document is not taken.
    #[default]
    NotGiven,
    /// The document that was asked about is taken by the next poll. One that fails ends it.
    Given,
}

/// `ETag` and `Last-Modified` of one answer, verbatim: always sent as a pair (FRB 014), and to no
/// other URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidatorPair {
    /// `ETag`.
    pub etag: Option<String>,
    /// `Last-Modified`.
    pub last_modified: Option<String>,
    /// The URL that sent the two, after redirects.
    pub url: String,
}

/// Times of polls, past and next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timetable {
    /// Time of the next poll; [`Stamp::MAX`] when only a hint or a restart polls the feed again.
    pub next_at: Stamp,
    /// Time of the last poll, whatever came of it.
    pub polled_at: Option<Stamp>,
    /// Time of the last unconditional GET that succeeded.
    pub unconditional_at: Option<Stamp>,
    /// True while an unconditional poll could confirm or clear a suspect.
    pub wants_audit: bool,
    /// Times at which new items last came, newest last, at most [`PollState::ARRIVALS_MAX`].
    pub arrivals: Vec<Stamp>,
    /// Seconds that the document asks for between polls (`ttl`, `sy:*`).
    pub hinted_secs: Option<u64>,
    /// Hours of the day, GMT, in which the publisher wants no polls.
    pub skip_hours: Vec<u8>,
    /// Days of the week, Monday 0, in which the publisher wants no polls.
    pub skip_days: Vec<u8>,
    /// Time from which on the next poll carries no validators, since deleted items were shown again
    /// by what may be an old copy; `None`: none were.
    pub agrees_at: Option<Stamp>,
}

/// Success and failure of polls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Time of the last good answer, 304 included.
    pub good_at: Option<Stamp>,
    /// Polls that failed in a row.
    pub failures: u32,
    /// The present fault, and since when.
    pub fault: Option<FaultNote>,
    /// Time of the first 410: polling is paused.
    pub gone_at: Option<Stamp>,
    /// Permanent redirects, and since when they agree.
    pub moved: Option<PermanentMove>,
    /// The move that its documents announce.
    pub announced: Option<AnnouncedMove>,
}

/// Facts of the last good document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentFacts {
    /// Digest of its bytes.
    pub body: Option<Digest>,
    /// Change, or none, that the last good answer brought.
    pub repeat: Repeat,
    /// Time from which on the next poll commits deferred edits; `None`: there are none.
    pub deferred_until: Option<Stamp>,
    /// Oddities, for the operator. No fault: the feed goes on.
    pub remark: Option<String>,
    /// The software that makes the feed, as its documents show it; certain signs of another replace
    /// it, none do not.
    pub platform: Option<Detected>,
    /// Since when every document has been cut short or empty, of a feed of a site whose readers
    /// have a better one.
    pub broken_since: Option<Stamp>,
    /// Documents running of which each was another.
    pub changed_running: u32,
    /// True while items are missing from it that are not decided on.
    pub has_suspects: bool,
}

/// Change, or none, that the last good answer brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repeat {
    /// A document that was not the last one.
    #[default]
    Changed,
    /// 304, or the last body again: no entry has changed.
    Unchanged,
}

/// The bounds within which intervals are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Seconds between polls at least, when the operator says so. `None`: an hour, which a feed
    /// that names a shorter rhythm in its document lowers (DESIGN section 9, row POLLING 1.5).
    pub min_secs: Option<u64>,
    /// Seconds between polls at most, back-off included. Only `Retry-After`, 410 and the
    /// publisher's skipHours and skipDays exceed it.
    pub max_secs: u64,
    /// Seconds over which the second polls of feeds are spread whose first ones were at one time,
    /// as after a first start.
    pub spread_secs: u64,
    /// True while a hub or a cloud tells of its news, so that it is polled less often.
    pub is_pushed: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            min_secs: None,
            max_secs: 86_400,
            spread_secs: 0,
            is_pushed: false,
        }
    }
}

/// The next request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The URL to ask.
    pub url: String,
    /// True when the validators are sent, if there are any.
    pub conditional: bool,
    /// Which address of the feed that is.
    pub address: AskedAddress,
}

/// Two unconditional GETs lie this far apart at most: a validator may hide a deletion for ever
/// (POLLING 0.3).
const UNCONDITIONAL_SECS: u64 = 7 * 86_400;

/// Seconds between two polls on hints.
const HINT_SECS: u64 = 5;

/// Seconds between two polls of a feed whose quota is reached: what it shows cannot be kept.
const QUOTA_SECS: u64 = 86_400;

/// Seconds between two looks at a feed that said 410 (POLLING 1.5).
const GONE_SECS: u64 = 86_400;

impl PollState {
    /// Arrivals remembered.
    pub const ARRIVALS_MAX: usize = 10;

    /// A feed that was never polled: due at once.
    pub fn unpolled(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            ..Self::default()
        }
    }

    // Decides: Which part of the poll state survives a changed URL?
    /// The saved state as it counts after a restart: a feed that is not due stays so (FRB 015,
    /// 037), unless its URL or its policy has changed, or the clock went back.
    pub fn resumed(mut self, url: &str, policy: &Policy, now: Stamp) -> Self {
        if self.url != url {
            // The items stay, and so do what is held back of them and the scrubbers that their
            // digests were made with.
            let url_change = self.url_change_to(url);
            let mut afresh = Self {
                url_change,
                ..Self::unpolled(url)
            };
            afresh.timetable.arrivals = self.timetable.arrivals;
            afresh.document.platform = self.document.platform;
            afresh.document.deferred_until = self.document.deferred_until;
            return afresh;
        }
        let Some(polled_at) = self.timetable.polled_at else {
            return self;
        };
        self.set_back(now);
        self.timetable.next_at = if polled_at > now {
            self.timetable
                .next_at
                .min(now.plus_secs(interval::floor_secs(&self, policy)))
        } else if self.health.gone_at.is_some() {
            self.timetable.next_at.min(polled_at.plus_secs(GONE_SECS))
        } else if self.is_at_quota() {
            // The quota may have been raised.
            self.timetable
                .next_at
                .min(polled_at.plus_secs(interval::floor_secs(&self, policy)))
        } else if self.asked_to_stay_away() {
            self.timetable.next_at
        } else {
            let at = self
                .timetable
                .next_at
                .min(polled_at.plus_secs(policy.max_secs));
            calendar::step_out(at, &self.timetable.skip_hours, &self.timetable.skip_days)
        };
        self
    }

    /// The change that another configured URL is. A URL that comes back is none: what is held is of
    /// its documents.
    fn url_change_to(&self, url: &str) -> Option<UrlChange> {
        let from = self
            .url_change
            .as_ref()
            .map_or(&self.url, |change| &change.from);
        if from.is_empty() || from == url {
            return None;
        }
        Some(UrlChange {
            from: from.clone(),
            consent: UrlConsent::NotGiven,
        })
    }

    /// The same with the operator's consent to the document of a changed URL that was asked about;
    /// `None` where none was.
    pub fn consented(mut self) -> Option<Self> {
        self.asked_about()?;
        self.url_change.as_mut()?.consent = UrlConsent::Given;
        Some(self)
    }

    /// The title of the document that the last poll read at a changed URL, and that is not taken
    /// without consent.
    pub fn asked_about(&self) -> Option<&str> {
        match &self.health.fault.as_ref()?.kind {
            FaultKind::Unrecognised { title, .. } => Some(title),
            _ => None,
        }
    }

    /// True while the operator's consent to the changed URL is given and not used.
    pub fn has_consent(&self) -> bool {
        self.url_change
            .as_ref()
            .is_some_and(|change| change.consent == UrlConsent::Given)
    }

    /// The same after a change of the feed's settings while it is polled: the new policy counts at
    /// once.
    pub fn under(self, url: &str, policy: &Policy, now: Stamp) -> Self {
        let mut resumed = self.resumed(url, policy, now);
        if let Some(polled_at) = resumed.timetable.polled_at
            && polled_at <= now
        {
            let earliest = polled_at.plus_secs(interval::floor_secs(&resumed, policy));
            resumed.timetable.next_at = resumed.timetable.next_at.max(earliest);
        }
        resumed
    }

    // Decides: Is a poll state that comes to the store late kept?
    /// True for the state of an earlier poll than the one that is held. A poll after now is of a
    /// clock that went back since, and says nothing.
    pub fn is_outdated_by(&self, held: &Self, now: Stamp) -> bool {
        let (own, held) = (self.timetable.polled_at, held.timetable.polled_at);
        own.zip(held)
            .is_some_and(|(own, held)| own < held && held <= now)
    }

    /// The same as if its last document had not been read: the next poll reads it again.
    #[must_use]
    pub fn without_document(mut self) -> Self {
        self.validators = None;
        self.document.body = None;
        self
    }

    /// Time at which a hint polls the feed. It ends a back-off; it never ends a `not_before` of the
    /// host; one that comes within five seconds of the last one that polled waits for their end; a
    /// feed that said 410, or whose quota is reached, is looked at once a day.
    pub fn hinted_at(&self, last_hint: Option<Stamp>, host_not_before: Stamp, now: Stamp) -> Stamp {
        // A moment that is still to come is of a clock that went back since.
        let rested = |since: Option<Stamp>, secs: u64| match since {
            Some(since) if since <= now => since.plus_secs(secs),
            _ => now,
        };
        let mut at = now.max(host_not_before).max(rested(last_hint, HINT_SECS));
        if self.health.gone_at.is_some() {
            at = at.max(rested(self.timetable.polled_at, GONE_SECS));
        }
        if self.is_at_quota() {
            at = at.max(rested(self.timetable.polled_at, QUOTA_SECS));
        }
        at
    }

    // Decides: Does the next request carry validators?
    /// Plan of the next request. The configured URL is asked at least once a week, unconditionally,
    /// so that a redirect that was taken back is noticed, and so that no validator hides a deletion
    /// for ever; every `audit_secs` while something is missed.
    pub fn plan(&self, audit_secs: u64, now: Stamp) -> Plan {
        let recent = self
            .timetable
            .unconditional_at
            .is_some_and(|at| at <= now && now < self.audit_at(audit_secs));
        let has_any = |pair: &ValidatorPair| pair.etag.is_some() || pair.last_modified.is_some();
        let conditional = recent && self.validators.as_ref().is_some_and(has_any);
        let moved = self
            .health
            .moved
            .as_ref()
            .filter(|moved| conditional && moved.is_believed(now));
        let announced = self.health.announced.as_ref();
        let announced = announced.filter(|announced| announced.is_believed(now));
        let (url, address) = match (moved, announced, self.named_address()) {
            (Some(moved), ..) => (&moved.url, AskedAddress::Moved),
            (_, Some(announced), _) => (&announced.url, AskedAddress::Announced),
            (_, _, Some(named)) => (named, AskedAddress::NamedByPage),
            _ => (&self.url, AskedAddress::Configured),
        };
        Plan {
            url: url.clone(),
            conditional,
            address,
        }
    }

    /// The address of the feed that is polled in the place of the configured page, while it answers.
    pub fn named_address(&self) -> Option<&String> {
        let named = self.named.as_ref().filter(|named| !named.is_lost);
        named.map(|named| &named.url)
    }

    /// True if a web page at the configured URL may be asked for the feed that it names: no feed has
    /// ever been there.
    pub fn may_be_page(&self) -> bool {
        self.named.is_some() || self.health.good_at.is_none()
    }

    /// From when on the next request carries no validators.
    pub fn audit_at(&self, audit_secs: u64) -> Stamp {
        let secs = if self.timetable.wants_audit {
            audit_secs.min(UNCONDITIONAL_SECS)
        } else {
            UNCONDITIONAL_SECS
        };
        let audit_at = self
            .timetable
            .unconditional_at
            .map_or(Stamp::ZERO, |at| at.plus_secs(secs));
        self.timetable
            .agrees_at
            .map_or(audit_at, |agrees_at| agrees_at.min(audit_at))
    }

    /// True while nothing more can be kept of the feed.
    pub fn is_at_quota(&self) -> bool {
        self.health
            .fault
            .as_ref()
            .is_some_and(|fault| matches!(fault.kind, FaultKind::Quota { .. }))
    }

    /// True when the server named the time before which it wants no poll.
    fn asked_to_stay_away(&self) -> bool {
        self.health
            .fault
            .as_ref()
            .is_some_and(|fault| matches!(fault.kind.status(), Some(429 | 503)))
    }
}
