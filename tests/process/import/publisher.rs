//! An old blog with a long past: its live document and its archives, made when they are asked for,
//! so that they cost the test no memory.

use std::{fmt::Write as _, time::Duration};
use testkit::publisher::{Publisher, with_headers};

/// The size of a past.
#[derive(Clone, Copy)]
pub(crate) struct Past {
    /// Archives, besides the live document.
    pub(crate) archives: usize,
    /// Posts in each document.
    pub(crate) posts: usize,
    /// Bytes of text in each post.
    pub(crate) bytes: usize,
    /// The pause before each answer.
    pub(crate) pause: Duration,
}

/// Starts the publisher of a past.
pub(crate) async fn start(past: Past) -> Publisher {
    Publisher::of(move |asked| {
        let number = asked
            .path()
            .strip_prefix("/archive/")
            .and_then(|number| number.parse().ok());
        let body = past.document(number.unwrap_or(past.archives));
        with_headers(200, &[], body).after(past.pause)
    })
    .await
}

impl Past {
    /// Posts in all documents.
    pub(crate) fn total(&self) -> usize {
        (self.archives + 1) * self.posts
    }

    /// Bytes of ids, titles, dates and texts of all posts.
    pub(crate) fn content_bytes(&self) -> usize {
        let of = |post: usize| {
            let number = post.to_string().len();
            "tag:x,2005:".len() + "post ".len() + 2 * number + 20 + words(post, self.bytes).len()
        };
        (0..self.total()).map(of).sum()
    }

    /// The document of this number, newest post first; the oldest is 0, the live one the last.
    pub(crate) fn document(&self, number: usize) -> String {
        let mut out = String::from(
            "<feed xmlns=\"http://www.w3.org/2005/Atom\"><id>tag:x,2005:blog</id><title>blog</title>",
        );
        if number > 0 {
            write!(
                out,
                "<link rel=\"prev-archive\" href=\"/archive/{}\"/>",
                number - 1
            )
            .unwrap();
        }
        for post in (number * self.posts..(number + 1) * self.posts).rev() {
            let (day, hour, minute) = (1 + post / 1440 % 28, post / 60 % 24, post % 60);
            let date = format!(
                "{}-{:02}-{day:02}T{hour:02}:{minute:02}:00Z",
                2000 + post / 483_840,
                1 + post / 40_320 % 12
            );
            write!(
                out,
                "<entry><id>tag:x,2005:{post}</id><title>post {post}</title><published>{date}</published>\
                 <updated>{date}</updated><content type=\"html\">{}</content></entry>",
                words(post, self.bytes)
            )
            .unwrap();
        }
        out + "</feed>"
    }
}

/// Words as frequent as those of a language: the n-th is met n times less often than the first. So
/// packing and the index gain what they gain on prose.
fn words(post: usize, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 16);
    let mut state = post as u64 * 2 + 1;
    while text.len() < bytes {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let drawn = (state >> 40) as f64 / f64::from(1 << 24);
        text.push_str(&word(VOCABULARY.powf(drawn) as u64));
        text.push(' ');
    }
    text
}

/// Words that there are.
const VOCABULARY: f64 = 50_000.0;

/// The n-th word: letters that do not follow from its neighbours'.
fn word(n: u64) -> String {
    let mut letters = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let length = 2 + (n.ilog2() / 2) as usize;
    let letter = |_| {
        letters = letters.rotate_left(9).wrapping_mul(0x2545_F491_4F6C_DD1D);
        char::from(b'a' + (letters >> 32) as u8 % 26)
    };
    (0..length).map(letter).collect()
}
