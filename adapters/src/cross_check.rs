//! The cross-check: the number of entries that a second parser, feed-rs, finds in a document. An
//! entry that our own reading lacks proves nothing unless a parser written by other people lacks
//! it, too.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::Hints;
use crate::text::encoding;

/// Number of entries that feed-rs finds in a document; `None` when it cannot read it at all, which
/// says nothing.
///
/// It is given text that we decoded, without a declaration of another encoding, on which feed-rs
/// 3.0 panics (PARSING section 0.1); a panic for any other reason is caught.
pub fn cross_check_count(bytes: &[u8], hints: &Hints<'_>) -> Option<usize> {
    let decoded = encoding::decode(bytes, hints.content_type);
    let text = harmless(&decoded.text);
    let read = || {
        feed_rs::parser::Builder::new()
            .build()
            .parse(text.trim_start().as_bytes())
            .ok()
    };
    let feed = catch_unwind(AssertUnwindSafe(read)).ok().flatten()?;
    Some(feed.entries.len())
}

/// The text without what feed-rs panics on: declarations of an encoding, which it minds wherever
/// they stand; times of MediaRSS; and characters of several bytes, which it cuts in two when it
/// looks for a name. Nothing of that says how many entries there are.
fn harmless(text: &str) -> String {
    let ascii = |c: char| if c.is_ascii() && c != '&' { c } else { '_' };
    let mut harmless = text
        .chars()
        .map(ascii)
        .collect::<String>()
        .replace("<?xml", "<?was");
    for name in ["time", "start", "end", "duration"] {
        for quote in ['"', '\''] {
            harmless = harmless.replace(&format!("{name}={quote}"), &format!("x-{name}={quote}"));
        }
    }
    harmless
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(document: &[u8], expect: Option<usize>) {
        assert_eq!(
            cross_check_count(document, &Hints::default()),
            expect,
            "{}",
            String::from_utf8_lossy(document)
        );
    }

    #[test]
    fn it_counts_what_it_can_read_and_says_nothing_of_the_rest() {
        check(
            b"<rss version='2.0'><channel><title>t</title><item/><item/></channel></rss>",
            Some(2),
        );
        check(b"<rss version='2.0'><channel><title>t</title><item>", None);
        check(b"not a feed", None);
    }

    #[test]
    fn what_makes_feed_rs_panic_does_not_reach_it() {
        let text = "<?xml version=\"1.0\" encoding=\"utf-16\"?><rss version=\"2.0\"><channel><title>t</title><item/></channel></rss>";
        let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        check(&[b"\xFE\xFF", wide.as_slice()].concat(), Some(1));
        let late = format!(
            "<rss version='2.0'><channel><title>{}</title><item/><?xml version='1.0' encoding='latin1'?></channel></rss>",
            "x".repeat(200)
        );
        check(late.as_bytes(), Some(1));
    }
}
