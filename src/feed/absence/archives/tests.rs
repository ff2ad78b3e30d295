//! Absence from whole walks, one rule by name after the other.

use super::*;

const NOW: Stamp = Stamp::from_secs(10_000_000);
const BEFORE: Stamp = Stamp::from_secs(9_000_000);
const DAY: u64 = 86_400;

fn ago(secs: u64) -> Stamp {
    Stamp::from_secs(NOW.secs() - secs)
}

fn id(n: u8) -> ItemId {
    ItemId([n; 10])
}

/// Items that the archives held before, one a day: `shown` of them are shown.
fn held(all: impl IntoIterator<Item = u8>, shown: impl Fn(u8) -> bool) -> Vec<LiveItem> {
    let one = |n: u8| LiveItem {
        id: id(n),
        dated: Some(i64::from(n)),
        tombstone_count: 0,
        before: Some(BEFORE),
        sight: if shown(n) {
            Visibility::Shown
        } else {
            Visibility::Absent
        },
    };
    all.into_iter().map(one).collect()
}

fn missed(n: u8, since: Stamp, walks: u8) -> ArchiveSuspect {
    ArchiveSuspect {
        id: id(n),
        since,
        last_seen: BEFORE,
        walks,
    }
}

/// Which are gone, and which are missed from now on.
fn told(found: &ArchiveFindings) -> (Vec<u8>, Vec<u8>) {
    let numbers = |of: &[ArchiveSuspect]| of.iter().map(|missed| missed.id.0[0]).collect();
    (numbers(&found.gone), numbers(&found.missed))
}

#[track_caller]
fn check(held: Vec<LiveItem>, missed: &[ArchiveSuspect], gone: &[u8], missed_now: &[u8]) {
    let found = judge_archives(held, missed, NOW);
    assert_eq!(told(&found), (gone.to_vec(), missed_now.to_vec()));
    assert_eq!(found.too_much, None);
}

#[test]
fn one_walk_suspects_and_a_second_a_day_later_decides() {
    let items = held(1..=9, |n| n != 5);
    let first = judge_archives(items.clone(), &[], NOW);
    assert_eq!(
        first.missed,
        [missed(5, NOW, 1)],
        "last seen by the walk before"
    );
    let early = judge_archives(items.clone(), &first.missed, NOW.plus_secs(DAY - 1));
    assert_eq!(
        (early.gone, early.missed),
        (vec![], vec![missed(5, NOW, 2)])
    );
    let second = judge_archives(items, &first.missed, NOW.plus_secs(DAY));
    assert_eq!(
        (second.gone, second.missed),
        (vec![missed(5, NOW, 2)], vec![])
    );
}

#[test]
fn an_item_without_an_older_and_a_newer_neighbour_is_not_missed() {
    check(held(1..=9, |n| n != 1), &[], &[], &[]);
    check(held(1..=9, |n| n != 9), &[], &[], &[]);
    check(held([5], |_| false), &[], &[], &[]);
}

#[test]
fn neighbours_that_are_missing_too_prove_a_lost_page_and_nothing_else() {
    check(held(1..=20, |n| n != 5 && n != 6), &[], &[], &[]);
    check(held(1..=20, |n| n != 5 && n != 7), &[], &[], &[5, 7]);
    let since = ago(DAY);
    check(
        held(1..=20, |n| n != 5 && n != 6),
        &[missed(5, since, 1)],
        &[],
        &[],
    );
}

#[test]
fn a_neighbour_on_which_documents_have_not_decided_proves_nothing() {
    let mut items = held(1..=9, |n| n != 5);
    items[5].sight = Visibility::Suspected;
    check(items, &[], &[], &[]);
    let mut items = held(1..=9, |_| true);
    items[4].sight = Visibility::Suspected;
    check(items, &[], &[], &[]);
}

#[test]
fn what_archives_never_held_is_not_missed_and_disturbs_nobody() {
    // Also what has only a weak key: no walk sees it under a strong one.
    let mut items = held(1..=9, |n| n != 5 && n != 6);
    items[5].before = None;
    check(items, &[], &[], &[5]);
}

#[test]
fn undated_items_are_never_missed_and_have_no_neighbours() {
    let mut items = held(1..=9, |n| n != 5 && n != 6);
    items[5].dated = None;
    check(items, &[], &[], &[5]);
}

#[test]
fn items_of_one_date_vouch_together() {
    let same = |n: u8, date: i64, shown: bool| LiveItem {
        dated: Some(date),
        ..held([n], |_| shown)[0]
    };
    let row = |shown: [bool; 5]| {
        let dates = [1, 2, 2, 2, 3];
        (1..)
            .zip(dates)
            .zip(shown)
            .map(|((n, date), shown)| same(n, date, shown))
            .collect::<Vec<_>>()
    };
    check(row([true, true, false, true, true]), &[], &[], &[3]);
    check(row([true, true, false, false, true]), &[], &[], &[]);
    check(row([false, true, false, true, true]), &[], &[], &[]);
}

#[test]
fn too_much_missing_at_once_is_not_believed_and_forgets_nothing() {
    // 20 % of 50 are 10: every fourth is more.
    let items = held(1..=50, |n| n % 4 != 0);
    let known = [missed(4, ago(2 * DAY), 1)];
    let found = judge_archives(items, &known, NOW);
    assert_eq!((found.too_much, found.gone), (Some((12, 50)), vec![]));
    assert_eq!(found.missed, known, "what was missed before is, as it was");
    check(
        held(1..=50, |n| n % 5 != 0 || n == 50),
        &[],
        &[],
        &[5, 10, 15, 20, 25, 30, 35, 40, 45],
    );
    // Two are never too much.
    check(held(1..=5, |n| n != 2 && n != 4), &[], &[], &[2, 4]);
}

#[test]
fn what_is_shown_again_is_not_missed_any_more() {
    check(
        held(1..=9, |_| true),
        &[missed(5, ago(2 * DAY), 1)],
        &[],
        &[],
    );
}

#[test]
fn an_item_that_was_missed_is_expected_though_the_walk_that_missed_it_did_not_hold_it() {
    let mut items = held(1..=9, |n| n != 5);
    items[4].before = None;
    let known = [missed(5, ago(DAY), 1)];
    check(items.clone(), &known, &[5], &[]);
    check(items, &[], &[], &[]);
}

#[test]
fn an_item_that_comes_and_goes_must_be_missed_for_three_days() {
    let mut items = held(1..=9, |n| n != 5);
    items[4].tombstone_count = 3;
    check(items.clone(), &[missed(5, ago(2 * DAY), 2)], &[], &[5]);
    check(items, &[missed(5, ago(3 * DAY), 3)], &[5], &[]);
}
