//! `everfeed readers`: who reads the feeds of the running process, as a table; not how readers are
//! counted.

use super::{
    WithConfig,
    ask::{Running, unanswered},
    probe::sheet::{Column, Keep, table, tame, tame_json, width, wrap},
};
use crate::app::{
    moments::relative,
    reader_list::{PATH, ReaderFigures, ReaderList, RequestFigures, SoftwareFigures, summary},
};
use crate::cli::output::outln;
use anyhow::{Context as _, bail};
use chrono::{DateTime, Utc};
use clap::Args;
use http::Method;
use url::form_urlencoded::Serializer;

#[derive(Debug, Args)]
pub(super) struct ReadersOptions {
    #[command(flatten)]
    with: WithConfig,
    /// Print the software that reads this feed.
    feed: Option<String>,
    /// Print the list as JSON, with the software of each feed.
    #[arg(long)]
    json: bool,
}

/// Pages of feeds that are asked for at most.
const PAGES_MAX: usize = 10_000;

/// Asks the running process, and prints its answer. The file is read for its address only.
pub(super) async fn run(options: &ReadersOptions) -> anyhow::Result<()> {
    let list = list(options).await?;
    if options.json {
        outln!("{}", tame_json(&serde_json::to_string_pretty(&list)?));
        return Ok(());
    }
    let now = Utc::now();
    for line in lines(&list, options.feed.as_deref(), now, width()) {
        outln!("{line}");
    }
    Ok(())
}

/// All pages as one list.
async fn list(options: &ReadersOptions) -> anyhow::Result<ReaderList> {
    let file = &*options.with.config;
    let running = Running::in_file(file);
    let mut query = Serializer::new(String::new());
    if let Some(feed) = &options.feed {
        query.append_pair("name", feed);
    }
    let mut next = Some(format!("{PATH}?{}", query.finish()));
    let mut all = ReaderList::default();
    for _ in 0..PAGES_MAX {
        let Some(path) = next.take() else {
            break;
        };
        let answered = running.ask(Method::GET, &path).await;
        let (status, text) =
            answered.map_err(|error| unanswered(file, &running.address, &error))?;
        if !status.is_success() {
            bail!(
                "the running everfeed answered {status}: {}",
                tame(text.trim_end())
            );
        }
        let page: ReaderList = serde_json::from_str(&text)
            .context("the answer of the running everfeed cannot be read. Is it another version?")?;
        next = page.next;
        all = ReaderList {
            feeds: all.feeds.into_iter().chain(page.feeds).collect(),
            next: None,
            ..page
        };
    }
    Ok(all)
}

fn lines(list: &ReaderList, feed: Option<&str>, now: DateTime<Utc>, width: usize) -> Vec<String> {
    let since = relative(&tame(&list.since), now);
    let mut lines = vec![format!("counted since {since}, for 30 days at most")];
    if list.unattributed > 0 {
        lines.push(format!(
            "requests of too many new kinds of software at once, which are not below: {}",
            list.unattributed
        ));
    }
    if list.feeds.is_empty() {
        lines.push(match feed {
            Some(name) => format!("nobody has asked for a feed `{}`", tame(name)),
            None => "nobody has asked for a feed".to_owned(),
        });
        return lines;
    }
    lines.push(String::new());
    if feed.is_none() {
        lines.extend(feed_table(&list.feeds, width));
    } else {
        for figures in &list.feeds {
            lines.push(format!("{}: {}", tame(&figures.feed), summary(figures)));
            lines.push(String::new());
            lines.extend(software_table(&figures.software, now, width));
        }
    }
    let faults = list.feeds.iter().flat_map(faults);
    let faults: Vec<String> = faults.collect();
    if !faults.is_empty() {
        lines.extend([String::new(), "misbehaving".to_owned()]);
    }
    for fault in faults {
        let mut indent = "  ";
        for line in wrap(&fault, width.saturating_sub(4)) {
            lines.push(format!("{indent}{line}"));
            indent = "    ";
        }
    }
    lines
}

