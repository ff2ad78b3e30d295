//! Reads lists of feeds (OPML) at intervals while this process works (U-52), changes the registry by
//! them, and reports on them to the operator. Which feeds are paused is decided in `feed::opml_list`.

use super::{live_settings::LiveLists, reload::Reloader, status::OpmlStatus};
use crate::{
    catalog::{Catalog, CatalogSnapshot, FeedSettings, OpmlSettings},
    clock::Clock,
    events::{Cause, EventTopic, FaultOwner, Finding},
    feed::{
        opml_list::{BroughtFeed, OpmlDecision, OpmlList, SKIPPED_KEPT_MAX},
        stamp::Stamp,
    },
    ingest::Upstream,
    locks::lock,
    one_line::one_line,
    store::{Store, StoreError},
};
use reading::{ListReading, ReadFailure, ReadList};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};
use taking_in::{ListChange, ListChangeEnd, OutlineFeeds, RegistryChanges};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

mod reading;

mod taking_in;

#[cfg(test)]
mod tests;

/// Time between two looks for a list that is due, at most: the clock may be set.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// Time until the store is asked again that could not be read or written.
const STORE_AGAIN: Duration = Duration::from_secs(5);
/// Time that the documents of one list take at most.
const READ_MAX: Duration = Duration::from_secs(600);
/// Failed reads in a row after which one becomes an event. `status` shows the first.
const FAILURES_LASTING: u32 = 2;
/// Characters of a reason at most.
const WHY_CHARS_MAX: usize = 500;
/// Names of paused feeds that the status shows; the others are counted.
const PAUSED_SHOWN_MAX: usize = 50;

/// The parts by which lists are read.
pub(super) struct OpmlParts {
    /// `[[opml]]`, as they are in force.
    pub(super) settings: LiveLists,
    pub(super) store: Arc<dyn Store>,
    pub(super) catalog: Catalog,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) upstream: Upstream,
    pub(super) reloader: Arc<Reloader>,
}

/// Reads lists. Cheap to clone; one of the clones runs.
#[derive(Clone)]
pub(super) struct OpmlLists(Arc<Shared>);

struct Shared {
    parts: OpmlParts,
    /// The state of each list, by name, once it was read from the store.
    states: Mutex<BTreeMap<String, OpmlList>>,
}

impl OpmlLists {
    /// Reads nothing yet: that begins with `run`.
    pub(super) fn new(parts: OpmlParts) -> Self {
        Self(Arc::new(Shared {
            parts,
            states: Mutex::default(),
        }))
    }

    fn now(&self) -> Stamp {
        Stamp::from_micros(self.0.parts.clock.now_us())
    }

    /// The lists in force with their states; `None` for one that was not read from the store yet.
    fn with_states(&self) -> Vec<(OpmlSettings, Option<OpmlList>)> {
        let states = lock(&self.0.states);
        let lists = self.0.parts.settings.now().into_iter();
        lists
            .map(|list| {
                let state = states.get(&list.name).cloned();
                (list, state)
            })
            .collect()
    }

    /// The lists, as the status shows them.
    pub(super) fn status(&self) -> Vec<OpmlStatus> {
        let (catalog, now) = (self.0.parts.catalog.snapshot(), self.now());
        let lists = self.with_states();
        // Many feeds are looked through once, and not for each list.
        let mut feeds: HashMap<&str, Vec<&FeedSettings>> = HashMap::new();
        if !lists.is_empty() {
            for (list, feed) in feeds_of_lists(&catalog) {
                feeds.entry(list).or_default().push(feed);
            }
        }
        let told = lists.iter().map(|(list, state)| {
            let feeds = feeds.get(list.name.as_str());
            let feeds = feeds.map(Vec::as_slice).unwrap_or_default();
            status(feeds, list, state.as_ref(), now)
        });
        told.collect()
    }

