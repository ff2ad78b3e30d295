//! Entries that change with every poll, and feeds that are written anew.

use super::*;
use proptest::prelude::*;

/// Seconds between two polls.
const HOUR: u64 = 3600;

impl Held {
    /// The same an hour later.
    fn later(&mut self, document: &[ParsedEntry]) -> Vec<String> {
        self.secs += HOUR;
        self.show(document, &[])
    }

    /// Shows the entry 1 in so many other forms, an hour between two, beside one that stays; what
    /// the last one did.
    fn churn(&mut self, times: u32) -> Vec<String> {
        (0..times).map(|_| self.turn()).last().unwrap_or_default()
    }

    /// Shows the entry 1 in another form: `v` and the hour.
    fn turn(&mut self) -> Vec<String> {
        let form = form(1, &format!("v{}", self.secs / HOUR + 1));
        self.later(&[post(2), form])
    }

    fn title(&self, n: u32) -> String {
        let id = KeyHash::of(NS, &post(n).key.stripped()).item_id();
        let item = &self.items[&id];
        item.entry()
            .map_or("gone", |entry| &entry.title.as_ref().unwrap().value)
            .to_owned()
    }

    fn churning() -> Self {
        let mut held = Self::default();
        held.show(&[post(2), post(1)], &[]);
        held.secs = 1000 * HOUR;
        assert_eq!(
            held.churn(24),
            ["~v1024"],
            "what changes in 24 polls running is committed at once"
        );
        held
    }
}

/// An entry of this number with this title.
fn form(n: u32, title: &str) -> ParsedEntry {
    entry(
        &format!("tag:x,2005:{n}"),
        &format!("http://x/{n}"),
        title,
        n,
    )
}

fn none() -> [&'static str; 0] {
    []
}

#[test]
fn an_entry_that_changes_with_every_poll_is_committed_once_a_day_in_its_newest_form() {
    let mut held = Held::churning();
    // T is of 1024 h and a few microseconds.
    assert_eq!(held.churn(24), none());
    assert_eq!(held.last.deferred.len(), 1);
    assert_eq!(held.last.entries[1].changed_polls, 48);
    assert_eq!(held.turn(), ["~v1049"]);
    assert!(held.last.deferred.is_empty());
    assert_eq!(held.churn(24), none());
    assert_eq!(held.turn(), ["~v1074"]);
}

#[test]
fn a_document_that_shows_the_entry_as_it_was_ends_the_run_and_what_was_held_back_is_committed() {
    let mut held = Held::churning();
    assert_eq!(held.turn(), none());
    assert_eq!(
        held.later(&[post(3), post(2), form(1, "v1025")]),
        ["~v1025", "+p3"]
    );
    assert!(held.last.deferred.is_empty());
    assert_eq!(held.turn(), ["~v1027"], "another run begins");
    assert_eq!(held.last.entries[1].changed_polls, 1);
}

#[test]
fn a_poll_that_changes_nothing_ends_the_run_and_what_was_held_back_is_committed() {
    let mut held = Held::churning();
    assert_eq!(held.turn(), none());
    assert_eq!(held.rest(), ["~v1025"]);
    assert_eq!(held.rest(), none());
    assert_eq!(held.churn(24), ["~v1049"]);
    assert_eq!(held.turn(), none());
}

#[test]
fn what_was_held_back_is_committed_when_its_day_is_over_though_it_is_shown_no_more_or_nobody_answers()
 {
    for documents in [true, false] {
        let mut held = Held::churning();
        assert_eq!(held.turn(), none());
        for hour in 1026..=1049 {
            held.secs = hour * HOUR;
            let told = if documents {
                held.show(&[post(2)], &[])
            } else {
                held.release()
            };
            let expect: &[&str] = if hour == 1049 { &["~v1025"] } else { &[] };
            assert_eq!(told, expect, "{hour}");
        }
    }
}

#[test]
fn a_form_that_is_taken_back_is_forgotten() {
    let mut held = Held::churning();
    assert_eq!(held.turn(), none());
    assert_eq!(held.later(&[post(2), form(1, "v1024")]), none());
    assert!(held.last.deferred.is_empty());
    assert_eq!(held.rest(), none());
}

