//! Entries: the parts that items, metadata and deferred edits share.

use super::table::{stored_enums, stored_newtypes, stored_structs};
use everfeed_adapters::{
    Attribute, Body, Category, Date, Digest, Element, Enclosure, Entry, Generator, IsPermaLink,
    Link, Node, Person, Source, Text, TextKind,
};

stored_newtypes! { Digest }

stored_structs! {
    Entry {
        id, title, summary, content, links, authors, contributors, categories, enclosures, published, updated, rights,
        comments, language, source, foreign, is_permalink,
    }
    Text { kind, value, language, base }
    Body { text, media_type, src }
    Link { href, rel, media_type, title, hreflang, length }
    Person { name, email, uri, byline }
    Category { term, scheme, label }
    Enclosure { url, media_type, length, title, is_illustration }
    Date { raw, at_us }
    Source {
        id, title, subtitle, links, authors, contributors, categories, generator, icon, logo, rights, updated, foreign,
    }
    Generator { name, version, uri }
    Element { ns, prefix, name, attributes, children }
    Attribute { ns, prefix, name, value }
}

stored_enums! {
    TextKind { 0 Plain, 1 Html, 2 Xhtml, 3 Base64 }
    Node { 0 Text(text), 1 Element(element) }
    IsPermaLink { 0 Unstated, 1 True, 2 False }
}
