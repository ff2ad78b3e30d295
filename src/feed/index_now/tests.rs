//! Batches and pauses of `IndexNow`, played on the pure state.

use super::*;
use crate::item::{Content, ItemDigests, PublisherId, Reason};
use everfeed_adapters::{Entry, Link};
use std::sync::Arc;

const START: Stamp = Stamp::from_secs(1_800_000_000);
const FEED: FeedNo = FeedNo(1);
const OTHER: FeedNo = FeedNo(2);

fn root() -> Url {
    Url::parse("https://blog.example/").unwrap()
}

fn id(no: u32) -> ItemId {
    let mut id = [0; 10];
    id[..4].copy_from_slice(&no.to_be_bytes());
    ItemId(id)
}

/// A post that was first seen so many seconds after the start.
fn post(no: u32, at_secs: u64) -> Item {
    let at = START.plus_secs(at_secs);
    let link = Link {
        rel: "alternate".into(),
        href: format!("http://blog.example/{no}"),
        ..Link::default()
    };
    Item {
        id: id(no),
        iri: format!("tag:blog.example,2026:{no}"),
        modified: at,
        created: at,
        revived: None,
        published_us: None,
        content: Content::Live(Arc::new(Entry {
            links: vec![link],
            ..Entry::default()
        })),
        tombstone_count: 0,
        digests: ItemDigests::default(),
        publisher_id: None,
    }
}

fn edited(no: u32, at_secs: u64) -> Item {
    Item {
        created: START,
        ..post(no, at_secs)
    }
}

fn deleted(no: u32, at_secs: u64) -> Item {
    let before = edited(no, at_secs);
    Item {
        publisher_id: PublisherId::of_gone(&before, None),
        content: Content::Gone {
            reason: Reason::Gone,
            first_missing: None,
            last_seen: None,
        },
        ..before
    }
}

fn begun() -> IndexNow {
    let mut state = IndexNow::begin(Secret::new("k"), START);
    for feed in [FEED, OTHER] {
        state.take_up(&record(feed, START, START));
    }
    state
}

/// A feed whose newest item was this when serving began, and is that now.
fn record(feed: FeedNo, first_t: Stamp, last_t: Stamp) -> FeedRecord {
    let mut record = FeedRecord::new(feed, "blog", "blog");
    record.last_t = last_t;
    record.completeness.first_cursor = record.cursor(first_t, id(0));
    record
}

#[test]
fn a_feed_that_was_there_begins_at_its_end_and_a_new_one_behind_its_first_document_r_4() {
    let check = |first_secs: u64, expect_secs: u64| {
        let mut state = IndexNow::begin(Secret::new("k"), START.plus_secs(100));
        let [first_t, last_t] = [first_secs, 500].map(|secs| START.plus_secs(secs));
        state.take_up(&record(FEED, first_t, last_t));
        assert_eq!(state.cursor(FEED), Some(START.plus_secs(expect_secs)));
        state.take_up(&record(FEED, first_t, last_t.plus_secs(1)));
        assert_eq!(state.cursor(FEED), Some(START.plus_secs(expect_secs)));
    };
    check(99, 500);
    check(100, 100);
    check(300, 300);
}

/// A batch of the items of a feed behind its cursor, and of those whose pauses are over.
fn batch(state: &IndexNow, feed: FeedNo, items: &[Item], now_secs: u64) -> UrlBatch {
    let now = START.plus_secs(now_secs);
    let root = root();
    let mut batch = state.batch(now);
    let offered = |feed, item| OfferedItem {
        feed,
        item,
        root: &root,
        announces_deletions: true,
    };
    for page in state.due(now) {
        let item = items.iter().find(|item| item.id == page.item);
        batch.offer_due(page, item.map(|item| offered(page.feed, item)));
    }
    let cursor = state.cursor(feed).unwrap();
    for item in items.iter().filter(|item| item.modified > cursor) {
        if !batch.offer(offered(feed, item)) {
            break;
        }
    }
    batch
}

/// Sends what is due; the paths of it.
fn send(state: &mut IndexNow, feed: FeedNo, items: &[Item], now_secs: u64) -> Vec<String> {
    let now = START.plus_secs(now_secs);
    let batch = batch(state, feed, items, now_secs);
    if batch.urls.is_empty() {
        state.passed(&batch, now);
    } else {
        state.answered(&batch, EngineAnswer::Accepted, now);
    }
    let path = |url: &String| url.strip_prefix("https://blog.example").unwrap().to_owned();
    batch.urls.iter().map(path).collect()
}

#[test]
fn new_changed_and_deleted_posts_are_sent_once_r_4() {
    let mut state = begun();
    let items = [post(1, 5), edited(2, 6), deleted(3, 7)];
    assert_eq!(send(&mut state, FEED, &items, 10), ["/1", "/2", "/3"]);
    assert_eq!(send(&mut state, FEED, &items, 20), [""; 0]);
    assert_eq!(send(&mut state, FEED, &items, 9_000), [""; 0]);
    assert_eq!(state.accepted, 3);
}

