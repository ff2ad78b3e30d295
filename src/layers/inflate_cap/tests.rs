//! Bodies in every coding: whole, huge, damaged, cut.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use tower::ServiceExt;

use super::*;
use crate::layers::error::Size;
use crate::layers::testing::{answering, bytes_body, get};

const FEED: &[u8] = b"<rss><channel><title>Caf\xc3\xa9</title></channel></rss>";

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn zlib(plain: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn raw_deflate(plain: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn brotli(plain: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    brotli::BrotliCompress(&mut &plain[..], &mut packed, &Default::default()).unwrap();
    packed
}

/// Reads `packed`, arriving in chunks of `step` bytes, through a cap of `bytes_max`.
async fn inflate(
    coding: &str,
    packed: &[u8],
    step: usize,
    bytes_max: u64,
) -> Result<Bytes, FetchError> {
    let chunks: Vec<Bytes> = packed.chunks(step).map(Bytes::copy_from_slice).collect();
    let coding = coding.to_owned();
    let stack = InflateCap::layer(bytes_max).layer(answering(move |_| {
        let reply = http::Response::builder().header(CONTENT_ENCODING, &coding);
        Ok(reply
            .header(CONTENT_LENGTH, "1")
            .body(bytes_body(chunks.clone()))
            .unwrap())
    }));
    let reply = stack.oneshot(get("http://a.example/")).await?;
    Ok(reply.into_body().collect().await?.to_bytes())
}

fn every_coding(plain: &[u8]) -> [(&'static str, Vec<u8>); 7] {
    [
        ("identity", plain.to_vec()),
        ("gzip", gzip(plain)),
        ("X-GZip", gzip(plain)),
        ("deflate", zlib(plain)),
        ("deflate", raw_deflate(plain)),
        ("br", brotli(plain)),
        ("zstd", zstd::encode_all(plain, 3).unwrap()),
    ]
}

#[tokio::test]
async fn every_coding_is_undone_however_the_bytes_arrive() {
    for (coding, packed) in every_coding(FEED) {
        for step in [1, 2, 7, packed.len()] {
            let plain = inflate(coding, &packed, step, 1000).await.unwrap();
            assert_eq!(&plain[..], FEED, "{coding} by {step}");
        }
    }
}

#[tokio::test]
async fn the_cap_is_on_what_comes_out_to_the_byte() {
    let exact = FEED.len() as u64;
    for (coding, packed) in every_coding(FEED) {
        assert!(inflate(coding, &packed, 5, exact).await.is_ok(), "{coding}");
        let error = inflate(coding, &packed, 5, exact - 1).await.unwrap_err();
        assert!(
            matches!(
                error,
                FetchError::TooLarge {
                    size: Size::Inflated,
                    ..
                }
            ),
            "{coding}: {error:?}"
        );
    }
}

#[tokio::test]
async fn a_packed_body_that_ends_early_is_an_error() {
    let long: Vec<u8> = (0..20_000_u32)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    for (coding, packed) in every_coding(&long).into_iter().skip(1) {
        for kept in [1, 12, packed.len() / 2, packed.len() - 1] {
            let error = inflate(coding, &packed[..kept], 4096, 1 << 20)
                .await
                .unwrap_err();
            assert!(
                matches!(error, FetchError::Inflate(..)),
                "{coding} {kept}: {error:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_packed_body_of_garbage_is_an_error_and_no_panic() {
    for coding in ["gzip", "deflate", "br", "zstd"] {
        for seed in 0..200_u32 {
            let noise: Vec<u8> = (0..300_u32)
                .map(|n| ((n * 7 + seed).wrapping_mul(2_654_435_761) >> 24) as u8)
                .collect();
            // A few short streams of noise are valid by chance; none may panic or exceed the cap.
            if let Ok(plain) = inflate(coding, &noise, 64, 4096).await {
                assert!(plain.len() <= 4096);
            }
        }
        let error = inflate(
            coding,
            b"<rss>not packed at all, whatever the header says</rss>",
            64,
            4096,
        )
        .await;
        assert!(
            matches!(error, Err(FetchError::Inflate(..))),
            "{coding}: {error:?}"
        );
    }
}

#[tokio::test]
async fn gzip_members_one_after_the_other_are_one_body() {
    let mut packed = gzip(b"one ");
    packed.extend(gzip(b"two"));
    assert_eq!(
        &inflate("gzip", &packed, 3, 100).await.unwrap()[..],
        b"one two"
    );
}

#[tokio::test]
async fn an_empty_body_is_empty_in_every_coding() {
    for coding in ["gzip", "deflate", "br", "zstd", "identity"] {
        assert!(
            inflate(coding, b"", 1, 10).await.unwrap().is_empty(),
            "{coding}"
        );
    }
}

#[tokio::test]
async fn a_coding_that_was_not_asked_for_is_an_error() {
    for coding in ["lz4", "compress", "gzip, br", "gzip, gzip"] {
        let error = inflate(coding, FEED, 10, 1000).await.unwrap_err();
        assert!(
            matches!(error, FetchError::Inflate(..)),
            "{coding}: {error:?}"
        );
    }
}

#[tokio::test]
async fn headers_of_the_packed_body_do_not_outlive_it() {
    let packed = Bytes::from(gzip(FEED));
    let stack = InflateCap::layer(1000).layer(answering(move |request: Request| {
        assert_eq!(
            request.headers()[ACCEPT_ENCODING],
            "gzip, deflate, br, zstd"
        );
        let reply = http::Response::builder()
            .header(CONTENT_ENCODING, "gzip")
            .header("etag", "\"x\"");
        Ok(reply
            .header(CONTENT_LENGTH, packed.len())
            .body(bytes_body(vec![packed.clone()]))
            .unwrap())
    }));
    let reply = stack.oneshot(get("http://a.example/")).await.unwrap();
    assert!(
        !reply.headers().contains_key(CONTENT_ENCODING)
            && !reply.headers().contains_key(CONTENT_LENGTH)
    );
    assert_eq!(reply.headers()["etag"], "\"x\"");
}

/// One gibibyte of zeros packs into one mebibyte. What may be in memory is the cap, one chunk, and
/// no more.
#[tokio::test]
async fn a_bomb_is_refused_with_no_more_than_the_cap_inflated() {
    const CAP: u64 = 4 << 20;
    let bomb = gzip(&vec![0; 1 << 20]).repeat(1024);
    assert!(bomb.len() < 2 << 20, "{}", bomb.len());

    let mut inflater = Inflater::new(ContentCoding::Gzip, CAP);
    let (mut made, mut fed) = (0, 0);
    let error = loop {
        let chunk = Bytes::copy_from_slice(&bomb[fed..bomb.len().min(fed + 16_384)]);
        fed += chunk.len();
        match inflater.push(chunk) {
            Ok(out) => made += out.len() as u64,
            Err(error) => break error,
        }
    };
    assert!(
        matches!(
            error,
            FetchError::TooLarge {
                bytes_max: CAP,
                size: Size::Inflated
            }
        ),
        "{error:?}"
    );
    assert!(
        made <= CAP && fed < bomb.len() / 50,
        "{made} made of {fed} read"
    );
    // The same in one piece: the sink refuses, however much the decoder has to give.
    let error = inflate("gzip", &bomb, bomb.len(), CAP).await.unwrap_err();
    assert!(
        matches!(
            error,
            FetchError::TooLarge {
                size: Size::Inflated,
                ..
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn of_a_body_whose_first_bytes_matter_no_more_is_read() {
    let mut feed = FEED.to_vec();
    feed.extend(FEED.repeat(1000));
    for (coding, packed) in every_coding(&feed) {
        let chunks: Vec<Bytes> = packed.chunks(64).map(Bytes::copy_from_slice).collect();
        let stack = InflateCap::layer(1 << 20).layer(answering(move |_| {
            let reply = http::Response::builder().header(CONTENT_ENCODING, coding);
            Ok(reply.body(bytes_body(chunks.clone())).unwrap())
        }));
        let mut request = get("http://a.example/");
        request
            .extensions_mut()
            .insert(FirstBytes(FEED.len() as u64));
        let body = stack.oneshot(request).await.unwrap().into_body();
        assert_eq!(body.collect().await.unwrap().to_bytes(), FEED, "{coding}");
    }
}

#[tokio::test]
async fn a_body_that_breaks_behind_its_first_bytes_is_as_good_as_whole() {
    let broken = || bytes_body(vec![Bytes::from_static(FEED), Bytes::from_static(b"more")]);
    let stack = InflateCap::layer(FEED.len() as u64)
        .layer(answering(move |_| Ok(http::Response::new(broken()))));
    let whole = stack
        .clone()
        .oneshot(get("http://a.example/"))
        .await
        .unwrap()
        .into_body();
    assert!(whole.collect().await.is_err(), "it is over the cap");
    let mut request = get("http://a.example/");
    request
        .extensions_mut()
        .insert(FirstBytes(FEED.len() as u64));
    let body = stack.oneshot(request).await.unwrap().into_body();
    assert_eq!(body.collect().await.unwrap().to_bytes(), FEED);
}
