//! JSON Feed 1.0 and 1.1: what its members mean. Where its items begin and end is found elsewhere.

use crate::note::Notes;
use crate::reading::construct::picture;
use crate::reading::{Draft, Rank, Scope, add, add_person, person};
use crate::text::json::JsonValue;
use crate::text::{present, visible};
use crate::{
    Attribute, Body, Category, Element, Enclosure, Link, Metadata, Node, Note, Person, Text,
};

/// The namespace of members of a JSON Feed that no field of ours covers, extensions (`_name`) first
/// of all. Each becomes an element `member` with the member's name as its attribute `name` and its
/// value, as compact JSON, as its text: so it survives in Atom and RSS, and a JSON output can give
/// it back.
pub const MEMBERS: &str = "urn:everfeed:json-feed";

const MEDIA: &str = "http://search.yahoo.com/mrss/";

/// Number of items of a document without a version that are searched for the shape of JSON Feed.
const SHAPE_ITEMS_MAX: usize = 16;

/// Outline of a JSON Feed, known before its items are read.
pub(crate) struct JsonOutline<'t> {
    pub(crate) root: JsonValue<'t>,
    pub(crate) items: Option<JsonValue<'t>>,
    /// It names a version of JSON Feed.
    pub(crate) versioned: bool,
    /// Which, under feedparser's names.
    pub(crate) version: &'static str,
}

impl<'t> JsonOutline<'t> {
    /// Looks at a text that begins with an object; `None` when it is no JSON Feed. The version says
    /// so, or else a title and items of which one has what only items of a JSON Feed have.
    pub(crate) fn of(text: &'t str) -> Option<Self> {
        let root = JsonValue::first(text).filter(|root| root.is_object())?;
        let mut shape = Self {
            root,
            items: None,
            versioned: false,
            version: "json",
        };
        let mut titled = false;
        for (name, value) in root.members() {
            match name.as_str() {
                "version" => {
                    let said = value.string().unwrap_or_default();
                    let number = said
                        .split_once("jsonfeed.org/version/")
                        .map(|(_, number)| number);
                    shape.versioned = number.is_some();
                    shape.version = match number.map(|number| number.trim_end_matches('/')) {
                        Some("1" | "1.0") => "json1",
                        Some("1.1") => "json11",
                        _ => "json",
                    };
                }
                "title" => titled = value.string().is_some(),
                "items" if value.is_array() || value.is_object() => shape.items = Some(value),
                _ => {}
            }
        }
        // Of a cut document the title may be what is missing; then the items must say more.
        let shaped = || {
            (titled || !root.whole) && shape.items.is_some_and(|items| holds_items(items, titled))
        };
        (shape.versioned || shaped()).then_some(shape)
    }
}

/// True when one of the items has a content by the names of JSON Feed, or, if the document has a
/// title, an id and a URL.
fn holds_items(items: JsonValue<'_>, titled: bool) -> bool {
    items.elements().take(SHAPE_ITEMS_MAX).any(|item| {
        let has = |wanted: &str| {
            item.members()
                .any(|(name, value)| name == wanted && value.scalar().is_some())
        };
        has("content_html") || has("content_text") || (titled && has("id") && has("url"))
    })
}