    /// The faults that last.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let lists = self.with_states().into_iter();
        lists
            .filter_map(|(list, state)| finding(&list, &state?))
            .collect()
    }

    /// The causes of which nothing is known yet.
    pub(super) fn untried(&self) -> Vec<Cause> {
        let lists = self.with_states().into_iter();
        lists
            .filter(|(_, state)| state.is_none())
            .map(|(list, _)| cause(&list))
            .collect()
    }

    /// Reads each list when it is due, until `stop`. One is read after the other.
    pub(super) async fn run(self, stop: CancellationToken) {
        let mut changes = self.0.parts.settings.changes();
        loop {
            let wait = tokio::select! {
                () = stop.cancelled() => return,
                wait = self.look() => wait,
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(wait) => {}
                // Without a sender nothing changes any more.
                Ok(()) = changes.changed() => {}
            }
        }
    }

    /// Reads the lists that are due. The time until the next look.
    async fn look(&self) -> Duration {
        let lists = self.0.parts.settings.now();
        lock(&self.0.states).retain(|name, _| lists.iter().any(|list| list.name == *name));
        let mut next = LOOK_EVERY;
        for list in lists {
            match self.look_at(&list).await {
                Ok(wait) => next = next.min(wait),
                Err(error) => {
                    let name = &list.name;
                    warn!(
                        "The list `{name}` was not read, because the store failed; it is tried again in {} s: {error}",
                        STORE_AGAIN.as_secs()
                    );
                    next = next.min(STORE_AGAIN);
                }
            }
        }
        next
    }

    /// Reads a list if it is due. The time until it is.
    async fn look_at(&self, list: &OpmlSettings) -> Result<Duration, StoreError> {
        let known = lock(&self.0.states).get(&list.name).cloned();
        let mut row = match known {
            Some(row) => row,
            None => {
                let row = self.0.parts.store.opml_list(&list.name).await?;
                self.note(list, row.unwrap_or_default())
            }
        };
        let (now, digest) = (self.now(), list.digest());
        let next_at = row.next_read_at(list.every_secs, &digest, now);
        if now < next_at {
            // Rounded up, so that it is due then.
            return Ok(Duration::from_secs(next_at.secs_since(now) + 1));
        }
        let reading = ListReading {
            upstream: &self.0.parts.upstream,
            settings: list,
            known: &row,
            digest: &digest,
            now,
        };
        let read = match timeout(READ_MAX, reading.read()).await {
            Ok(read) => read,
            Err(_) => Err(ReadFailure::too_slow(READ_MAX)),
        };
        let now = self.now();
        row.settings = digest;
        match read {
            Ok(read) => self.take_in(list, &mut row, read, now).await?,
            Err(failure) => {
                let name = &list.name;
                let why = one_line(&failure.why, WHY_CHARS_MAX);
                warn!("The list `{name}` could not be read, and nothing is changed: {why}");
                row.failed(failure.whose, why, failure.retry_after_secs, now);
                self.keep(list, &row).await?;
            }
        }
        Ok(Duration::from_secs(list.every_secs))
    }

    /// Notes the state of a list, for the operator.
    fn note(&self, list: &OpmlSettings, row: OpmlList) -> OpmlList {
        lock(&self.0.states).insert(list.name.clone(), row.clone());
        row
    }

    async fn keep(&self, list: &OpmlSettings, row: &OpmlList) -> Result<(), StoreError> {
        self.note(list, row.clone());
        let store = &self.0.parts.store;
        store.keep_opml_list(&list.name, Some(row.clone())).await
    }

    /// Makes in the registry what a successful read changes.
    ///
    /// The row names the feeds that are paused before they are, and those that are resumed until they
    /// are: after an end in between, no feed stays paused that the list has.
    async fn take_in(
        &self,
        list: &OpmlSettings,
        row: &mut OpmlList,
        read: ReadList,
        now: Stamp,
    ) -> Result<(), StoreError> {
        let parts = &self.0.parts;
        let catalog = parts.catalog.snapshot();
        let listed = read
            .outlines
            .map(|outlines| OutlineFeeds::of(outlines, list.private_hosts));
        row.documents = read.documents;
        let decision = {
            let brought = brought(&catalog, list, listed.as_ref(), row);
            row.decide(&brought, now)
        };
        if !decision.may_add {
            let name = &list.name;
            let why = row.fault.as_ref().map_or("", |fault| &fault.why);
            warn!("The list `{name}` changes nothing: {why}");
            return self.keep(list, row).await;
        }
        let changes = RegistryChanges {
            store: &*parts.store,
            reloader: &parts.reloader,
            settings: list,
        };
        let OpmlDecision { pause, resume, .. } = decision;
        if !resume.is_empty() {
            let change = changes.set_paused(&resume, false).await?;
            let left = left_of(&resume, &change);
            if !left.is_empty() {
                row.not_resumed(&left);
            }
            log_change(list, "back in the list and resumed", &change);
        }
        if let Some(listed) = listed {
            self.take_over(&changes, &catalog, &listed).await?;
            self.add(list, row, &catalog, &listed, now).await?;
        }
        self.keep(list, row).await?;
        if !pause.is_empty() {
            let change = changes.set_paused(&pause, true).await?;
            let left = left_of(&pause, &change);
            if !left.is_empty() {
                row.not_paused(&left, now);
                self.keep(list, row).await?;
            }
            log_change(list, "not in the list any more and paused", &change);
        }
        Ok(())
    }

    // Decides: Does a feed end with the first of two lists that drops it?
    /// Takes over the feeds of other lists that lack them now, while this one has them.
    async fn take_over(
        &self,
        changes: &RegistryChanges<'_>,
        catalog: &CatalogSnapshot,
        listed: &OutlineFeeds,
    ) -> Result<(), StoreError> {
        let list = changes.settings;
        let (mut names, mut paused) = (Vec::new(), HashSet::new());
        {
            let states = lock(&self.0.states);
            let others = states.iter().filter(|(name, _)| **name != list.name);
            let others = others.map(|(name, row)| (name.as_str(), (row.off_names(), row)));
            let others: HashMap<&str, _> = others.collect();
            for (owner, feed) in feeds_of_lists(catalog) {
                let lacking = others.get(owner);
                let lacking = lacking.filter(|(off, _)| off.contains(feed.name.as_str()));
                let Some((_, row)) = lacking.filter(|_| listed.has(feed)) else {
                    continue;
                };
                if row.paused.contains(&feed.name) {
                    paused.insert(feed.name.clone());
                }
                names.push(feed.name.clone());
            }
        }
        if names.is_empty() {
            return Ok(());
        }
        let change = changes.take_over(&names, &paused).await?;
        log_change(list, "taken over from another list", &change);
        Ok(())
    }

    /// Adds the feeds of a list that are not there.
    async fn add(
        &self,
        list: &OpmlSettings,
        row: &mut OpmlList,
        catalog: &CatalogSnapshot,
        listed: &OutlineFeeds,
        now: Stamp,
    ) -> Result<(), StoreError> {
        let parts = &self.0.parts;
        let changes = RegistryChanges {
            store: &*parts.store,
            reloader: &parts.reloader,
            settings: list,
        };
        let shadowed = changes.shadowed(catalog).await?;
        let new: Vec<_> = listed.new_beside(catalog, &shadowed).collect();
        let change = if new.is_empty() {
            ListChange::default()
        } else {
            changes.add(catalog, new).await?
        };
        log_change(list, "added", &change);
        row.whole_at = Some(now);
        row.listed = u32::try_from(listed.feeds.len()).unwrap_or(u32::MAX);
        let refused = change.refused.iter();
        let refused = refused.map(|(url, why)| format!("{url}: {why}"));
        let skipped: Vec<String> = listed.skipped.iter().cloned().chain(refused).collect();
        row.skipped_total = u32::try_from(skipped.len()).unwrap_or(u32::MAX);
        let first = skipped.iter().take(SKIPPED_KEPT_MAX);
        row.skipped = first.map(|line| one_line(line, WHY_CHARS_MAX)).collect();
        if matches!(change.end, Some(ListChangeEnd::Away(_))) {
            // The rest is for the next read, which has to be whole.
            row.documents.clear();
        }
        Ok(())
    }
}

