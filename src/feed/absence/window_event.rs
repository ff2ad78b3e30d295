//! Events of a window as a whole, for the operator.

/// Event of a window as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowEvent {
    /// Nothing of the last window is in this one: items may be missing between the two.
    Gap,
    /// The order of the documents could not be followed any more; the window begins anew.
    Rebaselined,
    /// Too much is missing at once; nothing is concluded for now.
    Quarantined,
    /// Too much stayed missing for a week; the window begins anew and nothing is deleted.
    QuarantineEnded,
    /// The pages of what was missing at once decided on it.
    QuarantineDecided,
    /// More is proven to be gone than is believed in a day; the rest waits.
    DailyLimit,
    /// More than half of the window was edited at once, and its publisher says of no such entry
    /// that it was updated.
    Reformatted,
    /// Missing items came back too often, so that a deletion takes longer to prove.
    Doubted,
    /// Items taken for deleted in spite of that came back, so that absence proves nothing for a
    /// while.
    AbsenceOff,
    /// Old items vanish from before a pinned end, so that documents prove nothing by what they
    /// lack.
    Pinned,
}

impl WindowEvent {
    /// True when the window began anew, so that items may be missing between what was held and what
    /// came with it.
    pub fn leaves_a_gap(self) -> bool {
        matches!(self, Self::Gap)
    }
}
