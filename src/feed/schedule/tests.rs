//! The schedule, branch by branch. Times are seconds after [`NOW`], a Tuesday at 22:13:20 GMT.

use super::*;
use everfeed_adapters::Rhythm;

const NOW: Stamp = Stamp::from_secs(1_700_000_000);
const HOUR: u64 = 3600;
const DAY: u64 = 86_400;
const URL: &str = "http://blog.example/rss";
const USUAL: Policy = Policy {
    min_secs: None,
    max_secs: DAY,
    spread_secs: 0,
    is_pushed: false,
};
const QUICK: Policy = Policy {
    min_secs: Some(1),
    max_secs: DAY,
    spread_secs: 0,
    is_pushed: false,
};

fn answer() -> Answer {
    Answer {
        asked: URL.into(),
        conditional: true,
        ..Answer::default()
    }
}

/// A feed whose new items came so many seconds before now.
fn with_arrivals(ago: &[u64]) -> PollState {
    let mut state = PollState::unpolled(URL);
    state.timetable.arrivals = ago
        .iter()
        .map(|secs| Stamp::from_secs(NOW.secs() - secs))
        .collect();
    state.health.good_at = Some(NOW);
    state
}

fn failure(status: Option<u16>, retry_after_secs: Option<u64>) -> Failure {
    let kind = match status {
        Some(status) => FaultKind::Refused {
            status,
            has_credentials: false,
        },
        None => FaultKind::NoAnswer {
            whose: Whose::Upstream,
            reason: "no answer".into(),
            cause: None,
        },
    };
    Failure {
        kind,
        retry_after_secs,
    }
}

fn failed(
    state: &PollState,
    status: Option<u16>,
    retry_after_secs: Option<u64>,
    policy: &Policy,
) -> PollState {
    next(
        state,
        &PollOutcome::Failed(failure(status, retry_after_secs)),
        policy,
        NOW,
        0.0,
    )
}

/// Seconds until a feed with this state is due after an unchanged answer.
fn check(state: &PollState, answer: Answer, policy: &Policy, expect_secs: u64) {
    let next = next(state, &PollOutcome::Unchanged(answer), policy, NOW, 0.0);
    assert_eq!(
        next.timetable.next_at.secs_since(NOW),
        expect_secs,
        "{state:?}"
    );
}

/// Seconds until a feed is due after its `n`th failure in a row with this status.
fn check_back_off(status: Option<u16>, failures: u32, policy: &Policy, expect_secs: u64) {
    let outcome = PollOutcome::Failed(failure(status, None));
    let (mut state, mut now) = (PollState::unpolled(URL), NOW);
    for _ in 1..failures {
        state = next(&state, &outcome, policy, now, 0.0);
        now = state.timetable.next_at;
    }
    let next = next(&state, &outcome, policy, now, 0.0);
    assert_eq!(
        next.timetable.next_at.secs_since(now),
        expect_secs,
        "{status:?} for the {failures}th time"
    );
    assert_eq!(next.health.failures, failures);
}

fn document(rhythm: &Rhythm) -> PolledDocument<'_> {
    PolledDocument {
        body: None,
        rhythm,
        arrived: false,
        remark: None,
        wants_audit: false,
        agrees_at: None,
        deferred_until: None,
        platform: None,
        broken_since: None,
        announces: None,
        has_suspects: false,
    }
}

#[test]
fn a_feed_is_polled_twice_as_often_as_it_changes() {
    // POLLING 1.5: median gap of the last arrivals / 2.
    check(
        &with_arrivals(&[40 * HOUR, 20 * HOUR, HOUR]),
        answer(),
        &USUAL,
        10 * HOUR,
    );
    check(
        &with_arrivals(&[3 * HOUR, 2 * HOUR, HOUR]),
        answer(),
        &USUAL,
        HOUR,
    );
    check(&with_arrivals(&[0]), answer(), &USUAL, HOUR);
    check(&with_arrivals(&[]), answer(), &USUAL, HOUR);
}

