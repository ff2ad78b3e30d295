//! MediaRSS against feed-rs, entry by entry: every medium that it finds is found here too.

use std::{collections::BTreeSet, path::PathBuf};

use everfeed_adapters::text::markup::write_element;
use everfeed_adapters::{Element, Hints, Node, slice};

use crate::extensions::documents;
use testkit::data::large;

const MEDIA: &str = "http://search.yahoo.com/mrss/";

/// The MediaRSS of an entry as the only item of a feed, in the one spelling of the namespace that
/// feed-rs knows.
fn item(foreign: &[Element]) -> Option<String> {
    let mut document = format!(r#"<rss version="2.0" xmlns:media="{MEDIA}"><channel><item>"#);
    let mut media = foreign
        .iter()
        .filter(|element| element.ns.contains("mrss"))
        .peekable();
    media.peek()?;
    for element in media {
        let mut element = element.clone();
        respell(&mut element);
        write_element(&mut document, &element, &[("media", MEDIA)]);
    }
    document.push_str("</item></channel></rss>");
    Some(document)
}

fn respell(element: &mut Element) {
    if element.ns.contains("mrss") {
        MEDIA.clone_into(&mut element.ns);
    }
    for node in &mut element.children {
        if let Node::Element(child) = node {
            respell(child);
        }
    }
}

type Objects = BTreeSet<(String, Option<String>)>;

fn ours(document: &str) -> Objects {
    let sliced = slice(document.as_bytes(), &Hints::default()).unwrap();
    let enclosures = sliced.entries[0].parse().0.enclosures;
    enclosures
        .into_iter()
        .map(|enclosure| (enclosure.url, enclosure.title))
        .collect()
}

fn theirs(document: &str) -> Objects {
    let Ok(feed) = feed_rs::parser::parse(document.as_bytes()) else {
        return Objects::new();
    };
    let objects = feed
        .entries
        .into_iter()
        .flat_map(|entry| entry.media)
        .flat_map(|object| {
            let title = object
                .title
                .map(|title| title.content.trim().to_owned())
                .filter(|title| !title.is_empty());
            object
                .content
                .into_iter()
                .filter_map(move |content| Some((content.url?.to_string(), title.clone())))
        });
    objects.collect()
}

testkit::reads_corpora! {
    #[test]
    fn every_medium_that_feed_rs_finds_is_found() {
        let files = ["corpus", "sequences"].map(|name| documents(&large(name)));
        check_media(&files.concat());
    }
}

/// 79 entries of the large corpora. They differ where feed-rs gives one medium the title of
/// another, once where it drops a URL without scheme, and once where it takes the page of a player
/// for the medium.
fn check_media(files: &[PathBuf]) {
    let (mut entries, mut same, mut better, mut players, mut lost) = (0, 0, 0, 0, Vec::new());
    for path in files {
        let Ok(sliced) = slice(&std::fs::read(path).unwrap(), &Hints::default()) else {
            continue;
        };
        for raw in &sliced.entries {
            let Some(document) = item(&raw.parse().0.foreign) else {
                continue;
            };
            entries += 1;
            let (ours, theirs) = (ours(&document), theirs(&document));
            let urls = |objects: &Objects| {
                objects
                    .iter()
                    .map(|(url, _)| url.clone())
                    .collect::<BTreeSet<_>>()
            };
            if ours == theirs {
                same += 1;
            } else if urls(&ours).is_superset(&urls(&theirs)) {
                better += 1;
            } else if document.contains("<media:player") {
                players += 1;
            } else {
                lost.push(format!(
                    "{}: {:?}: {ours:?} {theirs:?}",
                    path.display(),
                    raw.key
                ));
            }
        }
    }
    println!(
        "{entries} entries: {same} the same, {better} with more media or their own titles, {players} with a player"
    );
    assert!(lost.is_empty(), "{lost:#?}");
    assert!(entries >= 79, "only {entries} entries");
}

/// One title without text costs feed-rs all media of the entry.
#[test]
fn an_odd_title_costs_no_medium() {
    let document = r#"<rss><channel><item><media:content url="http://e.org/a"><media:title/></media:content>
        <media:content url="http://e.org/b"><media:title type="text/plain">b</media:title></media:content></item></channel></rss>"#;
    let expect = [("http://e.org/a", None), ("http://e.org/b", Some("b"))];
    let expect = expect.map(|(url, title)| (url.to_owned(), title.map(str::to_owned)));
    assert_eq!(ours(document), expect.into());
}
