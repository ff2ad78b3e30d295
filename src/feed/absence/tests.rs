//! Windows as strings of letters, and what becomes of what is missing from them. `a` is older than
//! `b`. The names are those of the case table and of the vectors in POLLING 2.4 and 2.6.

use super::*;
use std::collections::HashMap;

mod checking;

mod bulk;

mod departing;

mod recurring;

/// A feed as it is watched, an hour between two documents.
struct Watched {
    memory: AbsenceState,
    now: Stamp,
    policy: ProofPolicy,
    known: HashSet<char>,
    /// Letters whose date is no longer their own.
    redated: HashMap<char, i64>,
    tombstone_count: HashMap<char, u8>,
    /// The last document.
    shown: String,
    /// True when documents hold no dates.
    is_undated: bool,
}

impl Watched {
    fn new(first: &str) -> Self {
        let policy = ProofPolicy::default();
        let mut watched = Self {
            memory: AbsenceState::default(),
            now: Stamp::from_secs(1_700_000_000),
            policy,
            known: HashSet::new(),
            redated: HashMap::new(),
            tombstone_count: HashMap::new(),
            shown: String::new(),
            is_undated: false,
        };
        assert_eq!(watched.audit(first), "");
        watched
    }

    /// Shows a document as the answer to an unconditional request, an hour after the last.
    fn audit(&mut self, document: &str) -> String {
        self.show(document, Coverage::Unconditional)
    }

    /// Likewise to a conditional one.
    fn poll(&mut self, document: &str) -> String {
        self.show(document, Coverage::Conditional)
    }

    /// Effect of a document: `-x` gone, `~x` rolled off, `?x` suspected from now on, and events by
    /// name.
    fn show(&mut self, document: &str, class: Coverage) -> String {
        self.now = self.now.plus_secs(3600);
        let seen = self.places(document);
        document.clone_into(&mut self.shown);
        let suspected: HashSet<ItemId> = self.memory.suspects().map(|row| row.id).collect();
        let outcome = self.memory.observe(&seen, class, &self.policy, self.now);
        self.known.extend(document.chars());
        self.told(outcome, &suspected)
    }

    /// The last document once more, unconditionally.
    fn again(&mut self) -> String {
        self.now = self.now.plus_secs(3600);
        let suspected: HashSet<ItemId> = self.memory.suspects().map(|row| row.id).collect();
        let outcome = self
            .memory
            .observe_again(&self.places(&self.shown), &self.policy, self.now);
        self.told(outcome, &suspected)
    }

    /// Hears what the page of an item says, so many hours after the last thing.
    fn hear(&mut self, hours: u64, letter: char, said: CheckResult) -> String {
        self.wait_hours(hours);
        let suspected: HashSet<ItemId> = self.memory.suspects().map(|row| row.id).collect();
        let outcome = self.memory.told(id(letter), said, &self.policy, self.now);
        self.told(outcome, &suspected)
    }

    /// Whose page is to be asked for now.
    fn due(&self) -> Option<char> {
        self.memory.due_check(self.now).map(letter)
    }

    fn places(&self, document: &str) -> Vec<ShownItem> {
        let place = |letter: char| ShownItem {
            id: id(letter),
            dated: (!self.is_undated).then(|| {
                self.redated
                    .get(&letter)
                    .copied()
                    .unwrap_or(i64::from(u32::from(letter)))
            }),
            is_known: self.known.contains(&letter),
            tombstone_count: self.tombstone_count.get(&letter).copied().unwrap_or(0),
            is_weak: letter.is_uppercase(),
        };
        document.chars().map(place).collect()
    }

