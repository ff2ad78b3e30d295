//! Record of a feed: its number, its name, its counts and its last stamp; neither items nor the
//! poll state.

use super::{
    absence::WindowEvent,
    cursor::{self, Toc},
    history::History,
    item::{self, ItemId},
    last_walk::LastWalk,
    lineage::Lineage,
    moment::Moment,
    stamp::Stamp,
};
use crate::mistakes::{Mistake, is_made};
use everfeed_adapters::Metadata;
use std::{fmt, sync::Arc};

/// The number of a feed in one store: small, never reused, never shown to consumers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FeedNo(pub u32);

/// A feed as the store knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedRecord {
    /// Its number.
    pub no: FeedNo,
    /// Its name, `[a-z0-9][a-z0-9-]{0,62}`.
    pub name: String,
    /// Scheme by which its items get their ids.
    pub ids: IdScheme,
    /// Rises with every commit; a commit decided on an older one is a conflict.
    pub rev: u64,
    /// The last T ever given out: that of the newest item, since the holder of the last T keeps it
    /// until a later is given.
    pub last_t: Stamp,
    /// Number of its items.
    pub items: ItemCounts,
    /// Metadata of the last good document.
    pub metadata: Arc<Metadata>,
    /// Time at which something that is rendered of them changed last; it rises with each change.
    pub metadata_t: Stamp,
    /// Completeness of what is held.
    pub completeness: Completeness,
    /// The window in figures.
    pub window: WindowFigures,
    /// The feed that it is a part of, if it is one. It has the name of that, which leads to that
    /// alone.
    pub part_of: Option<FeedNo>,
    /// Its generations: a restored store gives each feed a new one.
    pub lineage: Lineage,
}

/// Scheme by which a feed's items get their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdScheme {
    /// Namespace that ids are hashed with; fixed when the feed is first seen.
    pub namespace: String,
    /// Rule by which ids of the publisher are told apart.
    pub rule: IdRule,
}

/// Number of items that a feed holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemCounts {
    /// All of them, tombstones included: `totalItems`.
    pub total: u64,
    /// Those that are no tombstones.
    pub live: u64,
    /// Versions of items so far that were kept without parts that were too long.
    pub shortened: u64,
    /// Bytes of all of them as they are stored; `None` in what an older everfeed stored, until they
    /// are counted.
    pub bytes: Option<u64>,
}

/// Completeness of what is held of a feed: where serving began, how far back it reaches, by which
/// walk, and where items may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completeness {
    /// The cursor of the newest item when serving began; `None` until the first good document (503
    /// until then).
    pub first_cursor: Option<String>,
    /// Reach of the memory into the past.
    pub history: History,
    /// The last walk through the archives that came to its end; `None` before the first.
    pub last_walk: Option<LastWalk>,
    /// Gap markers, oldest first, at most [`GAPS_MAX`].
    pub gaps: Vec<Gap>,
    /// True once its operator had an item of it removed: what its documents show of that is cut
    /// from them.
    pub has_forgotten: bool,
}

/// Figures of a window for lists of feeds, so that nobody reads every window for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowFigures {
    /// Start of the quarantine, while too much is missing at once to be believed.
    pub quarantined_since: Option<Stamp>,
    /// Items that are missing and not decided on.
    pub suspects: u32,
    /// Edits that wait.
    pub deferred: u32,
    /// Time of the last document that was being reformatted; `None` once the feed has rested from
    /// that.
    pub reformatted_at: Option<Stamp>,
    /// Time of the next permalink check.
    pub next_check_at: Option<Stamp>,
}

/// A place in a feed where items may be missing: what was shown before and what was shown then have
/// nothing in common that could be followed, so what stood between them, if anything, was never
/// seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Time at which it was found.
    pub at: Stamp,
    /// Event that left the gap.
    pub event: WindowEvent,
    /// Cursor of the newest item held before; empty if none was.
    pub before: String,
    /// Cursor of the first item that came after; `before` when nothing new came.
    pub after: String,
}

/// Gaps that are remembered of a feed; the oldest are forgotten first.
pub const GAPS_MAX: usize = 16;

impl FeedRecord {
    /// A feed that nothing is known of yet.
    pub fn new(no: FeedNo, name: &str, namespace: &str) -> Self {
        Self {
            no,
            name: name.to_owned(),
            ids: IdScheme {
                namespace: namespace.to_owned(),
                rule: IdRule::Id,
            },
            rev: 0,
            last_t: Stamp::ZERO,
            items: ItemCounts {
                bytes: Some(0),
                ..ItemCounts::default()
            },
            metadata: Arc::default(),
            metadata_t: Stamp::ZERO,
            completeness: Completeness::default(),
            window: WindowFigures::default(),
            part_of: None,
            lineage: Lineage::default(),
        }
    }

