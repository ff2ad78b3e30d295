//! The vocabularies beside the formats, as the views of an entry and of metadata show them; single
//! elements are in the fixtures.

use std::path::{Path, PathBuf};

use everfeed_adapters::text::markup::write_element;
use everfeed_adapters::{
    Element, Entry, Hints, Location, Metadata, Node, Shape, SlicedDocument, slice,
};

use testkit::data::large;

fn read(document: &str) -> SlicedDocument {
    let hints = Hints {
        base_url: Some("http://example.org/feed"),
        ..Hints::default()
    };
    slice(document.as_bytes(), &hints).unwrap()
}

fn entry(children: &str) -> Entry {
    let document = format!("<rss><channel><item><guid>1</guid>{children}</item></channel></rss>");
    read(&document).entries[0].parse().0
}

fn head(children: &str) -> Metadata {
    read(&format!(
        "<rss><channel><title>t</title>{children}<item><guid>1</guid></item></channel></rss>"
    ))
    .metadata
}

#[test]
fn a_location_is_read_from_every_vocabulary() {
    let check = |markup: &str, shape: Shape, points: &[[f64; 2]]| {
        let expect = Location {
            shape,
            points: points.to_vec(),
        };
        assert_eq!(entry(markup).location(), Some(expect), "{markup}");
    };
    let triangle = [[2.0, 1.0], [4.0, 3.0], [6.0, 5.0], [2.0, 1.0]];
    check(
        "<georss:point>45.5 -71.25</georss:point>",
        Shape::Point,
        &[[-71.25, 45.5]],
    );
    check(
        "<georss:line>1 2 3 4</georss:line>",
        Shape::Line,
        &[[2.0, 1.0], [4.0, 3.0]],
    );
    check(
        "<georss:polygon>1 2 3 4 5 6 1 2</georss:polygon>",
        Shape::Polygon,
        &triangle,
    );
    check(
        "<georss:box>1 2 3 4</georss:box>",
        Shape::Box,
        &[[2.0, 1.0], [4.0, 3.0]],
    );
    check(
        "<geo:lat> 1 </geo:lat><geo:long>2</geo:long>",
        Shape::Point,
        &[[2.0, 1.0]],
    );
    check(
        "<geo:Point><geo:lat>1</geo:lat><geo:long>2</geo:long></geo:Point>",
        Shape::Point,
        &[[2.0, 1.0]],
    );
    let gml = |inside: &str| format!("<georss:where>{inside}</georss:where>");
    check(
        &gml("<gml:Point><gml:pos>1 2</gml:pos></gml:Point>"),
        Shape::Point,
        &[[2.0, 1.0]],
    );
    check(
        &gml(
            "<gml:LineString><gml:posList srsDimension='3'>1 2 9 3 4 9</gml:posList></gml:LineString>",
        ),
        Shape::Line,
        &[[2.0, 1.0], [4.0, 3.0]],
    );
    check(
        &gml(
            "<gml:Polygon><gml:exterior><gml:LinearRing><gml:posList>1 2 3 4 5 6 1 2</gml:posList></gml:LinearRing></gml:exterior></gml:Polygon>",
        ),
        Shape::Polygon,
        &triangle,
    );
    check(
        &gml(
            "<gml:Envelope><gml:lowerCorner>1 2</gml:lowerCorner><gml:upperCorner>3 4</gml:upperCorner></gml:Envelope>",
        ),
        Shape::Box,
        &[[2.0, 1.0], [4.0, 3.0]],
    );
    // A projected system has no latitude; EPSG:4326 has.
    check(
        "<gml:Point srsName='EPSG:26913'><gml:pos>1 2</gml:pos></gml:Point>",
        Shape::Point,
        &[[1.0, 2.0]],
    );
    check(
        "<gml:Point srsName='urn:ogc:def:crs:EPSG::4326'><gml:pos>1 2</gml:pos></gml:Point>",
        Shape::Point,
        &[[2.0, 1.0]],
    );
    for nowhere in [
        "",
        "<geo:lat>1</geo:lat>",
        "<georss:point>here</georss:point>",
        "<georss:where/>",
    ] {
        assert_eq!(entry(nowhere).location(), None, "{nowhere}");
    }
}

