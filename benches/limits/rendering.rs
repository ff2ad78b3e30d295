//! Question 8: bytes that each syntax writes in a second. Atom against the least that an XML
//! document of the same posts needs: their strings, escaped into one buffer; the other syntaxes
//! against Atom.

use crate::{
    house::PollerRig,
    report::{Aim, Report},
    rounds::compare,
};
use anyhow::{Result, ensure};
use everfeed::{
    feed::{
        order::Order,
        page::{Page, PageQuery},
    },
    render::{ArchiveLinks, Audience, Document, Links, Representation},
};
use std::{hint::black_box, time::Instant};

const PAGE_ITEMS: usize = 50;
/// Documents that are written between two looks at the clock.
const DOCUMENTS: usize = 40;
const ROUNDS: usize = 31;

pub(crate) async fn ask(report: &Report) -> Result<()> {
    report.question(
        "(8) Writing a page of 50 items of 2 KB, bytes written a second",
        "Atom / the posts' strings, escaped by quick-xml into one buffer; every other syntax / Atom",
    );
    let (house, _) = PollerRig::new(1_000).await?;
    let query = PageQuery {
        max: PAGE_ITEMS,
        ..PageQuery::all(house.feed(), Order::MODIFIED)
    };
    let page = house.store.page(query).await?;
    ensure!(
        page.items.len() == PAGE_ITEMS && page.degraded.is_none(),
        "a full page"
    );
    let links = links();
    let writes =
        |representation: Representation| byte_secs(|| document(&page, &links, representation));
    let strings = strings(&page);
    let atom = compare(
        ROUNDS,
        async |_| writes(Representation::ATOM),
        async |_| byte_secs(|| escaped(&strings)),
    );
    report.ratio("Atom 1.0 / escaped strings", atom.await?, Aim::AtLeast(0.5));
    for representation in
        Representation::of(Audience::Full).filter(|other| *other != Representation::ATOM)
    {
        let spread = compare(
            ROUNDS,
            async |_| writes(representation),
            async |_| writes(Representation::ATOM),
        )
        .await?;
        report.ratio(
            format!("{} / Atom", representation.syntax_title()),
            spread,
            Aim::AtLeast(0.5),
        );
    }
    Ok(())
}

/// The seconds that a byte of some documents takes.
fn byte_secs(write: impl Fn() -> Vec<u8>) -> Result<f64> {
    let start = Instant::now();
    let mut bytes = 0;
    for _ in 0..DOCUMENTS {
        bytes += black_box(write()).len();
    }
    ensure!(bytes > 0, "nothing was written");
    Ok(start.elapsed().as_secs_f64() / bytes as f64)
}

fn document(page: &Page, links: &Links, representation: Representation) -> Vec<u8> {
    representation.write(&Document {
        page,
        links,
        push: None,
        ttl_mins: None,
    })
}

/// The strings of the posts of a page.
fn strings(page: &Page) -> Vec<&str> {
    let entries = page.items.iter().filter_map(|item| item.entry());
    let mut strings = Vec::new();
    for entry in entries {
        strings.extend(entry.id.as_deref());
        strings.extend(entry.title.as_ref().map(|title| &*title.value));
        strings.extend(entry.content.as_ref().map(|content| &*content.text.value));
        strings.extend(entry.links.iter().map(|link| &*link.href));
        strings.extend(
            entry
                .authors
                .iter()
                .filter_map(|author| author.name.as_deref()),
        );
        strings.extend(entry.categories.iter().map(|category| &*category.term));
    }
    strings
}

fn escaped(strings: &[&str]) -> Vec<u8> {
    let mut out = Vec::with_capacity(4096 * PAGE_ITEMS);
    for string in strings {
        out.extend_from_slice(quick_xml::escape::escape(*string).as_bytes());
    }
    out
}

fn links() -> Links {
    let url = |path: &str| format!("https://feeds.example/{path}");
    Links {
        base: url("feeds/blog.atom?order=modified"),
        hub: url("hub"),
        next: Some(url(
            "feeds/blog.atom?since=cursor:1_modified_2&order=modified",
        )),
        alternates: Vec::new(),
        about: url("feeds/blog/about"),
        list: String::new(),
        topic: String::new(),
        xmpp: None,
        archives: ArchiveLinks::default(),
        is_old_address: false,
        cloud: None,
        is_live_view: false,
    }
}
