//! Rows of a store on their way to another kind of store, by the names, keys and values that a file
//! has them with; not how either store reads or writes them.

/// A row: the bytes of its key, and its value without a checksum.
pub(super) struct MovedRow {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
}

/// Bytes of rows after which a batch ends.
pub(super) const BATCH_BYTES: usize = 4 << 20;

/// Tables without which a copy that stands beside its store is made: nobody subscribed to it.
pub(super) const OF_SUBSCRIBERS: [&str; 2] = ["subs", "positions"];

/// The keys of the table `meta` that go along: the last numbers given, and what is known of time.
pub(super) const META_KEYS: [&str; 6] = [
    "last_feed",
    "last_sub",
    "last_user",
    "last_token",
    "clock",
    "content",
];

/// The two ends of a copy, as each notes the other: a random number that both have, and the other
/// place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MoveNote {
    pub(super) token: [u8; 8],
    pub(super) place: String,
}

impl MoveNote {
    /// The row of it.
    pub(super) fn row(&self) -> Vec<u8> {
        [&self.token[..], self.place.as_bytes()].concat()
    }

    /// Reads its row.
    pub(super) fn of_row(row: &[u8]) -> Option<Self> {
        let (token, place) = row.split_first_chunk()?;
        Some(Self {
            token: *token,
            place: String::from_utf8_lossy(place).into_owned(),
        })
    }
}
