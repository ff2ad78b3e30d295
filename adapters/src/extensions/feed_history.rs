//! Feed History: `fh:stateful`, `fh:prev` and their successors (LEGACY H-1 to H-20). The links of RFC 5005 are links.

use crate::entry::notes::Notes;
use crate::formats::Place;
use crate::text::present;
use crate::{Element, History, Note};

/// A Feed History child of the head; comes back when it is not understood.
pub(crate) fn head(
    element: Element,
    place: &Place,
    history: &mut History,
    notes: &mut Notes,
) -> Option<Element> {
    match element.name.as_str() {
        // H-1; draft -04 renamed it.
        "stateful" | "incremental" => match element.text().trim() {
            "true" => history.stateful = Some(true),
            "false" => history.stateful = Some(false),
            other => {
                notes.add(Note::Other(format!("fh:{} is neither true nor false: {other:?}", element.name)))
            }
        },
        // H-7.
        "prev" => history.prev = present(&element.text()).map(|prev| place.resolve(&prev)),
        "complete" => history.complete = true,
        "archive" => history.archive = true,
        _ => return Some(element),
    }
    None
}
