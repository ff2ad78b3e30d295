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