#[test]
fn a_feed_that_fell_silent_is_polled_less() {
    // POLLING 1.5: idle steps of 7, 14 and 30 days.
    check(&with_arrivals(&[6 * DAY]), answer(), &USUAL, HOUR);
    check(&with_arrivals(&[8 * DAY]), answer(), &USUAL, 6 * HOUR);
    check(&with_arrivals(&[15 * DAY]), answer(), &USUAL, 12 * HOUR);
    check(&with_arrivals(&[31 * DAY]), answer(), &USUAL, 24 * HOUR);
}

#[test]
fn the_publishers_own_rhythm_is_kept() {
    // FRB 022-024: cache hints, rhythm, in-feed hints.
    let fresh = |secs| Answer {
        fresh_secs: Some(secs),
        ..answer()
    };
    check(&with_arrivals(&[0]), fresh(2 * HOUR), &USUAL, 2 * HOUR);
    check(&with_arrivals(&[0]), fresh(60), &USUAL, HOUR);
    check(&with_arrivals(&[0]), fresh(9 * DAY), &USUAL, DAY);
    let hinted = |secs| {
        let mut state = with_arrivals(&[0]);
        state.timetable.hinted_secs = Some(secs);
        state
    };
    check(&hinted(5 * HOUR), fresh(2 * HOUR), &USUAL, 5 * HOUR);
    check(&hinted(5 * HOUR), answer(), &QUICK, 5 * HOUR);
}

#[test]
fn the_floor_is_an_hour_unless_the_document_or_the_configuration_lowers_it() {
    // DESIGN section 9, row POLLING 1.5.
    let hinted = |secs| {
        let mut state = with_arrivals(&[0]);
        state.timetable.hinted_secs = Some(secs);
        state
    };
    check(&hinted(1800), answer(), &USUAL, 1800);
    check(&hinted(60), answer(), &USUAL, 900);
    check(&with_arrivals(&[0]), answer(), &QUICK, 1);
    check(
        &hinted(1800),
        answer(),
        &Policy {
            min_secs: Some(2 * HOUR),
            max_secs: DAY,
            spread_secs: 0,
            is_pushed: false,
        },
        2 * HOUR,
    );
    check(
        &with_arrivals(&[0]),
        answer(),
        &Policy {
            min_secs: None,
            max_secs: 2,
            spread_secs: 0,
            is_pushed: false,
        },
        2,
    );
}

#[test]
fn the_document_says_how_often_and_when_not() {
    let rhythm = Rhythm {
        ttl_mins: Some(90),
        update_secs: Some(7200),
        skip_hours: vec![3],
        skip_days: vec![6],
    };
    let read = |rhythm: &Rhythm| {
        next(
            &with_arrivals(&[0]),
            &PollOutcome::Document(answer(), document(rhythm)),
            &USUAL,
            NOW,
            0.0,
        )
    };
    let state = read(&rhythm);
    assert_eq!(state.timetable.hinted_secs, Some(7200));
    assert_eq!(
        (state.timetable.skip_hours, state.timetable.skip_days),
        (vec![3], vec![6])
    );
    assert_eq!(state.timetable.next_at, NOW.plus_secs(7200));
    assert_eq!(
        read(&Rhythm {
            ttl_mins: Some(0),
            ..Rhythm::default()
        })
        .timetable
        .hinted_secs,
        None
    );
}

