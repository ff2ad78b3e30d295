//! The plan of an alert against a clock that the tests set.

use super::*;
use crate::events::{AffectedFeeds, EventKind, FaultOwner, Severity};

/// 2026-11-28T00:00:00Z.
const MIDNIGHT: Stamp = Stamp::from_secs(1_795_824_000);
const NOON: Stamp = Stamp::from_secs(1_795_824_000 + 12 * 3600);
const AGAIN: u64 = 4 * 3600;

fn event(key: &str, kind: EventKind, at: Stamp) -> Event {
    of_topic(EventTopic::Feeds, key, kind, at)
}

fn of_topic(topic: EventTopic, key: &str, kind: EventKind, at: Stamp) -> Event {
    Event {
        at,
        kind,
        cause: Cause::new(topic, key),
        severity: Severity::Fault,
        whose: FaultOwner::Upstream,
        owner: "the publisher's".into(),
        since: at,
        title: key.into(),
        text: "500".into(),
        remedy: String::new(),
        feeds: AffectedFeeds::default(),
        joined_at: None,
    }
}

/// A plan, the time, and what was sent: each message with the second after the beginning.
struct Played {
    plan: AlertPlan,
    begin: Stamp,
    now: Stamp,
    sent: Vec<String>,
}

impl Played {
    fn at(begin: Stamp, quiet: Option<&str>) -> Self {
        let quiet = quiet.map(|text| QuietHours::parse(text).unwrap());
        Self {
            plan: AlertPlan::after(quiet, AGAIN, [], begin),
            begin,
            now: begin,
            sent: Vec::new(),
        }
    }

    fn take_in(&mut self, key: &str, kind: EventKind) {
        let event = event(key, kind, self.now);
        self.plan.take_in(event);
    }

    /// Plays so many seconds, and sends what is to be sent.
    fn play(&mut self, secs: u64) {
        let until = self.now.plus_secs(secs);
        loop {
            match self.plan.next(self.now) {
                AlertStep::Send(message) => {
                    self.plan.sent(&message, self.now);
                    let at = self.now.secs_since(self.begin);
                    self.sent.push(format!("{at} {}", message.subject()));
                }
                AlertStep::Wait(Some(next)) if next <= until => {
                    assert!(next > self.now, "a wait that ends at once would never end");
                    self.now = next;
                }
                AlertStep::Wait(_) => break,
            }
        }
        self.now = until;
    }

    fn check(&mut self, expect: &[&str]) {
        let sent: Vec<String> = std::mem::take(&mut self.sent);
        let bare: Vec<String> = sent
            .iter()
            .map(|line| line.replace("[everfeed] ", ""))
            .collect();
        assert_eq!(bare, expect);
    }
}

#[test]
fn a_cause_is_told_at_once_and_its_end_after_the_time() {
    let mut played = Played::at(NOON, None);
    played.take_in("a", EventKind::Began);
    played.play(600);
    played.take_in("a", EventKind::Ended);
    played.play(3 * AGAIN);
    played.check(&["0 a", "14400 Ended: a"]);
}

#[test]
fn a_fault_that_lasts_is_told_again_after_the_time() {
    let mut played = Played::at(NOON, None);
    played.take_in("a", EventKind::Began);
    played.play(2 * AGAIN);
    played.take_in("a", EventKind::Ended);
    played.play(2 * AGAIN);
    played.check(&["0 a", "14400 Lasts: a", "28800 Lasts: a", "43200 Ended: a"]);
}

#[test]
fn a_fault_that_comes_and_goes_each_minute_is_one_message_in_the_time() {
    let mut played = Played::at(NOON, None);
    for minute in 0..600 {
        let kinds = [EventKind::Began, EventKind::Ended];
        played.take_in("a", kinds[minute % 2]);
        played.play(60);
    }
    assert_eq!(played.sent.len(), 3, "{:?}", played.sent);
}

#[test]
fn twenty_messages_go_within_an_hour_and_then_a_digest() {
    let mut played = Played::at(NOON, None);
    for no in 0..35 {
        played.take_in(&format!("{no}"), EventKind::Happened);
        played.play(10);
    }
    assert_eq!(played.sent.len(), HOURLY_MAX);
    played.play(3600);
    assert_eq!(played.sent.len(), HOURLY_MAX + 1);
    assert_eq!(played.sent.pop().unwrap(), "3600 [everfeed] 15 events");
    played.play(2 * AGAIN);
    assert_eq!(played.sent.len(), HOURLY_MAX);
}

#[test]
fn in_no_hour_are_there_more_than_twenty_messages() {
    let mut played = Played::at(NOON, None);
    for no in 0..3000 {
        played.take_in(&format!("{no}"), EventKind::Began);
        played.play(7);
    }
    let times: Vec<u64> = played
        .sent
        .iter()
        .map(|line| line.split(' ').next().unwrap().parse().unwrap())
        .collect();
    for at in &times {
        let within = times
            .iter()
            .filter(|other| **other >= *at && **other < at + 3600);
        assert!(within.count() <= HOURLY_MAX);
    }
}

