//! Blogs of hundreds of posts whose archives are faulty, read over real sockets: `complete` is
//! never said of less than all, truthful archives reach it, nothing that can be read is lost, and
//! requests are few. The faults that last for hours are played in virtual time (`feed::archive`).

mod blog;
mod rig;

use blog::{Blog, Kind, Reply};
use rig::{Seen, watch};

/// Posts of a blog.
const POSTS: u32 = 305;

/// A fault: the blog, the number of the page that is asked for (0 of the live document), how often
/// it was before, and the number of the request.
type Fault = fn(&mut Blog, u64, usize, usize) -> Option<Reply>;

/// Expected end of a world.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// Everything is held, and known to be.
    Complete,
    /// So many posts are held, and not taken for all.
    Holds(usize),
}

fn check(name: &str, seen: &Seen, end: End) -> Result<(), String> {
    let told = format!(
        "{name}: {}, {} of {} held, {} requests",
        seen.history, seen.held, seen.posts, seen.requests
    );
    // Every page is read twice at most, besides what proves the end and the live document.
    let requests_max = 2 * (POSTS as usize).div_ceil(10) + 30;
    let is_met = match end {
        End::Complete => seen.history == "complete" && seen.lost == 0,
        End::Holds(held) => !seen.was_complete && seen.held == held,
    };
    let is_honest = !seen.was_complete || seen.lost == 0;
    if is_met && is_honest && seen.requests <= requests_max {
        Ok(())
    } else {
        Err(told)
    }
}

