//! `everfeed status`: the state of the running process as a table; not how it is gathered.

use super::{
    WithConfig,
    ask::{Running, unanswered},
    probe::sheet::{Column, Keep, table, tame, tame_json, width, wrap},
};
use crate::app::{
    moments::relative,
    status::{FeedStatus, ReadersStatus, Status},
    told::{Told, when},
};
use crate::cli::output::{out, outln};
use anyhow::{Context as _, bail};
use chrono::{DateTime, Utc};
use clap::Args;
use http::{Method, StatusCode};
use serde_json::json;
use std::{
    io::{self, IsTerminal as _},
    path::Path,
    time::Duration,
};
use tokio::time::sleep;

/// Pages of feeds that are asked for at most.
const PAGES_MAX: usize = 10_000;

/// The status that is asked for, and its form.
#[derive(Debug, Args)]
pub(super) struct StatusOptions {
    #[command(flatten)]
    pub(super) with: WithConfig,
    /// Print the status as JSON, with what is broken and what else is to be known in sentences.
    #[arg(long)]
    json: bool,
    /// Print only the feeds that fail.
    #[arg(long)]
    failing: bool,
    /// Print the status again every so many seconds, until it is interrupted.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "5", value_parser = clap::value_parser!(u64).range(1..))]
    watch: Option<u64>,
}

/// Clears a terminal, and goes to its beginning.
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

/// Asks for the status and prints it, once or again and again. An error names what is broken.
pub(super) async fn run(options: &StatusOptions) -> anyhow::Result<()> {
    let Some(secs) = options.watch else {
        return print_once(options).await;
    };
    loop {
        if !options.json && io::stdout().is_terminal() {
            out!("{CLEAR}");
        }
        // What is broken is printed, and may be mended by the next time.
        if let Err(error) = print_once(options).await {
            outln!("{error:#}");
        }
        sleep(Duration::from_secs(secs)).await;
    }
}

async fn print_once(options: &StatusOptions) -> anyhow::Result<()> {
    let file = &*options.with.config;
    let path = if options.failing {
        "/status?failing="
    } else {
        "/status"
    };
    let pages = pages_from(path, file, &Running::in_file(file)).await?;
    let now = Utc::now();
    let sheet = Sheet::of(&pages, now);
    if options.json {
        outln!("{}", tame_json(&as_json(pages, &sheet)?));
    } else {
        for line in sheet.lines(width()) {
            outln!("{line}");
        }
    }
    match sheet.broken.len() {
        0 => Ok(()),
        1 => bail!("1 thing is broken, see above"),
        count => bail!("{count} things are broken, see above"),
    }
}

/// All pages as one object on one line, with the sentences beside the facts.
fn as_json(mut pages: Vec<Status>, sheet: &Sheet) -> anyhow::Result<String> {
    let feeds: Vec<FeedStatus> = pages
        .iter_mut()
        .flat_map(|page| page.feeds.drain(..))
        .collect();
    let mut status = pages.into_iter().next().unwrap_or_default();
    status.feeds = feeds;
    status.next = None;
    let mut told = serde_json::to_value(status)?;
    told["broken"] = json!(sheet.broken);
    told["notes"] = json!(sheet.notes);
    Ok(told.to_string())
}

/// All pages of the status of a process, whose address was read of `file`.
pub(super) async fn pages(file: &Path, running: &Running) -> anyhow::Result<Vec<Status>> {
    pages_from("/status", file, running).await
}

/// The same of this path and those that it leads on to.
async fn pages_from(path: &str, file: &Path, running: &Running) -> anyhow::Result<Vec<Status>> {
    let mut pages = Vec::new();
    let mut next = Some(path.to_owned());
    while let Some(path) = next.take().filter(|_| pages.len() < PAGES_MAX) {
        let answered = running.ask(Method::GET, &path).await;
        let (status, text) =
            answered.map_err(|error| unanswered(file, &running.address, &error))?;
        if status != StatusCode::OK {
            bail!("the running everfeed answered {status}: {}", tame(&text));
        }
        let page: Status = serde_json::from_str(&text)
            .context("the answer of the running everfeed cannot be read. Is it another version?")?;
        next.clone_from(&page.next);
        pages.push(page);
    }
    Ok(pages)
}

/// The status, made ready for printing.
struct Sheet {
    head: String,
    /// The readers of all feeds; `None` if nobody asked for any.
    readers: Option<String>,
    rows: Vec<Vec<String>>,
    /// Everything that is broken, in a sentence each.
    broken: Vec<String>,
    /// Everything else that the operator should know.
    notes: Vec<String>,
}