/// Reads the members of the document that are not its items.
pub(crate) fn metadata(root: JsonValue<'_>, scope: &Scope, notes: &mut Notes) -> Metadata {
    let mut metadata = Metadata {
        language: scope.language.clone(),
        ..Metadata::default()
    };
    let mut foreign = FeedMembers::default();
    for (name, value) in root.members().filter(|(_, value)| value.whole) {
        let text = || value.string().as_deref().and_then(present);
        let link = |rel: &str| text().map(|url| Link::to(rel, scope.resolve(&url)));
        match name.as_str() {
            "version" | "items" => {}
            "title" => metadata.title = text().map(Text::plain),
            "description" => {
                metadata.description = value.string().and_then(visible).map(Text::plain)
            }
            "home_page_url" => add(&mut metadata.links, link("alternate")),
            "feed_url" => {
                // The spec calls it the feed's identity (LEGACY J-2).
                metadata.id = text();
                add(&mut metadata.links, link("self"));
            }
            "next_url" => add(&mut metadata.links, link("next")),
            "icon" => metadata.image = text().map(|url| picture(&url, scope)),
            "favicon" => metadata.icon = text().map(|url| scope.resolve(&url)),
            "language" => metadata.language = text().or(metadata.language.take()),
            "author" | "authors" => {
                people(value, scope).for_each(|person| add_person(&mut metadata.authors, person));
                if says_more(value, &["name", "url", "email"]) {
                    foreign.keep(&name, value, notes);
                }
            }
            "hubs" => {
                for hub in value.elements() {
                    match hub_url(hub) {
                        Some(url) => {
                            let hub = Link::to("hub", scope.resolve(&url));
                            add(&mut metadata.links, hub);
                        }
                        None => foreign.keep(&name, value, notes),
                    }
                }
            }
            "expired" => {
                if value.text == "true" {
                    notes.add(Note::Other(
                        "the feed says that it has expired: nothing more will come".to_owned(),
                    ));
                }
                foreign.keep(&name, value, notes);
            }
            _ => foreign.keep(&name, value, notes),
        }
    }
    metadata.foreign = foreign.elements;
    metadata
}

/// Reads an item.
pub(crate) fn item(json: &str, draft: &mut Draft<'_>) {
    let scope = draft.scope();
    if serde_json::from_str::<serde::de::IgnoredAny>(json).is_err() {
        draft.notes().add(Note::Mismatched);
    }
    let Some(item) = JsonValue::first(json) else {
        return;
    };
    let (mut html, mut plain) = (None, None);
    for (name, value) in item.members() {
        let text = || value.string().as_deref().and_then(present);
        match name.as_str() {
            "id" => draft.id(Rank::Native, &value.scalar().unwrap_or_default()),
            "url" => link("alternate", text(), scope, draft),
            "external_url" => link("related", text(), scope, draft),
            "title" => draft.title(Rank::Native, text().map(Text::plain)),
            "content_html" => html = value.string().and_then(visible),
            "content_text" => plain = Some(value),
            "summary" => draft.summary(
                Rank::Native,
                value.string().and_then(visible).map(Text::plain),
            ),
            "image" => match text() {
                Some(url) => draft.keep(thumbnail(scope.resolve(&url))),
                None => keep(&name, value, draft),
            },
            "date_published" => draft.published(Rank::Native, &text().unwrap_or_default()),
            "date_modified" => draft.updated(Rank::Native, &text().unwrap_or_default()),
            // A single tag that is no list is still a tag.
            "tags" | "tag" => {
                for term in value
                    .elements()
                    .chain([value])
                    .filter_map(|tag| present(&tag.scalar()?))
                {
                    draft.category(Category::of(term));
                }
            }
            "author" | "authors" => {
                people(value, scope).for_each(|person| draft.author(Rank::Native, Some(person)));
                if says_more(value, &["name", "url", "email"]) {
                    keep(&name, value, draft);
                }
            }
            "language" => draft.language(&text().unwrap_or_default()),
            "attachments" => {
                value
                    .elements()
                    .filter_map(|file| enclosure(file, scope))
                    .for_each(|file| draft.enclosure(file));
                if says_more(value, &["url", "mime_type", "title", "size_in_bytes"]) {
                    keep(&name, value, draft);
                }
            }
            _ => keep(&name, value, draft),
        }
    }
    bodies(html, plain, scope, draft);
}

/// The HTML is the content, and the plain text only where there is none; beside it, it is kept as
/// what it is.
fn bodies(
    html: Option<String>,
    plain: Option<JsonValue<'_>>,
    scope: &Scope,
    draft: &mut Draft<'_>,
) {
    if let (Some(_), Some(plain)) = (&html, plain) {
        keep("content_text", plain, draft);
    }
    let plain = || {
        plain
            .and_then(JsonValue::string)
            .and_then(visible)
            .map(Text::plain)
    };
    let text = html.map(|html| scope.html(html)).or_else(plain);
    draft.content(Rank::Native, text.map(Body::from));
}

fn link(rel: &str, url: Option<String>, scope: &Scope, draft: &mut Draft<'_>) {
    if let Some(url) = url {
        draft.link(Link::to(rel, scope.resolve(&url)));
    }
}

