//! `everfeed status`: the state of the running process as a table; not how it is gathered.

use super::{
    ask::{Running, unanswered},
    moments::{from_now, relative},
    probe::sheet::{Column, Keep, table, tame, width, wrap},
};
use crate::cli::output::outln;
use crate::{
    app::{
        registry::UnreadEntry,
        status::{CertificateStatus, FaultStatus, FeedStatus, Status, WaitStatus},
    },
    store::{NodeStatus, NodesStatus},
};
use anyhow::{Context as _, bail};
use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use std::path::Path;

/// Pages of feeds that are asked for at most.
const PAGES_MAX: usize = 10_000;

/// Asks for the status and prints it. An error names what is broken.
pub(super) async fn run(file: &Path) -> anyhow::Result<()> {
    let pages = pages(file, &Running::in_file(file)).await?;
    let sheet = Sheet::of(&pages, Utc::now());
    for line in sheet.lines(width()) {
        outln!("{line}");
    }
    match sheet.broken.len() {
        0 => Ok(()),
        1 => bail!("1 thing is broken, see above"),
        count => bail!("{count} things are broken, see above"),
    }
}

/// All pages of the status of a process, whose address was read of `file`.
pub(super) async fn pages(file: &Path, running: &Running) -> anyhow::Result<Vec<Status>> {
    let mut pages = Vec::new();
    let mut next = Some("/status".to_owned());
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
    rows: Vec<Vec<String>>,
    /// Everything that is broken, in a sentence each.
    broken: Vec<String>,
    /// Everything else that the operator should know.
    notes: Vec<String>,
}

