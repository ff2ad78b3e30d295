//! From what a poll brought to what is remembered of it and when the next one is due.

use super::{
    AnnouncedMove, AskedAddress, FaultKind, FaultNote, GONE_SECS, NamedFeed, PermanentMove, Policy,
    PollState, QUOTA_SECS, Repeat, UrlConsent, ValidatorPair, Whose, calendar, interval,
    retry_after_secs,
};
use crate::stamp::Stamp;
use everfeed_adapters::{Digest, Rhythm, platforms::Detected};
use std::fmt;

/// Result of one poll.
#[derive(Clone, Debug)]
pub enum PollOutcome<'a> {
    /// 304, or a body that equals the last good one.
    Unchanged(Answer),
    /// A document that was read and committed.
    Document(Answer, PolledDocument<'a>),
    /// Anything else.
    Failed(Failure),
    /// The request was not sent: we held it back ourselves.
    Deferred {
        /// For at least so many seconds.
        wait_secs: u64,
    },
}

/// Facts of a good answer, from its headers.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The URL asked first.
    pub asked: String,
    /// Which address of the feed that is.
    pub address: AskedAddress,
    /// True when validators were sent.
    pub conditional: bool,
    /// Its validators. `None` keeps those that are known.
    pub validators: Option<ValidatorPair>,
    /// Seconds for which the answer stays fresh: `max-age` less `Age`, or `Expires`.
    pub fresh_secs: Option<u64>,
    /// Target of permanent redirects, if all redirects were permanent.
    pub moved_to: Option<String>,
}

/// Facts that a good document adds to that.
#[derive(Clone, Debug)]
pub struct PolledDocument<'a> {
    /// Digest of its bytes; `None` for a part of a document, which is never compared with the next.
    pub body: Option<Digest>,
    /// Rhythm in which it wants to be polled.
    pub rhythm: &'a Rhythm,
    /// True when it brought new items.
    pub arrived: bool,
    /// Remark on its oddities.
    pub remark: Option<String>,
    /// True when it lacks something that an unconditional request would prove.
    pub wants_audit: bool,
    /// Time from which on an unconditional answer decides on deleted items that it shows again.
    pub agrees_at: Option<Stamp>,
    /// Time from which on deferred edits are committed, if there are any.
    pub deferred_until: Option<Stamp>,
    /// The software that makes it.
    pub platform: Option<Detected>,
    /// Since when every document has been cut short or empty; `None` for one that is not.
    pub broken_since: Option<Stamp>,
    /// The address to which it says that the feed has moved.
    pub announces: Option<String>,
    /// True while items are missing from it that are not decided on.
    pub has_suspects: bool,
}

/// Failure of a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its reason.
    pub kind: FaultKind,
    /// `Retry-After` of the answer, as far as it counts ([`retry_after_secs`]).
    pub retry_after_secs: Option<u64>,
}

impl Failure {
    /// A failure of this kind that names no time.
    pub fn of(kind: FaultKind) -> Self {
        Self {
            kind,
            retry_after_secs: None,
        }
    }

    /// A failure on our side, for this reason.
    pub fn ours(reason: impl ToString) -> Self {
        Self::of(FaultKind::Internal {
            reason: reason.to_string(),
        })
    }

    /// Whose fault it is.
    pub fn whose(&self) -> Whose {
        self.kind.whose()
    }

    /// The HTTP status, if an answer came.
    pub fn status(&self) -> Option<u16> {
        self.kind.status()
    }
}

/// In the operator's words, without secrets.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

/// Seconds for which a feed that says 410 is looked at once a day before it is left alone (POLLING
/// 1.5).
const GONE_STOP_SECS: u64 = 14 * 86_400;

/// Poll state after a poll that ended at `now`. `jitter` is a random number of 0..1.
pub fn next(
    state: &PollState,
    outcome: &PollOutcome<'_>,
    policy: &Policy,
    now: Stamp,
    jitter: f64,
) -> PollState {
    let mut next = state.clone();
    match outcome {
        PollOutcome::Unchanged(answer) => {
            next.document.repeat = Repeat::Unchanged;
            next.document.changed_running = 0;
            next.learn(answer, now);
            next.arrive_where_announced(answer.address);
            next.due_after_success(answer, policy, now, jitter);
        }
        PollOutcome::Document(answer, document) => {
            next.arrive(document, now);
            next.learn(answer, now);
            if !next.arrive_where_announced(answer.address) {
                let held = next.health.announced.take();
                let to = document.announces.as_deref();
                next.health.announced = AnnouncedMove::after(held, to, now);
            }
            next.due_after_success(answer, policy, now, jitter);
        }
        PollOutcome::Failed(failure) => next.fail(failure, policy, now, jitter),
        PollOutcome::Deferred { wait_secs } => {
            next.timetable.next_at = later(
                now.plus_secs((*wait_secs).max(1)),
                interval::slack_us(*wait_secs, jitter),
            );
            return next;
        }
    }
    next.timetable.polled_at = Some(now);
    next
}

impl PollState {
    fn learn(&mut self, answer: &Answer, now: Stamp) {
        // Always both, even if one is now missing: a pair of two answers matches neither (FRB 014).
        self.validators = answer.validators.clone().or(self.validators.take());
        if !answer.conditional {
            self.timetable.unconditional_at = Some(now);
        }
        let held = self.health.moved.take();
        self.health.moved =
            PermanentMove::after(held, answer.moved_to.as_deref(), &answer.asked, now);
        self.named = NamedFeed::after(self.named.take(), answer.address, &answer.asked, now);
        self.health.good_at = Some(now);
        self.health.failures = 0;
        self.health.fault = None;
        self.health.gone_at = None;
    }

