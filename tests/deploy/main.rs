//! The configurations of web servers in `deploy/behind/`, run by the servers of Debian before a blog and everfeed: who gets which
//! request, and what arrives there. The servers are real processes, and the reader is curl.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod behind;

mod rig;

mod servers;