#[test]
fn quiet_hours_end_with_a_digest_of_what_happened_in_them() {
    let mut played = Played::at(MIDNIGHT, Some("22:00-07:00"));
    played.take_in("a", EventKind::Began);
    played.play(60);
    played.take_in("b", EventKind::Happened);
    played.take_in("a", EventKind::Ended);
    played.play(8 * 3600);
    played.check(&["25200 2 events"]);
    played.take_in("c", EventKind::Happened);
    played.play(60);
    played.check(&["28860 c"]);
}

#[test]
fn one_event_in_quiet_hours_is_told_by_itself_when_they_end() {
    let mut played = Played::at(MIDNIGHT, Some("22:00-07:00"));
    played.take_in("a", EventKind::Began);
    played.play(7 * 3600);
    played.check(&["25200 a"]);
}

#[test]
fn a_message_that_could_not_be_sent_is_sent_later_with_what_came_since() {
    let mut plan = AlertPlan::after(None, AGAIN, [], NOON);
    plan.take_in(event("a", EventKind::Began, NOON));
    let AlertStep::Send(_) = plan.next(NOON) else {
        panic!("it is told at once");
    };
    plan.failed(NOON);
    plan.take_in(event("b", EventKind::Began, NOON.next()));
    let later = NOON.plus_secs(FAILED_SECS);
    assert_eq!(plan.next(NOON.plus_secs(1)), AlertStep::Wait(Some(later)));
    let AlertStep::Send(message) = plan.next(later) else {
        panic!("it is told later");
    };
    assert_eq!(message.events().len(), 2);
    plan.sent(&message, later);
    assert!(matches!(plan.next(later), AlertStep::Wait(Some(_))));
}

#[test]
fn that_an_alert_fails_is_told_by_no_alert() {
    let mut plan = AlertPlan::after(None, AGAIN, [], NOON);
    plan.take_in(of_topic(EventTopic::Alert, "1", EventKind::Began, NOON));
    assert_eq!(plan.next(NOON), AlertStep::Wait(None));
}

#[test]
fn what_was_told_before_a_restart_is_told_again_after_the_time_alone() {
    let open = [event("a", EventKind::Began, NOON)];
    let mut plan = AlertPlan::after(None, AGAIN, &open, NOON.plus_secs(60));
    let due = NOON.plus_secs(AGAIN);
    assert_eq!(plan.next(NOON.plus_secs(60)), AlertStep::Wait(Some(due)));
    let AlertStep::Send(message) = plan.next(due) else {
        panic!("it lasts");
    };
    assert!(matches!(message.content, MessageContent::Repeated(_)));
}

#[test]
fn an_end_of_before_a_restart_is_told_after_the_time_and_one_of_long_ago_is_not() {
    let known = [
        event("a", EventKind::Began, NOON),
        event("a", EventKind::Ended, NOON.plus_secs(60)),
    ];
    let mut plan = AlertPlan::after(None, AGAIN, &known, NOON.plus_secs(120));
    // The same fault again is no message of its own.
    plan.take_in(event("a", EventKind::Began, NOON.plus_secs(180)));
    let due = NOON.plus_secs(AGAIN);
    assert_eq!(plan.next(NOON.plus_secs(180)), AlertStep::Wait(Some(due)));
    let AlertStep::Send(message) = plan.next(due) else {
        panic!("it is told");
    };
    assert_eq!(message.subject(), "[everfeed] a");
    let later = NOON.plus_secs(2 * AGAIN);
    let mut plan = AlertPlan::after(None, AGAIN, &known, later);
    assert_eq!(plan.next(later), AlertStep::Wait(None));
}

#[test]
fn an_event_that_comes_while_another_of_its_cause_is_sent_is_not_lost() {
    let mut plan = AlertPlan::after(None, AGAIN, [], NOON);
    plan.take_in(event("a", EventKind::Began, NOON));
    let AlertStep::Send(message) = plan.next(NOON) else {
        panic!("it is told at once");
    };
    plan.take_in(event("a", EventKind::Ended, NOON.plus_secs(1)));
    plan.sent(&message, NOON.plus_secs(2));
    let due = NOON.plus_secs(2 + AGAIN);
    assert_eq!(plan.next(NOON.plus_secs(3)), AlertStep::Wait(Some(due)));
    let AlertStep::Send(message) = plan.next(due) else {
        panic!("the end is told");
    };
    assert_eq!(message.subject(), "[everfeed] Ended: a");
}

