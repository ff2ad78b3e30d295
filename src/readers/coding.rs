//! Content codings of a rendered body, each made once; not the choice between them.

use super::body_permits::held;
use crate::byte_budget::ByteLease;
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use std::{io::Write as _, sync::Arc};
use tokio::{sync::OnceCell, task::spawn_blocking};

/// A content coding on offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// As it is.
    Identity,
    /// `gzip`.
    Gzip,
    /// `br`.
    Brotli,
    /// `zstd`.
    Zstd,
}

impl Coding {
    /// The token in `Content-Encoding`; `None` for the body as it is.
    pub const fn token(self) -> Option<&'static str> {
        match self {
            Self::Identity => None,
            Self::Gzip => Some("gzip"),
            Self::Brotli => Some("br"),
            Self::Zstd => Some("zstd"),
        }
    }
}

/// The compressed forms of one body.
#[derive(Debug, Default)]
pub(super) struct Codings {
    gzip: OnceCell<Bytes>,
    brotli: OnceCell<Bytes>,
    zstd: OnceCell<Bytes>,
    /// The memory that is leased for the body counts for these, too.
    lease: Option<Arc<ByteLease>>,
}

/// Middle of the road: a page is compressed once and sent often, but somebody waits for the first.
const GZIP_LEVEL: u32 = 6;
const BROTLI_LEVEL: u32 = 5;
/// Its window is 2 MiB; decoders of HTTP take 8 MiB at most (RFC 9659).
const ZSTD_LEVEL: i32 = 6;
/// The largest window that every decoder takes, as a power of two.
const BROTLI_WINDOW_LOG: u32 = 22;
const BROTLI_BUFFER_BYTES: usize = 16 << 10;

impl Codings {
    /// None yet, of a body with this lease.
    pub(super) fn within(lease: Option<Arc<ByteLease>>) -> Self {
        Self {
            lease,
            ..Self::default()
        }
    }

    pub(super) async fn get(&self, coding: Coding, body: &Bytes) -> Bytes {
        let Some((coded, encode)) = self.slot(coding) else {
            return body.clone();
        };
        let make = || async { held(made(encode, body).await, self.lease.clone()) };
        coded.get_or_init(make).await.clone()
    }

    /// The body in a coding in which somebody has had it.
    pub(super) fn known(&self, coding: Coding, body: &Bytes) -> Option<Bytes> {
        match self.slot(coding) {
            Some((coded, _)) => coded.get().cloned(),
            None => Some(body.clone()),
        }
    }

    /// The place of the body in a coding, and its encoder; `None` for the body as it is.
    fn slot(&self, coding: Coding) -> Option<(&OnceCell<Bytes>, Encoder)> {
        match coding {
            Coding::Identity => None,
            Coding::Gzip => Some((&self.gzip, gzip)),
            Coding::Brotli => Some((&self.brotli, brotli)),
            Coding::Zstd => Some((&self.zstd, zstd)),
        }
    }
}

type Encoder = fn(&[u8]) -> Bytes;

/// A body in a coding, for one consumer alone.
pub async fn coded(coding: Coding, body: Bytes) -> Bytes {
    match Codings::default().slot(coding) {
        Some((_, encode)) => made(encode, &body).await,
        None => body,
    }
}

/// Bytes that are compressed in place; more would keep the tasks waiting that share the thread.
const INLINE_BYTES_MAX: usize = 64 << 10;

async fn made(encode: Encoder, body: &Bytes) -> Bytes {
    if body.len() <= INLINE_BYTES_MAX {
        return encode(body);
    }
    let whole = body.clone();
    aside(move || encode(&whole)).await
}

/// The outcome of work on a thread that nobody waits for. A panic in it is one of whoever waits.
pub(super) async fn aside(work: impl FnOnce() -> Bytes + Send + 'static) -> Bytes {
    match spawn_blocking(work).await {
        Ok(bytes) => bytes,
        Err(broken) => match broken.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and with it whoever waits for this.
            Err(_) => std::future::pending().await,
        },
    }
}

fn gzip(body: &[u8]) -> Bytes {
    let mut out = GzEncoder::new(
        Vec::with_capacity(body.len() / 3),
        Compression::new(GZIP_LEVEL),
    );
    let written = out.write_all(body).and_then(|()| out.finish());
    written.expect("writing to memory does not fail").into()
}

fn brotli(body: &[u8]) -> Bytes {
    let out = Vec::with_capacity(body.len() / 3);
    let mut out =
        brotli::CompressorWriter::new(out, BROTLI_BUFFER_BYTES, BROTLI_LEVEL, BROTLI_WINDOW_LOG);
    out.write_all(body)
        .expect("writing to memory does not fail");
    out.into_inner().into()
}

fn zstd(body: &[u8]) -> Bytes {
    zstd::bulk::compress(body, ZSTD_LEVEL)
        .expect("compressing into memory that grows does not fail")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[tokio::test]
    async fn every_coding_gives_the_body_back() {
        for entries in [1000, 100_000] {
            check(Bytes::from("<entry/>".repeat(entries))).await;
        }
    }

    async fn check(body: Bytes) {
        let codings = Codings::default();
        let gzip = codings.get(Coding::Gzip, &body).await;
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(&gzip[..])
            .read_to_end(&mut back)
            .unwrap();
        assert_eq!(back, body);
        let br = codings.get(Coding::Brotli, &body).await;
        back.clear();
        brotli::Decompressor::new(&br[..], 4096)
            .read_to_end(&mut back)
            .unwrap();
        assert_eq!(back, body);
        let zstd = codings.get(Coding::Zstd, &body).await;
        assert_eq!(zstd::decode_all(&zstd[..]).unwrap(), body);
        assert!(
            [&gzip, &br, &zstd]
                .iter()
                .all(|coded| coded.len() < body.len() / 10)
        );
        assert_eq!(codings.get(Coding::Identity, &body).await, body);
    }
}
