//! Documents of publishers against ours that are made of them: the elements of a channel that come
//! out again, and entries and metadata that are read, written as Atom and read again.

use everfeed::{
    feed::{
        filter::Filter,
        item::{Content, Item, ItemDigests, KeyHash, PublisherId, iri, is_absolute_iri},
        order::Order,
        page::Page,
        record::{Completeness, FeedNo, FeedRecord, ItemCounts},
        stamp::Stamp,
    },
    render::{Document, Representation, Site},
};
use everfeed_adapters::{
    Category, Entry, Hints, Metadata, SlicedDocument, Text, customary, slice,
    text::{encoding::decode, entities::unescape},
};
use quick_xml::{
    NsReader,
    events::{BytesStart, Event},
    name::{Namespace, NamespaceResolver, ResolveResult},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashSet},
    path::PathBuf,
    sync::Arc,
};
use testkit::data::{large, vendored};
use url::Url;

const NAMESPACE: &str = "example.org/feed";

/// Simple Sharing Extensions.
const SHARING: &str = "http://www.microsoft.com/schemas/rss/sse";
/// The vocabulary in which a document says how often it changes: ours say that of themselves.
const SYNDICATION: &str = "http://purl.org/rss/1.0/modules/syndication/";

/// The documents of markup below some folders.
fn documents(folders: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut folders: Vec<_> = folders.into_iter().collect();
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "xml" || extension == "json")
                && !path.to_str().unwrap().ends_with(".expect.json")
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Documents of real publishers.
fn real() -> Vec<PathBuf> {
    let is_real = |path: &PathBuf| {
        path.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("real-")
    };
    let folders = std::fs::read_dir(large("corpus"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(is_real);
    documents(folders)
}

fn hints() -> Hints<'static> {
    Hints {
        base_url: Some("http://example.org/feed.xml"),
        ..Hints::default()
    }
}

/// A document as a page of ours, before anybody has edited or deleted anything.
fn written(sliced: &SlicedDocument, form: Representation) -> String {
    let mut ids = HashSet::new();
    let mut items = Vec::new();
    for raw in &sliced.entries {
        let entry = raw.parse().0;
        let id = KeyHash::of(NAMESPACE, &raw.key.stripped()).item_id();
        if !ids.insert(id) {
            continue;
        }
        let iri = iri(NAMESPACE, &raw.key);
        let at = Stamp::from_secs(1_800_000_000).plus_secs(items.len() as u64);
        items.push(Arc::new(Item {
            id,
            modified: at,
            created: at,
            revived: None,
            published_us: entry.published.as_ref().and_then(|date| date.at_us),
            publisher_id: PublisherId::of(&entry, &iri, NAMESPACE),
            iri,
            content: Content::Live(Arc::new(entry)),
            tombstone_count: 0,
            digests: ItemDigests::default(),
        }));
    }
    let feed = FeedRecord {
        last_t: Stamp::from_secs(1_900_000_000),
        items: ItemCounts {
            total: items.len() as u64,
            live: items.len() as u64,
            shortened: 0,
            bytes: None,
        },
        metadata: Arc::new(sliced.metadata.clone()),
        completeness: Completeness {
            first_cursor: Some(String::new()),
            ..Completeness::default()
        },
        ..FeedRecord::new(FeedNo(1), "x", NAMESPACE)
    };
    let page = Page {
        items,
        last_cursor: "1_0_2".into(),
        more: false,
        record: Arc::new(feed),
        degraded: None,
        total: Some(3),
        index: None,
        scanned: None,
    };
    let site = Site::new(&Url::parse("http://127.0.0.1").unwrap(), "");
    let links = site.links("x", form, Order::MODIFIED, &Filter::All, None);
    let document = Document {
        page: &page,
        links: &links,
        push: None,
        ttl_mins: Some(60),
    };
    String::from_utf8(form.write(&document)).unwrap()
}

/// An element as another parser reads it.
#[derive(Debug, Default)]
struct Seen {
    ns: String,
    name: String,
    attributes: Vec<String>,
    text: String,
    children: Vec<Seen>,
}

impl Seen {
    /// The root element of a document; `None` if it is not well-formed.
    fn root(document: &str) -> Option<Self> {
        let mut reader = NsReader::from_str(document);
        let mut open = vec![Self::default()];
        loop {
            match reader.read_event().ok()? {
                Event::Start(start) => open.push(Self::of(&start, reader.resolver())?),
                Event::Empty(start) => {
                    let seen = Self::of(&start, reader.resolver())?;
                    open.last_mut()?.children.push(seen);
                }
                Event::End(_) => {
                    let closed = open.pop()?;
                    open.last_mut()?.children.push(closed);
                }
                Event::Text(text) => open.last_mut()?.text.push_str(&text),
                Event::CData(text) => open.last_mut()?.text.push_str(&text),
                Event::GeneralRef(reference) => match reference.resolve_char_ref().ok()? {
                    Some(c) => open.last_mut()?.text.push(c),
                    None => open.last_mut()?.text.push_str(match &*reference {
                        "lt" => "<",
                        "gt" => ">",
                        "amp" => "&",
                        "quot" => "\"",
                        "apos" => "'",
                        _ => return None,
                    }),
                },
                Event::Eof => return open.pop()?.children.pop(),
                _ => {}
            }
        }
    }

    fn of(start: &BytesStart<'_>, scope: &NamespaceResolver) -> Option<Self> {
        let (resolved, local) = scope.resolve_element(start.name());
        let ns = match resolved {
            ResolveResult::Bound(Namespace(ns)) => ns.to_owned(),
            _ => String::new(),
        };
        let mut attributes = Vec::new();
        for attribute in start.attributes() {
            let attribute = attribute.ok()?;
            if !attribute.key.0.starts_with("xmlns") && !attribute.key.0.starts_with("xml:") {
                attributes.push(unescape(&attribute.value).trim().to_owned());
            }
        }
        Some(Self {
            ns,
            name: local.as_ref().to_owned(),
            attributes,
            ..Self::default()
        })
    }

    /// Every word and attribute in it.
    fn words(&self) -> Vec<String> {
        let mut words: Vec<String> = self.text.split_whitespace().map(str::to_owned).collect();
        words.extend(
            self.attributes
                .iter()
                .filter(|value| !value.is_empty())
                .cloned(),
        );
        self.children
            .iter()
            .for_each(|child| words.extend(child.words()));
        words
    }

    fn is_entry(&self) -> bool {
        ["item", "entry"].contains(&self.name.to_ascii_lowercase().as_str())
    }

    fn attribute_is(&self, values: &[&str]) -> bool {
        self.attributes
            .iter()
            .any(|value| values.contains(&value.as_str()))
    }
}

/// The elements of a feed that stand outside its entries.
fn head(root: &Seen) -> Vec<&Seen> {
    let channels: Vec<&Seen> = root
        .children
        .iter()
        .filter(|child| child.name.eq_ignore_ascii_case("channel"))
        .collect();
    let outside = root
        .children
        .iter()
        .filter(|child| !child.name.eq_ignore_ascii_case("channel"));
    let inside = channels.iter().flat_map(|channel| channel.children.iter());
    outside
        .chain(inside)
        .filter(|child| !child.is_entry())
        .collect()
}

/// True for elements that are never repeated; see `render/channel.rs`, and the
/// dates, ids and names of software, of which a document of ours has its own.
fn is_left_out(element: &Seen, form: Representation) -> bool {
    let name = element.name.to_ascii_lowercase();
    let own = [
        "cloud",
        "ttl",
        "lastbuilddate",
        "pubdate",
        "updated",
        "modified",
        "date",
        "published",
        "generator",
        "generatoragent",
        "id",
        "items",
        "totalresults",
        "startindex",
        "itemsperpage",
        "deleted-entry",
    ];
    let relations = [
        "self",
        "hub",
        "first",
        "last",
        "next",
        "previous",
        "prev",
        "prev-archive",
        "next-archive",
        "current",
    ];
    let only_in_rss = ["skiphours", "skipdays", "textinput"];
    own.contains(&name.as_str())
        || element.ns.contains("syndication/history")
        || element.ns == SYNDICATION
        || (name == "link" && element.attribute_is(&relations))
        || (form != Representation::CLASSIC_RSS
            && only_in_rss.contains(&name.as_str())
            && name != "textinput")
        || element.words().is_empty()
}

/// True when the words of an element are in the head of a document, in an element of that name or
/// another.
fn comes_out(element: &Seen, out: &[&Seen], form: Representation) -> bool {
    let foreign = !element.ns.is_empty()
        && !element.ns.contains("rss/1.0/")
        && !element.ns.to_ascii_lowercase().contains("atom");
    let words = match element.name.as_str() {
        // Atom has the address of a picture only.
        "image" if form != Representation::CLASSIC_RSS && !foreign => {
            let url = element.children.iter().find(|child| child.name == "url");
            url.map_or_else(Vec::new, Seen::words)
        }
        // How a link is called and what is behind it, only Atom can say.
        "link" => element
            .words()
            .into_iter()
            .filter(|word| word.contains("://"))
            .collect(),
        _ => element.words(),
    };
    let holds = |candidate: &&Seen| {
        let found: HashSet<String> = candidate.words().into_iter().collect();
        words.iter().all(|word| found.contains(word))
    };
    let same = |candidate: &&&Seen| candidate.ns == element.ns && candidate.name == element.name;
    if out.iter().filter(same).any(holds) {
        return true;
    }
    // An element with a field of its own is spelt as the syntax spells it: its words may stand
    // anywhere, in another order.
    let all: Vec<String> = out.iter().flat_map(|candidate| candidate.words()).collect();
    let text = all.join(" ");
    let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    words
        .iter()
        .all(|word| text.contains(word.as_str()) || text.contains(&bare(word)))
}

testkit::reads_corpora! {
    #[test]
    fn the_elements_of_a_channel_come_out_again() {
        check_channels(&real());
    }
}

fn check_channels(paths: &[PathBuf]) {
    for form in [
        Representation::ATOM,
        Representation::CLASSIC_ATOM,
        Representation::CLASSIC_RSS,
    ] {
        let (mut met, mut all, mut lost) = (0, 0, Vec::new());
        for path in paths {
            let bytes = std::fs::read(path).unwrap();
            let text = decode(&bytes, None).text;
            let (Some(source), Ok(sliced)) = (Seen::root(&text), slice(&bytes, &hints())) else {
                continue;
            };
            let document = written(&sliced, form);
            let root = Seen::root(&document).unwrap();
            let out = head(&root);
            let language = sliced.metadata.language.as_deref();
            for element in head(&source)
                .into_iter()
                .filter(|element| !is_left_out(element, form))
            {
                all += 1;
                // Atom has the language in an attribute of its root.
                let is_language = element.name == "language"
                    && language.is_some_and(|tag| document.contains(tag));
                if is_language || comes_out(element, &out, form) {
                    met += 1;
                } else {
                    let file = path.file_name().unwrap().to_string_lossy().into_owned();
                    lost.push(format!(
                        "{file}: {{{}}}{} {:?}",
                        element.ns,
                        element.name,
                        element.words()
                    ));
                }
            }
        }
        println!(
            "{}: {met} of {all} elements of channels come out",
            form.name()
        );
        lost.iter()
            .for_each(|line| println!("  lost: {}", line.chars().take(200).collect::<String>()));
        assert!(
            met * 100 >= all * 95,
            "{}: only {met} of {all}",
            form.name()
        );
        assert!(all > 300, "only {all} elements");
    }
}

/// Tags with their schemes, which are IRIs in Atom (RFC 4287 section 4.2.2.2); the `domain` of RSS
/// may be any text.
fn categories(tags: &[Category]) -> Value {
    let scheme = |tag: &Category| tag.scheme.clone().filter(|scheme| is_absolute_iri(scheme));
    json!(
        tags.iter()
            .map(|tag| (&tag.term, scheme(tag)))
            .collect::<Vec<_>>()
    )
}

/// The fields of an entry that our Atom can say. Dates are ours when they are not plausible, bodies
/// of XHTML are written anew.
fn fields_of_entry(entry: &Entry) -> BTreeMap<&'static str, Value> {
    let files = entry.enclosures.iter().filter(|file| !file.is_illustration);
    let permalink = entry.permalink().map(str::trim);
    BTreeMap::from([
        ("entry.title", text(entry.title.as_ref())),
        ("entry.summary", text(entry.summary.as_ref())),
        (
            "entry.content",
            entry
                .content
                .as_ref()
                .map_or(Value::Null, |body| text(Some(&body.text))),
        ),
        ("entry.permalink", json!(permalink)),
        ("entry.authors", people(&entry.authors)),
        ("entry.contributors", people(&entry.contributors)),
        ("entry.categories", categories(&entry.categories)),
        (
            "entry.enclosures",
            json!(
                files
                    .map(|file| (&file.url, &file.media_type))
                    .collect::<Vec<_>>()
            ),
        ),
        ("entry.rights", text(entry.rights.as_ref())),
        ("entry.foreign", foreign(&entry.foreign)),
    ])
}

