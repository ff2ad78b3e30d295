//! Likeness of an entry and a held item: which witnesses agree, which contradict, and whether that makes them one post; not
//! the choice among several.

use super::witnesses::{Address, Witnesses};

/// Word of one witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// Both sides have it, and it is the same.
    Agrees,
    /// A side has none, or the difference may be none.
    Silent,
    /// Both sides have it, and it differs.
    Contradicts,
}

/// Likeness of an entry and an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Likeness {
    /// The same id but for scheme, `www.`, last slash and session.
    pub(super) has_same_id: bool,
    /// Id or link leads to the same page, maybe of another host.
    pub(super) address: Word,
    pub(super) title: Word,
    pub(super) date: Word,
    /// True when the common date is a midnight: all posts of that day have it.
    pub(super) is_day_only: bool,
    pub(super) text: Word,
}

/// Circumstances in which entries are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Circumstances {
    /// True when the documents show that the feed has changed its scheme: most of what seems new is held.
    pub(super) is_scheme_change: bool,
    /// Seconds by which all dates have moved.
    pub(super) shift_secs: i64,
}

const DAY_SECS: i64 = 86_400;

/// Time zones lie on quarters of an hour, and at most so far from each other.
const ZONE_STEP_SECS: i64 = 900;
const ZONES_APART_SECS: i64 = 14 * 3600;

impl Likeness {
    /// Compares a held item with an entry.
    pub(super) fn of(held: &Witnesses, given: &Witnesses, shift_secs: i64) -> Self {
        let shared = |address: &Address| given.addresses.iter().any(|other| other.path == address.path);
        let address = if held.addresses.iter().any(shared) { Word::Agrees } else { Word::Silent };
        let title = match (&held.title, &given.title) {
            (Some(held), Some(given)) if held == given => Word::Agrees,
            (Some(_), Some(_)) => Word::Contradicts,
            _ => Word::Silent,
        };
        let text = if held.texts.iter().any(|text| given.texts.contains(text)) {
            Word::Agrees
        } else if held.has_text()
            && given.has_text()
            && held.short_text.is_none_or(|short| Some(short) != given.short_text)
        {
            Word::Contradicts
        } else {
            Word::Silent
        };
        let common = held.dates().find(|held| given.dates().any(|given| held + shift_secs == given));
        let date = if common.is_some() {
            Word::Agrees
        } else {
            date(held, given, shift_secs, address == Word::Agrees)
        };
        let is_day_only = common.is_some_and(|at| at % DAY_SECS == 0);
        Self { has_same_id: false, address, title, date, is_day_only, text }
    }

    /// Number of witnesses that agree.
    pub(super) fn agreed(&self) -> usize {
        [self.address, self.title, self.date, self.text].iter().filter(|word| **word == Word::Agrees).count()
    }

    /// True when the two are one post: two witnesses agree and none contradicts. One of them must be the date unless the feed
    /// has changed its scheme: a title, a link and a text may all come again in another post, as those of a weekly thread
    /// do. A text may differ, since posts are edited, but then title and midnight alone are too little.
    pub(super) fn is_one(&self, circumstances: &Circumstances) -> bool {
        if self.date == Word::Contradicts {
            return self.has_same_id && self.title != Word::Contradicts;
        }
        if self.has_same_id {
            return true;
        }
        if self.title == Word::Contradicts {
            // A title is mended now and then. One page at one second is one post, unless another text says otherwise.
            let is_one_page = self.address == Word::Agrees && self.date == Word::Agrees;
            return is_one_page && !self.is_day_only && self.text != Word::Contradicts;
        }
        let may_be_others =
            self.is_day_only && self.address != Word::Agrees && self.text == Word::Contradicts;
        self.agreed() >= 2
            && (circumstances.is_scheme_change || (self.date == Word::Agrees && !may_be_others))
    }
}

/// Word of dates none of which is the same on both sides.
fn date(held: &Witnesses, given: &Witnesses, shift_secs: i64, has_same_address: bool) -> Word {
    let moved = |at: i64| at + shift_secs;
    match (held.published, given.published, held.updated, given.updated) {
        (Some(held), Some(given), _, _) => apart(moved(held), given),
        // An edit moves `updated`, so that it parts two posts only where nothing else says that they are one.
        (None, None, Some(_), Some(_)) if has_same_address => Word::Silent,
        (None, None, Some(held), Some(given)) => apart(moved(held), given),
        // A post is not changed before it is published.
        (Some(published), None, _, Some(updated)) | (None, Some(published), Some(updated), _) => {
            if updated >= published { Word::Silent } else { apart(moved(published), updated) }
        }
        _ => Word::Silent,
    }
}

/// Word of two dates that differ: a date that was cut to its minute is the same, and one that was cut to its day, or written in
/// another time zone, may be.
fn apart(held: i64, given: i64) -> Word {
    let is_cut = |to: i64| {
        (given % to == 0 && held.div_euclid(to) == given.div_euclid(to))
            || (held % to == 0 && held.div_euclid(to) == given.div_euclid(to))
    };
    let apart = (held - given).abs();
    if is_cut(60) {
        Word::Agrees
    } else if is_cut(DAY_SECS) || (apart <= ZONES_APART_SECS && apart % ZONE_STEP_SECS == 0) {
        Word::Silent
    } else {
        Word::Contradicts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_that_were_cut_or_moved_to_another_zone_are_no_contradiction() {
        let at = |at: i64| Witnesses { published: Some(at), ..Witnesses::default() };
        let updated = |at: i64| Witnesses { updated: Some(at), ..Witnesses::default() };
        let both = |published: i64, changed: i64| Witnesses { updated: Some(changed), ..at(published) };
        let check = |held: &Witnesses, given: &Witnesses, expect: Word| {
            assert_eq!(Likeness::of(held, given, 0).date, expect, "{held:?} {given:?}");
        };
        let noon = 1_600_000_000 / DAY_SECS * DAY_SECS + DAY_SECS / 2;
        check(&at(noon + 17), &at(noon + 17), Word::Agrees);
        check(&at(noon + 17), &at(noon), Word::Agrees);
        check(&at(noon + 77), &at(noon), Word::Contradicts);
        check(&at(noon + 17), &at(noon - DAY_SECS / 2), Word::Silent);
        check(&at(noon + 17), &at(noon + 17 + 3600), Word::Silent);
        check(&at(noon + 17), &at(noon + 17 + DAY_SECS), Word::Contradicts);
        check(&at(noon + 17), &Witnesses::default(), Word::Silent);
        check(&at(noon + 17), &updated(noon + 17), Word::Agrees);
        check(&at(noon + 17), &updated(noon + 9999), Word::Silent);
        check(&at(noon + 17), &updated(noon - 9999), Word::Contradicts);
        check(&both(noon + 17, noon + 50), &updated(noon + 50), Word::Agrees);
        check(&updated(noon + 17), &updated(noon + 9999), Word::Contradicts);
        let shifted = Likeness::of(&at(noon), &at(noon + 5000), 5000);
        assert_eq!(shifted.date, Word::Agrees);
    }
}
