//! The neutral form: a document as JSON with the field names of Python's feedparser, in which
//! parsers are compared; not a form that anything is stored or served in.

mod extensions;

use serde_json::{Map, Value, json};

use crate::text::{base64, clean};
use crate::vocabulary::Vocabulary;
use crate::{
    Body, Category, Date, Element, Enclosure, Entry, Format, Generator, Image, Link, Metadata,
    NotAFeed, PROXIED, Person, SlicedDocument, Text, TextKind,
};

/// The fields of one object.
type Fields = Map<String, Value>;

/// A document in the neutral form: `{"version", "encoding", "feed": {…}, "entries": [{…}]}`. What
/// the document does not say is absent; no id is made up.
///
/// Names are feedparser's, except that `_epoch` (whole seconds UTC, rounded down) stands for its
/// `_parsed`.
pub fn neutral(document: &SlicedDocument) -> Value {
    let entries = document.entries.iter().map(|raw| entry(&raw.parse().0));
    json!({
        "version": document.version,
        "encoding": document.encoding,
        "feed": metadata(&document.metadata, document.format),
        "entries": entries.collect::<Vec<_>>(),
    })
}

/// One document's line of a JSONL file: the neutral form with `file` and `ok`, or what the document
/// is instead of a feed.
///
/// A document that is cut in its first entry is shown as far as it goes, and says so in `error`.
pub fn neutral_line(file: &str, read: Result<&SlicedDocument, &NotAFeed>) -> Value {
    let document = match read {
        Ok(document) => Some(document),
        Err(NotAFeed::NoWholeEntry { remains }) => remains.as_deref(),
        Err(_) => None,
    };
    let mut line = document.map_or_else(|| json!({}), neutral);
    line["file"] = file.into();
    line["ok"] = document.is_some().into();
    if let Err(error) = read {
        line["error"] = error.to_string().into();
    }
    line
}

fn metadata(metadata: &Metadata, format: Format) -> Value {
    let mut fields = Fields::new();
    put(&mut fields, "id", metadata.id.as_deref());
    text(&mut fields, "title", metadata.title.as_ref());
    let podcast = metadata
        .foreign
        .iter()
        .find(|element| is_podcast_subtitle(element));
    let podcast = podcast.and_then(|element| element.words()).map(Text::plain);
    text(
        &mut fields,
        "subtitle",
        podcast.as_ref().or(metadata.description.as_ref()),
    );
    links(
        &mut fields,
        metadata.link("alternate"),
        &metadata.links,
        &[],
    );
    text(&mut fields, "rights", metadata.rights.as_ref());
    people(&mut fields, &metadata.authors, &metadata.contributors);
    put(&mut fields, "tags", list(&metadata.categories, category));
    put(&mut fields, "language", metadata.language.as_deref());
    if let Some(maker) = &metadata.generator {
        put(
            &mut fields,
            "generator",
            maker.name.as_deref().or(maker.uri.as_deref()),
        );
        put(&mut fields, "generator_detail", Some(generator(maker)));
    }
    match &metadata.image {
        Some(picture) if format == Format::Atom => {
            put(&mut fields, "logo", Some(picture.url.as_str()))
        }
        picture => put(&mut fields, "image", picture.as_ref().map(image)),
    }
    put(&mut fields, "icon", metadata.icon.as_deref());
    date(&mut fields, "published", metadata.published.as_ref());
    date(&mut fields, "updated", metadata.updated.as_ref());
    put(
        &mut fields,
        "ttl",
        metadata.rhythm.ttl_mins.map(|minutes| minutes.to_string()),
    );
    extensions::metadata(metadata, &mut fields);
    Value::Object(fields)
}

