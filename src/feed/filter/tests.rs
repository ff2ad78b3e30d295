//! Filters: which values are meant, how they are spelt, and what they show.

use super::*;
use crate::{
    item::{ItemDigests, ItemId, Reason},
    record::FeedNo,
    stamp::Stamp,
};
use everfeed_adapters::{Body, Category, Enclosure, Metadata, Text, TextKind};
use index_terms::index_terms;
use proptest::{collection::vec, prelude::*, sample::select};

fn filter(raw: [(&str, &str); 1]) -> Result<Filter, BadFilter> {
    filter_of(&raw)
}

fn filter_of(raw: &[(&str, &str)]) -> Result<Filter, BadFilter> {
    Filter::of(raw)
}

fn item(entry: Entry) -> Item {
    Item {
        id: ItemId([1; 10]),
        iri: "http://e.org/1".to_owned(),
        modified: Stamp::from_secs(2),
        created: Stamp::from_secs(1),
        revived: None,
        published_us: Some(7),
        content: Content::Live(Arc::new(entry)),
        tombstone_count: 0,
        digests: ItemDigests::default(),
        publisher_id: None,
    }
}

fn feed(language: Option<&str>) -> FeedRecord {
    let metadata = Metadata {
        language: language.map(str::to_owned),
        ..Metadata::default()
    };
    FeedRecord {
        metadata: Arc::new(metadata),
        ..FeedRecord::new(FeedNo(1), "blog", "e.org")
    }
}

fn check(name: &str, value: &str, entry: &Entry, shows: bool) {
    let filter = filter([(name, value)]).unwrap();
    assert_eq!(
        filter.shows(&item(entry.clone()), &feed(Some("de-AT"))),
        shows,
        "{name}={value}"
    );
}

#[test]
fn each_filter_shows_what_it_names() {
    let person = |name: &str| Person {
        name: Some(name.to_owned()),
        ..Person::default()
    };
    let tag = |term: &str, label: &str| Category {
        term: term.to_owned(),
        label: Some(label.to_owned()),
        ..Category::default()
    };
    let html = Text {
        kind: TextKind::Html,
        value: "<p>Die Katze</p><p>schläft</p>".to_owned(),
        ..Text::default()
    };
    let entry = Entry {
        title: Some(Text::plain("Über Rust & C++")),
        content: Some(Body {
            text: html,
            ..Body::default()
        }),
        authors: vec![person("Zoë Quinn")],
        categories: vec![tag("c++", "Programming")],
        enclosures: vec![Enclosure {
            url: "http://e.org/a.mp3".to_owned(),
            ..Enclosure::default()
        }],
        ..Entry::default()
    };
    check("q", "uber rust", &entry, true);
    check("q", "rust katze", &entry, true);
    check("q", "\"katze schlaft\"", &entry, true);
    check("q", "\"rust katze\"", &entry, false);
    check("q", "rus", &entry, false);
    check("q", "hund", &entry, false);
    check("author", "ZOE  quinn", &entry, true);
    check("author", "zoe", &entry, false);
    check("category", "C++", &entry, true);
    check("category", "programming", &entry, true);
    check("category", "c", &entry, false);
    check("has", "enclosure", &entry, true);
    check("has", "enclosure", &Entry::default(), false);
    // What no document names is not met.
    for (url, shows) in [
        ("javascript:alert(1)", false),
        (" ", false),
        ("file:///etc/passwd", false),
        ("data:text/html,x", false),
        ("data:image/png;base64,AA==", true),
        ("/relative.mp3", true),
        ("ftp://e.org/a.mp3", true),
    ] {
        let enclosures = vec![Enclosure {
            url: url.to_owned(),
            ..Enclosure::default()
        }];
        check(
            "has",
            "enclosure",
            &Entry {
                enclosures,
                ..Entry::default()
            },
            shows,
        );
    }
    check("lang", "de", &entry, true);
    check("lang", "de-at", &entry, true);
    check("lang", "d", &entry, false);
    check(
        "lang",
        "de",
        &Entry {
            language: Some("en".to_owned()),
            ..entry.clone()
        },
        false,
    );
    check(
        "lang",
        "en",
        &Entry {
            language: Some("EN_us".to_owned()),
            ..entry.clone()
        },
        true,
    );
    check("deleted", "no", &entry, true);
    check("deleted", "only", &entry, false);
    let all = filter_of(&[
        ("q", "rust"),
        ("category", "c++"),
        ("lang", "de"),
        ("author", "zoë quinn"),
    ])
    .unwrap();
    assert!(all.shows(&item(entry.clone()), &feed(Some("de"))));
    assert!(!all.shows(&item(entry), &feed(Some("en"))));
}

