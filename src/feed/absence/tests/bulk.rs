//! More missing at once than documents are believed, and the pages that decide on it.

use super::*;

const FIFTEEN: &str = "zyxwvutsrqponml";

/// Without `x`, `u`, `r` and `o`; older ones moved up.
const TEN: &str = "zywvtsqpnmlkjih";

/// A feed whose missed items have their pages asked for, after a document without four of its
/// items.
fn held() -> Watched {
    let mut feed = Watched::new(FIFTEEN);
    feed.policy.checks_permalinks = true;
    assert_eq!(feed.audit(TEN), "Quarantined ?x ?u ?r ?o");
    assert_eq!(
        feed.due(),
        None,
        "a document that was cut is over with the next"
    );
    feed
}

/// Hears this of each page that is due now.
fn hear_all(feed: &mut Watched, said: impl Fn(char) -> CheckResult) -> String {
    let mut told = Vec::new();
    while let Some(letter) = feed.due() {
        told.push(feed.hear(0, letter, said(letter)));
    }
    told.retain(|line| !line.is_empty());
    told.join(" ")
}

#[test]
fn pages_that_are_not_the_posts_make_tombstones_of_all_after_half_a_day() {
    let mut feed = held();
    assert_eq!(feed.audit(TEN), "", "held");
    assert_eq!(hear_all(&mut feed, |_| CheckResult::Another), "");
    assert_eq!(feed.audit(TEN), "");
    feed.wait_hours(10);
    assert_eq!(feed.audit(TEN), "");
    assert_eq!(
        hear_all(&mut feed, |_| CheckResult::Another),
        "-o -r -u QuarantineDecided -x"
    );
    assert_eq!(
        (feed.audit(TEN).as_str(), feed.memory.quarantined_since),
        ("", None)
    );
}

#[test]
fn pages_that_are_there_end_the_quarantine_at_once() {
    let mut feed = held();
    feed.wait_hours(1);
    assert_eq!(
        hear_all(&mut feed, |_| CheckResult::Shown),
        "QuarantineDecided ~x ~u ~r ~o"
    );
    assert_eq!(
        (feed.audit(TEN).as_str(), feed.memory.quarantined_since),
        ("", None)
    );
    assert_eq!(feed.audit(FIFTEEN), "~k ~j ~i ~h", "they are back");
}

#[test]
fn each_page_decides_on_its_own_item() {
    let mut feed = held();
    feed.wait_hours(1);
    let said = |letter| {
        if letter == 'u' {
            CheckResult::Shown
        } else {
            CheckResult::Gone
        }
    };
    assert_eq!(hear_all(&mut feed, said), "~u", "it lives");
    feed.wait_hours(12);
    assert_eq!(hear_all(&mut feed, said), "-o -r QuarantineDecided -x");
}

#[test]
fn where_pages_say_nothing_documents_decide_after_a_week_on_what_they_lack_between_others() {
    for said in [
        CheckResult::NoPage,
        CheckResult::Uninformative(ControlFinding::Silent),
    ] {
        let (mut feed, mut told) = (held(), Vec::new());
        feed.wait_hours(1);
        assert_eq!(hear_all(&mut feed, |_| said), "");
        assert_eq!(feed.memory.next_check_at(), None, "nobody else is asked");
        for _ in 0..6 {
            feed.wait_hours(23);
            assert_eq!(feed.audit(TEN), "");
        }
        feed.wait_hours(24);
        assert_eq!(feed.audit(TEN), "");
        assert_eq!(feed.memory.quarantined_since, None);
        for _ in 0..4 {
            feed.wait_hours(12);
            hear_all(&mut feed, |_| said);
            told.push(feed.audit(TEN));
        }
        told.retain(|line| !line.is_empty());
        assert_eq!(told, ["-x -u -r -o"]);
    }
}

#[test]
fn a_sample_is_asked_for_first_and_the_others_only_if_it_speaks_for_deletions() {
    let window: String = ('\u{4e00}'..)
        .take(200)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect();
    let left: String = window
        .chars()
        .enumerate()
        .filter(|(at, _)| *at < 20 || *at >= 170)
        .map(|(_, c)| c)
        .collect();
    let asked = |said: CheckResult| {
        let mut feed = Watched::new(&window);
        feed.policy.checks_permalinks = true;
        assert!(feed.audit(&left).starts_with("Quarantined"));
        feed.wait_hours(1);
        let mut sample = 0;
        while let Some(letter) = feed.due() {
            feed.hear(0, letter, said);
            sample += 1;
        }
        let is_decided = feed.memory.quarantined_since.is_none();
        feed.wait_hours(12);
        let told = hear_all(&mut feed, |_| said);
        (
            sample,
            is_decided,
            told.matches('-').count(),
            feed.memory.quarantined_since.is_some(),
        )
    };
    assert_eq!(asked(CheckResult::Shown), (5, true, 0, false));
    assert_eq!(
        asked(CheckResult::NotFound),
        (5, false, 150, false),
        "no number of them is too many for a day"
    );
}

