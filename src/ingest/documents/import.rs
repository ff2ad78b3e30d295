//! Staged pages of archives, opened for a commit; not the walk that read them.

use super::pages::{inflate, window};
use crate::{
    feed::{
        absence::Coverage,
        archive::{ArchiveWalk, ArchivedPage, History, LastWalk, StagedBody, StagedWalk},
        reconcile::{ObservedEntry, WindowState, observe},
        record::FeedRecord,
        schedule::Failure,
        stamp::Stamp,
    },
    ingest::compute::compute,
    store::Archives,
};
use everfeed_adapters::platforms::Profile;
use std::sync::Arc;
use tracing::warn;

/// Archives that a commit takes in besides its document.
#[derive(Clone, Default)]
pub(in crate::ingest) struct Import {
    /// Staged pages, parsed, newest first.
    pub(in crate::ingest) pages: Arc<Vec<ArchivedPage>>,
    /// Their part of the commit.
    pub(in crate::ingest) said: Option<Archives>,
}

/// Staged pages, parsed, and what becomes of them.
pub(in crate::ingest) async fn opened(
    record: &FeedRecord,
    staged: StagedWalk,
    profile: Option<Arc<Profile>>,
    now: Stamp,
) -> Result<Import, Failure> {
    let (namespace, before) = (
        record.ids.namespace.clone(),
        record.completeness.history.clone(),
    );
    compute(move || {
        let history = before.after(staged.walk.as_ref().map_or(History::Unknown, ArchiveWalk::history));
        let walked = staged.walk.as_ref().filter(|walk| walk.is_done()).map(|walk| LastWalk::of(walk, now));
        let said = Some(Archives { history, walked, unstage: Some(staged.unstage()) });
        // Each is let go of as soon as it is parsed.
        let pages = staged.pages.into_iter().filter_map(|mut page| {
            let StagedBody::Waiting(deflated) = std::mem::take(&mut page.content) else { return None };
            let document = inflate(&deflated).and_then(|body| window(&page, &body));
            let Some(document) = document else {
                warn!(feed.namespace = %namespace, "A staged page of archives could not be read back");
                return Some(ArchivedPage::default());
            };
            let seen = observe(&WindowState::default(), &document, profile.clone(), Coverage::Partial);
            let read = |sighting| match sighting {
                ObservedEntry::Read(reading) => Some(*reading),
                ObservedEntry::Same(_) => None,
            };
            let readings = seen.entries.into_iter().filter_map(read).collect();
            Some(ArchivedPage { read_at: page.read_at, readings, deletions: seen.deletions })
        });
        Import { pages: Arc::new(pages.collect()), said }
    })
    .await
}