#[test]
fn an_entry_without_authors_has_those_of_its_source_or_its_feed() {
    // RFC 4287 section 4.2.1.
    let person = |name: &str| Person {
        name: Some(name.to_owned()),
        ..Person::default()
    };
    let metadata = Metadata {
        authors: vec![person("Ed Itor"), person("Two")],
        ..Metadata::default()
    };
    let of_feed = FeedRecord {
        metadata: Arc::new(metadata),
        ..feed(None)
    };
    let source = |authors| {
        Some(Box::new(everfeed_adapters::Source {
            authors,
            ..Default::default()
        }))
    };
    let check = |authors: &[&str], source, expect: &str| {
        let authors = authors.iter().copied().map(person).collect();
        let item = item(Entry {
            authors,
            source,
            ..Entry::default()
        });
        for name in ["ed itor", "two", "ann", "own"] {
            let shows = filter([("author", name)]).unwrap().shows(&item, &of_feed);
            assert_eq!(shows, expect.split(',').any(|one| one == name), "{name}");
        }
    };
    check(&[], None, "ed itor,two");
    check(&[], source(vec![]), "ed itor,two");
    check(&[], source(vec![person("Ann")]), "ann");
    check(&["Own"], source(vec![person("Ann")]), "own");
}

#[test]
fn an_entry_that_says_it_has_no_language_is_in_none() {
    let of = |language: &str| Some(language.to_owned());
    let said = |language| Entry {
        title: Some(Text {
            language,
            ..Text::plain("x")
        }),
        ..Entry::default()
    };
    check("lang", "de", &said(None), true);
    check("lang", "de", &said(of("")), false);
    check("lang", "de", &said(of("de")), true);
    check(
        "lang",
        "de",
        &Entry {
            language: of(""),
            ..said(of("de"))
        },
        false,
    );
}

#[test]
fn a_tombstone_has_no_content_to_be_met() {
    let gone = gone(&item(Entry {
        title: Some(Text::plain("rust")),
        ..Entry::default()
    }));
    assert!(gone.is_gone() && gone.entry().is_none());
    let shows = |name, value| filter([(name, value)]).unwrap().shows(&gone, &feed(None));
    assert!(shows("deleted", "only"));
    assert!(!shows("deleted", "no"));
    assert!(!shows("q", "rust"));
    assert!(!shows("lang", "de"));
}

/// The same post, deleted.
fn gone(item: &Item) -> Item {
    Item {
        content: Content::Gone {
            reason: Reason::Explicit,
            first_missing: None,
            last_seen: None,
        },
        tombstone_count: item.tombstone_count + 1,
        ..left_view(item)
    }
}

