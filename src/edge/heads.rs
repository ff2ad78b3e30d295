//! The bytes of an HTTP/1 connection on their way to the HTTP library: each head is checked
//! strictly and its body followed, so that everybody after us, an origin too, takes the same bytes
//! for a request; not what is asked.
//!
//! hyper alone takes Content-Length beside Transfer-Encoding, doubled codings, lines that end in LF
//! alone and heads of any form, and refuses the rest without a word.

mod limits;

mod malformed;

mod head;

mod chunks;

mod frames;

mod gate;

#[cfg(test)]
mod tests;

pub(super) use gate::{GateHandle, RequestGate};
pub(super) use head::check_decoded;