    fn told(&mut self, outcome: AbsenceFindings, suspected: &HashSet<ItemId>) -> String {
        let mut told: Vec<String> = outcome
            .events
            .iter()
            .map(|event| format!("{event:?}"))
            .collect();
        told.extend(
            outcome
                .rolled_off
                .iter()
                .map(|id| format!("~{}", letter(*id))),
        );
        told.extend(
            outcome
                .gone
                .iter()
                .map(|(id, _)| format!("-{}", letter(*id))),
        );
        let fresh = outcome
            .state
            .suspects()
            .filter(|row| !suspected.contains(&row.id));
        told.extend(fresh.map(|row| format!("?{}", letter(row.id))));
        for (id, _) in &outcome.gone {
            self.known.remove(&letter(*id));
            *self.tombstone_count.entry(letter(*id)).or_default() += 1;
        }
        self.memory = outcome.state;
        told.join(" ")
    }

    fn wait_hours(&mut self, hours: u64) {
        self.now = self.now.plus_secs(hours * 3600);
    }
}

fn id(letter: char) -> ItemId {
    let mut id = [0; 10];
    id[..4].copy_from_slice(&u32::from(letter).to_be_bytes());
    ItemId(id)
}

fn letter(id: ItemId) -> char {
    let [a, b, c, d, ..] = id.0;
    char::from_u32(u32::from_be_bytes([a, b, c, d])).expect("ids of these tests are letters")
}

#[test]
fn a_middle_delete_with_backfill_takes_two_documents() {
    let mut feed = Watched::new("zyxwvuts");
    assert_eq!(feed.poll("zyxwvtsr"), "?u", "an older post moved up");
    assert!(feed.memory.wants_audit());
    assert_eq!(feed.audit("zyxwvtsr"), "-u");
    assert!(!feed.memory.wants_audit());
    assert_eq!(feed.audit("zyxwvtsr"), "");
}

#[test]
fn a_middle_delete_of_a_short_blog_takes_three_documents_and_a_day() {
    let mut feed = Watched::new("zyxwv");
    assert_eq!(
        feed.audit("zywv"),
        "?x",
        "nothing moved up, so the window was not conserved"
    );
    assert_eq!(feed.audit("zywv"), "");
    assert_eq!(feed.audit("zywv"), "", "three, but within a day");
    feed.wait_hours(24);
    assert_eq!(feed.audit("zywv"), "-x");
}

#[test]
fn an_item_that_rolls_off_the_end_says_nothing() {
    let mut feed = Watched::new("zyxwv");
    assert_eq!(
        feed.audit("azyxw"),
        "~v",
        "`a` is new although its date is old"
    );
    assert_eq!(feed.audit("bazyx"), "~w");
}

#[test]
fn a_tail_delete_with_a_new_post_cannot_be_told_from_rolling_off() {
    let mut feed = Watched::new("yxwvu");
    assert_eq!(feed.audit("zyxwv"), "~u");
}

#[test]
fn a_tail_delete_is_bracketed_by_an_older_item_that_comes_back() {
    let mut feed = Watched::new("ywvuts");
    assert_eq!(feed.audit("zywvut"), "~s");
    assert_eq!(
        feed.audit("zywvus"),
        "?t",
        "`s` is known and older than `t`"
    );
    assert_eq!(feed.audit("zywvus"), "-t");
}

#[test]
fn a_tail_delete_without_anything_older_is_missed() {
    let mut feed = Watched::new("zyxwv");
    assert_eq!(feed.audit("zyxw"), "~v");
}

#[test]
fn a_window_that_shrinks_and_grows_back_deletes_nothing() {
    let mut feed = Watched::new("zyxwvutsrqponmlkjihg");
    assert_eq!(feed.audit("zyxwvutsrq"), "~p ~o ~n ~m ~l ~k ~j ~i ~h ~g");
    assert_eq!(feed.audit("zyxwvutsrqponmlkjihg"), "");
    assert_eq!(feed.memory.suspects().count(), 0);
}

#[test]
fn an_empty_document_is_held_and_heals() {
    let mut feed = Watched::new("zyxwv");
    assert_eq!(feed.audit(""), "Quarantined");
    assert_eq!(feed.audit(""), "", "said once");
    assert_eq!(feed.audit("zyxwv"), "");
    assert_eq!(feed.memory.quarantined_since, None);
}