    /// Notes that the feed was read where its documents announced it, and returns true, if that was
    /// the address.
    // Limit: what that address announces in its turn counts once it is configured.
    fn arrive_where_announced(&mut self, address: AskedAddress) -> bool {
        if address != AskedAddress::Announced {
            return false;
        }
        if let Some(announced) = &mut self.health.announced {
            announced.is_taken = true;
        }
        true
    }

    fn arrive(&mut self, document: &PolledDocument<'_>, now: Stamp) {
        self.document.body = document.body.or(self.document.body);
        self.url_change = None;
        self.document.remark.clone_from(&document.remark);
        self.timetable.wants_audit = document.wants_audit;
        self.timetable.agrees_at = document.agrees_at;
        (self.document.repeat, self.document.deferred_until) =
            (Repeat::Changed, document.deferred_until);
        self.document.platform.clone_from(&document.platform);
        self.document.broken_since = document.broken_since;
        self.document.has_suspects = document.has_suspects;
        self.document.changed_running = self.document.changed_running.saturating_add(1);
        let rhythm = document.rhythm;
        let ttl_secs = rhythm.ttl_mins.map(|mins| u64::from(mins) * 60);
        self.timetable.hinted_secs = ttl_secs
            .max(rhythm.update_secs.map(u64::from))
            .filter(|secs| *secs > 0);
        self.timetable.skip_hours.clone_from(&rhythm.skip_hours);
        self.timetable.skip_days.clone_from(&rhythm.skip_days);
        // The first good document counts, so that the silence of a feed that stays empty has a
        // beginning.
        if document.arrived || self.health.good_at.is_none() {
            self.timetable.arrivals.push(now);
            let surplus = self
                .timetable
                .arrivals
                .len()
                .saturating_sub(Self::ARRIVALS_MAX);
            self.timetable.arrivals.drain(..surplus);
        }
    }

    fn due_after_success(&mut self, answer: &Answer, policy: &Policy, now: Stamp, jitter: f64) {
        let secs = interval::ordinary_secs(self, answer.fresh_secs, policy, now);
        let spread_secs = if self.timetable.polled_at.is_none() {
            policy.spread_secs.min(secs)
        } else {
            0
        };
        let spread_us = interval::share_us(spread_secs, jitter);
        self.timetable.next_at = later(self.after(secs, policy, now, jitter), spread_us);
    }

    fn fail(&mut self, failure: &Failure, policy: &Policy, now: Stamp, jitter: f64) {
        let since = match &self.health.fault {
            Some(fault) if self.health.failures > 0 => fault.since,
            _ => now,
        };
        self.health.failures = self.health.failures.saturating_add(1);
        self.health.fault = Some(FaultNote {
            kind: failure.kind.clone(),
            since,
        });
        // What was accepted did not come, and what comes next is not known.
        if let Some(change) = &mut self.url_change {
            change.consent = UrlConsent::NotGiven;
        }
        if failure.status() == Some(410) {
            self.health.gone_at.get_or_insert(now);
        }
        let throttled = matches!(failure.status(), Some(429 | 503));
        if failure.whose() == Whose::Upstream && !throttled {
            // A move that has come to nothing is undone: the next poll asks the configured URL.
            self.health.moved.take_if(|moved| moved.is_believed(now));
        }
        self.health.announced.take_if(|announced| {
            announced.is_believed(now) && announced.is_undone_by(&failure.kind)
        });
        if let FaultKind::SaysMoved { to } = &failure.kind {
            // The document of a `redirect` is no feed, and says so as long as it is there.
            let held = self.health.announced.take();
            self.health.announced = AnnouncedMove::after(held, Some(to), now);
        }
        if let Some(named) = &mut self.named
            && failure.kind.says_no_feed()
        {
            // The next poll asks the page, which may name another address now.
            named.is_lost = true;
            self.health.moved = None;
        }
        let named_secs = failure
            .status()
            .and_then(|status| retry_after_secs(status, failure.retry_after_secs));
        self.timetable.next_at = match (self.health.gone_at, named_secs) {
            (Some(gone_at), _) if now.secs_since(gone_at) >= GONE_STOP_SECS => Stamp::MAX,
            (Some(_), _) => later(
                now.plus_secs(GONE_SECS),
                interval::slack_us(GONE_SECS, jitter),
            ),
            (None, Some(secs)) => {
                let secs = secs.max(interval::floor_secs(self, policy));
                later(now.plus_secs(secs), interval::slack_us(secs, jitter))
            }
            (None, None) => {
                let secs = if self.is_at_quota() {
                    QUOTA_SECS
                } else {
                    interval::back_off_secs(self, failure.status(), policy, now)
                };
                self.after(secs, policy, now, jitter)
            }
        };
    }

    /// The end of an interval that we chose, outside of what the publisher skips.
    fn after(&self, secs: u64, policy: &Policy, now: Stamp, jitter: f64) -> Stamp {
        let at = later(now, interval::jittered_us(secs, self, policy, jitter));
        let open = calendar::step_out(at, &self.timetable.skip_hours, &self.timetable.skip_days);
        // All who skip the same hours would otherwise be due at the same second.
        if open == at {
            at
        } else {
            later(open, interval::slack_us(3600, jitter))
        }
    }
}

fn later(at: Stamp, us: u64) -> Stamp {
    Stamp::from_micros(at.micros().saturating_add(us))
}
