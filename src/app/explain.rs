//! Explains the state of a feed and of an item: what is remembered, beside what would prove more.
//! It is gathered here, in words that another process can read; how it is printed is the command
//! line's business.

use crate::{
    catalog::{Catalog, FeedSettings, RegisteredFeed},
    clock,
    config::Config,
    feed::{
        absence::{
            AbsenceState, CheckResult, Coverage, DoubtReason, PermalinkCheck, ProofPolicy, Suspect,
            SuspectBasis,
        },
        archive::ArchiveSuspect,
        group::{GroupMember, GroupRecord, Holder},
        item::{Item, ItemId, KeyHash, Reason},
        item_cap::note_of,
        observation_record::ObservationRecord,
        order::Order,
        page::PageQuery,
        position::Position,
        reconcile::{Evidence, WindowState, address_witness, unshown},
        record::{FeedNo, FeedRecord, Gap},
        schedule::{PollState, Repeat, ValidatorPair},
        stamp::Stamp,
    },
    ingest::{hosts_of, platform},
    secret::public_text,
    store::{Outage, Store, StoreError, listing},
};
use everfeed_adapters::{Date, Entry, Key, platforms::Platforms};
use futures_util::TryStreamExt as _;
use std::sync::Arc;

mod archives;
mod explanation;

pub mod words;

#[cfg(test)]
pub(super) mod tests;

pub(super) use archives::under_way;
use archives::{archives, history, missed_by_walks};
pub use explanation::{
    Churn, ExplainedCheck, ExplainedDocument, ExplainedItem, ExplainedQuarantine, Explanation,
    ItemState, MissedByDocuments, MissedByWalks, Polling, TombstoneProof,
};

/// Explains feeds and items from what the store remembers.
pub(super) struct Explainer {
    pub(super) store: Arc<dyn Store>,
    pub(super) catalog: Catalog,
    pub(super) platforms: Arc<Platforms>,
}

/// Observations told.
const OBSERVATIONS_SHOWN: usize = 20;

/// Suspects told.
const SUSPECTS_SHOWN: usize = 50;

/// Times that an explanation is read while commits come between its steps.
const READS_MAX: usize = 5;

/// Items looked through for a permalink, which is in no index.
const SCAN_ITEMS_MAX: usize = 100_000;

/// Items of a page of that.
const SCAN_PAGE_ITEMS: usize = 500;

/// Asks a store that nobody serves. It is not made when it is missing, and nothing is written to
/// it.
pub async fn from_file(
    config: &Config,
    feed: &str,
    item: Option<&str>,
) -> anyhow::Result<Option<Explanation>> {
    let explainer = Explainer::of(super::open_existing(config).await?, config).await?;
    let store = &explainer.store;
    let poll = match store.feed_named(feed).await? {
        Some(record) => store.poll(record.no).await?,
        None => None,
    };
    let told = explainer.explain(feed, item, |_| poll.clone()).await;
    store.close().await?;
    Ok(told?)
}

/// The time, for distances to other moments.
pub(super) fn now() -> Stamp {
    Stamp::from_micros(clock::Clock::now_us(&clock::System))
}

impl Explainer {
    /// Explains what a store holds that nobody serves.
    pub(super) async fn of(store: Arc<dyn Store>, config: &Config) -> Result<Self, StoreError> {
        Ok(Self {
            catalog: Catalog::new(super::observed(&*store, config).await?),
            platforms: config.platforms.profiles(),
            store,
        })
    }

    /// The state of polling, which waits while nothing can be stored.
    fn while_stored(&self, mut polling: Polling) -> Polling {
        if let Some(Outage { cause, since, .. }) = self.store.condition().outage() {
            let since = since.rfc3339();
            polling.why =
                format!("nothing can be stored since {since}, so nothing is polled: {cause}");
        }
        polling
    }

    /// `None` for a feed that is not configured, or was never polled.
    pub(super) async fn explain(
        &self,
        name: &str,
        item: Option<&str>,
        poll: impl Fn(FeedNo) -> Option<PollState>,
    ) -> Result<Option<Explanation>, StoreError> {
        let catalog = self.catalog.snapshot();
        let Some(registered) = catalog.feed(name) else {
            return Ok(None);
        };
        let mut before = self.store.feed(registered.no).await?.rev;
        for _ in 1..READS_MAX {
            let explanation = self.read(registered, item, &poll).await?;
            let after = self.store.feed(registered.no).await?.rev;
            if after == before {
                return Ok(Some(explanation));
            }
            before = after;
        }
        Ok(Some(self.read(registered, item, &poll).await?))
    }

