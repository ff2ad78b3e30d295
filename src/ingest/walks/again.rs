//! The beginning of one more walk through archives that were walked before; not its steps.

use super::{ArchiveReader, Stepped};
use crate::{
    feed::{
        absence::Coverage,
        archive::{ArchiveWalk, History, LastWalk, PreviousWalk, WalkedDocument},
        different_feed::{different_feed, is_planet},
        record::FeedRecord,
        schedule::{AskedAddress, Failure, Plan},
        stamp::Stamp,
    },
    ingest::{
        Fetched,
        documents::{keys_of, may_lack, strong_of, unread, window},
        upstream::DocumentReply,
    },
    store::{Archives, Commit},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

/// Seconds until a walk that could not begin is tried again.
const BEGIN_AGAIN_SECS: u64 = 86_400;

impl ArchiveReader<'_> {
    /// Begins one more walk through archives that were walked before: the live document is asked
    /// for, as it is, and nothing is done with it but to go on from it. `None` when `stop` came
    /// before that.
    pub async fn begin_again(self, stop: &CancellationToken) -> Option<Stepped> {
        let (feed, context) = (self.feed, self.context);
        let later = Stepped::without_walk(Some(context.now().plus_secs(BEGIN_AGAIN_SECS)));
        // Of a publisher in trouble nothing more is wanted than its feed.
        if self.state.health.failures > 0 {
            return Some(later);
        }
        let Ok(record) = context.store.feed(feed.no).await else {
            return Some(later);
        };
        let due = record
            .completeness
            .last_walk
            .as_ref()
            .and_then(|walked| feed.walks_again_at(walked));
        if due.is_none_or(|due| due > context.now()) {
            return Some(Stepped {
                next_at: due,
                ..later
            });
        }
        let plan = Plan {
            url: self
                .state
                .named_address()
                .cloned()
                .unwrap_or_else(|| feed.bare_url().into()),
            conditional: false,
            address: AskedAddress::default(),
        };
        let subscribers = context.subscribers(feed).await;
        let reply = tokio::select! {
            biased;
            reply = self.upstream.fetch(feed, &plan, self.state, subscribers) => reply,
            () = stop.cancelled() => return None,
        };
        let fetched = match reply {
            DocumentReply::Document(fetched) => fetched,
            DocumentReply::Unchanged(_) => return Some(later),
            DocumentReply::Deferred { wait_secs } => {
                return Some(Stepped::without_walk(Some(
                    context.now().plus_secs(wait_secs.max(1)),
                )));
            }
            DocumentReply::Failed { failure, host } => {
                debug!(feed.name = %feed.name, "No walk through archives yet: {failure}");
                let host_pause = host.zip(context.host_pause(feed, self.state, &failure));
                return Some(Stepped {
                    host_pause,
                    ..later
                });
            }
        };
        match self.begin(fetched).await {
            Ok(begun) => Some(begun.unwrap_or(later)),
            Err(failure) => {
                let name = &feed.name;
                warn!(feed.name = %name, "The archives of `{name}` could not be walked again yet: {failure}");
                Some(later)
            }
        }
    }

    /// The walk from its live document on; `None` when that is none to begin from.
    async fn begin(&self, fetched: Fetched) -> Result<Option<Stepped>, Failure> {
        let (feed, store, now) = (self.feed, &self.context.store, self.context.now());
        let record = store.feed(feed.no).await?;
        let asked = feed.bare_url();
        let mut page = unread(asked.as_str(), fetched.base_url.clone(), &fetched, now);
        let (body, hinted) = (fetched.body.clone(), page.clone());
        let read = self.context.compute(move || {
            let window = window(&hinted, &body)?;
            let damaged = may_lack(&window, &hinted, &body);
            Some((window, damaged))
        });
        let Some((window, damaged)) = read.await?.filter(|(window, _)| !window.entries.is_empty())
        else {
            return Ok(None);
        };
        if fetched.coverage == Coverage::Delta
            || different_feed(&record.metadata, &window.metadata).is_some()
        {
            return Ok(None);
        }
        page.keys = keys_of(&record.ids.namespace, &window);
        page.strong = strong_of(&window);
        let seen = WalkedDocument {
            damaged,
            mixed: is_planet(&window),
            ..page.as_walked(fetched.body.len(), &window.metadata)
        };
        let profile = self.context.profile(self.state);
        let begun = ArchiveWalk::begin(
            &asked,
            &seen,
            profile.as_deref(),
            &feed.archive_rules(),
            now,
        );
        let walk = match begun {
            Ok(walk) => walk,
            Err(found) => return self.ended_at_once(&record, found, now).await.map(Some),
        };
        let staged = store.staged(feed.no).await?;
        let base = staged
            .pages
            .last()
            .map_or(0, |page| page.no.saturating_add(1));
        let before = staged
            .walk
            .as_ref()
            .map_or(PreviousWalk::WithoutStrategy, ArchiveWalk::as_previous);
        let is_log = profile.is_some_and(|profile| profile.event_log);
        let walk = walk
            .after(before, base)
            .holding(&record.completeness.history)
            .doubted(is_log);
        let gap_secs = self.rules(&walk).page_gap_secs;
        let walk = walk.paced(gap_secs, now);
        page.no = base;
        store.stage(feed.no, walk.token(), Some(page)).await?;
        let way = walk.strategy().map(ToString::to_string).unwrap_or_default();
        info!(feed.name = %feed.name, way, "Reading the archives of `{}` again", feed.name);
        let next_at = Some(walk.next_at());
        Ok(Some(Stepped {
            walk: Some(walk),
            ..Stepped::without_walk(next_at)
        }))
    }

    /// Commits that there is no way into the archives any more, or that the live document is
    /// everything now.
    async fn ended_at_once(
        &self,
        record: &FeedRecord,
        found: History,
        now: Stamp,
    ) -> Result<Stepped, Failure> {
        let walked = LastWalk::at_once(found.clone(), now);
        let next_at = self.feed.walks_again_at(&walked);
        let archives = Archives {
            history: record.completeness.history.after(found),
            unstage: None,
            walked: Some(walked),
        };
        let commit = Commit::of_archives(record, archives);
        self.context.commit(commit).await?;
        Ok(Stepped::without_walk(next_at))
    }
}
