//! The last row of POLLING 2.4, for sixty days: a feed that is made for whoever asks, so that two
//! sets alternate. Whatever is taken for deleted in it is a mistake.

use super::{
    blog::Blog,
    document::{Document, Post, Posts, rss},
};
use everfeed::feed::absence::AbsenceTrust;
use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};

/// Duration of the watch, in hours.
const HOURS: usize = 60 * 24;

/// Posts in a document.
const LENGTH: usize = 15;

/// Hours between two new posts.
const POST_HOURS: usize = 24;

/// The first set shows the newest posts; the second lacks three or four of them, and older ones
/// stand in their place. Four are a mass, of which nothing is concluded; three are not.
fn document(hour: usize, is_second: bool) -> Document {
    let newest = i64::try_from(hour / POST_HOURS).unwrap() + 31;
    let lacks = |day: i64| is_second && matches!(day % 8, 0 | 3);
    let days = (0..=newest).rev().filter(|day| !lacks(*day));
    rss(Posts(
        days.take(LENGTH)
            .map(|day| Post::of_day(&format!("n{day}"), day))
            .collect(),
    ))
}

/// The result of sixty days.
#[derive(Debug, PartialEq, Eq)]
struct Watched {
    /// Tombstones, all of them false.
    tombstones: usize,
    /// True when absence is believed as usual at the end.
    belief: AbsenceTrust,
}

/// Polls hourly, `is_second` in these hours.
async fn watched(is_second: impl Fn(usize) -> bool) -> Watched {
    let mut blog = Blog::of(document(0, false)).await;
    let (mut tombstones, mut revived) = (0, 0);
    for hour in 1..HOURS {
        let told = blog.shows(document(hour, is_second(hour))).await;
        tombstones += told.matches("absent-bracketed").count();
        revived += told.matches('^').count();
    }
    // They are alive again when the first set is shown, as far as it still reaches back to them.
    assert!(revived <= tombstones, "{revived} of {tombstones}");
    Watched {
        tombstones,
        belief: blog.absence().await.recurrence.belief(blog.now()),
    }
}

/// The second set in this share of the polls, at random.
fn at_random(share: f64) -> impl Fn(usize) -> bool {
    move |hour| SmallRng::seed_from_u64(hour as u64).random::<f64>() < share
}

/// The sets by turns, each for so many hours.
fn by_turns(hours: usize) -> impl Fn(usize) -> bool {
    move |hour| hour / hours % 2 == 1
}

async fn check(tombstones: usize, belief: AbsenceTrust, is_second: impl Fn(usize) -> bool) {
    assert_eq!(watched(is_second).await, Watched { tombstones, belief });
}

/// "personalised, geo, A/B, CDN-node-dependent feeds: alternate sets, flapping detector raises
/// confirmations to 7 d, else turn off". Before there was a detector there were 21 false tombstones
/// in the first of these mixes.
#[tokio::test(start_paused = true)]
async fn personalised_geo_a_b_or_cdn_node_dependent_feeds() {
    check(0, AbsenceTrust::Doubted, at_random(0.5)).await;
    check(0, AbsenceTrust::Doubted, at_random(0.1)).await;
    check(0, AbsenceTrust::Doubted, by_turns(1)).await;
}

/// The set that was not shown first may be the usual one. Without the detector there were 45: some
/// whenever the other set had not been shown from one audit to the next. The first three of them
/// come before anything has come back.
#[tokio::test(start_paused = true)]
async fn the_set_that_is_shown_more_often_lacks_what_the_other_has() {
    check(3, AbsenceTrust::Doubted, at_random(0.9)).await;
}

/// Sets that stay for days look like deletions, until what was deleted comes back. Without the
/// detector there were 24 in the first mix, and in the last as many as with it: the doubt lasts
/// thirty days.
#[tokio::test(start_paused = true)]
async fn sets_that_stay_for_days() {
    check(6, AbsenceTrust::Doubted, by_turns(24)).await;
    check(0, AbsenceTrust::Usual, by_turns(48)).await;
    check(3, AbsenceTrust::Doubted, by_turns(120)).await;
}

/// A set that stays for eight days outlasts even the doubt. When it goes, absence is not believed
/// at all any more.
#[tokio::test(start_paused = true)]
async fn what_was_taken_for_deleted_in_spite_of_the_doubt_and_comes_back_turns_absence_off() {
    let (all, fewer) = ("zyxwvutsrq", "zxwvtsrqpo");
    let mut blog = Blog::of(rss(all)).await;
    assert_eq!(blog.shows(rss(fewer)).await, "+o +p");
    assert_eq!(
        blog.stays(24).await,
        "23 h: -y absent-bracketed -u absent-bracketed"
    );
    assert_eq!(blog.shows(rss(all)).await, "doubted ^u ^y");
    assert_eq!(blog.shows(rss(fewer)).await, "");
    assert_eq!(
        blog.stays(6 * 24).await,
        "",
        "two documents and an hour would have been enough before"
    );
    assert_eq!(
        blog.stays(2 * 24).await,
        "45 h: -y absent-bracketed -u absent-bracketed"
    );
    assert_eq!(blog.shows(rss(all)).await, "disbelieved ^u ^y");
    assert_eq!(blog.shows(rss(fewer)).await, "");
    let asked = blog.audits();
    assert_eq!(blog.stays(29 * 24).await, "");
    assert!(
        blog.audits() - asked <= 5,
        "what proves nothing is asked for once a week, as everywhere"
    );
}
