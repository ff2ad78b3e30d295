//! Internal entities, which a document type declares between its brackets: replaced in the text of
//! the document, within limits. Nothing is ever fetched: external and parameter entities stay
//! unknown.

use std::borrow::Cow;
use std::collections::HashMap;

use super::entities::{self, Resolved};

/// Length of the part of a document that is searched for declarations, bytes.
const DECLARATIONS_BYTES_MAX: usize = 64 << 10;

/// Limit of the length of a name, bytes.
const NAME_BYTES_MAX: usize = 64;

/// Limit of the entities that a document declares; the rest stay unknown. HTML 4 has 252.
const ENTITIES_MAX: usize = 256;

/// Limit of the replacement of one entity when everything in it is replaced, in bytes; that of a
/// longer one is unknown.
const REPLACEMENT_BYTES_MAX: usize = 4096;

/// By how many bytes all replacements may make a document longer; what comes after that is left as
/// it stands.
const GROWTH_BYTES_MAX: usize = 1 << 20;

/// The document with the entities replaced that it declares, and whether a limit kept some from it.
/// Predefined names keep their meaning, whatever it declares.
pub(crate) fn expand(text: &str) -> (Cow<'_, str>, bool) {
    let mut limited = false;
    let Some((declared, end)) = declared(text, &mut limited) else {
        return (Cow::Borrowed(text), limited);
    };
    let mut replacements = HashMap::new();
    for name in declared.keys().filter(|name| !is_predefined(name)) {
        flatten(name, &declared, &mut replacements);
    }
    (replaced(text, end, &replacements, &mut limited), limited)
}

/// Name and literal value of each entity, and where the document type ends.
fn declared<'t>(text: &'t str, limited: &mut bool) -> Option<(HashMap<&'t str, &'t str>, usize)> {
    let mut near = text.len().min(DECLARATIONS_BYTES_MAX);
    while !text.is_char_boundary(near) {
        near -= 1;
    }
    let near = &text[..near];
    // One inside a CDATA section, or inside JSON, is part of somebody's text.
    let is_part =
        |start: &usize| near[..*start].contains("<![CDATA[") || near.trim_start().starts_with('{');
    // Most documents have none, and this looks at all of them.
    let start =
        memchr::memmem::find(near.as_bytes(), b"<!DOCTYPE").filter(|start| !is_part(start))?;
    let mut at = start
        + near[start..]
            .find(['[', '>'])
            .filter(|at| near[start + at..].starts_with('['))?
        + 1;
    let mut found = HashMap::new();
    let declares = || near[start..].contains("<!ENTITY") && !near[start..].contains("]>");
    *limited = near.len() < text.len() && declares();
    loop {
        at = near.len() - near[at..].trim_start().len();
        let rest = &near[at..];
        if let Some(after) = rest.strip_prefix("<!ENTITY") {
            let length = declaration(rest)?;
            if let Some((name, value)) = entity(&after[..length - "<!ENTITY".len()]) {
                if found.len() < ENTITIES_MAX {
                    // The first declaration binds (XML 1.0 section 4.2).
                    found.entry(name).or_insert(value);
                } else {
                    *limited |= !found.contains_key(name);
                }
            }
            at += length;
        } else if rest.starts_with("<!--") {
            at += rest.find("-->")? + 3;
        } else if rest.starts_with("<?") {
            at += rest.find("?>")? + 2;
        } else if rest.starts_with('<') {
            at += declaration(rest)?;
        } else if rest.starts_with('%') {
            at += rest.find(';')? + 1;
        } else {
            return (rest.starts_with(']') && !found.is_empty()).then_some((found, at));
        }
    }
}

/// Name and value of a declaration that gives its value: a parameter entity has a `%` there, an
/// external one no quote.
fn entity(after: &str) -> Option<(&str, &str)> {
    let (name, value) = after
        .trim_start()
        .split_once(|c: char| c.is_ascii_whitespace())?;
    let value = value.trim_start();
    let quote = value
        .chars()
        .next()
        .filter(|quote| matches!(quote, '"' | '\''))?;
    let value = &value[1..];
    let value = &value[..value.find(quote)?];
    (!name.contains(['<', '>', '&', ';', '%', '"', '\''])).then_some((name, value))
}

