//! Persons: the construct of Atom, and the line in which RSS and Dublin Core have a name and an
//! address.

use crate::reading::Scope;
use crate::text::present;
use crate::{Element, Person};

/// A person construct (RFC 4287 section 3.2); 0.3 says `url` for `uri`.
pub(crate) fn construct(element: &Element, scope: &Scope) -> Option<Person> {
    let field = |names: &[&str]| {
        element
            .elements()
            .find(|child| names.contains(&child.name.as_str()))
            .and_then(|child| child.words())
    };
    if element.elements().next().is_none() {
        return line(&element.text());
    }
    let person = Person {
        name: field(&["name"]),
        email: field(&["email"]),
        uri: field(&["uri", "url", "homepage"]).map(|uri| scope.resolve(&uri)),
        byline: None,
    };
    (person != Person::default()).then_some(person)
}

/// A person in one line: `mail (name)`, `name <mail>`, `name (mail)`, a mail address or a name.
pub(crate) fn line(text: &str) -> Option<Person> {
    let text = present(text)?;
    let is_mail = |word: &str| {
        word.len() > 2 && !word.starts_with('@') && !word.ends_with('@') && word.contains('@')
    };
    let bare = |word: &str| {
        let word = word.trim_matches(['(', ')', '<', '>', '[', ']', '"', ',', ';']);
        word.strip_prefix("mailto:").unwrap_or(word).to_owned()
    };
    let Some(mail) = text.split_whitespace().find(|word| is_mail(&bare(word))) else {
        return Some(Person {
            name: Some(text),
            ..Person::default()
        });
    };
    let rest = text.replacen(mail, " ", 1);
    let name = present(named_in(&rest));
    Some(Person {
        byline: name.is_some().then(|| text.clone()),
        name,
        email: Some(bare(mail)),
        uri: None,
    })
}

/// The name in a line without its address: without the signs around both, but with those that
/// belong to the name.
fn named_in(line: &str) -> &str {
    let is_around =
        |c: char| c.is_whitespace() || matches!(c, '(' | ')' | '<' | '>' | '"' | ',' | ':');
    let Some(start) = line.find(|c| !is_around(c)) else {
        return "";
    };
    let end = start + line[start..].trim_end_matches(is_around).len();
    let name = &line[start..end];
    let count = |sign| name.matches(sign).count();
    let (before, after) = (
        line[..start].chars().next_back(),
        line[end..].chars().next(),
    );
    let (opens, closes) = (count('('), count(')'));
    let is_torn = |sign| match sign {
        Some('"') => count('"') % 2 == 1,
        Some('(') => closes > opens,
        Some(')') => opens > closes,
        _ => false,
    };
    if is_torn(before) {
        &line[start - 1..end]
    } else if is_torn(after) {
        &line[start..=end]
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_read_from_every_customary_form() {
        let check = |text: &str, name: Option<&str>, mail: Option<&str>| {
            let found = line(text).unwrap();
            assert_eq!(
                (found.name.as_deref(), found.email.as_deref()),
                (name, mail),
                "{text}"
            );
            assert_eq!(
                found.byline.is_some(),
                name.is_some() && mail.is_some(),
                "{text}"
            );
        };
        check("me@e.org (Jo Doe)", Some("Jo Doe"), Some("me@e.org"));
        check("Jo Doe <me@e.org>", Some("Jo Doe"), Some("me@e.org"));
        check("Jo Doe (me@e.org)", Some("Jo Doe"), Some("me@e.org"));
        check(
            "\"Jo Doe\" <mailto:me@e.org>",
            Some("Jo Doe"),
            Some("me@e.org"),
        );
        check(
            "me@e.org (Jo \"Jojo\")",
            Some("Jo \"Jojo\""),
            Some("me@e.org"),
        );
        check("me@e.org (Jo (home))", Some("Jo (home)"), Some("me@e.org"));
        check(
            "\"Jojo\" Doe <me@e.org>",
            Some("\"Jojo\" Doe"),
            Some("me@e.org"),
        );
        check("(Jo) Doe, me@e.org", Some("(Jo) Doe"), Some("me@e.org"));
        check("me@e.org (\"Jo Doe\")", Some("Jo Doe"), Some("me@e.org"));
        check(" me@e.org ", None, Some("me@e.org"));
        check("Jo (x) Doe", Some("Jo (x) Doe"), None);
        check("Jo @ home", Some("Jo @ home"), None);
        assert_eq!(line(" \n"), None);
    }
}
