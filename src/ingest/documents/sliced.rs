//! A document cut into entries, and what its silence may prove; not what it changes.

use crate::{
    feed::{
        absence::Coverage,
        head_caps::{NOTE_BYTES_MAX, cap_head},
        part_caps::cut_to,
        schedule::{BodyKind, Failure, FaultKind, Repeat},
        stamp::Stamp,
    },
    ingest::{
        Fetched,
        answer_dates::AnswerDates,
        platform::{self, Choice},
    },
    secret::masked_secrets,
};
use bytes::Bytes;
use everfeed_adapters::{
    Digest, Hints, NotAFeed, Note, PageFeed, SlicedDocument, cross_check_count, moved_to,
    named_feeds,
    platforms::{Conditional, Detected, Platforms, Profile},
    slice,
};
use std::sync::Arc;
use url::Url;

/// A document cut into entries.
pub(in crate::ingest) struct Sliced {
    /// Digest of its bytes; `None` for a part of one.
    pub(in crate::ingest) body: Option<Digest>,
    pub(in crate::ingest) window: SlicedDocument,
    /// Part of the feed that it shows, and so what its silence may prove.
    pub(in crate::ingest) coverage: Coverage,
    /// Reason for partial coverage, for the operator.
    pub(in crate::ingest) partial: Option<&'static str>,
    /// The software that it shows, if the configuration wants to know.
    pub(in crate::ingest) platform: Option<Detected>,
    /// Profile of that software.
    pub(in crate::ingest) profile: Option<Arc<Profile>>,
    /// The document as it came, for another reader to count its entries; `None` of one too large to
    /// be kept for that.
    pub(in crate::ingest) bytes: Option<Bytes>,
    pub(in crate::ingest) content_type: Option<String>,
    /// Change, or none, that the poll before it brought.
    pub(in crate::ingest) previous: Repeat,
    /// Dates by which an old copy is told.
    pub(in crate::ingest) dates: AnswerDates,
    /// True where a deletion in it is only a reason to ask for the page of its item.
    pub(in crate::ingest) only_hints_deletions: bool,
}

impl Sliced {
    /// `None` when the body is the last one again: nothing to parse. `was_feed` is true when the
    /// same URL has answered with a feed before.
    pub(in crate::ingest) fn new(
        fetched: &Fetched,
        last: Option<Digest>,
        was_feed: bool,
        read_at: Stamp,
    ) -> Result<Option<Self>, Failure> {
        let body = (fetched.coverage != Coverage::Delta).then(|| digest(fetched));
        if body.is_some() && body == last {
            return Ok(None);
        }
        let hints = Hints {
            content_type: fetched.content_type.as_deref(),
            content_language: fetched.content_language.as_deref(),
            base_url: Some(&fetched.base_url),
            resource: fetched.resource.as_deref(),
            address: fetched.address.as_deref(),
            read_at_us: i64::try_from(read_at.micros()).ok(),
        };
        let mut window = slice(&fetched.body, &hints).map_err(|error| match error {
            NotAFeed::Moved { to } => Failure::of(FaultKind::SaysMoved { to }),
            NotAFeed::Html { .. } => {
                web_page(&error, &named_feeds(&fetched.body, &hints), was_feed)
            }
            _ => no_feed(&error, was_feed),
        })?;
        cap_head(&mut window);
        let (coverage, partial) = coverage_of(&window, fetched);
        let dates = AnswerDates::of(&fetched.headers, &window.metadata);
        Ok(Some(Self {
            body,
            window,
            coverage,
            partial,
            only_hints_deletions: false,
            bytes: (fetched.body.len() <= CROSS_CHECK_BYTES_MAX).then(|| fetched.body.clone()),
            platform: None,
            profile: None,
            content_type: fetched.content_type.clone(),
            dates,
            // A resource is there to change.
            previous: if fetched.resource.is_some() {
                Repeat::Unchanged
            } else {
                Repeat::Changed
            },
        }))
    }

    /// The same, with the platform that it shows or that the configuration names.
    pub(in crate::ingest) fn recognised(
        self,
        choice: &Choice,
        platforms: &Platforms,
        known: Option<&Detected>,
        fetched: &Fetched,
    ) -> Self {
        let platform = choice.of(platforms, known, &self.window, fetched);
        let profile = platform::profile(platforms, platform.as_ref());
        let of_profile = profile.as_ref().and_then(|profile| {
            let answers_deltas = profile.http.conditional == Conditional::Delta;
            match self.coverage {
                _ if profile.event_log => Some("the software shows events, not what there is"),
                Coverage::Conditional if answers_deltas => {
                    Some("the software answers conditional requests with what is new only")
                }
                _ => None,
            }
        });
        let is_partial = of_profile.is_some() && !self.coverage.is_partial();
        let coverage = if is_partial {
            Coverage::Partial
        } else {
            self.coverage
        };
        Self {
            platform,
            profile,
            coverage,
            partial: self.partial.or(of_profile),
            ..self
        }
    }