// RFC 4685.
#[test]
fn a_conversation_is_told() {
    let answer = entry(
        "<thr:in-reply-to ref='urn:a' href='a' source='/feed' type='text/html'/><slash:comments>7</slash:comments>
         <wfw:commentRss>1/feed</wfw:commentRss><atom:link rel='replies' type='text/html' href='1'/>",
    );
    let reply = answer.foreign.iter().find(|it| it.name == "in-reply-to");
    let reply = reply.unwrap();
    assert_eq!(reply.attribute("ref"), Some("urn:a"));
    assert_eq!(reply.attribute("href"), Some("http://example.org/a"));
    assert_eq!(reply.attribute("source"), Some("http://example.org/feed"));
    let replies = answer.links.iter().filter(|link| link.rel == "replies");
    let replies: Vec<&str> = replies.map(|link| link.href.as_str()).collect();
    assert!(
        replies.contains(&"http://example.org/1/feed"),
        "{replies:?}"
    );
}

/// A counter in a group is no more an edit than one beside it.
#[test]
fn counters_are_no_content_wherever_they_stand() {
    let video = |views: u32, title: &str| {
        let community =
            format!("<media:community><media:statistics views='{views}'/></media:community>");
        entry(&format!(
            "<media:group><media:text>{title}</media:text>{community}</media:group>"
        ))
        .digest()
    };
    assert_eq!(video(1, "a"), video(2, "a"));
    assert_ne!(video(1, "a"), video(1, "b"));
}

#[test]
fn keywords_without_end_are_not_read_to_the_end() {
    let keywords = (0..200_000)
        .map(|n| format!("{},", n % 2_000))
        .collect::<String>();
    let keywords = format!("<itunes:keywords>{keywords}</itunes:keywords>");
    assert_eq!(entry(&keywords).categories.len(), 256);
    assert_eq!(head(&keywords).categories.len(), 256);
}

// LEGACY section 1, the reader's priority.
#[test]
fn the_older_archive_is_what_the_best_of_the_drafts_says() {
    let link = |rel: &str| format!("<atom:link rel='{rel}' href='http://e.org/{rel}'/>");
    let check = |markup: &str, expect: Option<&str>| {
        assert_eq!(head(markup).older_archive(), expect, "{markup}");
    };
    let prev = "<fh:prev>http://e.org/fh</fh:prev>";
    check(
        &format!("{prev}{}", link("prev-archive")),
        Some("http://e.org/prev-archive"),
    );
    check(
        &format!("{}{prev}", link("previous")),
        Some("http://e.org/fh"),
    );
    check(
        &format!("<fh:stateful>true</fh:stateful>{prev}"),
        Some("http://e.org/fh"),
    );
    // H-5.
    check(&format!("<fh:stateful>false</fh:stateful>{prev}"), None);
    check(&link("previous"), None);
    check(&link("prev"), None);
    check(
        &format!("{}<fh:archive/>", link("previous")),
        Some("http://e.org/previous"),
    );
    check(
        &format!("{}{}", link("prev"), link("current")),
        Some("http://e.org/prev"),
    );
}

// LEGACY H-15, POLLING 3.1.
#[test]
fn feed_history_is_read_in_every_namespace_it_had() {
    for namespace in [
        "http://purl.org/syndication/history/1.0",
        "[TBD]",
        "[[TBD]]",
        "http://example.org/drafts/feed-history",
    ] {
        let told = format!(
            "<h:incremental xmlns:h='{namespace}'> true </h:incremental><h:prev xmlns:h='{namespace}'> older </h:prev>"
        );
        let head = head(&told);
        assert_eq!(head.history.stateful, Some(true), "{namespace}");
        assert_eq!(
            head.older_archive(),
            Some("http://example.org/older"),
            "{namespace}"
        );
    }
    assert!(head("<fh:complete/>").is_complete());
    assert!(head("<fh:stateful>false</fh:stateful>").is_complete());
    assert!(!head("<fh:stateful>true</fh:stateful>").is_complete());
    assert!(!head("").is_complete());
}

