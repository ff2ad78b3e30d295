//! The metadata of a document, as labels and texts; not its entries.

use super::{
    entries::{self, Read, number},
    findings::Findings,
    history,
    sheet::tame,
    source::Given,
};
use everfeed_adapters::{Rhythm, SlicedDocument};
use std::collections::BTreeMap;

/// A label and what it labels, one text a line. Facts that the document leaves open are left out.
pub(super) type Fact = (&'static str, Vec<String>);

/// Kinds of foreign markup named.
const FOREIGN_MAX: usize = 8;

/// Facts about the feed, in the order in which an operator asks.
pub(super) fn facts(findings: &Findings<'_>) -> Vec<Fact> {
    let Findings {
        given,
        window,
        entries,
        ..
    } = findings;
    let metadata = &window.metadata;
    let one = |text: Option<&str>| text.map(tame).into_iter().collect::<Vec<_>>();
    let recipes = history::recipes(findings)
        .iter()
        .map(|recipe| tame(recipe))
        .collect::<Vec<_>>();
    let known = if recipes.is_empty() {
        vec!["no way to older entries is known".to_owned()]
    } else {
        recipes
    };
    let updated = metadata.updated.as_ref().or(metadata.published.as_ref());
    let facts = vec![
        ("title", metadata.title.iter().map(entries::words).collect()),
        ("site", one(metadata.link("alternate"))),
        ("self", one(metadata.link("self"))),
        (
            "moved",
            given
                .moved_to
                .iter()
                .map(|url| format!("for good, to {}", tame(url)))
                .collect(),
        ),
        ("id", one(metadata.id.as_deref())),
        ("language", one(metadata.language.as_deref())),
        (
            "generator",
            metadata
                .generator
                .iter()
                .map(|generator| tame(&generator.to_string()))
                .collect(),
        ),
        ("platform", platform(findings)),
        (
            "updated",
            updated
                .iter()
                .map(|at| entries::date(at, entries::MINUTE))
                .collect(),
        ),
        ("rhythm", rhythm(&metadata.rhythm)),
        ("push", push(findings)),
        ("history", known),
        ("absence", absence(findings)),
        ("kept", kept(window, entries)),
        ("odd", odd(given, window, entries)),
    ];
    facts
        .into_iter()
        .filter(|(_, texts)| !texts.is_empty())
        .collect()
}

/// Which software made the document, and by what it is recognised.
fn platform(findings: &Findings<'_>) -> Vec<String> {
    let Some(profile) = findings.profile else {
        // That nobody recognised any is told in words of its own.
        let why = Some(&findings.platform.why).filter(|_| findings.is_configured);
        return vec![why.map_or("none is recognised".to_owned(), |why| {
            format!("none: {why}")
        })];
    };
    let window = profile
        .window
        .map(|window| format!("; a window of {window} entries by default"));
    vec![tame(&format!(
        "{}: {}{}",
        profile.title,
        findings.platform.why,
        window.unwrap_or_default()
    ))]
}

/// The polling interval that the publisher wants.
fn rhythm(rhythm: &Rhythm) -> Vec<String> {
    const DAYS: [&str; 7] = [
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
        "Sunday",
    ];
    let mut told = Vec::new();
    told.extend(rhythm.ttl_mins.map(|mins| {
        format!(
            "a copy is good for {} (ttl)",
            duration(u64::from(mins) * 60)
        )
    }));
    told.extend(
        rhythm
            .update_secs
            .map(|secs| format!("updated every {} (sy)", duration(u64::from(secs)))),
    );
    if !rhythm.skip_hours.is_empty() {
        let hours: Vec<usize> = rhythm
            .skip_hours
            .iter()
            .map(|hour| usize::from(*hour))
            .collect();
        told.push(format!(
            "silent in the hours {} GMT (skipHours)",
            entries::ranges(&hours)
        ));
    }
    let days: Vec<_> = rhythm
        .skip_days
        .iter()
        .filter_map(|day| DAYS.get(usize::from(*day)).copied())
        .collect();
    if !days.is_empty() {
        told.push(format!("silent on {} (skipDays)", days.join(", ")));
    }
    if told.is_empty() {
        told
    } else {
        vec![told.join("; ")]
    }
}

fn duration(secs: u64) -> String {
    match secs {
        0 => "no time".to_owned(),
        secs if secs.is_multiple_of(86_400) => format!("{} d", secs / 86_400),
        secs if secs.is_multiple_of(3600) => format!("{} h", secs / 3600),
        secs if secs.is_multiple_of(60) => format!("{} min", secs / 60),
        secs => format!("{secs} s"),
    }
}

/// Services that would tell of changes: hubs and rssCloud.
fn push(findings: &Findings<'_>) -> Vec<String> {
    let metadata = &findings.window.metadata;
    let hubs = metadata.hubs().map(|hub| format!("hub {}", tame(hub)));
    let clouds = metadata.cloud.iter().map(|cloud| {
        let said = |text: &Option<String>| text.clone().unwrap_or_default();
        let port = cloud
            .port
            .map(|port| format!(":{port}"))
            .unwrap_or_default();
        let (path, protocol) = (said(&cloud.path), said(&cloud.protocol));
        let procedure = said(&cloud.register_procedure);
        let told = format!(
            "rssCloud at {}{port}{path} by {protocol} {procedure}",
            cloud.domain
        );
        tame(told.trim_end())
    });
    let pings = findings.profile.filter(|profile| profile.pings.xml_rpc);
    let pings = pings.map(|_| "XML-RPC pings, if its owner lists us".to_owned());
    hubs.chain(clouds).chain(pings).collect()
}

fn absence(findings: &Findings<'_>) -> Vec<String> {
    let window = findings.window;
    let mut told = vec![history::absence(findings)];
    let weak = history::weak(window);
    if weak > 0 {
        told.push(format!(
            "never that of an entry with a weak name: {} of {}",
            number(weak),
            number(window.entries.len())
        ));
    }
    if !window.deletions.is_empty() {
        let count = window.deletions.len();
        let tombstones = if count == 1 {
            "tombstone (at:deleted-entry) says"
        } else {
            "tombstones (at:deleted-entry) say"
        };
        told.push(format!("{} {tombstones} it outright", number(count)));
    }
    told
}

/// The parts of the entries, with how many of each.
fn kept(window: &SlicedDocument, entries: &[Read<'_>]) -> Vec<String> {
    let sum = |of: &dyn Fn(&Read<'_>) -> usize| entries.iter().map(of).sum::<usize>();
    let counts = [
        (
            "title",
            sum(&|read| usize::from(read.entry.title.is_some())),
        ),
        (
            "content",
            sum(&|read| usize::from(read.entry.content.is_some())),
        ),
        (
            "summary",
            sum(&|read| usize::from(read.entry.summary.is_some())),
        ),
        (
            "link",
            sum(&|read| usize::from(read.entry.permalink().is_some())),
        ),
        (
            "author",
            sum(&|read| usize::from(!read.entry.authors.is_empty())),
        ),
        ("tag", sum(&|read| read.entry.categories.len())),
        ("enclosure", sum(&|read| read.entry.enclosures.len())),
        (
            "comments",
            sum(&|read| usize::from(read.entry.comments.is_some())),
        ),
    ];
    let told = counts.iter().filter(|(_, count)| *count > 0);
    let told: Vec<_> = told
        .map(|(name, count)| format!("{name} {}", number(*count)))
        .collect();
    let mut lines = Vec::new();
    if !told.is_empty() {
        lines.push(told.join(" · "));
    }
    let foreign = foreign(window, entries);
    if !foreign.is_empty() {
        lines.push(format!("as it is: {}", foreign.join(" ")));
    }
    lines
}

/// Kinds of markup that is kept as it is, the most frequent first.
fn foreign(window: &SlicedDocument, entries: &[Read<'_>]) -> Vec<String> {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let of_entries = entries.iter().flat_map(|read| &read.entry.foreign);
    for element in window.metadata.foreign.iter().chain(of_entries) {
        *counts.entry((&element.prefix, &element.name)).or_default() += 1;
    }
    let mut kinds: Vec<_> = counts.into_iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let name = |(prefix, name): (&str, &str)| match prefix {
        "" => tame(name),
        prefix => tame(&format!("{prefix}:{name}")),
    };
    let more = kinds.len() > FOREIGN_MAX;
    let told = kinds
        .into_iter()
        .take(FOREIGN_MAX)
        .map(|(kind, _)| name(kind));
    told.chain(more.then(|| "…".to_owned())).collect()
}

/// Oddities of the document and its entries.
fn odd(given: &Given, window: &SlicedDocument, entries: &[Read<'_>]) -> Vec<String> {
    let mut told = Vec::new();
    if given.is_part {
        told.push(
            "the server sent only what it takes for new (226), which nobody asked for".to_owned(),
        );
    }
    told.extend(window.notes.iter().map(|note| tame(&note.to_string())));
    told.extend(history::contradiction(&window.metadata));
    let repeated = history::repeated(window);
    if repeated > 0 {
        let count = number(repeated);
        let entries = if repeated == 1 {
            "entry has"
        } else {
            "entries have"
        };
        told.push(format!(
            "{count} {entries} a key that an earlier one has, too: the latest update counts"
        ));
    }
    let unbelievable = entries
        .iter()
        .filter(|read| read.has_implausible_date())
        .count();
    if unbelievable > 0 {
        let entries = if unbelievable == 1 {
            "entry has"
        } else {
            "entries have"
        };
        let count = number(unbelievable);
        told.push(format!(
            "{count} {entries} a date that nobody can mean (marked ?): consumers do not see it"
        ));
    }
    told.extend(entries::oddities(entries));
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rhythm_reads_as_words() {
        let told = Rhythm {
            ttl_mins: Some(90),
            update_secs: Some(86_400),
            skip_hours: vec![0, 1, 2, 23],
            skip_days: vec![5, 6],
        };
        assert_eq!(
            rhythm(&told).concat(),
            "a copy is good for 90 min (ttl); updated every 1 d (sy); silent in the hours 0-2, 23 GMT (skipHours); \
             silent on Saturday, Sunday (skipDays)"
        );
        assert!(rhythm(&Rhythm::default()).is_empty());
    }
}