fn fields_of_feed(metadata: &Metadata) -> BTreeMap<&'static str, Value> {
    BTreeMap::from([
        ("feed.title", text(metadata.title.as_ref())),
        ("feed.description", text(metadata.description.as_ref())),
        ("feed.authors", people(&metadata.authors)),
        ("feed.contributors", people(&metadata.contributors)),
        ("feed.categories", categories(&metadata.categories)),
        ("feed.language", json!(metadata.language)),
        ("feed.rights", text(metadata.rights.as_ref())),
        (
            "feed.image",
            json!(metadata.image.as_ref().map(|image| &image.url)),
        ),
        ("feed.icon", json!(metadata.icon)),
        ("feed.site", json!(metadata.link("alternate"))),
        ("feed.foreign", foreign(&metadata.foreign)),
    ])
}

/// Language and base stand elsewhere once they were applied; a text that nobody sees is none.
fn text(text: Option<&Text>) -> Value {
    text.filter(|text| !text.value.trim().is_empty())
        .map_or(Value::Null, |text| json!((text.kind, text.value.trim())))
}

/// Atom wants a name: what stands for one becomes it.
fn people(people: &[everfeed_adapters::Person]) -> Value {
    let shown = |person: &everfeed_adapters::Person| {
        let name = person
            .name
            .clone()
            .or(person.email.clone())
            .or(person.uri.clone());
        json!((name, &person.email, &person.uri))
    };
    people.iter().map(shown).collect()
}

