//! A list of feeds (OPML) that is read at intervals: the decision which of the feeds that it brought
//! are paused or resumed after a read (U-52). Pure: `now` is an argument; not how a list is read, and not which
//! feeds it adds.

use super::{
    schedule::{ValidatorPair, Whose},
    stamp::Stamp,
};
use std::collections::{HashMap, HashSet};

#[cfg(test)]
mod tests;

/// Seconds for which a feed has to be missing in a list before it is paused: three days.
pub const ABSENT_SECS: u64 = 3 * 86_400;
/// Successful reads that have to miss a feed before it is paused.
pub const ABSENT_READS: u32 = 3;
/// Part of the feeds of a list that is paused at once at most: a tenth, and one at least.
const PAUSED_PART: usize = 10;
/// Seconds between two times at which feeds of a list are paused, at least: a day.
pub const PAUSE_GAP_SECS: u64 = 86_400;
/// Seconds between two reads without validators, at most: a day. Such a read also adds what could not
/// be added before.
pub const WHOLE_READ_SECS: u64 = 86_400;
/// Seconds that a `Retry-After` puts the next read off, at most: a day.
const RETRY_AFTER_MAX_SECS: u64 = 86_400;
/// Outlines that were left out and are kept with their reasons; the others are counted.
pub const SKIPPED_KEPT_MAX: usize = 20;

/// The state of a list. Kept in the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpmlList {
    /// Digest of the settings by which it was read last. After a change of them it is read at once,
    /// and whole.
    pub settings: String,
    /// Its documents: the list itself, then the lists that it includes. Empty if the next read is to
    /// be whole.
    pub documents: Vec<OpmlDocument>,
    /// Time of the last read, whatever came of it.
    pub read_at: Option<Stamp>,
    /// Time of the last successful read.
    pub good_at: Option<Stamp>,
    /// Time of the last successful read without validators.
    pub whole_at: Option<Stamp>,
    /// Time before which its server asked not to be asked again (`Retry-After`).
    pub not_before: Option<Stamp>,
    /// Number of feeds in it at the last successful read.
    pub listed: u32,
    /// Feeds that it brought and that it lacks now, and that are not paused yet.
    pub absent: Vec<AbsentFeed>,
    /// Names of the feeds that are paused because it lacks them.
    pub paused: Vec<String>,
    /// Time at which feeds were paused last.
    pub paused_at: Option<Stamp>,
    /// Reads in a row that failed or changed nothing because too much was missing.
    pub failures: u32,
    /// The fault of the last read, if it had one.
    pub fault: Option<OpmlFault>,
    /// Number of its outlines that were left out.
    pub skipped_total: u32,
    /// The first of those, each with the reason, without secrets.
    pub skipped: Vec<String>,
}

/// A document of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpmlDocument {
    /// Its address. It may hold credentials.
    pub url: String,
    /// The validators of its last answer.
    pub validators: Option<ValidatorPair>,
}

/// A feed that its list lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbsentFeed {
    /// The name of the feed.
    pub name: String,
    /// Time of the first read that missed it.
    pub since: Stamp,
    /// Successful reads that missed it.
    pub reads: u32,
}

/// The fault of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpmlFault {
    /// Whose fault it is.
    pub whose: Whose,
    /// Since when.
    pub since: Stamp,
    /// The fault in words, without secrets.
    pub why: String,
}

/// A feed that a list brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BroughtFeed<'a> {
    /// Its name.
    pub name: &'a str,
    /// True if the list has it.
    pub is_listed: bool,
    /// True while it is paused, by whomever.
    pub is_paused: bool,
}

/// The changes after a successful read to the feeds that the list brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpmlDecision {
    /// Names of the feeds to pause.
    pub pause: Vec<String>,
    /// Names of the feeds to resume.
    pub resume: Vec<String>,
    /// True if the list may add feeds.
    pub may_add: bool,
}

impl OpmlList {
    // Decides: When is a list of feeds read again?
    /// Time of the next read, if a list is read every so many seconds by settings with this digest.
    /// After a clock that was ahead it is read at once.
    pub fn next_read_at(&self, every_secs: u64, settings: &str, now: Stamp) -> Stamp {
        let is_past = |at: &Stamp| *at <= now && self.settings == settings;
        let Some(read_at) = self.read_at.filter(is_past) else {
            return Stamp::ZERO;
        };
        let usual = read_at.plus_secs(every_secs);
        self.not_before.map_or(usual, |at| usual.max(at))
    }

    /// The validators with which a document is asked for; `None` if it is to be sent whole.
    pub fn validators_of(&self, url: &str, settings: &str, now: Stamp) -> Option<&ValidatorPair> {
        let is_fresh = |at: Stamp| at <= now && now.secs_since(at) < WHOLE_READ_SECS;
        if self.settings != settings || !self.whole_at.is_some_and(is_fresh) {
            return None;
        }
        let document = self.documents.iter().find(|document| document.url == url);
        document?.validators.as_ref()
    }

    /// Names of the feeds that the last successful read missed in the list.
    pub fn off_names(&self) -> HashSet<&str> {
        let absent = self.absent.iter().map(|absent| absent.name.as_str());
        absent
            .chain(self.paused.iter().map(String::as_str))
            .collect()
    }