    /// Reads everything that is told of a feed, in several steps: a commit between two of them
    /// would tell of two states at once.
    async fn read(
        &self,
        registered: &RegisteredFeed,
        item: Option<&str>,
        poll: &impl Fn(FeedNo) -> Option<PollState>,
    ) -> Result<Explanation, StoreError> {
        let feed = &registered.settings;
        let poll = match poll(registered.no) {
            Some(poll) => poll,
            // Nobody polls it, and what was known of it is stored.
            None if feed.paused => self.store.poll(registered.no).await?.unwrap_or_default(),
            None => PollState::default(),
        };
        let (record, mut known) = self
            .store
            .snapshot(registered.no, Vec::new())
            .await?
            .into_known();
        if poll.document.repeat == Repeat::Unchanged {
            // A 304 changes nothing that is stored of a window, and yet it ends what went on from
            // poll to poll.
            for row in &mut known.window.entries {
                row.changed_polls = 0;
            }
        }
        let profile = platform::profile(&self.platforms, poll.document.platform.as_ref());
        let policy = feed
            .deletions
            .policy_for(record.metadata.is_complete(), profile.as_deref());
        let absence = &known.window.absence;
        let policy = absence.believed(&policy, poll.timetable.polled_at.unwrap_or_default());
        let mut suspects = Vec::new();
        let missed = absence.items.iter().filter(|row| row.suspect.is_some());
        for row in missed.take(SUSPECTS_SHOWN) {
            if let Some(found) = self.store.item(record.no, row.id).await? {
                suspects.push(self.told(&record, &known.window, &policy, &found).await?);
            }
        }
        let mut told_item = None;
        if let Some(name) = item
            && let Some(found) = self.find(&record, name).await?
        {
            let mut told = self.told(&record, &known.window, &policy, &found).await?;
            if registered.is_group() {
                self.tell_holders(registered.no, &mut told).await?;
            }
            told_item = Some(told);
        }
        let group = self.store.group(registered.no).await?;
        let group = group.filter(|_| registered.is_group());
        let walk = self.store.walk(record.no).await?;
        let observations = self.store.observations(record.no).await?;
        let skipped = observations.len().saturating_sub(OBSERVATIONS_SHOWN);
        let platform = poll.document.platform.as_ref();
        let pages = absence.control.as_ref().map(|control| {
            let finding = words::control(control.finding).to_owned();
            (finding, control.at.rfc3339())
        });
        let gap = |gap: &Gap| {
            let why = words::event(gap.event).to_owned();
            (gap.at.rfc3339(), why, gap.before.clone(), gap.after.clone())
        };
        Ok(Explanation {
            feed: record.name.clone(),
            url: registered.shown_url(),
            members: group.map(|group| self.told_members(&group)),
            from_list: feed.from_list.clone(),
            paused: feed.paused,
            polling: if feed.paused {
                while_paused(polling(&poll, feed.deletions.audit_secs, None))
            } else {
                self.while_stored(polling(
                    &poll,
                    feed.deletions.audit_secs,
                    self.left_alone(&poll, feed).await?,
                ))
            },
            push: None,
            platform: platform.map(|found| format!("{}: {}", found.platform, found.why)),
            is_complete: record.metadata.is_complete() && !absence.is_capped(),
            items: (record.items.total, record.items.live),
            window: if absence.is_of_empty_document() {
                0
            } else {
                known.window.entries.len()
            },
            deferred: known.window.deferred.len(),
            restless: known
                .window
                .restless
                .iter()
                .map(|row| (words::part(row.part).to_owned(), row.since.rfc3339()))
                .collect(),
            reformatted_at: known.window.reformatted_at.map(Stamp::rfc3339),
            history: history(&record, &feed.import),
            archives: archives(&record, walk.as_ref(), &feed.import, now()),
            quarantined_since: absence.quarantined_since.map(Stamp::rfc3339),
            quarantine: absence
                .quarantined_since
                .map(|since| quarantine(absence, since)),
            pages,
            doubted: doubted(absence, poll.timetable.polled_at.unwrap_or_default()),
            distrusts_conditional: absence.has_caught_conditional(),
            suspects,
            gaps: record.completeness.gaps.iter().map(gap).collect(),
            observations: observations
                .into_iter()
                .skip(skipped)
                .map(|(number, observed)| seen(number, observed))
                .collect(),
            item: told_item,
        })
    }

