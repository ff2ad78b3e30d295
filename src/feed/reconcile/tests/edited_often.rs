//! Feeds that are edited often (POLLING 1.3): shops, reports, matches and news, by polls a minute
//! and half an hour apart. Every edit is told at once, though all entries of a feed are edited.

use super::*;
use everfeed_adapters::{Element, Node};
use rand::{RngExt, SeedableRng, rngs::SmallRng};

const MINUTE: u64 = 60;
const HOUR: u64 = 3600;

/// Seeds of each world.
const SEEDS: u64 = 1;

/// An entry as it is shown.
#[derive(Clone, PartialEq)]
struct Shown {
    title: String,
    text: String,
    /// The value of an element of another vocabulary.
    price: Option<String>,
    /// Kept for the next form, and not shown.
    notes: String,
}

impl Shown {
    fn new(rng: &mut SmallRng) -> Self {
        Self {
            title: words(rng, 4),
            text: format!("<p>{}</p>", words(rng, 40)),
            price: None,
            notes: String::new(),
        }
    }

    fn reading(&self, n: usize) -> ParsedEntry {
        let plain = post(u32::try_from(n + 1).unwrap());
        let price = |value: &String| Element {
            ns: "http://base.google.com/ns/1.0".into(),
            prefix: "g".into(),
            name: "price".into(),
            children: vec![Node::Text(value.clone())],
            ..Element::default()
        };
        let text = Body {
            text: Text::html(self.text.as_str()),
            ..Body::default()
        };
        let entry = Entry {
            title: Some(Text::plain(self.title.as_str())),
            content: Some(text),
            foreign: self.price.iter().map(price).collect(),
            ..Entry::clone(&plain.entry)
        };
        digested(plain.key, entry)
    }
}

fn words(rng: &mut SmallRng, count: usize) -> String {
    churn::words(rng, count).join(" ")
}

/// A feed of so many entries, polled so often, these seconds apart.
#[derive(Clone, Copy, Debug)]
struct World {
    secs: u64,
    polls: usize,
    entries: usize,
}

const WORLDS: [World; 4] = [
    World {
        secs: MINUTE,
        polls: 60,
        entries: 15,
    },
    World {
        secs: 30 * MINUTE,
        polls: 60,
        entries: 10,
    },
    World {
        secs: 30 * MINUTE,
        polls: 12,
        entries: 50,
    },
    World {
        secs: HOUR,
        polls: 49,
        entries: 5,
    },
];

impl World {
    /// True edits and told ones; all must be told at once.
    fn check(self, what: &str, change: impl Fn(&mut SmallRng, u64, &mut [Shown])) {
        let (mut edits, mut at_once) = (0, 0);
        for seed in 0..SEEDS {
            let mut rng = SmallRng::seed_from_u64(seed);
            let mut shown: Vec<Shown> = (0..self.entries).map(|_| Shown::new(&mut rng)).collect();
            let mut held = Held::default();
            for at in 0..=self.polls {
                let before = shown.clone();
                change(&mut rng, held.secs, &mut shown);
                let entries = shown.iter().enumerate();
                let document: Vec<_> = entries.map(|(n, shown)| shown.reading(n)).collect();
                let told = held.show(&document, &[]).len();
                held.secs += self.secs;
                if at > 0 {
                    edits += before.iter().zip(&shown).filter(|(a, b)| a != b).count();
                    at_once += told;
                }
            }
        }
        println!("{what}, {self:?}: {at_once} told of {edits}");
        assert_eq!(at_once, edits, "{what}, {self:?}");
    }
}

/// Shows all prices of a shop in these forms of title, text and element; each changes with every
/// poll, and these polls are tried at most.
fn check_prices(title: &str, text: &str, price: Option<&str>, polls_max: usize) {
    for world in WORLDS {
        let world = World {
            polls: world.polls.min(polls_max),
            ..world
        };
        let name = format!("{title} | {text} | {price:?}");
        world.check(&name, |rng, _, shown| {
            for entry in shown {
                let (whole, cents): (u32, u32) =
                    (rng.random_range(10..99), rng.random_range(10..99));
                // The first words of an entry stay.
                let name = entry.text.get(3..60).unwrap_or_default().to_owned();
                let filled = |form: &str| {
                    let whole = whole.to_string();
                    form.replace("NAME", &name)
                        .replace("WHOLE", &whole)
                        .replace("CENTS", &cents.to_string())
                };
                entry.text = format!("<p>{name}</p>{}", filled(text));
                if title.contains("WHOLE") {
                    entry.title = filled(&title.replace("NAME", &name[..20]));
                }
                entry.price = price.map(filled);
            }
        });
    }
}

#[test]
fn prices_in_all_entries_are_told() {
    for text in [
        "<p>Now $WHOLE.CENTS only</p>",
        "<p>Price: <b>WHOLE</b> EUR</p>",
        "<p><span class=\"price\">CHF&nbsp;WHOLE</span></p>",
        "<p>&pound;WHOLE a piece</p>",
        "<p>only WHOLEEUR today</p>",
        "<p>1,0WHOLE USD with tax</p>",
        "<p>-0.WHOLE % since the morning, now at WHOLE.CENTS</p>",
    ] {
        check_prices("", text, None, usize::MAX);
    }
    check_prices("NAME for WHOLE.CENTS EUR", "", None, usize::MAX);
    check_prices("NAME (WHOLE kr)", "", None, usize::MAX);
    check_prices("", "", Some("WHOLE.CENTS USD"), usize::MAX);
    check_prices(
        "NAME $WHOLE",
        "<p>$WHOLE</p>",
        Some("WHOLE USD"),
        usize::MAX,
    );
}

