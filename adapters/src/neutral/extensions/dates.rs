//! Dates of the neutral form that are neither publication nor change: made, expiring, valid from
//! and to.

use super::{Fields, is};
use crate::text::{date, present};
use crate::vocabulary::Vocabulary;
use crate::{Date, Element};

/// Adds them. Of several of a kind the last counts, as in feedparser.
pub(super) fn both(foreign: &[Element], fields: &mut Fields) {
    let last = |vocabulary, name| {
        foreign
            .iter()
            .rev()
            .find(move |element| is(element, vocabulary, name))
    };
    let created =
        last(Vocabulary::DublinCoreTerms, "created").or_else(|| last(Vocabulary::Atom, "created"));
    add(fields, "created", created.map(Element::text));
    add(
        fields,
        "expired",
        last(Vocabulary::Rss, "expirationDate").map(Element::text),
    );
    let valid = last(Vocabulary::DublinCoreTerms, "valid")
        .map(Element::text)
        .unwrap_or_default();
    // DCMI Period: `start=…;end=…;scheme=…`.
    for part in valid.split(';') {
        match part.split_once('=') {
            Some((name, value)) if name.trim() == "start" => {
                add(fields, "validity_start", Some(value.to_owned()))
            }
            Some((name, value)) if name.trim() == "end" => {
                add(fields, "validity_end", Some(value.to_owned()))
            }
            _ => {}
        }
    }
}

fn add(fields: &mut Fields, name: &str, raw: Option<String>) {
    let Some(raw) = raw.as_deref().and_then(present) else {
        return;
    };
    let at_us = date::parse(&raw);
    fields.date(name, Some(&Date { raw, at_us }));
}
