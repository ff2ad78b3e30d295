//! Archives that are walked again: how such a walk begins, which of its pages bring anything, and what its silence means.
//! Where it goes is `feed::archive`'s business, and so is what silence proves.

use super::{
    FeedSpec, Pipeline, Stepped,
    archives::{HOLD_SECS_MAX, again_at, keys_of, rules, rules_of, strong_of},
    compute,
    decided::is_damaged,
    ours,
};
use crate::{
    feed::{
        absence::{AbsenceState, Coverage},
        archive::{
            ArchiveFindings, ArchiveSuspect, ArchiveWalk, History, LastWalk, LiveItem, StagedPage,
            Visibility, WalkedDocument, judge_archives, settle_known,
        },
        different_feed::{different_feed, is_planet},
        item::{ItemId, KeyHash},
        order::Order,
        page::PageQuery,
        position::Position,
        reconcile::{
            Change, Decisions, Observation, ObservedEntry, WindowState, dated, keys_needed, observe,
        },
        record::FeedRecord,
        schedule::{Failure, Plan, PollState},
        stamp::Stamp,
    },
    ingest::{platform, upstream},
    store::{Archives, Commit},
};
use everfeed_adapters::{Digest, Hints, Window, platforms::Profile, witness};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

/// What the silence of a walk comes to.
#[derive(Default)]
pub(super) struct Silence {
    /// Items that are gone.
    pub(super) gone: Vec<ArchiveSuspect>,
    /// Items that are missed from now on.
    pub(super) missed: Vec<ArchiveSuspect>,
    /// How many of them the next walk may prove gone.
    pub(super) counted: u32,
    /// What the operator should know.
    pub(super) remark: Option<String>,
}

/// Seconds until a walk that could not begin is tried again.
const BEGIN_AGAIN_SECS: u64 = 86_400;

/// Items that are looked through for what a walk lacks; of a larger feed nothing is concluded.
const ITEMS_MAX: usize = 200_000;

/// Items read at once of that.
const PAGE_ITEMS: usize = 500;

/// Bytes of items read at once of that.
const PAGE_BYTES: usize = 4 << 20;

/// Keys looked up at once.
const KEYS_MAX: usize = 500;

/// Whether a page may lack what its publisher shows.
pub(super) fn may_lack(window: &Window, page: &StagedPage, body: &[u8]) -> bool {
    let hints = Hints { content_type: page.content_type.as_deref(), ..Hints::default() };
    is_damaged(window) || witness(body, &hints).is_some_and(|found| found > window.entries.len())
}

impl Pipeline {
    /// Begins one more walk through archives that were walked before: the live document is asked for, as it is, and
    /// nothing is done with it but to go on from it. `None` when `stop` came before that.
    pub async fn walk_again(
        &self,
        feed: &FeedSpec,
        state: &PollState,
        stop: &CancellationToken,
    ) -> Option<Stepped> {
        let later = Stepped {
            walk: None,
            next_at: Some(self.now().plus_secs(BEGIN_AGAIN_SECS)),
            wants_poll: false,
            hold: None,
        };
        // Of a publisher in trouble nothing more is wanted than its feed.
        if state.failures > 0 {
            return Some(later);
        }
        let Ok(record) = self.store.feed(feed.no).await else { return Some(later) };
        let due = record.last_walk.as_ref().and_then(|walked| again_at(feed, walked));
        if due.is_none_or(|due| due > self.now()) {
            return Some(Stepped { next_at: due, ..later });
        }
        let url = upstream::bare(&feed.url).to_string();
        let plan = Plan { url: url.clone(), conditional: false };
        let subscribers = self.subscribers(feed).await;
        let reply = tokio::select! {
            reply = self.upstream.fetch(feed, &plan, state, subscribers) => reply,
            () = stop.cancelled() => return None,
        };
        let fetched = match reply {
            upstream::Reply::Document(fetched) => fetched,
            upstream::Reply::Unchanged(_) => return Some(later),
            upstream::Reply::Deferred { wait_secs } => {
                let next_at = Some(self.now().plus_secs(wait_secs.max(1)));
                return Some(Stepped { next_at, ..later });
            }
            upstream::Reply::Failed { failure, host } => {
                debug!(feed.name = %feed.name, "No walk through archives yet: {}", failure.text);
                let secs = failure.retry_after_secs.map(|secs| secs.min(HOLD_SECS_MAX));
                let hold = host.zip(secs.map(|secs| self.now().plus_secs(secs)));
                return Some(Stepped { hold, ..later });
            }
        };
        match self.begin_again(feed, state, url, fetched).await {
            Ok(begun) => Some(begun.unwrap_or(later)),
            Err(failure) => {
                let (name, text) = (&feed.name, &failure.text);
                warn!(feed.name = %name, "The archives of `{name}` could not be walked again yet: {text}");
                Some(later)
            }
        }
    }