#[test]
fn everything_that_older_items_replace_is_left_to_its_pages() {
    let mut feed = Watched::new("edcba");
    feed.policy.checks_permalinks = true;
    feed.audit("jihgf");
    assert_eq!(feed.audit("edcba"), "", "it goes on where it stood");
    feed.wait_hours(1);
    assert_eq!(hear_all(&mut feed, |_| CheckResult::Gone), "-f -g -h -i -j");
    assert_eq!(feed.audit("edcba"), "");
}

#[test]
fn an_empty_document_is_decided_on_by_pages_too() {
    let mut feed = Watched::new("edcba");
    feed.policy.checks_permalinks = true;
    assert_eq!(feed.audit(""), "Quarantined ?e ?d ?c ?b ?a");
    feed.wait_hours(13);
    assert_eq!(
        hear_all(&mut feed, |_| CheckResult::Gone),
        "-a -b -c -d QuarantineDecided -e"
    );
}

#[test]
fn a_page_that_is_not_found_twice_is_gone_in_a_quarantine_too() {
    let mut feed = held();
    feed.wait_hours(1);
    assert_eq!(hear_all(&mut feed, |_| CheckResult::NotFound), "");
    assert_eq!(feed.due(), None, "an hour must pass");
    feed.wait_hours(1);
    assert_eq!(
        hear_all(&mut feed, |_| CheckResult::Gone),
        "-o -r -u QuarantineDecided -x"
    );
}

#[test]
fn one_empty_document_holds_back_no_deletion_of_a_feed_that_goes_on_where_it_stood() {
    for checks_permalinks in [false, true] {
        let mut feed = Watched::new("jihgfedcba");
        feed.policy.checks_permalinks = checks_permalinks;
        assert_eq!(feed.audit("rqponmlkji"), "~h ~g ~f ~e ~d ~c ~b ~a");
        assert_eq!(feed.audit("zyxwvutsrq"), "~p ~o ~n ~m ~l ~k ~j ~i");
        assert!(feed.audit("").starts_with("Quarantined"));
        assert_eq!(feed.audit("zyxwvutsrq"), "");
        assert_eq!(feed.memory.quarantined_since, None);
        assert_eq!(feed.audit("zyxwutsrqp"), "?v");
        feed.wait_hours(24);
        feed.hear(0, 'v', CheckResult::NoPage);
        feed.audit("zyxwutsrqp");
        assert!(
            !feed.known.contains(&'v'),
            "with pages: {checks_permalinks}"
        );
    }
}

#[test]
fn documents_of_another_feed_hold_back_no_deletion_of_a_feed_that_goes_on_where_it_stood() {
    for strange in ["ABCDEFGHIJ", "αβγδεζηθικ", "αβγδεqzκ", "z"] {
        let mut feed = Watched::new("zyxwvutsrq");
        feed.policy.checks_permalinks = true;
        feed.audit(strange);
        feed.audit(strange);
        feed.audit("zyxwvutsrq");
        assert_eq!(feed.memory.quarantined_since, None, "{strange}");
        assert_eq!(feed.audit("1zyxwvutsr"), "~q", "{strange}");
        assert_eq!(feed.audit("1zyxvutsrq"), "?w", "{strange}");
    }
}

#[test]
fn faults_of_documents_are_no_returns() {
    let mut feed = Watched::new("zyxwvutsrq");
    feed.policy.checks_permalinks = true;
    for _ in 0..5 {
        feed.audit("");
        assert_eq!(feed.audit("zyxwvutsrq"), "");
        feed.audit("zyx");
        assert_eq!(feed.audit("zyxwvutsrq"), "");
        feed.audit("zusq");
        assert_eq!(feed.audit("zyxwvutsrq"), "");
    }
    assert_eq!(feed.memory.recurrence.belief(feed.now), AbsenceTrust::Usual);
}

#[test]
fn what_is_missing_at_once_and_stays_missing_is_still_held() {
    let mut feed = Watched::new(FIFTEEN);
    assert_eq!(feed.audit(TEN), "Quarantined");
    assert_eq!(feed.audit(TEN), "", "held");
    assert_eq!(feed.audit("1zywvtsqpnmlkji"), "", "held beside a new post");
    assert!(feed.memory.quarantined_since.is_some());
}

#[test]
fn the_pages_of_many_that_go_soon_after_a_gap_are_asked_for() {
    let mut feed = Watched::new("jihgfedcba");
    feed.policy.checks_permalinks = true;
    assert!(feed.audit("zyxwvutsrq").starts_with("Gap"));
    assert_eq!(feed.audit("zyxwvutsrq"), "");
    assert_eq!(feed.audit("zyutsrqpon"), "Quarantined ?x ?w ?v");
    let mut told = String::new();
    for _ in 0..24 {
        told += &feed.audit("zyutsrqpon");
        told += &hear_all(&mut feed, |_| CheckResult::NotFound);
    }
    assert_eq!(feed.memory.quarantined_since, None);
    for gone in ["-x", "-w", "-v"] {
        assert!(told.contains(gone), "{told}");
    }
}