fn entry(entry: &Entry) -> Value {
    let mut fields = Fields::new();
    put(&mut fields, "id", entry.id.as_deref());
    text(&mut fields, "title", entry.title.as_ref());
    // A body that stands alone is the summary too, as it is in RSS.
    let lone = || {
        entry
            .content
            .as_ref()
            .map(|content| &content.text)
            .filter(|text| !text.value.is_empty())
    };
    text(&mut fields, "summary", entry.summary.as_ref().or_else(lone));
    put(
        &mut fields,
        "content",
        list(entry.content.as_slice(), content),
    );
    links(
        &mut fields,
        entry.permalink(),
        &entry.links,
        &entry.enclosures,
    );
    text(&mut fields, "rights", entry.rights.as_ref());
    people(&mut fields, &entry.authors, &entry.contributors);
    put(&mut fields, "tags", list(&entry.categories, category));
    put(
        &mut fields,
        "enclosures",
        list(&entry.enclosures, enclosure),
    );
    date(&mut fields, "published", entry.published.as_ref());
    date(&mut fields, "updated", entry.updated.as_ref());
    put(&mut fields, "comments", entry.comments.as_deref());
    put(
        &mut fields,
        "language",
        entry
            .language
            .as_deref()
            .filter(|language| !language.is_empty()),
    );
    extensions::entry(entry, &mut fields);
    Value::Object(fields)
}

/// `itunes:subtitle`: a podcast that has one means its `description` for another place.
fn is_podcast_subtitle(element: &Element) -> bool {
    element.name == "subtitle" && Vocabulary::of(&element.ns) == Vocabulary::Itunes
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
    let mut fields = Fields::new();
    put(&mut fields, "type", Some(media_type));
    put(&mut fields, "value", Some(text.value.as_str()));
    put(
        &mut fields,
        "language",
        text.language
            .as_deref()
            .filter(|language| !language.is_empty()),
    );
    put(&mut fields, "base", text.base.as_deref());
    Value::Object(fields)
}

/// A content; the text that base64 stands for, if it is one.
fn content(body: &Body) -> Value {
    let mut value = detail(&body.text, body.media_type.as_deref());
    if body.text.kind == TextKind::Base64
        && let Some(text) =
            base64::decode(&body.text.value).and_then(|bytes| String::from_utf8(bytes).ok())
    {
        value["value"] = clean(&text).into();
    }
    if let Some(src) = &body.src {
        value["src"] = src.as_str().into();
    }
    value
}

