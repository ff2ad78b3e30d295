//! Deliberate mistakes, of which one at a time is made in a world: each must be found. Here are those
//! of consumers; those of everfeed are behind its feature `mistakes`.

use std::cell::Cell;

thread_local! {
    static CONSUMER: Cell<Option<ConsumerMistake>> = const { Cell::new(None) };
}

/// A mistake of a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConsumerMistake {
    /// It keeps what it did not meet when it read anew.
    NoSweep,
    /// It keeps the items of another part.
    ResetUnheard,
    /// It saves its cursor before the items of the page.
    CursorFirst,
    /// It confirms a push whose pull failed.
    ConfirmsUnread,
}

impl ConsumerMistake {
    pub(crate) const ALL: [Self; 4] = [
        Self::NoSweep,
        Self::ResetUnheard,
        Self::CursorFirst,
        Self::ConfirmsUnread,
    ];
}

/// True where consumers on this thread make the mistake.
pub(crate) fn made(mistake: ConsumerMistake) -> bool {
    CONSUMER.get() == Some(mistake)
}

/// Has consumers on this thread make a mistake from now on.
pub(crate) fn make(mistake: Option<ConsumerMistake>) {
    CONSUMER.set(mistake);
}