#[test]
fn numbers_that_rise_and_fall_in_all_entries_are_told_for_a_day() {
    let day = 24;
    check_prices(
        "",
        "<table><tr><td>price</td><td>WHOLE</td></tr></table>",
        None,
        day,
    );
    check_prices("", "<p>Price: WHOLE</p>", None, day);
    check_prices("NAME: WHOLE", "", None, day);
}

/// Time of day, as a report shows it.
fn clock(secs: u64) -> String {
    let minutes = secs / MINUTE + 8 * 60;
    format!("{:02}:{:02}", minutes / 60 % 24, minutes % 60)
}

/// Reports in so many entries, of which each grows in two of three polls. `form` makes a text of a
/// time and the paragraphs, the latest first.
fn check_reports(what: &str, live: usize, form: fn(&str, &[&str]) -> String) {
    for world in WORLDS {
        let live = live.min(world.entries);
        let name = format!("{what}, {live} live");
        world.check(&name, |rng, secs, shown| {
            for entry in &mut shown[..live] {
                if secs > 0 && rng.random_range(0..3) == 0 {
                    continue;
                }
                let length = rng.random_range(6..20);
                let paragraph = format!("<p>{}: {}</p>", clock(secs), words(rng, length));
                entry.notes = format!("{paragraph}\n{}", entry.notes);
                let paragraphs: Vec<&str> = entry.notes.lines().take(40).collect();
                entry.text = form(&clock(secs), &paragraphs);
            }
        });
    }
}

#[test]
fn reports_with_a_time_of_their_last_update_are_told() {
    for live in [1, 4, 50] {
        check_reports("time above", live, |time, paragraphs| {
            format!("<p>Updated at {time}</p>{}", paragraphs.concat())
        });
        check_reports("time below, latest last", live, |time, paragraphs| {
            let mut paragraphs = paragraphs.to_vec();
            paragraphs.reverse();
            format!("{}<p>Updated at {time}</p>", paragraphs.concat())
        });
        check_reports("time above, latest last", live, |time, paragraphs| {
            let mut paragraphs = paragraphs.to_vec();
            paragraphs.reverse();
            format!(
                "<p>Last update: 26.11.2026 {time} by Anna</p>{}",
                paragraphs.concat()
            )
        });
        check_reports("the last eight", live, |time, paragraphs| {
            let shown = &paragraphs[..paragraphs.len().min(8)];
            format!("<p>Updated at {time}</p>{}", shown.concat())
        });
        check_reports("counted", live, |time, paragraphs| {
            let count = paragraphs.len();
            format!(
                "<p>{count} updates, the last at {time}</p>{}",
                paragraphs.concat()
            )
        });
    }
}

#[test]
fn scores_of_all_matches_are_told() {
    for (what, form) in [
        ("2:1", "<p>Lions - Tigers HOME:GUEST</p>"),
        (
            "2 - 1",
            "<p>Lions - Tigers <b>HOME - GUEST</b> in the MINUTE minute</p>",
        ),
    ] {
        for world in WORLDS {
            world.check(what, |rng, secs, shown| {
                for entry in shown {
                    let mut goals = entry
                        .notes
                        .split(':')
                        .map(|goals| goals.parse().unwrap_or(0));
                    let (mut home, mut guest): (u32, u32) =
                        (goals.next().unwrap_or(0), goals.next().unwrap_or(0));
                    // A goal in half an hour, or in every few polls.
                    if secs > 0 && rng.random_range(0..20) > 0 {
                        continue;
                    }
                    if rng.random() {
                        home += 1
                    } else {
                        guest += 1
                    }
                    entry.notes = format!("{home}:{guest}");
                    entry.text = form
                        .replace("HOME", &home.to_string())
                        .replace("GUEST", &guest.to_string())
                        .replace("MINUTE", &(secs / MINUTE % 90).to_string());
                }
            });
        }
    }
}

#[test]
fn news_that_are_corrected_one_after_the_other_for_days_are_told() {
    for secs in [10 * MINUTE, HOUR] {
        let polls = usize::try_from(5 * 24 * HOUR / secs).unwrap();
        let world = World {
            secs,
            polls,
            entries: 10,
        };
        world.check("a word", |rng, now, shown| {
            if now % HOUR > 0 {
                return;
            }
            let n = rng.random_range(0..shown.len());
            let mut text: Vec<String> = shown[n].text.split(' ').map(str::to_owned).collect();
            text[5] = format!("word{now}");
            shown[n].text = text.join(" ");
        });
        world.check("in stock or not", |rng, now, shown| {
            if now % HOUR > 0 {
                return;
            }
            let n = rng.random_range(0..shown.len());
            let text = &shown[n].text;
            shown[n].text = match text.strip_suffix(" <b>sold out</b>") {
                Some(text) => format!("{text} <b>in store</b>"),
                None => format!(
                    "{} <b>sold out</b>",
                    text.trim_end_matches(" <b>in store</b>")
                ),
            };
        });
    }
}