/// The main picture, in the vocabulary that every other format says it in.
fn thumbnail(url: String) -> Element {
    let url = Attribute {
        name: "url".to_owned(),
        value: url,
        ..Attribute::default()
    };
    Element {
        ns: MEDIA.to_owned(),
        prefix: "media".to_owned(),
        name: "thumbnail".to_owned(),
        attributes: vec![url],
        children: Vec::new(),
    }
}

/// One person, a list of people (1.1), or, against the spec, a name.
fn people<'p>(value: JsonValue<'p>, scope: &'p Scope) -> impl Iterator<Item = Person> + 'p {
    let one = (!value.is_array()).then_some(value);
    let many = value.is_array().then(|| value.elements());
    one.into_iter()
        .chain(many.into_iter().flatten())
        .filter_map(move |person| {
            if let Some(name) = person.string() {
                return person::line(&name);
            }
            let mut found = Person::default();
            for (name, value) in person.members() {
                let text = || value.string().as_deref().and_then(present);
                match name.as_str() {
                    "name" => found.name = text(),
                    "url" => found.uri = text().map(|url| scope.resolve(&url)),
                    "email" => found.email = text(),
                    _ => {}
                }
            }
            (found != Person::default()).then_some(found)
        })
}

/// An attachment. Its duration has no place in an enclosure, so the member is kept as well.
fn enclosure(file: JsonValue<'_>, scope: &Scope) -> Option<Enclosure> {
    let mut found = Enclosure::default();
    for (name, value) in file.members() {
        let text = || present(&value.scalar()?);
        match name.as_str() {
            "url" => found.url = text().map(|url| scope.resolve(&url)).unwrap_or_default(),
            "mime_type" => found.media_type = text(),
            "title" => found.title = text(),
            "size_in_bytes" => found.length = text(),
            _ => {}
        }
    }
    (!found.url.is_empty()).then_some(found)
}

/// The URL of a hub that speaks WebSub; a hub of another kind is no link that a subscriber could
/// follow.
fn hub_url(hub: JsonValue<'_>) -> Option<String> {
    let (mut url, mut kind) = (None, None);
    for (name, value) in hub.members() {
        match name.as_str() {
            "url" => url = present(&value.string()?),
            "type" => kind = value.string(),
            _ => {}
        }
    }
    let speaks = |kind: &String| {
        ["websub", "pubsubhubbub"]
            .iter()
            .any(|known| kind.eq_ignore_ascii_case(known))
    };
    url.filter(|_| kind.as_ref().is_none_or(speaks))
}

/// True when an object, or one of a list, has members that are not among these.
fn says_more(value: JsonValue<'_>, known: &[&str]) -> bool {
    let odd = |object: JsonValue<'_>| {
        object
            .members()
            .any(|(name, _)| !known.contains(&name.as_str()))
    };
    if value.is_array() {
        value.elements().any(odd)
    } else {
        odd(value)
    }
}

fn keep(name: &str, value: JsonValue<'_>, draft: &mut Draft<'_>) {
    if value.text != "null" {
        draft.keep(member(name, value));
    }
}

fn member(name: &str, value: JsonValue<'_>) -> Element {
    let name = Attribute {
        name: "name".to_owned(),
        value: crate::text::clean(name).into_owned(),
        ..Attribute::default()
    };
    Element {
        ns: MEMBERS.to_owned(),
        prefix: "json".to_owned(),
        name: "member".to_owned(),
        attributes: vec![name],
        children: vec![Node::Text(value.compact())],
    }
}

/// Members of the document that no field covers.
#[derive(Default)]
struct FeedMembers {
    elements: Vec<Element>,
}

/// Limit of the members of a document that are kept though no field covers them; the rest is
/// dropped with a note.
const MEMBERS_MAX: usize = 1024;

impl FeedMembers {
    fn keep(&mut self, name: &str, value: JsonValue<'_>, notes: &mut Notes) {
        if value.text == "null" {
            return;
        }
        if self.elements.len() >= MEMBERS_MAX {
            notes.add(Note::Other(format!(
                "more than {MEMBERS_MAX} members of the feed that no field covers"
            )));
            return;
        }
        let element = member(name, value);
        // A list of which several elements say more is kept once.
        if self.elements.last() != Some(&element) {
            self.elements.push(element);
        }
    }
}
