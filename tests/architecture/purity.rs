//! Pure components never await, open anything or ask the time.

use crate::{
    names::{Name, Origin, names},
    tree::{Module, Sources, Target, Tree, attributes, is_test_only, repository},
};
use syn::{spanned::Spanned, visit::Visit};

/// Other crates that pure code may name: those that compute. Anything else needs a reason to stand
/// here.
const CRATES: &[&str] = &[
    "std",
    "core",
    "alloc",
    "everfeed_adapters",
    "base64",
    "chrono",
    "crc32fast",
    "csv",
    "encoding_rs",
    "feed_rs",
    "hex",
    "htmlize",
    "icu_normalizer",
    "memchr",
    "percent_encoding",
    "flate2",
    "quick_xml",
    "regex",
    "ammonia",
    "serde",
    "serde_json",
    "serde_path_to_error",
    "serde_with",
    "sha1",
    "sha2",
    "thiserror",
    "toml",
    "url",
    "uuid",
];

/// Names that pure code must not say, and why. The end of a path counts where the entry begins with
/// `::`.
const IMPURE: &[(&str, &str)] = &[
    ("std::fs", "bytes are an argument"),
    ("std::net", "pure code opens nothing"),
    ("std::env", "configuration is an argument"),
    ("std::process", "pure code starts nothing"),
    ("std::thread", "pure code starts nothing"),
    ("std::os", "pure code opens nothing"),
    ("std::io::stdin", "bytes are an argument"),
    ("std::io::stdout", "pure code returns what it has to say"),
    ("std::io::stderr", "pure code returns what it has to say"),
    ("std::time::SystemTime", "`now` is an argument"),
    ("std::time::Instant", "`now` is an argument"),
    ("chrono::Local", "`now` is an argument"),
    ("::Utc::now", "`now` is an argument"),
    ("::Uuid::new_v4", "chance is an argument"),
    ("::Uuid::now_v7", "chance is an argument"),
    ("print", "pure code returns what it has to say"),
    ("println", "pure code returns what it has to say"),
    ("eprint", "pure code returns what it has to say"),
    ("eprintln", "pure code returns what it has to say"),
];

#[test]
fn pure_components_never_await_open_anything_or_ask_the_time() {
    let mut found = offences(&Tree::read(&repository("adapters/src")), &[]);
    found.extend(offences(
        &Tree::read(&repository("src")),
        &["feed", "events", "render"],
    ));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The impure names in the named components (none: the whole crate), a line each.
fn offences(tree: &Tree, components: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (index, module) in tree.modules.iter().enumerate() {
        let component = module.path.first().map_or("", String::as_str);
        if !components.is_empty() && !components.contains(&component) {
            continue;
        }
        for Name { path, line, origin } in names(module) {
            let at = format!("{}:{line}", module.file);
            match tree.resolve(index, &path) {
                Target::External(path) => {
                    found.extend(external(&path).map(|why| format!("{at} {why}")))
                }
                // `use tokio;`, `use std as other;`
                Target::Unknown if origin != Origin::Code => {
                    found.extend(external(&path).map(|why| format!("{at} {why}")))
                }
                Target::Unknown => found.extend(unknown(&path).map(|why| format!("{at} {why}"))),
                Target::Item(at_module, _) | Target::Module(at_module) => {
                    let clock = tree.modules[at_module]
                        .path
                        .first()
                        .is_some_and(|name| name == "clock");
                    found.extend(
                        clock.then(|| format!("{at} asks the clock: `now` is an argument")),
                    );
                }
            }
        }
        found.extend(
            awaits(module)
                .into_iter()
                .map(|line| format!("{}:{line} awaits", module.file)),
        );
    }
    found
}

/// The reason why a path into another crate is impure, if it is.
fn external(path: &[String]) -> Option<String> {
    let whole = path.join("::");
    if !CRATES.contains(&path[0].as_str()) {
        return Some(format!(
            "names `{whole}`: not among the crates that pure code may name"
        ));
    }
    let whole = if path[0] == "core" || path[0] == "alloc" {
        whole.replacen(&path[0], "std", 1)
    } else {
        whole
    };
    if whole == "std" {
        return Some(format!("names all of `{whole}`"));
    }
    let told = |(bad, why): &(&str, &str)| {
        let hit = match bad.strip_prefix("::") {
            Some(end) => whole == end || whole.ends_with(bad),
            None => whole == *bad || whole.starts_with(&format!("{bad}::")),
        };
        hit.then(|| format!("names `{whole}`: {why}"))
    };
    IMPURE.iter().find_map(told)
}

/// As `external`, for what is neither ours nor imported: macros of the prelude, words in other
/// macros.
fn unknown(path: &[String]) -> Option<String> {
    if path.len() == 1 && ["await", "async"].contains(&path[0].as_str()) {
        return Some("awaits".to_owned());
    }
    let impure =
        |(bad, why): &(&str, &str)| (path == [*bad]).then(|| format!("says `{bad}`: {why}"));
    IMPURE.iter().find_map(impure)
}

/// The lines with `async` or `.await`.
fn awaits(module: &Module) -> Vec<usize> {
    #[derive(Default)]
    struct Awaits(Vec<usize>);
    impl<'ast> Visit<'ast> for Awaits {
        fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}
        fn visit_expr_await(&mut self, expression: &'ast syn::ExprAwait) {
            self.0.push(expression.await_token.span().start().line);
            syn::visit::visit_expr_await(self, expression);
        }
        fn visit_expr_async(&mut self, expression: &'ast syn::ExprAsync) {
            self.0.push(expression.async_token.span().start().line);
        }
        fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
            self.0
                .extend(closure.asyncness.map(|token| token.span().start().line));
            syn::visit::visit_expr_closure(self, closure);
        }
        fn visit_signature(&mut self, signature: &'ast syn::Signature) {
            self.0
                .extend(signature.asyncness.map(|token| token.span().start().line));
            syn::visit::visit_signature(self, signature);
        }
    }
    let mut awaits = Awaits::default();
    let items = module
        .items
        .iter()
        .filter(|item| !is_test_only(attributes(item)));
    items.for_each(|item| awaits.visit_item(item));
    awaits.0
}