#[test]
fn a_deletion_ends_what_is_held_back_and_a_return_is_committed_at_once() {
    let mut held = Held::churning();
    assert_eq!(held.turn(), none());
    held.secs += HOUR;
    assert_eq!(
        held.show(&[post(2)], &[deleted("tag:x,2005:1", 5)]),
        ["-v1024"]
    );
    assert!(held.last.deferred.is_empty());
    assert_eq!(held.rest(), none());
    assert_eq!(held.turn(), ["^v1027"]);
    assert_eq!(held.turn(), ["~v1028"]);
}

#[test]
fn a_form_that_was_updated_after_its_deletion_outlives_it_though_it_was_held_back() {
    // RFC 6721 section 3.
    let mut held = Held::churning();
    assert_eq!(
        held.later(&[post(2), updated(form(1, "newest"), 9)]),
        none()
    );
    held.secs += HOUR;
    assert_eq!(held.show(&[post(2)], &[deleted("tag:x,2005:1", 8)]), none());
    assert_eq!(held.rest(), ["~newest"]);
}

#[test]
fn an_entry_that_goes_by_another_id_goes_on_churning() {
    let mut held = Held::churning();
    assert_eq!(held.turn(), none());
    // The same link at the same time.
    let renamed = |title: &str| entry("tag:y,2005:1", "http://x/1", title, 1);
    assert_eq!(held.later(&[post(2), renamed("v1026")]), none());
    assert_eq!(
        (held.items.len(), held.last.entries[1].changed_polls),
        (2, 26)
    );
    assert_eq!(held.rest(), ["~v1026"]);
}

#[test]
fn no_more_is_held_back_than_a_limit() {
    let all = |title: &str| {
        (1..=101)
            .map(|n| form(n, &format!("{title} {n}")))
            .collect::<Vec<_>>()
    };
    let mut held = Held::default();
    for turn in 0..=24 {
        assert_eq!(held.later(&all(&format!("v{turn}"))).len(), 101);
    }
    assert_eq!(held.later(&all("v25")).len(), 1);
    assert_eq!(held.later(&all("v26")).len(), 1);
    assert_eq!((held.last.deferred.len(), held.rest().len()), (100, 100));
}

#[test]
fn a_clock_that_goes_back_holds_nothing_for_longer_than_a_day() {
    let mut held = Held::churning();
    held.secs = 10 * HOUR;
    assert_eq!(held.churn(24), none());
    assert_eq!(
        held.turn(),
        ["~v35"],
        "a day after the first that was held back"
    );
}

/// Twelve entries, of which so many have another form.
fn window(edited: u32, form_of: &str) -> Vec<ParsedEntry> {
    (1..=12)
        .rev()
        .map(|n| {
            if n <= edited {
                form(n, &format!("{form_of} {n}"))
            } else {
                post(n)
            }
        })
        .collect()
}

/// Effect of each of these documents, an hour apart, on a feed of twelve: number of edits, and true
/// if it is news.
fn check(documents: &[Vec<ParsedEntry>], expect: &[(usize, bool)]) {
    let mut held = Held::default();
    held.show(&window(0, ""), &[]);
    let mut told = Vec::new();
    for document in documents {
        let edits = held.later(document).len();
        assert!(held.events.iter().all(|event| !event.leaves_a_gap()));
        told.push((edits, held.events == [WindowEvent::Reformatted]));
    }
    assert_eq!(told, expect);
}

#[test]
fn a_feed_of_which_more_than_half_is_edited_without_a_word_was_reformatted_and_all_of_it_is_committed()
 {
    check(&[window(7, "a")], &[(7, true)]);
    check(&[window(6, "a")], &[(6, false)]);
    let dated = |document: Vec<ParsedEntry>, day| {
        document.into_iter().map(|one| updated(one, day)).collect()
    };
    check(&[dated(window(12, "a"), 20)], &[(12, false)]);
    // Dates that stay say nothing; dates that move without the content are no edits.
    check(
        &[
            dated(window(12, "a"), 20),
            dated(window(12, "b"), 20),
            dated(window(12, "b"), 21),
        ],
        &[(12, false), (12, true), (0, false)],
    );
}

#[test]
fn a_few_entries_are_corrected_by_hand() {
    let mut held = Held::default();
    let few = |title: &str| {
        (1..=4)
            .map(|n| form(n, &format!("{title} {n}")))
            .collect::<Vec<_>>()
    };
    held.show(&few("a"), &[]);
    assert_eq!(
        (held.later(&few("b")).len(), held.events.as_slice()),
        (4, [].as_slice())
    );
}