    /// The walk from its live document on; `None` when that is none to begin from.
    async fn begin_again(
        &self,
        feed: &FeedSpec,
        state: &PollState,
        url: String,
        fetched: upstream::Fetched,
    ) -> Result<Option<Stepped>, Failure> {
        let (record, now) = (self.store.feed(feed.no).await.map_err(ours)?, self.now());
        let profile = platform::profile(&self.platforms, state.platform.as_ref());
        let mut page = StagedPage {
            no: 0,
            url,
            landed: fetched.base_url.clone(),
            base_url: fetched.base_url,
            content_type: fetched.content_type,
            content_language: fetched.content_language,
            read_at: now,
            body: Digest::of(&fetched.body),
            keys: Vec::new(),
            strong: 0,
            deflated: Vec::new(),
        };
        let (body, hinted) = (fetched.body.clone(), page.clone());
        let read = compute(move || {
            let window = super::archives::window(&hinted, &body)?;
            let damaged = may_lack(&window, &hinted, &body);
            Some((window, damaged))
        });
        let Some((window, damaged)) = read.await?.filter(|(window, _)| !window.entries.is_empty()) else {
            return Ok(None);
        };
        if fetched.is_part || different_feed(&record.metadata, &window.metadata).is_some() {
            return Ok(None);
        }
        page.keys = keys_of(&record.namespace, &window);
        page.strong = strong_of(&window);
        let (bytes, metadata) = (fetched.body.len() as u64, &window.metadata);
        let mixed = is_planet(&window);
        let seen = WalkedDocument {
            landed: &page.landed,
            body: page.body,
            bytes,
            keys: &page.keys,
            metadata,
            damaged,
            mixed,
        };
        let begun =
            ArchiveWalk::begin(&upstream::bare(&feed.url), &seen, profile.as_deref(), &rules(feed), now);
        let walk = match begun {
            Ok(walk) => walk,
            Err(found) => return self.ended_at_once(feed, &record, found, now).await.map(Some),
        };
        let staged = self.store.staged(feed.no).await.map_err(ours)?;
        let base = staged.pages.last().map_or(0, |page| page.no.saturating_add(1));
        let before = staged.walk.as_ref().map(ArchiveWalk::way_words).unwrap_or_default();
        let is_log = profile.is_some_and(|profile| profile.event_log);
        let walk = walk.after(before, base).doubted(is_log);
        let gap_secs = rules_of(feed, &walk).page_gap_secs;
        let walk = walk.paced(gap_secs, now);
        page.no = base;
        self.store.stage(feed.no, walk.token(), Some(page)).await.map_err(ours)?;
        info!(feed.name = %feed.name, way = walk.way_words(), "ParsedEntry the archives of `{}` again", feed.name);
        let next_at = Some(walk.next_at());
        Ok(Some(Stepped { walk: Some(walk), next_at, wants_poll: false, hold: None }))
    }