/// The processes on the store, in a sentence.
fn nodes_line(nodes: &NodesStatus) -> String {
    const SILENT_SECS: u64 = NodesStatus::SILENT_SECS;
    let heard = |node: &&NodeStatus| node.silent_secs < SILENT_SECS;
    // One that was started again has a new place.
    let is_replaced = |node: &NodeStatus| {
        let mut heard = nodes.nodes.iter().filter(heard);
        node.silent_secs >= SILENT_SECS && heard.any(|other| other.name == node.name)
    };
    let told = nodes
        .nodes
        .iter()
        .filter(|node| !is_replaced(node))
        .map(|node| {
            let name = tame(&node.name);
            match (node.works, node.silent_secs) {
                (true, 0..SILENT_SECS) => format!("{name} polls and pushes"),
                (false, 0..SILENT_SECS) => format!("{name} follows"),
                (_, secs) => format!("{name} was last heard of {secs} s ago"),
            }
        });
    format!(
        "nodes: {} (epoch {})",
        told.collect::<Vec<_>>().join(", "),
        nodes.epoch
    )
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
            feeds.len(),
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
        let mut broken = Vec::new();
        if let Some(fault) = &first.store.fault {
            broken.push(format!("store: {}", tame(fault)));
        }
        if let Some(fault) = &first.worker_fault {
            let fault = tame(fault);
            broken.push(format!(
                "nodes: the one that polls and pushes told nothing of the feeds: {fault}"
            ));
        }
        if let Some(fault) = &first.store.removals_unwritten {
            broken.push(format!("store: {}", tame(fault)));
        }
        let reload = first.config.reload.as_ref();
        if let Some(error) = reload.and_then(|reload| reload.error.as_ref()) {
            let error = tame(error);
            broken.push(format!(
                "configuration: the last reload was refused: {error}"
            ));
        }
        for site in &first.site_faults {
            let (origin, fault) = (tame(&site.origin), fault(&site.fault, "", now));
            broken.push(format!(
                "site {origin}: everfeed could not look for its feeds: {fault}"
            ));
        }
        for feed in &feeds {
            if let Some(found) = &feed.fault {
                let fault = fault(found, &format!(", failed polls: {}", feed.failures), now);
                broken.push(format!("{}: {fault}", tame(&feed.name)));
            }
        }
        if let Some(xmpp) = &first.xmpp
            && let Some(fault) = &xmpp.fault
        {
            let since = when(Some(&xmpp.since), now).unwrap_or_default();
            let (jid, fault) = (tame(&xmpp.jid), tame(fault));
            broken.push(format!("XMPP as {jid}: {fault} (off since {since})"));
        }
        let mut notes = Vec::new();
        let of_store = [&first.store.restored, &first.store.removals_unread];
        for told in of_store.into_iter().flatten() {
            notes.push(format!("store: {}", tame(told)));
        }
        if let Some(nodes) = &first.nodes {
            notes.push(nodes_line(nodes));
            broken.extend(nodes.missing_feeds().iter().map(|told| tame(told)));
            notes.extend(nodes.differing_files().map(|told| tame(&told)));
        }
        if let Some(state) = &first.certificate {
            // A renewal that failed has time; without a certificate nobody is served.
            let expires_at = state.expires_at.as_deref().and_then(moment);
            let holds = expires_at.is_some_and(|until| until > now);
            if holds { &mut notes } else { &mut broken }.push(certificate(state, now));
        }
        for feed in &feeds {
            for remark in remarks(feed, now) {
                notes.push(format!("{}: {remark}", tame(&feed.name)));
            }
        }
        for UnreadEntry { name, why } in &first.registry.unread {
            let (name, why) = (tame(name), tame(why));
            broken.push(format!(
                "{name}: its entry in the registry cannot be read: {why}"
            ));
        }
        let waiting = &first.config.waiting_for_restart;
        if !waiting.is_empty() {
            let keys = tame(&waiting.join(", "));
            notes.push(format!(
                "configuration: these keys take effect at the next start: {keys}"
            ));
        }
        for feed in &first.removed_feeds {
            let (name, items) = (tame(&feed.name), feed.items);
            notes.push(format!(
                "{name}: not configured any more; items kept: {items}"
            ));
        }
        for line in broken.iter_mut().chain(&mut notes) {
            *line = relative(line, now);
        }
        Self {
            head,
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
        let mut lines = vec![self.head.clone(), String::new()];
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

fn row(feed: &FeedStatus, now: DateTime<Utc>) -> Vec<String> {
    let is_group = feed.members.is_some();
    let state = if feed.fault.is_some() {
        "failing"
    } else if !feed.served {
        "reading"
    } else if is_group {
        "group"
    } else {
        "good"
    };
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
        state.to_owned(),
        count(feed.live_items),
        count(feed.items),
        of_upstream(feed.last_good_at.as_deref(), "never"),
        of_upstream(feed.next_poll_at.as_deref(), "now"),
        feed.subscribers.active.to_string(),
        feed.waiters.to_string(),
    ]
}

/// A fault with its owner, its beginning, and more of it.
fn fault(fault: &FaultStatus, more: &str, now: DateTime<Utc>) -> String {
    let since = when(Some(&fault.since), now).unwrap_or_default();
    let (text, owner) = (tame(&fault.text), tame(&fault.owner));
    format!("{text} (the fault is {owner}; since {since}{more})")
}

/// The certificate that everfeed gets itself: its end, and the last failure.
fn certificate(state: &CertificateStatus, now: DateTime<Utc>) -> String {
    let end = match state.expires_at.as_deref().and_then(moment) {
        Some(end) if end > now => {
            format!(
                "holds until {}, {}",
                end.format("%Y-%m-%d"),
                from_now(end, now)
            )
        }
        Some(end) => format!("expired {}", from_now(end, now)),
        None => "none yet; HTTPS connections fail".to_owned(),
    };
    let next = when(Some(&state.next_order_at), now).unwrap_or_default();
    let told = match &state.fault {
        Some(fault) => format!(
            "; {} did not give another: {}; orders that failed: {}",
            tame(&state.authority),
            tame(fault),
            state.failures
        ),
        None => String::new(),
    };
    let names = tame(&state.names.join(", "));
    format!("certificate for {names}: {end}; next order {next}{told}")
}

/// Subscribers that do not take their pushes and are told one by one, of each feed.
const FAILURES_SHOWN_MAX: usize = 3;

/// Everything about a feed that is no fault, and that its operator should know.
fn remarks(feed: &FeedStatus, now: DateTime<Utc>) -> Vec<String> {
    let mut found = Vec::new();
    let failing = feed.subscribers.failing;
    if failing > 0 {
        let failures = feed.subscribers.failures.iter().take(FAILURES_SHOWN_MAX);
        let told = failures.map(|it| format!("; {}: {}", tame(&it.host), tame(&it.error)));
        found.push(format!(
            "subscribers that do not take their pushes: {failing}{}",
            told.collect::<String>()
        ));
    }
    found.extend(feed.waits.as_ref().map(|wait| waits(wait, now)));
    if let Some(since) = when(feed.quarantined_since.as_deref(), now) {
        found.push(format!(
            "too many posts are missing at once, since {since}. everfeed deletes none until it knows more"
        ));
    }
    if let Some(url) = &feed.named_by_page {
        found.push(format!(
            "its url is a web page; polled is the feed that the page names: {}",
            tame(url)
        ));
    }
    if let Some(to) = &feed.moved_to {
        found.push(format!(
            "has moved for good to {}. Give this URL as its url in the configuration",
            tame(to)
        ));
    }
    if let Some(push) = &feed.push {
        let spelt = |at: &str| when(Some(at), now).unwrap_or_default();
        found.push(tame(&push.in_words(spelt)));
    }
    if let Some(remark) = &feed.remark {
        found.push(format!("its last document: {}", tame(remark)));
    }
    if let Some(shortened) = feed.shortened_items.filter(|shortened| *shortened > 0) {
        found.push(format!(
            "items stored without their long texts (keep.item_bytes_max): {shortened}"
        ));
    }
    if !feed.gaps.is_empty() {
        let count = feed.gaps.len();
        found.push(format!("places where items may be missing: {count}"));
    }
    found.extend(feed.archives.as_deref().map(tame));
    found
}

/// The wait of a feed whose next poll is put off.
fn waits(wait: &WaitStatus, now: DateTime<Utc>) -> String {
    let mut told = match wait.until.as_deref().and_then(moment) {
        Some(until) if until <= now => "the next poll is due, because ".to_owned(),
        Some(until) => format!("the next poll is {}, because ", from_now(until, now)),
        None => "it is polled on request only, because ".to_owned(),
    };
    told += &tame(&wait.why);
    if let Some(since) = when(wait.since.as_deref(), now) {
        told += &format!(" (since {since})");
    }
    if let Some(at) = when(wait.pinged_at.as_deref(), now) {
        told += &format!("; a ping ({at}) waits for that");
    }
    told
}

/// A moment, told from now.
fn when(text: Option<&str>, now: DateTime<Utc>) -> Option<String> {
    Some(from_now(moment(text?)?, now))
}

fn moment(text: &str) -> Option<DateTime<Utc>> {
    Some(DateTime::parse_from_rfc3339(text).ok()?.with_timezone(&Utc))
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
