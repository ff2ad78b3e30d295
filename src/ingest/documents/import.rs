//! Staged pages of archives, opened for a commit; not the walk that read them.

use super::pages::window;
use crate::{
    feed::{
        absence::Coverage,
        archive::{ArchiveWalk, ArchivedPage, History, LastWalk, StagedWalk},
        reconcile::{ObservedEntry, WindowState, observe},
        record::FeedRecord,
        schedule::Failure,
        stamp::Stamp,
    },
    ingest::Context,
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
    context: &Context,
    record: &FeedRecord,
    staged: StagedWalk,
    profile: Option<Arc<Profile>>,
    now: Stamp,
) -> Result<Import, Failure> {
    let (namespace, before) = (
        record.ids.namespace.clone(),
        record.completeness.history.clone(),
    );
    context.compute(move || {
        let history = before.after(staged.walk.as_ref().map_or(History::Unknown, ArchiveWalk::history));
        let walked = staged.walk.as_ref().filter(|walk| walk.is_done()).map(|walk| LastWalk::of(walk, now));
        let said = Some(Archives { history, walked, unstage: Some(staged.unstage()) });
        // Each is let go of as soon as it is parsed.
        let pages = staged.pages.into_iter().filter_map(|mut page| {
            if !page.waits() {
                return None;
            }
            let body = std::mem::take(&mut page.content).inflated();
            let document = body.and_then(|body| window(&page, &body));
            let Some(document) = document else {
                warn!(feed.namespace = %namespace, "A staged page of archives could not be read back");
                return Some(ArchivedPage::default());
            };
            let seen = observe(&WindowState::default(), &document, profile.clone(), Coverage::Partial);
            let entries = seen.entries.into_iter();
            let mut readings: Vec<_> = entries.filter_map(ObservedEntry::into_parsed).collect();
            // All of the archives are held at once.
            for entry in readings.iter_mut().filter_map(|read| Arc::get_mut(&mut read.entry)) {
                entry.shrink_to_fit();
            }
            Some(ArchivedPage { read_at: page.read_at, readings, deletions: seen.deletions })
        });
        Import { pages: Arc::new(pages.collect()), said }
    })
    .await
}
