//! From what a poll brought to what is remembered of it and when the next one is due.

use super::{FaultNote, GONE_SECS, Moved, Policy, PollState, Whose, calendar, interval, retry_after_secs};
use crate::feed::stamp::Stamp;
use everfeed_adapters::{Digest, Rhythm, platforms::Detected};

/// What one poll brought.
#[derive(Clone, Debug)]
pub enum Outcome<'a> {
    /// 304, or a body that equals the last good one.
    Unchanged(Answer),
    /// A document that was read and committed.
    Document(Answer, Document<'a>),
    /// Anything else.
    Failed(Failure),
    /// The request was not sent: we held it back ourselves.
    Deferred {
        /// For at least so many seconds.
        wait_secs: u64,
    },
}

/// What a good answer says in its headers.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The URL asked first.
    pub asked: String,
    /// Whether validators were sent.
    pub conditional: bool,
    /// `ETag` and `Last-Modified`, verbatim, and the URL that sent them. `None` keeps those that are known.
    pub validators: Option<(Option<String>, Option<String>, String)>,
    /// Seconds for which the answer stays fresh: `max-age` less `Age`, or `Expires`.
    pub fresh_secs: Option<u64>,
    /// Where permanent redirects led, if all redirects were permanent.
    pub moved_to: Option<String>,
}

/// What a good document adds to that.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    /// Digest of its bytes; `None` for a part of a document, which is never compared with the next.
    pub body: Option<Digest>,
    /// How often it wants to be polled.
    pub rhythm: &'a Rhythm,
    /// Whether it brought new items.
    pub arrived: bool,
    /// What was odd about it.
    pub remark: Option<String>,
    /// Whether it lacks something that an unconditional request would prove.
    pub wants_audit: bool,
    /// Until when something is held back, if anything is.
    pub held_until: Option<Stamp>,
    /// The software that makes it.
    pub platform: Option<Detected>,
}

/// Why a poll brought nothing.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Whose fault it is.
    pub whose: Whose,
    /// What happened, without secrets.
    pub text: String,
    /// The HTTP status, if an answer came.
    pub status: Option<u16>,
    /// `Retry-After` of the answer, as far as it counts ([`retry_after_secs`]).
    pub retry_after_secs: Option<u64>,
}

impl Failure {
    /// A failure on our side, in these words.
    pub fn ours(why: impl ToString) -> Self {
        Self { whose: Whose::Ours, text: why.to_string(), status: None, retry_after_secs: None }
    }
}

/// How long a feed that says 410 is looked at once a day before it is left alone (POLLING 1.5).
const GONE_STOP_SECS: u64 = 14 * 86_400;

/// What is remembered after a poll that ended at `now`. `jitter` is a random number of 0..1.
pub fn next(state: &PollState, outcome: &Outcome<'_>, policy: &Policy, now: Stamp, jitter: f64) -> PollState {
    let mut next = state.clone();
    match outcome {
        Outcome::Unchanged(answer) => {
            next.at_rest = true;
            next.learn(answer, now);
            next.due_after_success(answer, policy, now, jitter);
        }
        Outcome::Document(answer, document) => {
            next.arrive(document, now);
            next.learn(answer, now);
            next.due_after_success(answer, policy, now, jitter);
        }
        Outcome::Failed(failure) => next.fail(failure, policy, now, jitter),
        Outcome::Deferred { wait_secs } => {
            next.next_at = later(now.plus_secs((*wait_secs).max(1)), interval::slack_us(*wait_secs, jitter));
            return next;
        }
    }
    next.polled_at = Some(now);
    next
}

impl PollState {
    fn learn(&mut self, answer: &Answer, now: Stamp) {
        if let Some((etag, last_modified, url)) = answer.validators.clone() {
            // Always both, even if one is now missing: a pair of two answers matches neither (FRB 014).
            (self.etag, self.last_modified, self.validators_url) = (etag, last_modified, Some(url));
        }
        if !answer.conditional {
            self.unconditional_at = Some(now);
        }
        self.moved = self.moved_after(answer, now);
        self.good_at = Some(now);
        self.failures = 0;
        self.fault = None;
        self.gone_at = None;
    }

