//! Items that a walk which is over does not show, and what that comes to. What silence proves is
//! `feed::archive`'s decision.

use super::ArchiveReader;
use crate::{
    feed::{
        absence::AbsenceState,
        archive::{
            ArchiveFindings, ArchiveSuspect, ArchiveWalk, LiveItem, Visibility, judge_archives,
        },
        filter::Filter,
        item::{ItemId, KeyHash},
        order::Order,
        page::PageQuery,
        position::Position,
        reconcile::{Change, Decisions, WindowState, dated},
        schedule::Failure,
        stamp::Stamp,
    },
    ingest::FeedSpec,
};
use std::collections::{HashMap, HashSet};
use tracing::warn;

/// Conclusions from the silence of a walk.
#[derive(Default)]
pub(super) struct Silence {
    /// Items that are gone.
    pub(super) gone: Vec<ArchiveSuspect>,
    /// Items that are missed from now on.
    pub(super) missed: Vec<ArchiveSuspect>,
    /// Number of them that the next walk may prove gone.
    pub(super) counted: u32,
    /// Remark for the operator.
    pub(super) remark: Option<String>,
}

/// Items that are looked through for what a walk lacks.
// Limit: of a larger feed nothing is concluded from what its archives lack.
const ITEMS_MAX: usize = 200_000;

/// Items read at once of that.
const PAGE_ITEMS: usize = 500;

/// Bytes of items read at once of that.
const PAGE_BYTES: usize = 4 << 20;

/// Keys looked up at once.
const KEYS_MAX: usize = 500;

