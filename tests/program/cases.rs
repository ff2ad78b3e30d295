//! The case table of POLLING 2.4 and the test vectors of 2.6, each row a test by its own words:
//! documents as publishers send them, every hour, through the client stack, the pipeline and the
//! store, and what a consumer sees of it.
//!
//! How to read them: `Blog::of(document)` is a feed whose first document was read.
//! `shows(document)` is the next poll an hour later, and `stays(hours)` are so many polls more of
//! the same document; both tell what became of items, and nothing is an empty text. Letters are
//! posts, `a` older than `z`, and documents are given newest first.
//!
//! | Told | Means |
//! |---|---|
//! | `+z` | new |
//! | `*z` | edited |
//! | `-z absent-bracketed` | a tombstone, with its reason code |
//! | `^z` | alive again |
//! | `held` | too much is missing at once; nothing is concluded |
//! | `gap` | a marker that items may be missing here |
//! | `doubted`, `disbelieved` | what is missing keeps coming back, so absence counts for less, or for nothing |
//! | `refused` | the document is not taken for this feed's |
//! | `24 h:` | so many polls after the document was first shown, where it was not the first |
//!
//! Documents are asked for with the validators of the last answer, unless something is missed and
//! the last request without them is a day old: that is an *audit*. It comes in the 24th hour of
//! these tests, and every 24 hours after it.

mod blog;
mod document;

mod alternating;
mod downstream;
mod held_back;
mod identity;

mod renumbered;
mod table;
mod vectors;
