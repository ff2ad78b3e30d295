//! Leaving out of an entry what its platform changes without an edit: counters, trackers, footers.
//! Only the content digest sees the result; what is shown keeps its text.

use super::{html, pattern::Pattern};
use crate::{Body, DIGEST_VERSION, Digest, Entry, Text, TextKind, vocabulary::bare};
use serde::Deserialize;
use std::{borrow::Cow, fmt::Write as _, ops::Range};

/// Changes whenever the same scrubbers may leave something else.
const SCRUBBERS_VERSION: u32 = 1;

/// Longer texts are compared as they are, so that no pattern costs more than a poll may.
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// Limit of the matches of one scrubber in one text.
const FINDS_MAX: usize = 1000;

/// One thing that churns.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Raw")]
pub struct Scrub {
    /// The part that is left out.
    pub action: Action,
    /// Reason: what it is and what moves it.
    pub why: String,
}

/// The part that is left out. Patterns are matched against URLs with `&amp;` decoded.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Every place of a text that the pattern matches.
    Cut(Pattern, Vec<Field>),
    /// `img` elements whose `src` matches, in content and summary.
    Images(Pattern),
    /// `a` elements whose `href` matches, what they hold included, in content and summary.
    Anchors(Pattern),
    /// Elements whose start tag matches, what they hold included, in content and summary.
    Blocks(Pattern),
    /// Foreign elements of the entry.
    Element(Foreign),
    /// Query parameters of links; a name that ends in `*` stands for all that begin so.
    Parameters(Vec<String>),
}

/// A text of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Field {
    /// The title.
    Title,
    /// The summary.
    Summary,
    /// The content.
    Content,
}

/// A foreign element.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Foreign {
    /// Its namespace, compared without scheme and last slash.
    pub ns: String,
    /// Its local name.
    pub name: String,
}

/// As it stands in the file: one action, and why.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    cut: Option<Pattern>,
    #[serde(rename = "in")]
    fields: Option<Vec<Field>>,
    images: Option<Pattern>,
    anchors: Option<Pattern>,
    blocks: Option<Pattern>,
    element: Option<Foreign>,
    parameters: Option<Vec<String>>,
    why: String,
}

impl TryFrom<Raw> for Scrub {
    type Error = &'static str;

    fn try_from(raw: Raw) -> Result<Self, &'static str> {
        if raw.fields.is_some() && raw.cut.is_none() {
            return Err("`in` says where to `cut`; the other scrubbers know their places");
        }
        if raw.fields.as_ref().is_some_and(Vec::is_empty) {
            return Err("an empty `in` cuts nowhere; leave it out for content and summary");
        }
        if raw.parameters.as_ref().is_some_and(|names| {
            names.is_empty() || names.iter().any(|name| name.is_empty() || name == "*")
        }) {
            return Err("name the `parameters`, such as [\"utm_*\"]");
        }
        if raw.why.trim().is_empty() {
            return Err("say in `why` what churns");
        }
        let fields = raw.fields.unwrap_or(vec![Field::Content, Field::Summary]);
        let actions = [
            raw.cut.map(|pattern| Action::Cut(pattern, fields)),
            raw.images.map(Action::Images),
            raw.anchors.map(Action::Anchors),
            raw.blocks.map(Action::Blocks),
            raw.element.map(Action::Element),
            raw.parameters.map(Action::Parameters),
        ];
        let mut actions = actions.into_iter().flatten();
        match (actions.next(), actions.next()) {
            (Some(action), None) => Ok(Self {
                action,
                why: raw.why,
            }),
            _ => Err("give exactly one of cut, images, anchors, blocks, element, parameters"),
        }
    }
}

impl Scrub {
    /// True when an entry holds anything that it leaves out.
    pub fn finds(&self, entry: &Entry) -> bool {
        let is_text = |field| {
            text_of(entry, field).is_some_and(|text| self.action.apply(text, field).is_some())
        };
        match &self.action {
            Action::Element(gone) => entry
                .foreign
                .iter()
                .any(|element| gone.is(&element.ns, &element.name)),
            Action::Parameters(names) => entry
                .links
                .iter()
                .any(|link| without(&link.href, names).is_some()),
            _ => [Field::Title, Field::Summary, Field::Content]
                .into_iter()
                .any(is_text),
        }
    }
}

