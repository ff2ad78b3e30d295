//! Pauses of hosts. A row has a fixed width and no version: two times, or in an older store one. Not
//! how long a host is left alone.

use super::damaged;
use crate::{
    feed::{schedule::Pause, stamp::Stamp},
    store::StoreError,
};

/// Bytes of a time.
const TIME_BYTES: usize = size_of::<u64>();

/// Writes a pause: its beginning, then its end.
pub(in crate::store) fn encode_pause(pause: Pause) -> [u8; 2 * TIME_BYTES] {
    let mut row = [0; 2 * TIME_BYTES];
    let times = [pause.since, pause.until].map(|time| time.micros().to_be_bytes());
    row.copy_from_slice(times.as_flattened());
    row
}

/// Reads a pause. That of an older store has its end alone, which is taken for its beginning, too. It
/// is of a whole host, so it meets no authority and runs out.
pub(in crate::store) fn decode_pause(row: &[u8]) -> Result<Pause, StoreError> {
    let time = |bytes: &[u8; TIME_BYTES]| Stamp::from_micros(u64::from_be_bytes(*bytes));
    let (since, until) = match row.as_chunks() {
        ([until], []) => (until, until),
        ([since, until], []) => (since, until),
        _ => {
            let bytes = row.len();
            return Err(damaged(format!("the pause of a host has {bytes} bytes")));
        }
    };
    Ok(Pause {
        since: time(since),
        until: time(until),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_read_in_both_of_its_forms_and_in_no_other() {
        let (since, until) = (Stamp::from_secs(7), Stamp::from_secs(9));
        let today = encode_pause(Pause { since, until });
        assert_eq!(decode_pause(&today).unwrap(), Pause { since, until });
        let older = decode_pause(&today[TIME_BYTES..]).unwrap();
        let since = until;
        assert_eq!(older, Pause { since, until });
        for bytes in (0..=24).filter(|bytes| ![8, 16].contains(bytes)) {
            let read = decode_pause(&vec![0; bytes]);
            assert!(matches!(read, Err(StoreError::Damaged(_))), "{bytes}");
        }
    }
}
