//! Likeness of an entry and a held item: which witnesses agree, which contradict, and whether that
//! makes them one post; not the choice among several.

use crate::item::{KeyHash, Witnesses};

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
    /// True when the date is silent because it is that of the last change, which is another.
    pub(super) is_dated_anew: bool,
    /// True when the common date is a midnight: all posts of that day have it.
    pub(super) is_day_only: bool,
    pub(super) text: Word,
}

/// Evidence that a feed has changed its scheme of ids, links or dates: most of what seems new is
/// held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemeChange {
    Shown,
    /// All dates were given anew, too, in the order of the old ones.
    ShownWithNewDates,
    NotShown,
}

const DAY_SECS: i64 = 86_400;

/// Time zones lie on quarters of an hour, and at most so far from each other.
const ZONE_STEP_SECS: i64 = 900;
const ZONES_APART_SECS: i64 = 14 * 3600;

impl Likeness {
    /// Compares a held item with an entry.
    pub(super) fn of(held: &Witnesses, given: &Witnesses, shift_secs: i64) -> Self {
        let is_shared = |address: &KeyHash| given.addresses.contains(address);
        let address = if held.addresses.iter().any(is_shared) {
            Word::Agrees
        } else {
            Word::Silent
        };
        let title = match (&held.title, &given.title) {
            (Some(held), Some(given)) if held == given => Word::Agrees,
            (Some(_), Some(_)) => Word::Contradicts,
            _ => Word::Silent,
        };
        let text = if held.texts.iter().any(|text| given.texts.contains(text)) {
            Word::Agrees
        } else if held.has_text()
            && given.has_text()
            && held
                .short_text
                .is_none_or(|short| Some(short) != given.short_text)
        {
            Word::Contradicts
        } else {
            Word::Silent
        };
        let common = held
            .dates()
            .find(|held| given.dates().any(|given| held + shift_secs == given));
        let date = if common.is_some() {
            Word::Agrees
        } else {
            date(held, given, shift_secs, address == Word::Agrees)
        };
        let is_day_only = common.is_some_and(|at| at % DAY_SECS == 0);
        let changed = (held.published.is_none() && given.published.is_none())
            .then(|| held.updated.zip(given.updated))
            .flatten();
        let is_other =
            |(held, given): (i64, i64)| apart(held + shift_secs, given) == Word::Contradicts;
        let is_dated_anew = date == Word::Silent && changed.is_some_and(is_other);
        Self {
            has_same_id: false,
            address,
            title,
            date,
            is_dated_anew,
            is_day_only,
            text,
        }
    }

    /// Number of witnesses that agree.
    pub(super) fn agreed(&self) -> usize {
        [self.address, self.title, self.date, self.text]
            .iter()
            .filter(|word| **word == Word::Agrees)
            .count()
    }

    /// Number of title, text and date that contradict.
    fn contradicting(&self) -> usize {
        let words = [self.title, self.text, self.date];
        words
            .iter()
            .filter(|word| **word == Word::Contradicts)
            .count()
    }

    /// True when neither title nor text agrees, and two of title, text and date contradict.
    pub(super) fn has_other_words(&self) -> bool {
        self.title != Word::Agrees && self.text != Word::Agrees && self.contradicting() >= 2
    }

    /// True when no date agrees, either.
    pub(super) fn is_other(&self) -> bool {
        self.has_other_words() && self.date != Word::Agrees
    }

    /// True when title and address are others, and neither text nor date says that it is one post:
    /// all posts of a day may have one date.
    pub(super) fn is_other_elsewhere(&self) -> bool {
        let is_of_date = self.date == Word::Agrees && !self.is_day_only;
        self.title == Word::Contradicts && self.text != Word::Agrees && !is_of_date
    }

