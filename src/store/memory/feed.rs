//! A feed in memory: its items with their indexes, and how a planned commit changes them; not how a
//! page is read from them.

use crate::{
    feed::{
        archive::{ArchiveWalk, PageFate, StagedBody, StagedPage, StagingChange},
        forgotten::ForgottenIn,
        item::{Item, ItemId, KeyHash},
        legacy_document::LegacyDocument,
        moment::Moment,
        observation_record::{OBSERVATIONS_MAX, ObservationRecord},
        reconcile::{Evidence, WINDOW_ENTRIES_MAX, WindowState},
        record::FeedRecord,
        schedule::PollState,
        stamp::Stamp,
    },
    store::{
        Commit, Receipt, Snapshot, StoreError, plan,
        stored::item::{plain_bytes, weight_bytes},
    },
};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// Everything that is kept of a feed.
pub(super) struct MemoryFeed {
    pub(super) record: FeedRecord,
    pub(super) held: MemoryItems,
    pub(super) evidence: BTreeMap<(ItemId, Stamp), Evidence>,
    pub(super) observations: BTreeMap<u64, ObservationRecord>,
    pub(super) last: WindowState,
    pub(super) poll: Option<PollState>,
    pub(super) walk: Option<ArchiveWalk>,
    pub(super) staged: BTreeMap<u32, StagedPage>,
    pub(super) document: Option<Arc<LegacyDocument>>,
}

/// The items of a feed, with their indexes.
#[derive(Default)]
pub(super) struct MemoryItems {
    /// By T.
    pub(super) items: BTreeMap<Stamp, Kept>,
    /// T by id.
    pub(super) ids: HashMap<ItemId, Stamp>,
    /// T by the first T.
    pub(super) created: BTreeMap<Stamp, Stamp>,
    /// Date of publication and first T, to T.
    pub(super) published: BTreeMap<(Moment, Stamp), Stamp>,
    /// Ids by every key ever seen.
    pub(super) keys: HashMap<KeyHash, ItemId>,
    /// Ids by witness, the newest last.
    pub(super) witnesses: HashMap<KeyHash, Vec<ItemId>>,
}

/// An item, and its bytes in a file: once escaped, and as they are.
#[derive(Clone)]
pub(super) struct Kept {
    pub(super) item: Arc<Item>,
    pub(super) bytes: usize,
    pub(super) stored_bytes: u64,
}

impl MemoryFeed {
    pub(super) fn new(record: FeedRecord) -> Self {
        Self {
            record,
            held: MemoryItems::default(),
            evidence: BTreeMap::new(),
            observations: BTreeMap::new(),
            last: WindowState::default(),
            poll: None,
            walk: None,
            staged: BTreeMap::new(),
            document: None,
        }
    }

    /// Takes another namespace. What was read for the one before goes.
    pub(super) fn take_namespace(&mut self, namespace: &str, now: Stamp) {
        self.record = self.record.clone().with_namespace(namespace, now);
        self.last = WindowState::default();
        self.walk = None;
        self.staged.clear();
    }

    pub(super) fn item(&self, id: ItemId) -> Option<Arc<Item>> {
        let t = self.held.ids.get(&id)?;
        self.held.items.get(t).map(|kept| Arc::clone(&kept.item))
    }

    pub(super) fn snapshot(&self, keys: &[KeyHash]) -> Snapshot {
        let behind = |key: &KeyHash| Some((*key, self.item(*self.held.keys.get(key)?)?));
        let items = keys.iter().filter_map(behind).collect();
        Snapshot {
            record: self.record.clone(),
            window: self.last.clone(),
            items,
        }
    }

    /// A document without what was forgotten; `None` for one out of which that cannot be cut.
    pub(super) fn cut(&self, document: Arc<LegacyDocument>) -> Option<Arc<LegacyDocument>> {
        if !self.record.completeness.has_forgotten {
            return Some(document);
        }
        let url = self.poll.as_ref().map(|poll| poll.url.as_str());
        let cut = self.forgotten().document(&document, url).ok()?;
        Some(cut.map_or(document, Arc::new))
    }