#[test]
fn skipped_hours_and_days_are_stepped_out_of() {
    // POLLING 0.9. An hour from now is Tuesday, 23:13:20 GMT.
    let skipping = |hours: &[u8], days: &[u8]| {
        let mut state = with_arrivals(&[0]);
        state.timetable.skip_hours = hours.to_vec();
        state.timetable.skip_days = days.to_vec();
        state
    };
    let to_midnight = 6400;
    check(&skipping(&[23], &[]), answer(), &USUAL, to_midnight);
    check(
        &skipping(&[23, 0, 1], &[]),
        answer(),
        &USUAL,
        to_midnight + 2 * HOUR,
    );
    check(&skipping(&[22], &[]), answer(), &USUAL, HOUR);
    check(&skipping(&[], &[1, 2]), answer(), &USUAL, to_midnight + DAY);
    check(
        &skipping(&(0..24).collect::<Vec<_>>(), &[]),
        answer(),
        &USUAL,
        HOUR,
    );
    let spread = next(
        &skipping(&[23], &[]),
        &PollOutcome::Unchanged(answer()),
        &USUAL,
        NOW,
        0.5,
    );
    assert_eq!(
        spread.timetable.next_at,
        NOW.plus_secs(to_midnight + 180),
        "not everybody at the stroke of midnight"
    );
}

#[test]
fn jitter_makes_an_interval_up_to_a_tenth_longer_but_never_longer_than_the_maximum() {
    // POLLING 0.6, after back-off.
    let due = |state: &PollState, policy: &Policy, jitter| {
        let next = next(
            state,
            &PollOutcome::Unchanged(answer()),
            policy,
            NOW,
            jitter,
        );
        next.timetable.next_at.micros() - NOW.micros()
    };
    assert_eq!(due(&with_arrivals(&[0]), &USUAL, 0.5), 3_780_000_000);
    assert_eq!(
        due(&with_arrivals(&[31 * DAY]), &USUAL, 1.0),
        77_760_000_000
    );
    let tight = Policy {
        min_secs: Some(2),
        max_secs: 2,
        spread_secs: 0,
        is_pushed: false,
    };
    assert_eq!(due(&with_arrivals(&[0]), &tight, 1.0), 2_000_000);
    let state = next(
        &with_arrivals(&[0]),
        &PollOutcome::Failed(failure(Some(500), None)),
        &QUICK,
        NOW,
        1.0,
    );
    assert_eq!(state.timetable.next_at.micros() - NOW.micros(), 2_200_000);
}

#[test]
fn failures_that_others_cause_between_two_polls_put_the_next_one_off_only_a_little() {
    for status in [None, Some(500), Some(404), Some(429)] {
        let outcome = PollOutcome::Failed(failure(status, None));
        let state = PollState::unpolled(URL);
        let first = next(&state, &outcome, &USUAL, NOW, 0.0);
        let wait_secs = first.timetable.next_at.secs_since(NOW);
        let mut state = first;
        // A reader a second.
        for secs in 1..100 {
            state = next(&state, &outcome, &USUAL, NOW.plus_secs(secs), 0.0);
        }
        let later_secs = state.timetable.next_at.secs_since(NOW);
        assert!(
            later_secs <= wait_secs.max(HOUR) + 200,
            "{status:?}: {later_secs} s"
        );
    }
}

#[test]
fn failures_back_off_exponentially_between_the_floor_and_the_maximum() {
    // POLLING 1.5, FRB 115-119.
    check_back_off(Some(500), 1, &USUAL, HOUR);
    check_back_off(Some(500), 4, &USUAL, 4800);
    check_back_off(Some(500), 8, &USUAL, 76_800);
    check_back_off(Some(500), 9, &USUAL, DAY);
    check_back_off(None, 80, &USUAL, DAY);
    // A server that does not answer yet has just been started, as in a sidecar; one that never
    // answers is a failure as any other.
    check_back_off(None, 1, &USUAL, 15);
    check_back_off(None, 8, &USUAL, 1920);
    check_back_off(None, 9, &USUAL, HOUR);
    check_back_off(None, 12, &USUAL, 4800);
    check_back_off(None, 1, &QUICK, 2);
    check_back_off(None, 3, &QUICK, 8);
    check_back_off(
        None,
        9,
        &Policy {
            min_secs: Some(1),
            max_secs: 5,
            spread_secs: 0,
            is_pushed: false,
        },
        5,
    );
    check_back_off(Some(404), 3, &USUAL, 9600);
    check_back_off(Some(403), 1, &QUICK, 8);
    let slow = {
        let mut state = PollState::unpolled(URL);
        state.timetable.hinted_secs = Some(6 * HOUR);
        state
    };
    assert_eq!(
        failed(&slow, Some(500), None, &USUAL).timetable.next_at,
        NOW.plus_secs(6 * HOUR)
    );
}

