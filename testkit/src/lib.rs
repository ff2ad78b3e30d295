//! Tools that tests of all packages share: vectors and recorded documents, publishers on loopback,
//! a client, and a place where the program runs. This crate links nothing of everfeed, so that every
//! test, also of the adapters, can use it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

pub mod data;

#[cfg(feature = "http")]
pub mod client;

#[cfg(feature = "http")]
pub mod place;

#[cfg(feature = "http")]
pub mod postgres;

#[cfg(feature = "http")]
pub mod process;

#[cfg(feature = "http")]
pub mod publisher;

#[cfg(feature = "http")]
pub mod wait;