impl Sheet {
    fn of(pages: &[Status], now: DateTime<Utc>) -> Self {
        let none = Status::default();
        let first = pages.first().unwrap_or(&none);
        let feeds: Vec<&FeedStatus> = pages.iter().flat_map(|page| &page.feeds).collect();
        let since = when(Some(&first.started_at), now).unwrap_or_default();
        let head = format!(
            "everfeed {}, started {since}; feeds: {}, held requests: {}",
            tame(&first.version),
            first.feeds_total.max(feeds.len()),
            first.waiters
        );
        let xmpp = first.xmpp.as_ref().filter(|xmpp| xmpp.online);
        let head = match xmpp {
            Some(xmpp) => format!(
                "{head}, XMPP as {}: {} subscribed",
                tame(&xmpp.jid),
                xmpp.subscriptions
            ),
            None => head,
        };
        let readers = readers(&feeds);
        let told = Told::of(pages, now);
        let line = |line: &str| relative(&tame(line), now);
        let broken = told.broken.iter().map(|it| line(&it.text)).collect();
        let notes = told.notes.iter().map(|it| line(it)).collect();
        Self {
            head,
            readers,
            rows: feeds.iter().map(|feed| row(feed, now)).collect(),
            broken,
            notes,
        }
    }

    fn lines(&self, width: usize) -> Vec<String> {
        let columns = [
            Column::cut("feed", Keep::Start, 1),
            Column::text("state"),
            Column::number("live"),
            Column::number("items"),
            Column::text("last good"),
            Column::text("next poll"),
            Column::number("subscribers"),
            Column::number("waiting"),
        ];
        let mut lines = vec![self.head.clone()];
        lines.extend(self.readers.clone());
        lines.push(String::new());
        lines.extend(table(&columns, &self.rows, width));
        for (title, told) in [("broken", &self.broken), ("notes", &self.notes)] {
            if told.is_empty() {
                continue;
            }
            lines.extend([String::new(), title.to_owned()]);
            for line in told {
                let mut indent = "  ";
                for line in wrap(line, width.saturating_sub(4)) {
                    lines.push(format!("{indent}{line}"));
                    indent = "    ";
                }
            }
        }
        lines
    }
}

/// The readers of feeds in a line; `None` if nobody asked for any.
fn readers(feeds: &[&FeedStatus]) -> Option<String> {
    let mut sum = ReadersStatus::default();
    for readers in feeds.iter().filter_map(|feed| feed.readers) {
        sum.claimed += readers.claimed;
        sum.requests += readers.requests;
        sum.conditional += readers.conditional;
        sum.misbehaving += readers.misbehaving;
    }
    let percent = (sum.conditional * 100).checked_div(sum.requests)?;
    let (claimed, requests) = (sum.claimed, sum.requests);
    let mut line = format!(
        "readers claimed: {claimed}; requests of the last day: {requests}, conditional: {percent} %"
    );
    if sum.misbehaving > 0 {
        line += &format!(
            "; misbehaving software: {} (everfeed readers)",
            sum.misbehaving
        );
    }
    Some(line)
}

