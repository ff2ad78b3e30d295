//! The folded words of entries. Those of large texts are remembered by the digest of the texts, so
//! that a post is folded once, and not for each word that somebody searches for.

use super::folding::FoldedWords;
use everfeed_adapters::{Digest, Entry, Text};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Bytes of the texts of an entry from which on their words are remembered: smaller ones are folded
/// in less than a millisecond.
const LARGE_BYTES_MIN: usize = 64 << 10;

/// Bytes of words that are remembered at most.
const REMEMBERED_BYTES_MAX: usize = 64 << 20;

/// The words of large texts, those asked for last behind the others. They follow from the texts
/// alone, so that it makes no difference whether they are there.
static REMEMBERED: Mutex<Vec<Remembered>> = Mutex::new(Vec::new());

/// The words of a large text, once they are folded.
struct Remembered {
    texts: Digest,
    words: Arc<OnceLock<Arc<FoldedWords>>>,
}

impl Remembered {
    fn weight_bytes(&self) -> usize {
        self.words.get().map_or(0, |words| words.weight_bytes())
    }
}

/// The words of the title and the texts of an entry.
pub(super) fn words_of(entry: &Entry) -> Arc<FoldedWords> {
    let texts = texts(entry);
    let bytes: usize = texts.iter().map(|text| text.value.len()).sum();
    if bytes < LARGE_BYTES_MIN {
        return Arc::new(folded(&texts));
    }
    let place = place_of(digest(&texts));
    // Whoever asks while the words are being folded waits for them.
    let words = place.get_or_init(|| Arc::new(folded(&texts))).clone();
    forget_oldest();
    words
}

/// The place for the words of some texts, as the one asked for last.
fn place_of(texts: Digest) -> Arc<OnceLock<Arc<FoldedWords>>> {
    let mut all = REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = all.iter().position(|known| known.texts == texts);
    let found = match known {
        Some(at) => all.remove(at),
        None => Remembered {
            texts,
            words: Arc::default(),
        },
    };
    let words = found.words.clone();
    all.push(found);
    words
}

/// Forgets the words that were not asked for the longest, where there are too many.
fn forget_oldest() {
    let mut all = REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut bytes: usize = all.iter().map(Remembered::weight_bytes).sum();
    let mut kept_from = 0;
    while bytes > REMEMBERED_BYTES_MAX && kept_from < all.len() {
        bytes -= all[kept_from].weight_bytes();
        kept_from += 1;
    }
    all.drain(..kept_from);
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
        let other = |n: usize| format!("{n} {}", "x ".repeat(LARGE_BYTES_MIN));
        for n in 0..REMEMBERED_BYTES_MAX / (2 * LARGE_BYTES_MIN) + 2 {
            words_of(&entry(TextKind::Plain, &other(n)));
        }
        let all = REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: usize = all.iter().map(Remembered::weight_bytes).sum();
        assert!(bytes <= REMEMBERED_BYTES_MAX, "{bytes}");
        drop(all);
        let small = "small text";
        let first = words_of(&entry(TextKind::Plain, small));
        assert!(!Arc::ptr_eq(
            &first,
            &words_of(&entry(TextKind::Plain, small))
        ));
    }
}
