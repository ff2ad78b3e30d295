//! The journal: from the findings of each look, the events that they are. It remembers which causes
//! are open, and how often each has begun lately.

use super::{
    Cause, Event, EventKind, EventTopic, FaultOwner, Finding, Happening, Observed, Severity,
};
use crate::feed::stamp::Stamp;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Events that are kept at most. Of those of open causes the last one is kept, whatever its age.
pub const EVENTS_MAX: usize = 1000;
/// Causes that are open at most at once; the others are counted in one event.
const OPEN_MAX: usize = 200;
/// Times that a cause begins within [`UNSTEADY_SECS`] before it counts as one that comes and goes.
const BEGINS_MAX: usize = 3;
/// Seconds for which a cause that comes and goes has to be away to have ended.
const UNSTEADY_SECS: u64 = 3600;
/// Causes at most whose beginnings are remembered.
const REMEMBERED_MAX: usize = 2000;

/// The memory of the causes that are open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    open: BTreeMap<Cause, OpenCause>,
    /// The times at which causes began within the last hour.
    begun: BTreeMap<Cause, VecDeque<Stamp>>,
    /// The time of the last event.
    last: Stamp,
}

/// The events of one look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    /// New ones.
    pub events: Vec<Event>,
    /// Earlier ones of open causes, with the feeds that fail now: each takes the place of the
    /// one of its time.
    pub revised: Vec<Event>,
}

/// A cause that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OpenCause {
    /// The event by which it was reported last.
    reported: Event,
    /// True once it comes and goes.
    is_unsteady: bool,
    /// Since when it has been away, while it is.
    away_since: Option<Stamp>,
}