    /// The members of a group with their stages.
    fn told_members(&self, group: &GroupRecord) -> Vec<String> {
        let catalog = self.catalog.snapshot();
        let told = |member: &GroupMember| {
            let name = catalog
                .feed_no(member.feed)
                .map_or("a feed that was removed", |it| &it.settings.name);
            format!("{name}: {}", words::stage(member.stage))
        };
        group.members.iter().map(told).collect()
    }

    /// Names the members that have a post of a group.
    async fn tell_holders(
        &self,
        group: FeedNo,
        item: &mut ExplainedItem,
    ) -> Result<(), StoreError> {
        let Ok(post) = item.id.parse() else {
            return Ok(());
        };
        for Holder { feed, item: held } in self.store.holders(group, post).await? {
            let name = self.store.feed(feed).await?.name;
            item.holders.push((name, held.to_string()));
        }
        item.state = match item.state {
            ItemState::Deleted if item.evidence.last().is_some_and(|proof| proof.has_left) => {
                ItemState::Left
            }
            ItemState::Deleted => ItemState::Deleted,
            _ => ItemState::Held,
        };
        Ok(())
    }

    /// Until when the host of a feed is left alone, if it is.
    async fn left_alone(
        &self,
        poll: &PollState,
        feed: &FeedSettings,
    ) -> Result<Option<Stamp>, StoreError> {
        let met = hosts_of(poll, feed.deletions.audit_secs, poll.timetable.next_at);
        let mut pauses = listing::host_pauses(&*self.store);
        let mut until = None;
        while let Some((host, pause)) = pauses.try_next().await? {
            if met.contains(&host) {
                until = until.max(Some(pause.until));
            }
        }
        Ok(until)
    }

    /// The item of this name: our id, its publisher's as served or as written, or its permalink.
    pub(super) async fn find(
        &self,
        record: &FeedRecord,
        name: &str,
    ) -> Result<Option<Arc<Item>>, StoreError> {
        if let Ok(id) = name.parse::<ItemId>()
            && let Some(item) = self.store.item(record.no, id).await?
        {
            return Ok(Some(item));
        }
        // A link that is a key is hashed as an id is; titles and digests are marked.
        let keys = [Key::Id(name.to_owned()), Key::Title(name.to_owned())];
        let keys = keys.map(|key| KeyHash::of(&record.ids.namespace, &key.stripped()));
        let keys = Vec::from(keys);
        let mut items = self.store.snapshot(record.no, keys.clone()).await?.items;
        if let Some(item) = keys.iter().find_map(|key| items.remove(key)) {
            return Ok(Some(item));
        }
        // A tombstone holds no permalink any more, but it is still found by the one that its item
        // had.
        let witness: Vec<KeyHash> = address_witness(name).into_iter().collect();
        let alike = self.store.witnessed(record.no, witness).await?.items;
        let found = alike.iter().find(|item| is_named(item, name));
        if let Some(item) = found.or_else(|| alike.iter().rev().find(|item| item.is_gone())) {
            return Ok(Some(Arc::clone(item)));
        }
        let mut since = None;
        for _ in 0..SCAN_ITEMS_MAX / SCAN_PAGE_ITEMS {
            let query = PageQuery {
                since,
                max: SCAN_PAGE_ITEMS,
                ..PageQuery::all(record.no, Order::MODIFIED_REVERSE)
            };
            let page = self.store.page(query).await?;
            let is_it = |item: &&Arc<Item>| is_named(item, name);
            if let Some(item) = page.items.iter().find(is_it) {
                return Ok(Some(Arc::clone(item)));
            }
            if !page.more {
                break;
            }
            since = Some(Position::of_cursor(&page.last_cursor));
        }
        Ok(None)
    }

