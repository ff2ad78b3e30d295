//! Whatever an entry holds, its documents are well-formed, with every namespace bound, and its
//! texts read back.

use everfeed::{
    feed::{
        filter::Filter,
        item::{Content, Item, ItemDigests, ItemId, Reason, plausible},
        order::Order,
        page::Page,
        record::{Completeness, FeedNo, FeedRecord, ItemCounts},
        stamp::Stamp,
    },
    render::{Audience, Document, Representation, Site},
};
use everfeed_adapters::{
    Attribute, Body, Category, Date, Element, Enclosure, Entry, Image, Link, Metadata, Node,
    Person, Source, Text, TextKind,
};
use proptest::{collection::vec, option, prelude::*};
use quick_xml::{
    NsReader, XmlVersion,
    events::{BytesStart, Event},
    name::{Namespace, NamespaceResolver, ResolveResult},
};
use std::{collections::HashSet, sync::Arc};
use url::Url;

// Strategies are boxed: nested, their types outgrow the stack of a test's thread.

const ATOM: &str = "http://www.w3.org/2005/Atom";

/// Text as attackers and old software write it.
fn text() -> BoxedStrategy<String> {
    prop_oneof![
        3 => any::<String>(),
        1 => Just(String::new()),
        2 => "[ -~\\t\\r\\n]{0,12}",
        2 => "[<>&\"'\\]=/!\\-\\x00-\\x20\\u{FFFD}-\\u{FFFF}]{0,12}",
        1 => "</?(p|div|entry|a:b)( (x|y:z|xmlns|xmlns:q)='[a<&]?')*/?>",
        1 => Just("]]></content></entry></feed><!--".to_owned()),
    ]
    .boxed()
}

/// Names and prefixes, some of them possible.
fn name() -> BoxedStrategy<String> {
    prop_oneof![3 => "[a-c]", 2 => "xml(ns)?|fo|at|app|atom|dc|ns[0-9]|", 2 => text()].boxed()
}

fn namespace() -> BoxedStrategy<String> {
    prop_oneof![
        2 => "urn:[ab]",
        1 => Just(String::new()),
        1 => Just(ATOM.to_owned()),
        1 => Just("http://www.w3.org/XML/1998/namespace\u{1}".to_owned()),
        1 => "http://www.w3.org/(XML/1998/namespace|2000/xmlns/|2007/app|1999/xhtml)",
        1 => "http://fanout.org/protocol/atom",
        1 => text(),
    ]
    .boxed()
}

fn attribute() -> BoxedStrategy<Attribute> {
    (namespace(), name(), name(), text())
        .prop_map(|(ns, prefix, name, value)| Attribute {
            ns,
            prefix,
            name,
            value,
        })
        .boxed()
}

fn element() -> BoxedStrategy<Element> {
    let leaf = (namespace(), name(), name(), vec(attribute(), 0..4)).prop_map(
        |(ns, prefix, name, attributes)| Element {
            ns,
            prefix,
            name,
            attributes,
            children: Vec::new(),
        },
    );
    let node = |inner: BoxedStrategy<Element>| {
        prop_oneof![text().prop_map(Node::Text), inner.prop_map(Node::Element)]
    };
    leaf.prop_recursive(4, 12, 3, move |inner| {
        (inner.clone(), vec(node(inner), 0..3))
            .prop_map(|(element, children)| Element {
                children,
                ..element
            })
            .boxed()
    })
    .boxed()
}

fn text_construct() -> BoxedStrategy<Text> {
    let kind = prop_oneof![
        Just(TextKind::Plain),
        Just(TextKind::Html),
        Just(TextKind::Xhtml)
    ];
    (kind, text())
        .prop_map(|(kind, value)| Text {
            kind,
            value,
            ..Text::default()
        })
        .boxed()
}

fn media_type() -> BoxedStrategy<Option<String>> {
    option::of(prop_oneof![
        Just("image/svg+xml".to_owned()),
        Just("text/x".to_owned()),
        text()
    ])
    .boxed()
}

