//! Which component may name which.

use crate::{
    names::{Name, names},
    tree::{Sources, Target, Tree, repository},
};
use std::collections::{BTreeMap, BTreeSet};

/// Every component of `src/`, and the components that it may name besides itself and the
/// foundations.
/// `adapters <- feed <- events <- {render, store, notify} <- {catalog, readers, edge}
/// <- {ingest, serve, proxy, hub, xmpp, alerts, search_engines} <- app <- cli`.
const COMPONENTS: &[(&str, &[&str])] = &[
    ("adapters", &[]),
    ("feed", &["adapters"]),
    // Pure, as `feed` is.
    ("events", &["feed"]),
    ("render", &["adapters", "feed", "events"]),
    // `auth` for users and tokens, and `events` for events, which it stores.
    ("store", &["adapters", "feed", "events", "auth"]),
    ("notify", &["adapters", "feed"]),
    // `auth` for the settings that say who may read.
    ("catalog", &["adapters", "feed", "store", "notify", "auth"]),
    (
        "readers",
        &["adapters", "feed", "render", "store", "notify"],
    ),
    // Pure but for its tables of noted requests.
    ("readership", &["feed"]),
    ("layers", &[]),
    ("auth", &[]),
    // `layers` for the way to the authority. `store` for what several nodes keep together.
    ("acme", &["layers", "store"]),
    (
        "ingest",
        &[
            "adapters", "feed", "events", "store", "notify", "catalog", "layers",
        ],
    ),
    // `acme` for the certificate that it shows, and for the answers to the authority that gives it.
    // `adapters` for the character references in calls of XML-RPC.
    ("edge", &["adapters", "layers", "acme"]),
    (
        "serve",
        &[
            "adapters",
            "feed",
            "render",
            "store",
            "notify",
            "catalog",
            "readers",
            "readership",
            "layers",
            "auth",
            "edge",
        ],
    ),
    // `render` for the JSON of an event.
    ("alerts", &["feed", "events", "render", "layers"]),
    // `edge` for bodies, the form of short answers and fields of heads; the hub likewise.
    (
        "proxy",
        &[
            "adapters", "feed", "render", "store", "notify", "catalog", "readers", "layers",
            "auth", "edge",
        ],
    ),
    // `render` for representations and the URLs of topics.
    (
        "hub",
        &[
            "adapters", "feed", "render", "store", "notify", "catalog", "readers", "layers",
            "auth", "edge",
        ],
    ),
    // `edge` for the form of short answers and fields of heads.
    (
        "subscriber",
        &[
            "adapters", "feed", "store", "notify", "catalog", "layers", "edge",
        ],
    ),
    // `events` for its findings.
    (
        "search_engines",
        &["feed", "events", "store", "notify", "catalog", "layers"],
    ),
    (
        "xmpp",
        &[
            "adapters", "feed", "render", "store", "notify", "catalog", "readers", "layers", "auth",
        ],
    ),
    (
        "config",
        &[
            "adapters",
            "feed",
            "store",
            "catalog",
            "readers",
            "layers",
            "auth",
            "acme",
            "ingest",
            "edge",
            "serve",
            "proxy",
            "hub",
            "subscriber",
            "xmpp",
            "alerts",
            "search_engines",
        ],
    ),
    (
        "app",
        &[
            "adapters",
            "feed",
            "render",
            "store",
            "notify",
            "catalog",
            "readers",
            "readership",
            "layers",
            "auth",
            "acme",
            "ingest",
            "edge",
            "serve",
            "proxy",
            "hub",
            "subscriber",
            "xmpp",
            "config",
            "events",
            "alerts",
            "search_engines",
        ],
    ),
    // `render` for the words of a title: `probe` shows them as the outputs do.
    // `auth` for the commands on users, whose passwords are hashed before they are sent.
    (
        "cli",
        &[
            "adapters", "feed", "render", "store", "auth", "config", "app",
        ],
    ),
    ("byte_budget", &[]),
    ("client_net", &[]),
    ("clock", &[]),
    ("identity", &[]),
    ("locks", &[]),
    ("mistakes", &[]),
    ("one_line", &[]),
    ("registrable_domain", &[]),
    ("secret", &[]),
    ("setting", &["secret"]),
    ("standard_webhooks", &["secret"]),
    ("telemetry", &[]),
    ("threads", &[]),
    ("tls_client", &[]),
];

