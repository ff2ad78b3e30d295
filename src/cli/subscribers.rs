//! `everfeed subscribers`: the subscriptions of the running process as a table, and commands on one;
//! not how they are carried out.

use super::{
    WithConfig,
    ask::{Running, unanswered},
    probe::sheet::{Column, Keep, table, tame, tame_json, width},
};
use crate::app::moments::relative;
use crate::app::subscribers::{Subscriber, SubscriberCommand, SubscriberPage};
use crate::cli::output::outln;
use anyhow::{Context as _, bail};
use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use serde_json::json;
use std::path::Path;

#[derive(Debug, Subcommand)]
pub(super) enum SubscribersCommand {
    /// List the subscriptions: host, dialect, lag, last answer, next try.
    List(ListOptions),
    /// Try a subscription now, whatever failed before.
    Retry(NumberOptions),
    /// End a subscription, and tell its subscriber.
    End(NumberOptions),
    /// Remove every subscription with a callback or an address at a host. The subscriber is not told.
    Forget(HostOptions),
}

#[derive(Debug, Args)]
pub(super) struct ListOptions {
    #[command(flatten)]
    with: WithConfig,
    /// List only the subscriptions to this feed.
    #[arg(long)]
    feed: Option<String>,
    /// List only the subscriptions with a callback or an address at this host.
    #[arg(long)]
    host: Option<String>,
    /// Print the list as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct NumberOptions {
    #[command(flatten)]
    with: WithConfig,
    /// The number of the subscription.
    number: u64,
}

#[derive(Debug, Args)]
pub(super) struct HostOptions {
    #[command(flatten)]
    with: WithConfig,
    /// The host of the callback, or the domain of the address.
    host: String,
}

/// Pages of subscriptions that are asked for at most.
const PAGES_MAX: usize = 1000;

/// Carries out a command. The file is read for the address of the process only.
pub(super) async fn run(command: &SubscribersCommand) -> anyhow::Result<()> {
    let (with, command) = match command {
        SubscribersCommand::List(options) => return list(options).await,
        SubscribersCommand::Retry(options) => {
            (&options.with, SubscriberCommand::Retry(options.number))
        }
        SubscribersCommand::End(options) => (&options.with, SubscriberCommand::End(options.number)),
        SubscribersCommand::Forget(options) => (
            &options.with,
            SubscriberCommand::Forget(options.host.clone()),
        ),
    };
    outln!("{}", tame(ask(&with.config, &command).await?.trim_end()));
    Ok(())
}

/// Asks the running process. A refusal is an error.
async fn ask(file: &Path, command: &SubscriberCommand) -> anyhow::Result<String> {
    let running = Running::in_file(file);
    let (method, target) = command.request();
    let answered = running.ask(method, &target).await;
    let (status, text) = answered.map_err(|error| unanswered(file, &running.address, &error))?;
    if !status.is_success() {
        bail!("{}", tame(text.trim_end()));
    }
    Ok(text)
}

async fn list(options: &ListOptions) -> anyhow::Result<()> {
    let mut subscribers: Vec<Subscriber> = Vec::new();
    let mut after = None;
    for _ in 0..PAGES_MAX {
        let command = SubscriberCommand::List {
            feed: options.feed.clone(),
            host: options.host.clone(),
            after,
        };
        let text = ask(&options.with.config, &command).await?;
        let page: SubscriberPage = serde_json::from_str(&text)
            .context("the answer of the running everfeed cannot be read. Is it another version?")?;
        subscribers.extend(page.subscribers);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    if options.json {
        let all = json!({ "subscribers": subscribers });
        outln!("{}", tame_json(&serde_json::to_string_pretty(&all)?));
        return Ok(());
    }
    for line in lines(&subscribers, Utc::now(), width()) {
        outln!("{line}");
    }
    Ok(())
}

fn lines(subscribers: &[Subscriber], now: DateTime<Utc>, width: usize) -> Vec<String> {
    if subscribers.is_empty() {
        return vec!["there are no subscriptions".to_owned()];
    }
    let columns = [
        Column::number("number"),
        Column::cut("feed", Keep::Start, 1),
        Column::cut("host", Keep::End, 2),
        Column::text("dialect"),
        Column::text("state"),
        Column::number("lag"),
        Column::cut("last answer", Keep::Start, 2),
        Column::text("next try"),
    ];
    let rows: Vec<Vec<String>> = subscribers.iter().map(|sub| row(sub, now)).collect();
    table(&columns, &rows, width)
}

fn row(sub: &Subscriber, now: DateTime<Utc>) -> Vec<String> {
    let moment = |at: Option<&str>| at.map(|at| relative(&tame(at), now)).unwrap_or_default();
    vec![
        sub.number.to_string(),
        sub.feed.as_deref().map_or_else(|| "-".to_owned(), tame),
        tame(&sub.host),
        tame(&sub.dialect),
        tame(&sub.state),
        sub.lag_secs
            .map_or_else(|| "-".to_owned(), |secs| format!("{secs} s")),
        sub.last_answer.as_deref().map(tame).unwrap_or_default(),
        moment(sub.next_try_at.as_deref()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_is_a_line_and_no_control_character_of_a_subscriber_is_printed() {
        let well = Subscriber {
            number: 3,
            feed: Some("blog".into()),
            topic: "http://feeds.example/feeds/blog.atom".into(),
            host: "reader.example".into(),
            dialect: "WebSub".into(),
            state: "active".into(),
            lag_secs: Some(0),
            last_answer: Some("taken".into()),
            answered_at: None,
            next_try_at: None,
            lease_until: None,
        };
        let failing = Subscriber {
            number: 4,
            state: "failing".into(),
            lag_secs: Some(90),
            last_answer: Some("it answered \u{1b}[31m".into()),
            next_try_at: Some("2026-06-01T00:05:00Z".into()),
            ..well.clone()
        };
        let now = DateTime::parse_from_rfc3339("2026-06-01T00:00:00Z").unwrap();
        let told = lines(&[well, failing], now.with_timezone(&Utc), 200);
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[1].contains("reader.example") && told[1].contains("taken"));
        assert!(told[2].contains("90 s") && told[2].contains("in 5 min"));
        assert!(!told[2].contains('\u{1b}'));
    }
}