/// The length of a declaration: up to a `>` outside of quotes.
fn declaration(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(at + 1),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
    }
    None
}

/// Finds an entity's replacement, with numbers and other entities in it replaced; names of HTML
/// stay references. `None` is that of one that is too long, and of one that stands in itself.
fn flatten<'t>(
    name: &'t str,
    declared: &HashMap<&'t str, &'t str>,
    done: &mut HashMap<&'t str, Option<String>>,
) {
    let Some(mut rest) = declared
        .get(name)
        .copied()
        .filter(|_| !done.contains_key(name))
    else {
        return;
    };
    done.insert(name, None);
    let mut out = String::new();
    while let Some((before, reference, after)) = reference(rest) {
        out.push_str(before);
        match reference
            .strip_prefix('#')
            .and_then(|_| entities::resolve(reference))
        {
            Some(Resolved::Character(c)) => out.push(c),
            _ if declared.contains_key(reference) && !is_predefined(reference) => {
                flatten(reference, declared, done);
                let Some(Some(inner)) = done.get(reference) else {
                    return;
                };
                out.push_str(inner);
            }
            _ => out.extend(["&", reference, ";"]),
        }
        if out.len() > REPLACEMENT_BYTES_MAX {
            return;
        }
        rest = after;
    }
    out.push_str(rest);
    if out.len() <= REPLACEMENT_BYTES_MAX {
        done.insert(name, Some(out));
    }
}

/// XML itself says what these mean (section 4.6).
fn is_predefined(name: &str) -> bool {
    matches!(name, "amp" | "lt" | "gt" | "quot" | "apos")
}

/// The first reference of a text, with what stands before and behind it.
fn reference(text: &str) -> Option<(&str, &str, &str)> {
    memchr::memchr_iter(b'&', text.as_bytes()).find_map(|at| {
        let (name, after) = reference_at(&text[at..])?;
        Some((&text[..at], name, after))
    })
}

/// The name of the reference that a text begins with, and what stands behind it.
fn reference_at(text: &str) -> Option<(&str, &str)> {
    let near = &text.as_bytes()[..text.len().min(NAME_BYTES_MAX + 2)];
    let end = memchr::memchr(b';', near)?;
    let name = text[..end].strip_prefix('&')?;
    (!name.contains(['&', '<'])).then(|| (name, &text[end + 1..]))
}

