//! Permalink checks beside documents (POLLING 2.3 and 2.4).

use super::*;

/// A feed whose missed items have their pages asked for.
fn probed(first: &str) -> Watched {
    let mut feed = Watched::new(first);
    feed.policy.checks_permalinks = true;
    feed
}

#[test]
fn a_page_that_is_gone_needs_no_second_document() {
    let mut feed = probed("zyxwvuts");
    assert_eq!(feed.due(), None);
    assert_eq!(feed.poll("zyxwvtsr"), "?u");
    assert_eq!(feed.due(), Some('u'));
    assert_eq!(feed.hear(0, 'u', CheckResult::Gone), "-u");
    assert_eq!((feed.due(), feed.memory.wants_audit()), (None, false));
    assert_eq!(feed.audit("zyxwvtsr"), "", "it is not missed any more");
}

#[test]
fn a_page_that_is_not_found_twice_is_gone() {
    let mut feed = probed("zyxwvuts");
    assert_eq!(feed.poll("zyxwvtsr"), "?u");
    assert_eq!(feed.hear(0, 'u', CheckResult::NotFound), "");
    assert_eq!(feed.due(), None, "an hour must pass");
    assert_eq!(feed.hear(1, 'u', CheckResult::NotFound), "-u");
}

#[test]
fn a_backdated_edit_is_saved_by_its_page() {
    // POLLING 2.4: it leaves the window downwards and looks deleted to every document.
    let mut feed = probed("zyxwvuts");
    assert_eq!(feed.audit("zyxwvtsr"), "?u");
    assert_eq!(feed.hear(0, 'u', CheckResult::Shown), "");
    assert!(
        !feed.memory.wants_audit(),
        "no document could say more than its page"
    );
    for _ in 0..100 {
        assert_eq!(feed.audit("zyxwvtsr"), "");
    }
    assert_eq!(
        feed.hear(0, 'u', CheckResult::NotFound),
        "-u",
        "the documents have shown enough by now"
    );
}

#[test]
fn a_hidden_item_that_its_neighbours_leave_has_rolled_off() {
    let mut feed = probed("zyxwvuts");
    assert_eq!(feed.audit("zyxwvtsr"), "?u");
    assert_eq!(feed.hear(0, 'u', CheckResult::Shown), "");
    assert_eq!(feed.audit("abczyxwv"), "~u ~t ~s ~r");
    assert_eq!(feed.memory.next_check_at(), None);
}

#[test]
fn an_item_that_rolls_off_before_its_page_has_the_last_word_is_asked_about_again() {
    let rolled_off = |said: CheckResult| {
        let mut feed = probed("zyxwvuts");
        assert_eq!(feed.audit("zyxwvtsr"), "?u");
        assert_eq!(feed.hear(0, 'u', said), "");
        assert_eq!(feed.audit("abcdezyx"), "~w ~v ~u ~t ~s ~r");
        feed
    };
    let mut feed = rolled_off(CheckResult::NotFound);
    assert_eq!(feed.due(), Some('u'));
    assert_eq!(feed.hear(0, 'u', CheckResult::NotFound), "-u");
    let mut feed = rolled_off(CheckResult::Nothing);
    assert_eq!(feed.hear(0, 'u', CheckResult::Shown), "~u");
    assert_eq!(feed.memory.next_check_at(), None);
    assert_eq!(rolled_off(CheckResult::Shown).due(), None);
    assert_eq!(rolled_off(CheckResult::Another).due(), None);
}

#[test]
fn what_documents_had_proven_before_it_rolled_off_holds_if_its_page_says_nothing() {
    let ends = |said: CheckResult| {
        let mut feed = probed("zyxwvuts");
        assert_eq!(feed.audit("zyxwvtsr"), "?u");
        assert_eq!(feed.audit("zyxwvtsr"), "", "proven, but for its page");
        assert_eq!(feed.audit("abcdezyx"), "~w ~v ~u ~t ~s ~r");
        feed.hear(0, 'u', said)
    };
    assert_eq!(ends(CheckResult::Another), "-u");
    assert_eq!(ends(CheckResult::NoPage), "-u");
    assert_eq!(ends(CheckResult::Shown), "~u");
}

