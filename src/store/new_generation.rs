//! A new generation of every feed of a store that is an older copy; not how that is noticed.

use super::{
    StoreError,
    engine::RowWriter,
    rows::{planned::write_record, reads},
};
use crate::feed::stamp::Stamp;

/// Feeds that are read at once.
const FEEDS_AT_ONCE: usize = 1000;

/// Gives each feed a generation that begins then.
pub(in crate::store) fn renew_feeds(tx: &dyn RowWriter, at: Stamp) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let records = reads::records(tx, after, FEEDS_AT_ONCE)?;
        let Some(last) = records.last() else {
            return Ok(());
        };
        after = Some(last.no);
        for record in records {
            write_record(tx, &record.restored(at))?;
        }
    }
}
