//! Suspects, and the proof that makes tombstones of them (POLLING 2.3, "When a tombstone may be
//! emitted").

use super::{
    AbsenceTrust, Coverage, PermalinkCheck, ProofPolicy, comparison::LackingItem,
    recurrence::DOUBTED_SECS,
};
use crate::{item::flapping_secs, stamp::Stamp};

/// The circumstances of an observation.
pub(super) struct DocumentContext<'a> {
    pub(super) coverage: Coverage,
    /// True when it counts as a confirmation.
    pub(super) counts: bool,
    pub(super) strong: bool,
    /// True when what came and what went is what rolling off would be, but for where it went.
    pub(super) as_if_rolled: bool,
    /// True when nobody knows at which end posts roll off.
    pub(super) is_blind: bool,
    /// True when it is known at which end they would.
    pub(super) is_sequence: bool,
    /// Time of the last full document before this one.
    pub(super) last_seen: Stamp,
    pub(super) now: Stamp,
    pub(super) policy: &'a ProofPolicy,
}

/// An item that is missing and not decided on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// Time at which it was first missed.
    pub since: Stamp,
    /// Time at which it was last seen.
    pub last_seen: Stamp,
    /// Time at which it was last counted as missing.
    pub counted_at: Stamp,
    /// Full documents that lacked it, as far as they count.
    pub count: u8,
    /// True when one of them answered an unconditional request.
    pub audited: bool,
    /// True when the window was conserved when it was first missed; of many that are missing at
    /// once, when the document was none with a fault.
    pub strong: bool,
    /// Anchors that stood behind it when it was last missed.
    pub behind: u16,
    /// True when older items had moved up into the window.
    pub backfilled: bool,
    /// Check of its own page.
    pub permalink_check: PermalinkCheck,
    /// Witness that decides on it.
    pub basis: SuspectBasis,
}

/// Witness that decides on a suspect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SuspectBasis {
    /// Documents, beside its page.
    #[default]
    Documents,
    /// Its page alone, since it may have rolled off before a few that are pinned to the end: as
    /// many came as went when it was first missed, and nothing but those few stood behind it.
    PageBeforeFew,
    /// Its page alone, since it is one of many that are missing at once.
    PageOfMany,
    /// Its page alone, since the server says that something was modified and nothing that the
    /// document shows was.
    PageOfModified,
    /// Its page alone, since it left documents that tell nothing by what they lack.
    PageOfDeparted,
}

/// Proof that the end of an item requires, besides one answer to an unconditional request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequiredProof {
    /// Full documents without it.
    pub confirmations: u8,
    /// No tombstone before that.
    pub not_before: Stamp,
}

/// Proof that an item is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Missing although what stood behind it is still there: `absent-bracketed`.
    Bracketed(Suspect),
    /// Missing from a document that is the whole feed: `left-complete-feed`.
    LeftComplete(Suspect),
    /// Missing although what stood behind it is still there, and so is its own page: `gone`.
    Gone(Suspect),
}

impl Proof {
    /// True when the item's own page is the proof: no number of those is too many for a day.
    pub(super) fn is_of_page(&self) -> bool {
        matches!(self, Self::Gone(_))
    }
}

/// Posts that a blog pins to the end of its feed, at most.
const FEW_MAX: usize = 3;

impl DocumentContext<'_> {
    /// True when the page of a missed item says something. What leaves a list that is complete may
    /// live on elsewhere, and its page says nothing about the list; unless it left at the end, where
    /// posts roll off lists that say so, and are not.
    fn pages_count_for(&self, missed: &LackingItem) -> bool {
        !self.policy.complete || (self.is_sequence && missed.behind <= FEW_MAX)
    }
}

impl Suspect {
    /// Missing since then, on which its page alone decides.
    pub(super) fn on_page(
        basis: SuspectBasis,
        since: Stamp,
        last_seen: Stamp,
        permalink_check: PermalinkCheck,
    ) -> Self {
        Self {
            since,
            last_seen,
            counted_at: since,
            count: 1,
            audited: false,
            strong: false,
            behind: 0,
            backfilled: false,
            permalink_check,
            basis,
        }
    }

    /// True for one of many that are missing at once by a fault of the document.
    pub(super) fn is_of_fault(&self) -> bool {
        self.basis == SuspectBasis::PageOfMany && !self.strong
    }