#[test]
fn among_deletions_only_a_post_that_was_gone_before_has_left_the_view() {
    let only = filter([("deleted", "only")]).unwrap();
    let check = |item: &Item, is_shown: bool, has_left: bool| {
        let later = Item {
            modified: item.created.plus_secs(60),
            ..item.clone()
        };
        assert_eq!(only.shows(&later, &feed(None)), is_shown, "{later:?}");
        let left = only.shows_as_left(&later, Order::MODIFIED);
        assert!(is_shown || left == has_left, "{later:?}");
        assert!(!only.shows_as_left(&later, Order::CREATED));
        // In every other view each edit may be the end of what was there.
        let words = filter([("q", "rust")]).unwrap();
        assert!(words.shows_as_left(&later, Order::MODIFIED));
        assert!(!words.shows_as_left(
            &Item {
                modified: item.created,
                ..later
            },
            Order::MODIFIED
        ));
        // Words are met by no tombstone, so nothing ever leaves this view.
        let both = filter_of(&[("deleted", "only"), ("q", "rust")]).unwrap();
        assert!(!both.shows_as_left(item, Order::MODIFIED));
    };
    let live = item(Entry::default());
    check(&live, false, false);
    check(&gone(&live), true, false);
    let back = Item {
        revived: Some(live.created.plus_secs(30)),
        tombstone_count: 1,
        ..live.clone()
    };
    check(&back, false, true);
    // A part of a feed keeps what left it as a tombstone, which is no deletion.
    let left = Item {
        tombstone_count: 1,
        ..left_view(&live)
    };
    check(&left, false, false);
    check(
        &Item {
            tombstone_count: 2,
            ..left
        },
        false,
        true,
    );
}

#[test]
fn filters_that_mean_the_same_are_one_and_are_spelt_in_one_way() {
    let check = |one: &str, other: &str, spelt: &str| {
        let found = filter([("q", one)]).unwrap();
        assert_eq!(Ok(&found), filter([("q", other)]).as_ref(), "{one}");
        assert_eq!(found.spelling(), [("q", spelt.to_owned())]);
        assert_eq!(filter([("q", spelt)]), Ok(found));
    };
    check("Rust  async", "ASYNC rust rust", "async rust");
    check(
        "\"New York\" taxi",
        "taxi \"new   york\"",
        "\"new york\" taxi",
    );
    check("\"rust\"", "rust!", "rust");
    check("don't", "\"don t\"", "\"don t\"");
    assert_eq!(
        filter([("author", " Jo  Doe ")]),
        filter([("author", "jo doe")])
    );
    assert_eq!(filter([("lang", "DE-at")]), filter([("lang", "de-AT")]));
    assert_eq!(filter_of(&[]), Ok(Filter::All));
}

#[test]
fn a_value_that_cannot_be_meant_is_refused() {
    let check =
        |name, value: &str, refused| assert_eq!(filter([(name, value)]), Err(refused), "{value}");
    check("q", "!!! -", BadFilter::NoWord);
    check("q", "\"\"", BadFilter::NoWord);
    check("q", "one \"two", BadFilter::OpenQuote);
    check("q", "a\0b", BadFilter::NoText("q"));
    check("q", &"w ".repeat(300), BadFilter::TooLong("q"));
    check(
        "q",
        &('a'..='q').map(|c| format!("{c} ")).collect::<String>(),
        BadFilter::ManyWords,
    );
    check("author", "  ", BadFilter::NoText("author"));
    check("category", "\u{b4}", BadFilter::NoText("category"));
    check("category", "a\nb", BadFilter::NoText("category"));
    check("deleted", "yes", BadFilter::Deleted);
    check("deleted", "No", BadFilter::Deleted);
    check("has", "image", BadFilter::Has);
    check("lang", "german!", BadFilter::Language);
    check("lang", "-de", BadFilter::Language);
    check("lang", "de--at", BadFilter::Language);
    check("lang", "123", BadFilter::Language);
}

#[test]
fn ordinary_readers_are_shown_nothing_of_what_is_gone() {
    let no = filter([("deleted", "no")]).unwrap();
    assert_eq!(Filter::All.live(), Filter::Live);
    assert_eq!(
        filter([("q", "rust")]).unwrap().live(),
        filter_of(&[("q", "rust"), ("deleted", "no")]).unwrap()
    );
    assert_eq!(no.live(), no);
}