#[test]
fn a_failure_keeps_what_was_learned_and_says_since_when() {
    // FRB 016: validators survive.
    let good = {
        let mut state = with_arrivals(&[0]);
        state.validators = Some(ValidatorPair {
            etag: Some("\"1\"".into()),
            ..ValidatorPair::default()
        });
        state.document.body = Some(Digest::of(b"1"));
        state
    };
    let once = failed(&good, Some(500), None, &USUAL);
    assert_eq!(
        (&once.validators, once.document.body, once.health.good_at),
        (&good.validators, good.document.body, good.health.good_at)
    );
    let later = NOW.plus_secs(HOUR);
    let twice = next(
        &once,
        &PollOutcome::Failed(failure(None, None)),
        &USUAL,
        later,
        0.0,
    );
    let fault = twice.health.fault.clone().unwrap();
    assert_eq!(
        (fault.since, fault.kind.status(), twice.health.failures),
        (NOW, None, 2)
    );
    let healed = next(
        &twice,
        &PollOutcome::Unchanged(answer()),
        &USUAL,
        later,
        0.0,
    );
    assert_eq!(
        (
            healed.health.fault,
            healed.health.failures,
            healed.health.good_at
        ),
        (None, 0, Some(later))
    );
    let again = next(
        &{
            let mut state = good.clone();
            state.health.fault = twice.health.fault;
            state
        },
        &PollOutcome::Failed(failure(None, None)),
        &USUAL,
        later,
        0.0,
    );
    assert_eq!(
        again.health.fault.unwrap().since,
        later,
        "a new run of failures begins anew"
    );
}

#[test]
fn retry_after_of_a_429_or_503_is_obeyed_beyond_the_maximum() {
    // POLLING 0.6, FRB 020.
    let state = PollState::unpolled(URL);
    let check = |status, retry_after, policy: &Policy, expect| {
        let failure = failure(Some(status), retry_after);
        let next = failed(&state, Some(status), retry_after, policy);
        assert_eq!(
            next.timetable.next_at.secs_since(NOW),
            expect,
            "{status} {retry_after:?}"
        );
        host_pause_until(
            &next,
            policy,
            failure.status(),
            failure.retry_after_secs,
            NOW,
        )
        .map(|at| at.secs_since(NOW))
    };
    assert_eq!(check(429, Some(2 * DAY), &USUAL, 2 * DAY), Some(2 * DAY));
    assert_eq!(check(503, Some(2 * DAY), &USUAL, 2 * DAY), Some(2 * DAY));
    assert_eq!(
        check(
            503,
            Some(60),
            &Policy {
                min_secs: Some(1),
                max_secs: 5,
                spread_secs: 0,
                is_pushed: false,
            },
            60
        ),
        Some(60)
    );
    assert_eq!(check(429, Some(30 * DAY), &USUAL, 7 * DAY), Some(7 * DAY));
    assert_eq!(
        check(503, Some(10), &USUAL, HOUR),
        Some(10),
        "no reason to come sooner than usual"
    );
    assert_eq!(check(503, Some(0), &USUAL, HOUR), None);
    assert_eq!(check(503, None, &USUAL, HOUR), None);
    assert_eq!(
        check(500, Some(2 * DAY), &USUAL, HOUR),
        None,
        "only where it has a meaning"
    );
}

