//! The sizes and times that a request of HTTP/1 keeps to until its head is whole.

use std::time::Duration;

/// Bytes of a request line.
pub(super) const REQUEST_LINE_BYTES_MAX: usize = 16 << 10;
/// Bytes of a head, with its request line.
pub(super) const HEAD_BYTES_MAX: usize = 48 << 10;
/// Header lines of a request. hyper takes no more.
pub(super) const HEADER_LINES_MAX: usize = 100;
/// Time from the first byte of a head to its last.
pub(super) const HEAD_TIME: Duration = Duration::from_secs(20);
