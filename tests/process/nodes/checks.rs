//! Checks of histories: of the polls of a feed, and of what each fault may cost; not how a history
//! comes about.

use super::cluster::node_of;
use crate::kill::blogs::Polled;
use std::time::{Duration, Instant};

/// Time between two polls of a feed at least, as the nodes are configured.
const PACE: Duration = Duration::from_secs(1);

/// The time by which a poll may seem to come sooner, since the one before it was slow to arrive.
const PACE_SLACK: Duration = Duration::from_millis(250);

/// The polls that came too soon.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TooSoon {
    /// Times of all of them.
    pub(crate) times: Vec<Instant>,
    /// The number of those that another node made than the one before.
    pub(crate) by_others: usize,
}

/// The polls of a feed that came sooner after the one before than the pace allows.
pub(crate) fn too_soon(polls: &[Polled]) -> TooSoon {
    let mut found = TooSoon::default();
    for pair in polls.windows(2) {
        let [before, poll] = pair else { continue };
        if poll.at - before.at >= PACE - PACE_SLACK {
            continue;
        }
        found.times.push(poll.at);
        found.by_others += usize::from(node_of(&poll.by) != node_of(&before.by));
    }
    found
}

/// The times that no fault excuses. Each fault excuses one, at any time after it.
pub(crate) fn unexcused(times: &[Instant], faults: &[Instant]) -> usize {
    let mut excused = 0;
    let mut left = faults.iter().peekable();
    let mut without = 0;
    for time in times {
        while left.next_if(|fault| *fault <= time).is_some() {
            excused += 1;
        }
        if excused == 0 {
            without += 1;
        } else {
            excused -= 1;
        }
    }
    without
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        kill::subscriber::{Chain, signature},
        nodes::mirrors::WatchedMirror,
    };
    use serde_json::{Value, json};

    fn poll(begun: Instant, millis: u64, node: usize) -> Polled {
        Polled {
            at: begun + Duration::from_millis(millis),
            by: format!("everfeed/1 (+http://node-{node}.example/)"),
        }
    }

    #[test]
    fn two_nodes_that_poll_at_once_are_found() {
        let begun = Instant::now();
        let by_one: Vec<_> = (0..9).map(|n| poll(begun, 1000 * n, 0)).collect();
        assert_eq!(too_soon(&by_one), TooSoon::default());
        let both = |n: u64| [poll(begun, 1000 * n, 0), poll(begun, 1000 * n + 400, 1)];
        let by_both: Vec<_> = (0..9).flat_map(both).collect();
        let found = too_soon(&by_both);
        assert_eq!((found.times.len(), found.by_others), (17, 17));
        // One fault excuses one of them, and none before it.
        assert_eq!(unexcused(&found.times, &[begun]), 16);
        let late = begun + Duration::from_millis(8300);
        assert_eq!(unexcused(&found.times, &[late, late]), 16);
        assert_eq!(unexcused(&found.times, &[begun; 17]), 0);
    }

    fn page(prev: &str, last: &str, t: u64, title: &str) -> Value {
        let item = json!({
            "id": "a",
            "updated": format!("2026-01-01T00:00:{t:02}Z"),
            "object": { "id": "tag:1", "displayName": title },
        });
        json!({ "items": [item], "prev_cursor": prev, "last_cursor": last })
    }

    #[test]
    fn a_mirror_that_is_led_back_is_found() {
        let held = page("", "10_0_1", 10, "post 1, edit 2");
        let check = |page: Value, expect: &str| {
            let mut mirror = WatchedMirror::default();
            mirror.take(&held, 0);
            mirror.take(&page, 1);
            let told = mirror.problems.join("\n");
            assert!(
                told.contains(expect) && told.is_empty() == expect.is_empty(),
                "{told}"
            );
        };
        check(page("", "11_0_1", 11, "post 1, edit 3"), "");
        check(held.clone(), "");
        check(page("", "11_0_1", 11, "post 1, edit 1"), "goes back");
        check(page("", "10_0_1", 9, "post 1, edit 2"), "goes back");
        check(page("", "10_0_1", 10, "post 1, edit 3"), "at 17672");
        check(page("", "9_0_1", 10, "post 1, edit 2"), "comes after");
        let mut gone = page("", "11_0_1", 11, "");
        gone["items"][0]["deleted"] = true.into();
        check(gone, "is deleted");
    }

    #[test]
    fn a_chain_of_pushes_that_breaks_or_repeats_itself_is_found() {
        let pushes = |pushes: &[(&str, &str)]| {
            let mut chain = Chain::default();
            for (t, (prev, last)) in (10..).zip(pushes) {
                let body = page(prev, last, t, "post 1").to_string();
                chain.take(body.as_bytes(), &signature(body.as_bytes()));
            }
            (chain.faults.len(), chain.strays.len())
        };
        assert_eq!(pushes(&[("0", "1"), ("1", "2"), ("2", "3")]), (0, 0));
        assert_eq!(pushes(&[("0", "1"), ("1", "2"), ("1", "3")]), (0, 1));
        // A hub that was stopped before it sent, and another one that went on.
        assert_eq!(
            pushes(&[("0", "1"), ("1", "2"), ("2", "3"), ("1", "2")]),
            (0, 1)
        );
        assert_eq!(pushes(&[("0", "1"), ("2", "3")]), (1, 0));
    }
}