/// The feeds of the registry that lists brought, each with the name of its list.
fn feeds_of_lists(catalog: &CatalogSnapshot) -> impl Iterator<Item = (&str, &FeedSettings)> {
    let feeds = catalog.upstreams().map(|feed| &*feed.settings);
    feeds.filter_map(|feed| {
        let list = feed.from_list.as_deref()?;
        let is_registered = catalog.registry().sound.contains(&feed.name);
        is_registered.then_some((list, feed))
    })
}

/// The feeds of the registry that a list brought. If the list has not changed, it still has those that
/// the last read found.
fn brought<'a>(
    catalog: &'a CatalogSnapshot,
    list: &OpmlSettings,
    listed: Option<&OutlineFeeds>,
    row: &OpmlList,
) -> Vec<BroughtFeed<'a>> {
    let off = row.off_names();
    let feeds = feeds_of_lists(catalog).filter(|(name, _)| *name == list.name);
    feeds
        .map(|(_, feed)| BroughtFeed {
            name: &feed.name,
            is_listed: match listed {
                Some(listed) => listed.has(feed),
                None => !off.contains(feed.name.as_str()),
            },
            is_paused: feed.paused,
        })
        .collect()
}

/// The names that a change was asked for and that were not changed.
fn left_of(names: &[String], change: &ListChange) -> Vec<String> {
    let is_left = |name: &&String| !change.done.contains(name);
    names.iter().filter(is_left).cloned().collect()
}

