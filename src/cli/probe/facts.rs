//! The metadata of a document, as labels and texts; not its entries.

use super::{
    entries::{self, Read, number},
    findings::Findings,
    history,
    sheet::tame,
    source::Given,
};
use crate::feed::pushed_feed::NamedPush;
use everfeed_adapters::{Entry, Rhythm, SlicedDocument};
use std::collections::BTreeMap;
use url::Url;

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
    let mut known: Vec<String> = history::recipes(findings)
        .iter()
        .map(|it| tame(it))
        .collect();
    if known.is_empty() {
        known.push("no way to older entries is known".to_owned());
    }
    let moved = given.moved_to.iter();
    let moved = moved.map(|url| format!("for good, to {}", tame(url)));
    let generator = metadata.generator.iter().map(|it| tame(&it.to_string()));
    let updated = metadata.updated.as_ref().or(metadata.published.as_ref());
    let updated = updated.map(|at| entries::date(at, entries::MINUTE));
    let mut facts = vec![
        ("title", metadata.title.iter().map(entries::words).collect()),
        ("site", one(metadata.link("alternate"))),
        ("self", one(metadata.link("self"))),
        ("moved", moved.collect()),
        ("id", one(metadata.id.as_deref())),
        ("language", one(metadata.language.as_deref())),
        ("generator", generator.collect()),
        ("platform", vec![platform(findings)]),
        ("updated", updated.into_iter().collect()),
        ("rhythm", rhythm(&metadata.rhythm)),
        ("push", push(findings)),
        ("history", known),
        ("absence", absence(findings)),
        ("kept", kept(window, entries)),
        ("odd", odd(given, window, entries)),
    ];
    facts.retain(|(_, texts)| !texts.is_empty());
    facts
}