#[test]
fn a_429_without_retry_after_slows_the_whole_host_down() {
    // FRB 021.
    let next = failed(&PollState::unpolled(URL), Some(429), None, &USUAL);
    assert_eq!(next.timetable.next_at, NOW.plus_secs(2 * HOUR));
    let not_before = host_pause_until(&next, &USUAL, Some(429), None, NOW);
    assert_eq!(not_before, Some(NOW.plus_secs(2 * HOUR)));
    check_back_off(Some(429), 2, &USUAL, 4 * HOUR);
    check_back_off(
        Some(429),
        3,
        &Policy {
            min_secs: Some(1),
            max_secs: 5,
            spread_secs: 0,
            is_pushed: false,
        },
        5,
    );
}

#[test]
fn a_feed_that_is_gone_is_looked_at_once_a_day_for_two_weeks_and_then_left_alone() {
    // FRB 113, POLLING 1.5.
    let policy = Policy {
        min_secs: Some(1),
        max_secs: 5,
        spread_secs: 0,
        is_pushed: false,
    };
    let gone = failed(&with_arrivals(&[0]), Some(410), None, &policy);
    assert_eq!(
        (gone.health.gone_at, gone.timetable.next_at),
        (Some(NOW), NOW.plus_secs(DAY))
    );
    let at = NOW.plus_secs(13 * DAY);
    let still = next(
        &gone,
        &PollOutcome::Failed(failure(Some(500), None)),
        &policy,
        at,
        0.0,
    );
    assert_eq!(
        (still.health.gone_at, still.timetable.next_at),
        (Some(NOW), at.plus_secs(DAY))
    );
    let at = NOW.plus_secs(14 * DAY);
    let left = next(
        &still,
        &PollOutcome::Failed(failure(Some(410), None)),
        &policy,
        at,
        0.0,
    );
    assert_eq!(left.timetable.next_at, Stamp::MAX);
    // A hint or a restart looks again, once a day at most.
    assert_eq!(
        left.hinted_at(None, Stamp::ZERO, at.plus_secs(60)),
        at.plus_secs(DAY)
    );
    assert_eq!(
        left.clone()
            .resumed(URL, &policy, at.plus_secs(60))
            .timetable
            .next_at,
        at.plus_secs(DAY)
    );
    let back = next(
        &left,
        &PollOutcome::Unchanged(answer()),
        &policy,
        at.plus_secs(2 * DAY),
        0.0,
    );
    assert_eq!(
        (back.health.gone_at, back.timetable.next_at),
        (None, at.plus_secs(2 * DAY + 2))
    );
}

#[test]
fn a_hint_ends_a_back_off_but_not_a_not_before() {
    let backed_off = {
        let mut state = PollState::unpolled(URL);
        state.timetable.polled_at = Some(Stamp::from_secs(NOW.secs() - 60));
        state.timetable.next_at = NOW.plus_secs(DAY);
        state.health.failures = 9;
        state
    };
    assert_eq!(backed_off.hinted_at(None, Stamp::ZERO, NOW), NOW);
    assert_eq!(
        backed_off.hinted_at(None, NOW.plus_secs(HOUR), NOW),
        NOW.plus_secs(HOUR)
    );
}

#[test]
fn a_surplus_hint_runs_at_the_end_of_five_seconds() {
    let just_polled = {
        let mut state = PollState::default();
        state.timetable.polled_at = Some(NOW);
        state
    };
    let at = |last: Option<Stamp>| just_polled.hinted_at(last, Stamp::ZERO, NOW);
    let ago = |secs| Some(Stamp::from_secs(NOW.secs() - secs));
    assert_eq!(at(None), NOW, "an ordinary poll does not hold a hint up");
    assert_eq!(at(ago(2)), NOW.plus_secs(3));
    assert_eq!(at(ago(5)), NOW);
    assert_eq!(at(Some(NOW.plus_secs(DAY))), NOW, "the clock went back");
}

