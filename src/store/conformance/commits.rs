//! Effects of a commit: T, revisions, tombstones, keys, the head, and a clock that cannot be right;
//! not how pages read.

use super::rig::{
    NAMESPACE, Rig, START, add, commit, delete, edit, guid, id, ids, ids_of, key, published, put,
    revive, title,
};
use crate::{
    clock::Clock as _,
    feed::{
        absence::{AbsenceState, Coverage, ProofPolicy, ShownItem, WindowEvent},
        item::{Content, ItemDigests, ItemId, KeyHash, Reason},
        keep_limits::KeepLimits,
        legacy_document::{LegacyDocument, LegacySyntax},
        observation_record::{OBSERVATIONS_MAX, ObservationCounts, ObservationRecord},
        order::Order,
        reconcile::{
            Agreement, Change, Correction, DeferredEdit, Delete, EntryPart, MovedStretch,
            MovingEntry, PartMoves, Put, PutKind, RestlessPart, WINDOW_ENTRIES_MAX, WindowEntry,
            WindowState,
        },
        record::{FeedNo, GAPS_MAX, Gap, IdRule},
        stamp::Stamp,
    },
    store::{Receipt, StoreError, feeds::WITNESSED_MAX},
};
use everfeed_adapters::{Date, Digest, Metadata, Rhythm, Text};
use std::{sync::Arc, time::Duration};

const DAY_US: u64 = 24 * 60 * 60 * 1_000_000;
const DAY: Duration = Duration::from_micros(DAY_US);

on_every_store![
    every_change_gets_the_next_t_whatever_the_clock_does,
    nothing_changes_under_a_clock_that_jumped_ahead_until_it_is_accepted,
    nothing_changes_under_a_clock_from_before_this_was_built,
    an_item_that_is_forgotten_leaves_a_tombstone_and_nothing_else,
    no_document_that_is_kept_shows_what_was_forgotten,
    a_commit_on_a_stale_revision_is_a_conflict_and_leaves_no_trace,
    an_edit_moves_an_item_in_modified_and_not_in_created,
    a_tombstone_keeps_its_dates_loses_its_content_and_moves_to_the_end,
    a_tombstone_comes_back_to_life_under_the_same_id,
    an_item_may_change_twice_in_one_commit,
    every_deletion_keeps_its_evidence,
    a_change_that_does_not_fit_its_item_is_refused_whole,
    the_record_says_when_the_page_of_a_missed_item_is_due,
    window_and_items_are_known_at_one_revision,
    a_key_stays_with_the_item_that_had_it_first,
    an_item_is_found_by_its_witnesses,
    the_head_has_a_new_revision_only_when_something_rendered_changes,
    serving_begins_at_the_newest_item_of_the_commit_that_makes_the_feed_ready,
    an_edit_without_a_date_keeps_the_one_that_was_known,
    the_last_observations_are_kept_with_the_commits_that_they_came_with,
    a_window_that_begins_anew_leaves_a_marker_between_two_cursors,
    only_the_last_gaps_are_remembered,
    the_bytes_of_a_feed_are_counted_and_a_commit_that_would_pass_its_quota_is_not_made,
];

fn stamps(receipt: &Receipt) -> Vec<u64> {
    receipt.stamped.iter().map(|(_, t)| t.micros()).collect()
}

async fn every_change_gets_the_next_t_whatever_the_clock_does(rig: Rig) {
    // SF D-4, D-5.
    let feed = rig.blog().await;
    let start = START.micros();
    let first = rig
        .change(feed, vec![add(1), add(2), add(3)])
        .await
        .unwrap();
    assert_eq!(
        stamps(&first),
        [start, start + 1, start + 2],
        "one moment, three changes"
    );
    assert_eq!(
        first.stamped.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        ids_of(&[1, 2, 3])
    );
    let still = rig.change(feed, vec![edit(1, "x")]).await.unwrap();
    assert_eq!(stamps(&still), [start + 3], "the clock stands still");
    rig.clock.set(start - DAY_US);
    let back = rig.change(feed, vec![edit(2, "x")]).await.unwrap();
    assert_eq!(stamps(&back), [start + 4], "the clock went back");
    rig.clock.set(start + DAY_US);
    let on = rig.change(feed, vec![edit(3, "x")]).await.unwrap();
    assert_eq!(stamps(&on), [start + DAY_US], "the clock went on");
    assert_eq!(on.feed.last_t.micros(), start + DAY_US);
    let empty = rig.change(feed, vec![]).await.unwrap();
    assert_eq!(
        (empty.feed.last_t, empty.feed.rev),
        (on.feed.last_t, on.feed.rev + 1),
        "no change, no T"
    );
}