impl Journal {
    /// The memory after these events, oldest first.
    pub fn after<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut journal = Self::default();
        for event in events {
            journal.last = journal.last.max(event.at);
            match event.kind {
                EventKind::Began | EventKind::Unsteady => {
                    journal.note_begin(&event.cause, event.at);
                    let open = OpenCause {
                        reported: event.clone(),
                        is_unsteady: event.kind == EventKind::Unsteady,
                        away_since: None,
                    };
                    journal.open.insert(event.cause.clone(), open);
                }
                EventKind::Ended => {
                    journal.open.remove(&event.cause);
                }
                EventKind::Happened => {}
            }
        }
        journal
    }

    /// The last event of each open cause, by cause.
    pub fn open(&self) -> impl Iterator<Item = &Event> {
        self.open.values().map(|open| &open.reported)
    }

    /// True while this cause is open.
    pub fn is_open(&self, cause: &Cause) -> bool {
        self.open.contains_key(cause)
    }

    // Decides: Which findings become events, and when has a fault ended?
    /// The events of a look. A cause that was not there before begins; one that is not there any more
    /// ends. One that has begun several times within an hour comes and goes: it ends once it has been
    /// away for an hour. Where other feeds have a cause now, its event names those.
    pub fn observe(&mut self, observed: &Observed, now: Stamp) -> Reported {
        let mut events = Vec::new();
        let mut revised = Vec::new();
        let here: BTreeMap<&Cause, &Finding> = observed
            .findings
            .iter()
            .map(|finding| (&finding.cause, finding))
            .collect();
        let is_here = |cause: &Cause| here.contains_key(cause) || observed.absorbed.contains(cause);
        let mut ended = Vec::new();
        for (cause, open) in &mut self.open {
            if is_here(cause) || cause.topic == EventTopic::Others {
                open.away_since = None;
                continue;
            }
            let away_since = *open.away_since.get_or_insert(now);
            if !open.is_unsteady || now >= away_since.plus_secs(UNSTEADY_SECS) {
                ended.push(cause.clone());
            }
        }
        for cause in ended {
            events.extend(self.end(&cause, now));
        }
        let mut untold = observed.more;
        for (cause, finding) in here {
            if let Some(open) = self.open.get_mut(cause) {
                revised.extend(open.with_feeds_of(finding, now));
                continue;
            }
            if self.open.len() >= OPEN_MAX {
                untold += 1;
                continue;
            }
            let event = self.begin(finding, now);
            events.push(event);
        }
        events.extend(self.count_others(untold, now));
        Reported { events, revised }
    }

    /// The event of something that happened once; `None` for what is of no news.
    pub fn happened(&mut self, happening: &Happening, now: Stamp) -> Option<Event> {
        let finding = happening.finding()?;
        let at = self.next_at(now);
        Some(Event::of(&finding, EventKind::Happened, at))
    }

    /// The event of a finding that is reported once and never ends.
    pub fn report_once(&mut self, finding: &Finding, now: Stamp) -> Event {
        let at = self.next_at(now);
        Event::of(finding, EventKind::Happened, at)
    }

    fn begin(&mut self, finding: &Finding, now: Stamp) -> Event {
        let at = self.next_at(now);
        let is_unsteady = self.note_begin(&finding.cause, at) > BEGINS_MAX;
        let kind = if is_unsteady {
            EventKind::Unsteady
        } else {
            EventKind::Began
        };
        let event = Event::of(finding, kind, at);
        let open = OpenCause {
            reported: event.clone(),
            is_unsteady,
            away_since: None,
        };
        self.open.insert(finding.cause.clone(), open);
        event
    }

    fn end(&mut self, cause: &Cause, now: Stamp) -> Option<Event> {
        let open = self.open.remove(cause)?;
        Some(Event {
            at: self.next_at(now),
            kind: EventKind::Ended,
            joined_at: None,
            ..open.reported
        })
    }

    /// Reports that there are more causes than are told one by one, or that there are not any more.
    fn count_others(&mut self, untold: u32, now: Stamp) -> Option<Event> {
        let cause = Cause::new(EventTopic::Others, "");
        match (untold, self.open.contains_key(&cause)) {
            (1.., false) => {
                let title = format!("{untold} more causes");
                let text = format!(
                    "{OPEN_MAX} causes are open, and {untold} more are not reported one by one"
                );
                let finding = Finding::new(cause, FaultOwner::Nobody, now, &title, &text);
                let finding = finding.remedy("`everfeed status` lists all feeds that fail");
                Some(self.begin(&finding, now))
            }
            (0, true) => self.end(&cause, now),
            _ => None,
        }
    }

    /// Notes that a cause begins, and tells how often it has begun within an hour.
    fn note_begin(&mut self, cause: &Cause, now: Stamp) -> usize {
        let is_recent = |at: &Stamp| now < at.plus_secs(UNSTEADY_SECS);
        if self.begun.len() >= REMEMBERED_MAX {
            self.begun.retain(|_, at| at.back().is_some_and(is_recent));
        }
        if self.begun.len() >= REMEMBERED_MAX && !self.begun.contains_key(cause) {
            return 1;
        }
        let times = self.begun.entry(cause.clone()).or_default();
        times.retain(is_recent);
        times.push_back(now);
        if times.len() > BEGINS_MAX + 1 {
            times.pop_front();
        }
        times.len()
    }

    /// The time of the next event: now, or a little later where another one has that.
    fn next_at(&mut self, now: Stamp) -> Stamp {
        self.last = now.max(self.last.next());
        self.last
    }
}

impl OpenCause {
    /// The event with the feeds of a finding, where those are others than it tells of. One that more
    /// feeds have joined has changed; one that feeds have left has not.
    fn with_feeds_of(&mut self, finding: &Finding, now: Stamp) -> Option<Event> {
        if finding.feeds == self.reported.feeds || finding.feeds.total == 0 {
            return None;
        }
        let Event {
            at,
            kind,
            joined_at,
            ..
        } = self.reported;
        let before = self.reported.updated();
        let is_joined = finding.feeds.has_joined(&self.reported.feeds);
        self.reported = Event {
            // A clock that was set back makes no event older.
            joined_at: is_joined.then(|| now.max(before.next())).or(joined_at),
            ..Event::of(finding, kind, at)
        };
        Some(self.reported.clone())
    }
}