/// Plays worlds side by side.
async fn play(worlds: Vec<(&'static str, Kind, u32, Fault, End)>) {
    let mut running = tokio::task::JoinSet::new();
    for (name, kind, posts, fault, end) in worlds {
        running.spawn(async move {
            let name = format!("{name}, {kind:?}, {posts} posts");
            let seen = watch(Blog::new(kind, posts), fault, end == End::Complete).await;
            check(&name, &seen, end)
        });
    }
    let results = running.join_all().await;
    let failed: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

const KINDS: [Kind; 4] = [Kind::Paged, Kind::Next, Kind::Chain, Kind::Ghost];

#[tokio::test]
async fn truthful_archives_are_complete() {
    let mut worlds: Vec<(&str, Kind, u32, Fault, End)> = Vec::new();
    for kind in KINDS {
        for posts in [POSTS, 300, 21, 20] {
            // A full last page proves no end where pages are only counted.
            if matches!(kind, Kind::Paged | Kind::Ghost) && posts % 10 == 0 {
                continue;
            }
            worlds.push(("truthful", kind, posts, |_, _, _, _| None, End::Complete));
        }
    }
    worlds.push(("one page", Kind::Paged, 7, |_, _, _, _| None, End::Complete));
    play(worlds).await;
}

#[tokio::test]
async fn a_fault_that_passes_ends_nothing() {
    let faults: [(&str, Fault); 7] = [
        ("one 404", |_, page, times, _| {
            (page == 8 && times == 0).then(|| Reply::status(404))
        }),
        ("one 410", |_, page, times, _| {
            (page == 8 && times == 0).then(|| Reply::status(410))
        }),
        ("one empty page", |_, page, times, _| {
            (page == 8 && times == 0).then(|| Reply::posts(&[]))
        }),
        ("one redirect to the feed", |_, page, times, _| {
            (page == 8 && times == 0).then(|| Reply::redirect("/feed"))
        }),
        ("one redirect to the front page", |_, page, times, _| {
            (page == 8 && times == 0).then(|| Reply::redirect("/"))
        }),
        ("one live document", |blog, page, times, _| {
            (page == 8 && times == 0).then(|| blog.live())
        }),
        ("one page that repeats", |blog, page, times, _| {
            (page == 8 && times == 0).then(|| blog.page(7))
        }),
    ];
    let worlds = faults.map(|(name, fault)| (name, Kind::Paged, POSTS, fault, End::Complete));
    play(worlds.to_vec()).await;
}

#[tokio::test]
async fn a_fault_that_stays_is_never_complete() {
    let worlds: Vec<(&str, Kind, u32, Fault, End)> = vec![
        (
            "a missing page",
            Kind::Paged,
            POSTS,
            |_, page, _, _| (page == 8).then(|| Reply::status(404)),
            End::Holds(295),
        ),
        (
            "an empty page",
            Kind::Paged,
            POSTS,
            |_, page, _, _| (page == 8).then(|| Reply::posts(&[])),
            End::Holds(295),
        ),
        (
            "redirects to the feed",
            Kind::Paged,
            POSTS,
            |_, page, _, _| (page >= 8).then(|| Reply::redirect("/feed")),
            End::Holds(70),
        ),
        (
            "redirects to the front page",
            Kind::Paged,
            POSTS,
            |_, page, _, _| (page >= 8).then(|| Reply::redirect("/")),
            End::Holds(70),
        ),
        (
            "every query is missing",
            Kind::Paged,
            POSTS,
            |_, page, _, _| (page > 0).then(|| Reply::status(404)),
            End::Holds(10),
        ),
        (
            "every query is the feed",
            Kind::Paged,
            POSTS,
            |blog, page, _, _| (page > 0).then(|| blog.live()),
            End::Holds(10),
        ),
        (
            "every query leads to the feed",
            Kind::Paged,
            POSTS,
            |_, page, _, _| (page > 0).then(|| Reply::redirect("/feed")),
            End::Holds(10),
        ),
        (
            "page 1 is missing",
            Kind::Paged,
            POSTS,
            |_, page, _, _| (page == 1).then(|| Reply::status(404)),
            End::Holds(305),
        ),
        (
            "an archive is missing",
            Kind::Chain,
            POSTS,
            |_, page, _, _| (page == 8).then(|| Reply::status(404)),
            End::Holds(225),
        ),
        (
            "an archive is gone",
            Kind::Chain,
            POSTS,
            |_, page, _, _| (page == 8).then(|| Reply::status(410)),
            End::Holds(225),
        ),
        (
            "an archive is a web page",
            Kind::Chain,
            POSTS,
            |_, page, _, _| (page == 8).then(Reply::web_page),
            End::Holds(225),
        ),
        (
            "an archive leads to the feed",
            Kind::Chain,
            POSTS,
            |_, page, _, _| (page == 8).then(|| Reply::redirect("/feed")),
            End::Holds(225),
        ),
        (
            "an archive leads to the one before",
            Kind::Chain,
            POSTS,
            |_, page, _, _| (page == 8).then(|| Reply::redirect("/archive/7")),
            End::Holds(295),
        ),
        (
            "an archive is of another feed",
            Kind::Chain,
            POSTS,
            |_, page, _, _| (page == 8).then(Reply::another_feed),
            End::Holds(225),
        ),
    ];
    play(worlds).await;
}

#[tokio::test]
async fn nothing_is_lost_when_posts_come_and_go_during_a_walk() {
    let faults: [(&str, Fault); 4] = [
        ("a new post is deleted", |blog, _, _, nth| {
            if nth == 12 {
                blog.delete(300);
            }
            None
        }),
        ("a post of the last page is deleted", |blog, _, _, nth| {
            if nth == 12 {
                blog.delete(200);
                blog.delete(205);
            }
            None
        }),
        ("many posts are deleted", |blog, _, _, nth| {
            if nth % 4 == 3 && nth < 24 {
                blog.delete(POSTS - nth as u32 * 3);
            }
            None
        }),
        ("posts are published and deleted", |blog, _, _, nth| {
            if nth == 9 || nth == 17 {
                blog.publish();
                blog.delete(POSTS - nth as u32 * 4);
            }
            None
        }),
    ];
    let mut worlds: Vec<(&str, Kind, u32, Fault, End)> = Vec::new();
    for kind in [Kind::Paged, Kind::Next, Kind::Ghost] {
        worlds.extend(
            faults
                .iter()
                .map(|(name, fault)| (*name, kind, POSTS, *fault, End::Complete)),
        );
    }
    play(worlds).await;
}
