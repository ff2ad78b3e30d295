//! "Where is it decided?": the page of the book is printed from marks in the code, lines
//! `// Decides: <question>` above the function that decides it.

use crate::tree::repository;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
};

const PAGE: &str = "docs/design/decided.md";
const FOLDERS: [&str; 2] = ["src", "adapters/src"];
const MARK: &str = "// Decides: ";
const HEAD: &str = "# Where is it decided?\n\n\
    One row a rule: the question, and the function that answers it. The page is printed from the lines `// Decides:` in the code.\n\
    `EVERFEED_WRITE_BOOK=1 cargo test --test architecture decided` writes it.\n";

/// A question, and the function or type below it.
#[derive(Debug, PartialEq, Eq)]
struct Decision {
    question: String,
    item: String,
}

/// The marks of a file. A mark without a function or a type below it is an error.
fn decisions(text: &str) -> Result<Vec<Decision>, String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let marked = lines
        .iter()
        .enumerate()
        .filter_map(|(at, line)| Some((at, line.strip_prefix(MARK)?)));
    let read = marked.map(|(at, question)| {
        let item = lines[at + 1..]
            .iter()
            .take_while(|line| !line.is_empty())
            .filter(|line| !line.starts_with("//") && !line.starts_with('#'))
            .find_map(|line| item_name(line))
            .ok_or_else(|| format!("nothing stands below: {question}"))?;
        let question = question.to_owned();
        Ok(Decision { question, item })
    });
    read.collect()
}

fn item_name(line: &str) -> Option<String> {
    let mut words = line.split(|sign: char| !sign.is_alphanumeric() && sign != '_');
    words.find(|word| ["fn", "struct", "enum", "const"].contains(word))?;
    // A `const fn` is named behind its second word.
    words.find(|word| *word != "fn").map(str::to_owned)
}

/// The files of Rust below a folder, by their paths from the top of the repository.
fn files(folder: &Path, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(repository("").join(folder)).expect("a folder") {
        let path = folder.join(entry.expect("an entry").file_name());
        let full = repository("").join(&path);
        if full.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(full).expect("a file of text");
            found.insert(path.display().to_string(), text);
        }
    }
}

/// The first two folders of a path, or the one that it has.
fn part(path: &str) -> String {
    let folder = path.strip_prefix("adapters/").unwrap_or(path);
    let depth = path.matches('/').count() - folder.matches('/').count() + 2;
    let parts: Vec<&str> = path.split('/').take(depth).collect();
    parts.join("/").trim_end_matches(".rs").to_owned()
}

/// The page of all marks, and the questions that stand twice.
fn page(files: &BTreeMap<String, String>) -> Result<String, String> {
    let mut parts: BTreeMap<String, String> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for (path, text) in files {
        for decision in decisions(text).map_err(|error| format!("{path}: {error}"))? {
            let Decision { question, item } = decision;
            if !seen.insert(question.clone()) {
                return Err(format!("{path}: asked twice: {question}"));
            }
            let name = path.strip_prefix("src/").unwrap_or(path);
            let rows = parts.entry(part(path)).or_default();
            let _ = writeln!(rows, "| {question} | [{name}](../../{path}) `{item}` |");
        }
    }
    let mut page = HEAD.to_owned();
    for (part, rows) in parts {
        let _ = write!(
            page,
            "\n## {part}\n\n| Question | Place |\n|---|---|\n{rows}"
        );
    }
    Ok(page)
}

#[test]
fn every_decision_is_where_the_page_says() {
    let mut found = BTreeMap::new();
    for folder in FOLDERS {
        files(Path::new(folder), &mut found);
    }
    let printed = page(&found).unwrap_or_else(|error| panic!("{error}"));
    if std::env::var_os("EVERFEED_WRITE_BOOK").is_some() {
        fs::write(repository(PAGE), &printed).expect("the page is written");
    }
    let held = fs::read_to_string(repository(PAGE)).expect("the page");
    let rows = printed.matches("](../../").count();
    assert!(rows > 80, "{rows} rows");
    assert!(
        held == printed,
        "{PAGE} differs from the marks; EVERFEED_WRITE_BOOK=1 writes it"
    );
}

#[test]
fn a_mark_belongs_to_the_item_below_it() {
    let text = "// Decides: When?\n/// Says when.\n#[must_use]\npub(crate) async fn next(now: u8) {}\n\n    // Decides: Who?\n    const fn who() {}\n";
    let found = decisions(text).expect("two marks");
    let decision = |question: &str, item: &str| Decision {
        question: question.to_owned(),
        item: item.to_owned(),
    };
    assert_eq!(found[0], decision("When?", "next"));
    assert_eq!(found[1], decision("Who?", "who"));
    assert!(decisions("// Decides: Lost?\n\nfn far() {}\n").is_err());
}

#[test]
fn a_question_that_stands_twice_is_an_error() {
    let text = "// Decides: When?\nfn next() {}\n".to_owned();
    let files = ["src/a/b.rs", "adapters/src/c.rs"].map(|path| (path.to_owned(), text.clone()));
    assert!(page(&BTreeMap::from(files.clone())).is_err());
    let one = page(&BTreeMap::from([files[0].clone()])).expect("one question");
    assert!(one.contains("| When? | [a/b.rs](../../src/a/b.rs) `next` |"));
}
