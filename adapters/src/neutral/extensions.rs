//! Extension fields of the neutral form: what typed fields and foreign markup say under
//! feedparser's names; the common fields are `neutral`'s.

mod dates;
mod media;
mod podcast;
mod source;

use serde_json::{Value, json};

use super::{Fields, detail, person};
use crate::extensions::georss::{Location, Shape};
use crate::note::Notes;
use crate::reading::{Scope, person as persons, text_construct};
use crate::text::present;
use crate::vocabulary::Vocabulary;
use crate::{Cloud, Element, Entry, Link, Metadata};

/// Adds what a feed says beside the common fields.
pub(super) fn metadata(metadata: &Metadata, fields: &mut Fields) {
    let foreign = metadata.foreign.as_slice();
    if let Some(info) = info(foreign, metadata.language.as_deref()) {
        fields.put("info", Some(info["value"].clone()));
        fields.put("info_detail", Some(info));
    }
    fields.put("cloud", metadata.cloud.as_ref().map(cloud));
    fields.put("docs", text_of(foreign, Vocabulary::Rss, "docs"));
    fields.put("textinput", text_input(foreign));
    fields.put("license", licence(&metadata.links));
    podcast::both(foreign, fields);
    dates::both(foreign, fields);
    publisher(foreign, fields);
    unknown(foreign, fields);
}

/// Adds what an entry says beside the common fields.
pub(super) fn entry(entry: &Entry, fields: &mut Fields) {
    let foreign = entry.foreign.as_slice();
    if entry.id.is_some() {
        // What the id was before it was resolved is not known here: an equal permalink was made of
        // it.
        fields.put("guidislink", Some(entry.id.as_deref() == entry.permalink()));
    }
    fields.put("source", entry.source.as_deref().map(source::form));
    fields.put("where", entry.location().map(location));
    fields.put("license", licence(&entry.links));
    fields.put(
        "wfw_commentrss",
        text_of(foreign, Vocabulary::CommentApi, "commentRss"),
    );
    fields.put(
        "slash_comments",
        text_of(foreign, Vocabulary::Slash, "comments"),
    );
    fields.put("psc_chapters", podcast::chapters(foreign));
    podcast::both(foreign, fields);
    media::fields(foreign, fields);
    dates::both(foreign, fields);
    publisher(foreign, fields);
    unknown(foreign, fields);
}

/// The first element of a vocabulary with this name, in whatever case.
fn find<'e>(elements: &'e [Element], vocabulary: Vocabulary, name: &str) -> Option<&'e Element> {
    elements
        .iter()
        .find(|element| is(element, vocabulary, name))
}

fn is(element: &Element, vocabulary: Vocabulary, name: &str) -> bool {
    let is_vocabulary = match Vocabulary::of(&element.ns) {
        // RSS has no namespace of its own.
        Vocabulary::Foreign => element.ns.is_empty() && vocabulary == Vocabulary::Rss,
        other => other == vocabulary,
    };
    element.name.eq_ignore_ascii_case(name) && is_vocabulary
}

fn text_of(elements: &[Element], vocabulary: Vocabulary, name: &str) -> Option<String> {
    present(&find(elements, vocabulary, name)?.text())
}

/// `info` of Atom 0.3, or FeedBurner's: what a person is told who sees the document as it is.
fn info(foreign: &[Element], language: Option<&str>) -> Option<Value> {
    let info = find(foreign, Vocabulary::Atom, "info");
    let element = info.or_else(|| find(foreign, Vocabulary::FeedBurner, "browserFriendly"))?;
    let outside = Scope {
        language: language.map(str::to_owned),
        ..Scope::default()
    };
    let scope = outside.enter(element, &mut Notes::default());
    Some(detail(
        &text_construct::text(element.clone(), &scope)?,
        None,
    ))
}

fn cloud(cloud: &Cloud) -> Value {
    let mut fields = Fields::default();
    fields.put("domain", Some(cloud.domain.as_str()));
    fields.put("port", cloud.port.map(|port| port.to_string()));
    fields.put("path", cloud.path.as_deref());
    fields.put("registerprocedure", cloud.register_procedure.as_deref());
    fields.put("protocol", cloud.protocol.as_deref());
    fields.into()
}

fn text_input(foreign: &[Element]) -> Option<Value> {
    let element = find(foreign, Vocabulary::Rss, "textInput")?;
    let mut fields = Fields::default();
    for child in element.elements() {
        fields.put(&child.name.to_ascii_lowercase(), child.words());
    }
    Some(fields.into())
}

fn licence(links: &[Link]) -> Option<&str> {
    links
        .iter()
        .find(|link| link.rel == "license")
        .map(|link| link.href.as_str())
}

/// `webMaster`, `dc:publisher` or the owner of a podcast.
fn publisher(foreign: &[Element], fields: &mut Fields) {
    let named = find(foreign, Vocabulary::Rss, "webMaster")
        .or_else(|| find(foreign, Vocabulary::DublinCore, "publisher"))
        .and_then(|element| persons::line(&element.text()));
    let owner = || {
        persons::construct(
            find(foreign, Vocabulary::Itunes, "owner")?,
            &Scope::default(),
        )
    };
    let Some(publisher) = named.or_else(owner) else {
        return;
    };
    fields.put(
        "publisher",
        publisher.name.as_deref().or(publisher.email.as_deref()),
    );
    fields.put("publisher_detail", Some(person(&publisher)));
}

/// A location in the form of GeoJSON, as feedparser has it.
fn location(location: Location) -> Value {
    let points = location.points;
    match location.shape {
        Shape::Point => json!({ "type": "Point", "coordinates": points[0] }),
        Shape::Line => json!({ "type": "LineString", "coordinates": points }),
        Shape::Polygon => json!({ "type": "Polygon", "coordinates": [points] }),
        Shape::Box => json!({ "type": "Box", "coordinates": points }),
    }
}

/// Elements of vocabularies that nobody here knows: their text under `prefix_name`.
fn unknown(foreign: &[Element], fields: &mut Fields) {
    let unknown = foreign.iter().filter(|element| {
        Vocabulary::of(&element.ns) == Vocabulary::Foreign && !element.ns.is_empty()
    });
    for element in unknown {
        let Some(text) = element.words() else {
            continue;
        };
        let name = format!("{}_{}", element.prefix, element.name).to_ascii_lowercase();
        fields
            .0
            .entry(name.trim_start_matches('_'))
            .or_insert(text.into());
    }
}