fn foreign(elements: &[everfeed_adapters::Element]) -> Value {
    let is_ours = |element: &&everfeed_adapters::Element| {
        element.ns == "http://fanout.org/protocol/atom"
            || element.ns == SYNDICATION
            || element.name == "edited"
            // The word that the feed has moved is never repeated.
            || element.name == "new-feed-url"
    };
    elements
        .iter()
        .filter(|element| !is_ours(element))
        .map(shape)
        .collect()
}

/// An element without the prefixes that it was written with, and with the namespaces as they are
/// defined. The other versions of a post that are in it (`sx:conflicts`) are left out: to some
/// readers they would be posts, so they are not written.
fn shape(element: &everfeed_adapters::Element) -> Value {
    let is_version = |node: &&everfeed_adapters::Node| {
        let everfeed_adapters::Node::Element(inner) = node else {
            return false;
        };
        element.ns == SHARING && ["item", "entry"].contains(&inner.name.as_str())
    };
    let mut children: Vec<Value> = Vec::new();
    for node in element.children.iter().filter(|node| !is_version(node)) {
        match (node, children.last_mut()) {
            // Nothing is between them any more.
            (everfeed_adapters::Node::Text(text), Some(Value::String(before))) => {
                before.push_str(text)
            }
            (everfeed_adapters::Node::Text(text), _) => children.push(json!(text)),
            (everfeed_adapters::Node::Element(element), _) => children.push(shape(element)),
        }
    }
    let defined = |ns: &str| customary(ns).map_or(ns.to_owned(), |(_, defined)| defined.to_owned());
    let attributes = element
        .attributes
        .iter()
        .map(|attribute| json!((defined(&attribute.ns), &attribute.name, &attribute.value)));
    json!((
        defined(&element.ns),
        &element.name,
        attributes.collect::<Vec<_>>(),
        children
    ))
}