#[test]
fn half_a_document_is_held_and_heals() {
    let mut feed = Watched::new("zyxwvutsrq");
    assert_eq!(feed.audit("zyxw"), "Quarantined");
    assert_eq!(feed.audit("zyxwvutsrq"), "");
}

#[test]
fn a_document_that_stays_empty_for_a_week_begins_anew_without_a_tombstone() {
    let mut feed = Watched::new("zyxwv");
    feed.audit("");
    feed.wait_hours(8 * 24);
    assert_eq!(
        feed.poll(""),
        "",
        "only an unconditional answer ends the hold"
    );
    assert_eq!(feed.audit(""), "QuarantineEnded Gap ~z ~y ~x ~w ~v");
}

#[test]
fn a_third_of_the_rows_missing_is_held() {
    let mut feed = Watched::new("zyxwvutsrqponml");
    assert_eq!(
        feed.audit("zywvtsqpnm"),
        "Quarantined",
        "five fresh ones at once"
    );
    assert_eq!(feed.audit("zyxwvutsrqponml"), "");
}

#[test]
fn two_that_swap_places_change_nothing() {
    let mut feed = Watched::new("zyxwvu");
    assert_eq!(feed.audit("zxywvu"), "");
}

#[test]
fn a_bumped_item_changes_nothing() {
    let mut feed = Watched::new("zyxwvu");
    feed.redated.insert('v', 1000);
    assert_eq!(feed.audit("vzyxwu"), "");
    assert_eq!(feed.audit("vzyxwu"), "");
}

#[test]
fn an_ascending_document_is_read_from_its_end() {
    let mut feed = Watched::new("uvwxy");
    assert_eq!(feed.audit("vwxyz"), "~u", "the oldest stands first");
    assert_eq!(
        feed.audit("uvwxz"),
        "?y",
        "and came back when a newer was deleted"
    );
    assert_eq!(feed.audit("uvwxz"), "-y");
}

#[test]
fn undated_items_are_judged_once_two_insertions_showed_where_the_newest_stand() {
    let mut feed = Watched::new("");
    let undated = |feed: &mut Watched, document: &str| {
        feed.now = feed.now.plus_secs(3600);
        let place = |letter| ShownItem {
            id: id(letter),
            dated: None,
            is_known: feed.known.contains(&letter),
            tombstone_count: 0,
            is_weak: false,
        };
        let seen: Vec<ShownItem> = document.chars().map(place).collect();
        feed.known.extend(document.chars());
        let outcome = feed
            .memory
            .observe(&seen, Coverage::Unconditional, &feed.policy, feed.now);
        feed.told(outcome, &HashSet::new())
    };
    undated(&mut feed, "fedcba");
    assert_eq!(
        undated(&mut feed, "fdcba"),
        "~e",
        "nobody knows which end is the newest"
    );
    undated(&mut feed, "gfdcba");
    undated(&mut feed, "hgfdcba");
    assert_eq!(undated(&mut feed, "hgdcba"), "?f");
}

#[test]
fn an_item_pinned_at_the_end_is_no_proof_against_those_before_it() {
    let mut feed = Watched::new("zyxwvA");
    assert_eq!(
        feed.audit("{zyxwA"),
        "~v",
        "one anchor behind it is too few"
    );
}

#[test]
fn an_unordered_list_proves_nothing() {
    let mut feed = Watched::new("qzawsxedc");
    assert_eq!(feed.audit("xqcsdewaz"), "");
    assert_eq!(feed.audit("cqsdewaz"), "");
    assert_eq!(feed.audit("zcqsdewa"), "");
    assert_eq!(feed.memory.suspects().count(), 0);
}

