//! `everfeed status`: the state of the running process as a table; not how it is gathered.

use super::{
    ask::{ask, unanswered},
    moments::from_now,
    probe::sheet::{Column, Keep, table, tame, width, wrap},
};
use crate::{
    config::{self, Config},
    secret::AdminToken,
};
use anyhow::{Context as _, bail};
use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use serde_json::Value;
use std::{net::SocketAddr, path::Path};

/// Pages of feeds that are asked for at most.
const PAGES_MAX: usize = 10_000;

/// Asks for the status and prints it. An error names what is broken.
pub(super) async fn run(file: &Path) -> anyhow::Result<()> {
    let (address, token) = Config::admin_contact(file, config::environment());
    let pages = pages(file, &address, token.as_ref()).await?;
    let sheet = Sheet::of(&pages, Utc::now());
    for line in sheet.lines(width()) {
        println!("{line}");
    }
    match sheet.broken.len() {
        0 => Ok(()),
        1 => bail!("1 thing is broken, see above"),
        count => bail!("{count} things are broken, see above"),
    }
}

/// All pages of the status of the process at `address`, which was read of `file`.
pub(super) async fn pages(
    file: &Path,
    address: &SocketAddr,
    token: Option<&AdminToken>,
) -> anyhow::Result<Vec<Value>> {
    let mut pages = Vec::new();
    let mut next = Some("/status".to_owned());
    while let Some(path) = next.take().filter(|_| pages.len() < PAGES_MAX) {
        let answered = ask(Method::GET, &format!("http://{address}{path}"), token).await;
        let (status, text) = answered.map_err(|error| unanswered(file, address, error))?;
        if status != StatusCode::OK {
            bail!("the running everfeed answered {status}: {}", tame(&text));
        }
        let page: Value = serde_json::from_str(&text).context("a status that is no JSON")?;
        next = page["next"].as_str().map(str::to_owned);
        pages.push(page);
    }
    Ok(pages)
}

/// The status, made ready for printing.
struct Sheet {
    head: String,
    rows: Vec<Vec<String>>,
    /// Everything that is broken, in a sentence each.
    broken: Vec<String>,
    /// Everything else that the operator should know.
    notes: Vec<String>,
}

impl Sheet {
    fn of(pages: &[Value], now: DateTime<Utc>) -> Self {
        let first = pages.first().unwrap_or(&Value::Null);
        let feeds: Vec<&Value> = pages
            .iter()
            .filter_map(|page| page["feeds"].as_array())
            .flatten()
            .collect();
        let since = when(&first["started_at"], now).unwrap_or_default();
        let head = format!(
            "everfeed {}, started {since}; feeds: {}, held requests: {}",
            text(&first["version"]),
            feeds.len(),
            first["waiters"]
        );
        let mut broken = Vec::new();
        if let Some(fault) = first["store"]["fault"].as_str() {
            broken.push(format!("store: {}", tame(fault)));
        }
        if let Some(error) = first["config"]["reload"]["error"].as_str() {
            broken.push(format!(
                "configuration: the last reload was refused: {}",
                tame(error)
            ));
        }
        let sites = first["site_faults"].as_array().into_iter().flatten();
        broken.extend(sites.map(|site| site_fault(site, now)));
        broken.extend(feeds.iter().filter_map(|feed| fault(feed, now)));
        let mut notes = Vec::new();
        if let Some(told) = certificate(&first["certificate"], now) {
            // A renewal that failed has time; without a certificate nobody is served.
            let holds =
                moment(&first["certificate"]["expires_at"]).is_some_and(|until| until > now);
            if holds { &mut notes } else { &mut broken }.push(told);
        }
        for feed in &feeds {
            notes.extend(
                remarks(feed, now)
                    .into_iter()
                    .map(|remark| format!("{}: {remark}", text(&feed["name"]))),
            );
        }
        let waiting: Vec<String> = first["config"]["waiting_for_restart"]
            .as_array()
            .into_iter()
            .flatten()
            .map(text)
            .collect();
        if !waiting.is_empty() {
            notes.push(format!(
                "configuration: these keys take effect at the next start: {}",
                waiting.join(", ")
            ));
        }
        for feed in first["removed_feeds"].as_array().into_iter().flatten() {
            notes.push(format!(
                "{}: not configured any more; items kept: {}",
                text(&feed["name"]),
                feed["items"]
            ));
        }
        Self {
            head,
            rows: feeds.iter().map(|feed| row(feed, now)).collect(),
            broken,
            notes,
        }
    }

