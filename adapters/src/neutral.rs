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
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    /// A field, unless there is nothing to say.
    fn put(&mut self, name: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), value.into());
        }
    }

    /// A text and its `_detail`.
    fn text(&mut self, name: &str, text: Option<&Text>) {
        self.put(name, text.map(|text| text.value.as_str()));
        self.put(
            &format!("{name}_detail"),
            text.map(|text| detail(text, None)),
        );
    }

    /// The permalink and all links, the enclosures among them.
    fn links(&mut self, permalink: Option<&str>, links: &[Link], enclosures: &[Enclosure]) {
        // feedparser's link is the one that the document has in its place.
        let proxied = links.iter().find(|link| link.rel == PROXIED);
        let shown = proxied.map(|link| link.href.as_str()).or(permalink);
        self.put("link", shown);
        self.put("feedburner_origlink", proxied.and(permalink));
        let enclosures = enclosures.iter().map(|enclosure| Link {
            media_type: enclosure.media_type.clone(),
            title: enclosure.title.clone(),
            length: enclosure.length.clone(),
            ..Link::to("enclosure", enclosure.url.clone())
        });
        let all: Vec<_> = links.iter().cloned().chain(enclosures).collect();
        self.put("links", list(&all, link));
    }

    /// Authors, the first of them also alone and in one line, and contributors.
    fn people(&mut self, authors: &[Person], contributors: &[Person]) {
        if let Some(first) = authors.first() {
            let composed = || match (&first.name, &first.email) {
                (Some(name), Some(email)) => Some(format!("{name} ({email})")),
                (name, email) => name.clone().or(email.clone()),
            };
            self.put("author", first.byline.clone().or_else(composed));
            self.put("author_detail", Some(person(first)));
        }
        self.put("authors", list(authors, person));
        self.put("contributors", list(contributors, person));
    }

    /// A date as written, and its `_epoch` if it was understood.
    fn date(&mut self, name: &str, date: Option<&Date>) {
        let Some(date) = date else { return };
        let epoch = date.at_us.map(|at_us| at_us.div_euclid(1_000_000));
        self.put(name, Some(date.raw.as_str()));
        self.put(&format!("{name}_epoch"), epoch);
    }
}

impl From<Fields> for Value {
    fn from(fields: Fields) -> Self {
        Self::Object(fields.0)
    }
}

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
    let mut fields = Fields::default();
    fields.put("id", metadata.id.as_deref());
    fields.text("title", metadata.title.as_ref());
    let podcast = metadata
        .foreign
        .iter()
        .find(|element| is_podcast_subtitle(element));
    let podcast = podcast.and_then(|element| element.words()).map(Text::plain);
    fields.text(
        "subtitle",
        podcast.as_ref().or(metadata.description.as_ref()),
    );
    fields.links(metadata.link("alternate"), &metadata.links, &[]);
    fields.text("rights", metadata.rights.as_ref());
    fields.people(&metadata.authors, &metadata.contributors);
    fields.put("tags", list(&metadata.categories, category));
    fields.put("language", metadata.language.as_deref());
    if let Some(maker) = &metadata.generator {
        fields.put("generator", maker.name.as_deref().or(maker.uri.as_deref()));
        fields.put("generator_detail", Some(generator(maker)));
    }
    match &metadata.image {
        Some(picture) if format == Format::Atom => fields.put("logo", Some(picture.url.as_str())),
        picture => fields.put("image", picture.as_ref().map(image)),
    }
    fields.put("icon", metadata.icon.as_deref());
    fields.date("published", metadata.published.as_ref());
    fields.date("updated", metadata.updated.as_ref());
    fields.put(
        "ttl",
        metadata.rhythm.ttl_mins.map(|minutes| minutes.to_string()),
    );
    extensions::metadata(metadata, &mut fields);
    fields.into()
}

