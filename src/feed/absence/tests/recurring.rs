//! Missing items that come back, as letters: the last row of POLLING 2.4.

use super::*;

/// A feed in which `w` was missing and back three times within six hours.
fn doubted() -> Watched {
    let mut feed = Watched::new("zyxwvuts");
    for told in ["~r", "~r", "Doubted ~r"] {
        assert_eq!(feed.audit("zyxvutsr"), "?w");
        assert_eq!(feed.audit("zyxwvuts"), told);
    }
    feed
}

#[test]
fn what_keeps_coming_back_must_be_missing_for_seven_days() {
    let mut feed = doubted();
    assert_eq!(feed.audit("zyxvutsr"), "?w");
    for _ in 0..6 {
        feed.wait_hours(24);
        assert_eq!(feed.again(), "");
    }
    feed.wait_hours(24);
    assert_eq!(feed.again(), "-w");
    feed.wait_hours(23 * 24);
    assert_eq!(feed.audit("zyxutsrq"), "?v");
    assert_eq!(feed.again(), "-v", "nothing has come back for a month");
}

#[test]
fn what_still_needs_seven_days_says_so() {
    let mut feed = doubted();
    feed.audit("zyxvutsr");
    let missing = feed.memory.suspects().next().unwrap().suspect.unwrap();
    let believed = feed.memory.believed(&feed.policy, feed.now);
    assert_eq!(
        missing.needs(0, &believed).not_before,
        missing.since.plus_secs(7 * 86_400)
    );
    assert_eq!(
        missing.needs(0, &feed.policy).not_before,
        missing.since.plus_secs(3600)
    );
}

#[test]
fn a_page_that_is_gone_is_believed_as_ever() {
    let mut feed = doubted();
    feed.policy.checks_permalinks = true;
    assert_eq!(feed.audit("zyxvutsr"), "?w");
    assert_eq!(feed.hear(0, 'w', CheckResult::Gone), "-w");
}

#[test]
fn a_list_that_is_complete_is_believed_as_ever() {
    let mut feed = Watched::new("zyxwvuts");
    feed.policy.complete = true;
    for told in ["", "", "Doubted"] {
        assert_eq!(feed.audit("zyxvuts"), "?w");
        assert_eq!(feed.audit("zyxwvuts"), told);
    }
    assert_eq!(feed.audit("zyxvuts"), "?w");
    assert_eq!(feed.again(), "-w");
}

#[test]
fn when_the_mistake_is_repeated_absence_proves_nothing_for_a_month() {
    let mut feed = doubted();
    assert_eq!(feed.audit("zyxvutsr"), "?w");
    feed.wait_hours(7 * 24 - 2);
    assert_eq!(feed.again(), "");
    assert_eq!(feed.audit("zyxvutsr"), "-w");
    assert_eq!(feed.audit("zyxwvuts"), "AbsenceOff ~r");
    assert_eq!(feed.audit("zyxvutsr"), "?w");
    feed.wait_hours(29 * 24);
    assert_eq!(feed.again(), "");
    feed.wait_hours(24);
    assert_eq!(feed.again(), "-w");
}
