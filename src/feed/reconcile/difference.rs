//! Difference of two forms of one entry: which of its parts differ, and which stretches of words of
//! each; not what a difference means.

use super::figures::{NumberContext, NumberMove, TokenRange, is_number, number_move};
use crate::longest_rise::longest_rise;
use everfeed_adapters::{
    Digest, Entry, Key,
    platforms::{Profile, content_digest},
};
use std::{collections::HashMap, fmt::Write as _, ops::Range};

/// Part of an entry that may differ by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryPart {
    /// The title.
    #[default]
    Title,
    /// The summary.
    Summary,
    /// The content.
    Content,
    /// Its links.
    Links,
    /// The files that are attached to it.
    Files,
    /// Authors and contributors.
    People,
    /// Its categories.
    Categories,
    /// Its dates, rights and language, and markup of other vocabularies.
    Other,
}

/// Difference in one part of an entry.
#[derive(Clone, Debug)]
pub(super) struct PartDifference {
    /// The part.
    pub(super) part: EntryPart,
    /// Words that both forms have in common.
    stays: usize,
    /// Words of the longer side of what differs.
    moves: usize,
    /// Words that went and words that came, without numbers.
    went: usize,
    came: usize,
    /// The stretches, in order; none overlaps or touches another.
    pub(super) stretches: Vec<Stretch>,
}

/// A stretch of a part that differs, between two that do not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Its tokens in the held form, maybe none.
    pub(super) held: Range<u32>,
    /// Digest of what stands there now.
    pub(super) given: Digest,
    /// The kind of what moved there.
    pub(super) kind: StretchKind,
}

/// Nature of a stretch that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StretchKind {
    /// Words came, or words went: an addition takes nothing back.
    OneSided,
    /// Words went for others.
    Replaced,
    /// A number is another one.
    Number(NumberMove),
}

/// Tokens of a part that are compared at most: a short novel. What is longer differs as a whole.
const TOKENS_MAX: usize = 50_000;

/// Product of the tokens of two stretches that are compared each with each at most: two screens of
/// text. Longer ones are parted at the words that each has once.
const CELLS_MAX: usize = 40_000;

/// Words that go at most where a part grows ("5 minutes ago", "by Anna"), and words that come besides
/// those at least.
const GROWTH_WENT_MAX: usize = 2;
const GROWTH_CAME_MIN: usize = 4;

const PARTS: [EntryPart; 8] = [
    EntryPart::Title,
    EntryPart::Summary,
    EntryPart::Content,
    EntryPart::Links,
    EntryPart::Files,
    EntryPart::People,
    EntryPart::Categories,
    EntryPart::Other,
];

// Decides: In which parts and stretches do two forms of an entry differ?
/// The parts in which two forms of an entry differ, by what counts as content. `None` when nothing
/// can be said of a part that differs.
pub(super) fn difference(
    held: &Entry,
    given: &Entry,
    profile: Option<&Profile>,
) -> Option<Vec<PartDifference>> {
    let scrubbed = |entry| profile.map_or(std::borrow::Cow::Borrowed(entry), |by| by.scrub(entry));
    let (held, given) = (scrubbed(held), scrubbed(given));
    let mut found = Vec::new();
    for part in PARTS {
        if digest_of(part, &held) == digest_of(part, &given) {
            continue;
        }
        let (held, given) = (written(part, &held), written(part, &given));
        found.push(compared(part, &held, &given)?);
    }
    (!found.is_empty()).then_some(found)
}

impl PartDifference {
    /// True when so much stays that a stretch of the part moves, and not the part: more than a third,
    /// of a title, which is what an entry is called, more than a half.
    pub(super) fn is_stretch(&self) -> bool {
        if self.part == EntryPart::Title {
            self.stays > self.moves
        } else {
            self.stays * 2 > self.moves
        }
    }

    /// True when the part only grew, as a report does: words came, and hardly any went.
    pub(super) fn is_growth(&self) -> bool {
        self.is_stretch()
            && self.went <= GROWTH_WENT_MAX
            && self.came >= self.went + GROWTH_CAME_MIN
    }
}

