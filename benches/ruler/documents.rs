//! Documents of an old blog, the same in every run.

use bytes::Bytes;
use std::fmt::Write as _;

/// Entries in a document.
pub(crate) const ENTRIES: usize = 50;

/// The entries from `newest` back, with a link to an older page if there is one.
pub(crate) fn feed(newest: usize, entries: usize, older: Option<&str>) -> Bytes {
    let mut text = String::from(
        "<?xml version=\"1.0\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\"><id>urn:blog</id>\
         <title>A diary</title><updated>2014-01-01T00:00:00Z</updated>\n",
    );
    if let Some(older) = older {
        let _ = write!(text, "<link rel=\"prev-archive\" href=\"{older}\"/>");
    }
    for n in (0..entries).map(|back| newest - back) {
        let (day, hour, minute) = (1 + n / 1440 % 28, n / 60 % 24, n % 60);
        let _ = writeln!(
            text,
            "<entry><id>https://blog.example/?p={n}</id><title>Day {n}, and what was said</title>\
             <link href=\"https://blog.example/2014/day-{n}\"/><author><name>Ada Writer</name></author>\
             <published>2014-{month:02}-{day:02}T{hour:02}:{minute:02}:00Z</published>\
             <updated>2014-{month:02}-{day:02}T{hour:02}:{minute:02}:00Z</updated><category term=\"diary\"/>\
             <content type=\"html\">{}</content></entry>",
            prose(n),
            month = 1 + n / 1440 / 28,
        );
    }
    text.push_str("</feed>\n");
    text.into()
}

/// About 1,000 bytes of HTML, other words for each post.
fn prose(n: usize) -> String {
    let mut text = String::new();
    for paragraph in 0..4 {
        text.push_str("&lt;p&gt;");
        for at in 0..40 {
            let word = WORDS[(n * 7 + paragraph * 13 + at * (1 + n % 5)) % WORDS.len()];
            text.push_str(word);
            text.push(' ');
        }
        let _ = write!(text, "number{n}&lt;/p&gt; ");
    }
    text
}

const WORDS: [&str; 31] = [
    "morning", "the", "a", "garden", "of", "letters", "and", "winter", "in", "house", "we",
    "walked", "under", "rain", "old", "it", "server", "was", "river", "to", "never", "light",
    "with", "bread", "said", "she", "quiet", "machine", "on", "their", "question",
];

/// A page of the site, 10 KB.
pub(crate) fn page() -> Bytes {
    let mut text = String::from("<!DOCTYPE html><title>A page</title><p>");
    while text.len() < 10_000 {
        text.push_str(WORDS[text.len() % WORDS.len()]);
        text.push(' ');
    }
    text.into()
}
