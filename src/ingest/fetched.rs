//! A document as it came over the wire, and what came with it; not how it was asked for.

use crate::{
    feed::{absence::Coverage, schedule::Answer},
    layers::BodyMemory,
};
use bytes::Bytes;
use http::HeaderMap;

/// A body and what came with it.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The answer's headers, as far as the schedule needs them.
    pub answer: Answer,
    /// The document, inflated.
    pub body: Bytes,
    /// `Content-Type`, if it is text.
    pub content_type: Option<String>,
    /// `Content-Language`, if it is text.
    pub content_language: Option<String>,
    /// All headers of the answer: some platforms are recognised by them.
    pub headers: Box<HeaderMap>,
    /// The URL that answered, after redirects.
    pub base_url: String,
    /// The URL that names the document, where that is wanted as it is instead of as a feed.
    pub resource: Option<String>,
    /// Its public address, where that is another one.
    pub address: Option<String>,
    /// Coverage of the document, as far as the answer tells: [`Coverage::Delta`] for a 226, which
    /// is never asked for (POLLING 0.2).
    pub coverage: Coverage,
    /// The memory of a large body, kept until everything that was made of it is committed.
    pub memory: Option<BodyMemory>,
}
