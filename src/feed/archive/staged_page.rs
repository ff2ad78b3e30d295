//! A page of an archive as it waits to be committed.

use super::{ArchiveWalk, PageTrace, WalkedDocument};
use crate::{item::KeyHash, stamp::Stamp};
use everfeed_adapters::{Digest, Hints, Metadata};
use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use std::{
    collections::HashMap,
    io::{self, Read as _, Write as _},
};

/// A page that was read and not committed yet, or of which only the traces are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedPage {
    /// Its place: the live document comes first, the rest follow as they were read.
    pub no: u32,
    /// The address of its document.
    pub address: PageAddress,
    /// `Content-Type`, if it is text.
    pub content_type: Option<String>,
    /// `Content-Language`, if it is text.
    pub content_language: Option<String>,
    /// Time at which it was read.
    pub read_at: Stamp,
    /// Digest of its bytes.
    pub body: Digest,
    /// The keys of its entries, the strong ones first.
    pub keys: Vec<KeyHash>,
    /// Number of strong keys.
    pub strong: u32,
    /// Its bytes, until they are committed.
    pub content: StagedBody,
}

/// The address of a document, as it was asked for and as it answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageAddress {
    /// The address asked.
    pub url: String,
    /// The address that answered.
    pub landed: String,
    /// Base of its relative references.
    pub base_url: String,
}

/// The bytes of a staged page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StagedBody {
    /// None: they are committed, or hold nothing to be committed. The traces of the page are kept.
    #[default]
    Traces,
    /// They wait to be committed, deflated (RFC 1951).
    Waiting(Vec<u8>),
}

impl StagedBody {
    /// Bytes that wait, which are deflated for it.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn deflated(body: &[u8]) -> io::Result<Self> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(body)?;
        encoder.finish().map(Self::Waiting)
    }

    /// The bytes that wait; `None` when they are damaged, or none wait.
    pub fn inflated(&self) -> Option<Vec<u8>> {
        let Self::Waiting(deflated) = self else {
            return None;
        };
        let mut body = Vec::new();
        let mut decoder = DeflateDecoder::new(deflated.as_slice());
        decoder.read_to_end(&mut body).ok()?;
        Some(body)
    }
}

impl StagedPage {
    /// The headers that its document is read with.
    pub fn hints(&self) -> Hints<'_> {
        Hints {
            content_type: self.content_type.as_deref(),
            content_language: self.content_language.as_deref(),
            base_url: Some(&self.address.base_url),
            ..Hints::default()
        }
    }

    /// True while it waits to be committed.
    pub fn waits(&self) -> bool {
        matches!(self.content, StagedBody::Waiting(_))
    }

    /// The page as a walk looks at it: undamaged, and of one feed.
    pub fn as_walked<'a>(&'a self, bytes: usize, metadata: &'a Metadata) -> WalkedDocument<'a> {
        WalkedDocument {
            asked: &self.address.url,
            landed: &self.address.landed,
            body: self.body,
            bytes: bytes as u64,
            keys: &self.keys,
            metadata,
            is_built: false,
            damaged: false,
            mixed: false,
        }
    }

    /// The page as a walk remembers it.
    pub fn trace(&self) -> PageTrace<'_> {
        let (url, landed) = (self.address.url.as_str(), self.address.landed.as_str());
        PageTrace {
            no: self.no,
            url,
            landed,
            body: self.body,
            keys: &self.keys,
        }
    }
}

/// Change to staged pages in the commit that makes items of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StagingChange {
    /// Those below this number lose their bytes and keep their traces: the walk goes on.
    Below(u32),
    /// The walk is at its end: those from this number on, its own, keep their traces, beside which
    /// the next walk is laid; those of the walk before are forgotten.
    Since(u32),
    /// The walk is at its end and saw less than the one before may have: those from this number on
    /// are forgotten.
    Without(u32),
    /// The feed has another URL: all of them are forgotten, and the walk.
    All,
}

/// Fate of one staged page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFate {
    /// It stays as it is.
    Kept,
    /// Its traces stay.
    Stripped,
    /// Nothing of it stays.
    Forgotten,
}

impl StagingChange {
    /// Fate of the page of this number.
    pub fn fate(self, page: u32) -> PageFate {
        match self {
            Self::Below(no) if page < no => PageFate::Stripped,
            Self::Below(_) => PageFate::Kept,
            Self::Since(no) if page < no => PageFate::Forgotten,
            Self::Since(_) => PageFate::Stripped,
            Self::Without(no) if page >= no => PageFate::Forgotten,
            Self::Without(_) => PageFate::Kept,
            Self::All => PageFate::Forgotten,
        }
    }
}

/// A walk and its staged pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StagedWalk {
    /// The walk, without what it has seen.
    pub walk: Option<ArchiveWalk>,
    /// Its pages, by number.
    pub pages: Vec<StagedPage>,
}

impl StagedWalk {
    /// The walk with what it has seen.
    pub fn recalled(&self) -> Option<ArchiveWalk> {
        let mut walk = self.walk.clone()?;
        let base = walk.base();
        for page in self.pages.iter().filter(|page| page.no >= base) {
            walk.recall(&page.trace());
        }
        Some(walk)
    }

    /// Times at which the walk before saw each strong key in the archives.
    pub fn before(&self) -> HashMap<KeyHash, Stamp> {
        let base = self.walk.as_ref().map_or(0, ArchiveWalk::base);
        let mut held = HashMap::new();
        // The live document of that walk is no archive. It came first, so it has the lowest number.
        for page in self.pages.iter().filter(|page| page.no < base).skip(1) {
            let strong = usize::try_from(page.strong).unwrap_or(usize::MAX);
            held.extend(
                page.keys
                    .iter()
                    .take(strong)
                    .map(|key| (*key, page.read_at)),
            );
        }
        held
    }

    /// Times at which the pages of this walk, its live document aside, showed each key.
    pub fn shown(&self) -> HashMap<KeyHash, Stamp> {
        let base = self.walk.as_ref().map_or(0, ArchiveWalk::base);
        let own = self.pages.iter().filter(|page| page.no > base);
        own.flat_map(|page| page.keys.iter().map(|key| (*key, page.read_at)))
            .collect()
    }

    /// True when pages wait to be committed.
    pub fn waits(&self) -> bool {
        self.pages.iter().any(StagedPage::waits)
    }

    /// Change to the pages in a commit that makes items of them.
    pub fn unstage(&self) -> StagingChange {
        match &self.walk {
            Some(walk) if !walk.is_done() => StagingChange::Below(
                self.pages
                    .last()
                    .map_or(0, |page| page.no.saturating_add(1)),
            ),
            Some(walk) if !walk.proves() && self.pages.iter().any(|page| page.no < walk.base()) => {
                StagingChange::Without(walk.base())
            }
            walk => StagingChange::Since(walk.as_ref().map_or(0, ArchiveWalk::base)),
        }
    }
}
