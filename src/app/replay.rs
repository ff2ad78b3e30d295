//! Recorded documents, or successive versions of one, through the code that polls: the same
//! reading, matching and deciding, over a store in memory and a clock that is set. Nothing is asked
//! of anybody, and nothing is kept.

use crate::{
    catalog::FeedSettings,
    clock::{Clock as _, Manual},
    feed::{
        absence::{Coverage, PageControl},
        item::{Item, ItemId, Reason},
        observation_record::ObservationRecord,
        order::Order,
        page::PageQuery,
        position::Position,
        reconcile::Evidence,
        schedule::{Answer, Failure, FaultKind, PollState, ValidatorPair},
        stamp::Stamp,
    },
    ingest::{
        Context, FeedSpec, Fetched,
        checks::Check,
        polls::Poll,
        recording::{
            QuietPoll, Recorded, RecordedAnswer, RecordedPage, RecordedPoll, RecordedSettings,
            played_at, recorded, recorded_answers,
        },
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
    /// Reason why there was no document, for a poll that failed.
    pub missed: Option<String>,
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
    /// Its publisher's name for it: the id, else the permalink, else the title, of its last
    /// content.
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
    /// Recorded by everfeed: every document is there with its time, and every other answer on which
    /// something depends.
    Recording(
        Vec<(PathBuf, Result<Recorded, String>)>,
        Vec<RecordedAnswer>,
    ),
    /// Versions of a document, each in force until the next: asked for when it appears, and in
    /// between whenever a poll is due.
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
    let has_answers = || recorded_answers(folder).is_ok_and(|found| !found.is_empty());
    folder.join(MANIFEST).exists()
        || recorded(folder).is_ok_and(|found| !found.is_empty())
        || has_answers()
}

/// Plays a feed and tells what each poll came to. `unconditional` takes every document for the
/// answer to a request without validators, which proves most. `feed` is how it is configured, if it
/// is.
pub async fn play(
    folder: &Path,
    feed: Option<&FeedSettings>,
    unconditional: bool,
) -> anyhow::Result<Vec<Step>> {
    let source = source(folder)?;
    let mut player = Player::new(folder, feed, &source).await?;
    match source {
        ReplaySource::Recording(documents, answers) => {
            let came = documents.iter().filter_map(|(_, came)| came.as_ref().ok());
            let came: Vec<&Recorded> = came.collect();
            let times = played_at(&came, &answers);
            let mut answers = answers.iter().zip(times).peekable();
            for (path, came) in documents {
                let came = match came {
                    Ok(came) => came,
                    Err(why) => {
                        player.pass_over(&path, why);
                        continue;
                    }
                };
                while let Some((answer, _)) = answers.next_if(|(_, at_us)| *at_us < came.at_us) {
                    player.hear(answer).await?;
                }
                let conditional = came.conditional && !unconditional;
                let at = Stamp::from_micros(came.at_us);
                player.read(&path, at, conditional, Some(&came)).await?;
            }
            for (answer, _) in answers {
                player.hear(answer).await?;
            }
        }
        ReplaySource::Versions(versions) => {
            for (n, (path, at)) in versions.iter().enumerate() {
                let conditional = !unconditional && player.is_conditional(*at);
                player.read(path, *at, conditional, None).await?;
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
        let is_page = |answer: &RecordedAnswer| matches!(answer, RecordedAnswer::Page(_));
        matches!(self, Self::Recording(_, answers) if answers.iter().any(is_page))
    }

    /// The settings under which its first document was read.
    fn settings(&self) -> RecordedSettings {
        let Self::Recording(documents, _) = self else {
            return RecordedSettings::default();
        };
        let mut came = documents.iter().filter_map(|(_, came)| came.as_ref().ok());
        came.next()
            .map_or_else(RecordedSettings::default, |came| came.under.clone())
    }
}

fn source(folder: &Path) -> anyhow::Result<ReplaySource> {
    let manifest = folder.join(MANIFEST);
    if !manifest.exists() {
        return Ok(ReplaySource::Recording(
            recorded(folder)?,
            recorded_answers(folder)?,
        ));
    }
    let manifest: Manifest = serde_json::from_slice(&std::fs::read(&manifest)?)
        .with_context(|| manifest.display().to_string())?;
    let version = |version: Version| {
        let at = DateTime::parse_from_rfc3339(&version.commit_time)
            .with_context(|| format!("{}: {}", version.file, version.commit_time))?;
        // A path that leads elsewhere is none of ours.
        let file = Path::new(&version.file)
            .file_name()
            .context("a version without a file")?;
        let at = u64::try_from(at.timestamp_micros()).unwrap_or(0);
        Ok((folder.join(file), Stamp::from_micros(at)))
    };
    Ok(ReplaySource::Versions(
        manifest
            .versions
            .into_iter()
            .map(version)
            .collect::<anyhow::Result<_>>()?,
    ))
}

/// A feed that is played.
struct Player {
    context: Context,
    store: Arc<Memory>,
    clock: Arc<Manual>,
    feed: FeedSpec,
    /// True when a configuration says how it is decided, whatever the recording says.
    is_configured: bool,
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
        source: &ReplaySource,
    ) -> anyhow::Result<Self> {
        let clock = Arc::new(Manual::at(0));
        let store = Arc::new(Memory::new(clock.clone()));
        let notify = Arc::new(Notify::new());
        let context = Context {
            jitter: || 0.0,
            ..Context::new(store.clone(), notify, clock.clone())
        };
        let name = file_name(folder);
        let under = source.settings();
        let namespace = configured.map(FeedSettings::namespace).or(under.namespace);
        let namespace = namespace.unwrap_or_else(|| name.clone());
        let no = store.register("replay", &namespace).await?.no;
        let mut feed = FeedSpec::new(no, name, Url::parse(URL)?);
        if let Some(settings) = configured {
            feed.aliases = settings.aliases.clone();
            feed.poll = settings.poll;
            feed.deletions = settings.deletions;
            feed.platform = settings.platform.clone();
        }
        feed.deletions.permalink_checks = match under.deletions {
            Some(under) => under.permalink_checks,
            // Older recordings do not say if pages were asked for, unless some were.
            None => source.has_pages(),
        };
        Ok(Self {
            context,
            store,
            clock,
            feed,
            is_configured: configured.is_some(),
            state: PollState::unpolled(URL),
            steps: Vec::new(),
            seen: 0,
            cursor: String::new(),
            known: HashMap::new(),
        })
    }

    /// True when the next request would carry validators.
    fn is_conditional(&self, at: Stamp) -> bool {
        self.state
            .plan(self.feed.deletions.audit_secs, at)
            .conditional
    }

    /// Polls whenever a poll is due while a version is in force: 304, except for audits.
    async fn stay(&mut self, path: &Path, until: Stamp) -> anyhow::Result<()> {
        while self.state.timetable.next_at < until {
            let at = self.state.timetable.next_at;
            // Validators of a good document would not be answered by 304 while a bad one is in
            // force.
            if self.is_conditional(at) && self.state.health.failures == 0 {
                self.set(at).await?;
                self.state = self.answered(unchanged(), false).await;
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

    async fn answered(&self, reply: DocumentReply, is_reread: bool) -> PollState {
        let poll = Poll::new(&self.context, &self.feed, &self.state).rereading(is_reread);
        poll.answered(reply).await.state
    }

    /// Takes over the settings under which a document was read, unless a configuration says others.
    fn settle(&mut self, under: &RecordedSettings) {
        if self.is_configured {
            return;
        }
        self.feed.deletions = under.deletions.unwrap_or(self.feed.deletions);
        let public_url = under
            .public_url
            .as_ref()
            .and_then(|url| Url::parse(url).ok());
        self.feed.aliases = public_url.into_iter().collect();
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
        if let Some(came) = came {
            self.settle(&came.under);
        }
        let is_reread = came.is_some_and(|came| came.under.is_reread);
        let reply = DocumentReply::Document(fetched(body, conditional, came));
        self.state = self.answered(reply, is_reread).await;
        let file = file_name(path);
        let observed = self.observed().await?;
        let fault = self.state.health.fault.as_ref();
        let failure = fault.map(|fault| fault.kind.to_string());
        let changes = self.changes().await?;
        // Whatever cannot be read is told once.
        let last = self.steps.last();
        let is_known = last.is_some_and(|last| last.file == file && last.failure == failure);
        if observed.is_none() && changes.is_empty() && (failure.is_none() || is_known) {
            return Ok(());
        }
        let mut events = observed.iter().flat_map(|seen| &seen.events);
        let gap = events.any(|event| event.leaves_a_gap());
        self.steps.push(Step {
            file,
            at,
            observed,
            failure,
            missed: None,
            changes,
            gap,
        });
        Ok(())
    }

    /// Notes a document of which the recording does not say how it came.
    fn pass_over(&mut self, path: &Path, why: String) {
        self.steps.push(Step {
            file: file_name(path),
            at: Stamp::from_micros(self.clock.now_us()),
            observed: None,
            failure: Some(why),
            missed: None,
            changes: Vec::new(),
            gap: false,
        });
    }

    /// Takes in an answer that was no document.
    async fn hear(&mut self, answer: &RecordedAnswer) -> anyhow::Result<()> {
        let at = Stamp::from_micros(answer.at_us());
        self.set(at).await?;
        match answer {
            RecordedAnswer::Page(page) => self.hear_page(page, at).await,
            RecordedAnswer::Control(control) => {
                let control = PageControl {
                    at,
                    finding: control.control,
                    ..PageControl::default()
                };
                let check = Check::new(&self.context, &self.feed, &self.state);
                match check.commit_control(control).await {
                    Ok(_) => Ok(()),
                    Err(failure) => anyhow::bail!("{failure}"),
                }
            }
            RecordedAnswer::Poll(poll) => {
                let missed = match poll.poll {
                    QuietPoll::Unchanged => {
                        self.state = self.answered(unchanged(), false).await;
                        None
                    }
                    QuietPoll::Failed => Some(self.fail(poll).await),
                };
                self.note("no document".to_owned(), missed, at).await
            }
        }
    }

    /// A poll failed, as the recording says. What has waited long enough is released all the same.
    /// The reason.
    async fn fail(&mut self, poll: &RecordedPoll) -> String {
        let failure = match poll.status {
            Some(status) => Failure::of(FaultKind::Refused {
                status,
                has_credentials: false,
            }),
            None => Failure::ours("the recording holds no answer"),
        };
        let failed = Poll::new(&self.context, &self.feed, &self.state);
        self.state = failed.failed_once(&failure).await.state;
        let why = poll.why.clone();
        why.unwrap_or_else(|| "the recording does not say why".to_owned())
    }

    /// The page of an item says what it once said, if the item is missed here, too, or a tombstone
    /// that is asked about.
    async fn hear_page(&mut self, page: &RecordedPage, at: Stamp) -> anyhow::Result<()> {
        let Some((id, is_tombstone)) = self.subject(page).await? else {
            return Ok(());
        };
        let check = Check::new(&self.context, &self.feed, &self.state);
        let told = if is_tombstone {
            check.rechecked(id, page.said, at).await
        } else {
            check.answered(id, page.said, at).await
        };
        told.map_err(|failure| anyhow::anyhow!("{failure}"))?;
        let name = page.link.as_ref().unwrap_or(&page.iri);
        self.note(name.clone(), None, at).await
    }

    /// The item that a page was asked for, and true when it is a tombstone: by our id, as which it
    /// was asked for then; in an older recording, or under another namespace, by its IRI, else by
    /// its link, which others may share.
    async fn subject(&self, page: &RecordedPage) -> anyhow::Result<Option<(ItemId, bool)>> {
        let own = page.id.as_ref().and_then(|id| id.parse::<ItemId>().ok());
        if let Some(id) = own
            && self.store.item(self.feed.no, id).await?.is_some()
        {
            return Ok(Some((id, page.is_tombstone)));
        }
        let window = self.store.known(self.feed.no, Vec::new()).await?.window;
        let missed = window.absence.asked_about().map(|id| (id, false));
        let mut by_link = None;
        for (id, is_tombstone) in missed.chain(window.tombstones.iter().map(|gone| (gone.id, true)))
        {
            let Some(item) = self.store.item(self.feed.no, id).await? else {
                continue;
            };
            if item.iri == page.iri {
                return Ok(Some((id, is_tombstone)));
            }
            let link = item.entry().and_then(|entry| entry.permalink());
            if link.is_some() && link == page.link.as_deref() {
                by_link.get_or_insert((id, is_tombstone));
            }
        }
        Ok(by_link)
    }

    /// Notes what an answer came to that was no document, if it came to anything.
    async fn note(
        &mut self,
        file: String,
        missed: Option<String>,
        at: Stamp,
    ) -> anyhow::Result<()> {
        let (observed, changes) = (self.observed().await?, self.changes().await?);
        if observed.is_some() || missed.is_some() || !changes.is_empty() {
            self.steps.push(Step {
                file,
                at,
                observed,
                failure: None,
                missed,
                changes,
                gap: false,
            });
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
            since: (!self.cursor.is_empty()).then(|| Position::of_cursor(&self.cursor)),
            ..PageQuery::all(self.feed.no, Order::MODIFIED)
        };
        let page = self.store.page(query).await?;
        self.cursor = page.last_cursor;
        let mut changes = Vec::with_capacity(page.items.len());
        for item in page.items {
            let kind = self.kind(&item).await?;
            let name =
                name(&item).or_else(|| self.known.get(&item.id).map(|known| known.0.clone()));
            let name = name.unwrap_or_default();
            self.known.insert(item.id, (name.clone(), !item.is_gone()));
            changes.push(Changed {
                id: item.id,
                name,
                kind,
            });
        }
        Ok(changes)
    }

    async fn kind(&self, item: &Item) -> anyhow::Result<Kind> {
        if item.is_gone() {
            let evidence = self.store.evidence(self.feed.no, item.id).await?;
            let (_, evidence) = evidence
                .into_iter()
                .next_back()
                .context("a tombstone without evidence")?;
            return Ok(Kind::Gone(evidence.reason, Box::new(evidence)));
        }
        Ok(match self.known.get(&item.id) {
            None => Kind::New,
            Some((_, true)) => Kind::Edited,
            Some((_, false)) => Kind::Revived,
        })
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The answer to validators that nothing has changed.
fn unchanged() -> DocumentReply {
    DocumentReply::Unchanged(Answer {
        conditional: true,
        ..Answer::default()
    })
}

/// The id, else the permalink, else the title.
fn name(item: &Item) -> Option<String> {
    let entry = item.entry()?;
    let title = || entry.title.as_ref().map(|title| title.value.as_str());
    entry
        .id
        .as_deref()
        .or(entry.permalink())
        .or_else(title)
        .map(|name| name.trim().to_owned())
}

fn fetched(body: Vec<u8>, conditional: bool, came: Option<&Recorded>) -> Fetched {
    let url = came.map_or_else(|| URL.to_owned(), |came| came.url.clone());
    let headers = came
        .into_iter()
        .flat_map(|came| &came.headers)
        .filter_map(|(name, value)| {
            Some((
                name.parse::<HeaderName>().ok()?,
                value.parse::<HeaderValue>().ok()?,
            ))
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
        resource: came.and_then(|came| came.under.resource.clone()),
        address: came.and_then(|came| came.under.address.clone()),
        memory: None,
        coverage: match came {
            Some(came) if came.is_part => Coverage::Delta,
            _ => Coverage::of_whole(conditional),
        },
    }
}

#[cfg(test)]
mod tests;