/// The permalink and all links, the enclosures among them.
fn links(fields: &mut Fields, permalink: Option<&str>, links: &[Link], enclosures: &[Enclosure]) {
    // feedparser's link is the one that the document has in its place.
    let proxied = links.iter().find(|link| link.rel == PROXIED);
    put(
        fields,
        "link",
        proxied.map(|link| link.href.as_str()).or(permalink),
    );
    put(fields, "feedburner_origlink", proxied.and(permalink));
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

/// Authors, the first of them also alone and in one line, and contributors.
fn people(fields: &mut Fields, authors: &[Person], contributors: &[Person]) {
    if let Some(first) = authors.first() {
        let composed = || match (&first.name, &first.email) {
            (Some(name), Some(email)) => Some(format!("{name} ({email})")),
            (name, email) => name.clone().or(email.clone()),
        };
        put(fields, "author", first.byline.clone().or_else(composed));
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

fn generator(generator: &Generator) -> Value {
    let mut fields = Fields::new();
    put(&mut fields, "name", generator.name.as_deref());
    put(&mut fields, "version", generator.version.as_deref());
    put(&mut fields, "href", generator.uri.as_deref());
    Value::Object(fields)
}

fn image(image: &Image) -> Value {
    let mut fields = Fields::new();
    put(&mut fields, "href", Some(image.url.as_str()));
    put(&mut fields, "title", image.title.as_deref());
    put(&mut fields, "link", image.link.as_deref());
    put(&mut fields, "width", image.width.as_deref());
    put(&mut fields, "height", image.height.as_deref());
    put(&mut fields, "description", image.description.as_deref());
    Value::Object(fields)
}

/// A date as written, and its `_epoch` if it was understood.
fn date(fields: &mut Fields, name: &str, date: Option<&Date>) {
    let Some(date) = date else { return };
    put(fields, name, Some(date.raw.as_str()));
    put(
        fields,
        &format!("{name}_epoch"),
        date.at_us.map(|at_us| at_us.div_euclid(1_000_000)),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hints, slice};

    fn line(document: &str) -> Value {
        neutral_line(
            "x.xml",
            slice(document.as_bytes(), &Hints::default()).as_ref(),
        )
    }

    #[test]
    fn a_line_says_which_document_and_whether_it_is_a_feed() {
        let read = line("<rss version='2.0'><channel><title>t</title></channel></rss>");
        assert_eq!(
            read,
            json!({
                "file": "x.xml", "ok": true, "version": "rss20", "encoding": "UTF-8",
                "feed": {"title": "t", "title_detail": {"type": "text/plain", "value": "t"}}, "entries": [],
            })
        );
        let refused = line("<html><title>404</title></html>");
        assert_eq!(
            (&refused["ok"], &refused["file"]),
            (&json!(false), &json!("x.xml"))
        );
        assert!(refused["error"].as_str().unwrap().contains("404"));
    }

    // DESIGN section 4: whole entries before the cut count, and the cut entry is dropped.
    #[test]
    fn a_cut_entry_is_shown_only_where_no_whole_one_stands() {
        let cut = line("<rss><channel><item><title>a</title><link");
        assert_eq!(
            (&cut["ok"], &cut["entries"][0]["title"]),
            (&json!(true), &json!("a"))
        );
        assert!(cut["error"].as_str().unwrap().contains("cut"));
        let whole = line("<rss><channel><item><title>a</title></item><item><title>b</title><link");
        assert_eq!(whole["entries"].as_array().map(Vec::len), Some(1));
        assert!(whole.get("error").is_none());
        let cut = line(
            r#"{"version": "https://jsonfeed.org/version/1", "items": [{"id": "1", "title": "a", "url": "b"#,
        );
        assert_eq!(
            (&cut["version"], &cut["entries"][0]["title"]),
            (&json!("json1"), &json!("a"))
        );
        assert!(cut["error"].is_string());
    }

    #[test]
    fn fields_have_the_names_and_shapes_of_feedparser() {
        let read = line(
            "<feed xmlns='http://www.w3.org/2005/Atom'><generator version='1' uri='http://g/'>G</generator><logo>http://l/</logo>\
             <entry><author><name>Jo</name><email>j@e</email></author><link href='http://a/'/>\
             <link rel='enclosure' href='http://b/' length='5'/><updated>1970-01-01T00:00:01.9Z</updated>\
             <content type='application/octet-stream'>YTxi</content></entry></feed>",
        );
        let (feed, entry) = (&read["feed"], &read["entries"][0]);
        assert_eq!(feed["generator"], "G");
        assert_eq!(
            feed["generator_detail"],
            json!({"name": "G", "version": "1", "href": "http://g/"})
        );
        assert_eq!(
            (&feed["logo"], feed.get("image")),
            (&json!("http://l/"), None)
        );
        assert_eq!(entry["author"], "Jo (j@e)");
        assert_eq!(
            entry["author_detail"],
            json!({"name": "Jo", "email": "j@e"})
        );
        assert_eq!(
            entry["links"][1],
            json!({"href": "http://b/", "rel": "enclosure", "length": "5"})
        );
        assert_eq!(
            entry["enclosures"],
            json!([{"href": "http://b/", "length": "5"}])
        );
        assert_eq!(
            (&entry["updated"], &entry["updated_epoch"]),
            (&json!("1970-01-01T00:00:01.9Z"), &json!(1))
        );
        assert_eq!(
            entry["content"],
            json!([{"type": "application/octet-stream", "value": "a<b"}])
        );
        assert!(entry.get("id").is_none() && entry.get("published").is_none());
    }

    #[test]
    fn an_image_of_rss_has_its_parts() {
        let read = line(
            "<rss><channel><image><url>http://i/</url><title>t</title><link>http://l/</link><width>88</width>\
             <height>31</height><description>d</description></image><managingEditor>Jo &lt;j@e></managingEditor></channel></rss>",
        );
        let image = json!({
            "href": "http://i/", "title": "t", "link": "http://l/", "width": "88", "height": "31", "description": "d",
        });
        assert_eq!(
            (&read["feed"]["image"], &read["feed"]["author"]),
            (&image, &json!("Jo <j@e>"))
        );
    }
}
