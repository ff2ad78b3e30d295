//! What has rested is served as it is shown, whatever held it back; and feeds in which nothing is
//! edited make no edits.

use super::*;
use everfeed_adapters::{Category, Enclosure, Person};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng, rngs::SmallRng};

const HOUR: u64 = 3600;

/// Entries of a document.
const LENGTH: u32 = 10;

/// Reasons for which the entries of a world differ from poll to poll.
#[derive(Clone, Copy, Debug, Default)]
struct World {
    titles_by_turns: bool,
    texts_by_turns: bool,
    advertisements: bool,
    /// "1.2K claps".
    short_counts: bool,
    /// Copies of a cache, with their `updated`.
    caches: bool,
    /// The versions of the titles.
    versions: bool,
    /// The day on which a site was built again; no date of its own at 0.
    built: u32,
}

/// The post of a number and a day, with these enclosures, categories and authors.
fn written(n: u32, day: u32, title: &str, text: String, parts: Entry) -> ParsedEntry {
    let reading = entry(
        &format!("tag:x,2005:{n}"),
        &format!("http://x/{n}"),
        title,
        day,
    );
    let text = Text::html(text);
    let written = Entry {
        content: Some(Body {
            text,
            ..Body::default()
        }),
        enclosures: parts.enclosures,
        categories: parts.categories,
        authors: parts.authors,
        ..Entry::clone(&reading.entry)
    };
    digested(reading.key, written)
}

impl World {
    /// One document. `marks` are the true edits of the entries.
    fn document(self, rng: &mut SmallRng, marks: &[u32]) -> Vec<ParsedEntry> {
        let (node, is_copy) = (rng.random::<bool>(), rng.random_range(0..4) == 0);
        let reading = |n: u32| {
            let mark = marks[n as usize];
            let mut title = format!("The story of the {n} lions");
            if self.titles_by_turns && node {
                title = format!("Die Geschichte von {n} Katzen");
            }
            if self.versions {
                title = format!("version {mark} of post {n}");
            }
            let mut text = format!(
                "<p>{}</p><p>mark {mark}</p>",
                "long words of a post ".repeat(9)
            );
            if self.texts_by_turns && node {
                text = format!("<p>another text at all, mark {mark}</p>");
            }
            if self.advertisements {
                let name = ["shoes", "cars", "tea", "hats", "books"][rng.random_range(0..5)];
                text += &format!("<p>Buy fine {name} here</p>");
            }
            if self.short_counts {
                text += &format!("<p>{}.{}K claps</p>", 1 + mark, rng.random_range(0..9));
            }
            let day = if self.built > 0 { self.built } else { n + 1 };
            let reading = written(n, day, &title, text, Entry::default());
            if self.caches {
                updated(reading, if is_copy { 20 } else { 20 + mark })
            } else {
                reading
            }
        };
        (0..LENGTH).rev().map(reading).collect()
    }
}

impl Held {
    /// Edits that an hourly document tells.
    fn edits(&mut self, document: &[ParsedEntry]) -> usize {
        self.secs += HOUR;
        self.show(document, &[]).len()
    }

    /// The entries that are served otherwise than a document shows them.
    fn differing(&self, document: &[ParsedEntry]) -> Vec<u32> {
        let differs = |reading: &&ParsedEntry| {
            let item = &self.items[&KeyHash::of(NS, &reading.key.stripped()).item_id()];
            item.digests.content != reading.digests.content
        };
        let found = document.iter().filter(differs);
        found
            .map(|reading| {
                u32::try_from(
                    reading.entry.published.as_ref().unwrap().at_us.unwrap() / 86_400_000_000,
                )
                .unwrap()
            })
            .collect()
    }
}