impl ArchiveReader<'_> {
    /// Judges what a walk that is over does not show. An item that it does show is not missed any
    /// more.
    pub(super) async fn silence(
        &self,
        walk: &ArchiveWalk,
        before: HashMap<KeyHash, Stamp>,
        last: &WindowState,
        decisions: &Decisions,
    ) -> Result<Silence, Failure> {
        // What documents have shown since is taken out of these already.
        let missed = &decisions.window.archive_suspects;
        if !walk.proves() {
            let mut silence = Silence {
                missed: missed.clone(),
                ..Silence::default()
            };
            if !missed.is_empty() {
                let shown = self.shown(walk, &HashSet::new()).await?;
                silence.missed.retain(|missed| !shown.contains(&missed.id));
            }
            return Ok(silence);
        }
        let Some(mut held) = self.held().await? else {
            let remark = format!(
                "more than {ITEMS_MAX} items are held, so nothing is concluded from what the archives lack"
            );
            return Ok(Silence {
                missed: missed.clone(),
                remark: Some(remark),
                ..Silence::default()
            });
        };
        let ids: HashSet<ItemId> = held.keys().copied().collect();
        let mut shown = self.shown(walk, &ids).await?;
        shown.extend(
            decisions
                .aliases
                .iter()
                .filter(|(key, _)| walk.has_shown(key))
                .map(|(_, id)| *id),
        );
        shown.extend(last.entries.iter().map(|row| row.id));
        shown.extend(
            last.absence
                .items
                .iter()
                .filter(|row| row.suspect.is_none())
                .map(|row| row.id),
        );
        let suspects: HashSet<ItemId> = last.absence.suspects().map(|row| row.id).collect();
        let mut unmatched = Vec::new();
        for (key, at) in before {
            match held.get_mut(&key.item_id()) {
                Some(item) => item.before = Some(at),
                None => unmatched.push((key, at)),
            }
        }
        for (id, at) in self.behind(unmatched).await? {
            if let Some(item) = held.get_mut(&id) {
                item.before = Some(at);
            }
        }
        for item in held.values_mut() {
            item.sight = if shown.contains(&item.id) {
                Visibility::Shown
            } else if suspects.contains(&item.id) {
                Visibility::Suspected
            } else {
                Visibility::Absent
            };
        }
        let (missed, now) = (missed.clone(), self.context.now());
        let mut found = self
            .context
            .compute(move || judge_archives(held.into_values().collect(), &missed, now))
            .await?;
        // The archives themselves may say of one what becomes of it (RFC 6721).
        let settled: HashSet<ItemId> = decisions.changes.iter().map(Change::id).collect();
        found.gone.retain(|missed| !settled.contains(&missed.id));
        found.missed.retain(|missed| !settled.contains(&missed.id));
        Ok(Silence::of(self.feed, found))
    }

    /// Drops suspects that archives have shown since documents began to miss them (POLLING 2.3,
    /// step 8).
    pub(super) async fn clear_suspects(
        &self,
        absence: &mut AbsenceState,
        shown: HashMap<KeyHash, Stamp>,
    ) -> Result<(), Failure> {
        if absence.suspects().next().is_none() {
            return Ok(());
        }
        let shown = self.behind(shown.into_iter().collect()).await?;
        for row in &mut absence.items {
            row.suspect = row
                .suspect
                .filter(|missing| shown.get(&row.id).is_none_or(|at| *at <= missing.since));
        }
        Ok(())
    }

    /// Every live item of a feed, without its content; `None` when there are too many.
    async fn held(&self) -> Result<Option<HashMap<ItemId, LiveItem>>, Failure> {
        let mut held = HashMap::new();
        let mut since = None;
        loop {
            let query = PageQuery {
                since,
                max: PAGE_ITEMS,
                bytes_max: PAGE_BYTES,
                filter: Filter::Live,
                ..PageQuery::all(self.feed.no, Order::MODIFIED)
            };
            let page = self.context.store.page(query).await?;
            for item in &page.items {
                let dated = item.entry().and_then(dated);
                let (before, sight) = (None, Visibility::Absent);
                held.insert(
                    item.id,
                    LiveItem {
                        id: item.id,
                        dated,
                        tombstone_count: item.tombstone_count,
                        before,
                        sight,
                    },
                );
            }
            if held.len() > ITEMS_MAX {
                return Ok(None);
            }
            if !page.more {
                return Ok(Some(held));
            }
            since = Some(Position::of_cursor(&page.last_cursor));
        }
    }

    /// The items that a walk has shown. A key that founded an item is not looked up.
    async fn shown(
        &self,
        walk: &ArchiveWalk,
        held: &HashSet<ItemId>,
    ) -> Result<HashSet<ItemId>, Failure> {
        let (founding, other): (Vec<KeyHash>, Vec<KeyHash>) =
            walk.shown().partition(|key| held.contains(&key.item_id()));
        let mut shown: HashSet<ItemId> = founding.into_iter().map(KeyHash::item_id).collect();
        let other = other.into_iter().map(|key| (key, Stamp::ZERO)).collect();
        shown.extend(self.behind(other).await?.into_keys());
        Ok(shown)
    }

    /// The items behind keys, each with what came with its key.
    async fn behind(&self, keys: Vec<(KeyHash, Stamp)>) -> Result<HashMap<ItemId, Stamp>, Failure> {
        let mut behind = HashMap::new();
        for some in keys.chunks(KEYS_MAX) {
            let asked = some.iter().map(|(key, _)| *key).collect();
            let ids = self.context.store.ids(self.feed.no, asked).await?;
            let ids: HashMap<KeyHash, ItemId> = ids.into_iter().collect();
            behind.extend(
                some.iter()
                    .filter_map(|(key, at)| Some((*ids.get(key)?, *at))),
            );
        }
        Ok(behind)
    }
}

impl Silence {
    /// Findings, with their remark for the operator.
    fn of(feed: &FeedSpec, found: ArchiveFindings) -> Self {
        let name = &feed.name;
        let remark = found.too_much.map(|(lacking, of)| {
            warn!(feed.name = %name, "The archives of `{name}` lack {lacking} of {of} items that they held; that is too much at once to believe it");
            format!("the archives lack {lacking} of {of} items that they held: too much at once, so nothing is concluded")
        });
        let counted = if remark.is_some() {
            0
        } else {
            found.missed.len()
        };
        let counted = u32::try_from(counted).unwrap_or(u32::MAX);
        Self {
            gone: found.gone,
            missed: found.missed,
            counted,
            remark,
        }
    }
}
