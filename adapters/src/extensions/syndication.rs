//! How often a publisher wants to be polled: RSS `ttl`, `skipHours`, `skipDays`, and the syndication module. Hints only.

use crate::text::present;
use crate::vocabulary::Vocabulary;
use crate::{Element, Metadata, Rhythm};

/// An RSS element that says so.
pub(crate) fn rss(element: &Element, rhythm: &mut Rhythm) {
    let children = || element.elements().map(|child| child.text());
    match element.name.to_ascii_lowercase().as_str() {
        "ttl" => rhythm.ttl_mins = element.text().trim().parse().ok().or(rhythm.ttl_mins),
        "skiphours" => {
            let hours =
                children().filter_map(|hour| hour.trim().parse::<u8>().ok()).filter(|hour| *hour <= 24);
            add(&mut rhythm.skip_hours, hours.map(|hour| hour % 24));
        }
        "skipdays" => add(&mut rhythm.skip_days, children().filter_map(|name| day(&name))),
        _ => {}
    }
}

fn add(kept: &mut Vec<u8>, found: impl Iterator<Item = u8>) {
    kept.extend(found);
    kept.sort_unstable();
    kept.dedup();
}

fn day(name: &str) -> Option<u8> {
    const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let start = name.trim().get(..3)?.to_ascii_lowercase();
    DAYS.iter().position(|day| *day == start).and_then(|place| u8::try_from(place).ok())
}

/// `sy:updatePeriod`, `sy:updateFrequency` and `sy:updateBase`. They come back: only together do they say something.
pub(crate) fn head(element: Element, rhythm: &mut Rhythm) -> Option<Element> {
    if element.name == "updatePeriod" {
        rhythm.update_secs = period(&element.text());
    }
    Some(element)
}

/// Divides the period by the frequency, wherever the two stood.
pub(crate) fn settle(head: &mut Metadata) {
    let Some(period) = head.rhythm.update_secs else { return };
    let frequency = head.foreign.iter().find(|element| {
        element.name == "updateFrequency" && Vocabulary::of(&element.ns) == Vocabulary::Syndication
    });
    let frequency = frequency.and_then(|element| present(&element.text())?.parse::<u32>().ok());
    head.rhythm.update_secs = Some(period / frequency.unwrap_or(1).max(1)).filter(|secs| *secs > 0);
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
