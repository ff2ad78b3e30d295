//! The operator's pages, made of the status: the same words as `everfeed status` prints.

use super::{
    moments::relative,
    status::{FeedStatus, Status},
    told::{Told, fault, when},
};
use crate::{
    readership::ReaderFigures,
    render::overview::{self, FeedSheet, OrderLink, OverviewFeed},
    serve::{
        feeds::list_range::{FeedRange, FeedSort, FeedSortKey},
        reader_sheets::reader_sheet,
    },
};
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, HashSet};

/// Causes for which feeds fail and that are told at the top of the overview at most.
const CAUSES_TOLD_MAX: usize = 50;

/// The range whose status has the causes for which feeds fail, for the top of the overview.
pub(super) fn failing_range() -> FeedRange {
    FeedRange {
        failing_only: true,
        max: Some(1),
        ..FeedRange::default()
    }
}

/// The page about everything, for the feeds of a range. `failing` is the status of
/// [`failing_range`].
pub(super) fn page(
    status: &Status,
    failing: &Status,
    range: &FeedRange,
    now: DateTime<Utc>,
) -> Vec<u8> {
    let mut failing = failing.clone();
    failing.causes.truncate(CAUSES_TOLD_MAX);
    let told = Told::of(std::slice::from_ref(&failing), now);
    let of_page = Told::of(std::slice::from_ref(status), now);
    let since = when(Some(&status.started_at), now).unwrap_or_default();
    let line = |line: &String| relative(line, now);
    let next = status.next.as_deref().and_then(|next| next.split_once('?'));
    let page = overview::Overview {
        head: format!(
            "everfeed {}, started {since}; held requests: {}",
            status.version, status.waiters
        ),
        broken: by_owner(&failing, &told, now),
        notes: of_page.notes.iter().map(line).collect(),
        words: range.words.clone(),
        is_failing_only: range.failing_only,
        orders: FeedSortKey::ALL
            .into_iter()
            .map(|key| order_link(range, key))
            .collect(),
        total: status.feeds_total,
        failing: status.failing.values().sum(),
        feeds: status.feeds.iter().map(|feed| row(feed, now)).collect(),
        next: next.map(|(_, query)| query.to_owned()),
    };
    overview::overview(&page)
}

/// The page about one feed.
pub(super) fn feed_page(
    feed: &FeedStatus,
    readers: Option<&ReaderFigures>,
    now: DateTime<Utc>,
) -> Vec<u8> {
    let status = Status {
        feeds: vec![feed.clone()],
        ..Status::default()
    };
    let prefix = format!("{}: ", feed.name);
    let line = |line: &String| {
        let line = line.strip_prefix(&prefix).unwrap_or(line);
        relative(line, now)
    };
    let notes = Told::of(&[status], now).notes;
    let moment = |at: &Option<String>, none: &str| {
        let at = at.as_ref().map(|at| relative(at, now));
        at.unwrap_or_else(|| none.to_owned())
    };
    let fault = feed.fault.as_ref().map(|found| fault(found, "", now));
    let row = row(feed, now);
    let mut facts = vec![("State", row.state), ("Polled at", feed.url.clone())];
    let mut add = |name, value: Option<String>| {
        facts.extend(value.map(|value| (name, value)));
    };
    add("Known to readers as", feed.old_url.clone());
    add(
        "Members",
        feed.members.as_ref().map(|names| names.join(", ")),
    );
    if feed.members.is_none() {
        add("Last poll", Some(moment(&feed.last_poll_at, "never")));
        add(
            "Last good answer",
            Some(moment(&feed.last_good_at, "never")),
        );
        add(
            "Next poll",
            Some(moment(&feed.next_poll_at, feed.unplanned_poll())),
        );
        add("Platform", feed.platform.clone());
        add("History", Some(feed.history.clone()));
    }
    add("Live items", Some(row.items));
    add(
        "Bytes of its items",
        feed.item_bytes.map(|bytes| bytes.to_string()),
    );
    add("Suspects", Some(feed.suspects.to_string()));
    add("Subscribers", Some(row.subscribers));
    add("Held requests", Some(feed.waiters.to_string()));
    for gap in &feed.gaps {
        let at = relative(&gap.at, now);
        add(
            "Items may be missing",
            Some(format!("{}, found {at}", gap.why)),
        );
    }
    for failing in &feed.subscribers.failures {
        let next = relative(&failing.next_try_at, now);
        let told = format!("{}: {}; next try {next}", failing.host, failing.error);
        add("Pushes not taken", Some(told));
    }
    overview::feed(&FeedSheet {
        name: feed.name.clone(),
        fault: fault.unwrap_or_default(),
        facts,
        notes: notes.iter().map(line).collect(),
        readers: readers.map(reader_sheet),
    })
}

/// Sentences about what is broken, below the owner of each fault.
fn by_owner(status: &Status, told: &Told, now: DateTime<Utc>) -> Vec<(String, Vec<String>)> {
    const OTHERS: &str = "not a publisher's";
    let mut owners: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in &told.broken {
        let owner = line.owner.as_deref().unwrap_or(OTHERS);
        let owner = format!("The fault is {owner}");
        let text = relative(&line.text, now);
        owners.entry(owner).or_default().push(text);
    }
    let of_causes = status.causes.iter().flat_map(|cause| &cause.feeds);
    let failing_feeds = status.feeds.iter().filter(|feed| feed.fault.is_some());
    let told: HashSet<&str> = of_causes
        .chain(failing_feeds.map(|feed| &feed.name))
        .map(String::as_str)
        .collect();
    let failing: usize = status.failing.values().sum();
    let mut found: Vec<(String, Vec<String>)> = owners.into_iter().collect();
    if let Some(more) = failing.checked_sub(told.len()).filter(|more| *more > 0) {
        let more = format!("feeds that fail besides: {more}");
        found.push(("More".to_owned(), vec![more]));
    }
    found
}