#[test]
fn history_and_foreign_hosts_are_not_sent_r_1_r_4() {
    let mut state = begun();
    let old = Item {
        published_us: Some(START.micros().cast_signed() - 1),
        ..post(1, 5)
    };
    let foreign = |no, href: &str| {
        let link = Link {
            rel: "alternate".into(),
            href: href.into(),
            ..Link::default()
        };
        Item {
            content: Content::Live(Arc::new(Entry {
                links: vec![link],
                ..Entry::default()
            })),
            ..post(no, 6)
        }
    };
    let items = [
        post(9, 0),
        old,
        foreign(2, "https://other.example/2"),
        foreign(3, "ftp://blog.example/3"),
    ];
    assert_eq!(send(&mut state, FEED, &items, 10), [""; 0]);
    assert_eq!(state.cursor(FEED), Some(START.plus_secs(6)));
    let old_edited = Item {
        published_us: Some(1),
        ..edited(1, 11)
    };
    assert_eq!(send(&mut state, FEED, &[old_edited], 12), ["/1"]);
}

#[test]
fn a_url_pauses_for_ten_minutes_and_holds_up_no_other_r_4() {
    let mut state = begun();
    assert_eq!(send(&mut state, FEED, &[post(1, 5)], 10), ["/1"]);
    let items = [edited(1, 60), post(2, 61)];
    assert_eq!(send(&mut state, FEED, &items, 70), ["/2"]);
    assert_eq!(send(&mut state, FEED, &items, 609), [""; 0]);
    assert_eq!(send(&mut state, FEED, &items, 610), ["/1"]);
    assert_eq!(send(&mut state, FEED, &items, 9_000), [""; 0]);
    assert!(state.postponed.is_empty());
    // The same after it was forgotten in the meantime.
    assert_eq!(send(&mut state, FEED, &[edited(1, 9_001)], 9_002), ["/1"]);
    assert_eq!(send(&mut state, FEED, &[edited(1, 9_003)], 9_004), [""; 0]);
    assert_eq!(send(&mut state, FEED, &[], 9_700), [""; 0]);
    assert!(state.postponed.is_empty());
}

#[test]
fn another_feed_with_the_same_post_sends_nothing_until_it_is_edited_or_comes_back() {
    let mut state = begun();
    assert_eq!(send(&mut state, FEED, &[post(1, 5)], 10), ["/1"]);
    assert_eq!(send(&mut state, OTHER, &[post(1, 3_000)], 3_001), [""; 0]);
    assert_eq!(send(&mut state, OTHER, &[edited(1, 3_002)], 3_003), ["/1"]);
    assert_eq!(send(&mut state, FEED, &[deleted(1, 4_000)], 4_001), ["/1"]);
    let again = Item {
        id: id(7),
        ..post(1, 5_000)
    };
    assert_eq!(send(&mut state, FEED, &[again], 5_001), ["/1"]);
}

#[test]
fn deletions_of_a_feed_that_announces_none_are_not_sent() {
    let state = begun();
    let root = root();
    let item = deleted(1, 5);
    let mut batch = state.batch(START.plus_secs(10));
    assert!(batch.offer(OfferedItem {
        feed: FEED,
        item: &item,
        root: &root,
        announces_deletions: false,
    }));
    assert!(batch.urls.is_empty());
}

#[test]
fn batches_hold_ten_thousand_urls_and_the_rest_comes_next_r_1() {
    let mut state = begun();
    let items: Vec<Item> = (0..25_000)
        .map(|no| edited(no, 5 + u64::from(no)))
        .collect();
    let mut sent = Vec::new();
    for now in [30_000, 30_010, 30_020] {
        let urls = send(&mut state, FEED, &items, now);
        assert!(urls.len() <= BATCH_URLS_MAX);
        sent.extend(urls);
    }
    assert_eq!(sent.len(), 25_000);
    let each: HashSet<&String> = sent.iter().collect();
    assert_eq!(each.len(), 25_000, "no URL comes twice");
    assert_eq!(send(&mut state, FEED, &items, 30_030), [""; 0]);
    // What is remembered of them is bounded once their pauses are over.
    send(&mut state, FEED, &[edited(25_000, 31_000)], 31_001);
    assert!(state.pings.len() <= REMEMBERED_MAX + 1);
}

#[test]
fn more_urls_than_can_be_remembered_wait_for_the_pauses_of_others() {
    let mut state = begun();
    let items: Vec<Item> = (0..60_000)
        .map(|no| edited(no, 5 + u64::from(no)))
        .collect();
    let mut sent = Vec::new();
    for round in 0..7 {
        sent.extend(send(&mut state, FEED, &items, 70_000 + round * 10));
    }
    assert_eq!(sent.len(), PAUSED_MAX);
    sent.extend(send(&mut state, FEED, &items, 70_700));
    assert_eq!(sent.len(), 60_000);
}

