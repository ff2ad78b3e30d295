//! The neutral form: a window as JSON with the field names of Python's feedparser, in which parsers are compared; not a
//! form that anything is stored or served in.

mod extensions;

use serde_json::{Map, Value, json};

use crate::{Entry, Head, Window};

/// A window in the neutral form: `{"version", "feed": {…}, "entries": [{…}]}`. What the document does not say is absent.
pub fn neutral(window: &Window) -> Value {
    let entries = window.entries.iter().map(|raw| entry(&raw.parse().0));
    json!({ "feed": head(&window.head), "entries": entries.collect::<Vec<_>>() })
}

fn head(head: &Head) -> Value {
    let mut fields = Map::new();
    put(&mut fields, "id", head.id.as_deref());
    put(&mut fields, "title", head.title.as_ref().map(|title| title.value.as_str()));
    put(&mut fields, "link", head.link("alternate"));
    extensions::head(head, &mut fields);
    Value::Object(fields)
}

fn entry(entry: &Entry) -> Value {
    let mut fields = Map::new();
    put(&mut fields, "id", entry.id.as_deref());
    put(&mut fields, "title", entry.title.as_ref().map(|title| title.value.as_str()));
    put(&mut fields, "link", entry.permalink());
    extensions::entry(entry, &mut fields);
    Value::Object(fields)
}

/// A field, unless there is nothing to say.
fn put(fields: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        fields.insert(name.to_owned(), value.into());
    }
}
