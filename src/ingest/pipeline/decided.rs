//! The half of a poll that only computes: from a body to entries, and from what is known to a commit.

use crate::{
    feed::{
        reconcile::{Change, Decisions, Known, Observation, PutKind, reconcile},
        record::FeedRecord,
        schedule::{Failure, PollState, Whose},
        stamp::Stamp,
    },
    ingest::{
        platform::{self, Choice},
        upstream::Fetched,
    },
    store::Commit,
};
use everfeed_adapters::{
    Digest, Head, Hints, NotAFeed, Note, Window,
    platforms::{Detected, Platforms, Profile},
    slice,
};
use std::{collections::HashSet, sync::Arc};

/// A document cut into entries.
pub(super) struct Sliced {
    /// Digest of its bytes; `None` for a part of one.
    pub(super) body: Option<Digest>,
    pub(super) window: Window,
    /// The software that it shows, if the configuration wants to know.
    pub(super) platform: Option<Detected>,
    /// What is known of that.
    pub(super) profile: Option<Arc<Profile>>,
    is_part: bool,
}

impl Sliced {
    /// `None` when the body is the last one again: nothing to parse.
    pub(super) fn new(fetched: &Fetched, last: Option<Digest>) -> Result<Option<Self>, Failure> {
        let body = (!fetched.is_part).then(|| digest(fetched));
        if body.is_some() && body == last {
            return Ok(None);
        }
        let hints = Hints {
            content_type: fetched.content_type.as_deref(),
            content_language: fetched.content_language.as_deref(),
            base_url: Some(&fetched.base_url),
            resource: fetched.resource.as_deref(),
        };
        let window = slice(&fetched.body, &hints).map_err(|error| no_feed(&error))?;
        let (platform, profile) = Default::default();
        Ok(Some(Self { body, window, platform, profile, is_part: fetched.is_part }))
    }

    /// The same, with the platform that it shows or that the configuration names.
    pub(super) fn recognised(
        self,
        choice: &Choice,
        platforms: &Platforms,
        known: Option<&Detected>,
        fetched: &Fetched,
    ) -> Self {
        let platform = choice.of(platforms, known, &self.window, fetched);
        let profile = platform::profile(platforms, platform.as_ref());
        Self { platform, profile, ..self }
    }

    /// Whether it holds neither entries nor deletions.
    pub(super) fn says_nothing(&self) -> bool {
        self.window.entries.is_empty() && self.window.deletions.is_empty()
    }
}

/// What is the same for the same document. Of a resource the media type is part.
fn digest(fetched: &Fetched) -> Digest {
    let body = Digest::of(&fetched.body);
    if fetched.resource.is_none() {
        return body;
    }
    let media_type = fetched.content_type.as_deref().unwrap_or_default();
    Digest::of(format!("resource\n{media_type}\n{body}").as_bytes())
}

/// What a document changes, ready to be committed.
pub(super) struct Decided {
    record: FeedRecord,
    rev: u64,
    decisions: Decisions,
    /// Whether the window stays what it was.
    keeps_window: bool,
    head: Option<Arc<Head>>,
    makes_ready: bool,
    /// What was odd about the document.
    pub(super) remark: Option<String>,
}

impl Decided {
    pub(super) fn new(
        record: FeedRecord,
        known: &Known,
        seen: &Observation,
        sliced: &Sliced,
        notes: Vec<Note>,
        now: Stamp,
    ) -> Self {
        let decisions = reconcile(&record.namespace, known, seen, now);
        let head = &sliced.window.head;
        let speaks_anew = !sliced.is_part && is_said_otherwise(&record.head, head, sliced.profile.as_deref());
        Self {
            rev: known.rev,
            keeps_window: sliced.is_part || decisions.window == known.window,
            head: speaks_anew.then(|| Arc::new(head.clone())),
            makes_ready: !sliced.is_part && !record.is_ready(),
            remark: remark(sliced.window.notes.iter().chain(&notes)),
            record,
            decisions,
        }
    }

