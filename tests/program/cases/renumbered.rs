//! Ids with numbers in them that say something else than which post it is: a revision, a row that is
//! used again, a place in the list, or the count of an import.

use super::{
    blog::Blog,
    document::{Document, Post, Posts, atom, rss},
};

type Format = fn(Posts) -> Document;

const FORMATS: [(&str, Format); 2] = [("RSS", |posts| rss(posts)), ("Atom", |posts| atom(posts))];

/// A time of day of its own, so that no two posts are of one second.
fn at_its_own_time(post: &mut Post) {
    post.published = post.published.map(|at| at + 30_017 + at / 86_400 % 977);
}

fn posts(letters: &str) -> Posts {
    Posts::from(letters).each(at_its_own_time)
}

async fn total(blog: &Blog) -> u64 {
    blog.store.feed(blog.feed.no).await.unwrap().items.total
}

/// A post in this revision: another id, title and text, and the link and the second of before.
fn revised(post: &mut Post, form: &str, revision: u32) {
    let name = post.title.split(' ').next_back().unwrap().to_owned();
    post.id = format!("{}{}", post.link, form.replace('7', &revision.to_string()));
    if revision > 0 {
        post.title = format!("In revision {revision} all is otherwise with {name}");
        post.text = format!("Of {name} nothing was true {revision} times, and this is the news.");
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_with_a_revision_in_it_makes_no_second_item() {
    for form in [
        "#7",
        "?rev=7",
        "-7",
        "/7",
        "@7",
        ";v=7",
        "#r7-2026",
        "&etag=a7f",
    ] {
        for (format, document) in FORMATS {
            let by = |letters: &str, revisions: [u32; 2]| {
                let posts = posts(letters).each(|post| revised(post, form, 0));
                let posts = posts.but("d", |post| revised(post, form, revisions[0]));
                document(posts.but("c", |post| revised(post, form, revisions[1])))
            };
            let mut blog = Blog::of(by("fedcba", [0, 0])).await;
            let mut told = Vec::new();
            for revisions in [[1, 0], [2, 0], [3, 1], [3, 2]] {
                told.push(blog.shows(by("fedcba", revisions)).await);
                told.push(blog.stays(30).await);
            }
            let told = told.join("|");
            assert_eq!(told, "*d||*d||*c *d||*c|", "{form}, {format}");
            assert_eq!(total(&blog).await, 6, "{form}, {format}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_revision_with_another_date_is_the_post_of_its_link() {
    for (format, document) in FORMATS {
        let by = |letters: &str, revision: u32| {
            let posts = posts(letters).each(|post| revised(post, "#7", 0));
            let again = |post: &mut Post| {
                revised(post, "#7", revision);
                post.published = post.published.map(|at| at + i64::from(revision) * 7_777);
            };
            document(posts.but("d", again))
        };
        let mut blog = Blog::of(by("fedcba", 0)).await;
        for revision in 1..4 {
            assert_eq!(blog.shows(by("fedcba", revision)).await, "*d", "{format}");
            assert_eq!(blog.stays(30).await, "", "{format}");
        }
        assert_eq!(total(&blog).await, 6, "{format}");
    }
}

#[tokio::test(start_paused = true)]
async fn comments_with_the_link_of_one_post_are_several() {
    let by = |letters: &str| {
        let number = |post: &mut Post| {
            let name = post.title.split(' ').next_back().unwrap().to_owned();
            post.link = "http://blog.example/post".into();
            post.id = format!("{}#comment-{name}", post.link);
        };
        rss(posts(letters).each(number))
    };
    let mut blog = Blog::of(by("fedcba")).await;
    for (letters, told) in [("gfedcb", "+g"), ("hgedcb", "+h"), ("ihgedc", "+i")] {
        let found = blog.shows(by(letters)).await;
        assert!(found.contains(told) && !found.contains('*'), "{found}");
    }
    assert_eq!(total(&blog).await, 9);
}

/// Posts by the numbers of their rows: `g` has that of `c`, which was deleted before.
fn numbered(letters: &str) -> Posts {
    posts(letters).each(|post| {
        let number = match post.title.chars().next_back().unwrap() {
            'g' => 3,
            'h' => 7,
            name => u32::from(name) - u32::from('a') + 1,
        };
        post.id = number.to_string();
    })
}

#[tokio::test(start_paused = true)]
async fn a_number_that_is_used_again_brings_no_deleted_post_back_as_another() {
    for days in [1, 45] {
        for (format, document) in FORMATS {
            let mut blog = Blog::of(document(numbered("fedcba"))).await;
            let told = blog.shows(document(numbered("fedba"))).await;
            assert_eq!(told, "", "{format}");
            let told = blog.stays(48).await;
            assert!(told.contains("-c absent-bracketed"), "{told}");
            blog.stays(24 * days).await;
            let what = format!("{format}, after {days} days");
            let told = blog.shows(document(numbered("gfedba"))).await;
            assert_eq!(told, "+g", "{what}");
            assert_eq!(blog.stays(3).await, "", "{what}");
            let told = blog.shows(document(numbered("hgfedb"))).await;
            assert_eq!(told, "+h", "{what}");
            assert_eq!(total(&blog).await, 8, "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_number_that_is_used_again_at_once_is_another_post() {
    for (format, document) in FORMATS {
        let mut blog = Blog::of(document(numbered("fedcba"))).await;
        let told = blog.shows(document(numbered("gfedba"))).await;
        assert_eq!(told, "+g", "{format}");
        let told = blog.stays(48).await;
        assert!(told.contains("-c absent-bracketed"), "{format}: {told}");
        assert_eq!(total(&blog).await, 7, "{format}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_import_that_numbers_all_posts_anew_makes_no_second_items() {
    for has_links in [true, false] {
        for (format, document) in FORMATS {
            let by = |letters: &str, from: i64| {
                let mut at = from + i64::try_from(letters.len()).unwrap();
                let posts = posts(letters);
                let mut numbered = Vec::new();
                for mut post in posts.0 {
                    post.id = at.to_string();
                    if !has_links {
                        post.link = String::new();
                    }
                    at -= 1;
                    numbered.push(post);
                }
                document(Posts(numbered))
            };
            let what = format!("{format}, links {has_links}");
            let mut blog = Blog::of(by("jihgfedcba", 0)).await;
            // One of ten is gone, and all behind it have another number.
            assert_eq!(blog.shows(by("jihgedcba", 3)).await, "", "{what}");
            let told = blog.stays(48).await;
            assert!(told.contains("-f absent-bracketed"), "{what}: {told}");
            assert_eq!(blog.shows(by("kjihgedcb", 4)).await, "+k", "{what}");
            assert_eq!(total(&blog).await, 11, "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn places_in_the_list_are_no_ids() {
    for has_links in [true, false] {
        for (format, document) in FORMATS {
            let by = |letters: &str| {
                let posts = posts(letters);
                let numbered = posts.0.into_iter().zip(1..).map(|(mut post, at)| {
                    post.id = at.to_string();
                    if !has_links {
                        post.link = String::new();
                    }
                    post
                });
                document(Posts(numbered.collect()))
            };
            let what = format!("{format}, links {has_links}");
            let mut blog = Blog::of(by("fedcba")).await;
            for (letters, told) in [("gfedcb", "+g"), ("hgfedc", "+h"), ("ihgfed", "+i")] {
                assert_eq!(blog.shows(by(letters)).await, told, "{what}");
                assert_eq!(blog.stays(30).await, "", "{what}");
            }
            assert_eq!(total(&blog).await, 9, "{what}");
            let edited = posts("ihgfed").but("g", |post| post.text = "Another text.".into());
            let edited = edited.0.into_iter().zip(1..).map(|(mut post, at)| {
                post.id = at.to_string();
                if !has_links {
                    post.link = String::new();
                }
                post
            });
            let told = blog.shows(document(Posts(edited.collect()))).await;
            assert_eq!(told, "*g", "{what}");
            assert_eq!(blog.shows(by("ihged")).await, "*g", "{what}");
            let told = blog.stays(48).await;
            assert!(told.contains("-f absent-bracketed"), "{what}: {told}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn two_nodes_with_two_revisions_of_the_ids_make_no_second_items() {
    for (format, document) in FORMATS {
        let by =
            |revision: u32| document(posts("fedcba").each(|post| revised(post, "#7", revision)));
        let mut blog = Blog::of(by(1)).await;
        let mut told = Vec::new();
        for hour in 0..10 * 24_u32 {
            told.push(blog.shows(by(1 + hour % 2)).await);
        }
        let told = told.join(" ");
        assert!(!told.contains(['+', '-', '^']), "{format}: {told}");
        assert!(told.matches('*').count() <= 3 * 6, "{format}: {told}");
        assert_eq!(total(&blog).await, 6, "{format}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_capped_list_that_says_to_be_whole_deletes_nothing_behind_a_cache() {
    let by = |letters: &str| {
        let document = atom(posts(letters));
        let text = String::from_utf8(document.body).unwrap();
        let complete = "<fh:complete xmlns:fh=\"http://purl.org/syndication/history/1.0\"/><entry>";
        Document {
            body: text.replacen("<entry>", complete, 1).into_bytes(),
            ..document
        }
    };
    let newest_first: String = ('a'..='z').rev().collect();
    let window = |day: usize| &newest_first[20 - day..26 - day];
    for copy_hours in [1, 5, 9] {
        let mut blog = Blog::of(by(window(0))).await;
        let mut told = Vec::new();
        for hour in 0..15 * 24 {
            let day = 1 + hour / 24;
            // Of a cache that was filled on the day before.
            let day = day - usize::from(hour % copy_hours.max(2) == 0 && hour % 24 < 20);
            told.push(blog.shows(by(window(day))).await);
        }
        let told: Vec<&String> = told.iter().filter(|told| told.contains('-')).collect();
        assert!(told.is_empty(), "every {copy_hours} h: {told:?}");
        assert_eq!(total(&blog).await, 21);
    }
}

/// Posts of which id and link are this number.
fn named_by(letters: &str, number: impl Fn(usize, char) -> i64) -> Posts {
    let numbered = posts(letters).0.into_iter().zip(letters.chars());
    let name = |(at, (mut post, letter)): (usize, (Post, char))| {
        post.link = format!("http://blog.example/?p={}", number(at, letter));
        post.id = post.link.clone();
        post
    };
    Posts(numbered.enumerate().map(name).collect())
}

#[tokio::test(start_paused = true)]
async fn an_import_that_adds_one_to_ids_and_links_makes_of_no_post_its_neighbour() {
    for (format, document) in FORMATS {
        for [first, second] in [[1, 1], [1, -1], [-1, 3], [2, 5]] {
            let by = |letters: &str, more: i64| {
                document(named_by(letters, |_, letter| {
                    more + i64::from(u32::from(letter))
                }))
            };
            let what = format!("{format}, {first} and {second}");
            let mut blog = Blog::of(by("onmlkjihgfedcba", 0)).await;
            assert_eq!(blog.shows(by("onmlkjihgfedcba", first)).await, "", "{what}");
            assert_eq!(blog.stays(30).await, "", "{what}");
            // One of ten is gone with the next one.
            let moved = first + second;
            assert_eq!(blog.shows(by("onmlkjigfedcba", moved)).await, "", "{what}");
            let told = blog.stays(48).await;
            assert_eq!(told, "25 h: -h absent-bracketed", "{what}");
            assert_eq!(
                blog.shows(by("ponmlkjigfedcb", moved)).await,
                "+p",
                "{what}"
            );
            let edited = named_by("ponmlkjigfedcb", |_, letter| {
                moved + i64::from(u32::from(letter))
            });
            let edited = edited.but("f", |post| {
                post.title = "All words are others in this f".into();
                post.text = "And nothing of what was said is left.".into();
            });
            assert_eq!(blog.shows(document(edited)).await, "*f", "{what}");
            assert_eq!(total(&blog).await, 16, "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn places_in_the_list_are_neither_ids_nor_links() {
    for (format, document) in FORMATS {
        let by =
            |letters: &str| document(named_by(letters, |at, _| 1 + i64::try_from(at).unwrap()));
        let mut blog = Blog::of(by("hgfedcba")).await;
        for (letters, told) in [
            ("ihgfedcb", "+i"),
            ("jihgfedc", "+j"),
            ("lkjihgfe", "+k +l"),
        ] {
            assert_eq!(blog.shows(by(letters)).await, told, "{format}");
            assert_eq!(blog.stays(30).await, "", "{format}");
        }
        // An older one moves up.
        assert_eq!(blog.shows(by("lkjihged")).await, "", "{format}");
        let told = blog.stays(48).await;
        assert_eq!(told, "1 h: -f absent-bracketed", "{format}");
        assert_eq!(blog.shows(by("mkjihged")).await, "+m", "{format}");
        let told = blog.stays(48).await;
        assert_eq!(told, "1 h: -l absent-bracketed", "{format}");
        assert_eq!(blog.shows(by("nmkjihge")).await, "+n", "{format}");
        assert_eq!(blog.stays(30).await, "", "{format}");
        assert_eq!(total(&blog).await, 14, "{format}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_post_at_the_address_of_a_deleted_one_is_another_unless_words_or_date_are_the_same() {
    let name = |_, letter| i64::from(u32::from(letter));
    let reused = |change: fn(&mut Post)| {
        let posts = named_by("gfedba", name);
        posts.but("g", move |post| {
            post.link = format!("http://blog.example/?p={}", u32::from('c'));
            post.id = post.link.clone();
            change(post);
        })
    };
    let of_c = || posts("c").0.remove(0);
    for (format, document) in FORMATS {
        for days in [0, 20] {
            for (what, change, told) in [
                ("all is other", (|_| ()) as fn(&mut Post), "+g"),
                (
                    "its title",
                    |post| post.title = "The post called c".into(),
                    "^c",
                ),
                (
                    "its text",
                    |post| post.text = "What there is to say of c.".into(),
                    "^g",
                ),
                ("its date", |post| post.published = None, "^g"),
            ] {
                let mut blog = Blog::of(document(named_by("fedcba", name))).await;
                blog.shows(document(named_by("fedba", name))).await;
                let gone = blog.stays(48).await;
                assert!(gone.contains("-c absent-bracketed"), "{gone}");
                blog.stays(24 * days).await;
                let mut given = reused(change);
                if what == "its date" {
                    given.0[0].published = of_c().published;
                }
                let first = blog.shows(document(given)).await;
                let then = blog.stays(60).await;
                let found = format!("{first}{}", then.split(": ").last().unwrap());
                assert_eq!(found, told, "{format}, {what}, {days} days");
            }
        }
    }
}

/// An edit that makes a post like all others.
type Sameness = fn(&mut Post);

/// Nothing but the title and one other witness tells the posts apart.
const ALIKE: [(&str, Sameness); 3] = [
    ("one text", |post| {
        post.text = "Read on at our site, where all of it stands.".into();
    }),
    ("one date", |post| post.published = Post::of('z').published),
    ("one date and no text", |post| {
        post.published = Post::of('z').published;
        post.text = String::new();
    }),
];

#[tokio::test(start_paused = true)]
async fn an_import_that_adds_one_is_known_by_titles_where_texts_or_dates_are_alike() {
    for (format, document) in FORMATS {
        for (what, change) in ALIKE {
            for all in ["lkjihgfedcba", "cba"] {
                let by = |letters: &str, more: i64| {
                    let name = |_, letter| more + i64::from(u32::from(letter));
                    document(named_by(letters, name).each(change))
                };
                let mut blog = Blog::of(by(all, 0)).await;
                assert_eq!(blog.shows(by(all, 1)).await, "", "{format}, {what}");
                assert_eq!(blog.stays(30).await, "", "{format}, {what}");
                let new = format!("m{}", &all[..all.len() - 1]);
                assert_eq!(blog.shows(by(&new, 1)).await, "+m", "{format}, {what}");
                let posts = u64::try_from(all.len()).unwrap();
                assert_eq!(total(&blog).await, posts + 1, "{format}, {what}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn places_in_the_list_are_no_ids_where_texts_or_dates_are_alike() {
    for (format, document) in FORMATS {
        for (what, change) in ALIKE {
            let by = |letters: &str| {
                let name = |at, _| 1 + i64::try_from(at).unwrap();
                document(named_by(letters, name).each(change))
            };
            let mut blog = Blog::of(by("jihgfedcba")).await;
            for (letters, told, then) in [
                ("kjihgfedcb", "+k", ""),
                ("nmlkjihgfe", "+l +m +n", ""),
                ("nmlkihgfed", "", "1 h: -j absent-bracketed"),
                ("nmkihgfe", "", "25 h: -l absent-bracketed"),
            ] {
                let what = format!("{format}, {what}, {letters}");
                assert_eq!(blog.shows(by(letters)).await, told, "{what}");
                assert_eq!(blog.stays(50).await, then, "{what}");
            }
            assert_eq!(total(&blog).await, 14, "{format}, {what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_id_of_a_deleted_post_at_another_address_is_another_post_without_a_date_or_a_text() {
    let changes: [fn(&mut Post); 2] = [
        |post| {
            post.published = None;
            post.text = String::new();
        },
        |post| post.published = Post::of('z').published,
    ];
    for change in changes {
        for days in [0, 45] {
            let by = |letters: &str| rss(numbered(letters).each(change));
            let mut blog = Blog::probed(by("fedcba")).await;
            blog.page("c", 404, "");
            assert_eq!(blog.shows(by("fedba")).await, "");
            let told = blog.stays(48).await;
            assert!(told.contains("-c gone"), "{told}");
            blog.stays(24 * days).await;
            assert_eq!(blog.shows(by("gfedba")).await, "+g", "{days} days");
            assert_eq!(blog.stays(60).await, "", "{days} days");
        }
    }
}