/// Nameable by every component, because they name none but each other.
const FOUNDATIONS: &[&str] = &[
    "byte_budget",
    "client_net",
    "clock",
    "identity",
    "locks",
    "mistakes",
    "one_line",
    "registrable_domain",
    "secret",
    "setting",
    "standard_webhooks",
    "telemetry",
    "threads",
    "tls_client",
];

/// In the table already, but not in the tree.
const COMING: &[&str] = &[];

#[test]
fn every_component_names_only_those_below_it() {
    let offences = offences(&Tree::read(&repository("src")));
    assert!(offences.is_empty(), "{}", offences.join("\n"));
}

#[test]
fn every_component_is_in_the_table_and_those_to_come_are_told() {
    let tree = Tree::read(&repository("src"));
    let found: BTreeSet<_> = tree
        .modules
        .iter()
        .filter_map(|module| component(&module.path))
        .collect();
    let coming = COMING.iter().copied().chain(["adapters"]);
    let known: BTreeSet<_> = COMPONENTS.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        found
            .union(&coming.clone().collect())
            .copied()
            .collect::<BTreeSet<_>>(),
        known
    );
    assert!(
        coming.clone().all(|name| !found.contains(name)),
        "{COMING:?} are there already in part"
    );
}

#[test]
fn the_table_has_no_circles_and_names_only_components() {
    let table: BTreeMap<_, _> = COMPONENTS.iter().copied().collect();
    assert_eq!(table.len(), COMPONENTS.len(), "a component stands twice");
    let mut done: BTreeSet<&str> = BTreeSet::new();
    // A component is done when all that it may name are: what is left over stands on a circle.
    while let Some((name, _)) = table.iter().find(|(name, below)| {
        !done.contains(*name) && below.iter().all(|other| done.contains(other))
    }) {
        done.insert(name);
    }
    let left: Vec<_> = table.keys().filter(|name| !done.contains(*name)).collect();
    assert!(
        left.is_empty(),
        "these name each other, or what is no component: {left:?}"
    );
}

