//! Posts that leave documents which tell nothing by what they lack: their pages are asked for.

use super::*;
use CheckResult::{Gone, NotFound, Shown};

/// A feed without dates, whose pages are asked for.
fn list(first: &str) -> Watched {
    let mut list = Watched::new("");
    list.is_undated = true;
    list.policy.checks_permalinks = true;
    assert_eq!(list.audit(first), "");
    list
}

/// A feed in no order: documents share their posts and not their places.
fn shuffled() -> Watched {
    let mut list = list("abcdefgh");
    for document in ["hgfedcba", "badcfehg", "hgfedcba", "badcfehg", "hgfedcba"] {
        assert_eq!(list.audit(document), "");
    }
    assert_eq!(list.audit("badcfehg"), "");
    assert!(list.memory.departures.is_unordered);
    list
}

#[test]
fn a_first_post_that_stays_says_after_two_new_posts_where_they_enter() {
    let mut feed = list("pdcba");
    assert_eq!(feed.audit("pedcb"), "~a");
    assert_eq!(feed.audit("pfedc"), "~b");
    assert!(feed.memory.documents.direction.is_known());
    assert_eq!(feed.audit("pgfed"), "~c", "it rolls off, and nobody asks");
    let asked: Vec<char> = feed.memory.asked_about().map(letter).collect();
    assert_eq!(asked, ['a'], "before that");
    assert_eq!(feed.audit("pged"), "?f");
}

#[test]
fn what_enters_between_others_says_that_no_end_is_the_newest() {
    let mut list = list("bdfhjl");
    assert_eq!(list.audit("abdfhjl"), "");
    assert_eq!(list.audit("abdefhjl"), "");
    assert_eq!(list.audit("abdefghjl"), "");
    assert!(!list.memory.documents.direction.is_known());
    assert_eq!(
        list.audit("abdefghj"),
        "~l",
        "the last one, too, is asked about"
    );
    assert_eq!(list.due(), None, "the next document may show it again");
    list.wait_hours(1);
    assert_eq!(list.due(), Some('l'));
    assert_eq!(list.hear(0, 'l', NotFound), "");
    assert_eq!(list.hear(1, 'l', NotFound), "-l");
    assert_eq!(list.due(), None);
}

#[test]
fn a_post_that_is_shown_again_or_has_a_page_is_forgotten() {
    let mut list = list("bdfhjl");
    assert_eq!(list.audit("bfhj"), "~d ~l");
    assert_eq!(list.audit("bdfhj"), "");
    assert_eq!(
        list.memory.asked_about().map(letter).collect::<String>(),
        "l"
    );
    assert_eq!(list.hear(0, 'l', Shown), "~l");
    assert_eq!(list.memory.next_check_at(), None);
}

#[test]
fn without_pages_and_in_whole_or_mixed_feeds_it_rolls_off_in_silence() {
    let check = |change: fn(&mut ProofPolicy)| {
        let mut list = list("bdfhjl");
        change(&mut list.policy);
        list.audit("bdfhj");
        assert_eq!(list.memory.departures.rows, []);
    };
    check(|policy| policy.checks_permalinks = false);
    check(|policy| policy.ordered = false);
    check(|policy| policy.complete = true);
}

#[test]
fn in_a_feed_without_order_what_stays_away_for_longest_is_asked_about_first() {
    let mut list = shuffled();
    assert_eq!(list.audit("bacfeh"), "~d ~g");
    for document in ["hefcab", "bacfeh", "hefcab", "bacfe", "efcab"] {
        list.audit(document);
    }
    let asked: String = list.memory.asked_about().map(letter).collect();
    assert!(asked.contains('d') && asked.contains('g'), "{asked}");
    assert_eq!(list.due(), None, "most are shown again within a day");
    list.wait_hours(25);
    let first = list.due().unwrap();
    assert!("dg".contains(first), "{first}");
    assert_eq!(list.hear(0, first, Gone), format!("-{first}"));
}

#[test]
fn a_feed_without_order_that_shows_other_known_posts_is_no_quarantine() {
    let mut list = shuffled();
    list.known.extend("ijklmnop".chars());
    assert_eq!(list.audit("ijklmnop"), "");
    assert_eq!(list.memory.quarantined_since, None);
}

#[test]
fn twelve_pages_a_day_are_asked_for() {
    let letters: String = ('a'..='z').collect();
    let mut list = list(&letters);
    list.audit(&letters[..9]);
    list.audit(&letters[..9]);
    assert_eq!(list.memory.departures.rows.len(), 17);
    list.wait_hours(1);
    let mut asked = 0;
    while let Some(due) = list.due() {
        list.hear(0, due, Shown);
        asked += 1;
    }
    assert_eq!(asked, 12);
    let next_at = list.memory.next_check_at().unwrap();
    assert_eq!(next_at, list.now.plus_secs(86_400));
    list.wait_hours(24);
    assert!(list.due().is_some());
}