fn body() -> BoxedStrategy<Body> {
    (text_construct(), media_type(), option::of(text()))
        .prop_map(|(text, media_type, src)| Body {
            text,
            media_type,
            src,
        })
        .boxed()
}

fn link() -> BoxedStrategy<Link> {
    let rel = prop_oneof![Just("alternate".to_owned()), Just("via".to_owned()), text()];
    (
        text(),
        rel,
        option::of(text()),
        option::of(text()),
        option::of(text()),
        option::of(text()),
    )
        .prop_map(|(href, rel, media_type, title, hreflang, length)| Link {
            href,
            rel,
            media_type,
            title,
            hreflang,
            length,
        })
        .boxed()
}

fn person() -> BoxedStrategy<Person> {
    (option::of(text()), option::of(text()), option::of(text()))
        .prop_map(|(name, email, uri)| Person {
            name,
            email,
            uri,
            ..Person::default()
        })
        .boxed()
}

fn category() -> BoxedStrategy<Category> {
    (text(), option::of(text()), option::of(text()))
        .prop_map(|(term, scheme, label)| Category {
            term,
            scheme,
            label,
        })
        .boxed()
}

fn enclosure() -> BoxedStrategy<Enclosure> {
    (
        text(),
        option::of(text()),
        option::of(text()),
        option::of(text()),
    )
        .prop_map(|(url, media_type, length, title)| Enclosure {
            url,
            media_type,
            length,
            title,
            is_illustration: false,
        })
        .boxed()
}

fn date() -> BoxedStrategy<Option<Date>> {
    option::of((text(), option::of(any::<i64>())).prop_map(|(raw, at_us)| Date { raw, at_us }))
        .boxed()
}

fn source() -> BoxedStrategy<Box<Source>> {
    (
        option::of(text()),
        option::of(text_construct()),
        vec(link(), 0..2),
        date(),
    )
        .prop_map(|(id, title, links, updated)| Source {
            id,
            title,
            links,
            updated,
            ..Source::default()
        })
        .prop_map(Box::new)
        .boxed()
}

fn entry() -> BoxedStrategy<Entry> {
    let texts = (
        option::of(text_construct()),
        option::of(text_construct()),
        option::of(body()),
        option::of(text_construct()),
        option::of(text()),
        option::of(text()),
        option::of(source()),
    );
    let lists = (
        vec(link(), 0..3),
        vec(person(), 0..3),
        vec(category(), 0..3),
        vec(enclosure(), 0..3),
        vec(element(), 0..4),
    );
    (texts, lists, date(), date())
        .prop_map(|(texts, lists, published, updated)| {
            let (title, summary, content, rights, comments, language, source) = texts;
            let (links, authors, categories, enclosures, foreign) = lists;
            Entry {
                id: None,
                is_permalink: None,
                title,
                summary,
                content,
                links,
                contributors: authors.clone(),
                authors,
                categories,
                enclosures,
                published,
                updated,
                rights,
                comments,
                language,
                source,
                foreign,
            }
        })
        .boxed()
}

fn head() -> BoxedStrategy<Metadata> {
    (
        option::of(text_construct()),
        option::of(text_construct()),
        vec(link(), 0..3),
        vec(person(), 0..2),
        vec(category(), 0..2),
        option::of(text()),
        option::of(text_construct()),
        option::of(text()),
        vec(person(), 0..2),
        option::of(text()),
    )
        .prop_map(|parts| {
            let (
                title,
                description,
                links,
                authors,
                categories,
                language,
                rights,
                image,
                contributors,
                icon,
            ) = parts;
            Metadata {
                title,
                description,
                links,
                authors,
                contributors,
                categories,
                language,
                rights,
                image: image.map(|url| Image {
                    url,
                    ..Image::default()
                }),
                icon,
                ..Metadata::default()
            }
        })
        .boxed()
}