#[test]
fn answers_move_the_cursor_or_wait_r_3() {
    let check = |answer: EngineAnswer, moves: bool, wait_secs: u64, kind| {
        let mut state = begun();
        let now = START.plus_secs(10);
        let batch = batch(&state, FEED, &[post(1, 5)], 10);
        state.answered(&batch, answer.clone(), now);
        let cursor = START.plus_secs(if moves { 5 } else { 0 });
        assert_eq!(state.cursor(FEED), Some(cursor), "{answer:?}");
        assert_eq!(state.pings.len(), usize::from(moves), "{answer:?}");
        assert_eq!(state.next_at.secs_since(now), wait_secs, "{answer:?}");
        assert_eq!(state.fault.map(|fault| fault.kind), kind, "{answer:?}");
    };
    let why = || "why".to_owned();
    let later = |retry_after_secs| EngineAnswer::Later {
        why: why(),
        retry_after_secs,
    };
    check(EngineAnswer::Accepted, true, 10, None);
    let refused = EngineAnswer::Refused { why: why() };
    check(refused, true, 10, Some(IndexNowFaultKind::Refused));
    let forbidden = EngineAnswer::Forbidden { why: why() };
    check(forbidden, false, 0, Some(IndexNowFaultKind::Forbidden));
    check(later(None), false, 60, Some(IndexNowFaultKind::Failing));
    check(
        later(Some(3_600)),
        false,
        3_600,
        Some(IndexNowFaultKind::Failing),
    );
    check(later(Some(0)), false, 10, Some(IndexNowFaultKind::Failing));
    check(
        later(Some(u64::MAX)),
        false,
        86_400,
        Some(IndexNowFaultKind::Failing),
    );
    let unread = EngineAnswer::KeyUnread { why: why() };
    check(unread, false, 60, Some(IndexNowFaultKind::KeyUnread));
}

#[test]
fn waits_double_up_to_six_hours_and_end_with_an_accepted_batch_r_3() {
    let mut state = begun();
    let mut now_secs = 10;
    let mut waits = Vec::new();
    for _ in 0..12 {
        let batch = batch(&state, FEED, &[post(1, 5)], now_secs);
        let now = START.plus_secs(now_secs);
        let answer = EngineAnswer::Later {
            why: "503".into(),
            retry_after_secs: None,
        };
        state.answered(&batch, answer, now);
        let wait_secs = state.next_at.secs_since(now);
        waits.push(wait_secs);
        now_secs += wait_secs;
    }
    let minutes: Vec<u64> = waits.iter().map(|secs| secs / 60).collect();
    assert_eq!(minutes, [1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360, 360]);
    assert_eq!(state.fault.as_ref().unwrap().since, START.plus_secs(10));
    assert_eq!(send(&mut state, FEED, &[post(1, 5)], now_secs), ["/1"]);
    assert_eq!((state.failures, &state.fault), (0, &None));
}

proptest::proptest! {
    /// Whatever changes when: no URL is sent twice within its pause, every change is sent at last,
    /// and nothing is sent without a change since it was sent before.
    #[test]
    fn every_change_is_sent_and_no_url_before_its_pause_is_over_r_4(
        steps in proptest::collection::vec((0_u32..6, 1_u64..900, 0_u8..4), 1..60)
    ) {
        let mut state = begun();
        let mut items: BTreeMap<u32, Item> = BTreeMap::new();
        let mut sent: HashMap<String, Vec<u64>> = HashMap::new();
        let mut changes: HashMap<u32, u64> = HashMap::new();
        let mut now = 10;
        let mut look = |state: &mut IndexNow, items: &BTreeMap<u32, Item>, now: u64| {
            let mut listed: Vec<Item> = items.values().cloned().collect();
            listed.sort_by_key(|item| item.modified);
            for url in send(state, FEED, &listed, now) {
                sent.entry(url).or_default().push(now);
            }
        };
        for (no, wait, kind) in steps {
            now += wait;
            let item = if kind == 0 { deleted(no, now) } else { edited(no, now) };
            items.insert(no, item);
            *changes.entry(no).or_default() += 1;
            look(&mut state, &items, now + 1);
        }
        for round in 1..4 {
            look(&mut state, &items, now + round * 601);
        }
        for (no, item) in &items {
            let times = &sent[&format!("/{no}")];
            let last = START.plus_secs(*times.last().unwrap());
            proptest::prop_assert!(last > item.modified, "the last change of {no} was sent");
            proptest::prop_assert!(times.len() as u64 <= changes[no]);
            for pair in times.windows(2) {
                proptest::prop_assert!(pair[1] - pair[0] >= URL_PAUSE_SECS, "{no}: {pair:?}");
            }
        }
    }
}
