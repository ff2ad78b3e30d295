//! Posts that leave documents which tell nothing by what they lack: their pages are asked for.

use super::*;
use CheckResult::{Gone, NotFound, Shown};
use rand::{RngExt, SeedableRng, rngs::SmallRng};

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
    for document in ["dhbfcgae", "ehadgbfc", "dhbfcgae", "ehadgbfc", "dhbfcgae"] {
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

/// The place at which a new entry enters a list as another one goes from its middle.
#[derive(Clone, Copy, Debug)]
enum Entrance {
    Head,
    Tail,
    Middle,
    /// The place of the other one.
    There,
    /// Now here, now there.
    Any,
}

/// Entries that went from the middle of a list without dates as others came, and how many of them
/// are asked about.
fn replaced(entrance: Entrance, length: usize, rng: &mut SmallRng) -> (usize, usize) {
    let mut letters = (0x4e00..).filter_map(char::from_u32);
    let mut shown: Vec<char> = letters.by_ref().take(length).collect();
    let mut list = list(&shown.iter().collect::<String>());
    let (mut gone, mut asked) = (0, 0);
    for _ in 0..12 {
        list.wait_hours(rng.random_range(0..48));
        // Some documents bring something new, some take something away, most do both.
        let (comes, goes) =
            [(true, true), (true, true), (true, false), (false, true)][rng.random_range(0..4)];
        let goes = goes && shown.len() > 6;
        let at = rng.random_range(2..shown.len() - 2);
        let removed = goes.then(|| shown.remove(at));
        let of_any = [
            Entrance::Head,
            Entrance::Tail,
            Entrance::Middle,
            Entrance::There,
        ];
        let enters_at = match entrance {
            Entrance::Any => of_any[rng.random_range(0..4)],
            entrance => entrance,
        };
        let place = match enters_at {
            Entrance::Head => 0,
            Entrance::Tail => shown.len(),
            Entrance::Middle | Entrance::Any => rng.random_range(1..shown.len()),
            Entrance::There => at,
        };
        shown.splice(place..place, letters.by_ref().take(usize::from(comes)));
        let told = list.audit(&shown.iter().collect::<String>());
        assert!(!told.contains('-'), "no page was asked: {told}");
        if let Some(removed) = removed.filter(|_| comes) {
            gone += 1;
            asked += usize::from(list.memory.missing(id(removed)).is_some());
        }
        while let Some(due) = list.due() {
            let told = list.hear(0, due, if shown.contains(&due) { Shown } else { Gone });
            assert_eq!(told, format!("-{due}"), "only what is gone is asked about");
        }
    }
    (gone, asked)
}

#[test]
fn what_goes_from_the_middle_of_a_list_as_another_comes_is_asked_about() {
    for entrance in [
        Entrance::Head,
        Entrance::Tail,
        Entrance::Middle,
        Entrance::There,
        Entrance::Any,
    ] {
        let (mut gone, mut asked) = (0, 0);
        for seed in 0..40 {
            let mut rng = SmallRng::seed_from_u64(seed);
            let length = rng.random_range(7..40);
            let of_world = replaced(entrance, length, &mut rng);
            (gone, asked) = (gone + of_world.0, asked + of_world.1);
        }
        println!("{entrance:?}: {asked} of {gone} asked about");
        assert!(asked * 100 >= gone * 95, "{entrance:?}: {asked} of {gone}");
    }
}

#[test]
fn a_list_without_dates_that_ascends_is_followed_once_it_is_known_to() {
    let mut list = list("abcdef");
    assert_eq!(list.audit("abcdefg"), "");
    assert_eq!(list.audit("bcdefgh"), "~a", "known to ascend from now on");
    assert_eq!(list.memory.documents.unstable, 0);
    assert_eq!(list.audit("cdeghi"), "~b ?f");
    // One that enters between others says that nobody knows, and changes no place.
    assert_eq!(list.audit("cdxeghi"), "~f");
    assert_eq!(list.audit("cdxeghi"), "");
    let asked: Vec<char> = list.memory.asked_about().map(letter).collect();
    assert_eq!(asked, ['f']);
    assert_eq!(list.memory.documents.unstable, 0);
}

#[test]
fn what_rolls_off_a_list_that_is_entered_at_its_head_is_not_asked_about() {
    let mut asked = 0;
    for seed in 0..40 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut letters = (0x4e00..).filter_map(char::from_u32);
        let length = rng.random_range(6..40);
        let mut shown: Vec<char> = letters.by_ref().take(length).collect();
        let mut list = list(&shown.iter().collect::<String>());
        for turn in 0..12 {
            let come = rng.random_range(1..3);
            shown.splice(0..0, letters.by_ref().take(come));
            shown.truncate(length);
            list.audit(&shown.iter().collect::<String>());
            // Until two came one after the other nobody knows where they enter.
            if turn == 1 {
                list.memory.departures = Departures::default();
            }
        }
        asked += list.memory.asked_about().count();
    }
    println!("{asked} asked about of those that rolled off");
    assert_eq!(asked, 0);
}
