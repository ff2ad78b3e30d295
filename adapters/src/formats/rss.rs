//! RSS of every version, RSS 1.0's elements included: what each element means. RSS has no say about markup: a text is HTML.

use super::Place;
use super::draft::{Draft, Rank, VALUES_MAX, add, add_person, alternate_link, is_web_url};
use crate::entry::notes::Notes;
use crate::extensions::{cloud, source, syndication};
use crate::text::markup::{XHTML, write_nodes};
use crate::text::{date, entities, present, references, visible};
use crate::vocabulary::Vocabulary;
use crate::{Body, Category, Element, Enclosure, Generator, Image, Link, Metadata, Person, Text, TextKind};

/// An RSS child of an entry; comes back when it is not understood.
pub(crate) fn child(element: Element, place: &Place, draft: &mut Draft<'_>) -> Option<Element> {
    let lower = lower_case(&element.name);
    match lower.as_deref().unwrap_or(&element.name) {
        "title" => draft.title(Rank::Native, title(&element, place)),
        "link" => draft_link(&element, place, draft),
        "description" => draft.summary(Rank::Native, html(element, place)),
        // Not of RSS: Atom's, without its namespace.
        "summary" => draft.lead(html(element, place)),
        "guid" => guid(&element, place, draft),
        // `content` is Atom's, without its namespace, but what is in it is what RSS would have there.
        "fullitem" | "content" => {
            draft.content(Rank::Borrowed, html(element, place).map(|text| Body { text, ..Body::default() }))
        }
        "author" => draft.author(Rank::Native, person(&element.text())),
        "category" => draft.category(category(&element)?),
        // Not of RSS either, and often met.
        "tags" => element.text().split(',').take(VALUES_MAX).filter_map(present).for_each(|term| {
            draft.category(Category { term, ..Category::default() });
        }),
        "enclosure" => match enclosure(&element, place) {
            Some(enclosure) => draft.enclosure(enclosure),
            None => return Some(element),
        },
        "pubdate" => draft.published(Rank::Native, &element.text()),
        "comments" => match present(&element.text()) {
            Some(url) => draft.comments(place.resolve(&url)),
            None => return None,
        },
        "source" => source::rss(&element, place, draft),
        // Others of Atom that lost their namespace.
        "contributor" | "published" | "issued" | "created" | "updated" | "modified" | "rights"
        | "copyright"
            if draft.native() == Vocabulary::Rss =>
        {
            return super::atom::child(element, place, draft);
        }
        _ => return Some(element),
    }
    None
}

/// The name in lower case, unless it is.
fn lower_case(name: &str) -> Option<String> {
    name.bytes().any(|b| b.is_ascii_uppercase()).then(|| name.to_ascii_lowercase())
}

/// `content:encoded`, the whole post beside a shorter description.
pub(crate) fn content(element: Element, place: &Place, draft: &mut Draft<'_>) -> Option<Element> {
    if element.name != "encoded" {
        return Some(element);
    }
    draft.content(Rank::Native, html(element, place).map(|text| Body { text, ..Body::default() }));
    None
}

/// `feedburner:origLink`: the permalink that FeedBurner replaced by one of its own.
pub(crate) fn original_link(element: Element, draft: &mut Draft<'_>) -> Option<Element> {
    match present(&element.text()) {
        Some(url) if element.name.eq_ignore_ascii_case("origLink") => draft.original_link(url),
        _ => return Some(element),
    }
    None
}