proptest! {
    // A case is weeks of documents: the usual 256 take minutes.
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_has_stood_for_a_day_and_two_polls_is_served_as_it_is_shown(
        seed in any::<u64>(),
        by_304 in any::<bool>(),
        polls in 1..90_usize,
        gap in prop_oneof![Just(1_u64), Just(12)],
        (titles_by_turns, texts_by_turns, advertisements) in any::<(bool, bool, bool)>(),
        (short_counts, caches, versions) in any::<(bool, bool, bool)>(),
    ) {
        let world = World {
            titles_by_turns, texts_by_turns, advertisements, short_counts, caches, versions, built: 0,
        };
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut held = Held::default();
        let mut marks = [0; LENGTH as usize];
        let mut document = Vec::new();
        for _ in 0..polls {
            if rng.random_range(0..5) == 0 {
                marks[rng.random_range(0..marks.len())] += 1;
            }
            document = world.document(&mut rng, &marks);
            held.edits(&document);
        }
        for _ in 0..24 / gap + 2 {
            if by_304 {
                held.secs += gap * HOUR;
                held.rest();
            } else {
                held.secs += (gap - 1) * HOUR;
                held.edits(&document);
            }
        }
        prop_assert_eq!(held.differing(&document), Vec::<u32>::new());
    }
}

/// Edits told in fifteen days of hourly polls.
fn told(world: World) -> usize {
    let mut rng = SmallRng::seed_from_u64(1);
    let mut held = Held::default();
    held.show(&world.document(&mut rng, &[0; 10]), &[]);
    (0..15 * 24)
        .map(|_| held.edits(&world.document(&mut rng, &[0; 10])))
        .sum()
}

#[test]
fn titles_and_texts_that_alternate_make_hardly_any_edits() {
    for texts_by_turns in [false, true] {
        let world = World {
            titles_by_turns: true,
            texts_by_turns,
            ..World::default()
        };
        let told = told(world);
        println!("alternating titles, texts {texts_by_turns}: {told} told of none");
        assert!(told <= 30, "{told}");
    }
}

#[test]
fn a_site_that_is_built_again_makes_no_edits_and_a_real_one_among_them_is_told() {
    let mut rng = SmallRng::seed_from_u64(1);
    let mut held = Held::default();
    let mut marks = [0; LENGTH as usize];
    held.edits(&World::default().document(&mut rng, &marks));
    let mut told = Vec::new();
    for built in 21..33 {
        marks[3] += u32::from(built == 25);
        let world = World {
            built,
            ..World::default()
        };
        for _ in 0..30 {
            told.push(held.edits(&world.document(&mut rng, &marks)));
        }
    }
    println!(
        "built again twelve times: {} told of one",
        told.iter().sum::<usize>()
    );
    assert_eq!((told.iter().sum::<usize>(), told[4 * 30]), (1, 1));
}

#[test]
fn a_text_that_its_publisher_took_back_is_told_after_a_day_though_it_is_dated_before() {
    for by_304 in [false, true] {
        let mut held = Held::default();
        held.show(&[updated(post(1), 9)], &[]);
        let back = updated(entry("tag:x,2005:1", "http://x/1", "taken back", 1), 8);
        let mut told = Vec::new();
        for hour in 0..30 {
            held.secs += HOUR;
            let tells = if by_304 && hour > 0 {
                !held.rest().is_empty()
            } else {
                !held.show(std::slice::from_ref(&back), &[]).is_empty()
            };
            told.extend(tells.then_some(hour));
        }
        assert_eq!(told, [24]);
    }
}

#[test]
fn copies_of_a_cache_that_come_and_go_are_not_told() {
    let mut held = Held::default();
    let newer = updated(entry("tag:x,2005:1", "http://x/1", "newer", 1), 9);
    let copy = updated(post(1), 8);
    held.show(std::slice::from_ref(&newer), &[]);
    for hour in 0..200 {
        held.secs += HOUR;
        let shown = if hour % 7 == 0 { &newer } else { &copy };
        assert!(held.show(std::slice::from_ref(shown), &[]).is_empty());
    }
}