/// Digest of one part alone, which leaves out what never counts.
fn digest_of(part: EntryPart, entry: &Entry) -> Digest {
    let only = match part {
        EntryPart::Title => Entry {
            title: entry.title.clone(),
            ..Entry::default()
        },
        EntryPart::Summary => Entry {
            summary: entry.summary.clone(),
            ..Entry::default()
        },
        EntryPart::Content => Entry {
            content: entry.content.clone(),
            ..Entry::default()
        },
        EntryPart::Links => Entry {
            links: entry.links.clone(),
            ..Entry::default()
        },
        EntryPart::Files => Entry {
            enclosures: entry.enclosures.clone(),
            ..Entry::default()
        },
        EntryPart::People => Entry {
            authors: entry.authors.clone(),
            contributors: entry.contributors.clone(),
            ..Entry::default()
        },
        EntryPart::Categories => Entry {
            categories: entry.categories.clone(),
            ..Entry::default()
        },
        EntryPart::Other => Entry {
            published: entry.published.clone(),
            rights: entry.rights.clone(),
            language: entry.language.clone(),
            foreign: entry.foreign.clone(),
            ..Entry::default()
        },
    };
    content_digest(&only, None)
}

/// A part as words, to be compared.
fn written(part: EntryPart, entry: &Entry) -> String {
    let mut text = String::new();
    let of = |text: Option<&everfeed_adapters::Text>| text.map(|text| text.value.clone());
    match part {
        EntryPart::Title => text = of(entry.title.as_ref()).unwrap_or_default(),
        EntryPart::Summary => text = of(entry.summary.as_ref()).unwrap_or_default(),
        EntryPart::Content => {
            text = of(entry.content.as_ref().map(|body| &body.text)).unwrap_or_default();
            let src = entry.content.as_ref().and_then(|body| body.src.as_deref());
            text.extend(src.map(|src| format!("\n{src}")));
        }
        EntryPart::Links => {
            for link in &entry.links {
                let _ = writeln!(
                    text,
                    "{} {}",
                    link.rel,
                    Key::Link(link.href.clone()).stripped()
                );
            }
        }
        EntryPart::Files => {
            for file in &entry.enclosures {
                let _ = writeln!(text, "{file:?}");
            }
        }
        EntryPart::People => {
            for person in entry.authors.iter().chain(&entry.contributors) {
                let _ = writeln!(text, "{person:?}");
            }
        }
        EntryPart::Categories => {
            for category in &entry.categories {
                let _ = writeln!(text, "{category:?}");
            }
        }
        EntryPart::Other => {
            let Entry {
                published,
                rights,
                language,
                foreign,
                ..
            } = entry;
            let published = published.as_ref().map(|date| &date.raw);
            let _ = write!(text, "{published:?} {rights:?} {language:?} {foreign:?}");
        }
    }
    text
}

/// The words of a text, and its other characters one by one; white space is none.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = if first.is_alphanumeric() {
            rest.find(|c: char| !c.is_alphanumeric())
                .unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        tokens.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    tokens
}

fn compared(part: EntryPart, held: &str, given: &str) -> Option<PartDifference> {
    let (old, new) = (tokens(held), tokens(given));
    if old.len().max(new.len()) > TOKENS_MAX {
        return None;
    }
    let mut gaps = Vec::new();
    part_at_common(&old, &new, 0..old.len(), 0..new.len(), &mut gaps);
    let words = |tokens: &[&str]| tokens.iter().filter(|token| is_word(token)).count();
    let names = |tokens: &[&str]| {
        let is_name = |token: &&&str| is_word(token) && !is_number(token);
        tokens.iter().filter(is_name).count()
    };
    let place = number_place(part);
    let (mut moves, mut gone) = (0, 0);
    let mut found = PartDifference {
        part,
        stays: 0,
        moves: 0,
        went: 0,
        came: 0,
        stretches: Vec::with_capacity(gaps.len()),
    };
    for (place_before, place_after) in gaps {
        let before = TokenRange {
            tokens: &old,
            place: place_before,
        };
        let after = TokenRange {
            tokens: &new,
            place: place_after,
        };
        let (was, now) = (before.inside(), after.inside());
        moves += words(was).max(words(now));
        gone += words(was);
        found.went += names(was);
        found.came += names(now);
        let number = place.and_then(|place| number_move(&before, &after, place));
        let is_markup = place.is_none() || before.is_in_tag();
        // Of a number that counts, all of it is followed: its first digits last longer.
        let (before, after) = match number {
            Some(NumberMove::Rise | NumberMove::Fall) => {
                (before.whole_number(), after.whole_number())
            }
            _ => (before, after),
        };
        let now = after.inside();
        let kind = match number {
            Some(number) => StretchKind::Number(number),
            None if names(was) > 0 && names(now) > 0 => StretchKind::Replaced,
            // Numbers of a tag are names, and so are those that nothing else came with.
            None if words(was) > 0
                && words(now) > 0
                && (is_markup || names(was) + names(now) == 0) =>
            {
                StretchKind::Replaced
            }
            None => StretchKind::OneSided,
        };
        let held = u32::try_from(before.place.start).ok()?..u32::try_from(before.place.end).ok()?;
        found.stretches.pop_if(|last| last.held == held);
        found.stretches.push(Stretch {
            held,
            given: Digest::of(now.join(" ").as_bytes()),
            kind,
        });
    }
    if found.stretches.is_empty() {
        // White space alone differs.
        found.stretches.push(Stretch {
            held: 0..0,
            given: Digest::of(given.as_bytes()),
            kind: StretchKind::Replaced,
        });
    }
    (found.stays, found.moves) = (words(&old) - gone, moves);
    Some(found)
}