async fn nothing_changes_under_a_clock_that_jumped_ahead_until_it_is_accepted(rig: Rig) {
    let feed = rig.blog().await;
    rig.change(feed, vec![add(1)]).await.unwrap();
    rig.clock.advance(400 * DAY);
    rig.change(feed, vec![add(2)]).await.unwrap();
    rig.clock.advance(401 * DAY);
    let rig = rig.reopen();
    rig.save_polls(vec![], vec![]).await.unwrap();
    rig.register("other", "other").await.unwrap();
    match rig.change(feed, vec![add(3)]).await {
        Err(StoreError::Clock { now, recorded }) => {
            assert_eq!(
                (&*now, &*recorded),
                ("2028-08-10T00:00:00Z", "2027-07-06T00:00:00Z")
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(rig.feed(feed).await.unwrap().items.total, 2);
    assert!(matches!(rig.check().await, Err(StoreError::Clock { .. })));
    rig.accept_clock().await.unwrap();
    rig.check().await.unwrap();
    let rig = rig.reopen();
    let receipt = rig.change(feed, vec![add(3)]).await.unwrap();
    assert_eq!(stamps(&receipt), [rig.clock.now_us()]);
}

async fn nothing_changes_under_a_clock_from_before_this_was_built(rig: Rig) {
    let feed = rig.blog().await;
    rig.clock.set(1_000_000_000_000_000);
    assert!(matches!(
        rig.change(feed, vec![add(1)]).await,
        Err(StoreError::Clock { .. })
    ));
    rig.accept_clock().await.unwrap();
    let receipt = rig.change(feed, vec![add(1)]).await.unwrap();
    assert_eq!(stamps(&receipt), [1_000_000_000_000_000]);
}

async fn a_commit_on_a_stale_revision_is_a_conflict_and_leaves_no_trace(rig: Rig) {
    let feed = rig.blog().await;
    let before = rig.feed(feed).await.unwrap();
    let after = rig.change(feed, vec![add(1)]).await.unwrap().feed;
    assert_eq!(after.rev, before.rev + 1);
    let stale = rig.commit(commit(&before, vec![add(2)])).await;
    assert!(
        matches!(stale, Err(StoreError::Conflict { found }) if found == after.rev),
        "{stale:?}"
    );
    assert_eq!(rig.feed(feed).await.unwrap(), after);
    assert_eq!(
        ids(&rig.list(feed, Order::MODIFIED, None).await),
        ids_of(&[1])
    );
    // Both decided on one revision: one of them wins, and the other is told.
    let (one, two) = futures_util::join!(
        rig.commit(commit(&after, vec![add(2)])),
        rig.commit(commit(&after, vec![add(3)])),
    );
    let (won, lost) = if one.is_ok() { (one, two) } else { (two, one) };
    assert!(won.is_ok(), "{won:?}");
    assert!(matches!(lost, Err(StoreError::Conflict { .. })), "{lost:?}");
}

async fn an_edit_moves_an_item_in_modified_and_not_in_created(rig: Rig) {
    let feed = rig.blog().await;
    rig.change(feed, vec![add(1), add(2), add(3)])
        .await
        .unwrap();
    rig.change(feed, vec![edit(1, "second")]).await.unwrap();
    let rig = rig.reopen();
    for (order, expect) in [
        (Order::MODIFIED, [2, 3, 1]),
        (Order::MODIFIED_REVERSE, [1, 3, 2]),
        (Order::CREATED, [1, 2, 3]),
        (Order::CREATED_REVERSE, [3, 2, 1]),
    ] {
        assert_eq!(
            ids(&rig.list(feed, order, None).await),
            ids_of(&expect),
            "{order}"
        );
    }
    let item = rig.item(feed, id(1)).await.unwrap().unwrap();
    assert_eq!(
        (title(&item), item.created, item.modified.micros()),
        (Some("second"), START, START.micros() + 3)
    );
    assert_eq!(rig.item(feed, id(9)).await.unwrap(), None);
}

async fn a_tombstone_keeps_its_dates_loses_its_content_and_moves_to_the_end(rig: Rig) {
    // SF-12.
    let feed = rig.blog().await;
    rig.change(feed, vec![add(1), add(2)]).await.unwrap();
    let receipt = rig.change(feed, vec![delete(1)]).await.unwrap();
    assert_eq!((receipt.feed.items.total, receipt.feed.items.live), (2, 1));
    let item = rig.item(feed, id(1)).await.unwrap().unwrap();
    let gone = Content::Gone {
        reason: Reason::Explicit,
        first_missing: None,
        last_seen: Some(START),
    };
    assert_eq!(
        (&item.content, item.created, item.modified),
        (&gone, START, receipt.stamped[0].1)
    );
    assert_eq!(
        (item.published_us, &*item.iri),
        (Some(published(1)), &*guid(1))
    );
    assert_eq!(
        ids(&rig.list(feed, Order::MODIFIED, None).await),
        ids_of(&[2, 1])
    );
    assert_eq!(
        ids(&rig.list(feed, Order::CREATED, None).await),
        ids_of(&[1, 2])
    );
}

async fn an_item_that_is_forgotten_leaves_a_tombstone_and_nothing_else(rig: Rig) {
    let feed = rig.blog().await;
    rig.change(feed, vec![add(1), add(2), delete(2)])
        .await
        .unwrap();
    assert_eq!(rig.evidence(feed, id(2)).await.unwrap().len(), 1);
    let forget = |n: u32| match delete(n) {
        Change::Delete(delete) => Change::Delete(Delete {
            reason: Reason::Forgotten,
            ..delete
        }),
        Change::Put(_) => unreachable!("a deletion"),
    };
    let before = rig.feed(feed).await.unwrap().last_t;
    // One that lives, and one that is a tombstone already.
    let receipt = rig.change(feed, vec![forget(1), forget(2)]).await.unwrap();
    assert_eq!((receipt.feed.items.total, receipt.feed.items.live), (2, 0));
    for (n, (_, t)) in (1..=2).zip(receipt.stamped) {
        let item = rig.item(feed, id(n)).await.unwrap().unwrap();
        assert!(
            item.content.is_forgotten() && item.modified == t && t > before,
            "consumers are told: {item:?}"
        );
        assert!(
            item.iri.starts_with("urn:uuid:") && item.is_permalink().is_none(),
            "{item:?}"
        );
        assert_eq!(item.given_id(), item.iri);
        let traces = item.publisher_id.as_ref();
        let traces = traces.and_then(|left| left.witnesses.as_ref());
        assert_eq!(traces.is_some(), n == 1, "of the one that lived");
        assert_eq!(item.digests, ItemDigests::default());
        assert_eq!(rig.evidence(feed, id(n)).await.unwrap(), []);
    }
}

async fn no_document_that_is_kept_shows_what_was_forgotten(rig: Rig) {
    let feed = rig.blog().await;
    rig.change(feed, vec![add(1), add(2)]).await.unwrap();
    let document = |end: &str| {
        let item = |n: u32| {
            format!(
                "<item><guid>{}</guid><title>text {n}</title></item>",
                guid(n)
            )
        };
        let body = format!(
            "<rss version='2.0'><channel><title>t</title>{}{}</channel></rss>{end}",
            item(1),
            item(2)
        );
        Arc::new(LegacyDocument {
            digest: Digest::of(body.as_bytes()),
            body: body.into_bytes(),
            content_type: None,
            last_modified: None,
            syntax: LegacySyntax::Rss,
            fetched_at: START,
            etag: None,
        })
    };
    let shown = async || {
        let kept = rig.document(feed).await.unwrap().unwrap();
        let text = String::from_utf8(kept.body).unwrap();
        (
            text.contains("text 1"),
            text.contains("text 2"),
            kept.digest,
        )
    };
    rig.keep_document(feed, document("")).await.unwrap();
    assert_eq!(shown().await, (true, true, document("").digest));
    let Change::Delete(delete) = delete(1) else {
        unreachable!("a deletion")
    };
    rig.change(
        feed,
        vec![Change::Delete(Delete {
            reason: Reason::Forgotten,
            ..delete
        })],
    )
    .await
    .unwrap();
    assert_eq!(
        shown().await,
        (false, true, document("").digest),
        "polls know it by what came"
    );
    rig.keep_document(feed, document("<!-- later -->"))
        .await
        .unwrap();
    assert_eq!(
        shown().await,
        (false, true, document("<!-- later -->").digest)
    );
    let unreadable = LegacyDocument {
        body: b"<html>text 1".to_vec(),
        ..(*document("")).clone()
    };
    rig.keep_document(feed, Arc::new(unreadable)).await.unwrap();
    assert_eq!(
        shown().await,
        (false, true, document("<!-- later -->").digest),
        "the one before stays"
    );
}

async fn a_tombstone_comes_back_to_life_under_the_same_id(rig: Rig) {
    let feed = rig.blog().await;
    rig.change(feed, vec![add(1)]).await.unwrap();
    rig.change(feed, vec![delete(1)]).await.unwrap();
    let receipt = rig.change(feed, vec![revive(1)]).await.unwrap();
    let (t, feed_now) = (receipt.stamped[0].1, receipt.feed);
    assert_eq!((feed_now.items.total, feed_now.items.live), (1, 1));
    let item = rig.item(feed, id(1)).await.unwrap().unwrap();
    assert_eq!(
        (title(&item), item.created, item.revived, item.modified),
        (Some("again"), START, Some(t), t)
    );
    rig.change(feed, vec![edit(1, "later")]).await.unwrap();
    assert_eq!(
        rig.item(feed, id(1)).await.unwrap().unwrap().revived,
        Some(t),
        "an edit is no resurrection"
    );
}

async fn an_item_may_change_twice_in_one_commit(rig: Rig) {
    let feed = rig.blog().await;
    let receipt = rig
        .change(
            feed,
            vec![add(1), add(2), edit(1, "x"), delete(1), revive(1)],
        )
        .await
        .unwrap();
    assert_eq!(receipt.stamped.len(), 5);
    assert_eq!((receipt.feed.items.total, receipt.feed.items.live), (2, 2));
    let page = rig.list(feed, Order::MODIFIED, None).await;
    assert_eq!(ids(&page), ids_of(&[2, 1]));
    assert_eq!(
        (page.items[1].modified, page.items[1].created),
        (receipt.feed.last_t, START)
    );
    assert_eq!(rig.evidence(feed, id(1)).await.unwrap().len(), 1);
}

async fn every_deletion_keeps_its_evidence(rig: Rig) {
    let feed = rig.blog().await;
    rig.change(feed, vec![add(1), add(2)]).await.unwrap();
    let first = rig.change(feed, vec![delete(1)]).await.unwrap().stamped[0].1;
    rig.change(feed, vec![revive(1)]).await.unwrap();
    let second = rig
        .change(feed, vec![delete(1), delete(2)])
        .await
        .unwrap()
        .stamped[0]
        .1;
    let rig = rig.reopen();
    let evidence = rig.evidence(feed, id(1)).await.unwrap();
    assert_eq!(
        evidence.iter().map(|(t, _)| *t).collect::<Vec<_>>(),
        [first, second]
    );
    assert_eq!(evidence[0].1.when.as_deref(), Some("yesterday"));
    assert_eq!(rig.evidence(feed, id(3)).await.unwrap(), []);
}

async fn a_change_that_does_not_fit_its_item_is_refused_whole(rig: Rig) {
    let feed = rig.blog().await;
    let before = rig
        .change(feed, vec![add(1), add(2), delete(2)])
        .await
        .unwrap()
        .feed;
    for wrong in [
        add(1),
        add(2),
        edit(2, "x"),
        edit(3, "x"),
        revive(1),
        revive(3),
        delete(2),
        delete(3),
    ] {
        let refused = rig.change(feed, vec![add(4), wrong]).await;
        assert!(
            matches!(refused, Err(StoreError::Damaged(_))),
            "{refused:?}"
        );
        assert_eq!(rig.feed(feed).await.unwrap(), before);
        assert_eq!(rig.item(feed, id(4)).await.unwrap(), None);
    }
}

/// A form that waits.
fn held() -> Vec<DeferredEdit> {
    let Change::Put(Put {
        id,
        entry,
        published_us,
        digests: seen,
        ..
    }) = edit(1, "newest")
    else {
        unreachable!()
    };
    vec![DeferredEdit {
        id,
        key: key(1),
        until: START.plus_secs(1),
        entry,
        published_us,
        digests: seen,
        stretches: vec![MovedStretch {
            part: EntryPart::Title,
            start: 1,
            end: 2,
            given: Digest([2; 16]),
            since: START,
            sightings: 3,
            moves: 1,
            is_whole: true,
        }],
        shown_since: Some(START),
        shown_polls: 1,
    }]
}

/// The window after a document of two.
fn absence() -> AbsenceState {
    let place = |n| ShownItem {
        id: id(n),
        dated: Some(i64::from(n)),
        is_known: true,
        tombstone_count: 0,
        is_weak: false,
    };
    let policy = ProofPolicy::default();
    AbsenceState::default()
        .observe(
            &[place(2), place(1)],
            Coverage::Unconditional,
            &policy,
            START,
        )
        .state
}

/// The window when an item of the last document is missed, so that its page is due then.
pub(super) fn missing_one(now: Stamp) -> AbsenceState {
    let place = |n: u32| ShownItem {
        id: id(n),
        dated: Some(i64::from(n)),
        is_known: true,
        tombstone_count: 0,
        is_weak: false,
    };
    let policy = ProofPolicy {
        checks_permalinks: true,
        ..ProofPolicy::default()
    };
    let seen = [6, 5, 4, 3, 2, 1].map(place);
    let first = AbsenceState::default()
        .observe(&seen, Coverage::Unconditional, &policy, now)
        .state;
    let seen = [6, 5, 3, 2, 1].map(place);
    first
        .observe(&seen, Coverage::Unconditional, &policy, now)
        .state
}

async fn the_record_says_when_the_page_of_a_missed_item_is_due(rig: Rig) {
    let feed = rig.blog().await;
    let remembers = async |absence: AbsenceState| {
        let last = Some(WindowState {
            absence,
            ..WindowState::default()
        });
        let commit = crate::store::Commit {
            last,
            ..commit(&rig.feed(feed).await.unwrap(), vec![])
        };
        rig.commit(commit).await.unwrap().feed.window.next_check_at
    };
    assert_eq!(rig.feed(feed).await.unwrap().window.next_check_at, None);
    let due = START.plus_secs(60);
    assert_eq!(remembers(missing_one(due)).await, Some(due));
    let untouched = commit(&rig.feed(feed).await.unwrap(), vec![]);
    rig.commit(untouched).await.unwrap();
    assert_eq!(
        rig.reopen().feed(feed).await.unwrap().window.next_check_at,
        Some(due),
        "a commit that says nothing leaves it"
    );
}

async fn window_and_items_are_known_at_one_revision(rig: Rig) {
    let feed = rig.blog().await;
    let row = |n| WindowEntry {
        key: key(n),
        id: id(n),
        raw: Digest([1; 16]),
        dated: Some(-1),
        tombstone_count: 2,
        is_weak: true,
        changed_polls: 300,
        changing_since: Some(START),
    };
    let reformatted_at = Some(START);
    let last = |window: Vec<WindowEntry>| WindowState {
        entries: window,
        absence: absence(),
        deferred: held(),
        reformatted_at,
        archive_suspects: Vec::new(),
        tombstones: Vec::new(),
        corrections: vec![Correction {
            id: id(1),
            at: START,
            agreement: Agreement::Title,
        }],
        restless: vec![RestlessPart {
            part: EntryPart::Content,
            by_turns: true,
            since: START,
            moved_at: START,
            is_count: true,
        }],
        moving: vec![MovingEntry {
            id: id(2),
            moved_at: START,
            forms: vec![Digest([1; 16])],
            parts: vec![PartMoves {
                part: EntryPart::Links,
                count: 3,
                by_turns: false,
                is_count: true,
                has_fallen: true,
            }],
        }],
    };
    let mut first = commit(&rig.feed(feed).await.unwrap(), vec![add(1), add(2)]);
    first.last = Some(last(vec![row(2), row(1)]));
    first.id_rule = IdRule::IdAndLink;
    let rev = rig.commit(first).await.unwrap().feed.rev;
    let rig = rig.reopen();
    let known = rig.known(feed, vec![key(1), key(9), key(2)]).await.unwrap();
    assert_eq!(
        (known.rev, known.id_rule, known.window),
        (rev, IdRule::IdAndLink, last(vec![row(2), row(1)]))
    );
    assert_eq!(known.items.len(), 2);
    assert_eq!(
        known.items[&key(1)],
        rig.item(feed, id(1)).await.unwrap().unwrap()
    );
    rig.change(feed, vec![delete(1)]).await.unwrap();
    let known = rig.known(feed, vec![key(1)]).await.unwrap();
    assert_eq!(
        (known.rev, known.window),
        (rev + 1, last(vec![row(2), row(1)])),
        "no new window leaves the old one"
    );
    assert!(known.items[&key(1)].is_gone());
    let many = u32::try_from(WINDOW_ENTRIES_MAX).unwrap() + 1;
    let mut long = commit(&rig.feed(feed).await.unwrap(), vec![]);
    long.last = Some(last((0..many).map(row).collect()));
    rig.commit(long).await.unwrap();
    assert_eq!(
        rig.known(feed, vec![]).await.unwrap().window.entries.len(),
        WINDOW_ENTRIES_MAX
    );
}

async fn a_key_stays_with_the_item_that_had_it_first(rig: Rig) {
    let feed = rig.blog().await;
    let alias = KeyHash::of(NAMESPACE, "an alias");
    let with_alias = |change: Change| match change {
        Change::Put(mut put) => {
            put.keys.push(alias);
            Change::Put(put)
        }
        delete => delete,
    };
    rig.change(feed, vec![add(1), add(2)]).await.unwrap();
    rig.change(
        feed,
        vec![with_alias(edit(1, "x")), with_alias(edit(2, "x"))],
    )
    .await
    .unwrap();
    rig.change(feed, vec![with_alias(edit(2, "y"))])
        .await
        .unwrap();
    let known = rig.known(feed, vec![alias, key(1)]).await.unwrap();
    assert_eq!(known.items[&alias].id, id(1));
    assert_eq!(
        known.items[&key(1)].id,
        id(1),
        "an alias takes nothing away"
    );
}

async fn an_item_is_found_by_its_witnesses(rig: Rig) {
    let feed = rig.blog().await;
    let witness = |n: u32| KeyHash::of("test", &n.to_string());
    let with = |change: Change, witnesses: Vec<KeyHash>| match change {
        Change::Put(put) => Change::Put(Put { witnesses, ..put }),
        delete => delete,
    };
    rig.change(
        feed,
        vec![
            with(add(1), vec![witness(1), witness(2)]),
            with(add(2), vec![witness(2)]),
        ],
    )
    .await
    .unwrap();
    rig.change(feed, vec![with(edit(1, "x"), vec![witness(3), witness(2)])])
        .await
        .unwrap();
    let rig = rig.reopen();
    let found = async |witnesses: &[KeyHash]| -> Vec<ItemId> {
        let found = rig.witnessed(feed, witnesses.to_vec()).await.unwrap();
        assert_eq!(found.rev, rig.feed(feed).await.unwrap().rev);
        found.items.iter().map(|item| item.id).collect()
    };
    assert_eq!(found(&[witness(1)]).await, [id(1)]);
    assert_eq!(
        found(&[witness(9), witness(2), witness(3)]).await,
        [id(1), id(2)],
        "each once"
    );
    assert_eq!(found(&[witness(9)]).await, []);
    // Of more than are kept of one witness the newest are found.
    let many = u32::try_from(WITNESSED_MAX).unwrap();
    let common = (10..=10 + many)
        .map(|n| with(add(n), vec![witness(7)]))
        .collect();
    rig.change(feed, common).await.unwrap();
    assert_eq!(
        found(&[witness(7)]).await,
        (11..=10 + many).map(id).collect::<Vec<_>>()
    );
    rig.forget(feed).await.unwrap();
    assert!(rig.witnessed(feed, vec![witness(1)]).await.is_err());
}

async fn the_head_has_a_new_revision_only_when_something_rendered_changes(rig: Rig) {
    let feed = rig.blog().await;
    let mut metadata = Metadata {
        title: Some(Text::plain("A blog")),
        ..Metadata::default()
    };
    let with = async |metadata: &Metadata| {
        let mut next = commit(&rig.feed(feed).await.unwrap(), vec![]);
        next.metadata = Some(Arc::new(metadata.clone()));
        rig.commit(next).await.unwrap().feed
    };
    let first = with(&metadata).await;
    metadata.updated = Some(Date {
        raw: "now".into(),
        at_us: Some(1),
    });
    metadata.published = Some(Date {
        raw: "then".into(),
        at_us: Some(0),
    });
    metadata.rhythm = Rhythm {
        ttl_mins: Some(60),
        ..Rhythm::default()
    };
    let churned = with(&metadata).await;
    assert_eq!(
        (churned.metadata_t, churned.rev),
        (first.metadata_t, first.rev + 1)
    );
    assert_eq!(
        *churned.metadata, metadata,
        "what is not shown is kept all the same"
    );
    metadata.title = Some(Text::plain("Another title"));
    let renamed = with(&metadata).await;
    assert!(renamed.metadata_t > first.metadata_t && first.metadata_t > Stamp::ZERO);
    let kept = rig.change(feed, vec![add(1)]).await.unwrap().feed;
    assert_eq!(
        (kept.metadata_t, &*kept.metadata),
        (renamed.metadata_t, &metadata),
        "no metadata leaves the old one"
    );
}

async fn serving_begins_at_the_newest_item_of_the_commit_that_makes_the_feed_ready(rig: Rig) {
    let feed = rig.blog().await;
    let mut staged = commit(&rig.feed(feed).await.unwrap(), vec![add(1), add(2)]);
    staged.ready = false;
    let record = rig.commit(staged).await.unwrap().feed;
    assert_eq!(
        (
            record.completeness.first_cursor.as_deref(),
            record.head().ready
        ),
        (None, false)
    );
    let ready = rig.change(feed, vec![]).await.unwrap().feed;
    let metadata = rig.list(feed, Order::MODIFIED, None).await.last_cursor;
    assert_eq!(ready.completeness.first_cursor.as_deref(), Some(&*metadata));
    let later = rig.change(feed, vec![add(3)]).await.unwrap().feed;
    assert_eq!(
        later.completeness.first_cursor, ready.completeness.first_cursor,
        "it stays"
    );

    let other = rig.register("other", NAMESPACE).await.unwrap().no;
    let both = rig.change(other, vec![add(1), add(2)]).await.unwrap().feed;
    assert_eq!(
        both.completeness.first_cursor,
        Some(rig.list(other, Order::MODIFIED, None).await.last_cursor)
    );
    let empty = rig.register("empty", "empty").await.unwrap().no;
    assert_eq!(
        rig.change(empty, vec![])
            .await
            .unwrap()
            .feed
            .completeness
            .first_cursor
            .as_deref(),
        Some("")
    );
}

async fn an_edit_without_a_date_keeps_the_one_that_was_known(rig: Rig) {
    let feed = rig.blog().await;
    rig.change(feed, vec![add(1)]).await.unwrap();
    let mut undated = put(PutKind::Edited, 1, "undated");
    if let Change::Put(put) = &mut undated {
        (put.published_us, put.iri) = (None, "urn:other".into());
    }
    rig.change(feed, vec![undated]).await.unwrap();
    let item = rig.item(feed, id(1)).await.unwrap().unwrap();
    assert_eq!(
        (item.published_us, &*item.iri),
        (Some(published(1)), &*guid(1))
    );
    assert_ne!(item.modified, Stamp::ZERO);
}

/// Commits what a document came to.
async fn observe(
    rig: &Rig,
    feed: FeedNo,
    changes: Vec<Change>,
    observed: ObservationRecord,
) -> Receipt {
    let commit = commit(&rig.feed(feed).await.unwrap(), changes);
    rig.commit(crate::store::Commit {
        observed: Some(observed),
        ..commit
    })
    .await
    .unwrap()
}

async fn the_last_observations_are_kept_with_the_commits_that_they_came_with(rig: Rig) {
    let feed = rig.blog().await;
    let other = rig.register("other", "other").await.unwrap().no;
    let observed = |entries| ObservationRecord {
        counts: ObservationCounts {
            entries,
            ..ObservationCounts::default()
        },
        remark: Some("odd".into()),
        ..ObservationRecord::default()
    };
    observe(&rig, other, vec![], observed(9)).await;
    observe(&rig, feed, vec![add(1)], observed(1)).await;
    rig.change(feed, vec![add(2)]).await.unwrap();
    let record = rig.feed(feed).await.unwrap();
    let stale = crate::store::Commit {
        basis: crate::store::CommitBasis {
            rev: 0,
            ..commit(&record, vec![]).basis
        },
        observed: Some(observed(7)),
        ..commit(&record, vec![])
    };
    rig.commit(stale).await.unwrap_err();
    assert_eq!(
        rig.observations(feed).await.unwrap(),
        [(1, observed(1))],
        "with a commit, or not at all"
    );
    for n in 2..=205 {
        observe(&rig, feed, vec![], observed(n)).await;
    }
    let rig = rig.reopen();
    let kept = rig.observations(feed).await.unwrap();
    assert_eq!(kept.len() as u64, OBSERVATIONS_MAX);
    assert_eq!(
        (&kept[0], kept.last()),
        (&(6, observed(6)), Some(&(205, observed(205))))
    );
    assert_eq!(
        rig.observations(other).await.unwrap(),
        [(1, observed(9))],
        "each feed its own"
    );
}

async fn a_window_that_begins_anew_leaves_a_marker_between_two_cursors(rig: Rig) {
    let feed = rig.blog().await;
    let seen = |event| ObservationRecord {
        at: START,
        events: vec![event],
        ..ObservationRecord::default()
    };
    rig.change(feed, vec![add(1), add(2)]).await.unwrap();
    let before = rig.list(feed, Order::MODIFIED, None).await.last_cursor;
    observe(
        &rig,
        feed,
        vec![edit(1, "x")],
        seen(WindowEvent::Quarantined),
    )
    .await;
    assert_eq!(
        rig.feed(feed).await.unwrap().completeness.gaps,
        [],
        "what is held may still come back"
    );
    let held = rig.list(feed, Order::MODIFIED, None).await.last_cursor;
    assert_ne!(held, before);
    let gapped = observe(&rig, feed, vec![add(3), add(4)], seen(WindowEvent::Gap))
        .await
        .feed;
    let Gap {
        at,
        event,
        before,
        after,
    } = &gapped.completeness.gaps[0];
    assert_eq!((*at, *event, before), (START, WindowEvent::Gap, &held));
    // What stands after the first cursor begins with the item of the second.
    let page = rig.list(feed, Order::MODIFIED, Some(before)).await;
    assert_eq!(ids(&page), ids_of(&[3, 4]));
    assert_eq!(
        ids(&rig.list(feed, Order::MODIFIED, Some(after)).await),
        ids_of(&[4])
    );
    let joined = observe(&rig, feed, vec![], seen(WindowEvent::QuarantineEnded))
        .await
        .feed;
    assert_eq!(
        joined.completeness.gaps.len(),
        1,
        "a window may begin anew with what was known before"
    );
    let again = observe(&rig, feed, vec![], seen(WindowEvent::Gap))
        .await
        .feed;
    assert_eq!(again.completeness.gaps.len(), 2);
    assert_eq!(
        again.completeness.gaps[1].before, again.completeness.gaps[1].after,
        "nothing new came"
    );
    let empty = rig.register("empty", "empty").await.unwrap().no;
    let first = observe(&rig, empty, vec![], seen(WindowEvent::Gap))
        .await
        .feed;
    assert_eq!(
        (
            &*first.completeness.gaps[0].before,
            &*first.completeness.gaps[0].after
        ),
        ("", "")
    );
}

async fn only_the_last_gaps_are_remembered(rig: Rig) {
    let feed = rig.blog().await;
    for n in 0..20 {
        let observed = ObservationRecord {
            at: START.plus_secs(n),
            events: vec![WindowEvent::Gap],
            ..ObservationRecord::default()
        };
        observe(&rig, feed, vec![], observed).await;
    }
    let gaps = rig.reopen().feed(feed).await.unwrap().completeness.gaps;
    assert_eq!((gaps.len(), gaps[0].at), (GAPS_MAX, START.plus_secs(4)));
}

async fn the_bytes_of_a_feed_are_counted_and_a_commit_that_would_pass_its_quota_is_not_made(
    rig: Rig,
) {
    let (feed, other) = (
        rig.blog().await,
        rig.register("other", "other").await.unwrap().no,
    );
    let held = async |feed| rig.feed(feed).await.unwrap().items.bytes.unwrap();
    let within = async |feed, quota_bytes, changes| {
        let commit = commit(&rig.feed(feed).await.unwrap(), changes);
        let limits = KeepLimits {
            quota_bytes: Some(quota_bytes),
            ..KeepLimits::default()
        };
        let basis = crate::store::CommitBasis {
            limits,
            ..commit.basis
        };
        rig.commit(crate::store::Commit { basis, ..commit }).await
    };
    assert_eq!(held(feed).await, 0);
    // More than the digests that a tombstone keeps of its words.
    let long = edit(1, &"words ".repeat(40));
    within(feed, u64::MAX, vec![add(1), long, add(2)])
        .await
        .unwrap();
    let two = held(feed).await;
    let refused = within(feed, two + 10, vec![add(3)]).await;
    let Err(StoreError::Quota {
        bytes, quota_bytes, ..
    }) = refused
    else {
        panic!("{refused:?}")
    };
    assert_eq!(quota_bytes, two + 10);
    assert_eq!(
        (
            held(feed).await,
            ids(&rig.list(feed, Order::MODIFIED, None).await)
        ),
        (two, ids_of(&[1, 2]))
    );
    within(other, two, vec![add(1)]).await.unwrap();
    // What takes something away is kept at any quota, and an item that changes twice counts once.
    within(feed, 1, vec![delete(1)]).await.unwrap();
    let less = held(feed).await;
    assert!(less < two, "{less} of {two}");
    within(
        feed,
        bytes,
        vec![edit(2, &"x".repeat(5_000)), edit(2, "first"), revive(1)],
    )
    .await
    .unwrap();
    let again = held(feed).await;
    within(feed, bytes + 50, vec![add(3)]).await.unwrap();
    let three = held(feed).await;
    assert_eq!(
        three - again,
        bytes - two,
        "as many as it would have been before"
    );
    within(feed, 1, vec![]).await.unwrap();
    let rig = rig.reopen();
    assert_eq!(rig.feed(feed).await.unwrap().items.bytes, Some(three));
}