/// Which software made the document, and by what it is recognised.
fn platform(findings: &Findings<'_>) -> String {
    let why = &findings.platform.why;
    match findings.profile {
        Some(profile) => {
            let window = match profile.window {
                Some(window) => format!("; a window of {window} entries by default"),
                None => String::new(),
            };
            tame(&format!("{}: {why}{window}", profile.title))
        }
        None if findings.is_configured => format!("none: {why}"),
        // That nobody recognised any is told in words of its own.
        None => "none is recognised".to_owned(),
    }
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
    if let Some(mins) = rhythm.ttl_mins {
        let good = duration(u64::from(mins) * 60);
        told.push(format!("a copy is good for {good} (ttl)"));
    }
    if let Some(secs) = rhythm.update_secs {
        told.push(format!("updated every {} (sy)", duration(secs.into())));
    }
    if !rhythm.skip_hours.is_empty() {
        let hours: Vec<usize> = rhythm
            .skip_hours
            .iter()
            .map(|hour| (*hour).into())
            .collect();
        let hours = entries::ranges(&hours);
        told.push(format!("silent in the hours {hours} GMT (skipHours)"));
    }
    let days = rhythm.skip_days.iter();
    let days: Vec<_> = days
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

/// Services that tell of changes, and which of them are asked where push is on.
fn push(findings: &Findings<'_>) -> Vec<String> {
    let metadata = &findings.window.metadata;
    let named = named_push(findings);
    let topic = named.topics.first().map_or("", String::as_str);
    let asked = named.hubs.iter().map(|hub| {
        let by = if named.is_by_table {
            ", known by the host"
        } else {
            ""
        };
        format!("hub {}{by}; asked to push {}", tame(hub), tame(topic))
    });
    // Some are asked over https, though they are named without.
    let address = |url: &str| {
        url.split_once(':')
            .map(|(_, rest)| rest.trim_end_matches('/').to_owned())
    };
    let is_left = |hub: &&str| {
        !named
            .hubs
            .iter()
            .any(|asked| address(asked) == address(hub))
    };
    let left = metadata.hubs().filter(is_left);
    let left = left.map(|hub| format!("hub {}; not asked", tame(hub)));
    let hubs = asked.chain(left);
    let clouds = metadata.cloud.iter().map(|cloud| {
        let said = |text: &Option<String>| text.clone().unwrap_or_default();
        let port = cloud
            .port
            .map(|port| format!(":{port}"))
            .unwrap_or_default();
        let (domain, path, protocol) = (&cloud.domain, said(&cloud.path), said(&cloud.protocol));
        let procedure = said(&cloud.register_procedure);
        let told = format!("rssCloud at {domain}{port}{path} by {protocol} {procedure}");
        let use_of_it = match &named.cloud {
            Some(_) if named.hubs.is_empty() => "; asked to tell",
            Some(_) => "; asked to tell if no hub pushes",
            None => "; not asked",
        };
        tame(&format!("{}{use_of_it}", told.trim_end()))
    });
    let pings = findings.profile.filter(|profile| profile.pings.xml_rpc);
    let pings = pings.map(|_| "XML-RPC pings, if its owner lists us".to_owned());
    hubs.chain(clouds).chain(pings).collect()
}

/// The services that everfeed would ask.
fn named_push(findings: &Findings<'_>) -> NamedPush {
    let Findings { given, window, .. } = findings;
    let links = given.headers.iter();
    let links = links.filter(|(name, _)| name.eq_ignore_ascii_case("link"));
    let links: Vec<&str> = links.map(|(_, value)| value.as_str()).collect();
    // A file has no address of its own but the one that it names.
    let own = given.base_url.as_deref().or(window.metadata.link("self"));
    let landed = own.and_then(|url| Url::parse(url).ok());
    let Some(landed) = landed.or_else(|| Url::parse("http://localhost/").ok()) else {
        return NamedPush::default();
    };
    NamedPush::of(&links, &window.metadata, &landed)
}

fn absence(findings: &Findings<'_>) -> Vec<String> {
    let window = findings.window;
    let mut told = vec![history::absence(findings)];
    let weak = history::weak(window);
    if weak > 0 {
        let (weak, all) = (number(weak), number(window.entries.len()));
        told.push(format!(
            "never the deletion of an entry with a weak name: {weak} of {all}"
        ));
    }
    if !window.deletions.is_empty() {
        told.push(match window.deletions.len() {
            1 => "1 tombstone (at:deleted-entry) says it outright".to_owned(),
            count => {
                format!(
                    "{} tombstones (at:deleted-entry) say it outright",
                    number(count)
                )
            }
        });
    }
    told
}

/// The parts of the entries, with how many of each.
fn kept(window: &SlicedDocument, entries: &[Read<'_>]) -> Vec<String> {
    // How many of something each entry has.
    type Count = fn(&Entry) -> usize;
    let counts: [(&str, Count); 8] = [
        ("title", |entry| entry.title.is_some().into()),
        ("content", |entry| entry.content.is_some().into()),
        ("summary", |entry| entry.summary.is_some().into()),
        ("link", |entry| entry.permalink().is_some().into()),
        ("author", |entry| (!entry.authors.is_empty()).into()),
        ("tag", |entry| entry.categories.len()),
        ("enclosure", |entry| entry.enclosures.len()),
        ("comments", |entry| entry.comments.is_some().into()),
    ];
    let mut told = Vec::new();
    for (name, count) in counts {
        let count: usize = entries.iter().map(|read| count(&read.entry)).sum();
        if count > 0 {
            told.push(format!("{name} {}", number(count)));
        }
    }
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
    let mut told: Vec<String> = kinds
        .iter()
        .take(FOREIGN_MAX)
        .map(|(kind, _)| name(*kind))
        .collect();
    if kinds.len() > FOREIGN_MAX {
        told.push("…".to_owned());
    }
    told
}

/// Oddities of the document and its entries.
fn odd(given: &Given, window: &SlicedDocument, entries: &[Read<'_>]) -> Vec<String> {
    let mut told = Vec::new();
    if given.is_part {
        told.push("the server sent a delta (226) to a request that did not ask for one".to_owned());
    }
    told.extend(window.notes.iter().map(|note| tame(&note.to_string())));
    told.extend(history::contradiction(&window.metadata));
    let have = |count: usize| match count {
        1 => "1 entry has".to_owned(),
        count => format!("{} entries have", number(count)),
    };
    let repeated = history::repeated(window);
    if repeated > 0 {
        told.push(format!(
            "{} the key of an earlier one: the latest update counts",
            have(repeated)
        ));
    }
    let unbelievable = entries
        .iter()
        .filter(|read| read.has_implausible_date())
        .count();
    if unbelievable > 0 {
        told.push(format!(
            "{} an impossible date (marked ?): consumers do not see it",
            have(unbelievable)
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
