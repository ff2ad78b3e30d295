use super::*;
use crate::item::ItemDigests;

const HOUR: u64 = 3600;
const DAY: u64 = 86_400;
const ENDED: Stamp = Stamp::from_secs(1_780_000_000);
const ID: ItemId = ItemId([1; 10]);

/// An item that was deleted for this reason.
fn deleted(reason: Reason) -> Item {
    Item {
        id: ID,
        iri: "urn:x".into(),
        modified: ENDED,
        created: Stamp::from_secs(1_700_000_000),
        revived: None,
        published_us: None,
        content: Content::Gone {
            reason,
            first_missing: None,
            last_seen: None,
        },
        tombstone_count: 1,
        digests: ItemDigests::default(),
        publisher_id: None,
    }
}

/// A feed whose documents show one deleted item again, or not.
#[derive(Default)]
struct Feed {
    revivals: Revivals,
    recurrence: Recurrence,
}

impl Feed {
    /// Shows a document so many seconds after the deletion; true when the item waits.
    fn shows(&mut self, secs: u64, reason: Reason, signs: DocumentSigns) -> bool {
        let mut check = self
            .revivals
            .check(&self.recurrence, signs, ENDED.plus_secs(secs));
        let waits = check.waits(&deleted(reason));
        self.revivals = check.after(&HashSet::from([ID]));
        waits
    }

    /// Shows a document without it.
    fn lacks(&mut self, secs: u64) {
        let now = ENDED.plus_secs(secs);
        let check =
            self.revivals
                .check(&self.recurrence, DocumentSigns::default().whole(true), now);
        self.revivals = check.after(&HashSet::new());
    }
}

impl DocumentSigns {
    fn whole(self, conditional: bool) -> Self {
        Self {
            coverage: Coverage::of_whole(conditional),
            ..self
        }
    }
}

fn us(secs: i64) -> Option<i64> {
    Some((1_780_000_000 + secs) * 1_000_000)
}

/// Signs of a document whose newest entry is of this second after the deletion.
fn newest(secs: i64) -> DocumentSigns {
    DocumentSigns {
        newest_entry_us: us(secs),
        ..DocumentSigns::default()
    }
    .whole(false)
}

#[test]
fn a_page_that_was_gone_outweighs_a_document_that_need_not_be_newer() {
    let at_once = |reason, signs| !Feed::default().shows(HOUR, reason, signs);
    assert!(!at_once(Reason::Gone, newest(-1)));
    assert!(at_once(Reason::Gone, newest(1)), "it was made since");
    assert!(
        at_once(Reason::AbsentBracketed, newest(-1)),
        "what documents took away they give back"
    );
    let asked = DocumentSigns {
        asks_pages: true,
        ..newest(-1)
    };
    assert!(
        !at_once(Reason::AbsentBracketed, asked),
        "its page was not there"
    );
    assert!(at_once(Reason::Explicit, asked));
    let part = DocumentSigns {
        coverage: Coverage::Partial,
        ..newest(-1)
    };
    assert!(at_once(Reason::Gone, part), "archives are old");
}

#[test]
fn a_document_with_older_dates_or_an_older_set_is_an_old_copy() {
    let dated = |own: DocumentDates| {
        let mut feed = Feed::default();
        let dates = DocumentDates {
            made_us: us(100),
            modified_us: us(100),
            updated_us: us(100),
        };
        let check = feed.revivals.check(
            &feed.recurrence,
            DocumentSigns { dates, ..newest(0) },
            ENDED.plus_secs(200),
        );
        feed.revivals = check.after(&HashSet::new());
        let signs = DocumentSigns {
            dates: own,
            ..newest(1)
        };
        feed.shows(HOUR, Reason::AbsentBracketed, signs)
    };
    let none = DocumentDates::default();
    assert!(!dated(none));
    for secs in [99, 100] {
        let made = DocumentDates {
            made_us: us(secs),
            ..none
        };
        let modified = DocumentDates {
            modified_us: us(secs),
            ..none
        };
        let updated = DocumentDates {
            updated_us: us(secs),
            ..none
        };
        for own in [made, modified, updated] {
            assert_eq!(dated(own), secs < 100);
        }
    }
    let lacks = |secs: u64| DocumentSigns {
        lacks_of: Some(Stamp::from_secs(1_780_000_000 + secs)),
        ..newest(1)
    };
    assert!(Feed::default().shows(HOUR, Reason::AbsentBracketed, lacks(1)));
    assert!(!Feed::default().shows(HOUR, Reason::AbsentBracketed, lacks(0)));
}