/// Of a thousand values of each field, so many must come back; just below what is reached.
const COME_BACK: [(&str, usize); 21] = [
    ("entry.authors", 980),
    ("entry.categories", 990),
    ("entry.content", 990),
    ("entry.contributors", 700),
    ("entry.enclosures", 920),
    ("entry.foreign", 995),
    ("entry.permalink", 990),
    ("entry.rights", 990),
    ("entry.summary", 1000),
    ("entry.title", 1000),
    ("feed.authors", 980),
    ("feed.categories", 990),
    ("feed.contributors", 880),
    // One of them holds a script, which is left out.
    ("feed.description", 985),
    ("feed.foreign", 980),
    ("feed.icon", 990),
    ("feed.image", 990),
    ("feed.language", 900),
    ("feed.rights", 990),
    ("feed.site", 990),
    ("feed.title", 990),
];

#[test]
fn what_is_written_as_atom_reads_as_before() {
    check_read_again(&documents([vendored("corpus")]));
}

testkit::reads_corpora! {
    #[test]
    fn what_is_written_as_atom_reads_as_before_in_the_corpus() {
        check_read_again(&documents([vendored("corpus"), large("corpus")]));
    }
}

fn check_read_again(paths: &[PathBuf]) {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for path in paths {
        let Ok(first) = slice(&std::fs::read(path).unwrap(), &hints()) else {
            continue;
        };
        let document = written(&first, Representation::ATOM);
        let second = slice(document.as_bytes(), &Hints::default()).unwrap();
        let mut held = HashSet::new();
        let entries: Vec<Entry> = first
            .entries
            .iter()
            .filter(|raw| held.insert(raw.key.stripped()))
            .map(|raw| raw.parse().0)
            .collect();
        assert_eq!(entries.len(), second.entries.len(), "{}", path.display());
        let mut compare = |before: BTreeMap<&'static str, Value>,
                           after: BTreeMap<&'static str, Value>| {
            for (field, before) in before {
                // Where nothing was said, Atom may demand something all the same.
                if before.is_null() || before.as_array().is_some_and(Vec::is_empty) {
                    continue;
                }
                let (met, all) = counts.entry(field).or_default();
                *all += 1;
                if after[field] == before {
                    *met += 1;
                } else {
                    let file = path.file_name().unwrap().to_string_lossy();
                    let shown =
                        |value: &Value| value.to_string().chars().take(160).collect::<String>();
                    println!(
                        "{field}: {file}: {} became {}",
                        shown(&before),
                        shown(&after[field])
                    );
                }
            }
        };
        compare(
            fields_of_feed(&first.metadata),
            fields_of_feed(&second.metadata),
        );
        for (before, after) in entries.iter().zip(&second.entries) {
            compare(fields_of_entry(before), fields_of_entry(&after.parse().0));
        }
    }
    println!("{counts:#?}");
    for (field, least) in COME_BACK {
        let (met, all) = counts.get(field).copied().unwrap_or_default();
        assert!(
            met * 1000 >= all * least,
            "{field}: only {met} of {all} come back"
        );
    }
}
