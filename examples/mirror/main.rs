//! Mirrors a Smart Feed into a file: `cargo run --example mirror -- URL FILE [--once] [--sweep]`.
//!
//! A store that was restored from an older copy does not know all that this mirror holds. The
//! mirror then reads the whole feed, and drops what it did not meet. If that is more than a tenth,
//! it stops and asks; `--sweep` is the answer.

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write as _,
    path::Path,
    time::Duration,
};
use tokio::time::sleep;

/// What a mirror keeps. It never looks into its cursor.
#[derive(Default, Deserialize, Serialize)]
struct Mirror {
    cursor: String,
    items: BTreeMap<String, Value>,
    /// The generation that the items are of.
    #[serde(default)]
    generation: Option<String>,
    /// Ids that were met in a new generation, while all of it is read.
    #[serde(default)]
    met: Option<BTreeSet<String>>,
}

/// One answer of the feed.
struct Answer {
    page: Value,
    /// True if the cursor is not one of this feed, or of this reader's part of it: all items follow.
    is_reset: bool,
    /// True if the store was restored from a copy that does not know the cursor.
    is_ahead: bool,
    /// The generation of the feed.
    generation: Option<String>,
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

    /// Takes in an answer. True if the feed is to be read from its beginning now.
    fn apply(&mut self, answer: &Answer) -> Result<bool> {
        let is_known = self.generation.is_none() || self.generation == answer.generation;
        self.generation.clone_from(&answer.generation);
        if answer.is_ahead || !is_known {
            // All of the new generation is read. Nothing goes before the end of it.
            self.met = Some(BTreeSet::new());
            self.cursor.clear();
            return Ok(true);
        }
        if answer.is_reset {
            self.items.clear();
            self.met = None;
        }
        for item in answer.page["items"].as_array().into_iter().flatten() {
            let id = item["id"].as_str().context("every item has an id")?;
            self.met.iter_mut().for_each(|met| {
                met.insert(id.to_owned());
            });
            if item["deleted"] == Value::Bool(true) {
                self.items.remove(id);
            } else {
                self.items.insert(id.to_owned(), item.clone());
            }
        }
        let cursor = answer.page["last_cursor"].as_str();
        self.cursor = cursor.context("every page has a cursor")?.to_owned();
        Ok(false)
    }

    /// Drops the items that were not met, at the end of a new generation.
    fn sweep(&mut self, is_allowed: bool) -> Result<()> {
        let Some(met) = &self.met else { return Ok(()) };
        let unmet = self.items.keys().filter(|id| !met.contains(*id)).count();
        if unmet * 10 > self.items.len() && !is_allowed {
            bail!(
                "the feed was restored or begun anew, and {unmet} of {} items are not in it any more; \
                 run this again with --sweep to drop them, or with another file to keep them",
                self.items.len()
            );
        }
        self.items.retain(|id, _| met.contains(id));
        self.met = None;
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
        let degraded = header("smart-feed-cursor");
        let (is_reset, is_ahead) = (degraded == Some("reset"), degraded == Some("ahead"));
        let generation = header("smart-feed-generation").map(str::to_owned);
        let wait_secs = header("retry-after").and_then(|secs| secs.parse().ok());
        match response.status().as_u16() {
            200 => {
                let page = serde_json::from_slice(&response.bytes().await?)?;
                return Ok(Answer {
                    page,
                    is_reset,
                    is_ahead,
                    generation,
                });
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
        bail!("mirror URL FILE [--once] [--sweep]");
    };
    let is_once = flags.iter().any(|flag| flag == "--once");
    let may_sweep = flags.iter().any(|flag| flag == "--sweep");
    // The library asks for a choice of cryptography even where only http is spoken.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .timeout(Duration::from_secs(90))
        .build()?;
    let mut mirror = Mirror::load(path.as_ref())?;
    loop {
        let cursor = &mirror.cursor;
        let timeout_secs = if is_once || mirror.met.is_some() {
            0
        } else {
            55
        };
        let url = format!("{base}?order=modified&since=cursor:{cursor}&timeout={timeout_secs}");
        let answer = fetch(&client, &url).await?;
        // An empty feed has an empty cursor, and an end all the same.
        let begins_anew = mirror.apply(&answer)?;
        let is_end = answer.page.get("next").is_none() && !begins_anew;
        mirror.save(path.as_ref())?;
        if is_end {
            mirror.sweep(may_sweep)?;
            mirror.save(path.as_ref())?;
        }
        if is_once && is_end {
            return Ok(());
        }
    }
}
