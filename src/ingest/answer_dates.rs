//! Dates that an answer and its document tell of themselves; not what they mean.

use crate::feed::{absence::revival::DocumentDates, stamp::Stamp};
use everfeed_adapters::Metadata;
use http::{
    HeaderMap, HeaderName,
    header::{AGE, DATE, LAST_MODIFIED},
};
use std::time::UNIX_EPOCH;

/// Dates of an answer, as they were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::ingest) struct AnswerDates {
    /// `Date`, microseconds since 1970.
    sent_us: Option<i64>,
    /// `Age`, seconds.
    age_secs: Option<u32>,
    /// `Last-Modified`, likewise.
    modified_us: Option<i64>,
    /// The feed's own date of its last change.
    updated_us: Option<i64>,
}

impl AnswerDates {
    /// Those of these headers and of the head of this document.
    pub(in crate::ingest) fn of(headers: &HeaderMap, metadata: &Metadata) -> Self {
        let date = |name: HeaderName| {
            let at = httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok()?;
            i64::try_from(at.duration_since(UNIX_EPOCH).ok()?.as_micros()).ok()
        };
        let age = headers.get(AGE).and_then(|age| age.to_str().ok());
        Self {
            sent_us: date(DATE),
            age_secs: age.and_then(|age| age.trim().parse().ok()),
            modified_us: date(LAST_MODIFIED),
            updated_us: metadata.updated.as_ref().and_then(|date| date.at_us),
        }
    }

    /// What they say of the document, read now. A cache keeps the `Date` of the origin (RFC 9111),
    /// or writes its own and says by `Age` how much older the answer is.
    pub(in crate::ingest) fn at(&self, now: Stamp) -> DocumentDates {
        let now_us = i64::try_from(now.micros()).unwrap_or(i64::MAX);
        let by_age = self
            .age_secs
            .filter(|age| *age > 0)
            .map(|age| now_us - i64::from(age) * 1_000_000);
        let made_us = match (self.sent_us, by_age) {
            (Some(sent), Some(by_age)) => Some(sent.min(by_age)),
            (sent, by_age) => sent.or(by_age),
        };
        DocumentDates {
            made_us,
            modified_us: self.modified_us,
            updated_us: self.updated_us,
        }
    }
}
