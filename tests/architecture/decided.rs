//! ARCHITECTURE.md, "Where is it decided?": each function of the table is in the file that it
//! names.

use crate::tree::repository;
use std::{collections::BTreeSet, fs};
use syn::{ImplItem, Item, TraitItem};

const HEADING: &str = "Where is it decided?";

#[test]
fn every_decision_is_where_the_table_says() {
    let page = fs::read_to_string(repository("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let rows = rows(&page);
    assert!(
        rows.len() >= 10,
        "the table under \"{HEADING}\" has {} rows",
        rows.len()
    );
    let mut wrong = Vec::new();
    for (row, places) in rows {
        if places.is_empty() {
            wrong.push(format!("no `path/file.rs::function` in: {row}"));
        }
        for (file, item) in places {
            // As the code map has it: below `src/`, unless the path begins at the top.
            let at = [repository("src").join(&file), repository(&file)]
                .into_iter()
                .find(|path| path.is_file());
            match at.map(|path| defined(&fs::read_to_string(path).expect("a readable file"))) {
                None => wrong.push(format!("no file {file}")),
                Some(defined) if !defined.contains(&item) => {
                    wrong.push(format!("no `{item}` in {file}"))
                }
                Some(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The rows of the table under the heading, each with what it names as `path/file.rs::function`.
fn rows(page: &str) -> Vec<(String, Vec<(String, String)>)> {
    let is_heading = |line: &str| line.starts_with('#');
    let below = page
        .lines()
        .skip_while(|line| !(is_heading(line) && line.trim_start_matches('#').trim() == HEADING));
    let table = below
        .skip(1)
        .take_while(|line| !is_heading(line))
        .filter(|line| line.starts_with('|'));
    // A bold line with nothing beside it is the title of the rows below it.
    let is_title = |row: &&str| row.starts_with("| **") && row.ends_with("** | |");
    // The first two lines are the titles of the columns and the rule below them.
    table
        .skip(2)
        .filter(|row| !is_title(row))
        .map(|row| (row.to_owned(), places(row)))
        .collect()
}

fn places(row: &str) -> Vec<(String, String)> {
    let quoted = row.split('`').skip(1).step_by(2);
    let split = |quoted: &str| {
        quoted
            .split_once(".rs::")
            .map(|(file, item)| (format!("{file}.rs"), item.to_owned()))
    };
    quoted.filter_map(split).collect()
}

/// The functions, constants and types of a file, and the methods as `Type::method`.
fn defined(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    collect(
        &syn::parse_file(text).expect("a file of Rust").items,
        &mut found,
    );
    found
}

fn collect(items: &[Item], found: &mut BTreeSet<String>) {
    for item in items {
        match item {
            Item::Fn(item) => drop(found.insert(item.sig.ident.to_string())),
            Item::Const(item) => drop(found.insert(item.ident.to_string())),
            Item::Struct(item) => drop(found.insert(item.ident.to_string())),
            Item::Enum(item) => {
                found.extend(
                    item.variants
                        .iter()
                        .map(|variant| format!("{}::{}", item.ident, variant.ident)),
                );
                found.insert(item.ident.to_string());
            }
            Item::Trait(item) => {
                found.insert(item.ident.to_string());
                let method = |inner: &TraitItem| match inner {
                    TraitItem::Fn(inner) => Some(format!("{}::{}", item.ident, inner.sig.ident)),
                    _ => None,
                };
                found.extend(item.items.iter().filter_map(method));
            }
            Item::Impl(item) => {
                let syn::Type::Path(path) = &*item.self_ty else {
                    continue;
                };
                let Some(of) = path.path.segments.last() else {
                    continue;
                };
                found.extend(item.items.iter().filter_map(|inner| match inner {
                    ImplItem::Fn(inner) => Some(format!("{}::{}", of.ident, inner.sig.ident)),
                    ImplItem::Const(inner) => Some(format!("{}::{}", of.ident, inner.ident)),
                    _ => None,
                }));
            }
            Item::Mod(item) => {
                if let Some((_, items)) = item.content.as_ref().filter(|_| item.ident != "tests") {
                    collect(items, found);
                }
            }
            _ => {}
        }
    }
}

#[test]
fn the_table_is_read_row_by_row() {
    let page = "# Page\n\n| a | `x.rs::not_this` |\n\n## Where is it decided?\n\nText with `x.rs::nor_this`.\n\n| Question | Place |\n|---|---|\n\
                | When? | `feed/page.rs::select`, and `store/plan.rs::Plan::of` |\n| Never | `no place` |\n\n## Next\n| `y.rs::nor_that` |\n";
    let found = rows(page);
    let place = |file: &str, item: &str| (file.to_owned(), item.to_owned());
    assert_eq!(found.len(), 2);
    assert_eq!(
        found[0].1,
        [
            place("feed/page.rs", "select"),
            place("store/plan.rs", "Plan::of")
        ]
    );
    assert_eq!(found[1].1, []);
}

#[test]
fn functions_methods_and_constants_are_found_and_tests_are_not() {
    let text = "const MAX: u8 = 1; fn free() { fn hidden() {} } struct S<T>(T); impl<T> S<T> { const C: u8 = 1; fn method(&self) {} }
                trait T { fn asked(); } impl T for super::Other { fn asked() {} } enum E { One } mod tests { fn tested() {} } mod m { fn inner() {} }";
    let expect = [
        "MAX",
        "free",
        "S",
        "S::C",
        "S::method",
        "T",
        "T::asked",
        "Other::asked",
        "E",
        "E::One",
        "inner",
    ]
    .map(String::from);
    assert_eq!(defined(text), BTreeSet::from(expect));
}