/// Place of the numbers of a part; `None` where they are names.
fn number_place(part: EntryPart) -> Option<NumberContext> {
    match part {
        EntryPart::Title => Some(NumberContext::Title),
        EntryPart::Summary | EntryPart::Content => Some(NumberContext::Text),
        EntryPart::Other => Some(NumberContext::Foreign),
        EntryPart::Links | EntryPart::Files | EntryPart::People | EntryPart::Categories => None,
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(char::is_alphanumeric)
}

/// The stretches of two token lists that have no token in common at their places.
fn part_at_common(
    old: &[&str],
    new: &[&str],
    of: Range<usize>,
    is: Range<usize>,
    gaps: &mut Vec<(Range<usize>, Range<usize>)>,
) {
    let (a, b) = (&old[of.clone()], &new[is.clone()]);
    let head = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (rest_a, rest_b) = (&a[head..], &b[head..]);
    let ends = rest_a.iter().rev().zip(rest_b.iter().rev());
    let tail = ends.take_while(|(a, b)| a == b).count();
    let of = of.start + head..of.end - tail;
    let is = is.start + head..is.end - tail;
    if of.is_empty() && is.is_empty() {
        return;
    }
    let common = if of.len() * is.len() <= CELLS_MAX {
        longest_common(&old[of.clone()], &new[is.clone()])
    } else {
        once_in_each(&old[of.clone()], &new[is.clone()])
    };
    let is_fine = of.len() * is.len() <= CELLS_MAX;
    if common.is_empty() {
        gaps.push((of, is));
        return;
    }
    let (mut at, mut to) = (of.start, is.start);
    let end = (of.end - of.start, is.end - is.start);
    for (a, b) in common.into_iter().chain([end]) {
        let (a, b) = (of.start + a, is.start + b);
        if is_fine {
            if at < a || to < b {
                gaps.push((at..a, to..b));
            }
        } else {
            part_at_common(old, new, at..a, to..b, gaps);
        }
        (at, to) = (a + 1, b + 1);
    }
}

/// The longest common subsequence of two short lists, as pairs of places.
fn longest_common(a: &[&str], b: &[&str]) -> Vec<(usize, usize)> {
    let width = b.len() + 1;
    let mut longest = vec![0_u16; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i * width + j] = if a[i] == b[j] {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    while i < a.len() && j < b.len() {
        if a[i] == b[j] {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

/// Tokens that each of two lists has once, in the longest common order, as pairs of places.
fn once_in_each(a: &[&str], b: &[&str]) -> Vec<(usize, usize)> {
    let mut times: HashMap<&str, (usize, usize, usize, usize)> = HashMap::new();
    for (at, token) in a.iter().enumerate() {
        let row = times.entry(token).or_default();
        (row.0, row.2) = (row.0 + 1, at);
    }
    for (at, token) in b.iter().enumerate() {
        if let Some(row) = times.get_mut(token) {
            (row.1, row.3) = (row.1 + 1, at);
        }
    }
    let once = times.into_values().filter(|row| (row.0, row.1) == (1, 1));
    let mut pairs: Vec<(usize, usize)> = once.map(|row| (row.2, row.3)).collect();
    pairs.sort_unstable();
    let places: Vec<usize> = pairs.iter().map(|(_, place)| *place).collect();
    let rise = longest_rise(&places);
    rise.into_iter().map(|at| pairs[at]).collect()
}