    async fn told(
        &self,
        record: &FeedRecord,
        last: &WindowState,
        policy: &ProofPolicy,
        item: &Item,
    ) -> Result<ExplainedItem, StoreError> {
        let missing = suspect(last, item);
        let by_walks = missed_by(last, item);
        let entry = item.entry();
        let title = entry.and_then(|entry| entry.title.as_ref());
        let unshown_dates = entry.map(|entry| dates_of(item, entry));
        let mut tombstones = last.tombstones.iter();
        let tombstone = tombstones.find(|gone| gone.id == item.id && item.is_gone());
        let evidence = self.store.evidence(record.no, item.id).await?;
        Ok(ExplainedItem {
            id: item.id.to_string(),
            iri: item.iri.clone(),
            title: title.map(|title| title.value.clone()),
            left_out: entry.and_then(note_of).map(str::to_owned),
            unshown_dates: unshown_dates.unwrap_or_default(),
            created: item.created.rfc3339(),
            modified: item.modified.rfc3339(),
            state: state_of(last, item),
            tombstone_count: item.tombstone_count,
            missing: missing.map(|missing| missed(&missing, Some((item.tombstone_count, policy)))),
            churn: churn(last, item),
            corrected: last
                .corrections
                .iter()
                .rfind(|mended| mended.id == item.id)
                .map(|mended| {
                    let agreed = words::agreement(mended.agreement).to_owned();
                    (mended.at.rfc3339(), agreed)
                }),
            missed: by_walks.map(|missed| missed_by_walks(missed, Some(item.tombstone_count))),
            evidence: evidence
                .iter()
                .map(|(at, evidence)| proof(*at, evidence))
                .collect(),
            holders: Vec::new(),
            shown_again: last
                .absence
                .revivals
                .waits_since(item.id)
                .map(|since| (since.rfc3339(), last.absence.revivals_agree_at(since)))
                .map(|(since, until)| (since, until.map(|at| at.rfc3339()).unwrap_or_default())),
            recheck_at: tombstone.map(|gone| gone.next_at.rfc3339()),
        })
    }
}

/// The suspicion against an item, if there is one.
fn suspect(last: &WindowState, item: &Item) -> Option<Suspect> {
    last.absence.missing(item.id).filter(|_| !item.is_gone())
}

/// The walks that missed an item that is alive.
fn missed_by<'a>(last: &'a WindowState, item: &Item) -> Option<&'a ArchiveSuspect> {
    let mut missed = last.archive_suspects.iter();
    missed.find(|missed| missed.id == item.id && !item.is_gone())
}

fn state_of(last: &WindowState, item: &Item) -> ItemState {
    if item.is_gone() {
        return ItemState::Deleted;
    }
    if let Some(missing) = suspect(last, item) {
        return if missing.permalink_check.is_hidden() {
            ItemState::Hidden
        } else if missing.basis == SuspectBasis::PageOfMany {
            ItemState::Quarantined
        } else {
            ItemState::Suspected
        };
    }
    if last.entries.iter().any(|row| row.id == item.id) {
        ItemState::Shown
    } else if missed_by(last, item).is_some() {
        ItemState::Missed
    } else if last.absence.items.iter().any(|row| row.id == item.id) {
        ItemState::Undecided
    } else {
        ItemState::RolledOff
    }
}

/// The dates of an entry that are not shown, as its publisher wrote them.
fn dates_of(item: &Item, entry: &Entry) -> Vec<String> {
    let unread = |date: &&Date| date.at_us.is_none();
    let unread = entry.published.iter().chain(&entry.updated).filter(unread);
    // A date that was to come when it was read is shown once the entry is read anew.
    let is_unshown = |date: &&Date| item.published_us.is_none() || date.at_us != item.published_us;
    let unshown = unshown(entry, item.modified).filter(is_unshown);
    unread.chain(unshown).map(|date| date.raw.clone()).collect()
}

/// Polls in a row with changes of an entry, above which they are told although no change waits.
const CHURN_POLLS: u16 = 24;

fn churn(last: &WindowState, item: &Item) -> Option<Churn> {
    let row = last.entries.iter().find(|row| row.id == item.id);
    let polls = row.map_or(0, |row| row.changed_polls);
    let mut waiting = last.deferred.iter().filter(|held| !held.is_between_turns());
    let held = waiting.find(|held| held.id == item.id);
    if item.is_gone() || (polls <= CHURN_POLLS && held.is_none()) {
        return None;
    }
    let stretches = held.map_or(&[][..], |held| &held.stretches);
    let mut moved: Vec<String> = stretches
        .iter()
        .map(|row| words::part(row.part).to_owned())
        .collect();
    moved.dedup();
    let is_dated_before = held.is_some_and(|held| moved.is_empty() && held.is_stale(item));
    let waits_for_rest = held.is_some_and(|held| moved.is_empty() && held.waits_for_rest());
    Some(Churn {
        polls,
        held_until: held.map(|held| held.until.rfc3339()),
        is_dated_before,
        is_former: waits_for_rest && !is_dated_before,
        moved,
    })
}