    /// Notes that there is no way into the archives any more, or that the live document is everything now.
    async fn ended_at_once(
        &self,
        feed: &FeedSpec,
        record: &FeedRecord,
        found: History,
        now: Stamp,
    ) -> Result<Stepped, Failure> {
        let walked = LastWalk::at_once(found.clone(), now);
        let next_at = again_at(feed, &walked);
        let archives = Archives { history: record.history.after(found), unstage: None, walked: Some(walked) };
        let commit = Commit { archives: Some(archives), ..Commit::nothing(record) };
        match self.store.commit(commit).await {
            Ok(_) => Ok(Stepped { walk: None, next_at, wants_poll: false, hold: None }),
            Err(error) => Err(ours(error)),
        }
    }

    /// Whether a page of a walk that was done before holds anything to be committed.
    pub(super) async fn changes(
        &self,
        feed: &FeedSpec,
        window: Window,
        profile: Option<Arc<Profile>>,
        now: Stamp,
    ) -> Result<bool, Failure> {
        if !window.deletions.is_empty() {
            return Ok(true);
        }
        let namespace = self.store.feed(feed.no).await.map_err(ours)?.namespace;
        let (seen, keys, namespace) = compute(move || {
            let (seen, _) = observe(&WindowState::default(), &window, profile, Coverage::Partial);
            let keys = keys_needed(&namespace, &WindowState::default(), &seen);
            (seen, keys, namespace)
        })
        .await?;
        let known = self.store.known(feed.no, keys).await.map_err(ours)?;
        let Observation { entries, .. } = seen;
        let read = entries.into_iter().filter_map(|sighting| match sighting {
            ObservedEntry::Read(reading) => Some((now, *reading)),
            ObservedEntry::Same(_) => None,
        });
        Ok(!settle_known(&namespace, &known, read.collect()).is_empty())
    }

    /// What a walk that is over does not show, and what that comes to. Whatever it does show is not missed any more.
    pub(super) async fn silence(
        &self,
        feed: &FeedSpec,
        walk: &ArchiveWalk,
        before: HashMap<KeyHash, Stamp>,
        last: &WindowState,
        decisions: &Decisions,
    ) -> Result<Silence, Failure> {
        // What documents have shown since is taken out of these already.
        let missed = &decisions.window.archive_suspects;
        if !walk.proves() {
            let shown = if missed.is_empty() {
                HashSet::new()
            } else {
                self.shown(feed, walk, &HashSet::new()).await?
            };
            let missed = missed.iter().filter(|missed| !shown.contains(&missed.id)).copied().collect();
            return Ok(Silence { missed, ..Silence::default() });
        }
        let Some(mut held) = self.held(feed).await? else {
            let remark = format!(
                "more than {ITEMS_MAX} items are held, so nothing is concluded from what the archives lack"
            );
            return Ok(Silence { missed: missed.clone(), remark: Some(remark), ..Silence::default() });
        };
        let ids: HashSet<ItemId> = held.keys().copied().collect();
        let mut shown = self.shown(feed, walk, &ids).await?;
        shown.extend(decisions.aliases.iter().filter(|(key, _)| walk.has_shown(key)).map(|(_, id)| *id));
        shown.extend(last.entries.iter().map(|row| row.id));
        shown.extend(last.absence.items.iter().filter(|row| row.suspect.is_none()).map(|row| row.id));
        let suspects: HashSet<ItemId> = last.absence.suspects().map(|row| row.id).collect();
        let mut unmatched = Vec::new();
        for (key, at) in before {
            match held.get_mut(&key.item_id()) {
                Some(item) => item.before = Some(at),
                None => unmatched.push((key, at)),
            }
        }
        for (id, at) in self.behind(feed, unmatched).await? {
            if let Some(item) = held.get_mut(&id) {
                item.before = Some(at);
            }
        }
        for item in held.values_mut() {
            item.sight = match () {
                () if shown.contains(&item.id) => Visibility::Shown,
                () if suspects.contains(&item.id) => Visibility::Suspected,
                () => Visibility::Absent,
            };
        }
        let (missed, now) = (missed.clone(), self.now());
        let mut found = compute(move || judge_archives(held.into_values().collect(), &missed, now)).await?;
        // The archives themselves may say of one what becomes of it (RFC 6721).
        let settled: HashSet<ItemId> = decisions.changes.iter().map(Change::id).collect();
        found.gone.retain(|missed| !settled.contains(&missed.id));
        found.missed.retain(|missed| !settled.contains(&missed.id));
        Ok(Silence::of(feed, found))
    }

