//! Recorded documents, or successive versions of one, through the code that polls: the same reading, matching and
//! deciding, over a store in memory and a clock that is set. Nothing is asked of anybody, and nothing is kept.

use crate::{
    catalog::FeedSettings,
    clock::Manual,
    feed::{
        absence::Coverage,
        filter::Filter,
        item::{Item, ItemId, Reason},
        observation_record::ObservationRecord,
        order::Order,
        page::PageQuery,
        position::Position,
        reconcile::Evidence,
        schedule::{Answer, PollState, ValidatorPair},
        stamp::Stamp,
    },
    ingest::{
        Context, DeletionSettings, FeedSpec, Fetched,
        checks::Check,
        polls::Poll,
        recording::{Recorded, RecordedPage, recorded, recorded_pages},
        upstream::DocumentReply,
    },
    notify::Notify,
    store::{CatalogStore as _, Feeds as _, Upkeep as _, memory::Memory},
};
use anyhow::Context as _;
use bytes::Bytes;
use chrono::DateTime;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};
use url::Url;

/// The result of one poll.
#[derive(Clone, Debug)]
pub struct Step {
    /// The file of the document.
    pub file: String,
    /// Time at which it was read.
    pub at: Stamp,
    /// Its observation; `None` for an unreadable document.
    pub observed: Option<ObservationRecord>,
    /// Reason why it could not be read.
    pub failure: Option<String>,
    /// The items that it changed, in the order of their T.
    pub changes: Vec<Changed>,
    /// True when it left a gap marker.
    pub gap: bool,
}

/// An item that changed.
#[derive(Clone, Debug)]
pub struct Changed {
    /// Our id.
    pub id: ItemId,
    /// Its publisher's name for it: the id, else the permalink, else the title, of its last content.
    pub name: String,
    /// The kind of the change.
    pub kind: Kind,
}

/// The kind of an item's change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is new.
    New,
    /// It has another content.
    Edited,
    /// It came back to life.
    Revived,
    /// It became a tombstone.
    Gone(Reason, Box<Evidence>),
}

/// The documents of one feed, in order, and how they were got.
enum ReplaySource {
    /// Recorded by everfeed: every answer is there with its time, those of pages of items, too.
    Recording(Vec<(PathBuf, Recorded)>, Vec<RecordedPage>),
    /// Versions of a document, each in force until the next: asked for when it appears, and in between whenever a poll
    /// is due.
    Versions(Vec<(PathBuf, Stamp)>),
}

#[derive(Deserialize)]
struct Manifest {
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    file: String,
    commit_time: String,
}

const MANIFEST: &str = "manifest.json";