#[test]
fn a_hidden_item_that_is_shown_again_is_a_neighbour_like_any() {
    let mut feed = probed("zyxwvuts");
    assert_eq!(feed.audit("zyxwvtsr"), "?u");
    assert_eq!(feed.hear(0, 'u', CheckResult::Shown), "");
    assert_eq!(feed.audit("zyxwvuts"), "~r");
    assert_eq!(feed.memory.next_check_at(), None);
    assert_eq!(
        feed.audit("zyxwvtsr"),
        "?u",
        "missed anew, and asked for anew"
    );
    assert_eq!(feed.due(), Some('u'));
}

#[test]
fn documents_wait_for_the_word_of_a_page() {
    let mut feed = probed("zyxwvuts");
    assert_eq!(feed.audit("zyxwvtsr"), "?u");
    assert_eq!(feed.audit("zyxwvtsr"), "", "proven, but for its page");
    assert_eq!(
        feed.hear(0, 'u', CheckResult::Another),
        "-u",
        "a page without the post says nothing against it"
    );
}

#[test]
fn an_item_without_a_page_is_judged_by_documents_alone() {
    let mut feed = probed("zyxwvuts");
    assert_eq!(feed.audit("zyxwvtsr"), "?u");
    assert_eq!(feed.hear(0, 'u', CheckResult::NoPage), "");
    assert_eq!(feed.audit("zyxwvtsr"), "-u");
}

#[test]
fn nobody_who_could_ask_is_waited_for_longer_than_two_days() {
    let mut feed = probed("zyxwvuts");
    assert_eq!(feed.audit("zyxwvtsr"), "?u");
    feed.wait_hours(46);
    assert_eq!(feed.audit("zyxwvtsr"), "");
    assert_eq!(feed.audit("zyxwvtsr"), "-u");
}

#[test]
fn an_item_that_comes_and_goes_needs_three_days_even_when_its_page_is_gone() {
    let mut feed = probed("zyxwvuts");
    feed.tombstone_count.insert('u', 3);
    feed.audit("zyxwvuts");
    assert_eq!(feed.audit("zyxwvtsr"), "?u");
    assert_eq!(feed.hear(0, 'u', CheckResult::Gone), "");
    feed.wait_hours(70);
    assert_eq!(feed.audit("zyxwvtsr"), "");
    assert_eq!(feed.audit("zyxwvtsr"), "-u");
}

#[test]
fn what_rolled_off_or_left_a_complete_feed_is_never_asked_for() {
    let mut feed = probed("zyxwv");
    assert_eq!(feed.audit("azyxw"), "~v");
    assert_eq!(feed.memory.next_check_at(), None);
    feed.policy.complete = true;
    assert_eq!(feed.audit("azyw"), "?x");
    assert_eq!(feed.memory.next_check_at(), None);
}

#[test]
fn the_word_of_a_page_about_what_is_not_missed_changes_nothing() {
    let mut feed = probed("zyxwv");
    let before = feed.memory.clone();
    assert_eq!(feed.hear(0, 'z', CheckResult::Gone), "");
    assert_eq!(feed.hear(0, 'q', CheckResult::Gone), "");
    assert_eq!(feed.memory, before);
}

#[test]
fn an_item_without_an_id_of_its_own_is_never_missed() {
    // DESIGN section 3: an edited title is a new key, and looks like an end and a beginning.
    // Capitals are weak.
    let mut feed = probed("zyXwvuts");
    for _ in 0..4 {
        assert_eq!(feed.audit("zywvutsr").replace("~X", ""), "");
    }
    feed.policy.complete = true;
    let mut feed = Watched {
        policy: feed.policy,
        ..Watched::new("zyXw")
    };
    assert_eq!(
        feed.audit("zyw"),
        "~X",
        "not even by a list that is complete"
    );
}