    fn lines(&self, width: usize) -> Vec<String> {
        let column = |name, right| Column {
            name,
            right,
            keep: None,
        };
        let columns = [
            Column {
                name: "feed",
                right: false,
                keep: Some((Keep::Start, 1)),
            },
            column("state", false),
            column("live", true),
            column("items", true),
            column("last good", false),
            column("next poll", false),
            column("subscribers", true),
            column("waiting", true),
        ];
        let mut lines = vec![self.head.clone(), String::new()];
        lines.extend(table(&columns, &self.rows, width));
        for (title, told) in [("broken", &self.broken), ("notes", &self.notes)] {
            if told.is_empty() {
                continue;
            }
            lines.extend([String::new(), title.to_owned()]);
            lines.extend(told.iter().flat_map(|line| {
                let wrapped = wrap(line, width.saturating_sub(4));
                wrapped.into_iter().enumerate().map(|(at, line)| {
                    let indent = if at == 0 { "  " } else { "    " };
                    format!("{indent}{line}")
                })
            }));
        }
        lines
    }
}

fn row(feed: &Value, now: DateTime<Utc>) -> Vec<String> {
    let is_failing = !feed["fault"].is_null();
    let state = match (is_failing, feed["served"].as_bool()) {
        (true, _) => "failing",
        (false, Some(false)) => "reading",
        (false, _) => "good",
    };
    let is_group = feed["members"].is_array();
    let state = if is_group && state == "good" {
        "group"
    } else {
        state
    };
    let moment = |key: &str| when(&feed[key], now).unwrap_or_else(|| "never".to_owned());
    let of_upstream = |told: String| if is_group { "-".to_owned() } else { told };
    let subscribers = &feed["subscribers"];
    vec![
        text(&feed["name"]),
        state.to_owned(),
        count(&feed["live_items"]),
        count(&feed["items"]),
        of_upstream(moment("last_good_at")),
        of_upstream(when(&feed["next_poll_at"], now).unwrap_or_else(|| "now".to_owned())),
        subscribers["active"].to_string(),
        feed["waiters"].to_string(),
    ]
}

/// The fault of a feed, with its owner.
fn fault(feed: &Value, now: DateTime<Utc>) -> Option<String> {
    let fault = feed["fault"].as_object()?;
    let since = fault
        .get("since")
        .and_then(|since| when(since, now))
        .unwrap_or_default();
    let told = fault.get("text").map(text).unwrap_or_default();
    let whose = whose(fault.get("whose"));
    let failures = &feed["failures"];
    Some(format!(
        "{}: {told} ({whose}; since {since}, failed polls: {failures})",
        text(&feed["name"])
    ))
}

/// The fault of the origin of a site, with its owner.
fn site_fault(site: &Value, now: DateTime<Utc>) -> String {
    let (whose, since) = (
        whose(site.get("whose")),
        when(&site["since"], now).unwrap_or_default(),
    );
    let (origin, told) = (text(&site["origin"]), text(&site["text"]));
    format!("site {origin}: its feeds could not be looked for: {told} ({whose}; since {since})")
}

/// The owner of a fault, in words.
fn whose(owner: Option<&Value>) -> &'static str {
    match owner.and_then(Value::as_str) {
        Some("upstream") => "the publisher's fault",
        Some("network") => "the network's or a name server's fault",
        Some("configuration") => "for you to mend, in the configuration",
        _ => "our own fault",
    }
}

/// The certificate that everfeed gets itself: its end, and the last failure.
fn certificate(state: &Value, now: DateTime<Utc>) -> Option<String> {
    let names: Vec<String> = state
        .as_object()?
        .get("names")?
        .as_array()?
        .iter()
        .map(text)
        .collect();
    let end = match (
        moment(&state["expires_at"]),
        when(&state["expires_at"], now),
    ) {
        (Some(end), Some(told)) if end > now => {
            format!("holds until {}, {told}", end.format("%Y-%m-%d"))
        }
        (_, Some(told)) => format!("expired {told}"),
        _ => "there is none yet, and HTTPS connections fail".to_owned(),
    };
    let next = when(&state["next_order_at"], now).unwrap_or_default();
    let told = match state["fault"].as_str() {
        Some(fault) => format!(
            "; {} did not give another: {}; orders that failed: {}",
            text(&state["authority"]),
            tame(fault),
            state["failures"]
        ),
        None => String::new(),
    };
    Some(format!(
        "certificate for {}: {end}; next order {next}{told}",
        names.join(", ")
    ))
}

/// Subscribers that do not take their pushes and are told one by one, of each feed.
const FAILURES_SHOWN_MAX: usize = 3;

