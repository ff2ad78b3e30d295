//! The faults, one scenario each (POLLING 2.5).

/// By what a publisher sorts its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sorted {
    Published,
    Updated,
    Ascending,
    /// By popularity, which changes from poll to poll.
    Popular,
}

/// What a publisher does, and what goes wrong. Chances are per hour or per poll.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    pub name: &'static str,
    pub sorted: Sorted,
    /// Posts a day.
    pub posts: f64,
    /// Deletions of visible posts a day.
    pub deletions: f64,
    /// Edits of visible posts a day.
    pub edits: f64,
    pub poll_hours: u64,
    pub pinned_top: bool,
    pub pinned_bottom: bool,
    /// The length of the document changes every few days.
    pub changing_length: bool,
    /// Share of polls whose document ends early without a sign.
    pub truncated: f64,
    /// Hours, on average, between failures of a backend that holds a third of the rows.
    pub shard_hours: f64,
    /// Share of polls in random order.
    pub shuffled: f64,
    /// Backdatings a day: a visible post gets the date of an old one.
    pub backdatings: f64,
    /// Whether half of what is deleted comes back after days.
    pub republishes: bool,
    /// `Last-Modified` is that of the newest change of a post that is left, so a deletion answers 304.
    pub hides_deletions: bool,
    /// A conditional request is answered with what changed since.
    pub deltas: bool,
    /// The share of deletions that must be found: that of the table in POLLING 2.5, less five hundredths.
    pub(crate) found_min: f64,
    /// False tombstones that are forgiven in 90 days: those of the table. Without probes nothing tells a post that was
    /// dated back from one that was deleted.
    pub(crate) false_max: f64,
}

const STEADY: Scenario = Scenario {
    name: "steady",
    sorted: Sorted::Published,
    posts: 3.0,
    deletions: 0.23,
    edits: 0.5,
    poll_hours: 1,
    pinned_top: false,
    pinned_bottom: false,
    changing_length: false,
    truncated: 0.0,
    shard_hours: 0.0,
    shuffled: 0.0,
    backdatings: 0.0,
    republishes: false,
    hides_deletions: false,
    deltas: false,
    found_min: 0.84,
    false_max: 0.0,
};

pub(crate) fn all() -> Vec<Scenario> {
    use Sorted::{Ascending, Popular, Updated};
    vec![
        STEADY,
        Scenario { name: "slow", posts: 0.33, deletions: 0.065, found_min: 0.89, ..STEADY },
        Scenario { name: "updated-desc", sorted: Updated, ..STEADY },
        Scenario { name: "ascending", sorted: Ascending, ..STEADY },
        Scenario { name: "pinned top", pinned_top: true, found_min: 0.83, ..STEADY },
        Scenario { name: "pinned bottom", pinned_bottom: true, found_min: 0.87, ..STEADY },
        Scenario { name: "changing length", changing_length: true, found_min: 0.72, ..STEADY },
        Scenario { name: "truncated", truncated: 0.03, found_min: 0.78, ..STEADY },
        Scenario { name: "missing rows", shard_hours: 240.0, found_min: 0.82, false_max: 1.8, ..STEADY },
        Scenario { name: "reshuffles", shuffled: 0.005, found_min: 0.78, ..STEADY },
        Scenario { name: "unordered", sorted: Popular, found_min: 0.0, ..STEADY },
        Scenario { name: "backdating", backdatings: 0.2, found_min: 0.84, false_max: 14.9, ..STEADY },
        Scenario { name: "unpublish and republish", republishes: true, found_min: 0.82, ..STEADY },
        Scenario { name: "304 hides deletions", hides_deletions: true, found_min: 0.78, ..STEADY },
        Scenario { name: "delta 200", deltas: true, found_min: 0.46, ..STEADY },
        Scenario { name: "slow polls, busy feed", posts: 23.6, poll_hours: 12, found_min: 0.01, ..STEADY },
        Scenario {
            name: "everything",
            pinned_top: true,
            changing_length: true,
            truncated: 0.03,
            shard_hours: 480.0,
            shuffled: 0.005,
            backdatings: 0.1,
            republishes: true,
            hides_deletions: true,
            found_min: 0.52,
            false_max: 11.0,
            ..STEADY
        },
    ]
}
