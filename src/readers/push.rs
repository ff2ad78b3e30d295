//! A push: the items after the cursor that a subscriber has acknowledged; not how they are
//! delivered.

use super::{ReadError, ReadRequest, Readers, Rendered, body::Contents};

impl Readers {
    /// The items of a push. A form without tombstones leaves them out, yet its cursor moves past
    /// them.
    pub(super) async fn push(
        &self,
        reading: &ReadRequest,
        bytes_max: usize,
        is_fresh: bool,
    ) -> Result<Contents, ReadError> {
        let filter = reading.view.filter.clone();
        let mut page = self.range(reading, filter, bytes_max, is_fresh).await?;
        if reading.representation.is_classic() {
            page.items.retain(|item| !item.is_gone());
        }
        Ok(page.into())
    }
}

impl Rendered {
    /// True when a subscriber who has acknowledged this cursor gets on by the page, be it empty.
    pub fn lies_beyond(&self, acked: &str) -> bool {
        self.count > 0 || self.more || self.last_cursor != acked
    }
}
