//! Pages as a store reads them: positions, cursors, budgets and tombstones left out; the page
//! algorithm has its own tests.

use super::rig::{Rig, START, add, all, delete, edit, guid, id, ids, ids_of, published};
use crate::{
    feed::{
        filter::Filter,
        order::Order,
        page::{Degraded, Numbering, PageQuery},
        position::Position,
        reconcile::{Change, Put},
        record::FeedNo,
    },
    store::{StoreError, paging::SCAN_ROWS_MAX},
};

on_every_store![
    a_page_tells_the_state_of_the_feed_it_was_read_from,
    pages_go_on_from_their_last_cursor,
    an_item_is_a_position_by_our_id_and_by_the_publishers,
    an_id_position_needs_an_order_in_which_items_stay,
    a_cursor_that_does_not_hold_degrades_to_its_time,
    a_page_ends_at_its_byte_budget_but_holds_at_least_one_item,
    tombstones_are_left_out_of_live_pages_and_of_their_budget,
    a_scan_for_live_items_ends_and_can_be_taken_up_again,
    the_order_of_publication_runs_by_the_dates_of_the_publisher,
    old_letters_stand_before_1970_in_the_order_of_publication,
    items_have_numbers_in_the_orders_of_change_and_of_first_sight,
    feeds_do_not_see_each_other,
];

async fn a_page_tells_the_state_of_the_feed_it_was_read_from(rig: Rig) {
    let feed = rig.blog().await;
    let empty = rig.list(feed, Order::MODIFIED, None).await;
    assert_eq!(
        (
            empty.record.items.total,
            empty.record.is_ready(),
            empty.more,
            &*empty.last_cursor
        ),
        (0, false, false, "")
    );
    let record = rig
        .change(feed, vec![add(1), add(2), delete(1)])
        .await
        .unwrap()
        .feed;
    let page = rig.list(feed, Order::MODIFIED, None).await;
    assert_eq!(
        (
            page.record.items.total,
            page.record.head(),
            page.more,
            page.degraded
        ),
        (2, record.head(), false, None)
    );
}

async fn pages_go_on_from_their_last_cursor(rig: Rig) {
    let feed = rig.blog().await;
    rig.change(feed, (1..=5).map(add).collect()).await.unwrap();
    rig.change(feed, vec![edit(2, "x")]).await.unwrap();
    for (order, expect) in [
        (Order::MODIFIED, [1, 3, 4, 5, 2]),
        (Order::MODIFIED_REVERSE, [2, 5, 4, 3, 1]),
        (Order::CREATED, [1, 2, 3, 4, 5]),
        (Order::CREATED_REVERSE, [5, 4, 3, 2, 1]),
    ] {
        let first = rig
            .page(PageQuery {
                max: 2,
                ..all(feed, order)
            })
            .await
            .unwrap();
        assert_eq!(
            (ids(&first), first.more),
            (ids_of(&expect[..2]), true),
            "{order}"
        );
        let rest = rig.list(feed, order, Some(&first.last_cursor)).await;
        assert_eq!(
            (ids(&rest), rest.more, rest.degraded),
            (ids_of(&expect[2..]), false, None),
            "{order}"
        );
        let end = rig.list(feed, order, Some(&rest.last_cursor)).await;
        assert_eq!(
            (ids(&end), &end.last_cursor),
            (vec![], &rest.last_cursor),
            "{order}"
        );
    }
}

fn since_id(feed: FeedNo, order: Order, id: &str) -> PageQuery {
    PageQuery {
        since: Some(Position::Id(id.to_owned())),
        ..all(feed, order)
    }
}

async fn an_item_is_a_position_by_our_id_and_by_the_publishers(rig: Rig) {
    // SF-27.
    let feed = rig.blog().await;
    rig.change(feed, vec![add(1), add(2), add(3), edit(2, "x"), delete(1)])
        .await
        .unwrap();
    let https = guid(2).replace("http:", "https:");
    for name in [id(2).to_string(), guid(2), https] {
        let page = rig
            .page(since_id(feed, Order::CREATED, &name))
            .await
            .unwrap();
        assert_eq!(ids(&page), ids_of(&[3]), "{name}");
        let page = rig
            .page(since_id(feed, Order::CREATED_REVERSE, &name))
            .await
            .unwrap();
        assert_eq!(ids(&page), ids_of(&[1]), "{name}");
    }
    for name in [
        id(9).to_string(),
        guid(9),
        id(2).to_string().to_uppercase(),
        "x".into(),
    ] {
        let page = rig.page(since_id(feed, Order::CREATED, &name)).await;
        assert!(matches!(page, Err(StoreError::UnknownId)), "{name}");
    }
}