#[test]
fn hubs_are_found_under_either_relation() {
    let markup = "<atom:link rel='hub' href='http://a/'/><atom:link rel='hub.subscribe' href='http://b/'/>
                  <atom:link rel='hub.publish' href='http://c/'/><atom:link rel='HUB' href='http://d/'/>";
    assert_eq!(
        head(markup).hubs().collect::<Vec<_>>(),
        ["http://a/", "http://b/", "http://d/"]
    );
}

#[test]
fn the_search_box_of_rss_1_0_is_what_stands_beside_its_channel() {
    let document = r#"<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
        <channel rdf:about="http://example.org/"><textinput rdf:resource="http://example.org/s"/></channel>
        <textinput rdf:about="http://example.org/s"><title>Search</title><link>/s</link></textinput></rdf:RDF>"#;
    let foreign = read(document).metadata.foreign;
    let texts: Vec<_> = foreign
        .iter()
        .map(|element| (element.name.as_str(), element.text()))
        .collect();
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert_eq!(
        (texts[0].0, texts[0].1.trim()),
        ("textInput", "Searchhttp://example.org/s")
    );
    assert!(
        foreign[0].ns.is_empty() && foreign[0].attributes.is_empty(),
        "in the words of RSS 2.0"
    );
}

testkit::reads_corpora! {
    #[test]
    fn foreign_markup_survives_being_written() {
        let files = ["corpus", "sequences"].map(|name| documents(&large(name)));
        check_foreign_markup(&files.concat());
    }
}

/// Whatever the corpus holds of foreign markup can be written into another document and read back
/// the same.
fn check_foreign_markup(files: &[PathBuf]) {
    let mut elements = 0;
    for path in files {
        let Ok(sliced) = slice(&std::fs::read(path).unwrap(), &Hints::default()) else {
            continue;
        };
        let entries = sliced.entries.iter().map(|raw| raw.parse().0);
        let sources = entries
            .clone()
            .filter_map(|entry| Some(entry.source?.foreign));
        let all = entries
            .map(|entry| entry.foreign)
            .chain(sources)
            .chain([sliced.metadata.foreign.clone()]);
        for foreign in all.filter(|foreign| !foreign.is_empty()) {
            elements += foreign.len();
            let mut document = "<rss><channel><item><w:w xmlns:w='urn:wrapper'>".to_owned();
            foreign
                .iter()
                .for_each(|element| write_element(&mut document, element, &[("w", "urn:wrapper")]));
            document.push_str("</w:w></item></channel></rss>");
            let read = slice(document.as_bytes(), &Hints::default()).unwrap();
            assert_eq!(read.notes, [], "{}: {document}", path.display());
            let (entry, notes) = read.entries[0].parse();
            assert_eq!(notes, [], "{}: {document}", path.display());
            let back: Vec<_> = entry.foreign[0].elements().cloned().map(bare).collect();
            assert_eq!(
                back,
                foreign.into_iter().map(bare).collect::<Vec<_>>(),
                "{}",
                path.display()
            );
        }
    }
    println!("{elements} foreign elements written and read back the same");
    assert!(elements > 5_000, "only {elements}");
}

/// Without prefixes, which are only hints.
fn bare(mut element: Element) -> Element {
    element.prefix.clear();
    element
        .attributes
        .iter_mut()
        .for_each(|attribute| attribute.prefix.clear());
    for node in &mut element.children {
        if let Node::Element(child) = node {
            *child = bare(std::mem::take(child));
        }
    }
    element
}

/// Every XML document below a folder.
pub(crate) fn documents(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "xml") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
