//! Deletions that little shows: posts of one date, many at once where pages say nothing, the oldest,
//! and those of a site that is built again in the same poll.

use super::{
    blog::Blog,
    document::{Document, Post, Posts, atom, rss},
};

/// Ten posts, of which all dates are changed so.
fn of_dates(letters: &str, change: fn(&mut Post)) -> Document {
    rss(Posts::from(letters).each(change))
}

#[tokio::test(start_paused = true)]
async fn a_post_between_others_is_missed_though_no_date_says_which_end_is_the_newest() {
    let changes: [fn(&mut Post); 2] = [
        |post| post.published = None,
        |post| post.published = Post::of('z').published,
    ];
    for change in changes {
        let mut blog = Blog::of(of_dates("jihgfedcba", change)).await;
        assert_eq!(blog.shows(of_dates("jihgfdcba", change)).await, "");
        assert_eq!(blog.stays(72).await, "47 h: -e absent-bracketed");
        // What goes as another comes may have rolled off at any place.
        assert_eq!(blog.shows(of_dates("kjihgdcba", change)).await, "+k");
        assert_eq!(blog.stays(72).await, "");
        // Nothing stands before, or behind, the two at the ends.
        assert_eq!(blog.shows(of_dates("jihgdcb", change)).await, "");
        assert_eq!(blog.stays(72).await, "");
    }
}

#[tokio::test(start_paused = true)]
async fn many_posts_that_go_at_once_are_missed_after_a_week_where_pages_say_nothing() {
    for (left, gone) in [("jihdcba", ["g", "f", "e"]), ("jhgfdba", ["i", "e", "c"])] {
        let mut blog = Blog::probed(rss("jihgfedcba")).await;
        assert_eq!(blog.shows(rss(left)).await, "held");
        assert_eq!(
            blog.stays(7 * 24 - 1).await,
            "",
            "a fault may last for days"
        );
        let told = blog.stays(3 * 24).await;
        let gone = gone.map(|name| format!("-{name} absent-bracketed"));
        assert!(told.ends_with(&gone.join(" ")), "{told}");
        assert_eq!(told.matches('-').count(), 2 * gone.len(), "{told}");
    }
    // Half of a document is a fault for as long as it lasts.
    let mut blog = Blog::probed(rss("jihgfedcba")).await;
    assert_eq!(blog.shows(rss("jiba")).await, "held");
    assert_eq!(blog.stays(20 * 24).await, "");
}

#[tokio::test(start_paused = true)]
async fn the_page_of_the_oldest_is_asked_for_where_nothing_came_in_its_place() {
    for (status, told) in [(404, "2 h: -a gone"), (200, "")] {
        let mut blog = Blog::probed(rss("jihgfedcba")).await;
        blog.page("a", status, "<title>The post called a</title>");
        assert_eq!(blog.shows(rss("jihgfedcb")).await, "");
        assert_eq!(blog.stays(72).await, told);
    }
}

#[tokio::test(start_paused = true)]
async fn a_site_that_is_built_again_keeps_its_posts_and_the_deleted_one_has_its_page_asked_for() {
    for document in [|posts| rss(posts), |posts| atom(posts)] as [fn(Posts) -> Document; 2] {
        for (left, gone) in [("jihgfdcba", "1 h: -e gone"), ("jihgfedcb", "2 h: -a gone")] {
            let own_time = |post: &mut Post| {
                post.published = post.published.map(|at| at + 30_017 + at / 86_400 % 977);
            };
            let mut blog = Blog::probed(document(Posts::from("jihgfedcba").each(own_time))).await;
            let mut rebuilt = Posts::from(left).each(|post| {
                post.id = post
                    .id
                    .replace("http://blog.example/?p=", "tag:blog.example,2026:");
                post.text += " Filed under all.";
            });
            for (post, secs) in rebuilt.0.iter_mut().zip(1..) {
                post.published = Some(1_769_904_000 + 3600 - secs);
            }
            for name in ["a", "e"] {
                let status = if left.contains(name) { 200 } else { 404 };
                blog.page(name, status, "<title>A page</title>");
            }
            let told = blog.shows(document(rebuilt)).await;
            assert!(!told.contains(['+', '-']), "{told}");
            assert_eq!(blog.stays(72).await, gone);
            assert_eq!(blog.store.feed(blog.feed.no).await.unwrap().items.total, 10);
        }
    }
}
