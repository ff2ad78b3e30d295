//! Decides whether the first document of a feed waits for its archives, and begins the first walk
//! through them; not the walk.

use super::{Poll, PollEnd, Polled};
use crate::{
    feed::{
        absence::Coverage,
        archive::{ArchiveWalk, History, LastWalk, WalkedDocument},
        different_feed::different_feed,
        record::FeedRecord,
        schedule::{Answer, Failure, PollOutcome, PolledDocument},
        stamp::Stamp,
    },
    ingest::{
        Fetched,
        documents::{
            Import, Sliced, deflate, give_up_old_walk, is_damaged, keys_of, opened, strong_of,
            unread,
        },
    },
    store::{Archives, Commit, StoreError},
};
use tracing::info;

/// Decision on a document that may have to wait for its archives.
pub(super) enum Gate {
    /// It is, and this of the archives with it; a walk may begin beside it.
    Open(Option<Box<ArchiveWalk>>, Import),
    /// It waits for the archives until then; a walk may begin with it.
    Closed(Option<Box<ArchiveWalk>>, Stamp),
}

impl Poll<'_> {
    // Decides: Does the first document wait for its archives?
    /// Decides whether a document waits for the archives of its feed. `landed` is the URL that
    /// answered.
    pub(super) async fn gate(
        &self,
        sliced: &Sliced,
        fetched: &Fetched,
        landed: &str,
    ) -> Result<Gate, Failure> {
        let (feed, store) = (self.feed, &self.context.store);
        let open = |said| {
            Ok(Gate::Open(
                None,
                Import {
                    said,
                    ..Import::default()
                },
            ))
        };
        let import = feed.import;
        if !feed.reads_archives() {
            return open(None);
        }
        if sliced.coverage == Coverage::Delta || fetched.resource.is_some() {
            return open(None);
        }
        let mut record = store.feed(feed.no).await?;
        if self.state.url_change.is_some() {
            record = give_up_old_walk(self.context, feed, record).await?;
        }
        if record.is_ready() && record.completeness.history != History::Unknown {
            return open(None);
        }
        // Of another feed's document under this URL no archives are read.
        if record.is_ready()
            && self.state.url_change.is_none()
            && different_feed(&record.metadata, &sliced.window.metadata).is_some()
        {
            return open(None);
        }
        let staged = store.staged(feed.no).await?;
        let now = self.context.now();
        let Some(walk) = &staged.walk else {
            let walk = match self.begin_walk(&record, sliced, fetched, landed).await? {
                Ok(walk) => Some(Box::new(walk)),
                Err(history) => {
                    let at_once = matches!(history, History::Partial(_));
                    let walked = at_once.then(|| LastWalk::at_once(history.clone(), now));
                    return open(Some(Archives {
                        history,
                        walked,
                        ..Archives::default()
                    }));
                }
            };
            if record.is_ready() || import.serve_after_secs == 0 {
                let said = Some(Archives {
                    history: History::Running,
                    ..Archives::default()
                });
                return Ok(Gate::Open(
                    walk,
                    Import {
                        said,
                        ..Import::default()
                    },
                ));
            }
            self.say_running(&record).await?;
            return Ok(Gate::Closed(walk, now.plus_secs(import.serve_after_secs)));
        };
        if record.is_ready() {
            return open(None);
        }
        let serve_at = walk.started_at.plus_secs(import.serve_after_secs);
        // A clock that was set back must not keep the feed from being served for ever.
        if !walk.has_read() && now < serve_at && now >= walk.started_at {
            return Ok(Gate::Closed(None, serve_at));
        }
        Ok(Gate::Open(
            None,
            opened(self.context, &record, staged, sliced.profile.clone(), now).await?,
        ))
    }

    /// Begins the first walk from a live document, which is staged; else tells the history that the
    /// document itself shows.
    async fn begin_walk(
        &self,
        record: &FeedRecord,
        sliced: &Sliced,
        fetched: &Fetched,
        landed: &str,
    ) -> Result<Result<ArchiveWalk, History>, Failure> {
        let (feed, now) = (self.feed, self.context.now());
        let asked = feed.bare_url();
        let mut page = unread(asked.as_str(), fetched.base_url.clone(), fetched, now);
        page.address.landed = landed.to_owned();
        page.keys = keys_of(&record.ids.namespace, &sliced.window);
        page.strong = strong_of(&sliced.window);
        // A first walk proves nothing by its silence, whether the document is of several feeds or
        // not.
        let seen = WalkedDocument {
            damaged: sliced.coverage.is_partial() || is_damaged(&sliced.window),
            ..page.as_walked(fetched.body.len(), &sliced.window.metadata)
        };
        let rules = feed.archive_rules();
        let walk = match ArchiveWalk::begin(&asked, &seen, sliced.profile.as_deref(), &rules, now) {
            Ok(walk) => walk,
            Err(history) => return Ok(Err(history)),
        };
        page.content = deflate(self.context, fetched.body.clone()).await?;
        self.context
            .store
            .stage(feed.no, walk.token(), Some(page))
            .await?;
        let way = walk.strategy().map(ToString::to_string).unwrap_or_default();
        info!(feed.name = %feed.name, way, "Reading the archives of `{}`", feed.name);
        Ok(Ok(walk))
    }

    /// Stores that the archives of a feed are being read.
    async fn say_running(&self, record: &FeedRecord) -> Result<(), Failure> {
        let archives = Archives {
            history: History::Running,
            ..Archives::default()
        };
        let commit = Commit::of_archives(record, archives);
        match self.context.commit(commit).await {
            // Whoever moved the feed on says it with what it commits.
            Ok(_) | Err(StoreError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The result of a poll whose document waits: all is remembered but what would keep it from
    /// being read again.
    pub(super) fn held_back(
        &self,
        sliced: &Sliced,
        answer: Answer,
        walk: Option<ArchiveWalk>,
        until: Stamp,
    ) -> Polled {
        let document = PolledDocument {
            body: None,
            rhythm: &sliced.window.metadata.rhythm,
            arrived: false,
            remark: None,
            wants_audit: false,
            agrees_at: self.state.timetable.agrees_at,
            deferred_until: self.state.document.deferred_until,
            platform: sliced.platform.clone(),
            broken_since: None,
            announces: self.announced_by(sliced, &answer),
            has_suspects: false,
        };
        let mut polled = self.remember(&PollOutcome::Document(answer, document));
        polled.state.validators = None;
        polled.state.document.body = None;
        polled.state.timetable.next_at = until;
        Polled {
            end: PollEnd::AwaitsArchives(until),
            walk,
            ..polled
        }
    }
}
