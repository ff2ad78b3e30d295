//! The source of an aggregated entry, in the neutral form.

use serde_json::Value;

use super::super::{category, date, links, list, people, text};
use super::{Fields, put};
use crate::{Generator, Source};

pub(super) fn form(source: &Source) -> Value {
    let mut fields = Fields::new();
    let link = |rel: &str| {
        source
            .links
            .iter()
            .find(|link| link.rel == rel)
            .map(|link| link.href.as_str())
    };
    put(&mut fields, "id", source.id.as_deref());
    // What RSS gives is the feed itself.
    put(&mut fields, "href", link("self"));
    text(&mut fields, "title", source.title.as_ref());
    text(&mut fields, "subtitle", source.subtitle.as_ref());
    links(&mut fields, link("alternate"), &source.links, &[]);
    text(&mut fields, "rights", source.rights.as_ref());
    people(&mut fields, &source.authors, &source.contributors);
    put(&mut fields, "tags", list(&source.categories, category));
    if let Some(generator) = &source.generator {
        put(&mut fields, "generator", generator.name.as_deref());
        put(&mut fields, "generator_detail", Some(detail(generator)));
    }
    put(&mut fields, "icon", source.icon.as_deref());
    put(&mut fields, "logo", source.logo.as_deref());
    date(&mut fields, "updated", source.updated.as_ref());
    Value::Object(fields)
}

fn detail(generator: &Generator) -> Value {
    let mut fields = Fields::new();
    put(&mut fields, "name", generator.name.as_deref());
    put(&mut fields, "version", generator.version.as_deref());
    put(&mut fields, "href", generator.uri.as_deref());
    Value::Object(fields)
}
