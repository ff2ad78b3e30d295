//! The source of an aggregated entry, in the neutral form.

use serde_json::Value;

use super::super::{category, generator, list};
use super::Fields;
use crate::Source;

pub(super) fn form(source: &Source) -> Value {
    let mut fields = Fields::default();
    fields.put("id", source.id.as_deref());
    // What RSS gives is the feed itself.
    fields.put("href", source.link("self"));
    fields.text("title", source.title.as_ref());
    fields.text("subtitle", source.subtitle.as_ref());
    fields.links(source.page(), &source.links, &[]);
    fields.text("rights", source.rights.as_ref());
    fields.people(&source.authors, &source.contributors);
    fields.put("tags", list(&source.categories, category));
    if let Some(maker) = &source.generator {
        fields.put("generator", maker.name.as_deref());
        fields.put("generator_detail", Some(generator(maker)));
    }
    fields.put("icon", source.icon.as_deref());
    fields.put("logo", source.logo.as_deref());
    fields.date("updated", source.updated.as_ref());
    fields.into()
}
