//! The test vectors of POLLING 2.6.

use super::{
    blog::Blog,
    document::{Document, Post, Posts, atom, atom03, day, rdf, rss},
};

#[tokio::test(start_paused = true)]
async fn middle_delete_and_backfill() {
    for format in [rss, atom, rdf] {
        let mut blog = Blog::of(format("zyxwvuts")).await;
        assert_eq!(blog.shows(format("zyxwvtsr")).await, "+r");
        assert_eq!(blog.stays(24).await, "23 h: -u absent-bracketed");
        assert_eq!(blog.stays(48).await, "", "said once");
    }
}

#[tokio::test(start_paused = true)]
async fn middle_delete_short_blog() {
    let mut blog = Blog::of(atom("zyxwv")).await;
    assert_eq!(
        blog.shows(atom("zywv")).await,
        "",
        "nothing moves up, so it takes three documents and a day"
    );
    assert_eq!(blog.stays(48).await, "47 h: -x absent-bracketed");
}

#[tokio::test(start_paused = true)]
async fn tail_delete_and_new() {
    let mut blog = Blog::of(rss("yxwvu")).await;
    assert_eq!(blog.shows(rss("zyxwv")).await, "+z");
    assert_eq!(blog.stays(48).await, "");
}

#[tokio::test(start_paused = true)]
async fn window_of_20_to_10_to_20() {
    let mut blog = Blog::of(rdf("zyxwvutsrqponmlkjihg")).await;
    assert_eq!(blog.shows(rdf("zyxwvutsrq")).await, "");
    assert_eq!(blog.shows(rdf("zyxwvutsrqponmlkjihg")).await, "");
    assert_eq!(blog.stays(48).await, "");
}

#[tokio::test(start_paused = true)]
async fn empty_document() {
    for format in [rss, atom, rdf, atom03] {
        let mut blog = Blog::of(format("zyxwv")).await;
        assert_eq!(blog.shows(format("")).await, "held");
        assert_eq!(blog.stays(48).await, "");
        assert_eq!(blog.shows(format("zyxwv")).await, "");
        assert_eq!(blog.stays(48).await, "");
    }
    // No body at all is no feed, and one that stays empty ends after a week, without a tombstone.
    let mut blog = Blog::of(rss("zyxwv")).await;
    assert_eq!(blog.shows(Document::new("text/xml", "")).await, "refused");
    assert_eq!(blog.shows(rss("zyxwv")).await, "");
    assert_eq!(blog.shows(rss("")).await, "held");
    assert_eq!(blog.stays(9 * 24).await.split(": ").last(), Some("gap"));
}

#[tokio::test(start_paused = true)]
async fn half_document() {
    let mut blog = Blog::of(rss("zyxwvutsrq")).await;
    assert_eq!(
        blog.shows(rss("zyxwvutsrq").cut_at("The post called v"))
            .await,
        "",
        "it breaks off in an item"
    );
    assert_eq!(blog.stays(48).await, "");
    assert_eq!(
        blog.shows(rss("zyxw")).await,
        "held",
        "it is whole, and too short"
    );
    assert_eq!(blog.stays(48).await, "");
    assert_eq!(blog.shows(rss("zyxwvutsrq")).await, "");
    // Nor does it confirm, audited again and again, what an earlier document made suspicious.
    let mut blog = Blog::of(rss("zyxwvutsrq")).await;
    assert_eq!(blog.shows(rss("zyxwvutrqp")).await, "+p");
    assert_eq!(blog.shows(rss("zyxw")).await, "held");
    assert_eq!(blog.stays(48).await, "");
    assert_eq!(blog.shows(rss("zyxwvutsrq")).await, "");
}

#[tokio::test(start_paused = true)]
async fn swap() {
    let mut blog = Blog::of(atom("zyxwvu")).await;
    assert_eq!(blog.shows(atom("zxywvu")).await, "");
    assert_eq!(blog.stays(48).await, "");
}

