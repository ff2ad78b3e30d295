//! Real documents and their successive versions, most of which stand beside the checkout, against
//! what is known of them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod fidelity;
mod replay;
mod sequences;

#[path = "../support/pipeline.rs"]
mod pipeline;