fn item(number: u8, iri: String, content: Content, published_us: Option<i64>) -> Arc<Item> {
    let modified = Stamp::from_secs(1_389_003_527).plus_secs(u64::from(number));
    Arc::new(Item {
        id: ItemId([number; 10]),
        iri,
        modified,
        created: modified,
        revived: None,
        published_us,
        content,
        tombstone_count: 0,
        publisher_id: None,
        digests: ItemDigests::default(),
    })
}

/// The document of one live item and one tombstone.
fn document(form: Representation, metadata: &Metadata, entry: &Entry, iri: &str) -> String {
    let gone = Content::Gone {
        reason: Reason::Explicit,
        first_missing: None,
        last_seen: None,
    };
    let live = Content::Live(Arc::new(entry.clone()));
    let published = entry.published.as_ref().and_then(|date| date.at_us);
    let feed = FeedRecord {
        rev: 1,
        last_t: Stamp::from_secs(1_389_003_527),
        items: ItemCounts {
            total: 2,
            live: 1,
            shortened: 0,
            bytes: None,
        },
        metadata: Arc::new(metadata.clone()),
        metadata_t: Stamp::from_secs(1),
        completeness: Completeness {
            first_cursor: Some(String::new()),
            ..Completeness::default()
        },
        ..FeedRecord::new(FeedNo(1), "x", "example.org/")
    };
    let found = Page {
        items: vec![
            item(1, iri.to_owned(), live, published),
            item(2, "urn:x:2".into(), gone, None),
        ],
        last_cursor: "1_0_2".into(),
        more: true,
        record: Arc::new(feed),
        degraded: None,
        total: Some(3),
        index: None,
        scanned: None,
    };
    let site = Site::new(&Url::parse("http://127.0.0.1").unwrap(), "");
    let next = Some(format!("{}?a=1&b=2", site.list()));
    let links = site.links("x", form, Order::MODIFIED, &Filter::All, next);
    let document = Document {
        page: &found,
        links: &links,
        push: None,
        ttl_mins: Some(1),
    };
    String::from_utf8(form.write(&document)).unwrap()
}

/// An element as it reads back.
#[derive(Debug, Default)]
struct Read {
    ns: String,
    name: String,
    attributes: Vec<(String, String)>,
    text: String,
    children: Vec<Read>,
}

impl Read {
    /// The only child of this name in the namespace of its parent.
    fn child(&self, name: &str) -> Option<&Self> {
        let mut found = self
            .children
            .iter()
            .filter(|child| child.name == name && child.ns == self.ns);
        let first = found.next();
        assert!(found.next().is_none(), "two {name} in {}", self.name);
        first
    }

    fn children(&self, name: &str) -> impl Iterator<Item = &Self> {
        self.children
            .iter()
            .filter(move |child| child.name == name && child.ns == self.ns)
    }

    fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }
}