/// Entries that are told apart by all that filters ask for.
fn entries() -> impl Strategy<Value = Entry> {
    let words = || {
        let word = select(
            &[
                "Crème",
                "creme",
                "rust",
                "trust",
                "猫",
                "猫が好き",
                "東京tower",
                "ภาษาไทย",
                "가방을",
                "C++",
                "don't",
                "<b>",
                "</p>",
            ][..],
        );
        vec(word, 0..5).prop_map(|words| words.join(" "))
    };
    let kind = select(&[TextKind::Plain, TextKind::Html][..]);
    let language = || select(&[None, Some(""), Some("de"), Some("de_AT"), Some("EN-gb")][..]);
    let name = || select(&[None, Some("Jo Doe"), Some("JÖ DOE"), Some("jo@e.org")][..]);
    (
        words(),
        (words(), kind),
        language(),
        language(),
        name(),
        name(),
        any::<[bool; 2]>(),
    )
        .prop_map(
            |(
                title,
                (text, kind),
                language,
                of_title,
                author,
                category,
                [has_enclosure, is_illustration],
            )| {
                Entry {
                    title: Some(Text {
                        language: of_title.map(str::to_owned),
                        ..Text::plain(&title)
                    }),
                    content: Some(Body {
                        text: Text {
                            kind,
                            value: text,
                            ..Text::default()
                        },
                        ..Body::default()
                    }),
                    language: language.map(str::to_owned),
                    authors: author
                        .map(|name| Person {
                            name: Some(name.to_owned()),
                            ..Person::default()
                        })
                        .into_iter()
                        .collect(),
                    categories: category
                        .map(|term| Category {
                            term: term.to_owned(),
                            ..Category::default()
                        })
                        .into_iter()
                        .collect(),
                    enclosures: has_enclosure
                        .then(|| Enclosure {
                            is_illustration,
                            ..Enclosure::default()
                        })
                        .into_iter()
                        .collect(),
                    ..Entry::default()
                }
            },
        )
}

proptest! {
    #[test]
    fn an_item_that_is_shown_has_a_term_of_every_clause(
        entry in entries(),
        is_gone in prop::bool::weighted(0.1),
        q in select(&["", "creme", "rust creme", "\"creme rust\"", "猫", "好き", "が好", "京", "\"東京 tower\"", "ไท", "방", "b"][..]),
        author in select(&["", "jo doe", "jo@e.org"][..]),
        category in select(&["", "jo doe"][..]),
        deleted in select(&["", "", "no", "only"][..]),
        has in select(&["", "enclosure"][..]),
        lang in select(&["", "de", "de-at", "en"][..]),
    ) {
        let given = [
            ("q", q),
            ("author", author),
            ("category", category),
            ("deleted", deleted),
            ("has", has),
            ("lang", lang),
        ];
        let filter = Filter::of(&given).unwrap();
        let item = item(entry);
        let item = if is_gone { gone(&item) } else { item };
        let terms = index_terms(&item).unwrap();
        if filter.shows(&item, &feed(Some("de-AT"))) {
            for clause in filter.index_clauses() {
                prop_assert!(clause.iter().any(|term| terms.contains(term)), "{} {:?}", filter, item.entry());
            }
        }
    }
}

#[test]
fn an_index_tells_items_apart_and_gives_up_on_endless_ones() {
    let of = |text: &str| {
        let content = Body {
            text: Text::plain(text),
            ..Body::default()
        };
        index_terms(&item(Entry {
            content: Some(content),
            ..Entry::default()
        }))
    };
    let meets = |text: &str, q: &str| {
        let terms = of(text).unwrap();
        let clauses = filter([("q", q)]).unwrap().index_clauses();
        clauses
            .iter()
            .all(|clause| clause.iter().any(|term| terms.contains(term)))
    };
    assert!(meets("one two", "two") && !meets("one two", "tw") && !meets("one two", "one three"));
    assert!(meets("猫が好き", "が好") && !meets("猫が好き", "好が"));
    let endless: String = (0..=index_terms::TERMS_PER_ITEM_MAX)
        .map(|n| format!("w{n} "))
        .collect();
    assert_eq!(of(&endless), None);
    assert!(
        filter([("deleted", "no")])
            .unwrap()
            .index_clauses()
            .is_empty(),
        "nothing to look up"
    );
}
