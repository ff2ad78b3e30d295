//! The neutral form: a window as JSON with the field names of Python's feedparser, in which parsers are compared; not a
//! form that anything is stored or served in.

mod extensions;

use serde_json::{Map, Value, json};

use crate::{
    Body, Category, Date, Enclosure, Entry, Format, Head, Link, NotAFeed, Person, Text, TextKind, Window,
};

/// The fields of one object.
type Fields = Map<String, Value>;

/// A window in the neutral form: `{"version", "encoding", "feed": {…}, "entries": [{…}]}`. What the document does not say
/// is absent; no id is made up.
///
/// Names are feedparser's, except that `_epoch` (whole seconds UTC, rounded down) stands for its `_parsed`.
pub fn neutral(window: &Window) -> Value {
    let entries = window.entries.iter().map(|raw| entry(&raw.parse().0));
    json!({
        "version": window.version,
        "encoding": window.encoding,
        "feed": head(&window.head, window.format),
        "entries": entries.collect::<Vec<_>>(),
    })
}

/// One document's line of a JSONL file: the neutral form with `file` and `ok`, or what the document is instead of a feed.
pub fn neutral_line(file: &str, read: Result<&Window, &NotAFeed>) -> Value {
    let mut line = match read {
        Ok(window) => neutral(window),
        Err(error) => json!({ "error": error.to_string() }),
    };
    line["file"] = file.into();
    line["ok"] = read.is_ok().into();
    line
}

fn head(head: &Head, format: Format) -> Value {
    let mut fields = Fields::new();
    put(&mut fields, "id", head.id.as_deref());
    text(&mut fields, "title", head.title.as_ref());
    text(&mut fields, "subtitle", head.description.as_ref());
    links(&mut fields, head.link("alternate"), &head.links, &[]);
    text(&mut fields, "rights", head.rights.as_ref());
    people(&mut fields, &head.authors, &[]);
    put(&mut fields, "tags", list(&head.categories, category));
    put(&mut fields, "language", head.language.as_deref());
    put(&mut fields, "generator", head.generator.as_deref());
    if format == Format::Atom {
        put(&mut fields, "logo", head.image.as_deref());
    } else {
        put(&mut fields, "image", head.image.as_deref().map(|url| json!({ "href": url })));
    }
    date(&mut fields, "published", head.published.as_ref());
    date(&mut fields, "updated", head.updated.as_ref());
    put(&mut fields, "ttl", head.rhythm.ttl_mins.map(|minutes| minutes.to_string()));
    extensions::head(head, &mut fields);
    Value::Object(fields)
}

fn entry(entry: &Entry) -> Value {
    let mut fields = Fields::new();
    put(&mut fields, "id", entry.id.as_deref());
    text(&mut fields, "title", entry.title.as_ref());
    // A body that stands alone is the summary too, as it is in RSS.
    let lone = || entry.content.as_ref().map(|content| &content.text).filter(|text| !text.value.is_empty());
    text(&mut fields, "summary", entry.summary.as_ref().or_else(lone));
    put(&mut fields, "content", list(entry.content.as_slice(), content));
    links(&mut fields, entry.permalink(), &entry.links, &entry.enclosures);
    text(&mut fields, "rights", entry.rights.as_ref());
    people(&mut fields, &entry.authors, &entry.contributors);
    put(&mut fields, "tags", list(&entry.categories, category));
    put(&mut fields, "enclosures", list(&entry.enclosures, enclosure));
    date(&mut fields, "published", entry.published.as_ref());
    date(&mut fields, "updated", entry.updated.as_ref());
    put(&mut fields, "comments", entry.comments.as_deref());
    put(&mut fields, "language", entry.language.as_deref());
    extensions::entry(entry, &mut fields);
    Value::Object(fields)
}

/// A field, unless there is nothing to say.
fn put(fields: &mut Fields, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        fields.insert(name.to_owned(), value.into());
    }
}