    /// A document without any entry after one with some proves nothing, so it changes nothing.
    pub(super) fn emptied(record: FeedRecord, known: &Known) -> Self {
        let remark = format!("the document holds no entries; the one before held {}", known.window.len());
        Self {
            rev: known.rev,
            decisions: Decisions { id_rule: known.id_rule, ..Decisions::default() },
            keeps_window: true,
            head: None,
            makes_ready: false,
            remark: Some(remark),
            record,
        }
    }

    pub(super) fn arrived(&self) -> bool {
        let is_added = |change: &Change| matches!(change, Change::Put(put) if put.kind == PutKind::Added);
        self.decisions.changes.iter().any(is_added)
    }

    /// Whether there is nothing to commit.
    pub(super) fn is_nothing(&self) -> bool {
        self.decisions.changes.is_empty()
            && self.keeps_window
            && self.head.is_none()
            && !self.makes_ready
            && self.decisions.id_rule == self.record.id_rule
    }

    pub(super) fn commit(self, poll: &PollState) -> Commit {
        Commit {
            feed: self.record.no,
            rev: self.rev,
            changes: self.decisions.changes,
            window: (!self.keeps_window).then_some(self.decisions.window),
            head: self.head,
            id_rule: self.decisions.id_rule,
            ready: self.makes_ready || self.record.is_ready(),
            poll: Some(poll.clone()),
        }
    }
}

/// Whether a head says anything but other dates and counts: those churn, and what they and the rhythm mean is in the poll
/// state. So does the id with software that writes today's date into it.
fn is_said_otherwise(old: &Head, new: &Head, profile: Option<&Profile>) -> bool {
    let id_churns = profile.is_some_and(|profile| profile.dates.feed_id_churns);
    let lasting = |head: &Head| {
        let (updated, published, rhythm, paging) = Default::default();
        let id = head.id.clone().filter(|_| !id_churns);
        Head { id, updated, published, rhythm, paging, ..head.clone() }
    };
    lasting(old) != lasting(new)
}

/// Notes told to the operator at most.
const NOTES_MAX: usize = 3;

/// What was odd about a document, in a line.
fn remark<'a>(notes: impl Iterator<Item = &'a Note>) -> Option<String> {
    let mut told: Vec<String> = Vec::new();
    let mut met = HashSet::new();
    for note in notes {
        let text = note.to_string();
        if met.insert(text.clone()) {
            told.push(text);
        }
    }
    let rest = told.len().saturating_sub(NOTES_MAX);
    told.truncate(NOTES_MAX);
    if rest > 0 {
        told.push(format!("and {rest} more"));
    }
    (!told.is_empty()).then(|| told.join("; "))
}

fn no_feed(why: &NotAFeed) -> Failure {
    Failure { whose: Whose::Upstream, text: why.to_string(), status: Some(200), retry_after_secs: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_in_the_id_of_the_feed_says_nothing_with_software_that_writes_one() {
        let head = |id: &str| Head { id: Some(id.into()), ..Head::default() };
        let (old, new) = (head("tag:x,2010-05-07:atom/1"), head("tag:x,2010-05-08:atom/1"));
        let of = |name: &str| {
            is_said_otherwise(&old, &new, Platforms::embedded().get(name).map(|profile| &**profile))
        };
        assert!(of("no such profile") && of("wordpress"));
        assert!(!of("habari"));
    }

    #[test]
    fn remarks_are_few_and_said_once() {
        let notes = [
            Note::Truncated,
            Note::Truncated,
            Note::Mismatched,
            Note::TooManyEntries,
            Note::Other("x".into()),
        ];
        let told = remark(notes.iter()).unwrap();
        assert_eq!(
            told,
            "the document ends early; its last entry was dropped; it is not well-formed and was mended; \
             there are more entries than are read; and 1 more"
        );
        assert_eq!(remark([].iter()), None);
    }
}