    // Decides: Are an unknown entry and a held item one post?
    /// True when the two are one post: two witnesses agree and none contradicts. One of them must
    /// be the date unless the feed has changed its scheme: a title, a link and a text may all come
    /// again in another post, as those of a weekly thread do. A text may differ, since posts are
    /// edited, but then title and midnight alone are too little. Where all dates were given anew,
    /// they say nothing, and the text must not say otherwise unless title and address agree.
    pub(super) fn is_one(&self, scheme_change: SchemeChange) -> bool {
        if scheme_change == SchemeChange::ShownWithNewDates && self.date != Word::Agrees {
            let agreed = self.agreed() >= 2 || self.has_same_id;
            // A site that was built again has its posts at their addresses, in another form.
            let is_page = self.address == Word::Agrees && self.title == Word::Agrees;
            let has_text = self.text != Word::Contradicts || is_page;
            return agreed && self.title != Word::Contradicts && has_text;
        }
        if self.date == Word::Contradicts {
            return self.has_same_id && self.title != Word::Contradicts;
        }
        if self.has_same_id {
            return true;
        }
        if self.title == Word::Contradicts {
            // Title and text are revised now and then. One page at one second is one post.
            let is_one_page = self.address == Word::Agrees && self.date == Word::Agrees;
            return is_one_page && !self.is_day_only;
        }
        let may_be_others =
            self.is_day_only && self.address != Word::Agrees && self.text == Word::Contradicts;
        self.agreed() >= 2
            && (scheme_change != SchemeChange::NotShown
                || (self.date == Word::Agrees && !may_be_others))
    }
}

/// Word of dates none of which is the same on both sides.
fn date(held: &Witnesses, given: &Witnesses, shift_secs: i64, has_same_address: bool) -> Word {
    let moved = |at: i64| at + shift_secs;
    match (held.published, given.published, held.updated, given.updated) {
        (Some(held), Some(given), _, _) => apart(moved(held), given),
        // An edit moves `updated`, so that it parts two posts only where nothing else says that
        // they are one.
        (None, None, Some(_), Some(_)) if has_same_address => Word::Silent,
        (None, None, Some(held), Some(given)) => apart(moved(held), given),
        // A post is not changed before it is published.
        (Some(published), None, _, Some(updated)) | (None, Some(published), Some(updated), _) => {
            if updated >= published {
                Word::Silent
            } else {
                apart(moved(published), updated)
            }
        }
        _ => Word::Silent,
    }
}