#[test]
fn a_revised_event_is_no_news_and_is_told_when_its_fault_lasts() {
    let mut plan = AlertPlan::after(None, AGAIN, [], NOON);
    let mut of_cause = event("a", EventKind::Began, NOON);
    plan.take_in(of_cause.clone());
    let AlertStep::Send(message) = plan.next(NOON) else {
        panic!("it is told at once");
    };
    plan.sent(&message, NOON);
    of_cause.title = "40 feeds fail".into();
    plan.take_in(of_cause);
    let due = NOON.plus_secs(AGAIN);
    assert_eq!(plan.next(NOON.plus_secs(2)), AlertStep::Wait(Some(due)));
    let AlertStep::Send(message) = plan.next(due) else {
        panic!("it lasts");
    };
    assert_eq!(message.subject(), "[everfeed] Lasts: 40 feeds fail");
}

#[test]
fn a_flood_of_causes_is_bounded_and_counted() {
    let mut plan = AlertPlan::after(None, AGAIN, [], NOON);
    for no in 0..5000 {
        plan.take_in(event(&no.to_string(), EventKind::Began, NOON));
    }
    assert_eq!(plan.causes.len(), CAUSES_MAX);
    let AlertStep::Send(message) = plan.next(NOON) else {
        panic!("a digest is sent");
    };
    assert_eq!(message.subject(), "[everfeed] 5000 events");
    let text = message.text("https://feeds.example/");
    assert!(text.len() < 100_000 && text.contains("and 4950 more"));
    plan.sent(&message, NOON);
    assert!(matches!(plan.next(NOON), AlertStep::Wait(Some(_))));
}

#[test]
fn a_restart_repeats_nothing_of_a_fault_that_lasts_for_long() {
    let open = [event("a", EventKind::Began, NOON)];
    let now = NOON.plus_secs(5 * AGAIN + 60);
    let mut plan = AlertPlan::after(None, AGAIN, &open, now);
    let due = NOON.plus_secs(6 * AGAIN);
    assert_eq!(plan.next(now), AlertStep::Wait(Some(due)));
}

#[test]
fn a_restart_in_quiet_hours_loses_nothing_that_waits_for_their_end() {
    let open = [
        event("a", EventKind::Began, NOON),
        event("b", EventKind::Began, NOON.next()),
    ];
    let quiet = QuietHours::parse("11:00-14:00");
    let (now, end) = (NOON.plus_secs(60), NOON.plus_secs(2 * 3600));
    let mut plan = AlertPlan::after(quiet, AGAIN, &open, now);
    assert_eq!(plan.next(now), AlertStep::Wait(Some(end)));
    let AlertStep::Send(message) = plan.next(end) else {
        panic!("quiet hours are over");
    };
    assert_eq!(message.events().len(), 2);
    // Behind their end it was told.
    let later = end.plus_secs(60);
    let mut plan = AlertPlan::after(quiet, AGAIN, &open, later);
    assert_eq!(
        plan.next(later),
        AlertStep::Wait(Some(end.plus_secs(AGAIN)))
    );
}

#[test]
fn a_feed_that_joins_a_cause_is_in_its_next_message_and_sends_none_of_its_own() {
    let mut played = Played::at(NOON, None);
    let began = Event {
        feeds: AffectedFeeds::one("one"),
        ..event("a", EventKind::Began, NOON)
    };
    played.plan.take_in(began.clone());
    played.play(600);
    let mut joined = began;
    for name in ["two", "three"] {
        joined.feeds.add(name);
        joined.joined_at = Some(played.now);
        played.plan.take_in(joined.clone());
        played.play(60);
    }
    played.check(&["0 a"]);
    let due = NOON.plus_secs(AGAIN);
    let AlertStep::Send(message) = played.plan.next(due) else {
        panic!("it is due");
    };
    assert_eq!(message.events()[0].feeds.words(), "one, two, three");
    // A restart before that loses none of them.
    let mut again = AlertPlan::after(None, AGAIN, [&joined], NOON.plus_secs(900));
    let AlertStep::Wait(Some(wait)) = again.next(NOON.plus_secs(900)) else {
        panic!("it was told already");
    };
    let AlertStep::Send(message) = again.next(wait) else {
        panic!("it is due");
    };
    assert_eq!((wait, message.events()[0].feeds.total), (due, 3));
}

#[test]
fn a_reload_of_an_alert_begins_no_count_of_its_messages_anew() {
    let mut before = Played::at(NOON, None);
    for no in 0..20 {
        before.take_in(&format!("{no}"), EventKind::Happened);
    }
    before.play(600);
    assert_eq!(before.sent.len(), 20);
    let counts = before.plan.sent.clone();
    let plan = AlertPlan::after(None, 60, [], before.now).counting(counts);
    let mut after = Played {
        plan,
        begin: NOON,
        now: before.now,
        sent: Vec::new(),
    };
    after.take_in("x", EventKind::Happened);
    after.take_in("y", EventKind::Happened);
    after.play(3 * 3600);
    after.check(&["3600 2 events"]);
    // Without the count they would have gone at once.
    let mut anew = Played::at(before.now, None);
    anew.take_in("x", EventKind::Happened);
    anew.play(60);
    anew.check(&["0 x"]);
}
