//! The events of a stream, read some at a time; not the stream that carries them.

use super::{ReadError, ReadRequest, Readers, body::Contents};

/// Bytes of stored items at most that a stream of events hands on at once.
const EVENTS_BYTES_MAX: usize = 1 << 20;

impl Readers {
    /// The next events of a stream.
    pub(super) async fn events(
        &self,
        reading: &ReadRequest,
        is_fresh: bool,
    ) -> Result<Contents, ReadError> {
        let bytes_max = self.config.page_bytes_max.min(EVENTS_BYTES_MAX);
        let filter = reading.view.filter.clone();
        let page = self.range(reading, filter, bytes_max, is_fresh).await?;
        Ok(page.into())
    }
}