#[test]
fn six_documents_out_of_order_leave_suspects_as_they_are() {
    let mut feed = Watched::new("zyxwvuts");
    assert_eq!(feed.poll("zyxwutsr"), "?v");
    for document in ["xszuytw", "tzwsuxy", "uwzsytx", "sxwzuty", "ytuzxws"] {
        feed.poll(document);
    }
    assert_eq!(
        feed.poll("wsyuzxt"),
        "Rebaselined ~r",
        "v is suspected all the same"
    );
    assert_eq!(feed.memory.suspects().count(), 1);
    feed.wait_hours(8 * 24);
    for document in ["xszuytw", "tzwsuxy", "uwzsytx", "sxwzuty", "ytuzxws"] {
        feed.poll(document);
    }
    assert!(feed.poll("wsyuzxt").contains("~v"), "but not for ever");
}

#[test]
fn documents_that_a_known_item_joins_leave_no_gap() {
    let mut feed = Watched::new("edcba");
    assert_eq!(feed.audit("jihgf"), "Gap ~e ~d ~c ~b ~a");
    assert_eq!(feed.audit("edcba"), "~j ~i ~h ~g ~f", "they were known");
    assert_eq!(feed.audit("zyxwb"), "", "one survived");
    let mut feed = Watched::new("zyxwv");
    feed.audit("");
    feed.wait_hours(8 * 24);
    assert_eq!(
        feed.audit("zy"),
        "QuarantineEnded ~x ~w ~v",
        "what is left joins them"
    );
}

#[test]
fn a_document_that_says_to_be_whole_and_lacks_much_is_believed_after_a_day() {
    let mut feed = Watched::new("zyxwvutsrqponml");
    feed.policy.complete = true;
    assert_eq!(feed.audit("zywvtsqpnm"), "Quarantined");
    assert_eq!(feed.audit("zyxwvutsrqponml"), "", "it was an accident");
    assert_eq!(feed.audit("zywvtsqpnm"), "Quarantined");
    feed.wait_hours(22);
    assert_eq!(feed.audit("zywvtsqpnm"), "");
    assert_eq!(
        feed.audit("zywvtsqpnm"),
        "?x ?u ?r ?o ?l",
        "it says so for a day"
    );
    assert_eq!(feed.audit("zywvtsqpnm"), "-x -u -r -o -l");
}

#[test]
fn no_overlap_is_a_gap() {
    let mut feed = Watched::new("edcba");
    assert_eq!(feed.poll("zyxwv"), "Gap ~e ~d ~c ~b ~a");
    assert_eq!(feed.audit("zyxwv"), "");
}

#[test]
fn feeds_of_fewer_than_three_items_delete_nothing_by_absence() {
    let mut feed = Watched::new("ba");
    for _ in 0..3 {
        assert_eq!(feed.audit("b"), "");
    }
    let mut feed = Watched::new("a");
    assert_eq!(feed.audit("b"), "Gap ~a");
}

#[test]
fn a_document_that_is_the_whole_feed_says_what_has_left_it() {
    let mut feed = Watched::new("ba");
    feed.policy.complete = true;
    assert_eq!(feed.poll("b"), "?a");
    assert_eq!(feed.audit("b"), "-a");
}

#[test]
fn the_oldest_post_of_a_whole_feed_may_be_deleted_while_another_one_comes() {
    let begun = || {
        let mut feed = Watched::new("edcba");
        feed.policy.complete = true;
        assert_eq!(feed.audit("fedcb"), "?a");
        assert_eq!(feed.audit("fedcb"), "", "it may have rolled off");
        feed
    };
    let mut whole = begun();
    assert_eq!(whole.audit("gfedcb"), "-a", "nothing rolled off");
    let mut capped = begun();
    assert_eq!(capped.audit("gfedc"), "~b ~a");
    assert!(capped.memory.is_capped());
    assert_eq!(capped.audit("hgfed"), "~c");
    let mut edited = begun();
    assert_eq!(edited.audit("fecb"), "?d");
    assert_eq!(edited.audit("fecb"), "-d", "it stood before others");
}

