//! Pinned ends: the end of a document stays where it is while new items push out those before it
//! (POLLING 2.3, step 7): two posts pinned to the end, or the newest of several lists put together.
//! Every post that rolls off there is missing from inside, and looks deleted to documents for ever;
//! only its own page tells.

/// Count of recent documents in which a feed lost from inside what others lose at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pinned(pub u8);

/// From then on documents prove nothing (POLLING 2.3: three times).
const ON_MIN: u8 = 3;

/// Beyond that nothing is counted, so that a feed whose pins are taken off is believed again after
/// so many posts that roll off at its end, less [`ON_MIN`].
const COUNT_MAX: u8 = 12;

impl Pinned {
    /// After a document: as many posts are `new`, none of which was known before, as are missed
    /// anew from `inside`, and so many from the end.
    pub(super) fn after(self, new: usize, inside: usize, end: usize) -> Self {
        if new == 0 {
            return self;
        }
        if end > 0 {
            return Self(self.0.saturating_sub(1));
        }
        if new == inside {
            return Self((self.0 + 1).min(COUNT_MAX));
        }
        self
    }

    pub(super) fn is_on(self) -> bool {
        self.0 >= ON_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_times_make_it_so_and_as_many_at_the_end_unmake_it() {
        let twice = Pinned::default().after(1, 1, 0).after(2, 2, 0);
        assert!(!twice.is_on());
        assert!(
            !twice.after(0, 1, 0).is_on(),
            "a deletion brings nothing new"
        );
        assert!(
            !twice.after(1, 2, 0).is_on() && !twice.after(2, 1, 0).is_on(),
            "not as many as came"
        );
        assert!(!twice.after(1, 1, 1).is_on(), "something rolled off");
        let on = twice.after(1, 1, 0);
        assert!(on.is_on() && !on.after(1, 0, 1).is_on());
        let long = (0..100).fold(on, |sticky, _| sticky.after(1, 1, 0));
        let after = |times: usize| (0..times).fold(long, |sticky, _| sticky.after(1, 0, 1));
        assert!(after(9).is_on() && !after(10).is_on());
    }
}
