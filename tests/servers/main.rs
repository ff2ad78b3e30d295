//! everfeed beside servers of Debian, which `tests/run` installs: web servers before it, and a
//! certificate authority.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod acme;
mod deploy;