#[test]
fn what_leaves_the_end_of_a_list_that_says_to_be_whole_is_asked_for_and_may_show_that_it_is_capped()
{
    let begun = || {
        let mut feed = Watched::new("edcba");
        feed.policy.complete = true;
        feed.policy.checks_permalinks = true;
        feed
    };
    // The last five days: the oldest goes, and nothing came.
    let mut by_age = begun();
    assert_eq!(by_age.audit("edcb"), "?a");
    assert_eq!(by_age.due(), Some('a'));
    assert_eq!(by_age.hear(0, 'a', CheckResult::Shown), "");
    assert!(by_age.memory.is_capped());
    assert_eq!(by_age.audit("edcb"), "~a");
    assert_eq!(by_age.audit("edc"), "~b");
    // Before one that is pinned to the end.
    let mut pinned = begun();
    assert_eq!(pinned.audit("fedca"), "?b");
    assert_eq!(pinned.hear(0, 'b', CheckResult::Shown), "");
    assert!(pinned.memory.is_capped());
    // A page that is gone is proof, and one that says nothing leaves it to the documents.
    let mut gone = begun();
    assert_eq!(gone.audit("edcb"), "?a");
    assert_eq!(gone.audit("edcb"), "", "its page is waited for");
    assert_eq!(gone.hear(0, 'a', CheckResult::Gone), "-a");
    let mut silent = begun();
    assert_eq!(silent.audit("edcb"), "?a");
    assert_eq!(silent.hear(0, 'a', CheckResult::NoPage), "");
    assert_eq!(silent.audit("edcb"), "-a");
    // What leaves a whole list elsewhere may live on, and has left it all the same.
    let mut inside = Watched::new("gfedcba");
    inside.policy.complete = true;
    inside.policy.checks_permalinks = true;
    assert_eq!(inside.audit("gedcba"), "?f");
    assert_eq!(inside.due(), None);
    assert_eq!(inside.audit("gedcba"), "-f");
}

#[test]
fn a_partial_document_shows_presence_and_never_absence() {
    let mut feed = Watched::new("zyxwvuts");
    assert_eq!(feed.show("z", Coverage::Partial), "");
    assert_eq!(feed.audit("zyxwutsr"), "?v");
    assert_eq!(
        feed.show("v", Coverage::Partial),
        "",
        "it is there after all"
    );
    assert_eq!(feed.memory.suspects().count(), 0);
}

#[test]
fn a_delete_behind_a_304_is_seen_by_the_next_audit_and_proven_by_the_one_after() {
    let mut feed = Watched::new("zyxwvuts");
    assert_eq!(feed.audit("zyxwutsr"), "?v");
    assert_eq!(
        feed.again(),
        "-v",
        "the same body to an unconditional request is a confirmation"
    );
}

#[test]
fn a_document_that_is_held_stays_so_when_it_comes_again() {
    for document in ["zyxw", ""] {
        let mut feed = Watched::new("zyxwvutsrq");
        assert_eq!(feed.poll(document), "Quarantined");
        assert_eq!(feed.again(), "");
        assert!(
            feed.memory.quarantined_since.is_some(),
            "{document}: what it lacks is still missing"
        );
        assert!(!feed.memory.has_caught_conditional());
        feed.wait_hours(8 * 24);
        assert!(feed.again().starts_with("QuarantineEnded"), "{document}");
        let rows: String = feed.memory.items.iter().map(|row| letter(row.id)).collect();
        assert_eq!(rows, document, "the window begins anew with what is shown");
    }
}

#[test]
fn audits_of_what_is_held_do_not_make_parts_of_conditional_answers() {
    let mut feed = Watched::new("zyxwvutsrq");
    for document in ["zyxw", "{zyx", "|{zy", "}|{z"] {
        feed.poll(document);
        feed.poll(document);
        feed.again();
    }
    assert!(!feed.memory.has_caught_conditional());
}