/// The way to the feeds of a range in the order by a key, or in the reverse of the order in force.
fn order_link(range: &FeedRange, by: FeedSortKey) -> OrderLink {
    let is_in_force = range.sort.by == by;
    let sort = if is_in_force {
        range.sort.reversed()
    } else {
        FeedSort {
            by,
            is_reversed: false,
        }
    };
    // The page has its own length.
    let listed = FeedRange {
        max: None,
        ..range.sorted(sort)
    };
    OrderLink {
        words: match by {
            FeedSortKey::Name => "name",
            FeedSortKey::State => "state",
            FeedSortKey::LastGood => "last good",
            FeedSortKey::Items => "live items",
        },
        query: listed.query(),
        in_force: is_in_force.then(|| range.sort.to_string()),
        is_reversed: range.sort.is_reversed,
    }
}

fn row(feed: &FeedStatus, now: DateTime<Utc>) -> OverviewFeed {
    let is_group = feed.members.is_some();
    let of_upstream = |at: &Option<String>, none: &str| match when(at.as_deref(), now) {
        _ if is_group => "–".to_owned(),
        Some(when) => when,
        None => none.to_owned(),
    };
    let items = match (feed.live_items, feed.items) {
        (Some(live), Some(all)) => format!("{live} of {all}"),
        _ => "?".to_owned(),
    };
    OverviewFeed {
        name: feed.name.clone(),
        url: feed.url.clone(),
        state: feed.state().to_owned(),
        is_failing: feed.fault.is_some(),
        items,
        last_good: of_upstream(&feed.last_good_at, "never"),
        next_poll: of_upstream(&feed.next_poll_at, feed.unplanned_poll()),
        subscribers: feed.subscribers.active.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_search_is_kept_while_sorting_and_the_order_while_searching() {
        let range = FeedRange::of_operator("q=a+b&failing=&sort=items&after=x&at=3&max=100");
        let range = range.unwrap();
        let now = DateTime::<Utc>::default();
        let status = Status::default();
        let page = String::from_utf8(page(&status, &status, &range, now)).unwrap();
        for part in [
            "<a href=\"/overview?q=a+b&amp;failing=\">name</a>",
            "<a href=\"/overview?q=a+b&amp;failing=&amp;sort=state\">state</a>",
            "<a href=\"/overview?q=a+b&amp;failing=&amp;sort=-items\">live items ↓</a>",
            "name=\"sort\" value=\"items\"",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn feeds_of_one_cause_have_one_line_at_the_top() {
        let names: Vec<String> = (0..40).map(|no| format!("f{no:02}")).collect();
        let status: Status = serde_json::from_value(json!({
            "feeds_total": 50, "failing": { "upstream": 42 },
            "causes": [{ "title": "40 feeds at h.example fail", "owner": "the publisher's", "text": "it answered 500",
                "since": "2026-06-01T23:00:00Z", "feeds": names }],
        }))
        .unwrap();
        let now = DateTime::parse_from_rfc3339("2026-06-02T00:00:00Z").unwrap();
        let now = now.with_timezone(&Utc);
        let page = String::from_utf8(page(&status, &status, &FeedRange::default(), now)).unwrap();
        assert_eq!(page.matches("it answered 500").count(), 1, "{page}");
        for part in [
            "40 feeds at h.example fail (f00, f01, f02 and 37 more): it answered 500",
            "feeds that fail besides: 2",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn a_fault_stands_below_its_owner_and_beside_its_feed() {
        let status: Status = serde_json::from_value(json!({
            "version": "1", "started_at": "2026-06-01T00:00:00Z", "feeds_total": 2, "failing": { "upstream": 1 },
            "store": { "fault": "the disk is full" },
            "feeds": [
                { "name": "a", "url": "http://x/a", "served": true, "items": 3, "live_items": 2,
                  "fault": { "whose": "upstream", "owner": "the publisher's", "text": "it answered 500", "status": 500, "since": "2026-06-01T23:00:00Z" } },
                { "name": "b", "url": "http://x/b", "served": true },
                { "name": "store", "url": "http://x/s", "fault": { "whose": "network", "owner": "the network's", "text": "no route", "since": "2026-06-01T23:00:00Z" } },
            ],
            "next": "/status?after=b&failing=",
        }))
        .unwrap();
        let now = DateTime::parse_from_rfc3339("2026-06-02T00:00:00Z").unwrap();
        let now = now.with_timezone(&Utc);
        let page = String::from_utf8(page(&status, &status, &FeedRange::default(), now)).unwrap();
        for part in [
            "<h2>The fault is the publisher's</h2>",
            "<h2>The fault is not a publisher's</h2>",
            "a: it answered 500",
            "store: the disk is full",
            "since 60 min ago",
            "2 of 3",
            "href=\"/overview?after=b&amp;failing=\"",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        // A feed may be called as other lines begin.
        let (_, ours) = page.split_once("is not a publisher's</h2>").unwrap();
        let (ours, _) = ours.split_once("</ul>").unwrap();
        assert!(
            ours.contains("the disk is full") && !ours.contains("no route"),
            "{ours}"
        );
        let page = String::from_utf8(feed_page(&status.feeds[0], None, now)).unwrap();
        assert!(
            page.contains("it answered 500") && page.contains("http://x/a"),
            "{page}"
        );
    }
}
