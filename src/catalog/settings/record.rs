//! `record` of a feed: how many of its documents are kept, and where; not how they are kept.

use crate::setting::{RefusedSetting, at_least_one};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// `record` of a feed: how many of its documents are kept, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordSettings {
    /// The folder in which each feed that is recorded has one of its own name. Made when it is
    /// missing; relative paths count from the folder of the configuration.
    pub folder: PathBuf,
    /// Documents kept of the feed.
    #[serde(default = "bodies_usual")]
    pub bodies: usize,
    /// Bytes of documents kept of the feed at most; the oldest go first.
    #[serde(default = "bytes_max_usual")]
    pub bytes_max: u64,
}

const fn bodies_usual() -> usize {
    50
}

const fn bytes_max_usual() -> u64 {
    64 << 20
}

impl RecordSettings {
    /// Values that cannot work.
    pub fn problems(&self) -> Vec<RefusedSetting> {
        let wanted = "give at least 1, or leave `record` out";
        let at_least = [
            at_least_one("record.bodies", self.bodies as u64, wanted),
            at_least_one("record.bytes_max", self.bytes_max, wanted),
        ];
        at_least.into_iter().filter_map(Result::err).collect()
    }
}