#[test]
fn an_edit_is_told_once_where_old_copies_come_by_turns_and_again_if_it_is_taken_back() {
    let document = |newest: u32, is_edited: bool| -> Vec<ParsedEntry> {
        let shown = (newest - 9..=newest).rev();
        let written = |n: u32| match n {
            5 if is_edited => entry("tag:x,2005:5", "http://x/5", "edited", 5),
            n => post(n),
        };
        shown.map(written).collect()
    };
    let mut held = Held::default();
    held.show(&document(11, false), &[]);
    let mut told = Vec::new();
    for hour in 1..96 {
        let (newest, is_copy) = (11 - hour % 2, hour % 2 == 1);
        held.secs += HOUR;
        told.extend(held.show(&document(newest, hour >= 24 && !is_copy), &[]));
    }
    assert_eq!(told, ["+p1", "~edited"]);
    // The copy before was the first document that showed the former text again.
    for hour in 1..24 {
        held.secs += HOUR;
        let told = held.show(&document(11, false), &[]);
        assert_eq!(told, [""; 0], "after {hour} hours");
    }
    held.secs += HOUR;
    assert_eq!(held.show(&document(11, false), &[]), ["~p5"]);
}

/// Parts of the ten posts of a blog that move without an edit.
#[derive(Clone, Copy, Debug)]
enum Moving {
    RelatedPosts,
    SummariesOfOneNode,
    Schemes,
    /// "1.2K claps", another number every ten hours.
    Claps,
    /// The length of the file, as advertisements are put into it.
    Podcast,
    PodcastWithToken,
    Views,
    CountsInTitles,
    Hours,
    Categories,
    /// One of two servers writes the whole name.
    Authors,
    /// One title in four is the other of two that are tried.
    Titles,
}

const WORDS: [&str; 10] = [
    "rain", "window", "garden", "letter", "harbour", "candle", "mountain", "engine", "silver",
    "bread",
];

/// So many words, the same for each number.
fn words_of(number: u32, count: u32) -> String {
    let word = |at: u32| WORDS[((number * 7 + at * at * 3 + at) % 10) as usize];
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}

/// A post after so many true edits, as it is shown in this hour by one of two nodes.
fn moved(
    moving: Moving,
    rng: &mut SmallRng,
    hour: u32,
    node: bool,
    n: u32,
    mark: u32,
) -> ParsedEntry {
    let mut parts = Entry::default();
    let mut title = format!("The story of {}", words_of(n, 4));
    let mut text = format!(
        "<p>{} mark {mark}, {}</p>",
        words_of(n, 20),
        words_of(n + 3, 30)
    );
    match moving {
        Moving::RelatedPosts => {
            for other in [(); 3].map(|()| rng.random_range(0..60)) {
                text += &format!(
                    "<li><a href=\"http://x/{other}\">{}</a></li>",
                    words_of(other, 5)
                );
            }
        }
        Moving::SummariesOfOneNode if node => text = format!("<p>{} ...</p>", words_of(n, 15)),
        Moving::SummariesOfOneNode => {}
        Moving::Schemes => {
            let scheme = if node { "http" } else { "https" };
            text += &format!("<img src=\"{scheme}://x/a.jpg\"><a href=\"{scheme}://x/b\">b</a>");
        }
        Moving::Claps => text += &format!("<p>{}.{}K claps</p>", 1 + hour / 100, hour / 10 % 10),
        Moving::Podcast | Moving::PodcastWithToken => {
            let token = match moving {
                Moving::Podcast => String::new(),
                _ => format!("?token={}", rng.random::<u32>()),
            };
            parts.enclosures.push(Enclosure {
                url: format!("http://x/{n}.mp3{token}"),
                length: Some(rng.random_range(1_000_000..1_009_000).to_string()),
                ..Enclosure::default()
            });
        }
        Moving::Views => text += &format!("<p>{} views</p>", 1000 + hour * 3 + n),
        Moving::CountsInTitles => title += &format!(" ({} comments)", hour / 3 + n),
        Moving::Hours => text += &format!("<p>Posted {} hours ago</p>", hour + n),
        Moving::Categories => {
            for number in [(); 2].map(|()| rng.random_range(0..20)) {
                let term = words_of(number, 1);
                parts.categories.push(Category {
                    term,
                    ..Category::default()
                });
            }
        }
        Moving::Authors => {
            let name = if node { "Anna" } else { "Anna Smith" };
            parts.authors.push(Person {
                name: Some(name.into()),
                ..Person::default()
            });
        }
        Moving::Titles if rng.random_range(0..4) == 0 => {
            title = format!("You will not believe {}", words_of(n, 4));
        }
        Moving::Titles => {}
    }
    written(n, n + 1, &title, text, parts)
}