fn entry(entry: &Entry) -> Value {
    let mut fields = Fields::default();
    fields.put("id", entry.id.as_deref());
    fields.text("title", entry.title.as_ref());
    // A body that stands alone is the summary too, as it is in RSS.
    let lone = || {
        let text = &entry.content.as_ref()?.text;
        Some(text).filter(|text| !text.value.is_empty())
    };
    fields.text("summary", entry.summary.as_ref().or_else(lone));
    fields.put("content", list(entry.content.as_slice(), content));
    fields.links(entry.permalink(), &entry.links, &entry.enclosures);
    fields.text("rights", entry.rights.as_ref());
    fields.people(&entry.authors, &entry.contributors);
    fields.put("tags", list(&entry.categories, category));
    fields.put("enclosures", list(&entry.enclosures, enclosure));
    fields.date("published", entry.published.as_ref());
    fields.date("updated", entry.updated.as_ref());
    fields.put("comments", entry.comments.as_deref());
    fields.put(
        "language",
        entry
            .language
            .as_deref()
            .filter(|language| !language.is_empty()),
    );
    extensions::entry(entry, &mut fields);
    fields.into()
}

/// `itunes:subtitle`: a podcast that has one means its `description` for another place.
fn is_podcast_subtitle(element: &Element) -> bool {
    element.name == "subtitle" && Vocabulary::of(&element.ns) == Vocabulary::Itunes
}

/// The values as an array, unless there are none.
fn list<T>(values: &[T], form: impl Fn(&T) -> Value) -> Option<Value> {
    (!values.is_empty()).then(|| values.iter().map(form).collect())
}

fn detail(text: &Text, media_type: Option<&str>) -> Value {
    let media_type = media_type.unwrap_or(match text.kind {
        TextKind::Plain => "text/plain",
        TextKind::Html => "text/html",
        TextKind::Xhtml => "application/xhtml+xml",
        TextKind::Base64 => "application/octet-stream",
    });
    let mut fields = Fields::default();
    fields.put("type", Some(media_type));
    fields.put("value", Some(text.value.as_str()));
    fields.put(
        "language",
        text.language
            .as_deref()
            .filter(|language| !language.is_empty()),
    );
    fields.put("base", text.base.as_deref());
    fields.into()
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

fn link(link: &Link) -> Value {
    let mut fields = Fields::default();
    fields.put("href", Some(link.href.as_str()));
    fields.put("rel", Some(link.rel.as_str()));
    fields.put("type", link.media_type.as_deref());
    fields.put("title", link.title.as_deref());
    fields.put("length", link.length.as_deref());
    fields.put("hreflang", link.hreflang.as_deref());
    fields.into()
}

fn enclosure(enclosure: &Enclosure) -> Value {
    let mut fields = Fields::default();
    fields.put("href", Some(enclosure.url.as_str()));
    fields.put("type", enclosure.media_type.as_deref());
    fields.put("length", enclosure.length.as_deref());
    fields.put("title", enclosure.title.as_deref());
    fields.into()
}

fn person(person: &Person) -> Value {
    let mut fields = Fields::default();
    fields.put("name", person.name.as_deref());
    fields.put("email", person.email.as_deref());
    fields.put("href", person.uri.as_deref());
    fields.into()
}

fn category(category: &Category) -> Value {
    let mut fields = Fields::default();
    fields.put("term", Some(category.term.as_str()));
    fields.put("scheme", category.scheme.as_deref());
    fields.put("label", category.label.as_deref());
    fields.into()
}

fn generator(generator: &Generator) -> Value {
    let mut fields = Fields::default();
    fields.put("name", generator.name.as_deref());
    fields.put("version", generator.version.as_deref());
    fields.put("href", generator.uri.as_deref());
    fields.into()
}

fn image(image: &Image) -> Value {
    let mut fields = Fields::default();
    fields.put("href", Some(image.url.as_str()));
    fields.put("title", image.title.as_deref());
    fields.put("link", image.link.as_deref());
    fields.put("width", image.width.as_deref());
    fields.put("height", image.height.as_deref());
    fields.put("description", image.description.as_deref());
    fields.into()
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