/// Word of two dates that differ: a date that was cut to its minute is the same, and one that was
/// cut to its day, or written in another time zone, may be.
pub(super) fn apart(held: i64, given: i64) -> Word {
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
    use everfeed_adapters::{Body, Date, Entry, Link, Text};

    /// A post: id, path of its link, title, seconds, text.
    fn post(id: &str, path: &str, title: &str, secs: i64, text: &str) -> Witnesses {
        let href = format!("http://blog.example{path}");
        let date = Date {
            raw: secs.to_string(),
            at_us: Some(secs * 1_000_000),
        };
        Witnesses::of(&Entry {
            id: Some(id.into()),
            links: vec![Link {
                href,
                rel: "alternate".into(),
                ..Link::default()
            }],
            title: (!title.is_empty()).then(|| Text::plain(title)),
            published: (secs > 0).then_some(date),
            content: (!text.is_empty()).then(|| Body {
                text: Text::html(text),
                ..Body::default()
            }),
            ..Entry::default()
        })
    }

    /// Two entries under different ids, and if they are one post, at any time and under a change of
    /// scheme.
    fn check(what: &str, held: &Witnesses, given: &Witnesses, expect: [bool; 2]) {
        let likeness = Likeness::of(held, given, 0);
        let found =
            [SchemeChange::NotShown, SchemeChange::Shown].map(|change| likeness.is_one(change));
        assert_eq!(found, expect, "{what}: {likeness:?}");
    }

    #[test]
    fn two_witnesses_must_agree_and_none_may_contradict() {
        const AT: i64 = 1_600_000_001;
        const WORDS: &str = "<p>Quite enough words to tell it.</p>";
        const OTHER: &str = "<p>Words of which none is the same.</p>";
        let held = post("a", "/a", "A title", AT, WORDS);
        let (one, only_then, never) = ([true, true], [false, true], [false, false]);
        check(
            "all but the id",
            &held,
            &post("b", "/a", "A title", AT, WORDS),
            one,
        );
        check(
            "title, date, text",
            &held,
            &post("b", "/b", "A title", AT, WORDS),
            one,
        );
        check(
            "title, date",
            &held,
            &post("b", "/b", "A title", AT, OTHER),
            one,
        );
        check(
            "title, date, no text",
            &held,
            &post("b", "/b", "A title", AT, ""),
            one,
        );
        check("link, date", &held, &post("b", "/a", "", AT, OTHER), one);
        check("date, text", &held, &post("b", "/b", "", AT, WORDS), one);
        check(
            "link, date, a mended title",
            &held,
            &post("b", "/a", "The title", AT, WORDS),
            one,
        );
        check(
            "link, date, all words new",
            &held,
            &post("b", "/a", "The title", AT, OTHER),
            one,
        );
        check(
            "title, text, no date",
            &held,
            &post("b", "/b", "A title", 0, WORDS),
            only_then,
        );
        check(
            "title, link, no date",
            &held,
            &post("b", "/a", "A title", 0, ""),
            only_then,
        );
        check(
            "title, text, another zone",
            &held,
            &post("b", "/b", "A title", AT + 7200, WORDS),
            only_then,
        );
        check(
            "a weekly thread",
            &held,
            &post("b", "/b", "A title", AT + 604_800, WORDS),
            never,
        );
        check(
            "published again",
            &held,
            &post("b", "/a", "A title", AT + 5000, WORDS),
            never,
        );
        check(
            "only the title",
            &held,
            &post("b", "/b", "A title", 0, ""),
            never,
        );
        check("only the date", &held, &post("b", "/b", "", AT, ""), never);
        check(
            "only the text",
            &held,
            &post("b", "/b", "", 0, WORDS),
            never,
        );
        check("only the link", &held, &post("b", "/a", "", 0, ""), never);
        check(
            "one text under two titles",
            &held,
            &post("b", "/b", "The title", AT, WORDS),
            never,
        );

        let midnight = AT / DAY_SECS * DAY_SECS;
        let held = post("a", "/a", "Photo", midnight, "<img src=\"/a.jpg\">");
        let other = post("b", "/b", "Photo", midnight, "<img src=\"/b.jpg\">");
        check("two photos of a day", &held, &other, only_then);
        let (a, b) = (
            post("a", "/x", "See a", midnight, WORDS),
            post("b", "/x", "See b", midnight, WORDS),
        );
        check("two links of a day", &a, &b, never);
    }

    #[test]
    fn dates_that_were_cut_or_moved_to_another_zone_are_no_contradiction() {
        let at = |at: i64| Witnesses {
            published: Some(at),
            ..Witnesses::default()
        };
        let updated = |at: i64| Witnesses {
            updated: Some(at),
            ..Witnesses::default()
        };
        let both = |published: i64, changed: i64| Witnesses {
            updated: Some(changed),
            ..at(published)
        };
        let check = |held: &Witnesses, given: &Witnesses, expect: Word| {
            assert_eq!(
                Likeness::of(held, given, 0).date,
                expect,
                "{held:?} {given:?}"
            );
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
        check(
            &both(noon + 17, noon + 50),
            &updated(noon + 50),
            Word::Agrees,
        );
        check(
            &updated(noon + 17),
            &updated(noon + 9999),
            Word::Contradicts,
        );
        let shifted = Likeness::of(&at(noon), &at(noon + 5000), 5000);
        assert_eq!(shifted.date, Word::Agrees);
    }
}