/// An RSS child of the head; comes back when it is not understood.
pub(crate) fn head(
    element: Element,
    place: &Place,
    head: &mut Metadata,
    notes: &mut Notes,
) -> Option<Element> {
    let text = || present(&element.text());
    let lower = lower_case(&element.name);
    match lower.as_deref().unwrap_or(&element.name) {
        "title" => head.title = head.title.take().or_else(|| title(&element, place)),
        "link" => {
            if let Some(link) = link(&element, place) {
                add(&mut head.links, link);
            }
        }
        "description" => head.description = head.description.take().or_else(|| html(element, place)),
        "language" => head.language = text().or(head.language.take()),
        "copyright" => head.rights = head.rights.take().or_else(|| title(&element, place)),
        "managingeditor" | "author" => {
            if let Some(person) = person(&element.text()) {
                add_person(&mut head.authors, person);
            }
        }
        "category" => {
            if let Some(category) = category(&element) {
                add(&mut head.categories, category);
            }
        }
        "generator" => {
            let named = || text().map(|name| Generator { name: Some(name), ..Generator::default() });
            head.generator = head.generator.take().or_else(named);
        }
        "lastbuilddate" => head.updated = head.updated.take().or_else(|| date::read(&element.text(), notes)),
        "pubdate" => head.published = head.published.take().or_else(|| date::read(&element.text(), notes)),
        "image" => head.image = head.image.take().or_else(|| image(&element, place)),
        // RSS 1.0 lists its items in the head; the order of the items themselves says the same.
        "items" => {}
        "ttl" | "skiphours" | "skipdays" => syndication::rss(&element, &mut head.rhythm),
        "cloud" => match cloud::read(&element) {
            Some(cloud) => head.cloud = head.cloud.take().or(Some(cloud)),
            None => return Some(element),
        },
        // Atom's, without its namespace.
        "contributor" | "subtitle" | "tagline" | "rights" | "updated" | "modified" | "published" | "icon"
        | "logo" => return super::atom::head(element, place, head, notes),
        _ => return Some(element),
    }
    None
}

/// RSS never says whether a title is HTML. It is taken for HTML only if, read as XML, it still holds a tag or a reference
/// that means something: "AT&T" and "a < b" are plain, "&lt;i>" and "Q&amp;amp;A" in the source are not.
pub(crate) fn title(element: &Element, place: &Place) -> Option<Text> {
    let text = if element.elements().next().is_none() {
        visible(element.characters()).map(|text| place.html(text))
    } else {
        unescaped(element.clone(), place)
    };
    let text = text?.trimmed();
    Some(if holds_markup(&text.value) { text } else { Text { kind: TextKind::Plain, base: None, ..text } })
}

fn holds_markup(text: &str) -> bool {
    let opens = |at: usize| {
        let after = text[at + 1..].trim_start_matches('/');
        after.starts_with(|c: char| c.is_ascii_alphabetic()) || after.starts_with("!--")
    };
    let tag = memchr::memchr_iter(b'<', text.as_bytes()).find(|&at| opens(at));
    tag.is_some_and(|at| memchr::memchr(b'>', &text.as_bytes()[at..]).is_some())
        || entities::holds_reference(text)
}

/// A text as HTML.
fn html(element: Element, place: &Place) -> Option<Text> {
    if element.elements().next().is_none() {
        return visible(element.into_characters()).map(|text| place.html(text));
    }
    unescaped(element, place)
}

/// Markup that somebody forgot to escape, written anew as HTML.
fn unescaped(mut element: Element, place: &Place) -> Option<Text> {
    let unlabelled = std::mem::take(&mut element.ns);
    super::atom::adopt(&mut element, &unlabelled);
    references::resolve_markup(&mut element, place.base.as_ref());
    let mut value = String::new();
    write_nodes(&mut value, &element.children, &[("", XHTML)]);
    visible(value).map(|text| place.html(text))
}

fn draft_link(element: &Element, place: &Place, draft: &mut Draft<'_>) {
    if let Some(link) = link(element, place) {
        draft.link(link);
    }
}

/// `<link>http://..</link>`, or an Atom link whose writer forgot the namespace.
fn link(element: &Element, place: &Place) -> Option<Link> {
    match present(&element.text()) {
        Some(url) => Some(alternate_link(place.resolve(&url))),
        None => super::atom::link(element, place),
    }
}