/// The values as an array, unless there are none.
fn list<T>(values: &[T], form: impl Fn(&T) -> Value) -> Option<Value> {
    (!values.is_empty()).then(|| values.iter().map(form).collect())
}

/// A text and its `_detail`.
fn text(fields: &mut Fields, name: &str, text: Option<&Text>) {
    let Some(text) = text else { return };
    fields.insert(name.to_owned(), text.value.as_str().into());
    fields.insert(format!("{name}_detail"), detail(text, None));
}

fn detail(text: &Text, media_type: Option<&str>) -> Value {
    let media_type = media_type.unwrap_or(match text.kind {
        TextKind::Plain => "text/plain",
        TextKind::Html => "text/html",
        TextKind::Xhtml => "application/xhtml+xml",
        TextKind::Base64 => "application/octet-stream",
    });
    json!({ "type": media_type, "value": text.value })
}

fn content(body: &Body) -> Value {
    let mut value = detail(&body.text, body.media_type.as_deref());
    if let Some(src) = &body.src {
        value["src"] = src.as_str().into();
    }
    value
}

/// The permalink and all links, the enclosures among them.
fn links(fields: &mut Fields, permalink: Option<&str>, links: &[Link], enclosures: &[Enclosure]) {
    put(fields, "link", permalink);
    let enclosures = enclosures.iter().map(|enclosure| Link {
        href: enclosure.url.clone(),
        rel: "enclosure".to_owned(),
        media_type: enclosure.media_type.clone(),
        title: enclosure.title.clone(),
        hreflang: None,
        length: enclosure.length.clone(),
    });
    let all: Vec<_> = links.iter().cloned().chain(enclosures).collect();
    put(fields, "links", list(&all, link));
}

fn link(link: &Link) -> Value {
    let mut fields = Fields::new();
    put(&mut fields, "href", Some(link.href.as_str()));
    put(&mut fields, "rel", Some(link.rel.as_str()));
    put(&mut fields, "type", link.media_type.as_deref());
    put(&mut fields, "title", link.title.as_deref());
    put(&mut fields, "length", link.length.as_deref());
    put(&mut fields, "hreflang", link.hreflang.as_deref());
    Value::Object(fields)
}

fn enclosure(enclosure: &Enclosure) -> Value {
    let mut fields = Fields::new();
    put(&mut fields, "href", Some(enclosure.url.as_str()));
    put(&mut fields, "type", enclosure.media_type.as_deref());
    put(&mut fields, "length", enclosure.length.as_deref());
    put(&mut fields, "title", enclosure.title.as_deref());
    Value::Object(fields)
}

/// Authors, the first of them also alone, and contributors.
fn people(fields: &mut Fields, authors: &[Person], contributors: &[Person]) {
    if let Some(first) = authors.first() {
        let byline = match (&first.name, &first.email) {
            (Some(name), Some(email)) => Some(format!("{name} ({email})")),
            (name, email) => name.clone().or(email.clone()),
        };
        put(fields, "author", byline);
        put(fields, "author_detail", Some(person(first)));
    }
    put(fields, "authors", list(authors, person));
    put(fields, "contributors", list(contributors, person));
}

fn person(person: &Person) -> Value {
    let mut fields = Fields::new();
    put(&mut fields, "name", person.name.as_deref());
    put(&mut fields, "email", person.email.as_deref());
    put(&mut fields, "href", person.uri.as_deref());
    Value::Object(fields)
}

fn category(category: &Category) -> Value {
    let mut fields = Fields::new();
    put(&mut fields, "term", Some(category.term.as_str()));
    put(&mut fields, "scheme", category.scheme.as_deref());
    put(&mut fields, "label", category.label.as_deref());
    Value::Object(fields)
}

/// A date as written, and its `_epoch` if it was understood.
fn date(fields: &mut Fields, name: &str, date: Option<&Date>) {
    let Some(date) = date else { return };
    put(fields, name, Some(date.raw.as_str()));
    put(fields, &format!("{name}_epoch"), date.at_us.map(|at_us| at_us.div_euclid(1_000_000)));
}
