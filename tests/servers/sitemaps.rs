//! The sitemap of a site, read by the `ultimate-sitemap-parser` of PyPI. `tests/run` installs it.

use crate::{
    EVERFEED,
    webhooks::{packages, told},
};
use serde_json::{Value, json};
use std::{path::Path, process::Command};
use testkit::{
    place::Place,
    publisher::{Asked, Publisher, ok, with_headers},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_parser_of_sitemaps_reads_the_posts_of_a_site_r_10_r_11() {
    let place = Place::free();
    let root = format!("http://{}/", place.consumers);
    let entry = |no: u32, path: &str, updated: &str| {
        format!(
            "<entry><id>tag:t,2026:{no}</id><title>t</title><link href='{root}{path}'/>\
             {updated}<content>Words of {no}</content></entry>"
        )
    };
    let feed = format!(
        "<feed xmlns='http://www.w3.org/2005/Atom'><title>t</title><id>tag:t</id>{}{}{}</feed>",
        entry(
            1,
            "a?b=c&amp;d=&apos;e&apos;",
            "<updated>2026-11-01T10:00:00+02:00</updated>"
        ),
        entry(2, "caf\u{e9}#place", ""),
        entry(
            3,
            &"x".repeat(3_000),
            "<updated>2026-11-01T10:00:00Z</updated>"
        ),
    );
    let robots = format!("User-agent: *\nSitemap: {root}sitemap.xml\n");
    let origin = Publisher::of(move |asked: &Asked| match asked.path() {
        "/feed.xml" => ok("application/atom+xml", &feed),
        "/robots.txt" => ok("text/plain", &robots),
        _ => with_headers(404, &[], ""),
    })
    .await;
    place.configure(
        &format!("public_url = \"{root}\""),
        &format!(
            "[[site]]\norigin = \"{}\"\nfeeds = [\"/feed.xml\"]\nsitemap = true\nimport = {{ pages_max = 0 }}\n",
            origin.url("")
        ),
    );
    let _running = place.start(&mut place.command(EVERFEED, &["serve"]));
    place.answers("/sitemap.xml", 200).await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/sitemaps/read.py");
    let mut python = Command::new("python3");
    python
        .env("PYTHONPATH", packages("usp"))
        .arg(script)
        .arg(&root);
    let output = tokio::task::spawn_blocking(move || python.output().unwrap()).await;
    let expect = json!({
        format!("{root}a?b=c&d=%27e%27"): "2026-11-01T08:00:00+00:00",
        format!("{root}caf%C3%A9"): null,
    });
    let read: Value = serde_json::from_str(&told(output.unwrap())).unwrap();
    assert_eq!(read, expect);
}