fn is_legal(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// Reads a document more strictly than the reader alone would.
fn read(document: &str) -> Read {
    assert!(document.chars().all(is_legal), "illegal characters");
    let mut reader = NsReader::from_str(document);
    let mut open = vec![Read::default()];
    loop {
        let event = reader
            .read_event()
            .unwrap_or_else(|error| panic!("{error} in\n{document}"));
        match event {
            Event::Start(start) => open.push(element_of(&start, reader.resolver(), document)),
            Event::Empty(start) => {
                let element = element_of(&start, reader.resolver(), document);
                open.last_mut().unwrap().children.push(element);
            }
            Event::End(_) => {
                let closed = open.pop().unwrap();
                open.last_mut().unwrap().children.push(closed);
            }
            Event::Text(text) => {
                assert!(!text.contains("]]>"), "a CDATA end in text");
                open.last_mut()
                    .unwrap()
                    .text
                    .push_str(&text.xml10_content());
            }
            Event::GeneralRef(reference) => {
                let c = reference.resolve_char_ref().unwrap();
                let c = c.unwrap_or_else(|| match &*reference {
                    "lt" => '<',
                    "gt" => '>',
                    "amp" => '&',
                    "quot" => '"',
                    other => panic!("unknown entity {other}"),
                });
                assert!(is_legal(c), "an illegal character by reference");
                open.last_mut().unwrap().text.push(c);
            }
            Event::Decl(_) => assert_eq!(open.len(), 1),
            Event::Eof => break,
            other => panic!("{other:?} is nothing that we write"),
        }
    }
    let mut outside = open.pop().unwrap();
    assert!(open.is_empty() && outside.text.trim().is_empty() && outside.children.len() == 1);
    outside.children.pop().unwrap()
}

fn element_of(start: &BytesStart<'_>, scope: &NamespaceResolver, document: &str) -> Read {
    let namespace = |found: ResolveResult<'_>| match found {
        ResolveResult::Bound(Namespace(ns)) => ns.to_owned(),
        ResolveResult::Unbound => String::new(),
        ResolveResult::Unknown(prefix) => panic!("unbound prefix {prefix} in\n{document}"),
    };
    let check_name = |name: &str| {
        let ok = name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-.:".contains(&b));
        assert!(
            ok && !name.is_empty() && name.matches(':').count() < 2,
            "{name:?} is no name"
        );
    };
    check_name(start.name().0);
    let (ns, name) = scope.resolve_element(start.name());
    let mut element = Read {
        ns: namespace(ns),
        name: name.as_ref().to_owned(),
        ..Read::default()
    };
    let mut seen = HashSet::new();
    for attribute in start.attributes() {
        let attribute = attribute.unwrap_or_else(|error| panic!("{error} in\n{document}"));
        check_name(attribute.key.0);
        assert!(!attribute.value.contains('<'), "a raw < in an attribute");
        let value = attribute
            .normalized_value(XmlVersion::Explicit1_0)
            .unwrap()
            .into_owned();
        assert!(value.chars().all(is_legal));
        if attribute.key.as_namespace_binding().is_some() {
            assert!(
                !value.is_empty() || attribute.key.0 == "xmlns",
                "a prefix bound to nothing"
            );
            continue;
        }
        let (ns, name) = scope.resolve_attribute(attribute.key);
        assert!(
            seen.insert((namespace(ns), name.as_ref().to_owned())),
            "an attribute twice in\n{document}"
        );
        element.attributes.push((attribute.key.0.to_owned(), value));
    }
    element
}

/// The representation for the full audience.
fn full(suffix: &str) -> Representation {
    Representation::with_suffix(Audience::Full, suffix).unwrap()
}

/// True for the vocabularies that we write in RSS 1.0, whatever publishers add.
fn ours(ns: &str) -> bool {
    ns.starts_with("http://purl.org/")
}

/// True where no attribute stands without a vocabulary, as RDF/XML wants it.
fn is_of_vocabularies(element: &Read) -> bool {
    element
        .attributes
        .iter()
        .all(|(name, _)| name.contains(':'))
        && element.children.iter().all(is_of_vocabularies)
}

fn cleaned(text: &str) -> String {
    text.chars().filter(|c| is_legal(*c)).collect()
}

/// A plain title as every format shows it: a break with the blanks around it is one blank.
fn on_one_line(title: &Text) -> Text {
    if title.kind != TextKind::Plain {
        return title.clone();
    }
    let breaks = [
        '\t', '\n', '\u{b}', '\u{c}', '\r', '\u{85}', '\u{2028}', '\u{2029}',
    ];
    let lines = title
        .value
        .trim()
        .split(breaks)
        .map(|line| line.trim_matches(' '));
    let value = lines
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    Text {
        value,
        ..title.clone()
    }
}