    /// A staged page without what was forgotten.
    pub(super) fn cut_page(&self, page: StagedPage) -> StagedPage {
        if self.record.completeness.has_forgotten {
            self.forgotten().page(&page).unwrap_or(page)
        } else {
            page
        }
    }

    fn forgotten(&self) -> ForgottenIn<'_, impl Fn(KeyHash) -> bool> {
        let item = |key| self.item(*self.held.keys.get(&key)?);
        let is_forgotten = move |key| item(key).is_some_and(|item| item.content.is_forgotten());
        ForgottenIn {
            namespace: &self.record.ids.namespace,
            is_forgotten,
        }
    }

    pub(super) fn apply(
        &mut self,
        plan: plan::PlannedCommit,
        commit: Commit,
    ) -> Result<Receipt, StoreError> {
        for (id, moved) in plan.items {
            let (t, created) = (moved.item.modified, moved.item.created);
            if let Some(from) = moved.from {
                self.held.items.remove(&from.t);
                self.held.published.remove(&(from.listed, created));
            }
            self.held
                .published
                .insert((moved.item.listed(), created), t);
            let kept = Kept {
                bytes: weight_bytes(&moved.encoded),
                stored_bytes: plain_bytes(&moved.encoded),
                item: moved.item,
            };
            self.held.items.insert(t, kept);
            self.held.ids.insert(id, t);
            self.held.created.insert(created, t);
        }
        for (key, id) in plan::bindings(&commit) {
            self.held.keys.entry(key).or_insert(id);
        }
        for (witness, id) in plan::witnesses(&commit) {
            let held = self.held.witnesses.entry(witness).or_default();
            if let Some(more) = plan::witnessed(held, id) {
                *held = more;
            }
        }
        self.evidence
            .retain(|(id, _), _| !plan.forgotten.contains(id));
        for (id, t, evidence) in plan.evidence {
            self.evidence.insert((id, t), evidence);
        }
        if let Some(mut last) = commit.last {
            last.entries.truncate(WINDOW_ENTRIES_MAX);
            self.last = last;
        }
        if let Some(observed) = commit.observed {
            let seq = self.observations.keys().last().map_or(1, |last| last + 1);
            self.observations.insert(seq, observed);
            self.observations
                .retain(|old, _| old + OBSERVATIONS_MAX > seq);
        }
        self.poll = commit.poll.or(self.poll.take());
        if let Some(unstage) = commit.archives.and_then(|archives| archives.unstage) {
            if unstage == StagingChange::All {
                self.walk = None;
            }
            self.staged.retain(|no, page| {
                let fate = unstage.fate(*no);
                if fate == PageFate::Stripped {
                    page.content = StagedBody::Traces;
                }
                fate != PageFate::Forgotten
            });
        }
        self.record = plan.receipt.feed.clone();
        if self.record.completeness.has_forgotten {
            self.document = self.document.take().and_then(|document| self.cut(document));
            for (no, page) in std::mem::take(&mut self.staged) {
                self.staged.insert(no, self.cut_page(page));
            }
        }
        Ok(plan.receipt)
    }
}

impl plan::Held for MemoryFeed {
    fn item(&self, id: ItemId) -> Result<Option<Arc<Item>>, StoreError> {
        Ok(self.item(id))
    }

    fn id_at(&self, t: Stamp) -> Result<Option<ItemId>, StoreError> {
        Ok(self.held.items.get(&t).map(|kept| kept.item.id))
    }

    fn bytes_at(&self, t: Stamp) -> Result<u64, StoreError> {
        Ok(self.held.items.get(&t).map_or(0, |kept| kept.stored_bytes))
    }

    fn bytes(&self) -> Result<u64, StoreError> {
        Ok(self.held.items.values().map(|kept| kept.stored_bytes).sum())
    }
}