async fn items_have_numbers_in_the_orders_of_change_and_of_first_sight(rig: Rig) {
    // XMPP-22, XMPP-26.
    let feed = rig.blog().await;
    let from = |order, number| PageQuery {
        numbering: Numbering::From(number),
        max: 2,
        ..all(feed, order)
    };
    let empty = rig.page(from(Order::MODIFIED, 0)).await.unwrap();
    assert_eq!((ids(&empty), empty.index), (vec![], None));
    rig.change(feed, (1..=30).map(add).collect()).await.unwrap();
    for n in [3, 4, 5, 6, 7, 20, 3, 9] {
        rig.change(feed, vec![edit(n, &format!("{n}")), delete(n + 1)])
            .await
            .ok();
    }
    let axes = [
        Order::MODIFIED,
        Order::MODIFIED_REVERSE,
        Order::CREATED,
        Order::CREATED_REVERSE,
    ];
    for order in axes {
        let whole = rig.list(feed, order, None).await;
        let all = ids(&whole);
        for (at, id) in all.iter().enumerate() {
            let page = rig.page(from(order, at as u64)).await.unwrap();
            assert_eq!(ids(&page)[0], *id, "{order} {at}");
            assert_eq!(page.index, Some(at as u64));
            // The same by a cursor.
            let next = rig.list(feed, order, Some(&page.last_cursor)).await;
            let expect = at as u64 + 2;
            assert_eq!(next.index, Some(expect).filter(|it| *it < 30), "{order}");
        }
        for beyond in [30, 31, u64::MAX] {
            let page = rig.page(from(order, beyond)).await.unwrap();
            assert_eq!((ids(&page), page.index), (vec![], None), "{order}");
            assert_eq!(page.last_cursor, whole.last_cursor, "{order}");
        }
    }
    // What a filter shows has none, and what stands by the dates of its publisher.
    let filtered = PageQuery {
        filter: Filter::Live,
        ..from(Order::MODIFIED, 0)
    };
    for unnumbered in [filtered, from(Order::PUBLISHED, 0)] {
        let page = rig.page(unnumbered.clone()).await;
        assert!(matches!(page, Err(StoreError::Unnumbered)), "{page:?}");
        let told = PageQuery {
            numbering: Numbering::Told,
            ..unnumbered
        };
        assert_eq!(rig.page(told).await.unwrap().index, None);
    }
}

async fn an_id_position_needs_an_order_in_which_items_stay(rig: Rig) {
    let feed = rig.blog().await;
    rig.change(feed, vec![add(1)]).await.unwrap();
    let page = rig.page(since_id(feed, Order::MODIFIED, &guid(1))).await;
    assert!(matches!(page, Err(StoreError::MovingOrder)));
}

