//! The Channel Definition Format (W3C NOTE-CDFsubmit, 1997): what its elements and attributes mean.
//! What makes a browser's channel of it (USAGE, LOGIN, LOG) is kept as it is.

use crate::note::Notes;
use crate::reading::construct::picture;
use crate::reading::untyped_text::title;
use crate::reading::{Draft, Rank, Scope, add, fill};
use crate::text::date;
use crate::{Element, Link, Metadata};

/// The attributes of an ITEM. HREF is its identity, byte-exact, and its permalink.
pub(crate) fn item(element: &Element, scope: &Scope, draft: &mut Draft<'_>) {
    anchor(element, Rank::Native, scope, draft);
    if let Some(modified) = element.attribute("lastmod") {
        draft.updated(Rank::Native, modified);
    }
}

/// A child of an ITEM; comes back when it is not understood.
pub(crate) fn entry_child(
    element: Element,
    scope: &Scope,
    draft: &mut Draft<'_>,
) -> Option<Element> {
    match element.name.to_ascii_lowercase().as_str() {
        "title" => draft.title(Rank::Native, title(&element, scope)),
        "abstract" => draft.summary(Rank::Native, title(&element, scope)),
        // The other way to write the HREF of what it stands in.
        "a" if href(&element).is_some() => {
            anchor(&element, Rank::Fallback, scope, draft);
            draft.title(Rank::Fallback, title(&element, scope));
        }
        "logo" => match href(&element) {
            Some(logo) => draft.link(icon(&logo, scope)),
            None => return Some(element),
        },
        _ => return Some(element),
    }
    None
}

/// A child of the outermost CHANNEL, or its own start tag; comes back when it is not understood.
pub(crate) fn feed_child(
    element: Element,
    scope: &Scope,
    metadata: &mut Metadata,
    notes: &mut Notes,
) -> Option<Element> {
    match element.name.to_ascii_lowercase().as_str() {
        "channel" => {
            site(&element, scope, metadata);
            if let Some(own) = element.filled("self") {
                let own = Link::to("self", scope.resolve(&own));
                add(&mut metadata.links, own);
            }
            metadata.updated = element
                .attribute("lastmod")
                .and_then(|modified| date::read(modified, notes));
        }
        "title" => fill(&mut metadata.title, || title(&element, scope)),
        "abstract" => fill(&mut metadata.description, || title(&element, scope)),
        "a" => site(&element, scope, metadata),
        // A channel has up to three: an image, a wide image and an icon.
        "logo" => {
            let is_icon = element
                .attribute("style")
                .is_some_and(|style| style.eq_ignore_ascii_case("icon"));
            match href(&element) {
                Some(logo) if is_icon => fill(&mut metadata.icon, || Some(scope.resolve(&logo))),
                Some(logo) => fill(&mut metadata.image, || Some(picture(&logo, scope))),
                None => return Some(element),
            }
        }
        "schedule" => match interval_secs(&element) {
            Some(secs) => metadata.rhythm.update_secs = Some(secs),
            None => return Some(element),
        },
        _ => return Some(element),
    }
    None
}

/// The reference of an element, as written.
pub(crate) fn href(element: &Element) -> Option<String> {
    element.filled("href")
}

fn anchor(element: &Element, rank: Rank, scope: &Scope, draft: &mut Draft<'_>) {
    if let Some(href) = href(element) {
        draft.id(rank, &href);
        draft.permalink(rank, scope.resolve(&href));
    }
}

fn site(element: &Element, scope: &Scope, metadata: &mut Metadata) {
    if let Some(href) = href(element) {
        add(
            &mut metadata.links,
            Link::to("alternate", scope.resolve(&href)),
        );
    }
}

fn icon(href: &str, scope: &Scope) -> Link {
    Link::to("icon", scope.resolve(href))
}

/// Interval between changes of the channel: `<INTERVALTIME DAY="1" HOUR="12" MIN="0"/>`, seconds.
fn interval_secs(schedule: &Element) -> Option<u32> {
    let interval = schedule
        .elements()
        .find(|child| child.name.eq_ignore_ascii_case("intervaltime"))?;
    let secs = [("day", 86_400), ("hour", 3600), ("min", 60)]
        .iter()
        .try_fold(0_u32, |sum, (name, unit)| {
            let count = interval
                .attribute(name)
                .map_or(Some(0), |count| count.trim().parse().ok())?;
            sum.checked_add(u32::checked_mul(count, *unit)?)
        });
    secs.filter(|secs| *secs > 0)
}