/// Edits told of twenty days, polled every three hours, and true ones.
fn told_of_moving(moving: Moving) -> (usize, usize) {
    let mut rng = SmallRng::seed_from_u64(7);
    let mut held = Held::default();
    let (mut marks, mut told, mut edits) = ([0_u32; 10], 0, 0);
    for hour in (0..20 * 24).step_by(3) {
        if hour % 36 == 0 && hour > 48 {
            marks[rng.random_range(0..10)] += 1;
            edits += 1;
        }
        let node = rng.random();
        let document: Vec<_> = (0..10_u32)
            .rev()
            .map(|n| moved(moving, &mut rng, hour, node, n, marks[n as usize]))
            .collect();
        held.secs += 3 * HOUR;
        let changes = held.show(&document, &[]);
        told += changes
            .iter()
            .filter(|change| change.starts_with('~'))
            .count();
    }
    (told, edits)
}

#[test]
fn what_moves_in_a_blog_whose_posts_stay_makes_at_most_three_times_the_edits() {
    use Moving::*;
    for moving in [
        RelatedPosts,
        SummariesOfOneNode,
        Schemes,
        Claps,
        Podcast,
        PodcastWithToken,
        Views,
        CountsInTitles,
        Hours,
        Categories,
        Authors,
        Titles,
    ] {
        let (told, edits) = told_of_moving(moving);
        println!("{moving:?}: {told} told of {edits}");
        assert!(told <= 3 * edits, "{moving:?}: {told} told of {edits}");
        assert!(told >= edits, "{moving:?}: {told} told of {edits}");
    }
}

#[test]
fn an_edit_in_one_of_two_languages_that_come_by_turns_is_told() {
    let mut rng = SmallRng::seed_from_u64(3);
    let mut held = Held::default();
    let (mut told, mut seen_at) = (0, None);
    for hour in 0..10 * 24 {
        let is_german = rng.random();
        let mark = u32::from(hour >= 100);
        let post = |n: u32| {
            let (title, text) = if is_german {
                (
                    format!("Die Geschichte {n}"),
                    format!("<p>{}</p>", "ein anderer Satz ".repeat(8)),
                )
            } else {
                let mark = if n == 3 { mark } else { 0 };
                let words = words_of(n, 40);
                (
                    format!("The story of {n}"),
                    format!("<p>{words}, mark {mark}</p>"),
                )
            };
            written(n, n + 1, &title, text, Entry::default())
        };
        told += held.edits(&(0..LENGTH).rev().map(post).collect::<Vec<_>>());
        let key = Key::Id("tag:x,2005:3".into());
        let item = &held.items[&KeyHash::of(NS, &key.stripped()).item_id()];
        let text = &item.entry().unwrap().content.as_ref().unwrap().text.value;
        if text.contains("mark 1") {
            seen_at.get_or_insert(hour);
        }
    }
    println!("two languages: {told} told of one, which was seen after {seen_at:?}");
    assert!(seen_at.is_some_and(|hour| hour <= 100 + 48), "{seen_at:?}");
    assert!(told <= 4 * LENGTH as usize, "{told}");
}
