//! Trust in answers to conditional requests, learned from the audits after them: some servers send
//! what changed since, and call it 200.

use super::{Coverage, ShownItem, WindowItem};
use crate::item::ItemId;
use std::collections::HashSet;

/// Trust in answers to conditional requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConditionalTrust {
    /// Rises with every audit that bears out the conditional answer before it, falls with every
    /// other.
    pub level: i8,
    /// Items that every conditional answer since the last audit lacked.
    pub lacked: Option<LackedItems>,
}

/// Items that conditional answers lacked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LackedItems {
    /// Number of answers.
    pub answers: u32,
    /// Items that each of them lacked.
    pub ids: Vec<ItemId>,
}

/// Level from which conditional answers count as proof: the last two audits confirmed them.
const TRUSTED: i8 = 2;

/// Level at which conditional answers are taken for parts of the feed.
const CAUGHT: i8 = -2;

impl ConditionalTrust {
    /// True when conditional answers count as proof.
    pub(super) fn is_proof(&self) -> bool {
        self.level >= TRUSTED
    }

    /// True when conditional answers have proven to be parts of the feed.
    pub(super) fn is_caught(&self) -> bool {
        self.level <= CAUGHT
    }

    /// Learns from a document. An audit that brings back what the conditional answers before it all
    /// left out shows that they were parts. A single one may have been an accident.
    pub(super) fn learn(&mut self, seen: &[ShownItem], rows: &[WindowItem], coverage: Coverage) {
        let shown: HashSet<ItemId> = seen.iter().map(|place| place.id).collect();
        match coverage {
            Coverage::Partial | Coverage::Delta => {}
            Coverage::Conditional => {
                let mut lacked = self.lacked.take().unwrap_or_else(|| LackedItems {
                    answers: 0,
                    ids: rows.iter().map(|row| row.id).collect(),
                });
                lacked.answers = lacked.answers.saturating_add(1);
                lacked.ids.retain(|id| !shown.contains(id));
                self.lacked = Some(lacked);
            }
            Coverage::Unconditional => {
                let step = match self.lacked.take() {
                    None => 0,
                    Some(lacked) if !lacked.ids.iter().any(|id| shown.contains(id)) => 1,
                    Some(lacked) => -i8::from(lacked.answers > 1),
                };
                self.level = (self.level + step).clamp(CAUGHT, TRUSTED);
            }
        }
    }
}
