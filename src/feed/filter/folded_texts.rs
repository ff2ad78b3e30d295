//! The folded words of entries. Those of large texts are remembered by the digest of the texts, so
//! that a post is folded once, and not for each word that somebody searches for.

use super::folding::FoldedWords;
use everfeed_adapters::{Digest, Entry, Text};
use moka::sync::Cache;
use std::sync::{Arc, LazyLock};

/// Bytes of the texts of an entry from which on their words are remembered: smaller ones are folded
/// in less than a millisecond.
const LARGE_BYTES_MIN: usize = 64 << 10;

/// Bytes of words that are remembered at most.
const REMEMBERED_BYTES_MAX: u64 = 64 << 20;

/// The words of large texts. They follow from the texts alone, so that it makes no difference
/// whether they are there.
static REMEMBERED: LazyLock<Cache<Digest, Arc<FoldedWords>>> = LazyLock::new(|| {
    let weigh = |_: &Digest, words: &Arc<FoldedWords>| {
        u32::try_from(words.weight_bytes()).unwrap_or(u32::MAX)
    };
    Cache::builder()
        .weigher(weigh)
        .max_capacity(REMEMBERED_BYTES_MAX)
        .build()
});

/// The words of the title and the texts of an entry.
pub(super) fn words_of(entry: &Entry) -> Arc<FoldedWords> {
    let texts = texts(entry);
    let bytes: usize = texts.iter().map(|text| text.value.len()).sum();
    if bytes < LARGE_BYTES_MIN {
        return Arc::new(folded(&texts));
    }
    // Whoever asks while the words are being folded waits for them.
    REMEMBERED.get_with(digest(&texts), || Arc::new(folded(&texts)))
}

fn texts(entry: &Entry) -> Vec<&Text> {
    let texts = [
        entry.title.as_ref(),
        entry.summary.as_ref(),
        entry.content.as_ref().map(|body| &body.text),
    ];
    texts.into_iter().flatten().collect()
}

fn folded(texts: &[&Text]) -> FoldedWords {
    let mut words = FoldedWords::default();
    for text in texts {
        words.add(text);
    }
    words.shrink();
    words
}

/// The digest of texts, each with its kind and its length.
fn digest(texts: &[&Text]) -> Digest {
    let mut parts = Vec::new();
    for text in texts {
        let head = format!("{:?} {} ", text.kind, text.value.len());
        parts.push(Digest::of(head.as_bytes()));
        parts.push(Digest::of(text.value.as_bytes()));
    }
    let bytes: Vec<u8> = parts.into_iter().flat_map(|part| part.0).collect();
    Digest::of(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use everfeed_adapters::TextKind;

    fn entry(kind: TextKind, text: &str) -> Entry {
        Entry {
            title: Some(Text {
                kind,
                value: text.to_owned(),
                ..Text::default()
            }),
            ..Entry::default()
        }
    }

    #[test]
    fn a_large_text_is_folded_once_and_another_one_by_itself() {
        let large = "large text \u{FDFA} ".repeat(20_000);
        let first = words_of(&entry(TextKind::Plain, &large));
        let again = words_of(&entry(TextKind::Plain, &large));
        assert!(Arc::ptr_eq(&first, &again));
        let html = words_of(&entry(TextKind::Html, &large));
        assert!(!Arc::ptr_eq(&first, &html));
        let changed = words_of(&entry(TextKind::Plain, &format!("{large} changed")));
        assert!(changed.hold("changed") && !first.hold("changed"));
        let small = "small text";
        let first = words_of(&entry(TextKind::Plain, small));
        assert!(!Arc::ptr_eq(
            &first,
            &words_of(&entry(TextKind::Plain, small))
        ));
    }
}