#[test]
fn validators_are_kept_as_a_pair_from_whatever_answer_carries_them() {
    // FRB 012-014.
    let pair = |etag: Option<&str>, date: Option<&str>| ValidatorPair {
        etag: etag.map(str::to_owned),
        last_modified: date.map(str::to_owned),
        url: URL.into(),
    };
    let carrying = |etag: Option<&str>, date: Option<&str>| Answer {
        validators: Some(pair(etag, date)),
        ..answer()
    };
    let one = next(
        &PollState::default(),
        &PollOutcome::Unchanged(carrying(Some("\"1\""), Some("today"))),
        &USUAL,
        NOW,
        0.0,
    );
    assert_eq!(one.validators, Some(pair(Some("\"1\""), Some("today"))));
    let none = next(&one, &PollOutcome::Unchanged(answer()), &USUAL, NOW, 0.0);
    assert_eq!(
        none.validators, one.validators,
        "a 304 without any leaves them"
    );
    let two = next(
        &one,
        &PollOutcome::Unchanged(carrying(Some("\"2\""), None)),
        &USUAL,
        NOW,
        0.0,
    );
    assert_eq!(
        two.validators,
        Some(pair(Some("\"2\""), None)),
        "never a pair of two answers"
    );
}

#[test]
fn an_unconditional_get_is_due_once_a_week() {
    // POLLING 0.3, FRB 071.
    let state = {
        let mut state = PollState::unpolled(URL);
        state.validators = Some(ValidatorPair {
            etag: Some("\"1\"".into()),
            ..ValidatorPair::default()
        });
        state
    };
    assert!(!state.plan(DAY, NOW).conditional, "never asked before");
    let plain = Answer {
        conditional: false,
        ..answer()
    };
    let state = next(&state, &PollOutcome::Unchanged(plain), &USUAL, NOW, 0.0);
    assert!(state.plan(DAY, NOW.plus_secs(6 * DAY)).conditional);
    assert!(!state.plan(DAY, NOW.plus_secs(7 * DAY)).conditional);
    let state = next(
        &state,
        &PollOutcome::Unchanged(answer()),
        &USUAL,
        NOW.plus_secs(6 * DAY),
        0.0,
    );
    assert_eq!(
        state.timetable.unconditional_at,
        Some(NOW),
        "a conditional one does not count"
    );
    assert!(
        !{
            let mut state = state.clone();
            state.validators = None;
            state
        }
        .plan(DAY, NOW)
        .conditional
    );
}

#[test]
fn a_permanent_redirect_is_believed_after_a_week_of_agreement() {
    // POLLING 0.7, FRB 130.
    let led = |to: Option<&str>, asked: &str| {
        PollOutcome::Unchanged(Answer {
            moved_to: to.map(Into::into),
            asked: asked.into(),
            ..answer()
        })
    };
    let new = "http://new.example/rss";
    let day = |days: u64| NOW.plus_secs(days * DAY);
    let start = {
        let mut state = PollState::unpolled(URL);
        state.validators = Some(ValidatorPair {
            etag: Some("\"1\"".into()),
            ..ValidatorPair::default()
        });
        state.timetable.unconditional_at = Some(day(6));
        state
    };
    let first = next(&start, &led(Some(new), URL), &USUAL, NOW, 0.0);
    let agreed = next(&first, &led(Some(new), URL), &USUAL, day(6), 0.0);
    assert_eq!(agreed.plan(DAY, day(6)).url, URL);
    assert_eq!(agreed.plan(DAY, day(7)).url, new);
    assert_eq!(
        agreed.plan(DAY, day(14)).url,
        URL,
        "the weekly unconditional GET asks the configured URL"
    );
    let followed = next(&agreed, &led(None, new), &USUAL, day(7), 0.0);
    assert_eq!(followed.health.moved, agreed.health.moved);
    assert_eq!(
        next(&agreed, &led(None, URL), &USUAL, day(7), 0.0)
            .health
            .moved,
        None,
        "taken back"
    );
    let elsewhere = next(
        &first,
        &led(Some("http://other.example/"), URL),
        &USUAL,
        day(6),
        0.0,
    );
    assert_eq!(
        elsewhere.health.moved.unwrap().since,
        day(6),
        "a captive portal does not agree for long"
    );
    let broken = next(
        &agreed,
        &PollOutcome::Failed(failure(Some(404), None)),
        &USUAL,
        day(8),
        0.0,
    );
    assert_eq!(broken.health.moved, None);
    let busy = next(
        &agreed,
        &PollOutcome::Failed(failure(Some(503), None)),
        &USUAL,
        day(8),
        0.0,
    );
    assert_eq!(busy.health.moved, agreed.health.moved);
}