/// The id, and the permalink that it may be: `isPermaLink` is true when it is not given (RSS 2.0).
fn guid(element: &Element, place: &Place, draft: &mut Draft<'_>) {
    let text = element.text();
    draft.id(Rank::Native, &text);
    let Some(url) = present(&text) else { return };
    let said = element.attribute("isPermaLink").map(str::trim);
    let is_permalink = match said {
        Some(said) => said.eq_ignore_ascii_case("true"),
        None => is_web_url(&url),
    };
    if is_permalink {
        draft.permalink(Rank::Native, place.resolve(&url));
    }
}

fn category(element: &Element) -> Option<Category> {
    let scheme = element.attribute("domain").and_then(present);
    Some(Category { term: present(&element.text())?, scheme, label: None })
}

fn enclosure(element: &Element, place: &Place) -> Option<Enclosure> {
    Some(Enclosure {
        url: place.resolve(&element.attribute("url").and_then(present)?),
        media_type: element.attribute("type").and_then(present),
        length: element.attribute("length").and_then(present),
        title: None,
    })
}

fn image(element: &Element, place: &Place) -> Option<Image> {
    let field = |name: &str| {
        let child = element.elements().find(|child| child.name.eq_ignore_ascii_case(name))?;
        present(&child.text())
    };
    Some(Image {
        url: place.resolve(&field("url")?),
        title: field("title"),
        link: field("link").map(|link| place.resolve(&link)),
        width: field("width"),
        height: field("height"),
        description: field("description"),
    })
}

/// `mail (name)`, `name <mail>`, `name (mail)`, a mail address or a name.
pub(crate) fn person(text: &str) -> Option<Person> {
    let text = present(text)?;
    let is_mail =
        |word: &str| word.len() > 2 && !word.starts_with('@') && !word.ends_with('@') && word.contains('@');
    let bare = |word: &str| {
        let word = word.trim_matches(['(', ')', '<', '>', '[', ']', '"', ',', ';']);
        word.strip_prefix("mailto:").unwrap_or(word).to_owned()
    };
    let Some(mail) = text.split_whitespace().find(|word| is_mail(&bare(word))) else {
        return Some(Person { name: Some(text), ..Person::default() });
    };
    let rest = text.replacen(mail, " ", 1);
    let name = rest
        .trim_matches(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '<' | '>' | '"' | ',' | ':'));
    let name = present(name);
    Some(Person { byline: name.is_some().then(|| text.clone()), name, email: Some(bare(mail)), uri: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_read_from_every_customary_form() {
        let check = |text: &str, name: Option<&str>, mail: Option<&str>| {
            let found = person(text).unwrap();
            assert_eq!((found.name.as_deref(), found.email.as_deref()), (name, mail), "{text}");
            assert_eq!(found.byline.is_some(), name.is_some() && mail.is_some(), "{text}");
        };
        check("me@e.org (Jo Doe)", Some("Jo Doe"), Some("me@e.org"));
        check("Jo Doe <me@e.org>", Some("Jo Doe"), Some("me@e.org"));
        check("Jo Doe (me@e.org)", Some("Jo Doe"), Some("me@e.org"));
        check("\"Jo Doe\" <mailto:me@e.org>", Some("Jo Doe"), Some("me@e.org"));
        check(" me@e.org ", None, Some("me@e.org"));
        check("Jo (x) Doe", Some("Jo (x) Doe"), None);
        check("Jo @ home", Some("Jo @ home"), None);
        assert_eq!(person(" \n"), None);
    }

    #[test]
    fn a_title_is_html_only_if_markup_is_left_in_it() {
        for (text, markup) in [
            ("AT&T", false),
            ("a < b and c > d", false),
            ("<3", false),
            ("a <b", false),
            ("<i>x</i>", true),
            ("x<br/>", true),
            ("</p>x", true),
            ("Q&amp;A", true),
            ("&#8217;s", true),
            ("&bogus;", false),
        ] {
            assert_eq!(holds_markup(text), markup, "{text}");
        }
    }
}