#[test]
fn an_engine_is_named_by_its_driver_alone() {
    let tree = Tree::read(&repository("src"));
    let mut found = Vec::new();
    for (index, module) in tree.modules.iter().enumerate() {
        if module.file.contains("tests") {
            continue;
        }
        for Name { path, line, .. } in names(module) {
            let driver = match path[0].as_str() {
                "redb" => "redb",
                "tokio_postgres" => "postgres",
                _ => continue,
            };
            let is_ours = matches!(tree.resolve(index, &path[..1]), Target::Module(_));
            if !is_ours
                && !module
                    .path
                    .starts_with(&["store".to_owned(), driver.to_owned()])
            {
                found.push(format!(
                    "{}:{line} names the crate `{}`",
                    module.file, path[0]
                ));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The component that a module is in. Foundations that a feed stands on are in its crate, since that names no other of ours.
fn component(path: &[String]) -> Option<&str> {
    let foundation = path
        .get(1)
        .filter(|name| path[0] == "feed" && FOUNDATIONS.contains(&name.as_str()));
    foundation.or(path.first()).map(String::as_str)
}

/// Every name that a component writes and must not, a line each.
fn offences(tree: &Tree) -> Vec<String> {
    let table: BTreeMap<&str, &[&str]> = COMPONENTS.iter().copied().collect();
    let mut found = Vec::new();
    for (index, module) in tree.modules.iter().enumerate() {
        let Some(own) = component(&module.path) else {
            continue;
        };
        let below = table.get(own).copied().unwrap_or_default();
        for Name { path, line, .. } in names(module) {
            let Some(named) = named(tree, index, &path).filter(|named| named != own) else {
                continue;
            };
            if !below.contains(&named.as_str()) && !FOUNDATIONS.contains(&named.as_str()) {
                found.push(format!(
                    "{}:{line} names `{named}`, which `{own}` must not",
                    module.file
                ));
            }
        }
    }
    found
}

/// The component that a path enters from the root. A name that was imported is counted at its
/// import, and a component answers for what it re-exports. Who imports the root itself, by a glob
/// or under another name, names all: `crate`.
fn named(tree: &Tree, module: usize, path: &[String]) -> Option<String> {
    if path[0] == "everfeed_adapters" {
        return Some("adapters".to_owned());
    }
    let keywords = path
        .iter()
        .take_while(|part| ["crate", "$crate", "self", "super"].contains(&part.as_str()))
        .count();
    let root = tree.root_of(module);
    let is_root = keywords > 0 && tree.resolve(module, &path[..keywords]) == Target::Module(root);
    match path.get(keywords).filter(|_| is_root) {
        // The root of a crate within this one is a component itself.
        None => is_root.then(|| {
            component(&tree.modules[root].path)
                .unwrap_or("crate")
                .to_owned()
        }),
        Some(name) => match tree.resolve(root, std::slice::from_ref(name)) {
            Target::Item(of, _) | Target::Module(of) => {
                component(&tree.modules[of].path).map(str::to_owned)
            }
            Target::External(_) | Target::Unknown => None,
        },
    }
}

fn check(hub: &str, expect: &[&str]) {
    let files = [
        (
            "lib.rs",
            "pub mod hub; pub mod serve; pub mod feed; pub mod readers; pub mod clock;",
        ),
        ("hub.rs", hub),
        (
            "serve.rs",
            "pub struct Router; pub mod inner { pub fn call() {} }",
        ),
        ("feed.rs", "pub struct Item;"),
        ("readers.rs", "pub use crate::feed::Item;"),
        ("clock.rs", "pub fn now() {}"),
    ];
    let sources: Sources = files
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .collect();
    let found = offences(&Tree::of(&sources));
    assert_eq!(found.len(), expect.len(), "{hub}: {found:?}");
    for (found, expect) in found.iter().zip(expect) {
        assert!(found.contains(expect), "{hub}: {found}");
    }
}

#[test]
fn no_way_of_writing_a_path_slips_through() {
    let serve = &["names `serve`, which `hub` must not"];
    for good in [
        "use crate::{feed::Item, clock::now};",
        "pub(crate) struct Seen { pub(crate) field: u8, pub(in crate::hub) other: u8 }",
        "use crate::readers::{self, Item}; fn f(_: readers::Item) {}",
        "fn f() { super::clock::now() }",
        "#[cfg(test)] mod tests { use crate::serve::Router; }",
        "// crate::serve\nconst SAID: &str = \"crate::serve::Router\";",
    ] {
        check(good, &[]);
    }
    for bad in [
        "use crate::serve::Router;",
        "use crate::{feed::Item, serve::{inner::{call}}};",
        "use super::serve as other;",
        "use super::{feed, serve::*};",
        "fn f(_: Vec<crate::serve::Router>) {}",
        "fn f() { super::serve::inner::call() }",
        "fn f() { println!(\"{}\", crate::serve::inner::call()) }",
        "mod deep { mod deeper { fn f() -> super::super::super::serve::Router {} } }",
        "pub use crate::serve::Router as Mine;",
        "#[derive(crate::serve::Router)] struct S;",
        "impl crate::serve::Router { fn f() { use crate::feed::Item; } }",
    ] {
        check(bad, serve);
    }
    check(
        "use crate as root; fn f() { root::serve::inner::call() }",
        &["names `crate`"],
    );
    check("use crate::*;", &["names `crate`"]);
}
