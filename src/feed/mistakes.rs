//! Deliberate mistakes, by which the worlds of the tests show that they find some. Without the feature
//! `mistakes`, which no release has, none is ever made, and to ask costs nothing.

/// A mistake that can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A wake-up reaches nobody.
    WakeUpLost,
    /// A waiter that has read takes the head of after the read for that of before.
    WatchedAfterTheRead,
    /// An acknowledgement is kept in memory and not in the store.
    AcknowledgedInMemory,
    /// A push that failed counts as taken.
    FailedPushTaken,
    /// A subscription ends with the first push that fails.
    FailedPushEnds,
    /// A cursor whose item has moved on skips the rest of its second.
    FallbackSkipsASecond,
    /// No cursor is `ahead`.
    NeverAhead,
    /// Nobody is told that a cursor is of another part.
    ResetUntold,
    /// A subscriber is not told so where a filter shows nothing.
    HiddenResetUntold,
    /// An item that leaves a filter is not reported.
    LeftViewUntold,
    /// A part keeps an item that leaves it.
    PartKeepsItems,
    /// A post of a group ends with one of its holders.
    HolderForgotten,
    /// A lease ends by a clock that is not believed yet.
    LeaseEndsByAnyClock,
    /// A change gets a T before the last one when the clock was set back.
    StampsGoBack,
    /// Every commit may be on disk later than it is answered.
    CommitUnsynced,
    /// Pushes leave deletions out.
    PushOmitsDeletions,
    /// Each event of a page names the end of the page.
    EventNamesTheEnd,
    /// A rendered page stays for later states of its feed.
    BodyOutlivesItsHead,
    /// A page that shows its post is taken for one that says it is gone.
    PageTakenForGone,
    /// Everybody sees all of every feed.
    ShowsEverything,
    /// A renewal moves the position to the head.
    RenewalMovesOn,
    /// The validators of a document whose commit failed are kept.
    FailedCommitTaken,
    /// Stored subscriptions begin at the head after a start.
    StartAtTheHead,
}

impl Mistake {
    /// All of them.
    pub const ALL: [Self; 23] = [
        Self::WakeUpLost,
        Self::WatchedAfterTheRead,
        Self::AcknowledgedInMemory,
        Self::FailedPushTaken,
        Self::FailedPushEnds,
        Self::FallbackSkipsASecond,
        Self::NeverAhead,
        Self::ResetUntold,
        Self::HiddenResetUntold,
        Self::LeftViewUntold,
        Self::PartKeepsItems,
        Self::HolderForgotten,
        Self::LeaseEndsByAnyClock,
        Self::StampsGoBack,
        Self::CommitUnsynced,
        Self::PushOmitsDeletions,
        Self::EventNamesTheEnd,
        Self::BodyOutlivesItsHead,
        Self::PageTakenForGone,
        Self::ShowsEverything,
        Self::RenewalMovesOn,
        Self::FailedCommitTaken,
        Self::StartAtTheHead,
    ];
}

#[cfg(feature = "mistakes")]
thread_local! {
    static MADE: std::cell::Cell<Option<Mistake>> = const { std::cell::Cell::new(None) };
}

/// Has a mistake be made on this thread from now on, and no other.
#[cfg(feature = "mistakes")]
pub fn make(mistake: Option<Mistake>) {
    MADE.set(mistake);
}

/// True where the mistake is to be made.
#[cfg(feature = "mistakes")]
pub fn is_made(mistake: Mistake) -> bool {
    MADE.get() == Some(mistake)
}

/// True where the mistake is to be made: nowhere.
#[cfg(not(feature = "mistakes"))]
pub const fn is_made(_: Mistake) -> bool {
    false
}
