//! A fourth lane, made of a job type and a limit only: renewals of upstream subscriptions, as they
//! might be.

use super::*;
use std::time::Duration;
use tokio::time::sleep;

/// Renews for a while, or panics.
struct Renewal {
    is_broken: bool,
    secs: u64,
}

impl LaneJob for Renewal {
    const KIND: &'static str = "renewal";
    const IN_FLIGHT_MAX: usize = 3;
    type Result = u64;

    fn feed_name(&self) -> &str {
        "blog"
    }

    async fn run(self, stop: CancellationToken) -> Option<u64> {
        assert!(!self.is_broken, "told to");
        tokio::select! {
            () = sleep(Duration::from_secs(self.secs)) => Some(10),
            () = stop.cancelled() => None,
        }
    }
}

const NOW: Stamp = Stamp::from_secs(1_000);

struct Rig {
    lane: Lane<Renewal>,
    pauses: HostPauses,
    stop: CancellationToken,
    /// Seconds that a job takes.
    secs: u64,
}

impl Rig {
    /// Feeds that are due now, the first one first.
    fn new(feeds: u32) -> Self {
        let mut lane = Lane::default();
        for feed in 0..feeds {
            lane.put(FeedNo(feed), Stamp::from_secs(feed.into()));
        }
        Self {
            lane,
            pauses: HostPauses::default(),
            stop: CancellationToken::new(),
            secs: 4,
        }
    }

    /// Starts what may start at `now`: each feed on its own host, or all on one. The numbers of
    /// those that did.
    fn start(&mut self, now: Stamp, host: Option<&str>, is_broken: bool) -> Vec<u32> {
        let mut started = Vec::new();
        while let Some(due) = self.lane.next_due(now) {
            let hosts = vec![host.map_or_else(|| due.feed.to_string(), str::to_owned)];
            let ready = Ready {
                job: Renewal {
                    is_broken,
                    secs: self.secs,
                },
                hosts,
                not_before: Stamp::ZERO,
            };
            if self
                .lane
                .start(&due, ready, &mut self.pauses, &self.stop)
                .is_none()
            {
                started.push(due.feed.0);
            }
        }
        started
    }

