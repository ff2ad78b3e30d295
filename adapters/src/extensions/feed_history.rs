//! Feed History: `fh:stateful`, `fh:prev` and their successors (LEGACY H-1 to H-20). The links of
//! RFC 5005 are links.

use crate::note::Notes;
use crate::reading::Scope;
use crate::{Element, History, Metadata, Note};

/// A Feed History child of the feed; comes back when it is not understood.
pub(crate) fn feed_child(
    element: Element,
    scope: &Scope,
    history: &mut History,
    notes: &mut Notes,
) -> Option<Element> {
    match element.name.as_str() {
        // H-1; draft -04 renamed it.
        "stateful" | "incremental" => match element.text().trim() {
            "true" => history.stateful = Some(true),
            "false" => history.stateful = Some(false),
            other => notes.add(Note::Other(format!(
                "fh:{} is neither true nor false: {other:?}",
                element.name
            ))),
        },
        // H-7. One without a text is a reference to its own document, which is no earlier one, and
        // not the end either.
        "prev" => {
            let prev = scope.resolve(element.text().trim());
            history.prev.get_or_insert(prev);
        }
        "complete" => history.complete = true,
        "archive" => history.archive = true,
        _ => return Some(element),
    }
    None
}

/// Says what of it contradicts itself.
pub(crate) fn settle(history: &History, notes: &mut Notes) {
    // H-5.
    if history.stateful == Some(false) && history.prev.is_some() {
        notes.add(Note::Other(
            "fh:prev in a feed that says it has no history".to_owned(),
        ));
    }
}

impl Metadata {
    /// URL of the document that holds the entries before these, by the publisher's own word: a link
    /// with rel `prev-archive` (RFC 5005 section 4), else `fh:prev` (drafts -01 to -04) unless
    /// `fh:stateful` is false (H-5), else a link with rel `previous` or `prev` where draft -05 is
    /// spoken, that is beside `fh:archive` or a link with rel `current`; elsewhere such a link is
    /// paging (LEGACY section 1).
    pub fn older_archive(&self) -> Option<&str> {
        let prev = self
            .history
            .prev
            .as_deref()
            .filter(|_| self.history.stateful != Some(false));
        let is_draft05 = self.history.archive || self.link("current").is_some();
        let previous = || {
            self.link("previous")
                .or_else(|| self.link("prev"))
                .filter(|_| is_draft05)
        };
        self.link("prev-archive").or(prev).or_else(previous)
    }

    /// True when the publisher says that the document is the whole feed: `fh:complete` (H-20) or
    /// `fh:stateful` false (H-2).
    pub fn is_complete(&self) -> bool {
        self.history.complete || self.history.stateful == Some(false)
    }

    /// URLs of hubs, in document order: links with rel `hub`, or `hub.subscribe` as before
    /// PubSubHubbub 0.1.
    pub fn hubs(&self) -> impl Iterator<Item = &str> {
        let hubs = self
            .links
            .iter()
            .filter(|link| matches!(link.rel.as_str(), "hub" | "hub.subscribe"));
        hubs.map(|link| link.href.as_str())
    }
}