async fn a_cursor_that_does_not_hold_degrades_to_its_time(rig: Rig) {
    // D-8, SF-128.
    let feed = rig.blog().await;
    rig.change(feed, vec![add(1), add(2), add(3)])
        .await
        .unwrap();
    let held = rig
        .page(PageQuery {
            max: 2,
            ..all(feed, Order::MODIFIED)
        })
        .await
        .unwrap()
        .last_cursor;
    rig.change(feed, vec![edit(2, "x")]).await.unwrap();
    let moved = rig.list(feed, Order::MODIFIED, Some(&held)).await;
    assert_eq!(
        (ids(&moved), moved.degraded),
        (ids_of(&[3, 2]), Some(Degraded::Moved))
    );
    // The only item of a feed is edited, as that of a resource is.
    let single = rig.register("single", "single.example/").await.unwrap().no;
    rig.change(single, vec![add(1)]).await.unwrap();
    let held = rig
        .page(all(single, Order::MODIFIED))
        .await
        .unwrap()
        .last_cursor;
    rig.change(single, vec![edit(1, "x")]).await.unwrap();
    let moved = rig.list(single, Order::MODIFIED, Some(&held)).await;
    assert_eq!(
        (ids(&moved), moved.degraded),
        (ids_of(&[1]), Some(Degraded::Moved))
    );
    // Every item is edited, after a new one that now stands first.
    let several = rig
        .register("several", "several.example/")
        .await
        .unwrap()
        .no;
    rig.change(several, vec![add(1), add(2)]).await.unwrap();
    let held = rig
        .page(all(several, Order::MODIFIED))
        .await
        .unwrap()
        .last_cursor;
    rig.change(several, vec![add(3), edit(1, "x"), edit(2, "x")])
        .await
        .unwrap();
    let moved = rig.list(several, Order::MODIFIED, Some(&held)).await;
    assert_eq!(
        (ids(&moved), moved.degraded),
        (ids_of(&[3, 1, 2]), Some(Degraded::Moved))
    );
    // A T that the feed has not given out: its store was restored from an older copy.
    for order in [Order::MODIFIED, Order::CREATED, Order::MODIFIED_REVERSE] {
        let ahead = rig.list(feed, order, Some("1999999999_0_3678689003")).await;
        assert_eq!(ahead.degraded, Some(Degraded::Ahead), "{order}");
        // The whole feed follows, from its beginning in that order.
        let whole = rig.list(feed, order, None).await;
        assert_eq!(ids(&ahead), ids(&whole), "{order}");
    }
    let empty = rig.register("empty", "empty.example/").await.unwrap().no;
    let ahead = rig.list(empty, Order::MODIFIED, Some(&held)).await;
    assert_eq!(
        (ids(&ahead).len(), ahead.degraded),
        (0, Some(Degraded::Ahead))
    );
    // By date of publication every time may be some post's.
    let dated = rig
        .list(feed, Order::PUBLISHED, Some("1999999999_0_3678689003"))
        .await;
    assert_eq!(dated.degraded, Some(Degraded::Time));
    // A cursor of another feed, from before this one began.
    let foreign = rig
        .list(feed, Order::MODIFIED, Some("1389003527_0_3678689003"))
        .await;
    assert_eq!(
        (ids(&foreign).len(), foreign.degraded),
        (3, Some(Degraded::Time))
    );
    let forged = rig
        .list(feed, Order::CREATED, Some(&format!("{START}_0_1")))
        .await;
    assert_eq!(
        (ids(&forged).len(), forged.degraded),
        (3, Some(Degraded::Time))
    );
    let offset = rig
        .list(feed, Order::CREATED, Some(&format!("{START}_3_1")))
        .await;
    assert_eq!(
        (ids(&offset).len(), offset.degraded),
        (3, Some(Degraded::Time))
    );
    let garbage = rig.list(feed, Order::MODIFIED, Some("garbage")).await;
    assert_eq!(
        (ids(&garbage).len(), garbage.degraded),
        (3, Some(Degraded::Reset))
    );
}

async fn a_page_ends_at_its_byte_budget_but_holds_at_least_one_item(rig: Rig) {
    let feed = rig.blog().await;
    rig.change(
        feed,
        vec![add(1), edit(1, &"x".repeat(1000)), add(2), add(3)],
    )
    .await
    .unwrap();
    let page = async |bytes_max| {
        let page = rig
            .page(PageQuery {
                bytes_max,
                ..all(feed, Order::MODIFIED)
            })
            .await
            .unwrap();
        (page.items.len(), page.more)
    };
    assert_eq!(page(0).await, (1, true));
    assert_eq!(page(1000).await, (1, true));
    assert_eq!(page(1400).await, (2, true));
    assert_eq!(page(2000).await, (3, false));
}

async fn tombstones_are_left_out_of_live_pages_and_of_their_budget(rig: Rig) {
    let feed = rig.blog().await;
    rig.change(
        feed,
        (1..=6)
            .map(add)
            .chain([delete(2), delete(5), delete(6)])
            .collect(),
    )
    .await
    .unwrap();
    let query = PageQuery {
        filter: Filter::Live,
        max: 2,
        ..all(feed, Order::CREATED_REVERSE)
    };
    let first = rig.page(query.clone()).await.unwrap();
    assert_eq!(
        (ids(&first), first.more, first.record.items.total),
        (ids_of(&[4, 3]), true, 6)
    );
    let since = Some(Position::of_cursor(&first.last_cursor));
    let rest = rig.page(PageQuery { since, ..query }).await.unwrap();
    assert_eq!((ids(&rest), rest.more), (ids_of(&[1]), false));
    // An item has one cursor, whatever is left out.
    let whole = rig.list(feed, Order::MODIFIED, None).await.last_cursor;
    let since = Some(Position::of_cursor(&whole));
    let after = PageQuery {
        since,
        filter: Filter::Live,
        ..all(feed, Order::MODIFIED)
    };
    let after = rig.page(after).await.unwrap();
    assert_eq!((ids(&after), after.last_cursor), (vec![], whole));
    // Also where items share a place: 3, 4 and 5 have one date.
    let by_date = |max, until, filter| PageQuery {
        max,
        until,
        filter,
        ..all(feed, Order::PUBLISHED)
    };
    let fifth = rig.page(by_date(5, None, Filter::All)).await.unwrap();
    let sixth = rig.list(feed, Order::PUBLISHED, None).await.last_cursor;
    let until = Some(Position::of_cursor(&sixth));
    let live = rig.page(by_date(9, until, Filter::Live)).await.unwrap();
    assert_eq!(ids(&live), ids_of(&[1, 3, 4]));
    assert_eq!(live.scanned, Some(fifth.last_cursor));
}