#[test]
fn a_cut_document_that_comes_again_confirms_nothing() {
    let mut feed = Watched::new("zyxwvuts");
    assert_eq!(feed.poll("zyxwutsr"), "?v");
    assert_eq!(feed.show("zyx", Coverage::Partial), "");
    for _ in 0..30 {
        assert_eq!(feed.again(), "");
    }
    assert_eq!(feed.audit("zyxwutsr"), "-v");
}

#[test]
fn a_document_out_of_order_that_comes_again_is_neither_a_second_one_nor_in_order() {
    let mut feed = Watched::new("zyxwvuts");
    for document in ["xszuytw", "tzwsuxy", "uwzsytx", "sxwzuty", "ytuzxws"] {
        assert_eq!(feed.poll(document), "");
        assert_eq!(feed.again(), "");
    }
    assert_eq!(feed.poll("wsyuzxt"), "Rebaselined ~v", "the sixth");
}

#[test]
fn conditional_answers_alone_prove_nothing() {
    let mut feed = Watched::new("zyxwvuts");
    assert_eq!(feed.poll("zyxwutsr"), "?v");
    for _ in 0..30 {
        assert_eq!(feed.poll("zyxwutsr"), "");
    }
    assert_eq!(feed.audit("zyxwutsr"), "-v");
}

#[test]
fn deltas_that_call_themselves_200_are_found_out() {
    let mut feed = Watched::new("zyxwvuts");
    for _ in 0..2 {
        for delta in ["z", "y", "x"] {
            assert!(!feed.poll(delta).contains(['-', '~', '?']));
        }
        feed.audit("zyxwvuts");
    }
    assert_eq!(
        feed.poll("zyxwuts"),
        "",
        "no suspicion any more from a conditional answer"
    );
    assert!(feed.memory.wants_audit(), "but a daily audit");
    assert_eq!(feed.audit("zyxwutsr"), "?v");
    assert_eq!(feed.audit("zyxwutsr"), "-v");
}

#[test]
fn a_suspect_whose_anchors_roll_off_has_rolled_off() {
    let mut feed = Watched::new("uwtsr");
    feed.policy.confirmations = 9;
    assert_eq!(feed.audit("uwtr"), "~s", "one anchor behind it");
    let mut feed = Watched::new("wutsr");
    feed.policy.weak_confirmations = 9;
    assert_eq!(feed.audit("wusr"), "?t");
    assert_eq!(feed.audit("xwus"), "~t ~r");
}

#[test]
fn an_item_that_comes_and_goes_needs_three_days() {
    let mut feed = Watched::new("zyxwvuts");
    for _ in 0..3 {
        assert_eq!(feed.audit("zyxwutsr"), "?v");
        assert_eq!(feed.audit("zyxwutsr"), "-v");
        feed.known.insert('v');
        assert_eq!(feed.audit("zyxwvuts"), "~r");
    }
    assert_eq!(feed.audit("zyxwutsr"), "?v");
    assert_eq!(feed.audit("zyxwutsr"), "");
    feed.wait_hours(71);
    assert_eq!(feed.audit("zyxwutsr"), "-v");
}

#[test]
fn the_window_keeps_a_suspect_at_its_place() {
    let mut feed = Watched::new("zyxwvuts");
    feed.audit("zyxwutsr");
    let order: String = feed.memory.items.iter().map(|row| letter(row.id)).collect();
    assert_eq!(order, "zyxwvutsr");
}

#[test]
fn a_feed_of_two_entries_that_stays_as_it_is_loses_nothing() {
    // Fewer than three survivors are no order; nothing has left the window all the same.
    let mut feed = Watched::new("ba");
    for _ in 0..20 {
        assert_eq!(feed.again(), "");
    }
    assert_eq!(feed.audit("cb"), "~a", "it goes on where it stood");
}