/// The times of those events that are removed so that so many are left: the oldest, but for the last
/// one of each open cause. The events come oldest first, each with its cause and its kind.
pub fn removed_beyond(events: &[(Stamp, Cause, EventKind)], events_max: usize) -> Vec<Stamp> {
    let mut open: BTreeMap<&Cause, Stamp> = BTreeMap::new();
    for (at, cause, kind) in events {
        match kind {
            EventKind::Began | EventKind::Unsteady => {
                open.insert(cause, *at);
            }
            EventKind::Ended => {
                open.remove(cause);
            }
            EventKind::Happened => {}
        }
    }
    let kept: BTreeSet<Stamp> = open.into_values().collect();
    let too_many = events.len().saturating_sub(events_max);
    let oldest = events.iter().map(|(at, ..)| *at);
    oldest
        .filter(|at| !kept.contains(at))
        .take(too_many)
        .collect()
}

impl Event {
    /// True for one that is repeated while it lasts.
    pub fn is_lasting_fault(&self) -> bool {
        self.severity == Severity::Fault
            && matches!(self.kind, EventKind::Began | EventKind::Unsteady)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Stamp = Stamp::from_secs(1_000_000);

    fn finding(key: &str) -> Finding {
        let cause = Cause::new(EventTopic::Feeds, key);
        Finding::new(cause, FaultOwner::Upstream, AT, key, "500").remedy("wait")
    }

    fn seen(keys: &[&str]) -> Observed {
        Observed {
            findings: keys.iter().map(|key| finding(key)).collect(),
            ..Observed::default()
        }
    }

    /// What a journal makes of looks, each so many seconds after the first.
    fn check(looks: &[(u64, &[&str], &[&str])]) -> Journal {
        let mut journal = Journal::default();
        for (secs, keys, expect) in looks {
            let events = journal.observe(&seen(keys), AT.plus_secs(*secs)).events;
            let told = |event: &Event| format!("{} {}", event.kind.name(), event.cause.key);
            assert_eq!(
                events.iter().map(told).collect::<Vec<_>>(),
                *expect,
                "at {secs}"
            );
        }
        journal
    }

    #[test]
    fn a_cause_begins_once_and_ends_once() {
        let journal = check(&[
            (0, &["a"], &["began a"]),
            (2, &["a", "b"], &["began b"]),
            (4, &["b"], &["ended a"]),
            (6, &["b"], &[]),
        ]);
        assert_eq!(journal.open().count(), 1);
    }

    #[test]
    fn a_fault_that_comes_and_goes_is_told_as_such_and_ends_after_an_hour_away() {
        check(&[
            (0, &["a"], &["began a"]),
            (60, &[], &["ended a"]),
            (120, &["a"], &["began a"]),
            (180, &[], &["ended a"]),
            (240, &["a"], &["began a"]),
            (300, &[], &["ended a"]),
            (360, &["a"], &["unsteady a"]),
            (420, &[], &[]),
            (480, &["a"], &[]),
            (540, &[], &[]),
            (540 + 3599, &[], &[]),
            (540 + 3600, &[], &["ended a"]),
            (9000, &["a"], &["began a"]),
        ]);
    }

    #[test]
    fn a_restart_reports_nothing_again_and_remembers_what_comes_and_goes() {
        let mut journal = Journal::default();
        let mut events = Vec::new();
        for secs in [0, 60, 120, 180, 240] {
            let keys: &[&str] = if secs % 120 == 0 { &["a", "b"] } else { &["b"] };
            events.extend(journal.observe(&seen(keys), AT.plus_secs(secs)).events);
        }
        let mut again = Journal::after(&events);
        assert_eq!(again, journal);
        let reported = again.observe(&seen(&["a", "b"]), AT.plus_secs(300));
        assert_eq!(reported, Reported::default());
    }

    #[test]
    fn an_open_cause_names_the_feeds_that_fail_now() {
        let of = |names: &[&str]| {
            let mut finding = finding("a");
            names.iter().for_each(|name| finding.feeds.add(name));
            Observed {
                findings: vec![finding],
                ..Observed::default()
            }
        };
        let mut journal = Journal::default();
        let first = journal.observe(&of(&["x"]), AT).events.remove(0);
        let second = journal.observe(&of(&["x", "y"]), AT.plus_secs(2));
        assert_eq!(second.events, []);
        assert_eq!(
            (second.revised[0].at, second.revised[0].feeds.total),
            (first.at, 2)
        );
        // It moves up in a feed reader.
        assert_eq!(second.revised[0].updated(), AT.plus_secs(2));
        // Nobody is told that a feed lasts to fail which is well again.
        let third = journal.observe(&of(&["y"]), AT.plus_secs(4));
        assert_eq!((third.events.len(), third.revised[0].feeds.total), (0, 1));
        assert_eq!(third.revised[0].updated(), AT.plus_secs(2), "none joined");
        // A restart remembers it.
        let mut again = Journal::after(&third.revised);
        let fourth = again.observe(&of(&["z"]), AT.plus_secs(5));
        assert_eq!(fourth.revised[0].updated(), AT.plus_secs(5));
        let end = journal.observe(&of(&[]), AT.plus_secs(6));
        assert_eq!(end, Reported::default());
        let end = journal
            .observe(&seen(&[]), AT.plus_secs(8))
            .events
            .remove(0);
        assert_eq!(end.feeds.total, 1);
    }

    #[test]
    fn a_part_of_a_greater_cause_neither_begins_nor_ends() {
        let mut journal = Journal::default();
        let first = journal.observe(&seen(&["a"]), AT).events;
        assert_eq!(first.len(), 1);
        let absorbed = ["a", "b"]
            .map(|key| Cause::new(EventTopic::Feeds, key))
            .into();
        let look = Observed {
            findings: vec![finding("network")],
            absorbed,
            more: 0,
        };
        let events = journal.observe(&look, AT.plus_secs(2)).events;
        assert_eq!(events.len(), 1, "{events:?}");
    }

    #[test]
    fn no_two_events_have_one_time_and_a_clock_that_was_set_back_changes_no_order() {
        let mut journal = Journal::default();
        let first = journal.observe(&seen(&["a", "b"]), AT).events;
        assert!(first[0].at < first[1].at);
        let later = journal.observe(&seen(&[]), Stamp::from_secs(5)).events;
        assert!(later[0].at > first[1].at && later[1].at > later[0].at);
    }

    #[test]
    fn more_causes_than_are_told_are_counted_in_one_event() {
        let keys: Vec<String> = (0..500).map(|no| format!("{no:03}")).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut journal = Journal::default();
        let events = journal.observe(&seen(&keys), AT).events;
        assert_eq!(events.len(), OPEN_MAX + 1);
        assert_eq!(events[OPEN_MAX].title, "300 more causes");
        let again = journal.observe(&seen(&keys), AT.plus_secs(2));
        assert_eq!(again, Reported::default());
        let ends = journal.observe(&seen(&keys[..10]), AT.plus_secs(4)).events;
        assert_eq!(ends.len(), OPEN_MAX - 10 + 1);
    }

    #[test]
    fn the_oldest_events_go_and_the_last_one_of_an_open_cause_stays() {
        let event = |secs: u64, key: &str, kind| {
            (AT.plus_secs(secs), Cause::new(EventTopic::Feeds, key), kind)
        };
        let all = [
            event(0, "open", EventKind::Began),
            event(1, "a", EventKind::Began),
            event(2, "a", EventKind::Ended),
            event(3, "b", EventKind::Happened),
        ];
        assert!(removed_beyond(&all, 4).is_empty());
        assert_eq!(removed_beyond(&all, 2), [AT.plus_secs(1), AT.plus_secs(2)]);
        assert_eq!(removed_beyond(&all, 0).len(), 3);
    }
}
