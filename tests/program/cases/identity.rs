//! The same post under another name (issue "Identity: the same post, twice"): each change of scheme
//! as RSS and as Atom show it, and beside them posts that are alike and are not one.

use super::{
    blog::Blog,
    document::{Document, Post, Posts, atom, rss},
};

/// A format that a document is written in.
type Format = fn(Posts) -> Document;

const FORMATS: [(&str, Format); 3] = [
    ("RSS", |posts| rss(posts)),
    ("Atom", |posts| atom(posts)),
    ("Atom with `updated` only", updated_only),
];

/// Atom whose entries have no `published`.
fn updated_only(posts: Posts) -> Document {
    let document = atom(posts);
    let mut text = String::from_utf8(document.body).unwrap();
    while let (Some(start), Some(end)) = (text.find("<published>"), text.find("</published>")) {
        text.replace_range(start..end + "</published>".len(), "");
    }
    Document {
        body: text.into_bytes(),
        ..document
    }
}

/// The name of a post: the last word of its title.
fn name(post: &Post) -> String {
    post.title
        .split_whitespace()
        .last()
        .unwrap_or_default()
        .to_owned()
}

/// The number of a post's letter.
fn number(post: &Post) -> i64 {
    i64::from(name(post).bytes().next().unwrap_or_default())
}

/// A time of day of its own, so that no two posts are of one second.
fn at_its_own_time(post: &mut Post) {
    post.published = post.published.map(|at| at + 30_000 + number(post) * 61);
}

async fn total(blog: &Blog) -> u64 {
    blog.store.feed(blog.feed.no).await.unwrap().items.total
}

/// A scheme of ids, links and dates.
type Scheme = fn(&mut Post);

/// Shows a blog by one scheme and then by another, with a new post at once and one a day later, and
/// older posts again at the end: nothing may come twice, and nothing may end.
async fn check(what: &str, before: Scheme, after: Scheme) {
    for (format, document) in FORMATS {
        check_as(&format!("{what}, {format}"), document, before, after).await;
    }
}