/// Reason why absence counts for less than usual, or for nothing.
fn doubted(absence: &AbsenceState, now: Stamp) -> Option<String> {
    if absence.is_sticky() {
        let why = "posts roll off before an end that stays, so only pages tell";
        return Some(format!("absence proves nothing: {why}"));
    }
    if absence.is_capped() {
        let why = "its documents say that they are the whole feed, but their oldest posts roll off";
        return Some(format!("no list that is complete: {why}"));
    }
    let returns = &absence.recurrence;
    if let Some(until) = returns.off_until(now) {
        let until = until.rfc3339();
        return Some(format!(
            "absence proves nothing until {until}, because posts came back after seven days"
        ));
    }
    let (until, cause) = returns.doubted_until(now)?;
    let why = match cause {
        DoubtReason::Returned => "missing posts came back three times in a week",
        DoubtReason::Revived => "several items that counted as deleted came back at once",
    };
    Some(format!(
        "a deletion takes seven days of absence until {}, because {why}",
        until.rfc3339()
    ))
}

/// The quarantine of a window.
fn quarantine(absence: &AbsenceState, since: Stamp) -> ExplainedQuarantine {
    let suspects = absence.items.iter().filter_map(|row| row.suspect);
    let checks: Vec<_> = suspects.map(|missing| missing.permalink_check).collect();
    let of = absence.items.len();
    let missing = if absence.is_of_empty_document() {
        of
    } else {
        checks.len()
    };
    let next_at = checks.iter().filter_map(PermalinkCheck::due).min();
    ExplainedQuarantine {
        since: since.rfc3339(),
        missing: (missing, of),
        asked: checks.iter().filter(|check| check.asked > 0).count(),
        next_at: next_at.map(Stamp::rfc3339),
        decides_at: absence.decides_at(since).rfc3339(),
        ends_at: absence.quarantine_ends_at(since).rfc3339(),
    }
}

fn missed(missing: &Suspect, open: Option<(u8, &ProofPolicy)>) -> MissedByDocuments {
    let needs = open.map(|(tombstone_count, policy)| missing.needs(tombstone_count, policy));
    let of = needs.map_or(missing.count, |needs| needs.confirmations);
    MissedByDocuments {
        since: missing.since.rfc3339(),
        last_seen: missing.last_seen.rfc3339(),
        count: (missing.count, of),
        not_before: needs.map(|needs| needs.not_before.rfc3339()),
        audited: missing.audited,
        strong: missing.strong,
        behind: missing.behind,
        backfilled: missing.backfilled,
        by_page: missing.basis != SuspectBasis::Documents,
        alone: words::basis(missing.basis).map(str::to_owned),
        page: page(&missing.permalink_check),
    }
}

fn page(probe: &PermalinkCheck) -> ExplainedCheck {
    let said = |(at, said): (Stamp, _)| (words::page(said).to_owned(), at.rfc3339());
    let has_page = probe
        .last
        .is_none_or(|(_, said)| said != CheckResult::NoPage);
    ExplainedCheck {
        said: probe.last.map(said),
        asked: if has_page { probe.asked } else { 0 },
        next_at: probe.due().map(Stamp::rfc3339),
    }
}

fn proof(at: Stamp, evidence: &Evidence) -> TombstoneProof {
    let said = [&evidence.when, &evidence.comment].into_iter().flatten();
    let (missing, walks) = (evidence.suspect.as_ref(), evidence.archive_suspect.as_ref());
    TombstoneProof {
        at: at.rfc3339(),
        reason: evidence.reason.code().to_owned(),
        has_left: evidence.reason == Reason::LeftGroup,
        observed_at: evidence.observed_at.rfc3339(),
        said: said.cloned().collect(),
        missing: missing.map(|missing| missed(missing, None)),
        missed: walks.map(|missed| missed_by_walks(missed, None)),
    }
}

/// True when this is the publisher's id of an item, as served or as written, or its permalink.
fn is_named(item: &Item, name: &str) -> bool {
    let as_written = item.publisher_id.as_ref().and_then(|id| id.text.as_deref());
    let of_entry = item
        .entry()
        .is_some_and(|entry| entry.id.as_deref() == Some(name) || entry.permalink() == Some(name));
    item.iri == name || as_written == Some(name) || of_entry
}