#[test]
fn a_feed_that_is_reformatted_again_and_again_says_so_once() {
    let every = |n: usize| {
        (0..n)
            .map(|n| window(12, &format!("v{n}")))
            .collect::<Vec<_>>()
    };
    let once = |n: usize| (0..n).map(|n| (12, n == 0)).collect::<Vec<_>>();
    check(&every(20), &once(20));
    // Two servers that do not agree, asked in turn: a form that comes back again is no edit.
    check(
        &[
            window(12, "a"),
            window(12, "a"),
            window(0, ""),
            window(12, "a"),
        ],
        &[(12, true), (0, false), (12, false), (0, false)],
    );
}

#[test]
fn a_feed_that_is_polled_once_a_day_and_reformatted_at_every_poll_says_so_once() {
    let mut held = Held::default();
    held.show(&window(0, ""), &[]);
    for day in 0..30 {
        held.secs += 25 * HOUR;
        assert_eq!(held.show(&window(12, &format!("v{day}")), &[]).len(), 12);
        assert_eq!(held.events.len(), usize::from(day == 0), "{day}");
    }
}

#[test]
fn a_feed_that_rested_for_a_day_from_being_reformatted_may_say_so_again() {
    for by_document in [true, false] {
        let mut held = Held::default();
        held.show(&window(0, ""), &[]);
        held.later(&window(12, "a"));
        assert_eq!(held.events, [WindowEvent::Reformatted]);
        held.secs += 24 * HOUR;
        if by_document {
            held.show(&window(12, "a"), &[]);
            assert_eq!(
                (held.events.as_slice(), held.last.reformatted_at),
                ([].as_slice(), None)
            );
        } else {
            held.rest();
        }
        held.later(&window(12, "b"));
        assert_eq!(held.events, [WindowEvent::Reformatted]);
    }
}

#[test]
fn what_is_edited_in_a_part_of_a_document_is_laid_beside_the_whole_window() {
    let mut held = Held::default();
    held.show(&window(0, ""), &[]);
    held.observe(&window(6, "a")[6..], &[], Coverage::Partial);
    assert!(held.events.is_empty());
}

/// Events of a feed, several times running.
#[derive(Clone, Debug)]
enum Act {
    /// A document of these entries, those of the second set in another form than before.
    Document {
        shown: [bool; 3],
        changed: [bool; 3],
    },
    /// A 304.
    Rest,
    /// A failure.
    Nothing,
}

fn act() -> impl Strategy<Value = (Act, u32)> {
    let document = any::<([bool; 3], [bool; 3])>()
        .prop_map(|(shown, changed)| Act::Document { shown, changed });
    let act = prop_oneof![4 => document, 1 => Just(Act::Rest), 1 => Just(Act::Nothing)];
    (act, prop_oneof![1..3_u32, 20..60_u32])
}

proptest! {
    #[test]
    fn whatever_was_shown_last_is_held_once_it_has_stayed_for_two_days(
        acts in proptest::collection::vec(act(), 1..12),
        by_304 in any::<bool>(),
        minutes in 10..300_u64,
    ) {
        let mut held = Held::default();
        let mut forms: [Option<u32>; 3] = [None; 3];
        let mut document = Vec::new();
        for (act, times) in acts {
            for _ in 0..times {
                held.secs += minutes * 60;
                match &act {
                    Act::Document { shown, changed } => {
                        document.clear();
                        for at in (0..3).filter(|at| shown[*at]) {
                            forms[at] = Some(forms[at].map_or(0, |form| form + u32::from(changed[at])));
                            let n = u32::try_from(at).unwrap();
                            document.push(form(n, &format!("{n} in form {}", forms[at].unwrap())));
                        }
                        // Of parts, so that absence proves nothing.
                        held.observe(&document, &[], Coverage::Partial);
                    }
                    Act::Rest => drop(held.rest()),
                    Act::Nothing => drop(held.release()),
                }
            }
        }
        for _ in 0..=2 * 24 * 60 / minutes {
            held.secs += minutes * 60;
            if by_304 { held.rest() } else { held.observe(&document, &[], Coverage::Partial) };
        }
        prop_assert!(held.last.deferred.is_empty());
        for (n, form) in (0..).zip(forms) {
            if let Some(form) = form {
                prop_assert_eq!(held.title(n), format!("{n} in form {form}"));
            }
        }
    }
}