async fn check_as(what: &str, document: Format, before: Scheme, after: Scheme) {
    let by = |letters: &str, scheme: Scheme| {
        document(Posts::from(letters).each(at_its_own_time).each(scheme))
    };
    let mut blog = Blog::of(by("nmlkjihgfe", before)).await;
    assert_eq!(
        blog.shows(by("ponmlkjihg", before)).await,
        "+o +p",
        "{what}"
    );
    let told = blog.shows(by("qponmlkjih", after)).await;
    let new = |told: &str| -> Vec<String> {
        told.split(' ')
            .filter(|word| !word.is_empty() && !word.starts_with(['*', 'r']))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(new(&told), ["+q"], "{what}: {told}");
    assert_eq!(blog.shows(by("rqponmlkji", after)).await, "+r", "{what}");
    let told = blog.shows(by("rqponmlkjihgfe", after)).await;
    assert_eq!(
        new(&told),
        [""; 0],
        "{what}: older posts come under the new scheme: {told}"
    );
    let told = blog.stays(9 * 24).await;
    assert_eq!(told, "", "{what}: afterwards");
    assert_eq!(total(&blog).await, 14, "{what}");
}

fn unchanged(_: &mut Post) {}

#[tokio::test(start_paused = true)]
async fn another_scheme_of_urls() {
    check("https", unchanged, |post| {
        (post.id, post.link) = (
            post.id.replace("http:", "https:"),
            post.link.replace("http:", "https:"),
        );
    })
    .await;
    check("www", unchanged, |post| {
        (post.id, post.link) = (
            post.id.replace("//blog", "//www.blog"),
            post.link.replace("//blog", "//www.blog"),
        );
    })
    .await;
    check("another host", unchanged, |post| {
        (post.id, post.link) = (
            post.id.replace("blog.", "new."),
            post.link.replace("blog.", "new."),
        );
    })
    .await;
    check(
        "a slash at the end",
        |post| post.id = post.link.clone(),
        |post| {
            post.link.push('/');
            post.id = post.link.clone();
        },
    )
    .await;
    check(
        "another host and path",
        |post| post.id = post.link.clone(),
        |post| {
            post.link = format!("https://new.example/weblog/{}/", name(post));
            post.id = post.link.clone();
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn another_scheme_of_permalinks() {
    check(
        "`?p=N` to pretty links",
        |post| post.link = post.id.clone(),
        |post| post.id = post.link.clone(),
    )
    .await;
    check(
        "pretty links to `?p=N`",
        |post| post.id = post.link.clone(),
        |post| post.link = post.id.clone(),
    )
    .await;
    check("slugs mended, ids kept", unchanged, |post| {
        post.link = format!("http://blog.example/2026/the-post-called-{}", name(post));
    })
    .await;
    check(
        "slugs mended, and the ids with them",
        |post| post.id = post.link.clone(),
        |post| {
            post.link = format!("http://blog.example/2026/the-post-called-{}", name(post));
            post.id = post.link.clone();
        },
    )
    .await;
    check(
        "`index.php` before the path",
        |post| post.id = post.link.clone(),
        |post| {
            post.link = format!("http://blog.example/index.php/archives/{}", number(post));
            post.id = post.link.clone();
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn another_scheme_of_ids() {
    let tag: Scheme = |post| post.id = format!("tag:blog.example,2026:{}", name(post));
    check("`tag:` in place of a URL", unchanged, tag).await;
    check("a URL in place of `tag:`", tag, |post| {
        post.id = post.link.clone()
    })
    .await;
    check("numbers, links kept", unchanged, |post| {
        post.id = format!("{} at blog", 1000 + number(post))
    })
    .await;
    check(
        "numbers, of which none stays its own",
        |post| post.id = format!("{}", number(post)),
        |post| {
            post.id = format!("post-{}", 500 - number(post));
        },
    )
    .await;
    check("UUIDs, links new as well", unchanged, |post| {
        post.id = format!("urn:uuid:00000000-0000-4000-8000-{:012}", number(post));
        post.link = format!("https://elsewhere.example/{}", number(post) * 7);
    })
    .await;
    check("another tag and another link", tag, |post| {
        post.id = format!("tag:new.example,2026:item/{}", number(post));
        post.link = format!("https://new.example/item/{}", number(post));
    })
    .await;
}

/// Id and link by another software; what tells the posts is title, date and text.
fn anew(post: &mut Post) {
    post.id = format!("https://new.example/node/{}", number(post));
    post.link = post.id.clone();
}

#[tokio::test(start_paused = true)]
async fn other_dates_with_ids_and_links_new() {
    check("an hour later", unchanged, |post| {
        anew(post);
        post.published = post.published.map(|at| at + 3600);
    })
    .await;
    check("all later by the same odd time", unchanged, |post| {
        anew(post);
        post.published = post.published.map(|at| at + 5 * 86_400 + 1234);
    })
    .await;
    check("cut to the minute", unchanged, |post| {
        anew(post);
        post.published = post.published.map(|at| at - at % 60);
    })
    .await;
    check("cut to the day", unchanged, |post| {
        anew(post);
        post.published = post.published.map(|at| at - at % 86_400);
    })
    .await;
    check_as("dates left out", rss, unchanged, |post| {
        anew(post);
        post.published = None;
    })
    .await;
    check_as(
        "no dates before either",
        rss,
        |post| post.published = None,
        |post| {
            anew(post);
            post.published = None;
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn dates_given_anew_to_each_post() {
    let later: Scheme = |post| {
        post.id = format!("item-{}", number(post) * 7919);
        post.published = post.published.map(|at| at + 5000 + number(post) * 977);
        post.updated = post.published;
    };
    let imported: Scheme = |post| {
        anew(post);
        // Software that reads in an archive writes it in a minute.
        post.published = post.published.map(|_| 1_790_000_000 + number(post));
        post.updated = post.published;
    };
    for (format, document) in FORMATS {
        for (what, after) in [("ids new", later), ("ids and links new", imported)] {
            let by = |letters: &str, scheme: Scheme| {
                document(Posts::from(letters).each(at_its_own_time).each(scheme))
            };
            let mut blog = Blog::of(by("ponmlkjihg", unchanged)).await;
            let told = blog.shows(by("qponmlkjih", after)).await;
            assert_eq!(told.matches('+').count(), 1, "{what}, {format}: {told}");
            assert_eq!(blog.stays(9 * 24).await, "", "{what}, {format}: afterwards");
            assert_eq!(total(&blog).await, 11, "{what}, {format}");
        }
    }
}

/// A list that is made anew each day shows some of the same things at another date: they are
/// entries of their own.
#[tokio::test(start_paused = true)]
async fn lists_made_anew_are_no_change_of_scheme() {
    let list = |letters: &str, day: i64| {
        let mut posts = Posts::from(letters);
        for post in &mut posts.0 {
            post.id = format!("{}#{day}", post.id);
            post.published = Some(1_780_000_000 + day * 86_400);
            post.updated = post.published;
        }
        rss(posts)
    };
    let mut blog = Blog::of(list("abcdefgh", 1)).await;
    let told = blog.shows(list("abcdefgh", 2)).await;
    assert_eq!(
        told.matches('+').count(),
        8,
        "one date for all tells no order: {told}"
    );
    let ranked = |letters: &str, day: i64| {
        let mut posts = Posts::from(letters);
        for (rank, post) in (0..).zip(&mut posts.0) {
            post.id = format!("{}#{day}", post.id);
            post.published = Some(1_780_000_000 + day * 86_400 - rank * 61);
            post.updated = post.published;
        }
        rss(posts)
    };
    let mut blog = Blog::of(ranked("abcdefgh", 1)).await;
    let told = blog.shows(ranked("hcafbgde", 2)).await;
    assert_eq!(told.matches('+').count(), 8, "another order: {told}");
}

#[tokio::test(start_paused = true)]
async fn other_texts_with_ids_and_links_new() {
    check("excerpts", unchanged, |post| {
        anew(post);
        post.text = format!("{} [...]", &post.text[..10]);
    })
    .await;
    check("another theme's markup", unchanged, |post| {
        anew(post);
        post.text = format!("&lt;div class=\"entry\"&gt;{}&lt;/div&gt;", post.text);
    })
    .await;
    check("titles mended, links kept", unchanged, |post| {
        post.id = format!("item {}", number(post));
        post.title = post.title.replace("The post", "A post");
    })
    .await;
}

/// `updated` in the place of `published`, with everything else new but title and text.
#[tokio::test(start_paused = true)]
async fn updated_in_place_of_published() {
    let by = |letters: &str| Posts::from(letters).each(at_its_own_time);
    let mut blog = Blog::of(atom(by("ponmlkjihg"))).await;
    let told = blog.shows(updated_only(by("qponmlkjih").each(anew))).await;
    assert_eq!(told.matches('+').count(), 1, "{told}");
    assert_eq!(total(&blog).await, 11);
    assert_eq!(blog.stays(9 * 24).await, "");

    // The dates of the last change were others.
    let changed =
        |posts: Posts| posts.each(|post| post.updated = post.published.map(|at| at + 777));
    let mut blog = Blog::of(atom(changed(by("ponmlkjihg")))).await;
    let told = blog
        .shows(updated_only(changed(by("qponmlkjih")).each(anew)))
        .await;
    assert_eq!(told.matches('+').count(), 1, "{told}");
    assert_eq!(total(&blog).await, 11);
}

/// Puts a session into the addresses of a post.
type InSession = fn(&mut Post, &str);

#[tokio::test(start_paused = true)]
async fn sessions_in_links_and_ids_make_no_new_items() {
    let schemes: [(&str, InSession); 4] = [
        ("PHPSESSID", |post, session| {
            post.link = format!("{}?PHPSESSID={session}", post.link);
            post.id = post.link.clone();
        }),
        ("jsessionid", |post, session| {
            post.link = format!("{};jsessionid={session}", post.link);
            post.id = post.link.clone();
        }),
        ("sid", |post, session| {
            post.link = format!(
                "http://blog.example/viewtopic.php?t={}&amp;sid={session}",
                number(post)
            );
            post.id = post.link.clone();
        }),
        ("campaigns", |post, session| {
            post.link = format!("{}?utm_source=feed&amp;utm_campaign={session}", post.link);
            post.id = post.link.clone();
        }),
    ];
    for (what, scheme) in schemes {
        for (format, document) in FORMATS {
            let by = |letters: &str, visit: u32| {
                let session = format!("{:032x}", u128::from(visit) * 0x1234_5678_9abc_def1_2345);
                document(Posts::from(letters).each(|post| scheme(post, &session)))
            };
            let mut blog = Blog::of(by("jihgfedcba", 1)).await;
            for visit in 2..40 {
                assert_eq!(
                    blog.shows(by("jihgfedcba", visit)).await,
                    "",
                    "{what}, {format}, visit {visit}"
                );
            }
            assert_eq!(
                blog.shows(by("kjihgfedcb", 99)).await,
                "+k",
                "{what}, {format}"
            );
            assert_eq!(total(&blog).await, 11, "{what}, {format}");
        }
    }
}

/// A parameter that nobody knows is an edit of the link, which the flood limiter keeps back; it is
/// no new post.
#[tokio::test(start_paused = true)]
async fn an_unknown_parameter_that_changes_with_every_poll_makes_no_new_items() {
    for (format, document) in FORMATS {
        let by = |letters: &str, visit: usize| {
            document(Posts::from(letters).each(|post| {
                post.link = format!("{}?r={}", post.link, visit * 7919 + 13);
                post.id = post.link.clone();
            }))
        };
        let mut blog = Blog::of(by("jihgfedcba", 1)).await;
        let mut edits = 0;
        for visit in 2..60 {
            let told = blog.shows(by("jihgfedcba", visit)).await;
            assert!(
                !told.contains(['+', '-', '^']),
                "{format}, visit {visit}: {told}"
            );
            edits += told.matches('*').count();
        }
        assert!(edits <= 10 * 27, "{format}: {edits} edits");
        assert_eq!(total(&blog).await, 10, "{format}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_id_and_one_link_for_all_posts() {
    let schemes: [(&str, Scheme); 3] = [
        ("the site's", |post| {
            (post.id, post.link) = ("http://blog.example/".into(), "http://blog.example/".into());
        }),
        ("one id, links their own", |post| {
            post.id = "http://blog.example/".into()
        }),
        ("an id of nothing", |post| {
            (post.id, post.link) = ("0".into(), "http://blog.example/blog".into())
        }),
    ];
    for (what, scheme) in schemes {
        for (format, document) in &FORMATS[..2] {
            let by =
                |letters: &str| document(Posts::from(letters).each(at_its_own_time).each(scheme));
            let mut blog = Blog::of(by("fedcba")).await;
            assert_eq!(total(&blog).await, 6, "{what}, {format}");
            assert_eq!(blog.shows(by("gfedcb")).await, "+g", "{what}, {format}");
            assert_eq!(blog.shows(by("ihgfed")).await, "+h +i", "{what}, {format}");
            assert_eq!(blog.stays(48).await, "", "{what}, {format}");
            assert_eq!(blog.shows(by("ihgfed")).await, "", "{what}, {format}");
            let edited = Posts::from("ihgfed").each(at_its_own_time).each(scheme);
            let edited = edited.but("g", |post| {
                post.text = "Something else is said of it now.".into()
            });
            assert_eq!(blog.shows(document(edited)).await, "*g", "{what}, {format}");
            assert_eq!(total(&blog).await, 9, "{what}, {format}");
        }
    }
}

/// Two copies of which one lags behind, by turns: the older changes nothing.
#[tokio::test(start_paused = true)]
async fn an_older_copy_of_a_stale_cache_changes_nothing() {
    let edited = |post: &mut Post| {
        post.text = "What there is to say of it now.".into();
        post.updated = post.published.map(|at| at + 86_400);
    };
    let (old, new) = (
        Posts::from("jihgfedcba"),
        Posts::from("jihgfedcba").but("h", edited),
    );
    for document in [(|posts| atom(posts)) as Format, updated_only] {
        let mut blog = Blog::of(document(old.clone())).await;
        assert_eq!(blog.shows(document(new.clone())).await, "*h");
        for _ in 0..30 {
            assert_eq!(blog.shows(document(old.clone())).await, "");
            assert_eq!(blog.stays(2).await, "");
            assert_eq!(blog.shows(document(new.clone())).await, "");
        }
        // What lasts is meant.
        assert_eq!(blog.shows(document(old.clone())).await, "");
        assert_eq!(blog.stays(2 * 24).await, "24 h: *h");
    }
}

/// Shows documents one after the other, and checks the posts that are new in each.
async fn check_apart(what: &str, steps: &[(Vec<Post>, &str)]) {
    for (format, document) in FORMATS {
        let mut blog = Blog::of(document(Posts(steps[0].0.clone()))).await;
        for (posts, expect) in &steps[1..] {
            let told = blog.shows(document(Posts(posts.clone()))).await;
            let new: Vec<&str> = told
                .split(' ')
                .filter(|word| word.starts_with(['+', '*', '-']))
                .collect();
            assert_eq!(new.join(" "), *expect, "{what}, {format}");
        }
    }
}

/// Ordinary posts of these days, the newest first.
fn days(days: std::ops::RangeInclusive<i64>) -> Vec<Post> {
    days.rev()
        .map(|day| Post {
            published: Some(1_767_225_600 + day * 86_400 + 40_000),
            ..Post::of_day(&format!("n{day}"), day)
        })
        .collect()
}

fn with(first: Post, rest: Vec<Post>) -> Vec<Post> {
    std::iter::once(first).chain(rest).collect()
}

#[tokio::test(start_paused = true)]
async fn posts_with_one_title_are_as_many_as_there_are() {
    let links = |day: i64| {
        Post {
            title: "Links for today".into(),
            text: format!("First, then link {day}."),
            ..days(day..=day)[0].clone()
        }
        .named(&format!("links{day}"))
    };
    let steps = [
        (with(links(10), days(4..=9)), ""),
        (with(links(11), days(4..=9)), "+today"),
        (with(links(12), days(6..=11)), "+n10 +n11 +today"),
        (
            vec![links(15), links(14), links(13)],
            "+today +today +today",
        ),
    ];
    check_apart("a recurring title", &steps).await;

    // A picture a day, twice on one day, and nothing else is said.
    let photo = |name: &str, day: i64| Post {
        title: "Photo".into(),
        text: format!("&lt;img src=\"/{name}.jpg\"&gt;"),
        ..Post::of_day(name, day)
    };
    let steps = [
        (with(photo("a", 10), days(4..=9)), ""),
        (with(photo("b", 10), days(4..=9)), "+Photo"),
        (with(photo("c", 11), days(4..=9)), "+Photo"),
    ];
    check_apart("two pictures of a day", &steps).await;
}

#[tokio::test(start_paused = true)]
async fn posts_that_are_written_from_a_template_are_as_many_as_there_are() {
    let thread = |day: i64| {
        Post {
            title: "The open thread".into(),
            text: "Say here whatever you have to say this week.".into(),
            ..days(day..=day)[0].clone()
        }
        .named(&format!("thread{day}"))
    };
    let steps = [
        (with(thread(10), days(4..=9)), ""),
        (
            with(thread(17), days(11..=16)),
            "+n11 +n12 +n13 +n14 +n15 +n16 +thread",
        ),
        (with(thread(24), days(11..=16)), "+thread"),
        (
            vec![thread(45), thread(38), thread(31)],
            "+thread +thread +thread",
        ),
    ];
    check_apart("a template", &steps).await;
}

#[tokio::test(start_paused = true)]
async fn links_of_one_day_and_posts_with_one_text_are_as_many_as_there_are() {
    let link = |name: &str| Post {
        link: "http://elsewhere.example/story".into(),
        title: format!("See {name}"),
        text: "Worth to be read by everybody.".into(),
        ..Post::of_day(name, 10)
    };
    let steps = [
        (with(link("a"), days(4..=9)), ""),
        (with(link("b"), days(4..=9)), "+b"),
        (with(link("c"), days(5..=9)), "+c"),
    ];
    check_apart("links to one page", &steps).await;
}

#[tokio::test(start_paused = true)]
async fn a_post_that_is_published_again_with_another_date_is_another() {
    let post = |name: &str, day: i64| {
        Post {
            title: "How to bake".into(),
            text: "Flour, water, salt, and much patience.".into(),
            ..days(day..=day)[0].clone()
        }
        .named(name)
    };
    let steps = [
        (with(post("a", 10), days(4..=9)), ""),
        (
            with(post("b", 15), days(11..=14)),
            "+n11 +n12 +n13 +n14 +bake",
        ),
    ];
    check_apart("published again", &steps).await;

    // A sponsor's notice, without a date, comes every week under a new id.
    let notice = |n: i64| Post {
        id: format!("notice {n}"),
        link: "http://sponsor.example/".into(),
        title: "Our sponsor".into(),
        published: None,
        ..Post::of_day("sponsor", 0)
    };
    let undated = |range: std::ops::RangeInclusive<i64>| {
        days(range)
            .into_iter()
            .map(|post| Post {
                published: None,
                ..post
            })
            .collect()
    };
    let mut blog = Blog::of(rss(Posts(with(notice(1), undated(4..=9))))).await;
    assert_eq!(
        blog.shows(rss(Posts(with(notice(2), undated(6..=11)))))
            .await,
        "+n10 +n11 +sponsor"
    );
}

trait Named {
    /// The same under another id and link.
    fn named(self, name: &str) -> Self;
}

impl Named for Post {
    fn named(self, name: &str) -> Self {
        Self {
            id: format!("http://blog.example/?p={name}"),
            link: format!("http://blog.example/{name}.html"),
            ..self
        }
    }
}

/// An entry that two items could be is neither.
#[tokio::test(start_paused = true)]
async fn what_could_be_two_posts_is_another() {
    let twin = |name: &str| {
        Post {
            title: "Twins".into(),
            text: "The very same words in both of them.".into(),
            ..days(10..=10)[0].clone()
        }
        .named(name)
    };
    let steps = [
        (with(twin("a"), with(twin("b"), days(4..=9))), ""),
        (with(twin("c"), days(4..=9)), "+Twins"),
    ];
    check_apart("twins", &steps).await;
}
