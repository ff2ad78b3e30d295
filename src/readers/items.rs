//! The items of a page as they stand in the store, for a protocol that frames each by itself; not
//! how they are written.

use super::{ReadError, ReadRequest, Readers};
use crate::feed::page::Page;

impl Readers {
    /// The items in the range of a read, and so many bytes of them at most, though never less than
    /// one item: those that its page holds.
    pub async fn items(&self, reading: &ReadRequest, bytes_max: usize) -> Result<Page, ReadError> {
        let filter = reading.view().filter.clone();
        let _scan_place = if filter.has_terms() {
            Some(self.room.scan_place().await?)
        } else {
            None
        };
        let _place = self.room.place().await?;
        let bytes_max = bytes_max.min(self.config.page_bytes_max);
        let mut reading = reading.clone();
        reading.hides_deletions = !self.announces(reading.view.feed);
        let page = self.range(&reading, filter, bytes_max, false).await?;
        if page.record.is_ready() {
            Ok(page)
        } else {
            Err(ReadError::NotReady)
        }
    }
}
