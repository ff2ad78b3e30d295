//! The configurations of web servers in `deploy/behind/`, run by the servers of Debian before a
//! blog and everfeed: who gets which request, and what arrives there; and the example of the book.
//! The servers are real processes, and the reader is curl.

mod behind;

mod example;

mod files;

mod rig;

mod servers;