#[test]
fn what_is_still_needed_is_what_is_asked_for() {
    let mut feed = Watched::new("gfedcb");
    assert_eq!(feed.poll("gfdcba"), "?e");
    let suspect = *feed.memory.suspects().next().unwrap();
    let missing = suspect.suspect.unwrap();
    let needs = missing.needs(suspect.tombstone_count, &feed.policy);
    assert_eq!(
        (missing.count, needs.confirmations, missing.audited),
        (1, 2, false)
    );
    assert_eq!(needs.not_before, missing.since.plus_secs(3600));
    let often = missing.needs(3, &feed.policy);
    assert_eq!(
        often.not_before,
        missing.since.plus_secs(72 * 3600),
        "one that comes and goes"
    );
    feed.now = needs.not_before.plus_secs(0);
    assert_eq!(feed.audit("gfdcba"), "-e");
}

#[test]
fn an_end_that_stays_is_learned_from_three_posts_that_roll_off() {
    // POLLING 2.3, step 7: a list of five of another kind behind the newest.
    let mut feed = Watched::new("hgfedc54321");
    assert_eq!(feed.audit("ihgfed54321"), "?c");
    assert_eq!(
        feed.audit("jihgfe54321"),
        "-c ?d",
        "a mistake that nothing could tell yet"
    );
    assert_eq!(feed.audit("kjihgf54321"), "Pinned ~e ~d");
    for (document, rolled) in [
        ("lkjihg54321", "~f"),
        ("mlkjih54321", "~g"),
        ("nmlkji54321", "~h"),
    ] {
        assert_eq!(feed.audit(document), rolled);
    }
    assert!(
        !feed.memory.wants_audit(),
        "there is nothing that an audit could prove"
    );
    // A deletion cannot be told either.
    assert_eq!(feed.audit("nmlji54321"), "~k");
}

#[test]
fn an_end_that_moves_again_is_believed_again() {
    let mut feed = Watched::new("hgfedc21");
    for document in ["ihgfed21", "jihgfe21", "kjihgf21"] {
        feed.audit(document);
    }
    assert!(feed.memory.is_sticky());
    assert_eq!(feed.audit("lkjihg"), "~f ~2 ~1");
    assert!(!feed.memory.is_sticky());
    assert_eq!(feed.audit("lkjhg"), "?i");
}

#[test]
fn a_site_that_is_built_again_with_one_date_for_all_posts_still_tells_deletions() {
    let mut feed = Watched::new("zyxwvuts");
    let build = |feed: &mut Watched, at: i64| {
        feed.redated = ('a'..='z')
            .chain('1'..='9')
            .map(|letter| (letter, at))
            .collect();
    };
    build(&mut feed, 1000);
    assert_eq!(feed.audit("1zyxwvut"), "~s");
    build(&mut feed, 2000);
    assert_eq!(feed.audit("21zyxwvu"), "~t");
    build(&mut feed, 3000);
    assert_eq!(feed.audit("21zywvut"), "?x", "`t` came back behind it");
    build(&mut feed, 4000);
    assert_eq!(feed.audit("21zywvut"), "-x");
}

#[test]
fn a_site_that_is_built_again_and_deletes_at_once_tells_it() {
    let mut feed = Watched::new("zyxwvuts");
    feed.redated = ('a'..='z')
        .map(|letter| (letter, 1000 + i64::from(u32::from(letter))))
        .collect();
    assert_eq!(feed.audit("zyxwuts"), "?v");
}

#[test]
fn deletions_from_feeds_whose_posts_all_bear_one_date_are_found() {
    let mut feed = Watched::new("hgfedcba");
    let all = ('a'..='z').map(|letter| (letter, 7));
    feed.redated = all.collect();
    for (document, expect) in [("ihgfedcb", "~a"), ("jihgfedc", "~b")] {
        assert_eq!(feed.audit(document), expect);
    }
    assert_eq!(feed.audit("jihgedc"), "?f");
    feed.wait_hours(24);
    assert_eq!(feed.audit("jihgedc"), "");
    assert_eq!(feed.audit("jihgedc"), "-f");
}
