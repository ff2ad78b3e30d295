//! RSS `ttl`, `skipHours` and `skipDays`: how often a publisher wants to be polled. Hints only.

use crate::{Element, Rhythm};

/// Reads one of them.
pub(super) fn read(element: &Element, rhythm: &mut Rhythm) {
    let children = || element.elements().map(|child| child.text());
    match element.name.to_ascii_lowercase().as_str() {
        "ttl" => rhythm.ttl_mins = element.text().trim().parse().ok().or(rhythm.ttl_mins),
        "skiphours" => {
            let hours = children()
                .filter_map(|hour| hour.trim().parse::<u8>().ok())
                .filter(|hour| *hour <= 24);
            add(&mut rhythm.skip_hours, hours.map(|hour| hour % 24));
        }
        "skipdays" => add(
            &mut rhythm.skip_days,
            children().filter_map(|name| day(&name)),
        ),
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
    DAYS.iter()
        .position(|day| *day == start)
        .and_then(|at| u8::try_from(at).ok())
}