    /// Notes a read that failed. No feed changes.
    pub fn failed(&mut self, whose: Whose, why: String, retry_after_secs: Option<u64>, now: Stamp) {
        self.read_at = Some(now);
        let wait = retry_after_secs.map(|secs| secs.min(RETRY_AFTER_MAX_SECS));
        self.not_before = wait.map(|secs| now.plus_secs(secs));
        self.note_fault(whose, why, now);
    }

    fn note_fault(&mut self, whose: Whose, why: String, now: Stamp) {
        let since = self.fault.take().map_or(now, |fault| fault.since);
        self.failures = self.failures.saturating_add(1);
        self.fault = Some(OpmlFault { whose, since, why });
    }

    // Decides: Which feeds of a list are paused and resumed?
    /// Notes a successful read, and decides on the feeds that the list brought.
    ///
    /// If more than half of those that are polled are missing, nothing changes, and the read says
    /// nothing of the absence of any. Else a feed is paused once it was missing for [`ABSENT_SECS`]
    /// and [`ABSENT_READS`] reads, a tenth of all at once and a day apart. A feed that was paused so
    /// is resumed as soon as it is back.
    pub fn decide(&mut self, brought: &[BroughtFeed<'_>], now: Stamp) -> OpmlDecision {
        self.read_at = Some(now);
        self.not_before = None;
        let polled = brought.iter().filter(|feed| !feed.is_paused);
        let (polled, missing) = polled.fold((0, 0), |(polled, missing), feed| {
            (polled + 1, missing + usize::from(!feed.is_listed))
        });
        if missing * 2 > polled {
            let why = format!(
                "it lacks {missing} of the {polled} feeds that it brought and that are polled, more than half. Nothing is changed"
            );
            self.note_fault(Whose::Upstream, why, now);
            // What the server answers next is judged whole again.
            self.documents.clear();
            return OpmlDecision::default();
        }
        self.good_at = Some(now);
        self.failures = 0;
        self.fault = None;
        let resume = self.resumed(brought);
        self.count_absences(brought, now);
        let pause = self.paused_now(polled, now);
        OpmlDecision {
            pause,
            resume,
            may_add: true,
        }
    }

    /// The feeds that are back. A feed that somebody else resumed or removed is forgotten.
    fn resumed(&mut self, brought: &[BroughtFeed<'_>]) -> Vec<String> {
        let paused: HashSet<&str> = self.paused.iter().map(String::as_str).collect();
        let of_list = |feed: &&BroughtFeed<'_>| feed.is_paused && paused.contains(feed.name);
        let (back, still): (Vec<_>, Vec<_>) = brought
            .iter()
            .filter(of_list)
            .partition(|feed| feed.is_listed);
        let names = |feeds: Vec<&BroughtFeed<'_>>| -> Vec<String> {
            feeds.iter().map(|feed| feed.name.to_owned()).collect()
        };
        let (back, still) = (names(back), names(still));
        self.paused = still;
        back
    }

    fn count_absences(&mut self, brought: &[BroughtFeed<'_>], now: Stamp) {
        let known: HashMap<String, AbsentFeed> = std::mem::take(&mut self.absent)
            .into_iter()
            .map(|absent| (absent.name.clone(), absent))
            .collect();
        let missing = brought
            .iter()
            .filter(|feed| !feed.is_listed && !feed.is_paused);
        self.absent = missing
            .map(|feed| {
                let known = known.get(feed.name);
                AbsentFeed {
                    name: feed.name.to_owned(),
                    since: known.map_or(now, |known| known.since),
                    reads: known.map_or(1, |known| known.reads.saturating_add(1)),
                }
            })
            .collect();
    }

    /// Takes the feeds that are paused now from those that are absent, the longest absent first.
    fn paused_now(&mut self, polled: usize, now: Stamp) -> Vec<String> {
        let has_waited = |at: Stamp| now.secs_since(at) >= PAUSE_GAP_SECS;
        if !self.paused_at.is_none_or(has_waited) {
            return Vec::new();
        }
        let is_agreed = |absent: &AbsentFeed| {
            absent.reads >= ABSENT_READS && now.secs_since(absent.since) >= ABSENT_SECS
        };
        let (mut agreed, mut others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.absent)
            .into_iter()
            .partition(is_agreed);
        agreed.sort_by(|one, other| (one.since, &one.name).cmp(&(other.since, &other.name)));
        let max = (polled / PAUSED_PART).max(1);
        others.extend(agreed.split_off(agreed.len().min(max)));
        self.absent = others;
        if agreed.is_empty() {
            return Vec::new();
        }
        self.paused_at = Some(now);
        let names: Vec<String> = agreed.into_iter().map(|absent| absent.name).collect();
        self.paused.extend(names.iter().cloned());
        names
    }

    /// Notes that feeds could not be paused: they are still absent.
    pub fn not_paused(&mut self, names: &[String], now: Stamp) {
        self.paused.retain(|paused| !names.contains(paused));
        let again = names.iter().map(|name| AbsentFeed {
            name: name.clone(),
            since: Stamp::from_micros(
                now.micros()
                    .saturating_sub(ABSENT_SECS.saturating_mul(1_000_000)),
            ),
            reads: ABSENT_READS,
        });
        self.absent.extend(again);
        self.paused_at = None;
    }

    /// Notes that feeds could not be resumed: they are still paused by the list.
    pub fn not_resumed(&mut self, names: &[String]) {
        self.paused.extend(names.iter().cloned());
        // The next read is to find them again.
        self.documents.clear();
    }
}