    /// The record of a feed without items that takes another namespace: nothing was made with the
    /// one before.
    #[must_use]
    pub fn with_namespace(self, namespace: &str, now: Stamp) -> Self {
        let ids = IdScheme {
            namespace: namespace.to_owned(),
            rule: IdRule::Id,
        };
        let completeness = Completeness {
            first_cursor: self.completeness.first_cursor.clone(),
            ..Completeness::default()
        };
        Self {
            ids,
            rev: self.rev + 1,
            completeness,
            // The id of the feed itself is another.
            metadata_t: self.metadata_t.next().max(now),
            window: WindowFigures::default(),
            ..self
        }
    }

    /// A part of this feed under another number, without items yet.
    #[must_use]
    pub fn new_part(&self, no: FeedNo) -> Self {
        let part = Self {
            ids: self.ids.clone(),
            metadata: Arc::clone(&self.metadata),
            metadata_t: self.metadata_t,
            completeness: Completeness {
                gaps: Vec::new(),
                ..self.completeness.clone()
            },
            part_of: Some(self.no),
            lineage: self.lineage.clone(),
            ..Self::new(no, &self.name, "")
        };
        part.withheld()
    }

    /// The same feed, which nobody reads until it is ready again.
    #[must_use]
    pub fn withheld(self) -> Self {
        Self {
            rev: self.rev + 1,
            completeness: Completeness {
                first_cursor: None,
                ..self.completeness
            },
            ..self
        }
    }

    /// True once the first good document is in.
    pub fn is_ready(&self) -> bool {
        self.completeness.first_cursor.is_some()
    }

    /// `atom:id` of the feed: a `urn:uuid:` made of its namespace, which is fixed when the feed is
    /// first seen.
    pub fn iri(&self) -> String {
        // No item's key ends in a line feed, so no item has this IRI.
        item::uuid_iri(&self.ids.namespace, "feed\n")
    }

    /// The cursor of an item of it at a T, in the orders in which no two items stand at one place.
    pub fn cursor(&self, t: Stamp, item: ItemId) -> Option<String> {
        let toc = Toc::of(t, [item.to_string()])?;
        Some(toc.marked(self.cursor_mark()).to_string())
    }

    /// The mark of its cursors in these orders; 0 for a feed that is no part.
    pub fn cursor_mark(&self) -> u32 {
        self.part_of.map_or(0, |_| cursor::part_mark(self.no.0))
    }

    /// A new feed of a store that was restored, or in which a feed was forgotten, at this time;
    /// [`Stamp::ZERO`] for any other store.
    #[must_use]
    pub fn of_generation(self, generation: Stamp) -> Self {
        if generation == Stamp::ZERO {
            return self;
        }
        let lineage = self.lineage.restored(Stamp::ZERO, generation);
        Self { lineage, ..self }
    }

    /// The feed in a store that was restored from a copy: a new generation, which begins at
    /// `until`. Its conditional requests are answered anew.
    #[must_use]
    pub fn restored(self, until: Stamp) -> Self {
        let lineage = self.lineage.restored(self.last_t, until);
        Self {
            rev: self.rev + 1,
            metadata_t: self.metadata_t.next().max(lineage.generation()),
            lineage,
            ..self
        }
    }

    /// A cursor of it that is of a former generation: whoever reads from it is told so. Empty for the
    /// first generation.
    pub fn lost_cursor(&self) -> String {
        let generation = self.lineage.generation();
        if generation == Stamp::ZERO {
            return String::new();
        }
        self.cursor(generation, ItemId([0; 10])).unwrap_or_default()
    }

    /// The next T: now, or right after the last one that was given out in this store or in one
    /// before it.
    pub fn next_t(&self, now: Stamp) -> Stamp {
        let last = self.last_t.max(self.lineage.generation());
        if is_made(Mistake::StampsGoBack) {
            return now;
        }
        last.next().max(now)
    }

    /// True for a T that this feed cannot have given out: it lies behind the last one, or in what a
    /// restored store does not know.
    pub fn is_ahead(&self, t: Moment) -> bool {
        (t > self.last_t.into() || self.lineage.is_lost(t)) && !is_made(Mistake::NeverAhead)
    }

    /// Head of the feed: equal heads mean that nothing visible has changed.
    pub fn head(&self) -> Head {
        Head {
            last_t: self.last_t,
            metadata_t: self.metadata_t,
            ready: self.is_ready(),
            generation: self.lineage.generation(),
        }
    }
}

/// The visible state of a feed in a few words: equal marks mean equal documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Head {
    /// The last T given out.
    pub last_t: Stamp,
    /// Time at which what is shown of the feed itself changed last.
    pub metadata_t: Stamp,
    /// True once the first good document is in.
    pub ready: bool,
    /// The generation of the feed (see [`Lineage::generation`]).
    pub generation: Stamp,
}

/// Rule by which entries with one id are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum IdRule {
    /// By their id alone.
    #[default]
    Id,
    /// By id and link: the feed was caught giving one id to several links. Pinned.
    IdAndLink,
    /// By id, link and date: the feed was caught giving one id and one link to several posts.
    /// Pinned.
    IdLinkAndDate,
}

impl fmt::Display for FeedNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