#[test]
fn a_date_that_is_still_to_come_makes_no_later_document_old() {
    let mut feed = Feed::default();
    let dates = DocumentDates {
        updated_us: us(1_000_000),
        ..DocumentDates::default()
    };
    feed.shows(
        1,
        Reason::AbsentBracketed,
        DocumentSigns { dates, ..newest(0) },
    );
    let dates = DocumentDates {
        updated_us: us(2),
        ..DocumentDates::default()
    };
    let signs = DocumentSigns { dates, ..newest(0) };
    assert!(!feed.shows(3, Reason::AbsentBracketed, signs));
}

#[test]
fn an_unconditional_answer_an_hour_later_agrees() {
    let mut feed = Feed::default();
    let old = newest(-1);
    assert!(feed.shows(HOUR, Reason::Gone, old));
    let agrees_at = feed
        .revivals
        .agrees_at(&feed.recurrence, ENDED.plus_secs(HOUR));
    assert_eq!(agrees_at, Some(ENDED.plus_secs(2 * HOUR)));
    assert!(feed.shows(2 * HOUR - 1, Reason::Gone, old), "too early");
    assert!(
        feed.shows(3 * HOUR, Reason::Gone, old.whole(true)),
        "a conditional one proves nothing"
    );
    assert!(!feed.shows(3 * HOUR, Reason::Gone, old));
    assert!(feed.revivals.waiting.is_empty());
}

#[test]
fn what_is_lacked_again_begins_anew_and_waits_longer_each_time() {
    let mut feed = Feed::default();
    let mut now = HOUR;
    for hours in [1, 4, 16, 64, 168, 168] {
        assert!(feed.shows(now, Reason::Gone, newest(-1)));
        let agrees_at = feed
            .revivals
            .agrees_at(&feed.recurrence, ENDED.plus_secs(now));
        assert_eq!(agrees_at, Some(ENDED.plus_secs(now + hours * HOUR)));
        feed.lacks(now + 60);
        now += HOUR;
    }
    assert!(feed.shows(now + 31 * DAY, Reason::Gone, newest(-1)));
    let agrees_at = feed
        .revivals
        .agrees_at(&feed.recurrence, ENDED.plus_secs(now + 31 * DAY));
    assert_eq!(agrees_at, Some(ENDED.plus_secs(now + 31 * DAY + HOUR)));
}

#[test]
fn where_missing_items_come_back_a_day_must_agree() {
    let mut feed = Feed::default();
    feed.recurrence.seen.push_back(ENDED);
    assert!(feed.shows(HOUR, Reason::Gone, newest(-1)));
    assert!(feed.shows(24 * HOUR, Reason::Gone, newest(-1)));
    assert!(!feed.shows(25 * HOUR, Reason::Gone, newest(-1)));
}

#[test]
fn the_page_of_what_is_shown_again_is_asked_once_and_refutes_an_old_copy() {
    let mut feed = Feed::default();
    let ask = |feed: &Feed, secs: u64, reason| {
        let now = ENDED.plus_secs(secs);
        let mut check = feed.revivals.check(&feed.recurrence, newest(-1), now);
        check.waits(&deleted(reason));
        check.to_ask().to_vec()
    };
    assert_eq!(ask(&feed, HOUR, Reason::Gone), [ID]);
    assert_eq!(ask(&feed, HOUR, Reason::Explicit), [], "it lives at once");
    assert!(feed.shows(HOUR, Reason::Gone, newest(-1)));
    assert_eq!(ask(&feed, 2 * HOUR, Reason::Gone), [], "it waits");
    feed.revivals.refute(ItemId([2; 10]), ENDED.plus_secs(HOUR));
    assert_eq!(feed.revivals.refuted, 0, "another does not wait");
    feed.revivals.refute(ID, ENDED.plus_secs(HOUR));
    let agrees_at = feed
        .revivals
        .agrees_at(&feed.recurrence, ENDED.plus_secs(HOUR));
    assert_eq!(agrees_at, Some(ENDED.plus_secs(5 * HOUR)));
    feed.lacks(2 * HOUR);
    assert_eq!(
        ask(&feed, 3 * HOUR, Reason::Gone),
        [],
        "documents are old here"
    );
}