/// The text with its references replaced, those in comments and CDATA sections left alone.
fn replaced<'t>(
    text: &'t str,
    end: usize,
    replacements: &HashMap<&str, Option<String>>,
    limited: &mut bool,
) -> Cow<'t, str> {
    let mut out = text[..end].to_owned();
    let mut rest = &text[end..];
    let mut room = GROWTH_BYTES_MAX;
    while let Some(at) = memchr::memchr2(b'&', b'<', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let skipped = if rest.starts_with("<![CDATA[") {
            rest.find("]]>")
        } else if rest.starts_with("<!--") {
            rest.find("-->")
        } else if let Some((name, after)) = reference_at(rest)
            && let Some(replacement) = replacements.get(name)
        {
            match replacement
                .as_ref()
                .filter(|replacement| replacement.len() <= room)
            {
                Some(replacement) => {
                    room -= replacement.len();
                    out.push_str(replacement);
                }
                None => {
                    *limited = true;
                    out.push_str(&rest[..rest.len() - after.len()]);
                }
            }
            rest = after;
            continue;
        } else {
            Some(1)
        };
        let skipped = skipped.unwrap_or(rest.len());
        out.push_str(&rest[..skipped]);
        rest = &rest[skipped..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(declarations: &str, text: &str, expect: &str) {
        let before = format!("<?xml version='1.0'?><!DOCTYPE rss [{declarations}]>");
        assert_eq!(
            expand(&format!("{before}{text}")).0,
            format!("{before}{expect}")
        );
    }

    #[test]
    fn declared_entities_are_replaced() {
        check(
            "<!ENTITY a \"b\">",
            "<x y='&a;'>&a;&b;&amp;</x>",
            "<x y='b'>b&b;&amp;</x>",
        );
        check(
            "<!ENTITY nbsp '&#160;'><!ENTITY c '&a;&a;'><!ENTITY a 'é&nbsp;'>",
            "&c;",
            "é\u{A0}é\u{A0}",
        );
        check("<!ENTITY a '<b>x</b>'>", "&a;", "<b>x</b>");
        check(
            "<!ELEMENT x (#PCDATA)><!-- <!ENTITY a 'no'> --><?x?>%y;\n<!ENTITY a 'b'>",
            "&a;",
            "b",
        );
        check("<!ENTITY a 'first'><!ENTITY a 'second'>", "&a;", "first");
    }

    #[test]
    fn comments_sections_and_predefined_names_are_left_alone() {
        check(
            "<!ENTITY a 'b'>",
            "<!-- &a; --><![CDATA[&a;]]>&a;",
            "<!-- &a; --><![CDATA[&a;]]>b",
        );
        check(
            "<!ENTITY amp 'no'><!ENTITY lt '&#38;#60;'><!ENTITY a '&amp;'>",
            "&amp;&lt;&a;",
            "&amp;&lt;&amp;",
        );
    }

    #[test]
    fn nothing_is_fetched() {
        let outside =
            "<!ENTITY a SYSTEM 'file:///etc/passwd'><!ENTITY b PUBLIC 'x' 'y'><!ENTITY % c 'd'>%c;";
        check(outside, "&a;&b;&c;", "&a;&b;&c;");
    }

    #[test]
    fn entities_that_grow_without_bound_stay_unknown() {
        check("<!ENTITY a '&b;'><!ENTITY b '&a;'>", "&a;", "&a;");
        let laughs = |what: &str| -> String {
            let more = (1..80)
                .map(|n| format!("<!ENTITY l{n} '{}'>", format!("&l{};", n - 1).repeat(100)));
            format!("<!ENTITY l0 '{what}'>") + &more.collect::<String>()
        };
        check(&laughs("ha"), "&l79;&l0;", "&l79;ha");
        check(&laughs(""), "&l79;", "");
        let many = "&a;".repeat(100_000);
        let grown = expand(&format!(
            "<!DOCTYPE x [<!ENTITY a '{}'>]>{many}",
            "x".repeat(4000)
        ))
        .0
        .len();
        assert!(grown < many.len() + GROWTH_BYTES_MAX + 5000, "{grown}");
    }

    #[test]
    fn a_limit_that_kept_an_entity_from_being_replaced_is_told() {
        let limited = |declarations: &str, text: &str| {
            expand(&format!("<!DOCTYPE x [{declarations}]>{text}")).1
        };
        let many: String = (0..=ENTITIES_MAX)
            .map(|n| format!("<!ENTITY e{n} 'x'>"))
            .collect();
        let long = format!("<!ENTITY a '{}'>", "x".repeat(REPLACEMENT_BYTES_MAX + 1));
        assert!(limited(&many, ""));
        assert!(limited(&long, "&a;"));
        assert!(limited(
            &"<!ENTITY a 'b'>".repeat(DECLARATIONS_BYTES_MAX / 10),
            "&a;"
        ));
        assert!(limited(&long.replace("xx", "x"), &"&a;".repeat(1000)));
        assert!(
            limited("<!ENTITY a '&a;'>", "&a;"),
            "one that stands in itself is endless"
        );
        assert!(!limited(&long, "&b;"));
        assert!(!limited("<!ENTITY a 'b'>", &"&a;".repeat(1000)));
    }

    #[test]
    fn broken_document_types_declare_nothing() {
        for text in [
            "<!DOCTYPE x>&a;",
            "<!DOCTYPE x [",
            "<!DOCTYPE x [<!ENTITY",
            "<!DOCTYPE x [<!ENTITY a 'b'> x ]>&a;",
            "<!DOCTYPE x [<!ENTITY a 'b>]>&a;",
            "<!DOCTYPE x [<!ENTITY é'é'>]>&é;",
            "<rss>&a;</rss>",
        ] {
            assert_eq!(expand(text), (text.into(), false));
        }
    }
}