#[test]
fn no_more_than_a_hundred_items_end_in_a_day() {
    // POLLING 2.3, step 5: letters of a window of a thousand, of which a fifth may be missing at
    // once.
    let window: Vec<char> = ('\u{4e00}'..)
        .take(1000)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect();
    let show = |missing: usize| -> String {
        let is_shown = |at: usize| at < 200 || at >= 200 + missing;
        window
            .iter()
            .enumerate()
            .filter(|(at, _)| is_shown(*at))
            .map(|(_, letter)| *letter)
            .collect()
    };
    let mut feed = Watched::new(&show(0));
    let gone = |told: String| told.matches('-').count();
    assert_eq!(feed.audit(&show(150)).matches('?').count(), 150);
    feed.wait_hours(24);
    feed.audit(&show(150));
    let told = feed.audit(&show(150));
    assert!(told.starts_with("DailyLimit "), "{told}");
    assert_eq!(gone(told), 100);
    assert_eq!(gone(feed.audit(&show(150))), 0);
    feed.wait_hours(24);
    assert_eq!(gone(feed.audit(&show(150))), 50);
}

#[test]
fn what_goes_as_one_comes_before_a_few_may_have_rolled_off_and_only_its_page_tells() {
    // POLLING 2.4, "pinned bottom": two at the end, and nobody knows yet that they stay there.
    let mut feed = probed("hgfedc21");
    for (document, rolled) in [("ihgfed21", 'c'), ("jihgfe21", 'd')] {
        assert_eq!(feed.audit(document), format!("?{rolled}"));
        assert_eq!(
            feed.hear(0, rolled, CheckResult::NoPage),
            format!("~{rolled}")
        );
    }
    assert_eq!(
        feed.audit("jihgf21"),
        "?e",
        "nothing came, so nothing rolled off"
    );
    assert_eq!(feed.hear(0, 'e', CheckResult::NoPage), "");
    let mut feed = probed("hgfedcba");
    assert_eq!(feed.audit("ihgfecba"), "?d");
    assert_eq!(feed.hear(0, 'd', CheckResult::Gone), "-d");
    let mut feed = probed("hgfedcba");
    assert_eq!(
        feed.audit("ihgfdcba"),
        "?e",
        "with so many behind it, it did not roll off"
    );
    assert_eq!(feed.hear(0, 'e', CheckResult::NoPage), "");
    assert_eq!(feed.audit("ihgfdcba"), "-e");
}

#[test]
fn where_posts_roll_off_at_the_very_end_documents_tell_what_goes_as_one_comes() {
    let mut feed = probed("hgfedcba");
    assert_eq!(feed.audit("ihgfedcb"), "~a", "nothing is pinned to the end");
    assert_eq!(feed.audit("jihgfecb"), "?d");
    assert_eq!(feed.hear(0, 'd', CheckResult::NoPage), "");
    assert_eq!(feed.audit("jihgfecb"), "-d");
}

#[test]
fn where_the_end_stays_the_page_of_what_rolls_off_is_asked_once() {
    let mut feed = probed("hgfedc21");
    let shows = [
        ("ihgfed21", 'c'),
        ("jihgfe21", 'd'),
        ("kjihgf21", 'e'),
        ("lkjihg21", 'f'),
    ];
    for (document, rolled) in shows {
        assert_eq!(feed.audit(document).matches('-').count(), 0, "{document}");
        feed.hear(0, rolled, CheckResult::Shown);
    }
    assert!(feed.memory.is_sticky());
    assert!(
        feed.memory.items.iter().all(|row| row.id != id('f')),
        "it lives, and has rolled off"
    );
    assert_eq!(feed.audit("lkjhg21"), "?i");
    assert_eq!(feed.hear(0, 'i', CheckResult::NotFound), "");
    assert_eq!(
        feed.hear(1, 'i', CheckResult::NotFound),
        "-i",
        "a deletion is found by its page"
    );
}
