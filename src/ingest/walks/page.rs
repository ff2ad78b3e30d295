//! One page of archives: what a request brought, what the walk makes of it, and what is kept.

use super::ArchiveReader;
use crate::secret::logged_url;
use crate::{
    feed::{
        absence::Coverage,
        archive::{
            ArchiveWalk, PageUse, StagedBody, StagedPage, WalkReply, WalkedDocument,
            is_built_after, settle_known,
        },
        different_feed::is_planet,
        reconcile::{ObservedEntry, WindowState, keys_needed, observe},
        schedule::Failure,
        stamp::Stamp,
    },
    ingest::{
        documents::{deflate, keys_of, may_lack, strong_of, unread, window},
        feed_spec::reference_base,
        upstream,
    },
};
use everfeed_adapters::SlicedDocument;
use tracing::debug;
use url::{Position, Url};

impl ArchiveReader<'_> {
    /// Tells a walk what a request brought, and makes of it what is to be kept; with the pause of a
    /// host.
    pub(super) async fn take_page(
        &self,
        walk: &mut ArchiveWalk,
        url: &str,
        reply: upstream::DocumentReply,
    ) -> Result<(Option<StagedPage>, Option<(String, Stamp)>), Failure> {
        let (feed, rules, now) = (self.feed, self.rules(walk), self.context.now());
        let fetched = match reply {
            upstream::DocumentReply::Document(fetched) => fetched,
            upstream::DocumentReply::Deferred { wait_secs } => {
                walk.answer(WalkReply::Deferred { wait_secs }, &rules, now);
                return Ok((None, None));
            }
            // Nobody asked what is new.
            upstream::DocumentReply::Unchanged(_) => {
                let why = "the publisher answered 304";
                walk.answer(
                    WalkReply::Failed {
                        why,
                        retry_after_secs: None,
                    },
                    &rules,
                    now,
                );
                return Ok((None, None));
            }
            upstream::DocumentReply::Failed { failure, host } => {
                let why = failure.to_string();
                let reply = match failure.status() {
                    Some(status @ (403 | 404 | 410)) => WalkReply::Missing { status },
                    _ => WalkReply::Failed {
                        why: &why,
                        retry_after_secs: failure.retry_after_secs,
                    },
                };
                walk.answer(reply, &rules, now);
                let until = self.context.host_pause(feed, self.state, &failure);
                debug!(feed.name = %feed.name, url = logged_url(url), "No page of the archives: {why}");
                return Ok((None, host.zip(until)));
            }
        };
        let record = self.context.store.feed(feed.no).await?;
        let page = unread(url, self.base_url(&fetched.base_url), &fetched, now);
        let (body, _memory) = (fetched.body, fetched.memory);
        let judges = walk.is_repeated();
        let before = walk.last_date_us();
        let (read, mut page) = self
            .context
            .compute(move || {
                let window = window(&page, &body);
                let read = window.map(|window| {
                    let damaged = may_lack(&window, &page, &body);
                    let is_built = before.is_some_and(|before| is_built_after(&window, before));
                    (window, body, damaged, is_built)
                });
                (read, page)
            })
            .await?;
        let Some((window, body, damaged, is_built)) = read else {
            walk.answer(WalkReply::NoFeed, &rules, now);
            return Ok((None, None));
        };
        page.keys = keys_of(&record.ids.namespace, &window);
        let seen = WalkedDocument {
            damaged,
            mixed: is_planet(&window),
            is_built,
            ..page.as_walked(body.len(), &window.metadata)
        };
        let used = walk.answer(WalkReply::Page(seen), &rules, now);
        if used == PageUse::Drop {
            return Ok((None, None));
        }
        page.strong = strong_of(&window);
        // Of a page that changes nothing only the traces are kept.
        let is_kept = used == PageUse::Keep && (!judges || self.changes(window, now).await?);
        let content = if is_kept {
            deflate(self.context, body).await?
        } else {
            StagedBody::Traces
        };
        Ok((
            Some(StagedPage {
                no: walk.kept(),
                content,
                ..page
            }),
            None,
        ))
    }

    /// The URL that a page's relative references are relative to: where the public finds it.
    fn base_url(&self, landed: &str) -> String {
        let public = |public: &Url| {
            public
                .join(&Url::parse(landed).ok()?[Position::BeforePath..])
                .ok()
        };
        self.feed
            .public_url()
            .and_then(public)
            .map_or_else(|| reference_base(landed), Into::into)
    }

    /// True when a page of a walk that was done before holds anything to be committed.
    async fn changes(&self, window: SlicedDocument, now: Stamp) -> Result<bool, Failure> {
        if !window.deletions.is_empty() {
            return Ok(true);
        }
        let (store, feed, profile) = (
            &self.context.store,
            self.feed.no,
            self.context.profile(self.state),
        );
        let namespace = store.feed(feed).await?.ids.namespace;
        let (seen, keys, namespace) = self
            .context
            .compute(move || {
                let seen = observe(&WindowState::default(), &window, profile, Coverage::Partial);
                let keys = keys_needed(&namespace, &WindowState::default(), &seen);
                (seen, keys, namespace)
            })
            .await?;
        let known = store.known(feed, keys).await?;
        let entries = seen.entries.into_iter();
        let read = entries.filter_map(ObservedEntry::into_parsed);
        let read = read.map(|entry| (now, entry)).collect();
        Ok(!settle_known(&namespace, &known, read).is_empty())
    }
}
