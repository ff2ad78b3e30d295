//! Decisions on the feeds of a list over days, by a clock that the tests set.

use super::*;

const HOUR: u64 = 3600;
const DAY: u64 = 86_400;
const START: Stamp = Stamp::from_secs(1_780_272_000);

/// A list and the feeds that it brought, by name: whether each is paused.
struct Rig {
    list: OpmlList,
    feeds: Vec<(String, bool)>,
    now: Stamp,
}

impl Rig {
    fn of(count: usize) -> Self {
        Self {
            list: OpmlList::default(),
            feeds: (0..count).map(|no| (format!("f{no:03}"), false)).collect(),
            now: START,
        }
    }

    /// Reads the list, which lacks these, and makes what is decided.
    fn read_without(&mut self, lacks: &[usize]) -> OpmlDecision {
        let brought: Vec<BroughtFeed<'_>> = self
            .feeds
            .iter()
            .enumerate()
            .map(|(at, (name, is_paused))| BroughtFeed {
                name,
                is_listed: !lacks.contains(&at),
                is_paused: *is_paused,
            })
            .collect();
        let decision = self.list.decide(&brought, self.now);
        for (name, is_paused) in &mut self.feeds {
            *is_paused |= decision.pause.contains(name);
            *is_paused &= !decision.resume.contains(name);
        }
        decision
    }

    fn after(&mut self, secs: u64) -> &mut Self {
        self.now = self.now.plus_secs(secs);
        self
    }

    fn paused(&self) -> Vec<&str> {
        let paused = self.feeds.iter().filter(|(_, is_paused)| *is_paused);
        paused.map(|(name, _)| name.as_str()).collect()
    }
}

#[test]
fn a_feed_is_paused_after_three_days_and_three_reads_and_resumed_when_it_is_back() {
    let mut rig = Rig::of(4);
    assert!(rig.read_without(&[]).may_add);
    for _ in 0..72 {
        assert!(rig.after(HOUR).read_without(&[1]).pause.is_empty());
    }
    assert_eq!(rig.after(HOUR).read_without(&[1]).pause, ["f001"]);
    assert_eq!(rig.list.paused, ["f001"]);
    assert!(rig.list.absent.is_empty() && rig.list.off_names().contains("f001"));
    assert!(rig.after(HOUR).read_without(&[1]).pause.is_empty());
    assert_eq!(rig.after(HOUR).read_without(&[]).resume, ["f001"]);
    assert!(rig.paused().is_empty() && rig.list.paused.is_empty());
}

#[test]
fn days_without_reads_and_reads_within_days_agree_on_nothing() {
    let mut rig = Rig::of(4);
    rig.read_without(&[0]);
    // Two reads, ten days apart.
    assert!(rig.after(10 * DAY).read_without(&[0]).pause.is_empty());
    assert_eq!(rig.after(60).read_without(&[0]).pause, ["f000"]);
    // One read that shows the feed begins it anew.
    let mut rig = Rig::of(4);
    for lacks in [&[0][..], &[0], &[0], &[], &[0], &[0]] {
        assert!(rig.after(DAY).read_without(lacks).pause.is_empty());
    }
}

#[test]
fn failed_reads_change_nothing_and_count_for_nothing() {
    let mut rig = Rig::of(4);
    rig.read_without(&[0]);
    for _ in 0..100 {
        rig.after(HOUR);
        let why = "no answer".to_owned();
        rig.list
            .failed(Whose::Upstream, why, Some(9 * DAY), rig.now);
    }
    let fault = rig.list.fault.clone().unwrap();
    assert_eq!(
        (fault.since, rig.list.failures),
        (START.plus_secs(HOUR), 100)
    );
    // The longest Retry-After is a day.
    let next = rig.list.next_read_at(HOUR, "", rig.now);
    assert_eq!(next, rig.now.plus_secs(DAY));
    assert!(rig.after(HOUR).read_without(&[0]).pause.is_empty());
    assert_eq!((rig.list.failures, &rig.list.fault), (0, &None));
    assert_eq!(rig.list.absent[0].reads, 2);
    assert_eq!(rig.after(HOUR).read_without(&[0]).pause, ["f000"]);
}

