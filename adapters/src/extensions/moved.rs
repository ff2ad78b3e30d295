//! Feeds that say that they have moved: `itunes:new-feed-url`, and the `redirect` of RSS inside a
//! channel. A note for the operator: nobody follows it silently, because anyone who can write to a
//! feed could take it away with it.

use crate::note::Notes;
use crate::reading::Scope;
use crate::vocabulary::Vocabulary;
use crate::{Element, Metadata, Note};

// Decides: Does a feed say that it has moved?
/// Notes the address that a feed names as its new one, unless that is its own.
pub(crate) fn note(metadata: &Metadata, scope: &Scope, notes: &mut Notes) {
    let Some(address) = metadata.foreign.iter().find_map(address) else {
        return;
    };
    let bare = |url: &str| {
        url.trim_start_matches("https:")
            .trim_start_matches("http:")
            .trim_end_matches('/')
            .to_owned()
    };
    let own = [
        scope.base.as_ref().map(url::Url::as_str),
        metadata.link("self"),
    ];
    if own
        .into_iter()
        .flatten()
        .all(|own| bare(own) != bare(&address))
    {
        notes.add(Note::Other(format!(
            "the feed says that it has moved to {address}"
        )));
    }
}

/// The address that a `redirect` among the elements of a feed names.
pub(crate) fn redirect(metadata: &Metadata) -> Option<String> {
    metadata
        .foreign
        .iter()
        .filter(|element| element.name.eq_ignore_ascii_case("redirect"))
        .find_map(address)
}

/// The new address that an element names.
fn address(element: &Element) -> Option<String> {
    let is = |element: &Element, name: &str| element.name.eq_ignore_ascii_case(name);
    let named = match Vocabulary::of(&element.ns) {
        Vocabulary::Itunes if is(element, "new-feed-url") => element,
        _ if is(element, "redirect") => {
            element.elements().find(|child| is(child, "newLocation"))?
        }
        _ => return None,
    };
    named
        .words()
        .filter(|address| address.len() <= ADDRESS_BYTES_MAX)
}

/// Limit of such an address, bytes.
const ADDRESS_BYTES_MAX: usize = 2048;