/// The entry as these scrubbers leave it.
pub(super) fn scrub<'e>(scrubbers: &[Scrub], entry: &'e Entry) -> Cow<'e, Entry> {
    let mut left = Cow::Borrowed(entry);
    for Scrub { action, .. } in scrubbers {
        match action {
            Action::Element(gone) => {
                if left
                    .foreign
                    .iter()
                    .any(|element| gone.is(&element.ns, &element.name))
                {
                    left.to_mut()
                        .foreign
                        .retain(|element| !gone.is(&element.ns, &element.name));
                }
            }
            Action::Parameters(names) => {
                for at in 0..left.links.len() {
                    if let Some(href) = without(&left.links[at].href, names) {
                        left.to_mut().links[at].href = href;
                    }
                }
            }
            Action::Cut(..) | Action::Images(_) | Action::Anchors(_) | Action::Blocks(_) => {
                for field in [Field::Title, Field::Summary, Field::Content] {
                    let found = text_of(&left, field).and_then(|text| action.apply(text, field));
                    if let Some(found) = found {
                        set(left.to_mut(), field, found);
                    }
                }
            }
        }
    }
    // What was cut off an end leaves white space there, which no other version has.
    for field in [Field::Title, Field::Summary, Field::Content] {
        let trimmed = text_of(&left, field)
            .filter(|text| text.value.trim().len() < text.value.len())
            .map(|text| text.value.trim().to_owned());
        if let Some(trimmed) = trimmed {
            set(left.to_mut(), field, trimmed);
        }
    }
    left
}

/// Changes with the scrubbers, and with what is made of them.
pub(super) fn version(scrubbers: &[Scrub]) -> u32 {
    let mut text = format!("{DIGEST_VERSION} {SCRUBBERS_VERSION}");
    for Scrub { action, .. } in scrubbers {
        // Writing to a string never fails.
        let _ = write!(text, "\n{action:?}");
    }
    let Digest([a, b, c, d, ..]) = Digest::of(text.as_bytes());
    // Never one of the small numbers that stand for a parser without scrubbers.
    u32::from_le_bytes([a, b, c, d]) | 1 << 31
}

impl Action {
    /// The scrubbed text; `None` when nothing changes.
    fn apply(&self, text: &Text, field: Field) -> Option<String> {
        let value = text.value.as_str();
        let is_markup = text.kind != TextKind::Plain && field != Field::Title;
        let gone = match self {
            _ if value.len() > TEXT_BYTES_MAX => return None,
            Self::Cut(pattern, fields) if fields.contains(&field) => {
                pattern.places(value).take(FINDS_MAX).collect()
            }
            Self::Images(src) if is_markup => html::images(value, |found| src.is_match(found)),
            Self::Anchors(href) if is_markup => html::anchors(value, |found| href.is_match(found)),
            Self::Blocks(tag) if is_markup => html::blocks(value, |found| tag.is_match(found)),
            _ => return None,
        };
        (!gone.is_empty()).then(|| cut(value, &gone))
    }
}

/// A text without these places, which come in order and do not overlap.
fn cut(text: &str, gone: &[Range<usize>]) -> String {
    let mut left = String::with_capacity(text.len());
    let mut from = 0;
    for place in gone {
        left.push_str(&text[from..place.start]);
        from = place.end;
    }
    left.push_str(&text[from..]);
    left
}

impl Foreign {
    pub(super) fn is(&self, ns: &str, name: &str) -> bool {
        self.name == name && bare(&self.ns) == bare(ns)
    }
}

/// A text of an entry that is meant for people: content of other media types is none.
fn text_of(entry: &Entry, field: Field) -> Option<&Text> {
    match field {
        Field::Title => entry.title.as_ref(),
        Field::Summary => entry.summary.as_ref(),
        Field::Content => entry
            .content
            .as_ref()
            .filter(|body| body.media_type.is_none())
            .map(|body| &body.text),
    }
}

fn set(entry: &mut Entry, field: Field, value: String) {
    let text = match field {
        Field::Title => entry.title.as_mut(),
        Field::Summary => entry.summary.as_mut(),
        Field::Content => entry.content.as_mut().map(|Body { text, .. }| text),
    };
    if let Some(text) = text {
        text.value = value;
    }
}

/// A URL without these query parameters; `None` when it has none of them.
fn without(url: &str, names: &[String]) -> Option<String> {
    let (front, rest) = url.split_once('?')?;
    let (query, fragment) = rest
        .split_once('#')
        .map_or((rest, None), |(query, fragment)| (query, Some(fragment)));
    let is_gone = |pair: &&str| {
        let name = pair.split_once('=').map_or(*pair, |(name, _)| name);
        names.iter().any(|gone| match gone.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == gone,
        })
    };
    if !query.split('&').any(|pair| is_gone(&pair)) {
        return None;
    }
    let kept: Vec<&str> = query.split('&').filter(|pair| !is_gone(pair)).collect();
    let query = if kept.is_empty() {
        String::new()
    } else {
        format!("?{}", kept.join("&"))
    };
    let fragment = fragment
        .map(|fragment| format!("#{fragment}"))
        .unwrap_or_default();
    Some(format!("{front}{query}{fragment}"))
}

#[cfg(test)]
mod tests;