async fn a_scan_for_live_items_ends_and_can_be_taken_up_again(rig: Rig) {
    let feed = rig.blog().await;
    let dead = u32::try_from(SCAN_ROWS_MAX).unwrap() + 5;
    rig.change(feed, (1..=dead).map(add).collect())
        .await
        .unwrap();
    rig.change(
        feed,
        (1..=dead).map(delete).chain([add(dead + 1)]).collect(),
    )
    .await
    .unwrap();
    let query = PageQuery {
        filter: Filter::Live,
        ..all(feed, Order::MODIFIED)
    };
    let cut = rig.page(query.clone()).await.unwrap();
    assert_eq!((cut.items.len(), cut.more, cut.degraded), (0, true, None));
    let since = Some(Position::of_cursor(&cut.last_cursor));
    let rest = rig.page(PageQuery { since, ..query }).await.unwrap();
    assert_eq!(
        (ids(&rest), rest.more, rest.degraded),
        (ids_of(&[dead + 1]), false, None)
    );
    // Exactly as many rows as may be scanned: nothing was cut.
    let until = Some(Position::of_cursor(&rest.last_cursor));
    let since = Some(Position::of_cursor(&cursor_at(&rig, feed, 5).await));
    let exact = rig
        .page(PageQuery {
            since,
            until,
            filter: Filter::Live,
            ..all(feed, Order::MODIFIED)
        })
        .await
        .unwrap();
    assert_eq!((exact.items.len(), exact.more), (0, false));
}

/// The cursor of the n-th item of the feed.
async fn cursor_at(rig: &Rig, feed: FeedNo, n: usize) -> String {
    rig.page(PageQuery {
        max: n,
        ..all(feed, Order::MODIFIED)
    })
    .await
    .unwrap()
    .last_cursor
}

async fn the_order_of_publication_runs_by_the_dates_of_the_publisher(rig: Rig) {
    let feed = rig.blog().await;
    // 6, 7 and 8 share a date, as do 3 and 5.
    rig.change(feed, [8, 3, 7, 5, 6].map(add).to_vec())
        .await
        .unwrap();
    rig.change(feed, vec![edit(3, "edited"), delete(7)])
        .await
        .unwrap();
    let listed = rig.list(feed, Order::PUBLISHED, None).await;
    assert_eq!(ids(&listed), ids_of(&[3, 5, 8, 7, 6]));
    assert_eq!(
        ids(&rig.list(feed, Order::PUBLISHED_REVERSE, None).await),
        ids_of(&[6, 7, 8, 5, 3])
    );
    for order in [Order::PUBLISHED, Order::PUBLISHED_REVERSE] {
        let whole = ids(&rig.list(feed, order, None).await);
        let mut since = None;
        for expect in whole {
            let one = rig
                .page(PageQuery {
                    since,
                    max: 1,
                    ..all(feed, order)
                })
                .await
                .unwrap();
            assert_eq!((ids(&one), one.degraded), (vec![expect], None), "{order}");
            since = Some(Position::of_cursor(&one.last_cursor));
        }
        let end = rig
            .page(PageQuery {
                since,
                ..all(feed, order)
            })
            .await
            .unwrap();
        assert_eq!((end.items.len(), end.more), (0, false));
    }
    // A date that was corrected moves the item.
    let Change::Put(put) = edit(8, "corrected") else {
        panic!()
    };
    rig.change(
        feed,
        vec![Change::Put(Put {
            published_us: Some(published(1)),
            ..put
        })],
    )
    .await
    .unwrap();
    assert_eq!(
        ids(&rig.list(feed, Order::PUBLISHED, None).await),
        ids_of(&[8, 3, 5, 7, 6])
    );
    let since = Some(Position::parse("time:2001-09-10").unwrap().unwrap());
    assert_eq!(
        ids(&rig
            .page(PageQuery {
                since,
                ..all(feed, Order::PUBLISHED)
            })
            .await
            .unwrap()),
        vec![]
    );
    assert!(matches!(
        rig.page(since_id(feed, Order::PUBLISHED, &guid(3))).await,
        Err(StoreError::MovingOrder)
    ));
}