#[tokio::test(start_paused = true)]
async fn bump_of_an_updated_desc_document() {
    let edited =
        |post: &mut Post| (post.updated, post.text) = (day('z'), "Better words.".to_owned());
    let touched = |post: &mut Post| post.updated = day('z');
    let mut blog = Blog::of(atom("yxwvut")).await;
    assert_eq!(
        blog.shows(atom(Posts::from("wyxvut").but("w", edited)))
            .await,
        "*w"
    );
    assert_eq!(blog.stays(48).await, "");
    let both = Posts::from("vwyxut").but("w", edited).but("v", touched);
    assert_eq!(
        blog.shows(atom(both)).await,
        "",
        "`updated` alone is no edit"
    );
    assert_eq!(blog.stays(48).await, "");
}

#[tokio::test(start_paused = true)]
async fn ascending_document() {
    let mut blog = Blog::of(rss("rstuvwxy")).await;
    assert_eq!(
        blog.shows(rss("stuvwxyz")).await,
        "+z",
        "`r` rolls off at the head"
    );
    assert_eq!(
        blog.shows(rss("rstvwxyz")).await,
        "",
        "and is back, as `u` was deleted"
    );
    assert_eq!(blog.stays(24).await, "22 h: -u absent-bracketed");
}

#[tokio::test(start_paused = true)]
async fn pinned_bottom_roll() {
    let mut blog = Blog::of(rss("wvuta")).await;
    for document in ["xwvua", "yxwva", "zyxwa"] {
        assert_eq!(
            blog.shows(rss(document)).await,
            format!("+{}", &document[..1])
        );
        assert_eq!(
            blog.stays(48).await,
            "",
            "one post that is pinned stands behind what rolls off"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn http_to_https_for_all() {
    let https = |post: &mut Post| {
        (post.id, post.link) = (
            post.id.replace("http:", "https:"),
            post.link.replace("http:", "https:"),
        );
    };
    let formats: [fn(Posts) -> Document; 3] = [rss, atom, rdf];
    for format in formats {
        let mut blog = Blog::of(format("zyxwvuts".into())).await;
        assert_eq!(
            blog.shows(format(Posts::from("zyxwvuts").each(https)))
                .await,
            ""
        );
        assert_eq!(blog.stays(48).await, "");
        assert_eq!(blog.shows(format("zyxwvuts".into())).await, "", "and back");
        assert_eq!(blog.stays(48).await, "");
    }
}

#[tokio::test(start_paused = true)]
async fn feedburner_on_and_off() {
    // It puts a link of its own in the place of the permalink, which `feedburner:origLink` still
    // tells. The second blog has no guids, so that the permalink is what names its posts.
    for has_guids in [true, false] {
        let plain = |letters: &str| {
            let document = rss(letters);
            let text = String::from_utf8(document.body).unwrap();
            let guid = |item: &str| match item.split_once("<guid") {
                Some((head, rest)) if !has_guids => {
                    format!("{head}{}", rest.split_once("</guid>").unwrap().1)
                }
                _ => item.to_owned(),
            };
            Document::new(
                "text/xml",
                text.split("</item>")
                    .map(guid)
                    .collect::<Vec<_>>()
                    .join("</item>"),
            )
        };
        let burnt = |letters: &str| {
            let mut document = plain(letters).with(
                "<rss ",
                "<rss xmlns:feedburner=\"http://rssnamespace.org/feedburner/ext/1.0\" ",
            );
            for letter in letters.chars() {
                let own = format!("<link>http://blog.example/{letter}.html</link>");
                let theirs = format!(
                    "<link>http://feedproxy.google.com/~r/blog/~3/{letter}x0{letter}/{letter}.html</link>\
                     <feedburner:origLink>http://blog.example/{letter}.html</feedburner:origLink>"
                );
                document = document.with(&own, &theirs);
            }
            document
        };
        let mut blog = Blog::of(plain("yxwvuts")).await;
        assert_eq!(blog.shows(burnt("zyxwvut")).await, "+z");
        assert_eq!(blog.stays(48).await, "");
        assert_eq!(blog.shows(plain("zyxwvut")).await, "");
        assert_eq!(blog.stays(48).await, "");
    }
}

#[tokio::test(start_paused = true)]
async fn same_title_repost() {
    let mut blog = Blog::of(rss("yxwvut")).await;
    let weekly = Posts::from("zyxwvu").but("z", |post| post.title = Post::of('w').title);
    assert_eq!(
        blog.shows(rss(weekly)).await,
        "+w",
        "a second post of this title; the first is still there"
    );
    assert_eq!(blog.stays(48).await, "");
    // Taken down and posted again under another id: the new one is new, and the old one is gone.
    let mut blog = Blog::of(rss("yxwvuts")).await;
    let again = Posts::from("zyxvuts").but("z", |post| post.title = Post::of('w').title);
    assert_eq!(blog.shows(rss(again)).await, "+w");
    assert_eq!(blog.stays(48).await, "23 h: -w absent-bracketed");
}

#[tokio::test(start_paused = true)]
async fn guid_reuse() {
    let formats: [fn(Posts) -> Document; 2] = [rss, atom];
    for format in formats {
        let mut blog = Blog::of(format("yxwvut".into())).await;
        let reused = Posts::from("zyxwvu").but("z", |post| post.id = Post::of('x').id);
        assert_eq!(
            blog.shows(format(reused.clone())).await,
            "+z",
            "twice in one document: both are there"
        );
        assert_eq!(blog.stays(48).await, "");
        let rolled = Posts(
            reused
                .0
                .into_iter()
                .filter(|post| !post.title.ends_with('x'))
                .collect(),
        );
        assert_eq!(blog.shows(format(rolled)).await, "");
        assert_eq!(
            blog.stays(72).await.split(": ").last(),
            Some("-x absent-bracketed"),
            "the first of the two"
        );
    }
    // With another link, title and date, an id means another post; with less it is an edit.
    let mut blog = Blog::of(rss("t")).await;
    let other = Posts::from("z").but("z", |post| post.id = Post::of('t').id);
    assert_eq!(blog.shows(rss(other)).await, "gap +z");
    let mut blog = Blog::of(rss("t")).await;
    let edited = Posts::from("z").but("z", |post| {
        (post.id, post.link) = (Post::of('t').id, Post::of('t').link)
    });
    assert_eq!(blog.shows(rss(edited)).await, "*z");
}

#[tokio::test(start_paused = true)]
async fn unpublish_and_republish_four_times() {
    let mut blog = Blog::of(rss("zyxwvuts")).await;
    assert_eq!(blog.shows(rss("zyxwvtsr")).await, "+r");
    for _ in 0..3 {
        assert!(blog.stays(30).await.ends_with(": -u absent-bracketed"));
        assert_eq!(blog.shows(rss("zyxwvuts")).await, "^u");
        assert_eq!(blog.stays(200).await, "");
        assert_eq!(blog.shows(rss("zyxwvtsr")).await, "");
    }
    assert_eq!(
        blog.stays(70).await,
        "",
        "what comes and goes is missed for three days first"
    );
    assert_eq!(blog.stays(30).await, "3 h: -u absent-bracketed");
    assert_eq!(blog.shows(rss("zyxwvuts")).await, "^u");
}

/// RSS by this software.
fn made_by(generator: &str, letters: &str) -> Document {
    rss(letters).with(
        "\n<item>",
        &format!("<generator>{generator}</generator>\n<item>"),
    )
}

#[tokio::test(start_paused = true)]
async fn serendipity_ims_delta() {
    // Recognised by its generator: a conditional answer shows what is new, and only that.
    let serendipity = |letters: &str| made_by("Serendipity 2.4 - http://www.s9y.org/", letters);
    let mut blog = Blog::of(serendipity("xwvutsrq")).await;
    assert_eq!(
        blog.shows(serendipity("yxwvutsr").delta(200, serendipity("y")))
            .await,
        "+y"
    );
    assert_eq!(
        blog.shows(serendipity("zyxwvuts").delta(200, serendipity("zy")))
            .await,
        "+z"
    );
    assert_eq!(blog.stays(200).await, "");

    // Learned without it: audits bring back what all answers between them lacked.
    let mut blog = Blog::of(rss("xwvutsrq")).await;
    assert_eq!(
        blog.shows(rss("yxwvutsr").delta(200, rss("y"))).await,
        "held +y"
    );
    assert_eq!(blog.shows(rss("zyxwvuts").delta(200, rss("z"))).await, "+z");
    assert_eq!(blog.stays(200).await, "");
    for day in 0..3 {
        let edited = |text: &str| {
            Posts::from("zyxwvuts").but("z", |post| post.text = format!("{text} {day}"))
        };
        for hour in ["morning", "noon"] {
            let delta = rss(edited(hour).first(1));
            let told = blog.shows(rss(edited(hour)).delta(200, delta)).await;
            assert_eq!(told.replace("held ", ""), "*z");
        }
        assert_eq!(blog.stays(200).await, "");
    }
    assert!(blog.absence().await.has_caught_conditional());
    // A deletion is found by audits all the same.
    assert_eq!(
        blog.shows(rss("zyxwvtsr").delta(200, rss("z")))
            .await
            .replace("*z", ""),
        ""
    );
    assert!(blog.stays(72).await.ends_with("-u absent-bracketed"));
}

#[tokio::test(start_paused = true)]
async fn status_226() {
    let mut blog = Blog::of(rss("xwvutsrq")).await;
    for (whole, part, told) in [
        ("yxwvutsr", "y", "+y"),
        ("zyxwvuts", "zy", "+z"),
        ("zyxwvtsr", "z", ""),
    ] {
        assert_eq!(blog.shows(rss(whole).delta(226, rss(part))).await, told);
        assert_eq!(blog.stays(5).await, "");
    }
    // The last of them hides a deletion, which the weekly audit finds, and the next one proves.
    assert_eq!(blog.stays(8 * 24).await, "174 h: -u absent-bracketed");
}

#[tokio::test(start_paused = true)]
async fn wordpress_304_then_audit() {
    let wordpress =
        |letters: &str| made_by("https://wordpress.org/?v=4.9", letters).tagged("\"modified z\"");
    let mut blog = Blog::of(wordpress("zyxwvuts")).await;
    assert_eq!(blog.shows(wordpress("zyxwvtsr")).await, "");
    assert_eq!(blog.stays(22).await, "", "304");
    assert_eq!(blog.stays(1).await, "1 h: +r", "the audit of the day");
    assert_eq!(
        blog.stays(24).await,
        "24 h: -u absent-bracketed",
        "the next one confirms it"
    );
}

#[tokio::test(start_paused = true)]
async fn no_overlap() {
    let mut blog = Blog::of(atom("hgfedcba")).await;
    assert_eq!(
        blog.shows(atom("zyxwvuts")).await,
        "gap +s +t +u +v +w +x +y +z"
    );
    assert_eq!(blog.stays(48).await, "");
}

#[tokio::test(start_paused = true)]
async fn atom_0_3() {
    let mut blog = Blog::of(atom03("yxwvuts")).await;
    assert_eq!(blog.shows(atom03("zyxwvut")).await, "+z");
    assert_eq!(blog.shows(atom03("zyxwuts")).await, "");
    assert_eq!(blog.stays(24).await, "22 h: -v absent-bracketed");
    // The software is updated and speaks Atom 1.0 from now on.
    assert_eq!(blog.shows(atom("zyxwuts")).await, "");
    assert_eq!(blog.stays(48).await, "");
}

#[tokio::test(start_paused = true)]
async fn latin_1_in_utf_8() {
    // A byte that is no UTF-8 in a document that says it is: the title stays, so nothing is edited
    // or missed.
    let cafe = |letters: &str, bytes: &[u8]| {
        let posts = Posts::from(letters).but("v", |post| post.title = "A caf# called v".to_owned());
        let document = rss(posts);
        let at = document.body.iter().position(|byte| *byte == b'#').unwrap();
        let body = [&document.body[..at], bytes, &document.body[at + 1..]].concat();
        Document { body, ..document }
    };
    let mut blog = Blog::of(cafe("yxwvut", "é".as_bytes())).await;
    assert_eq!(blog.shows(cafe("zyxwvu", b"\xe9")).await, "+z");
    assert_eq!(blog.stays(48).await, "");
    assert_eq!(blog.shows(cafe("zyxwvu", "é".as_bytes())).await, "");
    assert_eq!(blog.stays(48).await, "");
}

#[tokio::test(start_paused = true)]
async fn habari_feed_id_and_updated_now_churn() {
    // The id of the feed holds today's date, and its `updated` is now.
    let habari = |letters: &str, day: u32| {
        atom(letters)
            .with("<id>http://blog.example/</id>", &format!("<id>tag:blog.example,2026-02-{day:02}:atom/1</id>"))
            .with("\n<entry>", "<generator uri=\"http://www.habariproject.org/\" version=\"0.9\">Habari</generator>\n<entry>")
            .with("</feed>", &format!("<updated>2026-02-{day:02}T12:00:00Z</updated></feed>"))
    };
    let mut blog = Blog::of(habari("yxwvut", 1)).await;
    let before = blog.store.feed(blog.feed.no).await.unwrap().head();
    for day in 2..20 {
        assert_eq!(blog.shows(habari("yxwvut", day)).await, "");
        assert_eq!(blog.stays(23).await, "");
    }
    let after = blog.store.feed(blog.feed.no).await.unwrap().head();
    assert_eq!(
        after, before,
        "nothing that a consumer could see has changed"
    );
    assert_eq!(blog.shows(habari("zyxwvu", 20)).await, "+z");
}

#[tokio::test(start_paused = true)]
async fn b2evolution_updated_now_churn() {
    let b2evolution = |letters: &str, now: &str| {
        rss(letters)
            .with("<rss ", "<!-- generator=\"b2evolution/6.11\" --><rss ")
            .with(
                "\n<item>",
                &format!("<ttl>60</ttl><lastBuildDate>{now}</lastBuildDate>\n<item>"),
            )
    };
    let mut blog = Blog::of(b2evolution("yxwvut", "Sun, 01 Feb 2026 00:00:00 GMT")).await;
    let before = blog.store.feed(blog.feed.no).await.unwrap().head();
    for hour in 1..24 {
        let now = format!("Sun, 01 Feb 2026 {hour:02}:00:00 GMT");
        assert_eq!(blog.shows(b2evolution("yxwvut", &now)).await, "");
    }
    assert_eq!(blog.store.feed(blog.feed.no).await.unwrap().head(), before);
    assert_eq!(
        blog.shows(b2evolution("zyxwvu", "Mon, 02 Feb 2026 00:00:00 GMT"))
            .await,
        "+z"
    );
}

#[tokio::test(start_paused = true)]
async fn livejournal_comment_image_churn() {
    let livejournal = |letters: &str, comments: usize| {
        let count = |post: &mut Post| {
            post.text = format!(
                "{}&lt;br /&gt;&lt;br /&gt;&lt;img src=\"https://www.dreamwidth.org/tools/commentcount?user=jo&amp;amp;ditemid=7\" \
                 width=\"30\" height=\"12\" alt=\"{comments}\"/&gt; comments",
                post.text
            );
            post.more = format!("<lj:reply-count>{comments}</lj:reply-count>");
        };
        rss(Posts::from(letters).each(count))
            .with(
                "<rss ",
                "<rss xmlns:lj=\"http://www.livejournal.org/rss/lj/1.0/\" ",
            )
            .with(
                "\n<item>",
                "<generator>LiveJournal / Dreamwidth Studios</generator>\n<item>",
            )
    };
    let mut blog = Blog::of(livejournal("yxwvut", 0)).await;
    for comments in 1..10 {
        assert_eq!(blog.shows(livejournal("yxwvut", comments)).await, "");
    }
    let edited = livejournal("yxwvut", 10).with("to say of w", "to say now of w");
    assert_eq!(
        blog.shows(edited).await,
        "*w",
        "what is not the count is an edit"
    );
}