/// Logs a change of the registry.
fn log_change(list: &OpmlSettings, what: &str, change: &ListChange) {
    const NAMED_MAX: usize = 10;
    let name = &list.name;
    if !change.done.is_empty() {
        let named = change.done.iter().take(NAMED_MAX).cloned();
        let named = named.collect::<Vec<_>>().join(", ");
        let count = change.done.len();
        info!("The list `{name}`: feeds {what}: {count} ({named})");
    }
    for (url, why) in change.refused.iter().take(NAMED_MAX) {
        warn!("The list `{name}`: {url} is left out: {why}");
    }
    if let Some(why) = &change.end {
        warn!("The list `{name}`: the rest of its feeds is tried by a later read: {why}");
    }
}

fn cause(list: &OpmlSettings) -> Cause {
    Cause::new(EventTopic::Opml, &list.name)
}

/// The finding of a list whose reads fail, or change nothing because too much is missing.
fn finding(list: &OpmlSettings, row: &OpmlList) -> Option<Finding> {
    let fault = row.fault.as_ref()?;
    if row.failures < FAILURES_LASTING {
        return None;
    }
    let title = format!("The list `{}` changes nothing", list.name);
    let finding = Finding::new(
        cause(list),
        FaultOwner::from(fault.whose),
        fault.since,
        &title,
        &fault.why,
    );
    Some(finding.remedy(
        "see what is at its address. Its feeds stay as they are, and it is read again. If feeds were taken out of it on purpose, remove them by `everfeed feeds remove NAME`",
    ))
}

/// A list, as the status shows it: with the feeds that it brought.
fn status(
    feeds: &[&FeedSettings],
    list: &OpmlSettings,
    row: Option<&OpmlList>,
    now: Stamp,
) -> OpmlStatus {
    let unread = OpmlList::default();
    let row = row.unwrap_or(&unread);
    let paused = feeds.iter().filter(|feed| feed.paused);
    let paused: Vec<&str> = paused.map(|feed| feed.name.as_str()).collect();
    let next_at = row.next_read_at(list.every_secs, &list.digest(), now);
    let moment = |at: Stamp| at.rfc3339();
    OpmlStatus {
        name: list.name.clone(),
        place: list.shown_place(),
        read_at: row.read_at.map(moment),
        good_at: row.good_at.map(moment),
        next_read_at: (next_at > Stamp::ZERO).then(|| moment(next_at)),
        listed: row.listed,
        feeds: feeds.len(),
        absent: row.absent.len(),
        paused_total: paused.len(),
        paused: paused
            .into_iter()
            .take(PAUSED_SHOWN_MAX)
            .map(str::to_owned)
            .collect(),
        skipped_total: row.skipped_total,
        skipped: row.skipped.clone(),
        failures: row.failures,
        fault: row.fault.as_ref().map(Into::into),
    }
}
