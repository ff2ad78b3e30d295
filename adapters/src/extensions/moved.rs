//! Feeds that say that they have moved: `itunes:new-feed-url`, and the `redirect` of RSS inside a
//! channel. Not whether anybody follows: whoever can write to a feed could take it away with that.

use crate::note::Notes;
use crate::reading::Scope;
use crate::vocabulary::Vocabulary;
use crate::{Element, Metadata, Note};

/// Notes the address that a feed names as its new one, unless that is its own.
pub(crate) fn note(metadata: &Metadata, scope: &Scope, notes: &mut Notes) {
    if let Some(address) = moved_to(metadata, scope.base.as_ref().map(url::Url::as_str)) {
        notes.add(Note::Other(format!(
            "the feed says that it has moved to {}",
            without_secrets(&address)
        )));
    }
}

/// An address without user, password and query: notes are shown to people.
fn without_secrets(address: &str) -> String {
    let Ok(mut url) = url::Url::parse(address) else {
        return address.to_owned();
    };
    let (user, password) = (url.set_username(""), url.set_password(None));
    if user.is_err() || password.is_err() {
        return address.to_owned();
    }
    if url.query().is_some() {
        url.set_query(Some("***"));
    }
    url.into()
}

// Decides: Does a feed say that it has moved?
/// The address that a feed names as its new one, unless that is its own: `own`, or what the feed
/// names as its `self`.
pub fn moved_to(metadata: &Metadata, own: Option<&str>) -> Option<String> {
    let address = metadata.foreign.iter().find_map(address)?;
    let bare = |url: &str| {
        url.trim_start_matches("https:")
            .trim_start_matches("http:")
            .trim_end_matches('/')
            .to_owned()
    };
    let own = [own, metadata.link("self")];
    let is_other = own
        .into_iter()
        .flatten()
        .all(|own| bare(own) != bare(&address));
    is_other.then_some(address)
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
