//! The end of a walk through the archives of another URL than its feed has now; not of one that
//! reads on.

use crate::{
    feed::{
        archive::{History, StagingChange},
        record::FeedRecord,
        schedule::Failure,
    },
    ingest::{Context, FeedSpec, transact::TRIES_MAX},
    store::{Archives, Commit},
};

/// Gives up the walk of a feed, with its pages, if it is one through the archives of another URL.
/// The reach that it had is not known any more; what an earlier walk reached is.
pub(in crate::ingest) async fn give_up_old_walk(
    context: &Context,
    feed: &FeedSpec,
    mut record: FeedRecord,
) -> Result<FeedRecord, Failure> {
    let walk = context.store.walk(feed.no).await?;
    if walk.is_none_or(|walk| walk.is_of(&feed.bare_url())) {
        return Ok(record);
    }
    for _ in 0..TRIES_MAX {
        let history = match record.completeness.history.clone() {
            History::Running => History::Unknown,
            reached => reached,
        };
        let archives = Archives {
            history,
            unstage: Some(StagingChange::All),
            walked: None,
        };
        let commit = Commit::of_archives(&record, archives);
        match context.commit(commit).await {
            Ok(receipt) => return Ok(receipt.feed),
            Err(error) if error.wants_another_look() => {
                record = context.store.feed(record.no).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(Failure::ours(
        "the feed kept changing while the walk through its old archives was given up",
    ))
}
