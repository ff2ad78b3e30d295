//! Parts: feeds made of those items of one feed that a filter shows, for readers who see no more of
//! it. Which part is edited when filters change, and which one is new; not how a part is filled.

use super::{filter::Filter, record::FeedNo};

/// A part as the store knows it, beside the items that it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartRecord {
    /// The items of its feed that it shows.
    pub filter: Filter,
    /// Mark of those who read it.
    pub audience: String,
    /// True once it has had another filter: its tombstones tell of items that this one hides, and
    /// whoever did not see them must not learn of them.
    pub is_edited: bool,
}

/// A part that a feed is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedPart {
    /// The items of the feed that it shows.
    pub filter: Filter,
    /// Mark of those who read it: equal marks mean the same readers.
    pub audience: String,
}

/// The origin of a part that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartChoice {
    /// It is there already.
    Kept(FeedNo),
    /// The same readers have it there with another filter.
    Edited(FeedNo),
    /// It is made.
    New,
}

impl PartChoice {
    /// The number of a part that is there.
    pub fn number(self) -> Option<FeedNo> {
        match self {
            Self::Kept(no) | Self::Edited(no) => Some(no),
            Self::New => None,
        }
    }
}

/// The origins of wanted parts, in their order. A part that is held and not chosen is used no more.
pub fn choose(held: &[(FeedNo, PartRecord)], wanted: &[WantedPart]) -> Vec<PartChoice> {
    let mut free: Vec<&(FeedNo, PartRecord)> = held.iter().collect();
    let mut choices = vec![PartChoice::New; wanted.len()];
    for (choice, part) in choices.iter_mut().zip(wanted) {
        let is_it = |held: &PartRecord| {
            held.filter == part.filter && (held.audience == part.audience || !held.is_edited)
        };
        if let Some(at) = free.iter().position(|(_, held)| is_it(held)) {
            *choice = PartChoice::Kept(free.swap_remove(at).0);
        }
    }
    for (choice, part) in choices.iter_mut().zip(wanted) {
        if *choice != PartChoice::New {
            continue;
        }
        if let Some(at) = free
            .iter()
            .position(|(_, held)| held.audience == part.audience)
        {
            *choice = PartChoice::Edited(free.swap_remove(at).0);
        }
    }
    choices
}

/// Numbers of the parts that nobody wants any more.
pub fn unused(held: &[(FeedNo, PartRecord)], choices: &[PartChoice]) -> Vec<FeedNo> {
    let numbers = held.iter().map(|(no, _)| *no);
    let is_used = |no| choices.iter().any(|choice| choice.number() == Some(no));
    numbers.filter(|no| !is_used(*no)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(words: &str) -> Filter {
        Filter::of(&[("q", words)]).unwrap()
    }

    fn held(no: u32, words: &str, audience: &str, is_edited: bool) -> (FeedNo, PartRecord) {
        let part = PartRecord {
            filter: filter(words),
            audience: audience.to_owned(),
            is_edited,
        };
        (FeedNo(no), part)
    }

    fn check(held: &[(FeedNo, PartRecord)], wanted: &[(&str, &str)], expect: &[PartChoice]) {
        let wanted: Vec<WantedPart> = wanted
            .iter()
            .map(|(words, audience)| WantedPart {
                filter: filter(words),
                audience: (*audience).to_owned(),
            })
            .collect();
        assert_eq!(choose(held, &wanted), expect);
    }

    #[test]
    fn a_part_goes_by_its_filter_and_is_edited_for_its_readers_alone() {
        use PartChoice::{Edited, Kept, New};
        let two = [held(7, "red", "bob", false), held(8, "blue", "eve", false)];
        check(
            &two,
            &[("blue", "eve"), ("red", "bob")],
            &[Kept(FeedNo(8)), Kept(FeedNo(7))],
        );
        check(&two, &[("green", "bob")], &[Edited(FeedNo(7))]);
        check(&two, &[("green", "carol")], &[New]);
        check(&two, &[("red", "bob carol")], &[Kept(FeedNo(7))]);
        check(
            &two,
            &[("blue", "bob"), ("red", "eve")],
            &[Kept(FeedNo(8)), Kept(FeedNo(7))],
        );
        // What it held before is for those who saw it.
        let edited = [held(7, "red", "bob", true)];
        check(&edited, &[("red", "bob")], &[Kept(FeedNo(7))]);
        check(&edited, &[("red", "bob carol")], &[New]);
        check(&[], &[("red", "bob")], &[New]);
    }
}