/// Everything about a feed that is no fault, and that its operator should know.
fn remarks(feed: &Value, now: DateTime<Utc>) -> Vec<String> {
    let mut found = Vec::new();
    if feed["subscribers"]["failing"]
        .as_u64()
        .is_some_and(|failing| failing > 0)
    {
        let failures = feed["subscribers"]["failures"]
            .as_array()
            .into_iter()
            .flatten();
        let told: Vec<String> = failures
            .take(FAILURES_SHOWN_MAX)
            .map(|failing| format!("; {}: {}", text(&failing["host"]), text(&failing["error"])))
            .collect();
        let count = &feed["subscribers"]["failing"];
        found.push(format!(
            "subscribers that do not take their pushes: {count}{}",
            told.concat()
        ));
    }
    if let Some(wait) = feed["waits"].as_object() {
        let moment = |key: &str| wait.get(key).and_then(|moment| when(moment, now));
        let until = moment("until").map_or_else(
            || "not polled unless asked for".to_owned(),
            |until| format!("polled {until}"),
        );
        let since = moment("since")
            .map(|since| format!(", since {since}"))
            .unwrap_or_default();
        let ping = moment("pinged_at")
            .map(|at| format!("; a ping ({at}) waits for that"))
            .unwrap_or_default();
        let why = wait.get("why").map(text).unwrap_or_default();
        found.push(format!("{until}: {why}{since}{ping}"));
    }
    if let Some(since) = when(&feed["quarantined_since"], now) {
        found.push(format!(
            "too much is missing at once to be believed, since {since}"
        ));
    }
    if let Some(to) = feed["moved_to"].as_str() {
        found.push(format!(
            "redirects for good to {}; give that as its url in the configuration",
            tame(to)
        ));
    }
    if let Some(remark) = feed["remark"].as_str() {
        found.push(format!("its last document: {}", tame(remark)));
    }
    if let Some(shortened) = feed["shortened_items"]
        .as_u64()
        .filter(|shortened| *shortened > 0)
    {
        found.push(format!(
            "items kept without texts that are too long (keep.item_bytes_max): {shortened}"
        ));
    }
    if let Some(gaps) = feed["gaps"].as_array().filter(|gaps| !gaps.is_empty()) {
        found.push(format!("places where items may be missing: {}", gaps.len()));
    }
    if let Some(archives) = feed["archives"].as_str() {
        found.push(tame(archives));
    }
    found
}

/// A moment, told from now.
fn when(moment: &Value, now: DateTime<Utc>) -> Option<String> {
    Some(from_now(self::moment(moment)?, now))
}

fn moment(moment: &Value) -> Option<DateTime<Utc>> {
    Some(
        DateTime::parse_from_rfc3339(moment.as_str()?)
            .ok()?
            .with_timezone(&Utc),
    )
}

/// A number that may not be known now.
fn count(value: &Value) -> String {
    value
        .as_u64()
        .map_or_else(|| "?".to_owned(), |count| count.to_string())
}

/// A text that cannot steer the terminal; empty for anything else.
fn text(value: &Value) -> String {
    value.as_str().map(tame).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sheet(pages: &[Value]) -> Sheet {
        let now = DateTime::parse_from_rfc3339("2026-06-02T00:00:00Z")
            .unwrap()
            .with_timezone(&Utc);
        Sheet::of(pages, now)
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
            "removed_feeds": [{ "name": "old", "items": 7, "renamed_to": null }] });
        let sheet = sheet(&[first, json!({ "feeds": [feed("b")] })]);
        let lines = sheet.lines(100).join("\n");
        assert!(sheet.broken.is_empty());
        for part in [
            "started 24 h ago; feeds: 2",
            "30 min ago",
            "in 30 min",
            "old: not configured any more; items kept: 7",
            "a: redirects for good to https://new.example/",
            "(keep.item_bytes_max): 2",
            "a: subscribers that do not take their pushes: 1; cb.example: it leads back",
            "a: its last document: the document ends early",
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
            (Value::Null, "there is none yet"),
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
                "a: polled in 60 min: h.example asked to be left alone, since 60 min ago; a ping (30 min ago) waits for that"
            ]
        );
        let gone = json!({ "name": "a", "served": true, "waits": { "until": null, "since": "2026-05-02T00:00:00Z", "why": "gone" } });
        assert_eq!(
            sheet(&[json!({ "version": "1", "feeds": [gone] })]).notes,
            ["a: not polled unless asked for: gone, since 31 days ago"]
        );
    }

    #[test]
    fn everything_that_is_broken_is_told_with_its_owner() {
        let status = json!({
            "version": "1", "started_at": "2026-06-01T00:00:00Z",
            "store": { "fault": "no space left" },
            "site_faults": [{ "origin": "http://10.0.0.1/", "whose": "configuration", "text": "leads back", "since": "2026-06-01T23:00:00Z" }],
            "config": { "reload": { "error": "ever.toml: bad" } },
            "feeds": [{ "name": "a", "items": null, "live_items": null, "failures": 3, "served": true,
                "fault": { "whose": "upstream", "text": "answered\u{1b}[2J 500", "since": "2026-06-01T22:00:00Z" } }],
        });
        let sheet = sheet(&[status]);
        assert_eq!(sheet.broken.len(), 4);
        let lines = sheet.lines(100).join("\n");
        for part in [
            "store: no space left",
            "refused: ever.toml: bad",
            "a: answered",
            "site http://10.0.0.1/: its feeds could not be looked for: leads back (for you to mend",
            "the publisher's fault",
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
