//! Every scenario of the vectors, over a listing in a vector, with groups that share a stamp.

use super::*;
use serde_json::Value;
use std::{cell::Cell, convert::Infallible};

/// Items in canonical ascending order; counts its look-ups.
struct Plain {
    items: Vec<(String, Stamp)>,
    lookups: Cell<usize>,
}

#[derive(Clone, Debug)]
struct Named(String);

impl ListingRow for Named {
    fn id(&self) -> String {
        self.0.clone()
    }

    fn weight_bytes(&self) -> usize {
        self.0.len()
    }
}

impl Plain {
    fn new(items: impl IntoIterator<Item = (String, Stamp)>) -> Self {
        Self {
            items: items.into_iter().collect(),
            lookups: Cell::new(0),
        }
    }

    fn placed(&self) -> impl Iterator<Item = (ListingPosition, &String)> {
        self.items.iter().enumerate().map(|(at, (id, t))| {
            let o = self.items[..at]
                .iter()
                .rev()
                .take_while(|(_, before)| before == t)
                .count();
            (
                ListingPosition {
                    t: (*t).into(),
                    o: u32::try_from(o).unwrap(),
                },
                id,
            )
        })
    }
}

impl Listing for Plain {
    type ListingRow = Named;
    type Error = Infallible;

    fn ids_at(&self, t: Moment) -> Result<Vec<String>, Infallible> {
        self.lookups.set(self.lookups.get() + 1);
        Ok(self
            .items
            .iter()
            .filter(|(_, at)| Moment::from(*at) == t)
            .map(|(id, _)| id.clone())
            .collect())
    }

    // The vectors' items were never edited.
    fn first_seen(&self) -> Result<Option<Moment>, Infallible> {
        Ok(self.items.first().map(|(_, t)| (*t).into()))
    }

    fn place_of(&self, id: &str) -> Result<Option<ListingPosition>, Infallible> {
        Ok(self
            .placed()
            .find(|(_, known)| *known == id)
            .map(|(place, _)| place))
    }

    fn rows<'a>(
        &'a self,
        range: Range,
        reverse: bool,
    ) -> Result<ListingRows<'a, Self>, Infallible> {
        use std::ops::RangeBounds;
        let mut rows: Vec<_> = self
            .placed()
            .filter(|(place, _)| range.contains(place))
            .map(|(place, id)| Ok((place, Named(id.clone()))))
            .collect();
        if reverse {
            rows.reverse();
        }
        Ok(Box::new(rows.into_iter()))
    }
}

fn listing(items: &Value) -> Plain {
    let pair = |pair: &Value| {
        (
            pair[0].as_str().unwrap().to_owned(),
            Stamp::parse(pair[1].as_str().unwrap()).unwrap(),
        )
    };
    Plain::new(items.as_array().unwrap().iter().map(pair))
}

fn position(case: &Value, name: &str) -> Option<Position> {
    case.get(name)
        .and_then(Value::as_str)
        .and_then(|raw| Position::parse(raw).unwrap())
}

#[test]
fn every_scenario_of_the_vectors_gives_the_expected_page() {
    // SF-18..SF-20, SF-25..SF-29, SF-120..SF-129, D-1..D-3, D-8, D-10.
    for scenario in testkit::data::section("scenarios") {
        let listing = listing(&scenario["items_now"]);
        for case in scenario["cases"].as_array().unwrap() {
            check_case(&listing, case, &format!("{} {case}", scenario["name"]));
        }
    }
}