fn check(text: &str, expect: Option<&str>) {
    let files = [
        ("lib.rs", "pub mod feed; pub mod clock;"),
        ("feed.rs", text),
        ("clock.rs", "pub fn now() {}"),
    ];
    let sources: Sources = files
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .collect();
    let found = offences(&Tree::of(&sources), &["feed"]);
    match expect {
        None => assert!(found.is_empty(), "{text}: {found:?}"),
        Some(expect) => assert!(
            found.iter().any(|found| found.contains(expect)),
            "{text}: {found:?}"
        ),
    }
}

#[test]
fn every_way_to_be_impure_is_seen() {
    check(
        "use std::{collections::HashMap, io::Write, time::Duration}; fn f() -> u8 { 1 }",
        None,
    );
    check(
        "const SAID: &str = \"async tokio::spawn std::fs\"; // .await",
        None,
    );
    check(
        "use chrono::{DateTime, Utc}; fn f(now: DateTime<Utc>) {}",
        None,
    );
    check(
        "fn f(file: &str) { let fs = file; println(fs) } fn println(_: &str) {}",
        None,
    );
    for (bad, why) in [
        ("use std::{fs, io};", "std::fs"),
        ("use std::fs as f; fn g() { f::read(\"x\") }", "std::fs"),
        ("use std as s; fn g() { s::fs::read(\"x\") }", "std"),
        ("use std::*;", "std"),
        (
            "fn g() { ::std::net::TcpStream::connect(\"x\") }",
            "std::net",
        ),
        ("fn g() { std::env::var(\"HOME\") }", "std::env"),
        ("use std::time::{Duration, SystemTime};", "SystemTime"),
        ("fn g() { chrono::Utc::now() }", "`now` is an argument"),
        (
            "use chrono::Utc; fn g() { Utc::now() }",
            "`now` is an argument",
        ),
        ("fn g() { vec![std::time::Instant::now()] }", "Instant"),
        (
            "use super::clock; fn g() { clock::now() }",
            "asks the clock",
        ),
        ("fn g() { crate::clock::now() }", "asks the clock"),
        ("async fn g() {}", "awaits"),
        ("fn g() { async { 1 }; }", "awaits"),
        ("fn g() { f(async || 1); }", "awaits"),
        ("fn g() { h!(x.await) }", "awaits"),
        ("fn g() { rand::random::<u8>() }", "not among the crates"),
        ("use tokio::sync::Mutex;", "not among the crates"),
        ("fn g() { println!(\"x\") }", "println"),
    ] {
        check(bad, Some(why));
    }
}
