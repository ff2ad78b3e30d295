//! A feed's archives: whether a first document waits for them, one step of a walk through them, and the commit that makes
//! items of what was staged. Where a walk goes is `feed::archive`'s business, when it steps the poller's.

use super::{FeedSpec, Fetched, Pipeline, Polled, Sliced, TRIES_MAX, compute, ours, rewalks::may_lack};
use crate::{
    feed::{
        absence::{Coverage, ProofPolicy},
        archive::{
            ArchiveWalk, ArchivedPage, History, LastWalk, OwnOrigins, PageUse, StagedPage, StagedWalk,
            WalkReply, WalkRules, WalkStep, WalkedDocument, merge, settle_known,
        },
        different_feed::{different_feed, is_planet},
        item::KeyHash,
        observation_record::ObservationRecord,
        reconcile::{
            Change, Decisions, Known, Observation, ObservedEntry, ParsedEntry, WindowState,
            ended_in_archives, keys_needed, observe, reconcile,
        },
        record::FeedRecord,
        schedule::{Answer, Document, Failure, Outcome, Plan, PollState},
        stamp::Stamp,
    },
    ingest::{platform, upstream},
    store::{Archives, Commit, StoreError},
};
use bytes::Bytes;
use everfeed_adapters::{Deletion, Digest, Hints, Window, platforms::Profile, slice};
use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use std::{
    collections::HashSet,
    io::{Read as _, Write as _},
    sync::Arc,
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

/// Whether a document is committed now.
pub(super) enum Gate {
    /// It is, and this of the archives with it; a walk may begin beside it.
    Open(Option<Box<ArchiveWalk>>, Import),
    /// It waits for the archives until then; a walk may begin with it.
    Closed(Option<Box<ArchiveWalk>>, Stamp),
}

/// What a commit takes in besides its document.
#[derive(Default)]
pub(super) struct Import {
    /// Staged pages, parsed, newest first.
    pub(super) pages: Arc<Vec<ArchivedPage>>,
    /// What becomes of them.
    pub(super) said: Option<Archives>,
}

/// What came of one step of a walk.
#[derive(Debug)]
pub struct Stepped {
    /// How far it is; `None` when there is nothing left to do.
    pub walk: Option<ArchiveWalk>,
    /// When it goes on, or the next one begins; `None`: never.
    pub next_at: Option<Stamp>,
    /// Whether the live document is to be read now, for the first commit.
    pub wants_poll: bool,
    /// A host that wants to be left alone until then.
    pub hold: Option<(String, Stamp)>,
}

/// Seconds between two pages of a walk that was done before at least: as for probes, one a minute (POLLING 2.3).
const AGAIN_PAGE_GAP_SECS_MIN: u64 = 60;

/// Until a step that failed on our side is done again.
const STEP_AGAIN_SECS: u64 = 5;

/// The longest a host is left alone on the word of one page, as for polls.
pub(super) const HOLD_SECS_MAX: u64 = 7 * 86_400;

impl Pipeline {
    /// Whether a document of a feed is to wait for its archives.
    pub(super) async fn gate(
        &self,
        feed: &FeedSpec,
        sliced: &Sliced,
        fetched: &Fetched,
        landed: &str,
    ) -> Result<Gate, Failure> {
        let open = |said| Ok(Gate::Open(None, Import { said, ..Import::default() }));
        let Some(import) = feed.import.filter(|_| !sliced.is_part && fetched.resource.is_none()) else {
            return open(None);
        };
        let record = self.store.feed(feed.no).await.map_err(ours)?;
        // Of another feed's document under this URL no archives are read.
        let is_settled = record.history != History::Unknown
            || different_feed(&record.metadata, &sliced.window.metadata).is_some();
        if record.is_ready() && is_settled {
            return open(None);
        }
        let staged = self.store.staged(feed.no).await.map_err(ours)?;
        let now = self.now();
        let Some(walk) = &staged.walk else {
            let keys = keys_of(&record.namespace, &sliced.window);
            let seen = WalkedDocument {
                landed,
                body: Digest::of(&sliced.bytes),
                bytes: sliced.bytes.len() as u64,
                keys: &keys,
                metadata: &sliced.window.metadata,
                damaged: sliced.class == Coverage::Partial,
                // A first walk proves nothing by its silence.
                mixed: false,
            };
            let asked = upstream::bare(&feed.url);
            let walk = match ArchiveWalk::begin(&asked, &seen, sliced.profile.as_deref(), &rules(feed), now) {
                Ok(walk) => walk,
                Err(history) => {
                    let at_once = matches!(history, History::Partial(_));
                    let walked = at_once.then(|| LastWalk::at_once(history.clone(), now));
                    return open(Some(Archives { history, walked, ..Archives::default() }));
                }
            };
            let page = StagedPage {
                no: 0,
                url: asked.to_string(),
                landed: landed.to_owned(),
                base_url: fetched.base_url.clone(),
                content_type: fetched.content_type.clone(),
                content_language: fetched.content_language.clone(),
                read_at: now,
                body: seen.body,
                strong: strong_of(&sliced.window),
                keys: keys.clone(),
                deflated: deflate(sliced.bytes.clone()).await?,
            };
            self.store.stage(feed.no, walk.token(), Some(page)).await.map_err(ours)?;
            info!(feed.name = %feed.name, way = ?walk.way(), "ParsedEntry the archives of `{}`", feed.name);
            let walk = Some(Box::new(walk));
            if record.is_ready() || import.serve_after_secs == 0 {
                let said = Some(Archives { history: History::Running, ..Archives::default() });
                return Ok(Gate::Open(walk, Import { said, ..Import::default() }));
            }
            self.say(&record, History::Running).await?;
            return Ok(Gate::Closed(walk, now.plus_secs(import.serve_after_secs)));
        };
        if record.is_ready() {
            return open(None);
        }
        let serve_at = walk.started_at.plus_secs(import.serve_after_secs);
        // A clock that was set back must not keep the feed from being served for ever.
        if !walk.is_over() && now < serve_at && now >= walk.started_at {
            return Ok(Gate::Closed(None, serve_at));
        }
        Ok(Gate::Open(None, opened(&record, staged, sliced.profile.clone(), now).await?))
    }

    /// Tells what is known of a feed's history by now.
    async fn say(&self, record: &FeedRecord, history: History) -> Result<(), Failure> {
        let commit =
            Commit { archives: Some(Archives { history, ..Archives::default() }), ..Commit::nothing(record) };
        match self.store.commit(commit).await {
            // Whoever moved the feed on says it with what it commits.
            Ok(_) | Err(StoreError::Conflict { .. }) => Ok(()),
            Err(error) => Err(ours(error)),
        }
    }

    /// What is remembered of a first document that waits: all but what would keep it from being read again.
    pub(super) fn held_back(
        &self,
        feed: &FeedSpec,
        state: &PollState,
        sliced: &Sliced,
        answer: Answer,
        walk: Option<ArchiveWalk>,
        until: Stamp,
    ) -> Polled {
        let document = Document {
            body: None,
            rhythm: &sliced.window.metadata.rhythm,
            arrived: false,
            remark: None,
            wants_audit: false,
            held_until: state.held_until,
            platform: sliced.platform.clone(),
        };
        let polled = self.remember(feed, state, &Outcome::Document(answer, document));
        let state = PollState {
            etag: None,
            last_modified: None,
            validators_url: None,
            body: None,
            next_at: until,
            ..polled.state
        };
        Polled { state, walk, ..polled }
    }

    /// One step of a walk: at most one request. `None` when `stop` came before there was anything to keep.
    pub async fn step(
        &self,
        feed: &FeedSpec,
        state: &PollState,
        walk: ArchiveWalk,
        stop: &CancellationToken,
    ) -> Option<Stepped> {
        let before = walk.token();
        match self.try_step(feed, state, walk, stop).await {
            Ok(stepped) => stepped,
            Err(failure) => {
                let (name, text) = (&feed.name, &failure.text);
                warn!(feed.name = %name, "A page of the archives of `{name}` could not be kept: {text}");
                let next_at = self.now().plus_secs(STEP_AGAIN_SECS);
                Some(Stepped { walk: Some(before), next_at: Some(next_at), wants_poll: false, hold: None })
            }
        }
    }

    async fn try_step(
        &self,
        feed: &FeedSpec,
        state: &PollState,
        mut walk: ArchiveWalk,
        stop: &CancellationToken,
    ) -> Result<Option<Stepped>, Failure> {
        if !walk.remembers() {
            let staged = self.store.staged(feed.no).await.map_err(ours)?;
            walk = staged.recalled().unwrap_or(walk);
        }
        let mut hold = None;
        if let WalkStep::Fetch(url) = walk.next(self.now()) {
            let plan = Plan { url: url.clone(), conditional: false };
            let subscribers = self.subscribers(feed).await;
            let reply = tokio::select! {
                reply = self.upstream.fetch(feed, &plan, state, subscribers) => reply,
                () = stop.cancelled() => return Ok(None),
            };
            let (page, held) = self.take_page(feed, state, &mut walk, &url, reply).await?;
            hold = held;
            self.store.stage(feed.no, walk.token(), page).await.map_err(ours)?;
        }
        let next_at = Some(walk.next_at());
        if !walk.is_over() {
            return Ok(Some(Stepped { walk: Some(walk), next_at, wants_poll: false, hold }));
        }
        let wants_poll = !self.store.feed(feed.no).await.map_err(ours)?.is_ready();
        if !wants_poll {
            let profile = platform::profile(&self.platforms, state.platform.as_ref());
            self.commit_late(feed, &walk, profile).await?;
        }
        if !walk.is_done() {
            return Ok(Some(Stepped { walk: Some(walk), next_at, wants_poll, hold }));
        }
        let next_at = self
            .store
            .feed(feed.no)
            .await
            .map_err(ours)?
            .last_walk
            .and_then(|walked| again_at(feed, &walked));
        Ok(Some(Stepped { walk: None, next_at, wants_poll, hold }))
    }

    /// Tells a walk what a request brought, and makes of it what is to be kept.
    async fn take_page(
        &self,
        feed: &FeedSpec,
        state: &PollState,
        walk: &mut ArchiveWalk,
        url: &str,
        reply: upstream::Reply,
    ) -> Result<(Option<StagedPage>, Option<(String, Stamp)>), Failure> {
        let (rules, now) = (rules_of(feed, walk), self.now());
        let fetched = match reply {
            upstream::Reply::Document(fetched) => fetched,
            upstream::Reply::Deferred { wait_secs } => {
                walk.answer(WalkReply::Deferred { wait_secs }, &rules, now);
                return Ok((None, None));
            }
            // Nobody asked what is new.
            upstream::Reply::Unchanged(_) => {
                let why = "the publisher answered 304";
                walk.answer(WalkReply::Failed { why, retry_after_secs: None }, &rules, now);
                return Ok((None, None));
            }
            upstream::Reply::Failed { failure, host } => {
                let reply = match failure.status {
                    Some(status @ (403 | 404 | 410)) => WalkReply::Missing { status },
                    _ => WalkReply::Failed { why: &failure.text, retry_after_secs: failure.retry_after_secs },
                };
                walk.answer(reply, &rules, now);
                let until = failure.retry_after_secs.map(|secs| now.plus_secs(secs.min(HOLD_SECS_MAX)));
                debug!(feed.name = %feed.name, url, "No page of the archives: {}", failure.text);
                return Ok((None, host.zip(until)));
            }
        };
        let namespace = self.store.feed(feed.no).await.map_err(ours)?.namespace;
        let base_url = match &feed.public_url {
            // What a page names relatively is relative to where the public finds it.
            Some(public) => url::Url::parse(&fetched.base_url)
                .ok()
                .and_then(|landed| public.join(&landed[url::Position::BeforePath..]).ok())
                .map_or_else(|| fetched.base_url.clone(), Into::into),
            None => fetched.base_url.clone(),
        };
        let (landed, body) = (fetched.base_url.clone(), fetched.body.clone());
        let page = StagedPage {
            no: 0,
            url: url.to_owned(),
            landed: landed.clone(),
            base_url,
            content_type: fetched.content_type,
            content_language: fetched.content_language,
            read_at: now,
            body: Digest::of(&body),
            keys: Vec::new(),
            strong: 0,
            deflated: Vec::new(),
        };
        let judges = walk.before.is_some();
        let (read, page) = compute(move || {
            let window = window(&page, &body);
            let damaged = window.as_ref().is_some_and(|window| may_lack(window, &page, &body));
            (window.map(|window| (window, body, damaged)), page)
        })
        .await?;
        let Some((window, body, damaged)) = read else {
            walk.answer(WalkReply::NoFeed, &rules, now);
            return Ok((None, None));
        };
        let keys = keys_of(&namespace, &window);
        let (bytes, metadata) = (body.len() as u64, &window.metadata);
        let mixed = is_planet(&window);
        let seen =
            WalkedDocument { landed: &landed, body: page.body, bytes, keys: &keys, metadata, damaged, mixed };
        let page = match walk.answer(WalkReply::Page(seen), &rules, now) {
            PageUse::Keep => {
                let strong = strong_of(&window);
                let profile = platform::profile(&self.platforms, state.platform.as_ref());
                // Of a page that changes nothing only the traces are kept.
                let deflated = if !judges || self.changes(feed, window, profile, now).await? {
                    deflate(body).await?
                } else {
                    Vec::new()
                };
                Some(StagedPage { no: walk.kept, keys, strong, deflated, ..page })
            }
            PageUse::Drop => None,
        };
        Ok((page, None))
    }

    /// Makes items of the staged pages of a feed that is served already: they get the next T (DESIGN section 4).
    async fn commit_late(
        &self,
        feed: &FeedSpec,
        walk: &ArchiveWalk,
        profile: Option<Arc<Profile>>,
    ) -> Result<(), Failure> {
        let started = Instant::now();
        for _ in 0..TRIES_MAX {
            let record = self.store.feed(feed.no).await.map_err(ours)?;
            let staged = self.store.staged(feed.no).await.map_err(ours)?;
            let history = record.history.after(walk.history());
            let is_told = if walk.is_done() { is_settled(walk, &record) } else { history == record.history };
            if !staged.waits() && is_told {
                return Ok(());
            }
            let (before, shown) = (staged.before(), staged.shown());
            let last = self.store.known(feed.no, Vec::new()).await.map_err(ours)?.window;
            let namespace = record.namespace.clone();
            let import = opened(&record, staged, profile.clone(), self.now()).await?;
            let pages = Arc::clone(&import.pages);
            let (older, keys) = compute(move || {
                let older = older(&mut Observation::default(), &pages);
                let keys = keys(&namespace, &last, &older);
                (older, keys)
            })
            .await?;
            let known = self.store.known(feed.no, keys).await.map_err(ours)?;
            if known.rev != record.rev {
                continue;
            }
            let (now, policy, profile) = (self.now(), feed.deletions.policy(false), profile.clone());
            let (decisions, record, known) = compute(move || {
                let decisions = older.decide(&record.namespace, &known, profile, &policy, now);
                (decisions, record, known)
            })
            .await?;
            let silence = self.silence(feed, walk, before, &known.window, &decisions).await?;
            let mut decisions =
                Decisions { coverage: Coverage::Partial, missing: silence.missed.len(), ..decisions };
            self.clear_suspects(feed, &mut decisions.window.absence, shown).await?;
            let gone = silence.gone.iter().map(|missed| Change::Delete(ended_in_archives(*missed, now)));
            decisions.changes.extend(gone);
            decisions.window.archive_suspects = silence.missed;
            let walked = walk.is_done().then(|| LastWalk {
                missed: silence.counted,
                remark: silence.remark.clone(),
                ..LastWalk::of(walk, now)
            });
            let observed = ObservationRecord {
                partial: Some(format!("archives, {}; pages read: {}", walk.history(), walk.pages)),
                remark: silence.remark,
                ..ObservationRecord::of(&decisions, walk.entries(), now)
            };
            let WindowState { absence, deferred: held, archive_suspects: missed, .. } = decisions.window;
            let last =
                WindowState { absence, deferred: held, archive_suspects: missed, ..known.window.clone() };
            let commit = Commit {
                feed: feed.no,
                rev: known.rev,
                changes: decisions.changes,
                aliases: decisions.aliases,
                last: (last != known.window).then_some(last),
                metadata: None,
                id_rule: decisions.id_rule,
                ready: record.is_ready(),
                poll: None,
                archives: import.said.map(|said| Archives { history, walked, ..said }),
                observed: Some(observed),
            };
            match self.store.commit(commit).await {
                Ok(receipt) => {
                    self.announce(feed, &receipt, started);
                    let (name, history) = (&feed.name, &receipt.feed.history);
                    info!(feed.name = %name, "The archives of `{name}` were read: {history}");
                    return Ok(());
                }
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(ours(error)),
            }
        }
        Err(ours("the feed kept changing while its archives were decided on"))
    }
}

/// What is older than a document, and stands in archives only.
pub(super) struct Older {
    readings: Vec<(Stamp, ParsedEntry)>,
    deletions: Vec<Deletion>,
}

impl Older {
    /// What it changes.
    pub(super) fn decide(
        self,
        namespace: &str,
        known: &Known,
        profile: Option<Arc<Profile>>,
        policy: &ProofPolicy,
        now: Stamp,
    ) -> Decisions {
        if self.readings.is_empty() && self.deletions.is_empty() {
            let (last, id_rule) = (known.window.clone(), known.id_rule);
            return Decisions { window: last, id_rule, ..Decisions::default() };
        }
        let entries = settle_known(namespace, known, self.readings);
        // What an archive says is no change from one poll to the next.
        let (class, after_rest) = (Coverage::Partial, true);
        let seen = Observation { entries, deletions: self.deletions, coverage: class, profile, after_rest };
        reconcile(namespace, known, &seen, policy, now)
    }

    /// As it would be observed.
    fn observation(&self) -> Observation {
        let read = |(_, reading): &(Stamp, ParsedEntry)| ObservedEntry::Read(Box::new(reading.clone()));
        let entries = self.readings.iter().map(read).collect();
        let deletions = self.deletions.clone();
        Observation { entries, deletions, coverage: Coverage::Partial, ..Observation::default() }
    }
}

/// What archives hold that a live document does not.
pub(super) fn older(live: &mut Observation, pages: &[ArchivedPage]) -> Older {
    let deletions = pages.iter().flat_map(|page| page.deletions.iter().cloned()).collect();
    Older { readings: merge(live, pages.to_vec()), deletions }
}

/// The keys that deciding on it needs.
pub(super) fn keys(namespace: &str, last: &WindowState, older: &Older) -> Vec<KeyHash> {
    if older.readings.is_empty() && older.deletions.is_empty() {
        return Vec::new();
    }
    keys_needed(namespace, last, &older.observation())
}

/// Staged pages, parsed, and what becomes of them.
async fn opened(
    record: &FeedRecord,
    staged: StagedWalk,
    profile: Option<Arc<Profile>>,
    now: Stamp,
) -> Result<Import, Failure> {
    let (namespace, before) = (record.namespace.clone(), record.history.clone());
    compute(move || {
        let history = before.after(staged.walk.as_ref().map_or(History::Unknown, ArchiveWalk::history));
        let walked = staged.walk.as_ref().filter(|walk| walk.is_done()).map(|walk| LastWalk::of(walk, now));
        let said = Some(Archives { history, walked, unstage: Some(staged.unstage()) });
        // Each is let go of as soon as it is parsed.
        let waiting = staged.pages.into_iter().filter(|page| !page.deflated.is_empty());
        let pages = waiting.map(|page| {
            let document = inflate(&page.deflated).and_then(|body| window(&page, &body));
            let Some(document) = document else {
                warn!(feed.namespace = %namespace, "A staged page of archives could not be read back");
                return ArchivedPage::default();
            };
            let (seen, _) = observe(&WindowState::default(), &document, profile.clone(), Coverage::Partial);
            let read = |sighting| match sighting {
                ObservedEntry::Read(reading) => Some(*reading),
                ObservedEntry::Same(_) => None,
            };
            let readings = seen.entries.into_iter().filter_map(read).collect();
            ArchivedPage { read_at: page.read_at, readings, deletions: seen.deletions }
        });
        Import { pages: Arc::new(pages.collect()), said }
    })
    .await
}

/// When the archives of a feed are walked again after that; `None`: never.
pub fn again_at(feed: &FeedSpec, walked: &LastWalk) -> Option<Stamp> {
    walked.again_at(feed.import.filter(|import| import.pages_max > 0)?.again_secs)
}

/// Whether the end of a walk is committed.
pub fn is_settled(walk: &ArchiveWalk, record: &FeedRecord) -> bool {
    let of_it = |walked: &LastWalk| walked.began_at == walk.started_at;
    walk.is_done() && record.is_ready() && record.last_walk.as_ref().is_some_and(of_it)
}

/// What a walk may do: nobody waits for one that was done before.
pub(super) fn rules_of(feed: &FeedSpec, walk: &ArchiveWalk) -> WalkRules {
    let rules = rules(feed);
    let gap_secs = if walk.before.is_some() { AGAIN_PAGE_GAP_SECS_MIN } else { 0 };
    WalkRules { page_gap_secs: rules.page_gap_secs.max(gap_secs), ..rules }
}

pub(super) fn rules(feed: &FeedSpec) -> WalkRules {
    let import = feed.import.unwrap_or_default();
    WalkRules {
        reach: OwnOrigins::new(upstream::bare(&feed.url), feed.aliases.clone()),
        pages_max: import.pages_max,
        page_gap_secs: import.page_gap_secs,
    }
}

/// The document of a page; `None` when it is no feed.
pub(super) fn window(page: &StagedPage, body: &[u8]) -> Option<Window> {
    let hints = Hints {
        content_type: page.content_type.as_deref(),
        content_language: page.content_language.as_deref(),
        base_url: Some(&page.base_url),
        resource: None,
    };
    slice(body, &hints).ok()
}

/// The keys of a document's entries, each once, the strong ones first.
pub(super) fn keys_of(namespace: &str, window: &Window) -> Vec<KeyHash> {
    let mut met = HashSet::new();
    let (weak, strong): (Vec<_>, Vec<_>) = window.entries.iter().partition(|entry| entry.key.is_weak());
    let keys = strong.into_iter().chain(weak).map(|entry| KeyHash::of(namespace, &entry.key.stripped()));
    keys.filter(|key| met.insert(*key)).collect()
}

/// How many different strong keys a document has.
pub(super) fn strong_of(window: &Window) -> u32 {
    let strong = window.entries.iter().filter(|entry| !entry.key.is_weak());
    let different: HashSet<String> = strong.map(|entry| entry.key.stripped()).collect();
    u32::try_from(different.len()).unwrap_or(u32::MAX)
}

async fn deflate(body: Bytes) -> Result<Vec<u8>, Failure> {
    compute(move || {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&body)?;
        encoder.finish()
    })
    .await?
    .map_err(ours)
}

fn inflate(deflated: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    DeflateDecoder::new(deflated).read_to_end(&mut body).ok()?;
    Some(body)
}
