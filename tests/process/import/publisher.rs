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

/// Words that are not the same in two posts, so that packing gains what it gains on prose, not
/// more.
fn words(post: usize, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 16);
    let mut state = post as u64 * 2 + 1;
    while text.len() < bytes {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        write!(text, "{:x} ", state >> 40).unwrap();
    }
    text
}
