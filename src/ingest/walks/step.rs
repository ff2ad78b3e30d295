//! One step of a walk: at most one request, what is kept of it, and the commit at the end.

use super::{ArchiveReader, Stepped, is_settled};
use crate::feed::{
    archive::{ArchiveWalk, WalkStep},
    schedule::{AskedAddress, Failure, FaultKind, Plan},
};
use crate::{ingest::documents::give_up_old_walk, layers::RedirectAllowance};
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// Seconds until the commit of archives that pass the quota of their feed is tried again: nothing
/// is asked for it.
const QUOTA_AGAIN_SECS: u64 = 86_400;

/// Seconds until a walk that is done is looked at again, while a poll is to commit its end.
const UNSETTLED_SECS: u64 = 10;

impl ArchiveReader<'_> {
    /// Goes one step on: at most one request. `None` when `stop` came before there was anything to
    /// keep.
    pub async fn go_on(self, walk: ArchiveWalk, stop: &CancellationToken) -> Option<Stepped> {
        let mut before = walk.token();
        let mut sent = 0;
        match self.try_step(walk, stop, &mut sent).await {
            Ok(stepped) => stepped,
            Err(failure) => {
                before.count_requests(sent);
                let name = &self.feed.name;
                warn!(feed.name = %name, "A page of the archives of `{name}` could not be kept: {failure}");
                let is_full = matches!(failure.kind, FaultKind::Quota { .. });
                let again_secs = if is_full { QUOTA_AGAIN_SECS } else { 0 };
                let next_at = self.context.now().plus_secs(again_secs);
                Some(Stepped {
                    walk: Some(before),
                    failed: true,
                    ..Stepped::without_walk(Some(next_at))
                })
            }
        }
    }

    /// The step, and how many requests it has sent.
    async fn try_step(
        &self,
        mut walk: ArchiveWalk,
        stop: &CancellationToken,
        sent: &mut u32,
    ) -> Result<Option<Stepped>, Failure> {
        let (feed, store) = (self.feed, &self.context.store);
        if !walk.is_of(&feed.bare_url()) {
            let record = store.feed(feed.no).await?;
            let record = give_up_old_walk(self.context, feed, record).await?;
            let again = record
                .completeness
                .last_walk
                .and_then(|walked| feed.walks_again_at(&walked));
            return Ok(Some(Stepped::without_walk(again)));
        }
        if !walk.remembers() {
            let staged = store.staged(feed.no).await?;
            walk = staged.recalled().unwrap_or(walk);
        }
        let rules = self.rules(&walk);
        if walk.end_at_limit(&rules) {
            // The limit is lower than when the walk began.
            store.stage(feed.no, walk.token(), None).await?;
        }
        let mut host_pause = None;
        let was_done = walk.is_done();
        if let WalkStep::Fetch(url) = walk.next(self.context.now()) {
            let plan = Plan {
                url: url.clone(),
                conditional: false,
                address: AskedAddress::default(),
            };
            let subscribers = self.context.subscribers(feed).await;
            // Each redirect is a request as well; the first request is none.
            let redirects = RedirectAllowance::of(walk.requests_left(&rules).saturating_sub(1));
            let upstream = self.upstream.at_own_pace().redirected_within(&redirects);
            let reply = tokio::select! {
                biased;
                reply = upstream.fetch(feed, &plan, self.state, subscribers) => reply,
                () = stop.cancelled() => return Ok(None),
            };
            *sent = 1 + redirects.followed();
            walk.count_requests(redirects.followed());
            let (page, pause) = self.take_page(&mut walk, &url, reply).await?;
            host_pause = pause;
            store.stage(feed.no, walk.token(), page).await?;
        }
        let next_at = Some(walk.next_at());
        if !walk.has_read() {
            return Ok(Some(Stepped {
                walk: Some(walk),
                next_at,
                wants_poll: false,
                host_pause,
                failed: false,
            }));
        }
        // Every page is read: the feed waits for nothing more, though the end is not proven yet.
        let is_served = store.feed(feed.no).await?.is_ready();
        // One that waits for its poll has asked for it already.
        let wants_poll = !is_served && !was_done;
        if is_served && walk.is_over() {
            self.commit_late(&walk).await?;
        }
        if !walk.is_done() {
            return Ok(Some(Stepped {
                walk: Some(walk),
                next_at,
                wants_poll,
                host_pause,
                failed: false,
            }));
        }
        let record = store.feed(feed.no).await?;
        if !is_settled(&walk, &record) {
            // A poll that is under way may have opened the pages before the last ones were there.
            return Ok(Some(Stepped {
                walk: Some(walk),
                next_at: Some(self.context.now().plus_secs(UNSETTLED_SECS)),
                wants_poll,
                host_pause,
                failed: false,
            }));
        }
        let walked = record.completeness.last_walk;
        let next_at = walked.and_then(|walked| feed.walks_again_at(&walked));
        Ok(Some(Stepped {
            walk: None,
            next_at,
            wants_poll,
            host_pause,
            failed: false,
        }))
    }
}