/// The faults of the software of a feed, in a sentence each.
fn faults(figures: &ReaderFigures) -> Vec<String> {
    let mut faults = Vec::new();
    for row in &figures.software {
        for fault in &row.misbehaves {
            let (feed, software) = (tame(&figures.feed), tame(&row.software));
            faults.push(format!("{feed}: {software}: {}", tame(fault)));
        }
    }
    faults
}

fn percent(figures: RequestFigures) -> String {
    let percent = figures.conditional_percent();
    percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent} %"))
}

fn feed_table(feeds: &[ReaderFigures], width: usize) -> Vec<String> {
    let columns = [
        Column::cut("feed", Keep::Start, 1),
        Column::number("claimed"),
        Column::number("push subscribers"),
        Column::number("software"),
        Column::number("requests a day"),
        Column::number("in 30 days"),
        Column::number("conditional"),
    ];
    let row = |it: &ReaderFigures| {
        let pushed = it.push_subscribers.map(|count| count.to_string());
        vec![
            tame(&it.feed),
            it.claimed.to_string(),
            pushed.unwrap_or_else(|| "-".to_owned()),
            it.software.len().to_string(),
            it.day.requests.to_string(),
            it.month.requests.to_string(),
            percent(it.month),
        ]
    };
    let rows: Vec<Vec<String>> = feeds.iter().map(row).collect();
    table(&columns, &rows, width)
}

fn software_table(software: &[SoftwareFigures], now: DateTime<Utc>, width: usize) -> Vec<String> {
    let columns = [
        Column::cut("software", Keep::Start, 1),
        Column::number("claimed"),
        Column::number("addresses"),
        Column::number("requests a day"),
        Column::number("in 30 days"),
        Column::number("conditional"),
        Column::text("last seen"),
    ];
    let row = |it: &SoftwareFigures| {
        let claimed = it.claimed.map(|count| count.to_string());
        let clients = it.clients_about.map(|count| count.to_string());
        vec![
            tame(&it.software),
            claimed.unwrap_or_else(|| "-".to_owned()),
            clients.unwrap_or_else(|| "many".to_owned()),
            it.day.requests.to_string(),
            it.month.requests.to_string(),
            percent(it.month),
            relative(&tame(&it.last_seen), now),
        ]
    };
    let rows: Vec<Vec<String>> = software.iter().map(row).collect();
    table(&columns, &rows, width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn feeds_and_the_software_of_one_are_tables_and_nothing_steers_the_terminal() {
        let list = json!({
            "since": "2026-06-01T00:00:00Z", "unattributed": 3,
            "feeds": [{
                "feed": "blog", "claimed": 120, "push_subscribers": 2,
                "day": { "requests": 40, "conditional": 30 }, "month": { "requests": 400, "conditional": 300 },
                "software": [
                    { "software": "Feedly", "kind": "service", "claimed": 120, "clients_about": 2,
                      "month": { "requests": 390, "conditional": 300 }, "last_seen": "2026-06-01T23:50:00Z", "misbehaves": [] },
                    { "software": "ev\u{1b}[31mil", "kind": "of a later version", "misbehaves": ["it asks too often"] },
                ],
            }],
        });
        let list: ReaderList = serde_json::from_value(list).unwrap();
        let now = DateTime::parse_from_rfc3339("2026-06-02T00:00:00Z").unwrap();
        let now = now.with_timezone(&Utc);
        let all = lines(&list, None, now, 200).join("\n");
        let one = lines(&list, Some("blog"), now, 200).join("\n");
        for part in [
            "24 h ago",
            "not below: 3",
            "blog",
            "120",
            "75 %",
            "misbehaving\n  blog: ev",
        ] {
            assert!(
                all.contains(part) && one.contains(part),
                "{part}:\n{all}\n{one}"
            );
        }
        for part in [
            "blog: claimed readers: 120; push subscribers: 2",
            "10 min ago",
            "many",
        ] {
            assert!(one.contains(part), "{part}:\n{one}");
        }
        assert!(!all.contains('\u{1b}') && !one.contains('\u{1b}'));
        let none = lines(&ReaderList::default(), Some("x"), now, 80).join("\n");
        assert!(none.contains("nobody has asked for a feed `x`"), "{none}");
    }
}