fn check_case(listing: &Plain, case: &Value, name: &str) {
    let (since, until) = (position(case, "since"), position(case, "until"));
    let reverse = case["order"] == "desc";
    let order = Order {
        reverse,
        ..Order::CREATED
    };
    let max = case["max"].as_u64().unwrap() as usize;
    let ask = ListingQuery {
        order,
        since: since.as_ref(),
        until: until.as_ref(),
        max,
        bytes_max: usize::MAX,
    };
    listing.lookups.set(0);
    let page = select(listing, &ask).unwrap();
    let ids: Vec<_> = page.rows.iter().map(|row| row.0.as_str()).collect();
    let expect: Vec<_> = case["expect_ids"]
        .as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_str().unwrap())
        .collect();
    assert_eq!(ids, expect, "{name}");
    assert_eq!(
        page.last_cursor,
        case["expect_last_cursor"].as_str().unwrap(),
        "{name}"
    );
    assert_eq!(
        page.more,
        case["expect_has_more"].as_bool().unwrap(),
        "{name}"
    );
    let fell = |position: &Option<Position>, degraded: Option<Degraded>, name: &str| {
        let cursor = matches!(position, Some(Position::Cursor { .. }));
        (cursor && matches!(degraded, Some(Degraded::Time | Degraded::Moved)))
            .then(|| name.to_owned())
    };
    let fallback: Vec<_> = [
        fell(&since, page.since_degraded, "since"),
        fell(&until, page.until_degraded, "until"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let expect: Vec<_> = case["expect_fallback_to_time"]
        .as_array()
        .unwrap()
        .iter()
        .map(|x| x.as_str().unwrap())
        .collect();
    assert_eq!(fallback, expect, "{name}");
    assert!(
        listing.lookups.get() <= 3,
        "{name}: {} look-ups",
        listing.lookups.get()
    );
}

#[test]
fn every_cursor_of_the_vectors_is_made_and_held() {
    // SF-122..SF-126, D-7.
    for case in testkit::data::section("toc") {
        let ids: Vec<String> = match case.get("group") {
            Some(group) => group
                .as_array()
                .unwrap()
                .iter()
                .map(|id| id.as_str().unwrap().to_owned())
                .collect(),
            None => generated(&case["group_gen"]),
        };
        let t = Stamp::from_micros(case["T_us"].as_u64().unwrap());
        let o = case["O"].as_u64().unwrap() as usize;
        let toc = Toc::of(t, &ids[..=o]).unwrap();
        let text = case["cursor"].as_str().unwrap();
        assert_eq!(toc.to_string(), text, "{}", case["name"]);
        assert_eq!(Toc::parse(text), Some(toc), "{}", case["name"]);
        assert!(toc.holds(&ids), "{}", case["name"]);
        assert!(
            !toc.holds(&ids[..o]),
            "{}: a shorter group is a mismatch",
            case["name"]
        );
    }
}

fn generated(plan: &Value) -> Vec<String> {
    let (format, count) = (
        plan["format"].as_str().unwrap(),
        plan["count"].as_u64().unwrap(),
    );
    let repeat = plan.get("repeat").and_then(Value::as_u64).unwrap_or(1) as usize;
    let name = |n: u64| {
        format
            .replace("%04d", &format!("{n:04}"))
            .replace("%d", &n.to_string())
            .repeat(repeat)
    };
    (0..count).map(name).collect()
}

fn ten() -> Plain {
    Plain::new((1..=10).map(|n| (format!("i{n}"), Stamp::from_secs(n))))
}

fn page(order: Order, since: Option<&str>, until: Option<&str>, max: usize) -> Selection<Named> {
    let read = |raw: Option<&str>| raw.and_then(|raw| Position::parse(raw).unwrap());
    let (since, until) = (read(since), read(until));
    select(
        &ten(),
        &ListingQuery {
            order,
            since: since.as_ref(),
            until: until.as_ref(),
            max,
            bytes_max: usize::MAX,
        },
    )
    .unwrap()
}

#[test]
fn since_beyond_until_is_an_empty_page() {
    // SF-31.
    let page = page(Order::MODIFIED, Some("time:8"), Some("time:3"), 50);
    assert!(page.rows.is_empty() && !page.more);
    assert_eq!(
        page.last_cursor,
        Toc::of(Stamp::from_secs(7), ["i7"]).unwrap().to_string()
    );
}

#[test]
fn a_page_ends_at_the_byte_budget_but_never_empty() {
    let ask = ListingQuery {
        order: Order::MODIFIED,
        since: None,
        until: None,
        max: 50,
        bytes_max: 5,
    };
    let page = select(&ten(), &ask).unwrap();
    assert_eq!((page.rows.len(), page.more), (2, true));
    let page = select(
        &ten(),
        &ListingQuery {
            bytes_max: 0,
            ..ask
        },
    )
    .unwrap();
    assert_eq!((page.rows.len(), page.more), (1, true));
}

#[test]
fn id_positions_need_an_order_that_stands_still() {
    // SF-27.
    let ask = |order, position| {
        select(
            &ten(),
            &ListingQuery {
                order,
                since: Some(position),
                until: None,
                max: 3,
                bytes_max: 99,
            },
        )
    };
    let (known, unknown) = (Position::Id("i4".into()), Position::Id("x".into()));
    assert_eq!(ask(Order::CREATED, &known).unwrap().rows[0].0, "i5");
    assert_eq!(ask(Order::CREATED_REVERSE, &known).unwrap().rows[0].0, "i3");
    assert_eq!(
        ask(Order::MODIFIED, &known).unwrap_err(),
        Unanswerable::MovingOrder
    );
    assert_eq!(
        ask(Order::CREATED, &unknown).unwrap_err(),
        Unanswerable::UnknownId
    );
}

#[test]
fn an_empty_page_after_a_cursor_echoes_it_and_beyond_the_head_gives_the_head() {
    let l = Toc::of(Stamp::from_secs(10), ["i10"]).unwrap().to_string();
    assert_eq!(
        page(Order::MODIFIED, Some(&format!("cursor:{l}")), None, 50).last_cursor,
        l
    );
    let beyond = page(Order::MODIFIED, Some("cursor:11_0_5"), None, 50);
    assert_eq!(
        (beyond.last_cursor, beyond.since_degraded),
        (l.clone(), Some(Degraded::Time))
    );
    // A spelling of ours that is not canonical is not echoed.
    let odd = l.replace("_0_", "_00_");
    assert_eq!(
        page(Order::MODIFIED, Some(&format!("cursor:{odd}")), None, 50).last_cursor,
        l
    );
    assert_eq!(head(&ten()).unwrap(), l);
}

#[test]
fn an_unreadable_until_sets_no_bound() {
    let page = page(Order::MODIFIED, None, Some("cursor:8f4a1546"), 50);
    assert_eq!(
        (page.rows.len(), page.until_degraded),
        (10, Some(Degraded::Reset))
    );
    assert_eq!(
        self::page(Order::MODIFIED, None, Some("cursor:"), 50)
            .rows
            .len(),
        10
    );
}

#[test]
fn a_range_grows_unless_its_end_exists_or_is_past() {
    // D-11.
    let check = |order, since: Option<&str>, until: Option<&str>, expect| {
        let read = |raw: Option<&str>| raw.and_then(|raw| Position::parse(raw).unwrap());
        let (since, until) = (read(since), read(until));
        let ask = ListingQuery {
            order,
            since: since.as_ref(),
            until: until.as_ref(),
            max: 1,
            bytes_max: 1,
        };
        assert_eq!(
            ask.growth(Stamp::from_secs(100)),
            expect,
            "{order} {until:?}"
        );
    };
    check(Order::MODIFIED, Some("cursor:5_0_1"), None, Growth::Open);
    check(Order::MODIFIED, None, Some("time:99"), Growth::Never);
    check(
        Order::MODIFIED,
        None,
        Some("time:200"),
        Growth::Until(Stamp::from_micros(200_999_999)),
    );
    check(Order::MODIFIED, None, Some("cursor:5_0_1"), Growth::Never);
    check(Order::CREATED, None, Some("id:x"), Growth::Never);
    check(
        Order::MODIFIED,
        Some("time:300"),
        Some("time:200"),
        Growth::Never,
    );
    check(
        Order::MODIFIED,
        Some("cursor:201_0_1"),
        Some("time:200"),
        Growth::Never,
    );
    check(
        Order::MODIFIED,
        Some("time:200"),
        Some("time:200"),
        Growth::Until(Stamp::from_micros(200_999_999)),
    );
    check(
        Order::MODIFIED_REVERSE,
        Some("cursor:5_0_1"),
        None,
        Growth::Never,
    );
    check(Order::MODIFIED_REVERSE, None, None, Growth::Open);
}