    /// Permanent redirects must agree for days, and a redirect that ceases is forgotten.
    fn moved_after(&self, answer: &Answer, now: Stamp) -> Option<Moved> {
        let held = self.moved.as_ref();
        match (&answer.moved_to, held) {
            (Some(to), Some(held)) if held.url == *to => Some(held.clone()),
            (Some(to), _) => Some(Moved { url: to.clone(), since: now }),
            (None, Some(held)) if held.url == answer.asked => Some(held.clone()),
            (None, _) => None,
        }
    }

    fn arrive(&mut self, document: &Document<'_>, now: Stamp) {
        self.body = document.body.or(self.body);
        self.remark.clone_from(&document.remark);
        self.wants_audit = document.wants_audit;
        (self.at_rest, self.held_until) = (false, document.held_until);
        self.platform.clone_from(&document.platform);
        let rhythm = document.rhythm;
        let ttl_secs = rhythm.ttl_mins.map(|mins| u64::from(mins) * 60);
        self.hinted_secs = ttl_secs.max(rhythm.update_secs.map(u64::from)).filter(|secs| *secs > 0);
        self.skip_hours.clone_from(&rhythm.skip_hours);
        self.skip_days.clone_from(&rhythm.skip_days);
        // The first good document counts, so that the silence of a feed that stays empty has a beginning.
        if document.arrived || self.good_at.is_none() {
            self.arrivals.push(now);
            let surplus = self.arrivals.len().saturating_sub(Self::ARRIVALS_MAX);
            self.arrivals.drain(..surplus);
        }
    }

    fn due_after_success(&mut self, answer: &Answer, policy: &Policy, now: Stamp, jitter: f64) {
        let secs = interval::ordinary_secs(self, answer.fresh_secs, policy, now);
        self.next_at = self.after(secs, policy, now, jitter);
    }

    fn fail(&mut self, failure: &Failure, policy: &Policy, now: Stamp, jitter: f64) {
        let since = self.fault.as_ref().filter(|_| self.failures > 0).map_or(now, |fault| fault.since);
        self.failures = self.failures.saturating_add(1);
        self.fault = Some(FaultNote {
            whose: failure.whose,
            text: failure.text.clone(),
            status: failure.status,
            since,
        });
        if failure.status == Some(410) {
            self.gone_at.get_or_insert(now);
        }
        let throttled = matches!(failure.status, Some(429 | 503));
        if failure.whose == Whose::Upstream && !throttled {
            // A move that has come to nothing is undone: the next poll asks the configured URL.
            self.moved = self.moved.take().filter(|moved| !moved.is_believed(now));
        }
        let named_secs = failure.status.and_then(|status| retry_after_secs(status, failure.retry_after_secs));
        self.next_at = match (self.gone_at, named_secs) {
            (Some(gone_at), _) if now.secs_since(gone_at) >= GONE_STOP_SECS => Stamp::MAX,
            (Some(_), _) => later(now.plus_secs(GONE_SECS), interval::slack_us(GONE_SECS, jitter)),
            (None, Some(secs)) => {
                let secs = secs.max(interval::floor_secs(self, policy));
                later(now.plus_secs(secs), interval::slack_us(secs, jitter))
            }
            (None, None) => {
                let secs = interval::back_off_secs(self, failure.status, policy);
                self.after(secs, policy, now, jitter)
            }
        };
    }

    /// The end of an interval that we chose, outside of what the publisher skips.
    fn after(&self, secs: u64, policy: &Policy, now: Stamp, jitter: f64) -> Stamp {
        let at = later(now, interval::jittered_us(secs, self, policy, jitter));
        let open = calendar::step_out(at, &self.skip_hours, &self.skip_days);
        // All who skip the same hours would otherwise be due at the same second.
        if open == at { at } else { later(open, interval::slack_us(3600, jitter)) }
    }
}

fn later(at: Stamp, us: u64) -> Stamp {
    Stamp::from_micros(at.micros().saturating_add(us))
}