    // Limit: a document that is cut at another place each time proves nothing about its end.
    /// The same, as the whole feed, if it is cut short and nothing else is wrong with it: every
    /// document of the feed is, so no longer one is to be had.
    pub(in crate::ingest) fn always_cut(self, asked: Coverage) -> Self {
        let is_other_damage =
            |note: &Note| matches!(note, Note::EntryLost(_) | Note::TooManyEntries);
        let notes = &self.window.notes;
        let is_cut = notes.contains(&Note::Truncated) && !notes.iter().any(is_other_damage);
        if !is_cut {
            return self;
        }
        Self {
            coverage: asked,
            partial: Some("every document ends early; its whole entries count as the feed"),
            ..self
        }
    }

    /// True when answers to conditional requests hide deletions here, so that only unconditional
    /// requests find them.
    pub(in crate::ingest) fn hides_deletions(&self) -> bool {
        self.profile
            .as_deref()
            .is_some_and(platform::hides_deletions)
    }

    /// The address to which it says that the feed has moved, if anybody can be asked there.
    pub(in crate::ingest) fn announces(&self, asked: &str) -> Option<String> {
        let to = moved_to(&self.window.metadata, Some(asked))?;
        let url = Url::parse(&to).ok()?;
        matches!(url.scheme(), "http" | "https").then(|| url.into())
    }

    /// True when it holds neither entries nor deletions.
    pub(in crate::ingest) fn says_nothing(&self) -> bool {
        self.window.entries.is_empty() && self.window.deletions.is_empty()
    }
}

impl Sliced {
    /// Number of entries that another reader finds and we do not: then what seems to be missing may
    /// be our own mistake.
    pub(in crate::ingest) fn overlooked(&self) -> Option<usize> {
        let hints = Hints {
            content_type: self.content_type.as_deref(),
            ..Hints::default()
        };
        let found = cross_check_count(self.bytes.as_ref()?, &hints)?;
        found
            .checked_sub(self.window.entries.len())
            .filter(|more| *more > 0)
    }
}

/// Length of a document, in bytes, up to which another reader counts its entries: a larger one
/// would be in memory several times while what it changes is written.
// Limit: in a longer document an entry that only we overlook counts as missing.
const CROSS_CHECK_BYTES_MAX: usize = 8 << 20;

/// Digest that is the same for the same document. Of a resource the media type is part, and an
/// address that is not its URL.
fn digest(fetched: &Fetched) -> Digest {
    let body = Digest::of(&fetched.body);
    if fetched.resource.is_none() {
        return body;
    }
    let media_type = fetched.content_type.as_deref().unwrap_or_default();
    let mut label = format!("resource\n{media_type}\n{body}");
    if let Some(address) = &fetched.address {
        label.push('\n');
        label.push_str(address);
    }
    Digest::of(label.as_bytes())
}

/// Coverage of a document (POLLING 2.2), with the reason when it is partial. One that was cut,
/// mended, capped or lost an entry may lack what its publisher still shows.
fn coverage_of(window: &SlicedDocument, fetched: &Fetched) -> (Coverage, Option<&'static str>) {
    if fetched.coverage == Coverage::Delta {
        (
            Coverage::Delta,
            Some("the server sent what it takes for new (226)"),
        )
    } else if is_damaged(window) {
        (
            Coverage::Partial,
            Some("the document is cut, mended or lacks an entry"),
        )
    } else {
        (fetched.coverage, None)
    }
}

/// True when a document was cut, mended, capped or lost an entry.
pub(in crate::ingest) fn is_damaged(window: &SlicedDocument) -> bool {
    window.notes.iter().any(|note| {
        matches!(
            note,
            Note::Truncated | Note::Mismatched | Note::EntryLost(_) | Note::TooManyEntries
        )
    })
}

/// Characters of the title and of the URL of a feed that a page names.
const NAMED_CHARS_MAX: usize = 300;

/// The failure of a URL that answers with a web page: which feeds the page names is the remedy.
fn web_page(why: &NotAFeed, feeds: &[PageFeed], was_feed: bool) -> Failure {
    let cut = |text: &str| {
        text.chars()
            .filter(|c| !c.is_control())
            .take(NAMED_CHARS_MAX)
            .collect::<String>()
    };
    let named = feeds.iter().map(|PageFeed { link, .. }| match &link.title {
        Some(title) => format!("{} ({})", cut(&masked_secrets(&link.href)), cut(title)),
        None => cut(&masked_secrets(&link.href)),
    });
    Failure::of(FaultKind::WebPage {
        reason: reason(why),
        feeds: named.collect(),
        was_feed,
    })
}

fn no_feed(why: &NotAFeed, was_feed: bool) -> Failure {
    let kind = match why {
        NotAFeed::Empty => BodyKind::Empty,
        NotAFeed::Json { .. } => BodyKind::Json,
        NotAFeed::OtherXml { .. } | NotAFeed::OtherRdf { .. } => BodyKind::Xml,
        // Of a feed that worked the publisher put a list in its place.
        NotAFeed::Opml if was_feed => BodyKind::Xml,
        NotAFeed::Opml => BodyKind::Opml,
        _ => BodyKind::Other,
    };
    Failure::of(FaultKind::NotAFeed {
        reason: reason(why),
        kind: Some(kind),
    })
}

/// Description of a document that is no feed. It may quote the document.
fn reason(why: &NotAFeed) -> String {
    let mut reason = why.to_string();
    cut_to(&mut reason, NOTE_BYTES_MAX);
    reason
}
