//! The pages for people: links and anchors lead somewhere, every command is run by a test or says
//! why not, and the lists of pages name each.

use crate::tree::repository;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// The pages of the book and those outside of it, by their paths from the top of the repository.
fn pages() -> BTreeMap<PathBuf, String> {
    let mut pages = BTreeMap::new();
    let all = [
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "deploy/README.md",
        "docs",
    ];
    let mut open = Vec::from(all.map(PathBuf::from));
    while let Some(path) = open.pop() {
        let full = repository("").join(&path);
        if full.is_dir() {
            let entries = fs::read_dir(full).expect("a folder");
            open.extend(entries.map(|entry| path.join(entry.expect("an entry").file_name())));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(full).expect("a page");
            pages.insert(path, text);
        }
    }
    pages
}

/// A page without its blocks of code.
fn prose(page: &str) -> String {
    let mut is_code = false;
    let mut out = String::new();
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
            out.push('\n');
        } else if !is_code {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// The targets of links and pictures.
fn links(page: &str) -> Vec<String> {
    let prose = prose(page);
    let mut rest = prose.as_str();
    let mut found = Vec::new();
    while let Some((_, behind)) = rest.split_once("](") {
        let Some((target, behind)) = behind.split_once(')') else {
            break;
        };
        found.push(target.to_owned());
        rest = behind;
    }
    found
}

/// The anchors of the headings of a page, as GitHub and mdBook make them.
pub(crate) fn anchors(page: &str) -> BTreeSet<String> {
    let prose = prose(page);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let words = line.trim_start_matches('#').trim().to_lowercase();
            let kept = words.chars().filter_map(|sign| match sign {
                ' ' => Some('-'),
                '-' | '_' => Some(sign),
                _ => sign.is_alphanumeric().then_some(sign),
            });
            kept.collect()
        })
        .collect()
}

/// A path without `.` and `..`.
fn resolved(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                out.pop();
            }
            std::path::Component::Normal(name) => out.push(name),
            _ => {}
        }
    }
    out
}

#[test]
fn every_link_and_anchor_leads_somewhere() {
    let pages = pages();
    let mut wrong = String::new();
    let mut count = 0;
    for (path, page) in &pages {
        for link in links(page) {
            if link.contains("://") {
                continue;
            }
            count += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() {
                path.clone()
            } else {
                resolved(&path.parent().expect("a folder").join(file))
            };
            if !repository("").join(&target).exists() {
                let _ = writeln!(wrong, "{}: no file {link}", path.display());
            } else if !anchor.is_empty()
                && !pages
                    .get(&target)
                    .is_some_and(|page| anchors(page).contains(anchor))
            {
                let _ = writeln!(wrong, "{}: no heading {link}", path.display());
            }
        }
    }
    assert!(wrong.is_empty() && count > 60, "{count} links\n{wrong}");
}

#[test]
fn every_command_of_the_book_is_run_or_says_why_not() {
    let mut wrong = String::new();
    let mut count = 0;
    for (path, page) in pages() {
        if !path.starts_with("docs") {
            continue;
        }
        for (at, _) in page.match_indices("```sh\n") {
            count += 1;
            let behind = page[at + 6..]
                .split_once("\n```")
                .map_or("", |parts| parts.1);
            let mark = behind.trim_start();
            if !mark.starts_with("<!-- run: ") && !mark.starts_with("<!-- not run here: ") {
                let line = page[..at].lines().count();
                let _ = writeln!(wrong, "{}:{line}: neither run nor a reason", path.display());
            }
        }
    }
    assert!(wrong.is_empty() && count > 20, "{count} blocks\n{wrong}");
}

#[test]
fn the_lists_of_pages_name_each() {
    let pages = pages();
    let book: BTreeSet<String> = pages
        .keys()
        .filter_map(|path| path.strip_prefix("docs").ok())
        .map(|path| path.display().to_string())
        .filter(|path| path != "SUMMARY.md")
        .collect();
    let summary: BTreeSet<String> = links(&pages[Path::new("docs/SUMMARY.md")])
        .into_iter()
        .collect();
    let listed = fs::read_to_string(repository("docs/llms.txt")).expect("docs/llms.txt");
    let listed: BTreeSet<String> = links(&listed).into_iter().collect();
    assert_eq!(book, summary, "SUMMARY.md");
    assert_eq!(book, listed, "llms.txt");
}

#[test]
fn the_page_on_politeness_names_tests_that_there_are() {
    /// Underscores from which on a word between backticks is the name of a test.
    const UNDERSCORES_MIN: usize = 4;
    let page = repository("docs/reference/politeness.md");
    let page = fs::read_to_string(page).expect("the page");
    let is_test = |word: &&str| {
        word.matches('_').count() >= UNDERSCORES_MIN && !word.contains(char::is_whitespace)
    };
    let mut names: BTreeSet<&str> = page.split('`').filter(is_test).collect();
    assert!(names.len() > 20, "{names:?}");
    let mut open = vec![repository("src"), repository("tests")];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a folder");
            open.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(path).expect("a source");
            names.retain(|name| !text.contains(&format!("fn {name}(")));
        }
    }
    assert!(names.is_empty(), "no test is called {names:?}");
}