#[test]
fn more_than_half_gone_changes_nothing_however_long_it_lasts() {
    let mut rig = Rig::of(4);
    rig.read_without(&[]);
    rig.list.documents = vec![OpmlDocument {
        url: "http://l/".to_owned(),
        validators: None,
    }];
    for lacks in [&[0, 1, 2][..], &[0, 1, 2, 3]] {
        for _ in 0..10 {
            let decision = rig.after(DAY).read_without(lacks);
            assert_eq!(decision, OpmlDecision::default());
        }
    }
    assert!(rig.list.documents.is_empty() && rig.list.absent.is_empty());
    let fault = rig.list.fault.clone().unwrap();
    assert!(fault.why.contains("4 of the 4"), "{}", fault.why);
    assert_eq!(fault.since, START.plus_secs(DAY));
    // Half is not more than half.
    assert!(rig.after(DAY).read_without(&[0, 1]).may_add);
    assert_eq!(rig.list.fault, None);
}

#[test]
fn a_tenth_is_paused_at_once_and_the_next_a_day_later() {
    let mut rig = Rig::of(30);
    let lacks: Vec<usize> = (0..10).collect();
    for _ in 0..3 {
        rig.read_without(&lacks);
        rig.after(DAY);
    }
    assert_eq!(rig.read_without(&lacks).pause, ["f000", "f001", "f002"]);
    for _ in 0..23 {
        assert!(rig.after(HOUR).read_without(&lacks).pause.is_empty());
    }
    // A tenth of those that are left.
    assert_eq!(rig.after(HOUR).read_without(&lacks).pause, ["f003", "f004"]);
    for _ in 0..9 {
        rig.after(DAY).read_without(&lacks);
    }
    assert_eq!(rig.paused().len(), 10);
    assert_eq!(rig.read_without(&[]).resume.len(), 10);
}

#[test]
fn a_feed_that_somebody_else_paused_or_resumed_is_left_alone() {
    let mut rig = Rig::of(4);
    rig.feeds[0].1 = true;
    for lacks in [&[][..], &[0], &[0], &[0], &[0], &[]] {
        let decision = rig.after(2 * DAY).read_without(lacks);
        assert!(decision.pause.is_empty() && decision.resume.is_empty());
    }
    // The list pauses one, and its operator resumes it: its absence is counted anew.
    for _ in 0..4 {
        rig.after(DAY).read_without(&[1]);
    }
    assert_eq!(rig.list.paused, ["f001"]);
    rig.feeds[1].1 = false;
    assert!(rig.after(DAY).read_without(&[1]).pause.is_empty());
    assert!(rig.list.paused.is_empty());
    assert_eq!(rig.list.absent[0].since, rig.now);
}

#[test]
fn a_list_is_read_at_its_interval_and_at_once_after_a_change_of_its_settings() {
    let mut list = OpmlList {
        settings: "a".to_owned(),
        ..OpmlList::default()
    };
    assert_eq!(list.next_read_at(HOUR, "a", START), Stamp::ZERO);
    list.decide(&[], START);
    let next = START.plus_secs(HOUR);
    assert_eq!(list.next_read_at(HOUR, "a", START), next);
    assert_eq!(list.next_read_at(HOUR, "b", START), Stamp::ZERO);
    // The clock was ahead.
    let before = Stamp::from_secs(START.secs() - DAY);
    assert_eq!(list.next_read_at(HOUR, "a", before), Stamp::ZERO);
}

#[test]
fn validators_are_sent_for_a_day_to_the_document_that_they_are_of() {
    let pair = ValidatorPair {
        etag: Some("\"1\"".to_owned()),
        last_modified: None,
        url: "http://l/".to_owned(),
    };
    let list = OpmlList {
        settings: "a".to_owned(),
        documents: vec![OpmlDocument {
            url: "http://l/".to_owned(),
            validators: Some(pair.clone()),
        }],
        whole_at: Some(START),
        ..OpmlList::default()
    };
    let found = |url: &str, settings: &str, now: Stamp| list.validators_of(url, settings, now);
    assert_eq!(found("http://l/", "a", START), Some(&pair));
    assert_eq!(found("http://m/", "a", START), None);
    assert_eq!(found("http://l/", "b", START), None);
    assert_eq!(found("http://l/", "a", START.plus_secs(DAY)), None);
}

#[test]
fn what_could_not_be_done_is_tried_again() {
    let mut rig = Rig::of(4);
    for _ in 0..4 {
        rig.after(DAY).read_without(&[2]);
    }
    let names = rig.list.paused.clone();
    assert_eq!(names, ["f002"]);
    rig.feeds[2].1 = false;
    rig.list.not_paused(&names, rig.now);
    assert!(rig.list.paused.is_empty());
    assert_eq!(rig.after(HOUR).read_without(&[2]).pause, ["f002"]);
    assert_eq!(rig.after(HOUR).read_without(&[]).resume, ["f002"]);
    rig.feeds[2].1 = true;
    rig.list.not_resumed(&names);
    assert_eq!(rig.after(HOUR).read_without(&[]).resume, ["f002"]);
}
