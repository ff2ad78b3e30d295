//! MediaRSS: an enclosure, a title or a summary for entries that have none of their own. Everything else that it says
//! (credits, ratings, thumbnails, licences) stays foreign markup, and so do the elements that are read here.
//!
//! Measured against feed-rs, which read this before, on the 79 entries with MediaRSS of the shared corpora: 57 come
//! out the same; in 20 that one gives a medium the title of another, in one it drops a URL, and in one it takes the page of
//! a player for the medium. One title that is empty or of an odd type costs it all media of the entry.

use crate::formats::draft::add;
use crate::formats::{Place, rss};
use crate::text::present;
use crate::vocabulary::Vocabulary;
use crate::{Element, Enclosure, Text};

/// What MediaRSS offers to an entry.
#[derive(Debug, Default)]
pub(crate) struct Media {
    pub(crate) enclosures: Vec<Enclosure>,
    pub(crate) title: Option<Text>,
    pub(crate) description: Option<Text>,
}

/// Reads the MediaRSS among the foreign markup of one entry. An object is described by what stands in it, else by what
/// stands in its group, else by what stands beside that (Media RSS 1.5.1, "optional elements"); the entry itself is
/// described by an object only if that is its only one.
pub(crate) fn read(foreign: &[Element], place: &Place) -> Media {
    let is_media = |element: &&Element| {
        matches!(element.name.as_str(), "group" | "content" | "title" | "description")
            && Vocabulary::of(&element.ns) == Vocabulary::MediaRss
    };
    let elements: Vec<_> = foreign.iter().filter(is_media).collect();
    let (mut media, mut object) = (Media::default(), Media::default());
    scope(&elements, None, place, &mut media, &mut object);
    if media.enclosures.len() == 1 {
        media.title = media.title.or(object.title);
        media.description = media.description.or(object.description);
    }
    media
}

/// Reads what stands in an entry or a group. `object` gathers what the objects say of themselves.
fn scope(elements: &[&Element], outside: Option<&str>, place: &Place, media: &mut Media, object: &mut Media) {
    let title = describe(elements, place, media);
    let title = title.as_deref().or(outside);
    for element in elements.iter().copied() {
        let children: Vec<_> = element.elements().filter(|child| child.ns == element.ns).collect();
        match element.name.as_str() {
            "group" => scope(&children, title, place, media, object),
            "content" => {
                let own = describe(&children, place, object);
                let title = own.or_else(|| title.map(str::to_owned));
                if let Some(enclosure) = enclosure(element, title, place) {
                    add(&mut media.enclosures, enclosure);
                }
            }
            _ => {}
        }
    }
}

/// Takes title and description from among some elements, and tells the title.
fn describe(elements: &[&Element], place: &Place, media: &mut Media) -> Option<String> {
    let of = |name: &str| elements.iter().copied().find(|e| e.name == name && present(&e.text()).is_some());
    let title = of("title");
    media.title = media.title.take().or_else(|| rss::title(title?, place));
    let description = of("description");
    media.description = media.description.take().or_else(|| text(description?, place));
    title.and_then(|title| present(&title.text()))
}

/// One object. Without a URL of its own it is only described: the page of its player is no medium.
fn enclosure(element: &Element, title: Option<String>, place: &Place) -> Option<Enclosure> {
    Some(Enclosure {
        url: place.resolve(&element.attribute("url").and_then(present)?),
        media_type: element.attribute("type").and_then(present),
        length: element.attribute("fileSize").and_then(present),
        title,
    })
}

/// Plain text unless it says otherwise or shows it.
fn text(element: &Element, place: &Place) -> Option<Text> {
    if element.attribute("type").is_some_and(|kind| kind.trim().eq_ignore_ascii_case("html")) {
        return present(&element.text()).map(|text| place.html(text));
    }
    rss::title(element, place)
}
