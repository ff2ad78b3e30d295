//! The syndication module: how often a publisher wants to be polled. A hint only.

use crate::vocabulary::Vocabulary;
use crate::{Element, Metadata, Rhythm};

/// `sy:updatePeriod`, `sy:updateFrequency` and `sy:updateBase`. They come back: only together do
/// they say something.
pub(crate) fn feed_child(element: Element, rhythm: &mut Rhythm) -> Option<Element> {
    if element.name == "updatePeriod" {
        rhythm.update_secs = period(&element.text());
    }
    Some(element)
}

/// Divides the period by the frequency, wherever the two stood.
pub(crate) fn settle(metadata: &mut Metadata) {
    let Some(period) = metadata.rhythm.update_secs else {
        return;
    };
    let frequency = metadata.foreign.iter().find(|element| {
        element.name == "updateFrequency" && Vocabulary::of(&element.ns) == Vocabulary::Syndication
    });
    let frequency = frequency.and_then(|element| element.words()?.parse::<u32>().ok());
    metadata.rhythm.update_secs =
        Some(period / frequency.unwrap_or(1).max(1)).filter(|secs| *secs > 0);
}

fn period(text: &str) -> Option<u32> {
    Some(match text.trim().to_ascii_lowercase().as_str() {
        "hourly" => 3600,
        "daily" => 86_400,
        "weekly" => 7 * 86_400,
        "monthly" => 30 * 86_400,
        "yearly" => 365 * 86_400,
        _ => return None,
    })
}