fn seen(number: u64, observed: ObservationRecord) -> ExplainedDocument {
    let class = match observed.coverage {
        Coverage::Unconditional => "full",
        Coverage::Conditional => "full, to validators",
        Coverage::Partial | Coverage::Delta => "partial",
    };
    let counts = &observed.counts;
    let events = observed.events.iter();
    let page = |(id, said): (ItemId, _)| (id.to_string(), words::page(said).to_owned());
    ExplainedDocument {
        number,
        at: observed.at.rfc3339(),
        class: class.to_owned(),
        partial: observed.partial,
        again: observed.again,
        counts: [
            counts.entries,
            counts.new,
            counts.edited,
            counts.revived,
            counts.missing,
            counts.suspects,
            counts.rolled_off,
            counts.gone,
        ],
        events: events
            .map(|event| words::event(*event).to_owned())
            .collect(),
        remark: observed.remark,
        page: observed.page.map(page),
    }
}

/// The state of polling of a feed that is paused.
fn while_paused(polling: Polling) -> Polling {
    Polling {
        next_at: None,
        audit_at: None,
        why: "it is paused: it is not polled, and its items are served".to_owned(),
        ..polling
    }
}

fn polling(poll: &PollState, audit_secs: u64, left_alone: Option<Stamp>) -> Polling {
    let planned = poll.timetable.next_at;
    let left_alone = left_alone.filter(|until| *until > planned);
    let next_at = (planned != Stamp::MAX).then(|| left_alone.unwrap_or(planned));
    let audit_at = poll.audit_at(audit_secs);
    let has_any = |pair: &ValidatorPair| pair.etag.is_some() || pair.last_modified.is_some();
    let has_validators = poll.validators.as_ref().is_some_and(has_any);
    Polling {
        last_at: poll.timetable.polled_at.map(Stamp::rfc3339),
        good_at: poll.health.good_at.map(Stamp::rfc3339),
        next_at: next_at.map(Stamp::rfc3339),
        why: why_then(poll, left_alone),
        audit_at: (has_validators && audit_at > Stamp::ZERO).then(|| audit_at.rfc3339()),
        wants_audit: poll.timetable.wants_audit,
        remark: poll.document.remark.clone(),
    }
}

/// Reason for the time of the next poll.
fn why_then(poll: &PollState, left_alone: Option<Stamp>) -> String {
    let mut why = if let Some(since) = poll.health.gone_at {
        let since = since.rfc3339();
        format!("the publisher has said since {since} that the feed is gone (410)")
    } else if let Some(fault) = &poll.health.fault {
        let polls = match poll.health.failures {
            0 | 1 => "the last poll".to_owned(),
            failures => format!("the last {failures} polls"),
        };
        let (since, owner) = (fault.since.rfc3339(), fault.kind.owner());
        format!(
            "{polls} failed, since {since}: {}; the fault is {owner}",
            fault.kind
        )
    } else if poll.timetable.polled_at.is_none() {
        "it has not been polled yet".to_owned()
    } else {
        let arrivals = poll.timetable.arrivals.len();
        let hint = match poll.timetable.hinted_secs {
            Some(secs) => format!(", and the document asks for {secs} s"),
            None => String::new(),
        };
        format!(
            "it answers well; the interval follows the times of the last new items ({arrivals} remembered){hint}"
        )
    };
    if left_alone.is_some() {
        why += "; its host asked to be left alone until then";
    }
    if !poll.timetable.skip_hours.is_empty() || !poll.timetable.skip_days.is_empty() {
        why += "; the publisher wants no polls in some hours or on some days";
    }
    if let Some(named) = &poll.named {
        let (to, since) = (public_text(&named.url), named.since.rfc3339());
        why += &match named.is_lost {
            false => format!(
                "; its url is a web page, and the feed that the page names is polled since {since}: {to}"
            ),
            true => format!(
                "; its url is a web page, and the feed that it named has ceased to answer ({to}): the page is asked again"
            ),
        };
    }
    if let Some(announced) = &poll.health.announced {
        let (to, since) = (public_text(&announced.url), announced.since.rfc3339());
        let then = match announced.is_taken {
            true => "it is polled there",
            false => "after 7 days it is polled there",
        };
        why += &format!(
            "; its documents have been saying since {since} that it has moved to {to}: {then}"
        );
    }
    if let Some(moved) = &poll.health.moved {
        let to = public_text(&moved.url);
        why += &format!(
            "; it has been redirecting for good since {} to {to}",
            moved.since.rfc3339()
        );
    }
    why
}
