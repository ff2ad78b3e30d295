//! The Channel Definition Format (W3C NOTE-CDFsubmit, 1997): what its elements and attributes mean. What makes a browser's
//! channel of it (USAGE, LOGIN, LOG) is kept as it is.

use super::Place;
use super::atom::picture;
use super::draft::{Draft, Rank, add, alternate_link};
use crate::entry::notes::Notes;
use crate::text::{date, present};
use crate::{Element, Link, Metadata};

/// The attributes of an ITEM. HREF is its identity, byte-exact, and its permalink.
pub(crate) fn item(element: &Element, place: &Place, draft: &mut Draft<'_>) {
    anchor(element, Rank::Native, place, draft);
    if let Some(modified) = element.attribute("lastmod") {
        draft.updated(Rank::Native, modified);
    }
}

/// A child of an ITEM; comes back when it is not understood.
pub(crate) fn child(element: Element, place: &Place, draft: &mut Draft<'_>) -> Option<Element> {
    match element.name.to_ascii_lowercase().as_str() {
        "title" => draft.title(Rank::Native, super::rss::title(&element, place)),
        "abstract" => draft.summary(Rank::Native, super::rss::title(&element, place)),
        // The other way to write the HREF of what it stands in.
        "a" if href(&element).is_some() => {
            anchor(&element, Rank::Fallback, place, draft);
            draft.title(Rank::Fallback, super::rss::title(&element, place));
        }
        "logo" => match href(&element) {
            Some(logo) => draft.link(icon(&logo, place)),
            None => return Some(element),
        },
        _ => return Some(element),
    }
    None
}

/// A child of the outermost CHANNEL, or its own start tag; comes back when it is not understood.
pub(crate) fn head(
    element: Element,
    place: &Place,
    head: &mut Metadata,
    notes: &mut Notes,
) -> Option<Element> {
    match element.name.to_ascii_lowercase().as_str() {
        "channel" => {
            site(&element, place, head);
            if let Some(own) = element.attribute("self").and_then(present) {
                let own = Link { rel: "self".to_owned(), ..alternate_link(place.resolve(&own)) };
                add(&mut head.links, own);
            }
            head.updated = element.attribute("lastmod").and_then(|modified| date::read(modified, notes));
        }
        "title" => head.title = head.title.take().or_else(|| super::rss::title(&element, place)),
        "abstract" => {
            head.description = head.description.take().or_else(|| super::rss::title(&element, place));
        }
        "a" => site(&element, place, head),
        // A channel has up to three: an image, a wide image and an icon.
        "logo" => {
            let is_icon = element.attribute("style").is_some_and(|style| style.eq_ignore_ascii_case("icon"));
            match href(&element) {
                Some(logo) if is_icon => head.icon = head.icon.take().or_else(|| Some(place.resolve(&logo))),
                Some(logo) => head.image = head.image.take().or_else(|| Some(picture(&logo, place))),
                None => return Some(element),
            }
        }
        "schedule" => match interval_secs(&element) {
            Some(secs) => head.rhythm.update_secs = Some(secs),
            None => return Some(element),
        },
        _ => return Some(element),
    }
    None
}

/// The reference of an element, as written.
pub(crate) fn href(element: &Element) -> Option<String> {
    element.attribute("href").and_then(present)
}

fn anchor(element: &Element, rank: Rank, place: &Place, draft: &mut Draft<'_>) {
    if let Some(href) = href(element) {
        draft.id(rank, &href);
        draft.permalink(rank, place.resolve(&href));
    }
}

fn site(element: &Element, place: &Place, head: &mut Metadata) {
    if let Some(href) = href(element) {
        add(&mut head.links, alternate_link(place.resolve(&href)));
    }
}

fn icon(href: &str, place: &Place) -> Link {
    Link { rel: "icon".to_owned(), ..alternate_link(place.resolve(href)) }
}

/// How often the channel changes: `<INTERVALTIME DAY="1" HOUR="12" MIN="0"/>`, seconds.
fn interval_secs(schedule: &Element) -> Option<u32> {
    let interval = schedule.elements().find(|child| child.name.eq_ignore_ascii_case("intervaltime"))?;
    let secs = [("day", 86_400), ("hour", 3600), ("min", 60)].iter().try_fold(0_u32, |sum, (name, unit)| {
        let count = interval.attribute(name).map_or(Some(0), |count| count.trim().parse().ok())?;
        sum.checked_add(u32::checked_mul(count, *unit)?)
    });
    secs.filter(|secs| *secs > 0)
}
