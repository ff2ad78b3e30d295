//! The page that an operator reads: the verdict, what the document says of itself, and its entries.

use super::{
    entries::{self, Read, number},
    facts::{self, Fact},
    findings::Findings,
    history, sheet,
    source::Given,
};
use everfeed_adapters::{Format, SlicedDocument};

/// Columns that labels take.
const LABEL: usize = 11;

/// The longest text of a fact, bytes; a title of a megabyte is cut before it is wrapped.
const TEXT_COLUMNS_MAX: usize = 400;

/// The page, within so many columns.
pub(super) fn page(findings: &Findings<'_>, shown_max: usize, width: usize) -> String {
    let facts = facts::facts(findings);
    let mut lines = vec![
        verdict(findings, &facts),
        origin(findings.given, findings.window),
    ];
    lines.push(String::new());
    lines.extend(
        facts
            .iter()
            .flat_map(|(label, texts)| labelled(label, texts, width)),
    );
    let table = entries::table(&findings.entries, shown_max, width);
    if !table.is_empty() {
        lines.push(String::new());
        lines.extend(table);
    }
    lines.join("\n") + "\n"
}

/// The page in a line.
fn verdict(findings: &Findings<'_>, facts: &[Fact]) -> String {
    let Findings {
        window,
        entries,
        profile,
        ..
    } = findings;
    let what = match entries.len() {
        0 => "no entry in it".to_owned(),
        1 => format!("1 entry, {}", named(entries)),
        count => format!("{} entries, {}", number(count), named(entries)),
    };
    let cut = if window.is_truncated() {
        ", cut short"
    } else {
        ""
    };
    let platform = profile
        .map(|profile| format!(" by {}", profile.title))
        .unwrap_or_default();
    let history = if history::recipes(findings).is_empty() {
        ""
    } else {
        "; a way to older ones is known"
    };
    let odd = facts
        .iter()
        .find(|(label, _)| *label == "odd")
        .map_or(0, |(_, told)| told.len());
    let odd = match odd {
        0 => String::new(),
        1 => "; 1 oddity".to_owned(),
        count => format!("; {count} oddities"),
    };
    format!("{}{platform}{cut}: {what}{history}{odd}", version(window))
}

/// The kinds of keys of the entries: `all by guid`, `8 by guid, 2 by title (weak)`.
fn named(entries: &[Read<'_>]) -> String {
    let mut counts: Vec<(&str, bool, usize)> = Vec::new();
    for read in entries {
        let by = read.raw.named_by();
        match counts.iter_mut().find(|(known, ..)| *known == by) {
            Some((.., count)) => *count += 1,
            None => counts.push((by, read.raw.key.is_weak(), 1)),
        }
    }
    let weak = |weak: bool| if weak { " (weak)" } else { "" };
    match counts[..] {
        [(by, is_weak, 1)] => format!("named by its {by}{}", weak(is_weak)),
        [(by, is_weak, _)] => format!("all named by {by}{}", weak(is_weak)),
        _ => {
            let each = counts.iter().map(|(by, is_weak, count)| {
                format!("{} by {by}{}", number(*count), weak(*is_weak))
            });
            format!("named {}", each.collect::<Vec<_>>().join(", "))
        }
    }
}

/// The source of the document, its size and its media type.
fn origin(given: &Given, window: &SlicedDocument) -> String {
    let name = if given.name == "-" {
        "standard input".to_owned()
    } else {
        sheet::tame(&given.name)
    };
    let mut told = vec![name];
    let landed = given
        .base_url
        .as_ref()
        .filter(|url| given.is_fetched && **url != given.name);
    told.extend(landed.map(|url| format!("answered by {}", sheet::tame(url))));
    told.extend(given.content_type.as_deref().map(sheet::tame));
    told.push(format!("{} bytes", number(given.bytes.len())));
    told.extend(Some(window.encoding.to_owned()).filter(|encoding| !encoding.is_empty()));
    told.join(" · ")
}

/// feedparser's name of a version as people write it.
fn version(window: &SlicedDocument) -> String {
    match window.format {
        Format::Resource => "A resource".to_owned(),
        _ => version_named(window.version),
    }
}

fn version_named(name: &'static str) -> String {
    let (format, digits) = name.split_at(
        name.find(|c: char| c.is_ascii_digit())
            .unwrap_or(name.len()),
    );
    let format = match format {
        "rss" => "RSS",
        "atom" => "Atom",
        "cdf" => "CDF",
        "json" | "jsonfeed" => "JSON Feed",
        "" => "A feed",
        other => other,
    };
    let by = match &digits[digits
        .trim_end_matches(|c: char| c.is_ascii_alphabetic())
        .len()..]
    {
        "n" => " (Netscape)",
        "u" => " (UserLand)",
        _ => "",
    };
    let digits = digits.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number = match digits.len() {
        0 if format == "RSS" => " without a version".to_owned(),
        0 => String::new(),
        1 => format!(" {digits}.0"),
        // 0.91 and 0.90, but 1.0 and 2.0.
        _ => format!(" {}.{}", &digits[..1], &digits[1..]),
    };
    format!("{format}{number}{by}")
}

fn labelled(label: &str, texts: &[String], width: usize) -> Vec<String> {
    let wrapped = texts.iter().flat_map(|text| {
        sheet::wrap(
            &sheet::cut(text, TEXT_COLUMNS_MAX, sheet::Keep::Start),
            width - LABEL,
        )
    });
    let line = |(at, text): (usize, String)| {
        let label = if at == 0 { label } else { "" };
        sheet::pad(label, LABEL) + &text
    };
    wrapped.enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_read_as_people_write_them() {
        let check = |name, expect: &str| assert_eq!(version_named(name), expect);
        check("rss20", "RSS 2.0");
        check("rss091n", "RSS 0.91 (Netscape)");
        check("rss092", "RSS 0.92");
        check("rss", "RSS without a version");
        check("atom10", "Atom 1.0");
        check("atom03", "Atom 0.3");
        check("cdf", "CDF");
        check("json11", "JSON Feed 1.1");
        check("json1", "JSON Feed 1.0");
        check("", "A feed");
    }
}
