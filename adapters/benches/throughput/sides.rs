//! The sides that are compared: tokens, feed-rs and ourselves, each reading one document. What they
//! found is counted, so that no optimiser leaves the work out and nobody is fast by refusing.

use std::hint::black_box;
use std::panic;

use everfeed_adapters::{Hints, slice};
use quick_xml::Reader;
use quick_xml::encoding::DecodingReader;
use quick_xml::events::Event;

use crate::documents::Document;

/// URL of the documents. With it relative references are resolved, as they are in service.
const BASE_URL: &str = "https://blog.example/feed/";

/// One way to read a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The denominator: quick-xml's `Reader::from_str` with `read_event`, nothing kept.
    Tokens,
    /// quick-xml from bytes, with a buffer and the decoding that feed-rs uses.
    DecodedTokens,
    FeedRs,
    /// The cost of an unchanged document: cut, with keys and raw digests.
    Slice,
    /// Every entry parsed.
    Parse,
    /// Every entry parsed and its content digest taken.
    Digest,
}

impl Side {
    pub(crate) const ALL: [Self; 6] = [
        Self::Tokens,
        Self::DecodedTokens,
        Self::FeedRs,
        Self::Slice,
        Self::Parse,
        Self::Digest,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tokens => "quick-xml tokens, Reader::from_str (the limit)",
            Self::DecodedTokens => "quick-xml tokens, DecodingReader",
            Self::FeedRs => "feed-rs alone",
            Self::Slice => "everfeed, slice: an unchanged document",
            Self::Parse => "everfeed, slice and parse every entry",
            Self::Digest => "everfeed, slice, parse and digest every entry",
        }
    }

    /// Reads a document; whether it was not refused.
    pub(crate) fn read(self, document: &Document) -> bool {
        match self {
            Self::Tokens => tokens(&document.text),
            Self::DecodedTokens => decoded_tokens(document.text.as_bytes()),
            Self::FeedRs => {
                let parse = || {
                    feed_rs::parser::Builder::new()
                        .base_uri(Some(BASE_URL))
                        .build()
                        .parse(document.text.as_bytes())
                };
                matches!(panic::catch_unwind(parse), Ok(Ok(feed)) if { black_box(&feed); true })
            }
            Self::Slice | Self::Parse | Self::Digest => self.ours(document),
        }
    }

    fn ours(self, document: &Document) -> bool {
        let hints = Hints {
            base_url: Some(BASE_URL),
            ..Hints::default()
        };
        let Ok(sliced) = slice(document.text.as_bytes(), &hints) else {
            return false;
        };
        if self != Self::Slice {
            for raw in &sliced.entries {
                let (entry, notes) = raw.parse();
                if self == Self::Digest {
                    black_box(entry.digest());
                }
                black_box((entry, notes));
            }
        }
        black_box(sliced);
        true
    }
}

fn tokens(text: &str) -> bool {
    let mut reader = Reader::from_str(text);
    loop {
        match black_box(reader.read_event()) {
            Ok(Event::Eof) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

fn decoded_tokens(bytes: &[u8]) -> bool {
    let mut reader = Reader::from_reader(DecodingReader::new(bytes));
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        match black_box(reader.read_event_into(&mut buffer)) {
            Ok(Event::Eof) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}