/// Plain and HTML texts read back to the letter; XHTML is markup, or HTML when it was ill-formed.
fn check_text(found: Option<&Read>, expect: &Text) {
    let found = found.expect("the text is there");
    let kind = found.attribute("type").unwrap_or("text");
    match expect.kind {
        TextKind::Xhtml if kind == "xhtml" => {
            assert!(
                found.text.is_empty()
                    && found.children.len() == 1
                    && found.children[0].name == "div"
            );
        }
        TextKind::Base64 => panic!("no text construct is of this kind"),
        TextKind::Plain => assert_eq!((kind, &found.text), ("text", &cleaned(&expect.value))),
        TextKind::Html | TextKind::Xhtml => {
            assert_eq!((kind, &found.text), ("html", &cleaned(&expect.value)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn atom_is_well_formed_and_its_texts_read_back(entry in entry(), metadata in head(), iri in text()) {
        // A-1..A-6, A-10, A-15.
        for form in [Representation::ATOM, Representation::CLASSIC_ATOM] {
            let feed = read(&document(form, &metadata, &entry, &iri));
            for name in ["id", "title", "updated"] {
                prop_assert!(feed.child(name).is_some());
            }
            prop_assert!(feed.children("author").count() > 0);
            let found = feed.children("entry").next().unwrap();
            prop_assert_eq!(&found.child("id").unwrap().text, &cleaned(&iri));
            match &entry.title {
                Some(title) => check_text(found.child("title"), &on_one_line(title)),
                None => prop_assert!(found.child("title").unwrap().text.is_empty()),
            }
            if let Some(summary) = &entry.summary {
                check_text(found.child("summary"), summary);
            }
            if let Some(Body { text, media_type: None, src: None }) = &entry.content {
                check_text(found.child("content"), text);
            }
            let has_alternate = found.children("link").any(|link| link.attribute("rel") == Some("alternate"));
            prop_assert!(has_alternate || found.child("content").is_some());
            let terms: Vec<_> = found.children("category").map(|c| c.attribute("term").unwrap().to_owned()).collect();
            let given = entry.categories.iter().map(|c| &c.term).filter(|term| !term.trim().is_empty());
            prop_assert_eq!(terms, given.map(|term| cleaned(term)).collect::<Vec<_>>());
            // A date that nobody can have meant is not shown, any other as it was said.
            let said = entry.published.as_ref().and_then(|date| date.at_us);
            let said = said.filter(|us| plausible(Some(*us)).is_some());
            let shown = found.child("published").map(|date| chrono::DateTime::parse_from_rfc3339(&date.text).unwrap());
            prop_assert_eq!(shown.map(|date| date.timestamp_micros()), said);
        }
    }

    #[test]
    fn rss_is_well_formed_and_says_nothing_twice(entry in entry(), metadata in head(), iri in text()) {
        // R-1..R-3, R-6, R-7.
        for form in [Representation::CLASSIC_RSS, full("rss")] {
            let rss = read(&document(form, &metadata, &entry, &iri));
            let channel = rss.child("channel").unwrap();
            for name in ["title", "link", "description"] {
                prop_assert!(channel.child(name).is_some());
            }
            let item = channel.child("item").unwrap();
            prop_assert_eq!(&item.child("guid").unwrap().text, &cleaned(&iri));
            prop_assert!(item.child("title").is_some() || item.child("description").is_some());
            for name in ["enclosure", "author", "pubDate", "comments", "source"] {
                item.child(name);
            }
            let gone = channel.children.iter().filter(|child| child.name == "deleted-entry").count();
            prop_assert_eq!(gone, usize::from(!form.is_classic()));
        }
    }

    #[test]
    fn rss_1_is_well_formed_and_every_attribute_of_it_is_of_a_vocabulary(
        entry in entry(),
        metadata in head(),
        iri in text(),
    ) {
        // D-1, D-3.
        for form in [full("rdf"), Representation::with_suffix(Audience::Classic, "rdf").unwrap()] {
            let rdf = read(&document(form, &metadata, &entry, &iri));
            prop_assert!(is_of_vocabularies(&rdf), "{rdf:?}");
            let (channel, item) = (rdf.children.first().unwrap(), rdf.children.iter().find(|it| it.name == "item"));
            for name in ["title", "link", "description", "items"] {
                prop_assert!(channel.child(name).is_some());
            }
            let item = item.unwrap();
            prop_assert_eq!(item.attribute("rdf:about").unwrap(), &cleaned(&iri));
            prop_assert!(item.child("title").is_some() && item.child("link").is_some());
            for name in ["description", "creator", "subject", "date"] {
                prop_assert!(item.children.iter().filter(|child| child.name == name && ours(&child.ns)).count() < 2);
            }
        }
    }

    #[test]
    fn tables_have_a_row_an_item_and_as_many_cells_as_columns(
        entry in entry(),
        metadata in head(),
        iri in text(),
    ) {
        // V-1, V-2.
        let csv = document(full("csv"), &metadata, &entry, &iri);
        let rows: Result<Vec<_>, _> = csv::ReaderBuilder::new().has_headers(false).from_reader(csv.as_bytes()).records().collect();
        let rows = rows.unwrap();
        prop_assert_eq!((rows.len(), rows[1].len(), rows[2].len()), (3, rows[0].len(), rows[0].len()));
        prop_assert!(!csv.contains(|c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r')));
        for cell in rows.iter().flatten() {
            prop_assert!(!cell.starts_with(['=', '+', '-', '@', '\t', '\r']), "{cell}");
        }
        let tsv = document(full("tsv"), &metadata, &entry, &iri);
        let columns: Vec<_> = tsv.lines().map(|line| line.split('\t').count()).collect();
        prop_assert_eq!(columns, vec![rows[0].len(); 3]);
    }

    #[test]
    fn a_page_of_posts_holds_what_it_opened(entry in entry(), metadata in head(), iri in text()) {
        for form in [full("html"), Representation::with_suffix(Audience::Classic, "html").unwrap()] {
            let page = document(form, &metadata, &entry, &iri);
            for tag in ["</main>", "</body>", "</html>", "</head>", "</style>"] {
                prop_assert_eq!(page.matches(tag).count(), 1, "{} in {}", tag, page);
            }
            let articles = if form.is_classic() { 1 } else { 2 };
            prop_assert_eq!(page.matches("</article>").count(), articles, "{}", page);
            prop_assert!(!page.contains("<script"));
            prop_assert!(page.chars().all(is_legal));
        }
    }

    #[test]
    fn every_form_of_json_is_json(entry in entry(), metadata in head(), iri in text()) {
        let read = |form| serde_json::from_str::<serde_json::Value>(&document(form, &metadata, &entry, &iri)).unwrap();
        let feed = read(full("jsonfeed"));
        // J-1, J-3.
        prop_assert!(feed["title"].is_string() && feed["items"].as_array().unwrap().len() == 1);
        let item = &feed["items"][0];
        prop_assert_eq!(item["id"].as_str(), Some(iri.as_str()));
        prop_assert!(item["content_html"].is_string() != item["content_text"].is_string());
        prop_assert_eq!(feed["_everfeed"]["deleted"].as_array().unwrap().len(), 1);
        let classic = read(Representation::with_suffix(Audience::Classic, "jsonfeed").unwrap());
        prop_assert_eq!(classic["_everfeed"].get("deleted"), None);
        let collection = read(full("as2"));
        prop_assert_eq!(collection["orderedItems"].as_array().unwrap().len(), 2);
        for activity in collection["orderedItems"].as_array().unwrap() {
            prop_assert!(activity["actor"]["name"].is_string() && activity["object"]["id"].is_string());
        }
        let lines = document(full("jsonl"), &metadata, &entry, &iri);
        let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        prop_assert_eq!(lines.len(), 3);
        prop_assert!(lines[0]["id"].is_string() && lines[2]["last_cursor"].is_string());
        let page = read(Representation::JSON);
        prop_assert_eq!(&page["items"][0], &lines[0]);
    }

    #[test]
    fn json_is_json(entry in entry(), metadata in head(), iri in text()) {
        let page: serde_json::Value = serde_json::from_str(&document(Representation::JSON, &metadata, &entry, &iri)).unwrap();
        prop_assert_eq!(page["items"].as_array().unwrap().len(), 2);
        prop_assert_eq!(page["items"][0]["object"]["id"].as_str(), Some(iri.as_str()));
        for item in page["items"].as_array().unwrap() {
            // S-1.
            prop_assert!(item["actor"]["displayName"].is_string() && item["published"].is_string());
        }
    }
}