async fn old_letters_stand_before_1970_in_the_order_of_publication(rig: Rig) {
    let feed = rig.blog().await;
    let dated = |n: u32, date: &str| {
        let Change::Put(put) = add(n) else { panic!() };
        Change::Put(Put {
            published_us: everfeed_adapters::text::date::parse(date),
            ..put
        })
    };
    let dates = [
        "1955-04-11T12:00:00.5Z",
        "1971-01-01",
        "1660-01-01",
        "1955-04-11T12:00:00.5Z",
        "1969-01-01",
        "2020-01-01",
    ];
    rig.change(
        feed,
        (1..).zip(dates).map(|(n, date)| dated(n, date)).collect(),
    )
    .await
    .unwrap();
    let expect = ids_of(&[3, 1, 4, 5, 2, 6]);
    assert_eq!(ids(&rig.list(feed, Order::PUBLISHED, None).await), expect);
    for order in [Order::PUBLISHED, Order::PUBLISHED_REVERSE] {
        let mut expect = expect.clone();
        if order.reverse {
            expect.reverse();
        }
        let (mut since, mut found) = (None, Vec::new());
        loop {
            let one = rig
                .page(PageQuery {
                    since,
                    max: 1,
                    ..all(feed, order)
                })
                .await
                .unwrap();
            assert_eq!(one.degraded, None, "{order}");
            since = Some(
                Position::parse(&format!("cursor:{}", one.last_cursor))
                    .unwrap()
                    .unwrap(),
            );
            found.extend(ids(&one));
            if !one.more {
                break;
            }
        }
        assert_eq!(found, expect, "{order}");
    }
    let range = async |since: &str, until: &str| {
        let position = |raw: &str| Position::parse(raw).unwrap();
        let (since, until) = (position(since), position(until));
        ids(&rig
            .page(PageQuery {
                since,
                until,
                ..all(feed, Order::PUBLISHED)
            })
            .await
            .unwrap())
    };
    assert_eq!(range("time:1955-04-12", "").await, ids_of(&[5, 2, 6]));
    assert_eq!(
        range("time:1955-04-11", "time:1969-01-01").await,
        ids_of(&[1, 4, 5])
    );
    assert_eq!(range("", "time:1900-01-01").await, ids_of(&[3]));
    // Nothing else is so old, and no range is too.
    for order in [Order::MODIFIED, Order::CREATED, Order::MODIFIED_REVERSE] {
        for (since, until) in [
            ("time:1955-01-01", "time:1956-01-01"),
            ("time:1956-01-01", "time:1955-01-01"),
        ] {
            let position = |raw: &str| Position::parse(raw).unwrap();
            let (since, until) = (position(since), position(until));
            let page = rig
                .page(PageQuery {
                    since,
                    until,
                    ..all(feed, order)
                })
                .await
                .unwrap();
            assert_eq!(page.items.len(), 0, "{order} {:?}", page.degraded);
        }
    }
    assert_eq!(range("time:1955-04-11", "").await.len(), 5);
    // A tombstone keeps its date.
    rig.change(feed, vec![delete(1), delete(4)]).await.unwrap();
    assert_eq!(ids(&rig.list(feed, Order::PUBLISHED, None).await), expect);
}

async fn feeds_do_not_see_each_other(rig: Rig) {
    let first = rig
        .register("first", super::rig::NAMESPACE)
        .await
        .unwrap()
        .no;
    let second = rig
        .register("second", super::rig::NAMESPACE)
        .await
        .unwrap()
        .no;
    let third = rig
        .register("third", super::rig::NAMESPACE)
        .await
        .unwrap()
        .no;
    rig.change(first, vec![add(1)]).await.unwrap();
    rig.change(second, vec![add(2)]).await.unwrap();
    rig.change(third, vec![add(3)]).await.unwrap();
    for order in Order::ALL {
        assert_eq!(
            ids(&rig.list(second, order, None).await),
            ids_of(&[2]),
            "{order}"
        );
    }
    assert_eq!(rig.item(second, id(1)).await.unwrap(), None);
    assert!(matches!(
        rig.page(since_id(second, Order::CREATED, &guid(1))).await,
        Err(StoreError::UnknownId)
    ));
}
