//! Looks for readers at old addresses.

use super::*;
use crate::{feed::record::FeedNo, ingest::testing::Running};

/// Seconds for which a copy is fresh in these tests.
const FRESH: u64 = 60;

/// Reads the old address of a feed, and tells for how many milliseconds the reader waited.
async fn read(running: &Running, feed: FeedNo) -> u128 {
    let began = Instant::now();
    let wanted = running.poller.wants_look(feed, FRESH);
    if let Some(look) = running.poller.look(feed, FRESH) {
        assert!(wanted, "an answer that is given again would hide the look");
        look.await;
    }
    began.elapsed().as_millis()
}

#[tokio::test(start_paused = true)]
async fn an_old_copy_is_asked_after_once_for_all_who_read_it_and_nobody_asks_while_nobody_reads() {
    let house = PollerRig::new(|n, _| ready(ok(if n == 0 { ONE } else { TWO })));
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(FRESH - 1).await;
    read(&running, feed.no).await;
    assert_eq!(house.requests_at(), [0], "the copy is fresh");
    pass(1).await;
    let looks: Vec<_> = (0..20)
        .map(|_| running.poller.look(feed.no, FRESH).expect("it waits"))
        .collect();
    futures_util::future::join_all(looks).await;
    assert_eq!(
        (house.requests_at(), house.total(feed.no).await),
        (vec![0, 60], 2),
        "committed as by a poll"
    );
    let next = running
        .poller
        .status(feed.no)
        .unwrap()
        .timetable
        .next_at
        .secs()
        - START_SECS;
    assert_eq!(next, 60 + HOUR, "the next poll has moved");
    pass(HOUR - 1).await;
    assert_eq!(house.requests_at(), [0, 60]);
    assert!(running.poller.look(feed.no, 0).is_none(), "0: never");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_reader_who_begins_a_look_waits_for_three_seconds_and_others_for_half_a_second() {
    let house = PollerRig::new(|n, _| async move {
        match n {
            1 | 2 | 4 | 5 => sleep(Duration::from_millis(1200)).await,
            3 => pass(5).await,
            _ => {}
        }
        ok(ONE)
    });
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(FRESH).await;
    let readers = futures_util::future::join3(
        read(&running, feed.no),
        read(&running, feed.no),
        read(&running, feed.no),
    );
    assert_eq!(readers.await, (1200, 500, 500));
    pass(FRESH).await;
    let readers = futures_util::future::join(read(&running, feed.no), read(&running, feed.no));
    assert_eq!(readers.await, (1200, 0), "the last answer was slow");
    pass(FRESH).await;
    assert_eq!(read(&running, feed.no).await, 3000);
    assert_eq!(read(&running, feed.no).await, 0, "the look is late");
    pass(5).await;
    let asked = house.requests_at();
    pass(FRESH).await;
    let readers = futures_util::future::join(read(&running, feed.no), read(&running, feed.no));
    assert_eq!(
        readers.await,
        (1200, 0),
        "the last answer was late, and the reader waits who begins a look"
    );
    assert_eq!(house.requests_at().len(), asked.len() + 1);
    pass(FRESH).await;
    let readers = futures_util::future::join(read(&running, feed.no), read(&running, feed.no));
    assert_eq!(readers.await, (1200, 0), "the last answer was slow");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_origin_that_fails_is_looked_at_ever_more_seldom_and_nobody_waits_for_it() {
    let house = PollerRig::new(|n, _| {
        ready(if (1..4).contains(&n) {
            status(500, &[])
        } else {
            ok(TWO)
        })
    });
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(FRESH).await;
    for _ in 0..600 {
        assert_eq!(read(&running, feed.no).await, 0);
        pass(1).await;
    }
    assert_eq!(
        house.requests_at(),
        [0, 60, 120, 240, 480, 540, 600],
        "and as before once it answers"
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_the_origin_asked_for_is_kept() {
    let house = PollerRig::new(|n, _| {
        ready(if n == 1 {
            status(503, &[("retry-after", "1800")])
        } else {
            ok(TWO)
        })
    });
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(FRESH).await;
    while house.requests_at().len() < 3 {
        read(&running, feed.no).await;
        pass(1).await;
    }
    let at = house.requests_at()[2];
    assert!((60 + 1800..60 + 1800 + 200).contains(&at), "{at}");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_look_while_the_feed_is_polled_ends_with_that_poll() {
    let house = PollerRig::new(|n, _| async move {
        if n == 1 {
            sleep(Duration::from_millis(200)).await;
        }
        ok(TWO)
    });
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(FRESH).await;
    house.hint(feed.no);
    tokio::task::yield_now().await;
    sleep(Duration::from_millis(100)).await;
    assert_eq!(read(&running, feed.no).await, 100);
    assert_eq!(house.requests_at(), [0, 60]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_broken_document_takes_the_place_of_a_good_one_after_a_quarter_of_an_hour_of_agreement() {
    const CUT: &str = "<rss version=\"2.0\"><channel><title>t</title><item><guid>2</guid><title>two</title></item><item><guid>1</guid><title>on";
    const EMPTY: &str = "<rss version=\"2.0\"><channel><title>t</title></channel></rss>";
    let script = |good_again: usize| {
        move |n: usize, _: &crate::layers::Request| {
            ready(ok(match n {
                0 => TWO,
                _ if n == good_again => ONE,
                _ if n.is_multiple_of(2) => CUT,
                _ => EMPTY,
            }))
        }
    };
    let check = async |good_again: usize, expect_at: u64| {
        let house = PollerRig::new(script(good_again));
        let mut feed = house.feed("blog", URL, HOUR, DAY).await;
        let known_as = Url::parse("http://me.example/rss").unwrap();
        feed.legacy = Some(crate::ingest::LegacyAddress::at(known_as).into());
        let running = house.start([&feed]).await;
        pass(FRESH).await;
        let kept = async || house.store.document(feed.no).await.unwrap().unwrap().body;
        loop {
            read(&running, feed.no).await;
            let body = kept().await;
            if body != TWO.as_bytes() && body != ONE.as_bytes() {
                break;
            }
            pass(1).await;
        }
        let at = *house.requests_at().last().unwrap();
        // With the look in which the quarter of an hour is over.
        assert!(
            (expect_at..=expect_at + FRESH).contains(&at),
            "{:?}",
            house.requests_at()
        );
        running.stop().await;
    };
    check(usize::MAX, 60 + 900).await;
    // A good one in between begins it anew.
    check(5, 300 + 60 + 900).await;
}