fn row(feed: &FeedStatus, now: DateTime<Utc>) -> Vec<String> {
    let is_group = feed.members.is_some();
    let of_upstream = |at: Option<&str>, none: &str| {
        if is_group {
            return "-".to_owned();
        }
        when(at, now).unwrap_or_else(|| none.to_owned())
    };
    // A number may not be known now.
    let count = |count: Option<u64>| match count {
        Some(count) => count.to_string(),
        None => "?".to_owned(),
    };
    vec![
        tame(&feed.name),
        feed.state().to_owned(),
        count(feed.live_items),
        count(feed.items),
        of_upstream(feed.last_good_at.as_deref(), "never"),
        of_upstream(feed.next_poll_at.as_deref(), feed.unplanned_poll()),
        feed.subscribers.active.to_string(),
        feed.waiters.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn sheet(pages: &[Value]) -> Sheet {
        let pages: Vec<Status> = pages
            .iter()
            .map(|page| serde_json::from_value(page.clone()).unwrap())
            .collect();
        let now = DateTime::parse_from_rfc3339("2026-06-02T00:00:00Z")
            .unwrap()
            .with_timezone(&Utc);
        Sheet::of(&pages, now)
    }

    #[test]
    fn feeds_of_all_pages_stand_in_one_table_and_nothing_is_broken() {
        let feed = |name: &str| {
            json!({
                "name": name, "served": true, "items": 12, "live_items": 11, "fault": null, "waiters": 2,
                "last_good_at": "2026-06-01T23:30:00Z", "next_poll_at": "2026-06-02T00:30:00Z",
                "subscribers": { "active": 3, "pending": 0, "failing": 0 },
            })
        };
        let mut moved = feed("a");
        moved["moved_to"] = "https://new.example/".into();
        moved["shortened_items"] = 2.into();
        moved["remark"] = "the document ends early; its last entry was dropped".into();
        moved["subscribers"] = json!({ "active": 3, "failing": 1, "failures": [{ "host": "cb.example", "error": "it leads back" }] });
        let first = json!({ "version": "1", "started_at": "2026-06-01T00:00:00Z", "waiters": 4, "feeds": [moved],
            "store": { "restored": "The store was restored", "removals_unread": "its list is empty" },
            "xmpp": { "jid": "feeds.example", "online": true, "subscriptions": 4 },
            "removed_feeds": [{ "name": "old", "items": 7, "renamed_to": null }] });
        let sheet = sheet(&[first, json!({ "feeds": [feed("b")] })]);
        let lines = sheet.lines(100).join("\n");
        assert!(sheet.broken.is_empty());
        for part in [
            "started 24 h ago; feeds: 2",
            ", XMPP as feeds.example: 4 subscribed",
            "30 min ago",
            "in 30 min",
            "old: not configured any more; items kept: 7",
            "a: has moved for good to https://new.example/",
            "(keep.item_bytes_max): 2",
            "a: subscribers that do not take their pushes: 1; cb.example: it leads back",
            "a: its last document: the document ends early",
            "store: The store was restored",
            "store: its list is empty",
        ] {
            assert!(lines.contains(part), "{part} is not in:\n{lines}");
        }
        assert!(
            lines
                .lines()
                .any(|line| line.starts_with("b ") && line.contains("good")),
            "{lines}"
        );
    }

    #[test]
    fn readers_of_all_feeds_are_one_line_if_anybody_asked() {
        let feed = |readers: Value| json!({ "name": "a", "served": true, "readers": readers });
        let none = sheet(&[json!({ "version": "1", "feeds": [feed(Value::Null)] })]);
        assert_eq!(none.readers, None);
        let readers = |claimed, conditional, misbehaving| json!({ "claimed": claimed, "requests": 20, "conditional": conditional, "misbehaving": misbehaving });
        let first =
            json!({ "version": "1", "feeds": [feed(readers(120, 20, 0)), feed(Value::Null)] });
        let sheet = sheet(&[first, json!({ "feeds": [feed(readers(3, 10, 1))] })]);
        let line = "readers claimed: 123; requests of the last day: 40, conditional: 75 %; misbehaving software: 1 (everfeed readers)";
        assert_eq!(sheet.lines(200)[1], line);
    }

    #[test]
    fn nodes_are_told_by_name_and_one_that_was_started_again_once() {
        let node = |name: &str, works: bool, silent_secs: u64| json!({ "name": name, "works": works, "silent_secs": silent_secs });
        let nodes = json!({ "epoch": 4, "nodes": [
            node("one:8080", true, 1), node("two:8080", false, 0), node("two:8080", false, 30), node("three:8080", false, 12)
        ] });
        let sheet = sheet(&[json!({ "version": "1", "nodes": nodes })]);
        assert_eq!(
            sheet.notes,
            [
                "nodes: one:8080 polls and pushes, two:8080 follows, three:8080 was last heard of 12 s ago (epoch 4)"
            ]
        );
    }

    #[test]
    fn a_certificate_is_broken_once_nobody_can_be_served_with_it() {
        let told = |expires_at: Value, fault: Value| {
            let certificate = json!({ "names": ["h.example"], "authority": "ca.example", "expires_at": expires_at,
                "next_order_at": "2026-06-02T00:30:00Z", "failures": 2, "fault": fault });
            let sheet = sheet(&[json!({ "version": "1", "certificate": certificate })]);
            (sheet.broken.join("\n"), sheet.notes.join("\n"))
        };
        let (broken, notes) = told(json!("2026-07-02T00:00:00Z"), Value::Null);
        assert_eq!(broken, "");
        assert_eq!(
            notes,
            "certificate for h.example: holds until 2026-07-02, in 30 days; next order in 30 min"
        );
        let (broken, notes) = told(
            json!("2026-07-02T00:00:00Z"),
            json!("it is down (the authority's fault)"),
        );
        assert!(
            broken.is_empty() && notes.contains("ca.example did not give another: it is down"),
            "{notes}"
        );
        for (expires_at, part) in [
            (json!("2026-05-02T00:00:00Z"), "expired 31 days ago"),
            (Value::Null, "none yet"),
        ] {
            let (broken, notes) = told(expires_at, Value::Null);
            assert!(notes.is_empty() && broken.contains(part), "{broken}");
        }
    }

    #[test]
    fn a_wait_is_told_with_its_end_its_beginning_and_its_reason_and_the_ping_that_waits_for_it() {
        let feed = json!({ "name": "a", "served": false, "fault": null, "waits": {
            "until": "2026-06-02T01:00:00Z", "since": "2026-06-01T23:00:00Z", "why": "h.example asked to be left alone",
            "pinged_at": "2026-06-01T23:30:00Z" } });
        assert_eq!(
            sheet(&[json!({ "version": "1", "feeds": [feed] })]).notes,
            [
                "a: the next poll is in 60 min, because h.example asked to be left alone (since 60 min ago); a ping (30 min ago) waits for that"
            ]
        );
        let gone = json!({ "name": "a", "served": true, "waits": { "until": null, "since": "2026-05-02T00:00:00Z", "why": "gone" } });
        assert_eq!(
            sheet(&[json!({ "version": "1", "feeds": [gone] })]).notes,
            ["a: it is polled on request only, because gone (since 31 days ago)"]
        );
    }

    #[test]
    fn forty_feeds_of_one_host_are_one_line_and_their_waits_another() {
        let names: Vec<String> = (0..40).map(|no| format!("f{no:02}")).collect();
        let feed = |name: &String| {
            json!({ "name": name, "failures": 2,
            "fault": { "whose": "upstream", "owner": "the publisher's", "text": "answered 500", "since": "2026-06-01T22:00:00Z" },
            "waits": { "until": "2026-06-02T01:00:00Z", "why": "the last poll failed" } })
        };
        let mut feeds: Vec<Value> = names.iter().map(feed).collect();
        feeds.push(json!({ "name": "alone", "waits": { "until": null, "why": "gone" } }));
        let status = json!({ "version": "1", "feeds": feeds, "causes": [{ "topic": "feeds", "key": "h down",
            "title": "40 feeds at h fail", "whose": "upstream", "owner": "the publisher's", "text": "answered 500",
            "since": "2026-06-01T22:00:00Z", "feeds": names }] });
        let sheet = sheet(std::slice::from_ref(&status));
        let broken = "40 feeds at h fail (f00, f01, f02 and 37 more): answered 500 (the fault is the publisher's; since 2 h ago)";
        assert_eq!(sheet.broken, [broken]);
        assert_eq!(
            sheet.notes,
            [
                "f00, f01, f02 and 37 more: the first of their next polls is in 60 min, because the last poll failed",
                "alone: it is polled on request only, because gone"
            ]
        );
        let pages = vec![serde_json::from_value(status).unwrap()];
        let told: Value = serde_json::from_str(&as_json(pages, &sheet).unwrap()).unwrap();
        assert_eq!(told["causes"][0]["feeds"].as_array().unwrap().len(), 40);
        assert_eq!(told["broken"][0], broken);
    }

    #[test]
    fn a_search_engine_that_takes_no_key_is_told_with_whose_fault_and_what_to_do() {
        let of = |severity: &str| {
            sheet(&[json!({
                "version": "1", "started_at": "2026-06-01T00:00:00Z",
                "search_engines": [{ "topic": "search_engines", "title": "e.example does not take the key of https://b.example/",
                    "whose": "configuration", "owner": "in your configuration", "text": "it answered 403 Forbidden",
                    "remedy": "restart", "since": "2026-06-01T22:00:00Z", "severity": severity }],
                "feeds": [],
            })])
        };
        let line = "e.example does not take the key of https://b.example/: it answered 403 Forbidden (the fault is in your \
                    configuration; since 2 h ago). To do: restart";
        assert_eq!(of("fault").broken, [line]);
        let notice = of("notice");
        assert!(notice.broken.is_empty(), "{:?}", notice.broken);
        assert_eq!(notice.notes, [line]);
    }

    #[test]
    fn everything_that_is_broken_is_told_with_its_owner() {
        let status = json!({
            "version": "1", "started_at": "2026-06-01T00:00:00Z",
            "store": { "fault": "no space left" },
            "site_faults": [{ "origin": "http://10.0.0.1/", "whose": "configuration", "owner": "in your configuration", "text": "leads back", "since": "2026-06-01T23:00:00Z" }],
            "config": { "reload": { "error": "ever.toml: bad" } },
            "feeds": [{ "name": "a", "items": null, "live_items": null, "failures": 3, "served": true,
                "fault": { "whose": "upstream", "owner": "the publisher's", "text": "answered\u{1b}[2J 500", "since": "2026-06-01T22:00:00Z" } }],
        });
        let sheet = sheet(&[status]);
        assert_eq!(sheet.broken.len(), 4);
        let lines = sheet.lines(100).join("\n");
        for part in [
            "store: no space left",
            "refused: ever.toml: bad",
            "a: answered",
            "site http://10.0.0.1/: everfeed could not look for its feeds: leads back (",
            "configuration; since",
            "the fault is the publisher's",
            "since 2 h ago",
        ] {
            assert!(lines.contains(part), "{part} is not in:\n{lines}");
        }
        assert!(!lines.contains('\u{1b}'), "{lines:?}");
        let row = lines.lines().find(|line| line.starts_with("a ")).unwrap();
        assert_eq!(
            row.matches('?').count(),
            2,
            "items are not known while the store is away: {row}"
        );
    }
}
