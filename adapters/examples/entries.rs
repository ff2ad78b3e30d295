//! Prints the entries of a feed, and everything that was odd about it.
//!
//! `cargo run -p everfeed-adapters --example entries -- feed.xml http://example.org/feed.xml`

#![expect(
    clippy::disallowed_methods,
    reason = "a program of one task may wait for its file"
)]

use std::error::Error;
use std::io::Read as _;

use everfeed_adapters::{Feed, Hints, parse};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let bytes = match arguments.next() {
        Some(path) => std::fs::read(path)?,
        None => {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes)?;
            bytes
        }
    };
    // Relative references are resolved against the URL that the document came from.
    let url = arguments.next();
    let feed = parse(
        &bytes,
        &Hints {
            base_url: url.as_deref(),
            ..Hints::default()
        },
    )?;
    print(&feed);
    Ok(())
}

fn print(feed: &Feed) {
    let title = feed
        .metadata
        .title
        .as_ref()
        .map_or("(no title)", |title| title.value.as_str());
    println!("{title} ({}, {} entries)", feed.version, feed.entries.len());
    for note in &feed.notes {
        println!("  odd: {note}");
    }
    for parsed in &feed.entries {
        let entry = &parsed.entry;
        let title = entry
            .title
            .as_ref()
            .map_or("(no title)", |title| title.value.as_str());
        let date = entry
            .published
            .as_ref()
            .or(entry.updated.as_ref())
            .map_or("", |date| date.raw.as_str());
        println!(
            "- {title}\n  {} {date}",
            entry.permalink().unwrap_or("(no link)")
        );
        for note in &parsed.notes {
            println!("  odd: {note}");
        }
    }
}
