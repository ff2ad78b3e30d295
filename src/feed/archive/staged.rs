//! A page of an archive as it waits to be committed.

use super::Walk;
use crate::feed::{item::KeyHash, stamp::Stamp};
use everfeed_adapters::Digest;
use serde::{Deserialize, Serialize};

/// A page that was read and not committed yet, or of which only the traces are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedPage {
    /// Its place: the live document is 0, the rest follow as they were read.
    pub no: u32,
    /// The address asked.
    pub url: String,
    /// The address that answered.
    pub landed: String,
    /// What its relative references are relative to.
    pub base_url: String,
    /// `Content-Type`, if it is text.
    pub content_type: Option<String>,
    /// `Content-Language`, if it is text.
    pub content_language: Option<String>,
    /// When it was read.
    pub read_at: Stamp,
    /// Digest of its bytes.
    pub body: Digest,
    /// The keys of its entries.
    pub keys: Vec<KeyHash>,
    /// Its bytes, deflated (RFC 1951); empty once they are committed.
    pub deflated: Vec<u8>,
}

/// What becomes of staged pages in the commit that makes items of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unstage {
    /// Those below this number lose their bytes and keep their traces: the walk goes on.
    Below(u32),
    /// All are forgotten: the walk is at its end.
    All,
}

/// What is kept of a feed's archives while they are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Staged {
    /// The walk, without what it has seen.
    pub walk: Option<Walk>,
    /// Its pages, by number.
    pub pages: Vec<StagedPage>,
}

impl Staged {
    /// The walk with what it has seen.
    pub fn recalled(&self) -> Option<Walk> {
        let mut walk = self.walk.clone()?;
        for page in &self.pages {
            walk.recall(&page.url, &page.landed, page.body, &page.keys, page.no == 0);
        }
        Some(walk)
    }

    /// Whether pages wait to be committed.
    pub fn waits(&self) -> bool {
        self.pages.iter().any(|page| !page.deflated.is_empty())
    }

    /// What becomes of the pages in a commit that makes items of them.
    pub fn unstage(&self) -> Unstage {
        match &self.walk {
            Some(walk) if !walk.is_done() => {
                Unstage::Below(self.pages.last().map_or(0, |page| page.no.saturating_add(1)))
            }
            _ => Unstage::All,
        }
    }
}
