//! Controls of permalink checks: the page of a post that is in the feed now is asked for, so that
//! the pages of missing posts can be told apart from it; not what it proves.

use super::{Check, Checked, few, hints, landing, page_of, pause};
use crate::{
    feed::{
        absence::{ALIKE_MAX, ControlFinding, PageControl},
        archive::OwnOrigins,
        item::ItemId,
        reconcile::WindowState,
        schedule::Failure,
    },
    ingest::{
        Upstream,
        recording::{RecordedAnswer, RecordedControl, record_answer},
        transact::{Decision, transact},
        upstream::{PageAnswer, PageReply},
    },
    store::Commit,
};
use everfeed_adapters::{Entry, Hints, PageText};
use http::StatusCode;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Posts of the feed that are looked through for one with a page.
const LOOKED_THROUGH_MAX: usize = 10;

impl Check<'_> {
    /// Asks for the page of a post that is in the feed, another one than those `tried` before, and
    /// keeps what it says.
    pub(super) async fn control(
        &self,
        upstream: &Upstream,
        last: &WindowState,
        tried: u8,
        stop: &CancellationToken,
    ) -> Result<Option<Checked>, Failure> {
        let now = self.context.now();
        let Some((url, entry)) = self.control_page(last, tried).await? else {
            let control = PageControl {
                at: now,
                finding: ControlFinding::NoPost,
                ..PageControl::default()
            };
            return self.controlled(control).await.map(Some);
        };
        let reply = tokio::select! {
            biased;
            reply = upstream.page(self.feed, &url) => reply,
            () = stop.cancelled() => return Ok(None),
        };
        let now = self.context.now();
        let found = |finding| PageControl {
            at: now,
            finding,
            landing: url.clone(),
            ..PageControl::default()
        };
        let (control, host_pause) = match reply {
            PageReply::Deferred { wait_secs } => {
                let next_at = now.plus_secs(wait_secs.max(1));
                return Ok(Some(Checked::at(Some(next_at))));
            }
            PageReply::Failed => (found(ControlFinding::Refused), None),
            PageReply::Elsewhere => (found(ControlFinding::Elsewhere), None),
            PageReply::Answer(answer) => {
                let host_pause = pause(&answer, self.feed, self.state, now);
                let others = self.others(last).await?;
                let asked_for = url.clone();
                let (finding, alike, landing) = self
                    .context
                    .compute(move || {
                        let hints = hints(&answer, &asked_for);
                        let (finding, alike) = judged(&answer, &hints, entry.as_deref(), &others);
                        (finding, alike, landing(&answer, &hints, &asked_for))
                    })
                    .await?;
                (
                    PageControl {
                        landing,
                        alike,
                        ..found(finding)
                    },
                    host_pause,
                )
            }
        };
        let checked = self.controlled(control).await?;
        Ok(Some(Checked {
            host_pause,
            ..checked
        }))
    }

    /// The page that is asked for as the control, and the post that it must show: one that is in
    /// the feed. A feed without posts has none, and the front page of its site shows at least that
    /// the site is up.
    async fn control_page(
        &self,
        last: &WindowState,
        tried: u8,
    ) -> Result<Option<(String, Option<Arc<Entry>>)>, Failure> {
        if last.control_candidates().is_empty() {
            let metadata = self.context.store.feed(self.feed.no).await?.metadata;
            let reach = OwnOrigins::new(self.feed.url.clone(), self.feed.aliases.clone());
            return Ok(reach
                .front_page(metadata.link("alternate"))
                .map(|url| (url, None)));
        }
        Ok(self
            .post_with_page(last, tried)
            .await?
            .map(|(url, entry)| (url, Some(entry))))
    }

    /// The best of the posts that may be the control and have a page of their own; after controls
    /// that failed, the next one.
    async fn post_with_page(
        &self,
        last: &WindowState,
        tried: u8,
    ) -> Result<Option<(String, Arc<Entry>)>, Failure> {
        let candidates = last.control_candidates();
        let mut skipped = usize::from(tried) % candidates.len().max(1);
        let mut first = None;
        for id in candidates.into_iter().take(LOOKED_THROUGH_MAX) {
            let item = self.context.store.item(self.feed.no, id).await?;
            let Some(found) = item.and_then(|item| {
                let entry = item.shared_entry()?;
                Some((page_of(self.feed, &entry)?, entry))
            }) else {
                continue;
            };
            if skipped == 0 {
                return Ok(Some(found));
            }
            skipped -= 1;
            first.get_or_insert(found);
        }
        Ok(first)
    }

    /// The contents of missing items and of recent tombstones, by which a page is compared.
    async fn others(&self, last: &WindowState) -> Result<Vec<(ItemId, Arc<Entry>)>, Failure> {
        let mut others: Vec<_> = last
            .tombstones
            .iter()
            .map(|gone| (gone.id, Arc::clone(&gone.entry)))
            .collect();
        for id in last.absence.asked_about().take(ALIKE_MAX) {
            let item = self.context.store.item(self.feed.no, id).await?;
            others.extend(item.and_then(|item| Some((id, item.shared_entry()?))));
        }
        Ok(others)
    }

    /// Keeps and commits a control.
    async fn controlled(&self, control: PageControl) -> Result<Checked, Failure> {
        let at = control.at;
        let recorded = RecordedControl {
            at_us: at.micros(),
            at: at.rfc3339(),
            control: control.finding,
        };
        record_answer(self.feed, RecordedAnswer::Control(recorded)).await?;
        self.commit_control(control).await
    }

    /// Commits a control, wherever it is known from.
    pub async fn commit_control(&self, control: PageControl) -> Result<Checked, Failure> {
        let control = &control;
        let committed = transact(
            self.context,
            self.feed,
            "a page of it was compared",
            |snapshot| async move {
                let window = &snapshot.known.window;
                let absence = window.absence.controlled(control.clone());
                let last = Some(WindowState {
                    absence,
                    ..window.clone()
                });
                Ok(Decision::Commit(
                    Commit {
                        last,
                        ..Commit::nothing(&snapshot.record)
                    },
                    (),
                ))
            },
        );
        let (receipt, ()) = committed.await?.expect("every control is committed");
        self.context.metrics.permalink_check("control");
        // A control that went well and the page that it was asked for are one question to the host,
        // a second apart.
        let asked = !matches!(
            control.finding,
            ControlFinding::Shown
                | ControlFinding::Silent
                | ControlFinding::FrontPage
                | ControlFinding::NoPost
        );
        Ok(Checked {
            next_at: receipt.feed.window.next_check_at,
            asked,
            ..Checked::default()
        })
    }
}

/// The finding of an answer about a post that is in the feed, or about the front page, and the
/// other items whose words stand on it.
fn judged(
    answer: &PageAnswer,
    hints: &Hints<'_>,
    post: Option<&Entry>,
    others: &[(ItemId, Arc<Entry>)],
) -> (ControlFinding, Vec<(ItemId, u32)>) {
    let finding = match answer.status {
        StatusCode::GONE => ControlFinding::Gone,
        StatusCode::NOT_FOUND => ControlFinding::NotFound,
        StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION => {
            let page = PageText::new(&answer.body, hints);
            let counts = others
                .iter()
                .map(|(id, other)| (*id, few(page.count(other))));
            let alike = counts
                .filter(|(_, count)| *count > 0)
                .take(ALIKE_MAX)
                .collect();
            let finding = match post {
                None => ControlFinding::FrontPage,
                Some(post) if page.shows(post) => ControlFinding::Shown,
                Some(_) => ControlFinding::Silent,
            };
            return (finding, alike);
        }
        _ => ControlFinding::Refused,
    };
    (finding, Vec::new())
}
