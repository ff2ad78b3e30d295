//! A mirror in sixty lines: follows a Smart Feed by long poll and keeps every item in a map. Run
//! the demo, then `cargo run --example mirror -- http://127.0.0.1:8080/feeds/blog.json`.

use anyhow::Context as _;
use serde_json::Value;
use std::{collections::BTreeMap, time::Duration};

/// The pause after a failed request.
const PAUSE: Duration = Duration::from_secs(5);

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let base = std::env::args()
        .nth(1)
        .context("give the URL of a feed, for instance http://127.0.0.1:8080/feeds/blog.json")?;
    // The library asks for a choice of cryptography even where only http is spoken.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .timeout(Duration::from_secs(90))
        .build()?;
    let mut items: BTreeMap<String, Value> = BTreeMap::new();
    // A mirror keeps this string beside its items, and nothing else. It never looks inside.
    let mut cursor = String::new();
    loop {
        // With `since`, an empty answer is held until something changes: no pause is needed between
        // two answers.
        let url = format!("{base}?order=modified&since=cursor:{cursor}");
        let page = match fetch(&client, &url).await {
            Ok(page) => page,
            Err(error) => {
                eprintln!("no page: {error:#}");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        for item in page["items"].as_array().into_iter().flatten() {
            let id = item["id"].as_str().context("every item has an id")?;
            let title = item["object"]["displayName"]
                .as_str()
                .unwrap_or("(no title)");
            // Items are whole objects: the new one replaces the old one, and `deleted` is a mark on
            // it.
            match (items.contains_key(id), item["deleted"] == Value::Bool(true)) {
                (_, true) => println!("deleted  {id}"),
                (true, false) => println!("changed  {id}  {title}"),
                (false, false) => println!("new      {id}  {title}"),
            }
            items.insert(id.to_owned(), item.clone());
        }
        cursor = page["last_cursor"]
            .as_str()
            .context("every page has a cursor")?
            .to_owned();
    }
}

async fn fetch(client: &reqwest::Client, url: &str) -> anyhow::Result<Value> {
    let answer = client.get(url).send().await?.error_for_status()?;
    Ok(serde_json::from_slice(&answer.bytes().await?)?)
}