/// The feeds in a folder: itself, or those in its folders.
pub fn feeds(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let at = || folder.display().to_string();
    if is_feed(folder) {
        return Ok(vec![folder.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(at)? {
        found.push(entry?.path());
    }
    found.retain(|path| path.is_dir() && is_feed(path));
    found.sort();
    anyhow::ensure!(
        !found.is_empty(),
        "{}: holds neither recorded documents (NNNN.xml and NNNN.json) nor versions with a {MANIFEST}",
        at()
    );
    Ok(found)
}

fn is_feed(folder: &Path) -> bool {
    folder.join(MANIFEST).exists() || recorded(folder).is_ok_and(|found| !found.is_empty())
}

/// Plays a feed and tells what each poll came to. `unconditional` takes every document for the answer to a request
/// without validators, which proves most. `feed` is how it is configured, if it is.
pub async fn play(
    folder: &Path,
    feed: Option<&FeedSettings>,
    unconditional: bool,
) -> anyhow::Result<Vec<Step>> {
    let source = source(folder)?;
    let mut player = Player::new(folder, feed, source.has_pages()).await?;
    match source {
        ReplaySource::Recording(documents, pages) => {
            let mut pages = pages.iter().peekable();
            for (path, came) in documents {
                while let Some(page) = pages.next_if(|page| page.at_us < came.at_us) {
                    player.hear(page).await?;
                }
                let conditional = came.conditional && !unconditional;
                player.read(&path, Stamp::from_micros(came.at_us), conditional, Some(&came)).await?;
            }
            for page in pages {
                player.hear(page).await?;
            }
        }
        ReplaySource::Versions(versions) => {
            for (n, (path, at)) in versions.iter().enumerate() {
                player.read(path, *at, !unconditional && player.is_conditional(*at), None).await?;
                let until = versions.get(n + 1).map_or(*at, |next| next.1);
                player.stay(path, until).await?;
            }
        }
    }
    Ok(player.steps)
}

impl ReplaySource {
    /// True when it holds permalink checks. Without any, no decision waits for one.
    fn has_pages(&self) -> bool {
        matches!(self, Self::Recording(_, pages) if !pages.is_empty())
    }
}

fn source(folder: &Path) -> anyhow::Result<ReplaySource> {
    let manifest = folder.join(MANIFEST);
    if !manifest.exists() {
        return Ok(ReplaySource::Recording(recorded(folder)?, recorded_pages(folder)?));
    }
    let manifest: Manifest =
        serde_json::from_slice(&std::fs::read(&manifest)?).with_context(|| manifest.display().to_string())?;
    let version = |version: Version| {
        let at = DateTime::parse_from_rfc3339(&version.commit_time)
            .with_context(|| format!("{}: {}", version.file, version.commit_time))?;
        // A path that leads elsewhere is none of ours.
        let file = Path::new(&version.file).file_name().context("a version without a file")?;
        let at = u64::try_from(at.timestamp_micros()).unwrap_or(0);
        Ok((folder.join(file), Stamp::from_micros(at)))
    };
    Ok(ReplaySource::Versions(manifest.versions.into_iter().map(version).collect::<anyhow::Result<_>>()?))
}

/// A feed that is played.
struct Player {
    context: Context,
    store: Arc<Memory>,
    clock: Arc<Manual>,
    feed: FeedSpec,
    state: PollState,
    steps: Vec<Step>,
    seen: u64,
    cursor: String,
    /// The name of each item, and whether it was alive.
    known: HashMap<ItemId, (String, bool)>,
}

/// URL of the feeds that are played: an address that is no sign of any software.
const URL: &str = "http://replay.invalid/";

impl Player {
    async fn new(
        folder: &Path,
        configured: Option<&FeedSettings>,
        permalink_checks: bool,
    ) -> anyhow::Result<Self> {
        let clock = Arc::new(Manual::at(0));
        let store = Arc::new(Memory::new(clock.clone()));
        let notify = Arc::new(Notify::new());
        let context = Context { jitter: || 0.0, ..Context::new(store.clone(), notify, clock.clone()) };
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let namespace = configured.map_or_else(|| name.clone(), FeedSettings::namespace);
        let no = store.register("replay", &namespace).await?.no;
        let usual = FeedSpec::new(no, name, Url::parse(URL)?);
        let checked = |deletions: DeletionSettings| DeletionSettings { permalink_checks, ..deletions };
        let feed = match configured {
            Some(as_configured) => FeedSpec {
                aliases: as_configured.aliases.clone(),
                policy: as_configured.poll.policy(),
                deletions: checked(as_configured.deletions),
                platform: as_configured.platform.clone(),
                ..usual
            },
            None => FeedSpec { deletions: checked(usual.deletions), ..usual },
        };
        let state = PollState::unpolled(URL);
        let (steps, cursor, known) = (Vec::new(), String::new(), HashMap::new());
        Ok(Self { context, store, clock, feed, state, steps, seen: 0, cursor, known })
    }

    /// True when the next request would carry validators.
    fn is_conditional(&self, at: Stamp) -> bool {
        self.state.plan(self.feed.deletions.audit_secs, at).conditional
    }

    /// Polls whenever a poll is due while a version is in force: 304, except for audits.
    async fn stay(&mut self, path: &Path, until: Stamp) -> anyhow::Result<()> {
        while self.state.timetable.next_at < until {
            let at = self.state.timetable.next_at;
            // Validators of a good document would not be answered by 304 while a bad one is in force.
            if self.is_conditional(at) && self.state.health.failures == 0 {
                self.set(at).await?;
                let reply = DocumentReply::Unchanged(Answer { conditional: true, ..Answer::default() });
                self.state = self.answered(reply).await;
            } else {
                self.read(path, at, false, None).await?;
            }
        }
        Ok(())
    }

    async fn set(&self, at: Stamp) -> anyhow::Result<()> {
        self.clock.set(at.micros());
        // What is played may be years old, and years may lie between two documents of it.
        Ok(self.store.accept_clock().await?)
    }

    async fn answered(&self, reply: DocumentReply) -> PollState {
        Poll::new(&self.context, &self.feed, &self.state).answered(reply).await.state
    }

    async fn read(
        &mut self,
        path: &Path,
        at: Stamp,
        conditional: bool,
        came: Option<&Recorded>,
    ) -> anyhow::Result<()> {
        let body = std::fs::read(path).with_context(|| path.display().to_string())?;
        self.set(at).await?;
        self.state = self.answered(DocumentReply::Document(fetched(body, conditional, came))).await;
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let observed = self.observed().await?;
        let failure = self.state.health.fault.as_ref().map(|fault| fault.kind.to_string());
        // Whatever cannot be read is told once.
        let is_known = self.steps.last().is_some_and(|last| last.file == file && last.failure == failure);
        if observed.is_none() && (failure.is_none() || is_known) {
            return Ok(());
        }
        let changes = self.changes().await?;
        let gap = observed.as_ref().is_some_and(|seen| seen.events.iter().any(|event| event.leaves_a_gap()));
        self.steps.push(Step { file, at, observed, failure, changes, gap });
        Ok(())
    }

    /// The page of an item says what it once said, if the item is missed here, too.
    async fn hear(&mut self, page: &RecordedPage) -> anyhow::Result<()> {
        let at = Stamp::from_micros(page.at_us);
        self.set(at).await?;
        let memory = self.store.known(self.feed.no, Vec::new()).await?.window.absence;
        let missed = memory.items.iter().filter(|row| row.suspect.is_some());
        for id in missed.map(|row| row.id) {
            let Some(item) = self.store.item(self.feed.no, id).await? else { continue };
            let link = item.entry().and_then(|entry| entry.permalink());
            if item.iri != page.iri && (link.is_none() || link != page.link.as_deref()) {
                continue;
            }
            let told = Check::new(&self.context, &self.feed, &self.state).answered(id, page.said).await;
            told.map_err(|failure| anyhow::anyhow!(failure.to_string()))?;
            let observed = self.observed().await?;
            let changes = self.changes().await?;
            let file = page.link.clone().unwrap_or_else(|| page.iri.clone());
            self.steps.push(Step { file, at, observed, failure: None, changes, gap: false });
            break;
        }
        Ok(())
    }

    /// The observation that came since the last call.
    async fn observed(&mut self) -> anyhow::Result<Option<ObservationRecord>> {
        let observations = self.store.observations(self.feed.no).await?;
        let new = observations.into_iter().find(|(seq, _)| *seq > self.seen);
        if let Some((seq, _)) = &new {
            self.seen = *seq;
        }
        Ok(new.map(|(_, observed)| observed))
    }

    /// The changes behind the cursor, as a consumer reads them.
    async fn changes(&mut self) -> anyhow::Result<Vec<Changed>> {
        let query = PageQuery {
            feed: self.feed.no,
            order: Order::MODIFIED,
            since: (!self.cursor.is_empty()).then(|| Position::of_cursor(&self.cursor)),
            until: None,
            max: usize::MAX,
            bytes_max: usize::MAX,
            filter: Filter::All,
            with_total: false,
        };
        let page = self.store.page(query).await?;
        self.cursor = page.last_cursor;
        let mut changes = Vec::with_capacity(page.items.len());
        for item in page.items {
            let kind = self.kind(&item).await?;
            let name = name(&item).or_else(|| self.known.get(&item.id).map(|known| known.0.clone()));
            let name = name.unwrap_or_default();
            self.known.insert(item.id, (name.clone(), !item.is_gone()));
            changes.push(Changed { id: item.id, name, kind });
        }
        Ok(changes)
    }

    async fn kind(&self, item: &Item) -> anyhow::Result<Kind> {
        if item.is_gone() {
            let evidence = self.store.evidence(self.feed.no, item.id).await?;
            let (_, evidence) = evidence.into_iter().next_back().context("a tombstone without evidence")?;
            return Ok(Kind::Gone(evidence.reason, Box::new(evidence)));
        }
        Ok(match self.known.get(&item.id) {
            None => Kind::New,
            Some((_, true)) => Kind::Edited,
            Some((_, false)) => Kind::Revived,
        })
    }
}

/// The id, else the permalink, else the title.
fn name(item: &Item) -> Option<String> {
    let entry = item.entry()?;
    let title = || entry.title.as_ref().map(|title| title.value.as_str());
    entry.id.as_deref().or(entry.permalink()).or_else(title).map(|name| name.trim().to_owned())
}

fn fetched(body: Vec<u8>, conditional: bool, came: Option<&Recorded>) -> Fetched {
    let url = came.map_or_else(|| URL.to_owned(), |came| came.url.clone());
    let headers = came.into_iter().flat_map(|came| &came.headers).filter_map(|(name, value)| {
        Some((name.parse::<HeaderName>().ok()?, value.parse::<HeaderValue>().ok()?))
    });
    Fetched {
        answer: Answer {
            asked: URL.to_owned(),
            conditional,
            // What they are does not matter: who has some may ask by them.
            validators: Some(ValidatorPair {
                etag: Some("\"replay\"".to_owned()),
                last_modified: None,
                url: URL.to_owned(),
            }),
            ..Answer::default()
        },
        body: Bytes::from(body),
        content_type: came.and_then(|came| came.content_type.clone()),
        content_language: came.and_then(|came| came.content_language.clone()),
        headers: Box::new(HeaderMap::from_iter(headers)),
        base_url: url,
        resource: None,
        memory: None,
        coverage: match came {
            Some(came) if came.is_part => Coverage::Delta,
            _ => Coverage::of_whole(conditional),
        },
    }
}
