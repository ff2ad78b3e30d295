//! The record of a feed, and the numbers that are given to feeds and subscriptions.

use super::{
    Out, ReadError, Stored, StoredKind, Written,
    table::{stored_enums, stored_newtypes, stored_structs},
};
use crate::feed::{
    history::{EndProof, History, PartialReason},
    last_walk::LastWalk,
    lineage::{Lineage, LostStretch},
    record::{Completeness, FeedNo, FeedRecord, Gap, IdRule, IdScheme, ItemCounts, WindowFigures},
};
use minicbor::Decoder;

impl StoredKind for FeedRecord {
    const NAME: &'static str = "feed-record";
}

impl StoredKind for u32 {
    const NAME: &'static str = "feed-number";
}

impl StoredKind for u64 {
    const NAME: &'static str = "subscription-number";
}

stored_newtypes! { FeedNo }

impl Stored for Lineage {
    fn put(&self, out: &mut Out) -> Written {
        self.lost.put(out)
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, ReadError> {
        Vec::take(input).map(|lost| Self { lost })
    }

    fn missing() -> Option<Self> {
        Some(Self::default())
    }

    fn is_missing(&self) -> bool {
        self.lost.is_empty()
    }
}

stored_structs! {
    FeedRecord {
        no, name, ids, rev, last_t, items, metadata, metadata_t, completeness, window;
        unused epoch; then part_of, lineage,
    }
    LostStretch { after, until }
    IdScheme { namespace, rule }
    ItemCounts { total, live, shortened, bytes }
    Completeness { first_cursor, history, last_walk, gaps, has_forgotten }
    WindowFigures { quarantined_since, suspects, deferred, reformatted_at, next_check_at }
    Gap { at, event, before, after }
    LastWalk { began_at, ended_at, pages, found, missed, remark, proof }
}

stored_enums! {
    IdRule { 0 Id, 1 IdAndLink, 2 IdLinkAndDate }
    History { 0 Unknown, 1 Complete, 2 Partial(reason), 3 Running }
    PartialReason {
        0 LinksToAnotherHost, 1 RedirectsToAnotherHost, 2 MissingPage { status }, 3 NoFeed, 4 Unreadable(error),
        5 DifferentFeed, 6 EmptyPage, 7 Circle, 8 NothingNew, 9 DamagedPage, 10 TooManyBytes { mib_max },
        11 TooManyPages { pages_max }, 12 ServerLimit { entries_max }, 13 PagingUnproven, 14 LeadsToFeed,
        15 LiveNotMet, 16 PagesMoved, 17 NotTheLast, 18 NoArchive, 19 Redirected, 20 PassedOver,
        21 FewerThanSaid { total, found }, 22 LastPageFull, 23 UnlinkedPages, 24 OlderCopy,
    }
    EndProof { 0 Total { items }, 1 LastArchive, 2 LastPage, 3 OnlyPage, 4 WholeDocument, 5 MeetsLive }
}