#[test]
fn arrivals_are_remembered_up_to_ten_and_the_first_document_counts() {
    let mut state = PollState::unpolled(URL);
    let rhythm = Rhythm::default();
    state = next(
        &state,
        &PollOutcome::Document(answer(), document(&rhythm)),
        &USUAL,
        NOW,
        0.0,
    );
    assert_eq!(state.timetable.arrivals, [NOW]);
    for n in 1..=12 {
        let arrived = PolledDocument {
            arrived: n % 2 == 0 || n > 3,
            ..document(&rhythm)
        };
        state = next(
            &state,
            &PollOutcome::Document(answer(), arrived),
            &USUAL,
            NOW.plus_secs(n),
            0.0,
        );
    }
    assert_eq!(state.timetable.arrivals.len(), PollState::ARRIVALS_MAX);
    assert_eq!(state.timetable.arrivals.last(), Some(&NOW.plus_secs(12)));
}

#[test]
fn a_poll_that_was_held_back_changes_only_when_it_is_due() {
    let state = with_arrivals(&[0]);
    let held = next(
        &state,
        &PollOutcome::Deferred { wait_secs: 0 },
        &USUAL,
        NOW,
        0.0,
    );
    assert_eq!(held, {
        let mut state = state.clone();
        state.timetable.next_at = NOW.plus_secs(1);
        state
    });
}

#[test]
fn a_feed_is_at_rest_from_a_304_to_the_next_document() {
    let rhythm = Rhythm::default();
    let arrives = || PollOutcome::Document(Answer::default(), document(&rhythm));
    let mut state = PollState::unpolled(URL);
    for (outcome, at_rest) in [
        (arrives(), false),
        (PollOutcome::Unchanged(Answer::default()), true),
        (arrives(), false),
    ] {
        state = next(&state, &outcome, &USUAL, NOW, 0.0);
        assert_eq!(state.document.repeat == Repeat::Unchanged, at_rest);
        let after = failed(&state, Some(500), None, &USUAL);
        assert_eq!(
            after.document.repeat == Repeat::Unchanged,
            at_rest,
            "a failure says nothing of it"
        );
    }
}

#[test]
fn a_restart_polls_nothing_that_is_not_due() {
    // FRB 015, 037.
    let saved = {
        let mut state = with_arrivals(&[HOUR]);
        state.timetable.polled_at = Some(Stamp::from_secs(NOW.secs() - HOUR));
        state.timetable.next_at = NOW.plus_secs(HOUR);
        state.validators = Some(ValidatorPair {
            etag: Some("\"1\"".into()),
            ..ValidatorPair::default()
        });
        state.document.deferred_until = Some(NOW);
        state
    };
    assert_eq!(saved.clone().resumed(URL, &USUAL, NOW), saved);
    let shorter = Policy {
        min_secs: None,
        max_secs: 5400,
        spread_secs: 0,
        is_pushed: false,
    };
    assert_eq!(
        saved.clone().resumed(URL, &shorter, NOW).timetable.next_at,
        NOW.plus_secs(1800)
    );
    let other = saved.clone().resumed("http://other.example/", &USUAL, NOW);
    assert_eq!(
        (other.timetable.next_at, other.validators.clone()),
        (Stamp::ZERO, None)
    );
    assert_eq!(
        (&other.timetable.arrivals, other.document.deferred_until),
        (&saved.timetable.arrivals, saved.document.deferred_until)
    );
    let throttled = failed(&saved, Some(429), Some(2 * DAY), &USUAL);
    assert_eq!(throttled.clone().resumed(URL, &shorter, NOW), throttled);
    let ahead = {
        let mut state = saved.clone();
        state.timetable.polled_at = Some(NOW.plus_secs(9 * DAY));
        state.timetable.next_at = NOW.plus_secs(10 * DAY);
        state
    };
    assert_eq!(
        ahead.resumed(URL, &USUAL, NOW).timetable.next_at,
        NOW.plus_secs(HOUR),
        "the clock went back"
    );
}

