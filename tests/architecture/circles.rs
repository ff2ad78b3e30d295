//! Circles: of modules that stand beside each other in a folder, each taken with all that is below
//! it, none needs another that needs it. A module and its own children are one thing seen from
//! outside: the parent may use them, and they may use what stands in its file. A `pub use` is an
//! entry in a table of contents and needs nothing; who imports through it needs the file that
//! defines the name.

use crate::{
    names::{Name, Origin, names},
    tree::{Sources, Target, Tree, repository},
};
use std::collections::{BTreeMap, BTreeSet};

/// Circles that are known: crate, folder, modules. This list only shrinks: one that is gone and
/// still listed fails.
const CIRCLES_LEFT: &[(&str, &str, &[&str])] = &[];

/// The modules of one folder: which needs which, and one place where it does.
type Needs = BTreeMap<String, BTreeMap<String, String>>;

#[test]
fn modules_beside_each_other_form_no_circles() {
    let mut left: Vec<_> = CIRCLES_LEFT.to_vec();
    let mut found = Vec::new();
    for folder in ["src", "adapters/src"] {
        for (level, needs) in levels(&Tree::read(&repository(folder))) {
            for circle in circles(&needs) {
                let listed = |(a, b, names): &(&str, &str, &[&str])| {
                    *a == folder
                        && *b == level
                        && names.iter().copied().eq(circle.iter().map(String::as_str))
                };
                match left.iter().position(listed) {
                    Some(at) => {
                        left.remove(at);
                    }
                    None => found.push(format!("in {folder}/{level}:\n{}", told(&needs, &circle))),
                }
            }
        }
    }
    assert!(
        found.is_empty(),
        "circles that are not in CIRCLES_LEFT:\n{}",
        found.join("\n")
    );
    assert!(
        left.is_empty(),
        "circles that are gone or have become smaller; take them out of CIRCLES_LEFT: {left:?}"
    );
}

/// The needs of each folder's modules of each other.
fn levels(tree: &Tree) -> BTreeMap<String, Needs> {
    let mut levels: BTreeMap<String, Needs> = BTreeMap::new();
    for (index, module) in tree.modules.iter().enumerate() {
        for Name { path, line, origin } in names(module) {
            let Target::Item(defined, name) = tree.resolve(index, &path) else {
                continue;
            };
            let (from, to) = (&module.path, &tree.modules[defined].path);
            let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
            if origin == Origin::Reexport || common == from.len() || common == to.len() {
                continue;
            }
            let place = format!(
                "{}:{line} names `{name}` of {}",
                module.file, tree.modules[defined].file
            );
            let needs = levels.entry(from[..common].join("/")).or_default();
            needs
                .entry(from[common].clone())
                .or_default()
                .entry(to[common].clone())
                .or_insert(place);
        }
    }
    levels
}

/// The sets of modules of which each needs each, by way of others: whatever two reach one another.
fn circles(needs: &Needs) -> BTreeSet<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> = needs
        .keys()
        .map(|from| (from, reach(needs, from)))
        .collect();
    let both = |a: &String, b: &String| {
        reached[a].contains(b) && reached.get(b).is_some_and(|back| back.contains(a))
    };
    let circle = |from: &String| {
        reached[from]
            .iter()
            .filter(|to| both(from, to))
            .map(|to| (*to).clone())
            .collect()
    };
    needs
        .keys()
        .map(circle)
        .filter(|circle: &BTreeSet<String>| circle.len() > 1)
        .collect()
}

fn reach<'a>(needs: &'a Needs, from: &'a String) -> BTreeSet<&'a String> {
    let (mut found, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(module) = next.pop() {
        for to in needs.get(module).into_iter().flat_map(BTreeMap::keys) {
            if found.insert(to) {
                next.push(to);
            }
        }
    }
    found
}

fn told(needs: &Needs, circle: &BTreeSet<String>) -> String {
    let inside = |from: &String| {
        needs[from]
            .iter()
            .filter(|(to, _)| circle.contains(*to))
            .collect::<Vec<_>>()
    };
    let line =
        |from: &String, (to, place): (&String, &String)| format!("  {from} -> {to}: {place}");
    let lines: Vec<_> = circle
        .iter()
        .flat_map(|from| inside(from).into_iter().map(move |edge| line(from, edge)))
        .collect();
    lines.join("\n")
}

/// The circles of a made-up crate, as `folder: modules`.
fn check(files: &[(&str, &str)], expect: &[&str]) {
    let sources: Sources = files
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect();
    let mut found = Vec::new();
    for (level, needs) in levels(&Tree::of(&sources)) {
        for circle in circles(&needs) {
            found.push(format!(
                "{level}: {}",
                circle.into_iter().collect::<Vec<_>>().join(" ")
            ));
        }
    }
    assert_eq!(found, expect);
}

#[test]
fn a_circle_is_found_however_its_paths_are_written() {
    let lib = ("lib.rs", "mod a; mod b;");
    check(
        &[
            lib,
            ("a.rs", "use crate::b::B; pub struct A(B);"),
            ("b.rs", "pub struct B;"),
        ],
        &[],
    );
    for back in [
        "use crate::a::A;",
        "use super::{a::{A as C}};",
        "fn f() -> crate::a::A { todo!() }",
        "fn f() { let x: Vec<super::a::A> = Vec::new(); }",
        "fn f() { vec![crate::a::A(B)]; }",
        "use super::a as other; fn f(_: other::A) {}",
        "use crate as root; fn f(_: root::a::A) {}",
        "use super::a::*; fn f(_: A) {}",
        "mod inner { fn f(_: super::super::a::A) {} }",
    ] {
        let b = format!("pub struct B; {back}");
        check(
            &[
                lib,
                ("a.rs", "use crate::b::B; pub struct A(B);"),
                ("b.rs", &b),
            ],
            &[": a b"],
        );
    }
    let tests =
        "pub struct B; #[cfg(test)] mod tests { use crate::a::A; } #[test] fn f(_: crate::a::A) {}";
    check(
        &[
            lib,
            ("a.rs", "use crate::b::B; pub struct A(B);"),
            ("b.rs", tests),
        ],
        &[],
    );
}

#[test]
fn a_parent_and_its_children_are_one_thing_and_re_exports_lead_to_the_file_that_defines() {
    let lib = ("lib.rs", "mod top; mod beside;");
    let top = (
        "top.rs",
        "mod a; mod b; pub use b::B; pub struct Ground; pub fn all(a: a::A) {}",
    );
    let a = (
        "top/a.rs",
        "use super::{B, Ground}; pub struct A(B, Ground);",
    );
    let b = ("top/b.rs", "use super::Ground; pub struct B(Ground);");
    let beside = ("beside.rs", "");
    check(&[lib, top, a, b, beside], &[]);
    let back = ("top/b.rs", "use super::a::A; pub struct B;");
    check(&[lib, top, a, back, beside], &["top: a b"]);
    let beside = ("beside.rs", "pub struct Side; use crate::top::B;");
    check(
        &[
            lib,
            top,
            a,
            ("top/b.rs", "pub struct B; use crate::beside::Side;"),
            beside,
        ],
        &[": beside top"],
    );
}