    /// What archives have shown since documents began to miss it is not missed any more (POLLING 2.3, step 8).
    pub(super) async fn clear_suspects(
        &self,
        feed: &FeedSpec,
        absence: &mut AbsenceState,
        shown: HashMap<KeyHash, Stamp>,
    ) -> Result<(), Failure> {
        if absence.suspects().next().is_none() {
            return Ok(());
        }
        let shown = self.behind(feed, shown.into_iter().collect()).await?;
        for row in &mut absence.items {
            row.suspect =
                row.suspect.filter(|missing| shown.get(&row.id).is_none_or(|at| *at <= missing.since));
        }
        Ok(())
    }

    /// Every live item of a feed, without its content; `None` when there are too many.
    async fn held(&self, feed: &FeedSpec) -> Result<Option<HashMap<ItemId, LiveItem>>, Failure> {
        let mut held = HashMap::new();
        let mut since = None;
        loop {
            let query = PageQuery {
                feed: feed.no,
                order: Order::MODIFIED,
                since,
                until: None,
                max: PAGE_ITEMS,
                bytes_max: PAGE_BYTES,
                live_only: true,
            };
            let page = self.store.page(query).await.map_err(ours)?;
            for item in &page.items {
                let dated = item.entry().and_then(dated);
                let (before, sight) = (None, Visibility::Absent);
                held.insert(
                    item.id,
                    LiveItem { id: item.id, dated, tombstone_count: item.tombstone_count, before, sight },
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
        feed: &FeedSpec,
        walk: &ArchiveWalk,
        held: &HashSet<ItemId>,
    ) -> Result<HashSet<ItemId>, Failure> {
        let (founding, other): (Vec<KeyHash>, Vec<KeyHash>) =
            walk.shown().partition(|key| held.contains(&key.item_id()));
        let mut shown: HashSet<ItemId> = founding.into_iter().map(KeyHash::item_id).collect();
        let other = other.into_iter().map(|key| (key, Stamp::ZERO)).collect();
        shown.extend(self.behind(feed, other).await?.into_keys());
        Ok(shown)
    }

    /// The items behind keys, each with what came with its key.
    async fn behind(
        &self,
        feed: &FeedSpec,
        keys: Vec<(KeyHash, Stamp)>,
    ) -> Result<HashMap<ItemId, Stamp>, Failure> {
        let mut behind = HashMap::new();
        for some in keys.chunks(KEYS_MAX) {
            let asked = some.iter().map(|(key, _)| *key).collect();
            let known = self.store.known(feed.no, asked).await.map_err(ours)?;
            let found = some.iter().filter_map(|(key, at)| Some((known.items.get(key)?.id, *at)));
            behind.extend(found);
        }
        Ok(behind)
    }
}

impl Silence {
    /// What was found, told to the operator.
    fn of(feed: &FeedSpec, found: ArchiveFindings) -> Self {
        let name = &feed.name;
        let remark = found.too_much.map(|(lacking, of)| {
            warn!(feed.name = %name, "The archives of `{name}` lack {lacking} of {of} items that they held; that is too much at once to believe it");
            format!("the archives lack {lacking} of {of} items that they held: too much at once, so nothing is concluded")
        });
        let counted = if remark.is_some() { 0 } else { found.missed.len() };
        let counted = u32::try_from(counted).unwrap_or(u32::MAX);
        Self { gone: found.gone, missed: found.missed, counted, remark }
    }
}