#[test]
fn no_setting_makes_an_interval_overflow_or_panic() {
    let policies = [0, 1, DAY, u64::MAX].into_iter().flat_map(|max_secs| {
        [None, Some(0), Some(30 * DAY), Some(u64::MAX)].map(|min_secs| Policy {
            min_secs,
            max_secs,
            spread_secs: 0,
            is_pushed: false,
        })
    });
    for policy in policies {
        for (status, retry_after) in [(None, None), (Some(429), Some(u64::MAX)), (Some(410), None)]
        {
            let state = {
                let mut state = with_arrivals(&[]);
                state.health.failures = u32::MAX;
                state.timetable.hinted_secs = Some(u64::MAX);
                state
            };
            let state = failed(&state, status, retry_after, &policy);
            assert!(state.timetable.next_at >= NOW);
            check_due_later(&state, &policy);
        }
    }
}

fn check_due_later(state: &PollState, policy: &Policy) {
    let next = next(state, &PollOutcome::Unchanged(answer()), policy, NOW, 1.0);
    assert!(next.timetable.next_at >= NOW);
}

#[test]
fn second_polls_are_spread_over_as_long_as_the_feeds_need() {
    let spread = |spread_secs, jitter| {
        let policy = Policy {
            spread_secs,
            ..USUAL
        };
        let unchanged = PollOutcome::Unchanged(Answer::default());
        let first = next(
            &PollState::unpolled("http://x/"),
            &unchanged,
            &policy,
            NOW,
            jitter,
        );
        let second = next(&first, &unchanged, &policy, NOW, jitter);
        [first, second].map(|state| state.timetable.next_at.secs_since(NOW))
    };
    assert_eq!(spread(0, 1.0), [3960, 3960]);
    assert_eq!(spread(1000, 0.5), [3780 + 500, 3780]);
    assert_eq!(
        spread(100_000, 1.0),
        [3960 + 3600, 3960],
        "over no more than one interval"
    );
}

#[test]
fn a_feed_whose_news_are_pushed_is_polled_after_six_hours_or_more_and_a_day_at_most_u_12() {
    let pushed = |policy: Policy| Policy {
        is_pushed: true,
        ..policy
    };
    let rare = with_arrivals(&[40 * HOUR, 20 * HOUR, HOUR]);
    let often = with_arrivals(&[3 * HOUR, 2 * HOUR, HOUR]);
    check(&often, answer(), &pushed(USUAL), 6 * HOUR);
    check(&often, answer(), &pushed(QUICK), 6 * HOUR);
    check(&rare, answer(), &pushed(USUAL), 10 * HOUR);
    // The operator's word on the longest interval counts.
    let capped = Policy {
        max_secs: 2 * HOUR,
        ..USUAL
    };
    check(&often, answer(), &pushed(capped), 2 * HOUR);
    // However rarely it changes, it is looked at once a day.
    let lazy = Policy {
        max_secs: 10 * DAY,
        ..USUAL
    };
    let silent = with_arrivals(&[90 * DAY]);
    check(&silent, answer(), &lazy, 10 * DAY);
    check(&silent, answer(), &pushed(lazy), DAY);
    // While something is missing that is not decided on, polls go on as usual.
    let mut missing = often.clone();
    missing.document.has_suspects = true;
    check(&missing, answer(), &pushed(USUAL), HOUR);
}
