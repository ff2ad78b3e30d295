//! The adapters against documents: our own fixtures, the vendored data, and the large corpora where
//! they are at hand; not single functions.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests read files, and fail by panicking"
)]

mod corpus;
mod damage;
mod dates;
mod encodings;
mod extensions;
mod fixtures;
mod front_door;
mod media_rss;
mod platforms;
mod score;
mod sequences;