    /// Missed once more.
    pub(super) fn again(
        before: Option<Self>,
        missed: &LackingItem,
        sight: &DocumentContext<'_>,
    ) -> Self {
        let now = sight.now;
        let first = Self {
            since: now,
            last_seen: sight.last_seen,
            counted_at: now,
            count: 0,
            audited: false,
            strong: sight.strong,
            behind: 0,
            backfilled: false,
            basis: if sight.policy.modified_unseen && !sight.policy.complete {
                SuspectBasis::PageOfModified
            } else if sight.policy.checks_permalinks
                && sight.as_if_rolled
                && missed.behind <= FEW_MAX
            {
                SuspectBasis::PageBeforeFew
            } else {
                SuspectBasis::Documents
            },
            permalink_check: if sight.policy.checks_permalinks && sight.pages_count_for(missed) {
                PermalinkCheck::begun(now)
            } else {
                PermalinkCheck::default()
            },
        };
        // One of many that are few by now is missed as if for the first time.
        let before = before.filter(|missing| missing.basis != SuspectBasis::PageOfMany);
        let mut missing = before.unwrap_or(first);
        missing.behind = u16::try_from(missed.behind).unwrap_or(u16::MAX);
        missing.backfilled = missed.backfilled;
        // The first sight is the suspicion itself, whatever answer it came with; it is counted as
        // one.
        let is_first = before.is_none();
        let is_apart = now.secs_since(missing.counted_at) >= sight.policy.apart_secs;
        if is_first || (sight.counts && is_apart) {
            missing.count = missing.count.saturating_add(1);
            missing.counted_at = now;
        }
        missing.audited |= sight.coverage == Coverage::Unconditional;
        missing
    }

    // Decides: How often, and how far apart, must an item be missing?
    /// True when that is proof of its end. A page that is gone needs no second document; one that
    /// is there outweighs any number of them.
    pub(super) fn proves(
        &self,
        tombstone_count: u8,
        policy: &ProofPolicy,
        now: Stamp,
    ) -> Option<Proof> {
        let needs = self.needs(tombstone_count, policy);
        let is_enough = self.is_enough(&needs, now);
        if self.permalink_check.is_gone() {
            // The publisher says it of this item, whatever its documents do.
            let needs = self.needs(
                tombstone_count,
                &ProofPolicy {
                    belief: AbsenceTrust::Usual,
                    ..*policy
                },
            );
            if flapping_secs(tombstone_count) > 0 && now < needs.not_before {
                return None;
            }
            return Some(Proof::Gone(*self));
        }
        let may_decide = if policy.checks_permalinks {
            self.permalink_check.lets_decide(self.since, now)
        } else {
            !self.permalink_check.is_hidden()
        };
        if !may_decide || !is_enough {
            return None;
        }
        if policy.complete {
            let may_have_rolled_off = policy.perhaps_capped && self.behind == 0;
            return (!may_have_rolled_off).then_some(Proof::LeftComplete(*self));
        }
        let is_proven = self.is_proven_by_documents(tombstone_count, policy, now);
        is_proven.then_some(Proof::Bracketed(*self))
    }

    /// True when documents have proven its end, whatever its page says.
    pub(super) fn is_proven_by_documents(
        &self,
        tombstone_count: u8,
        policy: &ProofPolicy,
        now: Stamp,
    ) -> bool {
        policy.belief < AbsenceTrust::Off
            && self.basis == SuspectBasis::Documents
            && self.is_enough(&self.needs(tombstone_count, policy), now)
    }

    /// True when there is nothing to wait for where documents prove nothing: no page will say more.
    pub(super) fn is_moot(&self, is_sticky: bool, policy: &ProofPolicy) -> bool {
        let is_awaited = policy.checks_permalinks && self.permalink_check.is_awaited();
        (is_sticky || self.basis != SuspectBasis::Documents) && !policy.complete && !is_awaited
    }

    fn is_enough(&self, needs: &RequiredProof, now: Stamp) -> bool {
        self.count >= needs.confirmations && now >= needs.not_before && self.audited
    }

    /// Proof that its end requires.
    pub fn needs(&self, tombstone_count: u8, policy: &ProofPolicy) -> RequiredProof {
        let (confirmations, secs) = if self.strong || policy.complete {
            (policy.confirmations, policy.apart_secs)
        } else {
            (policy.weak_confirmations, policy.weak_secs)
        };
        let secs = secs.max(flapping_secs(tombstone_count));
        // What leaves a list that is complete is not in it, however often it comes back.
        let is_doubted = policy.belief > AbsenceTrust::Usual && !policy.complete;
        let secs = if is_doubted {
            secs.max(DOUBTED_SECS)
        } else {
            secs
        };
        RequiredProof {
            confirmations,
            not_before: self.since.plus_secs(secs),
        }
    }
}