    async fn end(&mut self) -> (FeedNo, Ended<u64>) {
        let joined = self.lane.next().await;
        let (feed, ended, hosts) = self.lane.end(joined, &mut self.pauses).unwrap();
        hosts.iter().for_each(|host| self.lane.call_up(host));
        (feed, ended)
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_jobs_are_in_flight_than_the_limit_and_the_longest_due_is_next() {
    let mut rig = Rig::new(5);
    assert_eq!(rig.start(NOW, None, false), [0, 1, 2]);
    assert_eq!(rig.lane.next_at(), Stamp::MAX, "there is no room");
    assert!(matches!(rig.end().await, (_, Ended::Finished(10))));
    assert_eq!(
        (rig.lane.next_at(), rig.start(NOW, None, false)),
        (Stamp::from_secs(3), vec![3])
    );
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_one_failed_job_and_gives_its_place_back() {
    let mut rig = Rig::new(2);
    assert_eq!(rig.start(Stamp::from_secs(0), Some("a.example"), true), [0]);
    assert_eq!(rig.start(NOW, Some("a.example"), false), [1]);
    let mut ended = [rig.end().await, rig.end().await];
    ended.sort_by_key(|(feed, _)| *feed);
    assert_eq!(
        ended,
        [
            (FeedNo(0), Ended::Panicked),
            (FeedNo(1), Ended::Finished(10))
        ]
    );
    rig.lane.put(FeedNo(0), NOW);
    assert_eq!(
        rig.start(NOW, Some("a.example"), false),
        [0],
        "the same feed goes on"
    );
}

#[tokio::test(start_paused = true)]
async fn a_host_has_two_places_and_a_pause_of_it_holds_back_every_job() {
    let mut rig = Rig::new(3);
    assert_eq!(rig.start(NOW, Some("a.example"), false), [0, 1]);
    rig.end().await;
    assert_eq!(
        rig.start(NOW, Some("a.example"), false),
        [2],
        "it waited for a place"
    );
    rig.pauses.pause("a.example".into(), NOW.plus_secs(60), NOW);
    rig.lane.put(FeedNo(7), NOW);
    assert_eq!(rig.start(NOW, Some("a.example"), false), [] as [u32; 0]);
    assert_eq!(rig.lane.next_at(), NOW.plus_secs(60));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_stopped_leaves_nothing_and_a_removed_feed_is_not_started() {
    let mut rig = Rig::new(2);
    rig.lane.remove(FeedNo(1));
    assert_eq!(rig.start(NOW, None, false), [0]);
    rig.stop.cancel();
    assert_eq!(rig.end().await, (FeedNo(0), Ended::Stopped));
}

#[tokio::test(start_paused = true)]
async fn a_thousand_feeds_of_one_host_wait_in_the_order_in_which_they_were_due() {
    let mut rig = Rig::new(1000);
    assert_eq!(rig.start(NOW, Some("a.example"), false), [0, 1]);
    assert_eq!(
        rig.lane.queue.next_at(),
        None,
        "nobody is looked at before a place is free"
    );
    for next in 2..20 {
        rig.end().await;
        assert_eq!(rig.start(NOW, Some("a.example"), false), [next]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_place_is_not_lost_over_a_feed_that_waits_for_another_host_too() {
    let mut rig = Rig::new(0);
    let [a, b] = ["a.example", "b.example"].map(str::to_owned);
    rig.pauses.enter(&[a.clone(), b.clone()]).unwrap();
    rig.pauses.enter(&[a.clone(), b.clone()]).unwrap();
    let start = |rig: &mut Rig, feed: u32, hosts: &[String]| {
        let due = Due {
            feed: FeedNo(feed),
            since: Stamp::from_secs(feed.into()),
            now: NOW,
        };
        let ready = Ready {
            job: Renewal {
                is_broken: false,
                secs: 4,
            },
            hosts: hosts.to_vec(),
            not_before: Stamp::ZERO,
        };
        rig.lane
            .start(&due, ready, &mut rig.pauses, &rig.stop)
            .is_none()
    };
    assert!(
        !start(&mut rig, 1, &[a.clone(), b.clone()])
            && !start(&mut rig, 2, std::slice::from_ref(&a))
    );
    rig.pauses.leave(std::slice::from_ref(&a));
    rig.lane.call_up(&a);
    assert_eq!(rig.lane.next_due(NOW).unwrap().feed, FeedNo(1));
    assert!(
        !start(&mut rig, 1, &[a.clone(), b]),
        "its other host is full"
    );
    assert_eq!(
        rig.lane.next_due(NOW).unwrap().feed,
        FeedNo(2),
        "it is called up in its place"
    );
    assert!(start(&mut rig, 2, &[a]));
}

#[tokio::test(start_paused = true)]
async fn slow_hosts_have_half_of_the_places_at_most() {
    let mut rig = Rig::new(0);
    rig.lane = Lane::with_limit(4);
    rig.secs = 10;
    for feed in 0..4 {
        rig.lane.put(FeedNo(feed), Stamp::from_secs(feed.into()));
    }
    assert_eq!(rig.start(NOW, None, false), [0, 1, 2, 3]);
    for _ in 0..4 {
        rig.end().await;
    }
    // Each took ten seconds. The same again, and a host that nobody has asked before.
    for feed in 0..5 {
        rig.lane.put(FeedNo(feed), Stamp::from_secs(feed.into()));
    }
    assert_eq!(rig.start(NOW, None, false), [0, 1, 4]);
    rig.lane.put(FeedNo(5), NOW);
    assert_eq!(rig.start(NOW, None, false), [5]);
    // By now the two others are slow, too.
    for ended in [0, 1] {
        assert_eq!(rig.end().await.0, FeedNo(ended));
        assert_eq!(rig.start(NOW, None, false), [] as [u32; 0]);
    }
    assert_eq!(rig.end().await.0, FeedNo(4));
    assert_eq!(rig.start(NOW, None, false), [2]);
}
