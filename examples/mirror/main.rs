//! Mirrors a Smart Feed into a file: `cargo run --example mirror -- URL FILE [--once]`.

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, fs, io::Write as _, path::Path, time::Duration};
use tokio::time::sleep;

/// What a mirror keeps. It never looks into its cursor.
#[derive(Default, Deserialize, Serialize)]
struct Mirror {
    cursor: String,
    items: BTreeMap<String, Value>,
}

/// One answer of the feed.
struct Answer {
    page: Value,
    /// True if the cursor is not one of this feed, or of this reader's part of it: all items follow.
    is_reset: bool,
}

impl Mirror {
    fn load(path: &Path) -> Result<Self> {
        if path.exists() {
            Ok(serde_json::from_slice(&fs::read(path)?)?)
        } else {
            Ok(Self::default())
        }
    }

    /// Cursor and items go into one file at once: a mirror that is killed goes on where it was.
    fn save(&self, path: &Path) -> Result<()> {
        let new = format!("{}.new", path.display());
        let mut file = fs::File::create(&new)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_all()?;
        Ok(fs::rename(&new, path)?)
    }

    fn apply(&mut self, answer: &Answer) -> Result<()> {
        if answer.is_reset {
            self.items.clear();
        }
        for item in answer.page["items"].as_array().into_iter().flatten() {
            let id = item["id"].as_str().context("every item has an id")?;
            if item["deleted"] == Value::Bool(true) {
                self.items.remove(id);
            } else {
                self.items.insert(id.to_owned(), item.clone());
            }
        }
        let cursor = answer.page["last_cursor"].as_str();
        self.cursor = cursor.context("every page has a cursor")?.to_owned();
        Ok(())
    }
}

/// Asks until there is an answer. With `since`, everfeed holds an empty one until something changes.
async fn fetch(client: &reqwest::Client, url: &str) -> Result<Answer> {
    loop {
        let response = match client.get(url).send().await {
            Ok(response) => response,
            Err(error) => {
                eprintln!("no answer: {error}");
                sleep(Duration::from_secs(5)).await;
                continue;
            }
        };
        let header = |name| response.headers().get(name)?.to_str().ok();
        let is_reset = header("smart-feed-cursor") == Some("reset");
        let wait_secs = header("retry-after").and_then(|secs| secs.parse().ok());
        match response.status().as_u16() {
            200 => {
                let page = serde_json::from_slice(&response.bytes().await?)?;
                return Ok(Answer { page, is_reset });
            }
            410 => bail!("this feed is not served any more"),
            429 | 500.. => sleep(Duration::from_secs(wait_secs.unwrap_or(5))).await,
            status => bail!("{status}: {}", response.text().await?),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [base, path, flags @ ..] = &arguments[..] else {
        bail!("mirror URL FILE [--once]");
    };
    let is_once = flags.iter().any(|flag| flag == "--once");
    let timeout_secs = if is_once { 0 } else { 55 };
    // The library asks for a choice of cryptography even where only http is spoken.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .timeout(Duration::from_secs(90))
        .build()?;
    let mut mirror = Mirror::load(path.as_ref())?;
    loop {
        let cursor = &mirror.cursor;
        let url = format!("{base}?order=modified&since=cursor:{cursor}&timeout={timeout_secs}");
        let answer = fetch(&client, &url).await?;
        mirror.apply(&answer)?;
        mirror.save(path.as_ref())?;
        if is_once && answer.page.get("next").is_none() {
            return Ok(());
        }
    }
}
