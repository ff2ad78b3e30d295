//! Grafana's board and the alert rules of `deploy/`: both name metrics and labels that the page of
//! metrics has, and that page is held against the code in `src/app/gauges.rs`.

use crate::{book::anchors, tree::repository};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
};

const BOARD: &str = "deploy/grafana/everfeed.json";
const RULES: &str = "deploy/prometheus/everfeed.rules.yml";
const TESTS_OF_RULES: &str = "deploy/prometheus/everfeed.rules.test.yml";
/// Labels that Prometheus adds to every series.
const LABELS_OF_TARGETS: [&str; 2] = ["instance", "job"];
const OWNERS: [&str; 5] = ["upstream", "network", "configuration", "ours", "consumer"];

/// The names of time series, with the labels of each.
type Series = BTreeMap<String, BTreeSet<String>>;

fn text(file: &str) -> String {
    fs::read_to_string(repository(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The series of a page with a table of metrics.
fn series(page: &str) -> Series {
    let mut series = Series::new();
    for row in page.lines().filter(|line| line.starts_with("| `everfeed_")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, name, kind, labels, ..] = cells[..] else {
            panic!("a row without three cells: {row}");
        };
        let name = name.trim_matches('`');
        let mut labels: BTreeSet<String> = labels
            .split(',')
            .map(|label| label.trim().trim_matches('`').to_owned())
            .filter(|label| !label.is_empty())
            .collect();
        labels.extend(LABELS_OF_TARGETS.map(str::to_owned));
        if kind == "histogram" {
            for part in ["count", "sum"] {
                series.insert(format!("{name}_{part}"), labels.clone());
            }
            labels.insert("le".to_owned());
            series.insert(format!("{name}_bucket"), labels);
        } else {
            series.insert(name.to_owned(), labels);
        }
    }
    series
}

fn is_of_name(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || sign == '_'
}

/// Each series that an expression names, with the labels in its braces.
fn selectors(expression: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for (at, _) in expression.match_indices("everfeed_") {
        if expression[..at].ends_with(is_of_name) {
            continue;
        }
        let rest = &expression[at..];
        let (name, behind) =
            rest.split_at(rest.find(|c: char| !is_of_name(c)).unwrap_or(rest.len()));
        let matchers = behind
            .strip_prefix('{')
            .and_then(|behind| behind.split_once('}'))
            .map_or("", |(matchers, _)| matchers);
        // What stands between quotes is a value.
        let labels = matchers
            .split('"')
            .step_by(2)
            .flat_map(|part| part.split(|c: char| !is_of_name(c)))
            .filter(|word| !word.is_empty());
        found.push((name.to_owned(), labels.map(str::to_owned).collect()));
    }
    found
}

/// The words in double braces of a text for people, such as `{{feed}}` and `{{ $labels.feed }}`.
fn labels_in_text(text: &str) -> Vec<&str> {
    let braces = text.split("{{").skip(1);
    let words = braces.filter_map(|rest| Some(rest.split_once("}}")?.0.trim()));
    words
        .filter(|word| !word.starts_with("$value"))
        .map(|word| word.trim_start_matches("$labels."))
        .collect()
}

/// What is wrong with the names in an expression, and with the labels in the text beside it.
fn mistakes(series: &Series, expression: &str, beside: &str) -> String {
    let mut wrong = String::new();
    let mut known: BTreeSet<&str> = LABELS_OF_TARGETS.into();
    for (name, labels) in selectors(expression) {
        let Some(has) = series.get(&name) else {
            let _ = writeln!(wrong, "there is no metric `{name}`: {expression}");
            continue;
        };
        known.extend(has.iter().map(String::as_str));
        for label in labels.iter().filter(|label| !has.contains(*label)) {
            let _ = writeln!(wrong, "`{name}` has no label `{label}`: {expression}");
        }
    }
    for label in labels_in_text(beside) {
        if !known.contains(label) {
            let _ = writeln!(wrong, "no label `{label}` is in {expression}: {beside}");
        }
    }
    wrong
}

/// Collects each object in a value.
fn objects<'a>(value: &'a Value, found: &mut Vec<&'a serde_json::Map<String, Value>>) {
    match value {
        Value::Object(object) => {
            found.push(object);
            object.values().for_each(|value| objects(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| objects(value, found)),
        _ => {}
    }
}

#[test]
fn the_board_asks_for_metrics_that_there_are() {
    let series = series(&text("docs/reference/metrics.md"));
    let board: Value = serde_json::from_str(&text(BOARD)).expect("the board is JSON");
    let mut all = Vec::new();
    objects(&board, &mut all);
    let mut wrong = String::new();
    let (mut queries, mut numbers) = (0, BTreeSet::new());
    for object in all {
        let words = |key: &str| object.get(key).and_then(Value::as_str);
        if let Some(expression) = words("expr").or_else(|| words("query")) {
            queries += 1;
            wrong += &mistakes(
                &series,
                expression,
                words("legendFormat").unwrap_or_default(),
            );
        }
        if object.contains_key("gridPos") {
            let title = words("title").unwrap_or_default();
            let is_told = words("type") == Some("row") || words("description").is_some();
            if title.is_empty() || !is_told || !numbers.insert(object["id"].to_string()) {
                let _ = writeln!(wrong, "panel {}: title, description, own id", object["id"]);
            }
        }
    }
    assert!(
        wrong.is_empty() && queries > 40,
        "{queries} queries\n{wrong}"
    );
}

/// The rules of a file, each from its name to the next.
fn rules(file: &str) -> Vec<(&str, &str)> {
    let parts = file.split("- alert: ").skip(1);
    parts
        .map(|part| part.split_once('\n').expect("a rule has lines"))
        .collect()
}

/// The rest of a line behind a key of YAML, without quotes.
fn value<'a>(rule: &'a str, key: &str) -> &'a str {
    let mut lines = rule.lines().map(str::trim);
    let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
    value.unwrap_or_default().trim_matches('"')
}

/// True if the book has a page, and the heading behind its `#`.
fn is_in_book(page: &str) -> bool {
    let (file, anchor) = page.split_once('#').unwrap_or((page, ""));
    let Ok(text) = fs::read_to_string(repository("docs").join(file)) else {
        return false;
    };
    anchor.is_empty() || anchors(&text).contains(anchor)
}

#[test]
fn each_rule_is_of_metrics_that_there_are_and_says_whose_fault_it_is_and_what_to_do() {
    let series = series(&text("docs/reference/metrics.md"));
    let (file, tests) = (text(RULES), text(TESTS_OF_RULES));
    let mut wrong = String::new();
    let rules = rules(&file);
    for (name, rule) in &rules {
        let expression = rule.split("labels: {").next().unwrap_or_default();
        wrong += &mistakes(&series, expression, rule);
        let labels = value(rule, "labels");
        let severities = ["critical", "warning", "info"];
        let is_graded = severities
            .iter()
            .any(|it| labels.contains(&format!("severity: {it}")));
        let is_owned = OWNERS
            .iter()
            .any(|it| labels.contains(&format!("whose: {it}")))
            || expression.contains("{whose=");
        if !is_graded || !is_owned {
            let _ = writeln!(wrong, "{name}: severity and whose are not in {labels}");
        }
        if value(rule, "summary").is_empty() || value(rule, "action").is_empty() {
            let _ = writeln!(wrong, "{name}: no summary, or no action");
        }
        let page = value(rule, "page");
        if page.is_empty() || !is_in_book(page) {
            let _ = writeln!(wrong, "{name}: the book has no page {page}");
        }
        if !tests.contains(&format!("alertname=\"{name}\"")) {
            let _ = writeln!(wrong, "{name}: {TESTS_OF_RULES} does not see it fire");
        }
    }
    for line in tests.lines() {
        wrong += &mistakes(&series, line, "");
    }
    assert!(
        wrong.is_empty() && rules.len() > 20,
        "{} rules\n{wrong}",
        rules.len()
    );
}

#[test]
fn a_name_that_there_is_not_is_found() {
    let page = "| `everfeed_feeds` | gauge |  | Feeds. |\n\
                | `everfeed_polls_total` | counter | `outcome` | Polls. |\n\
                | `everfeed_lag_seconds` | histogram |  | Lag. |\n";
    let series = series(page);
    let check = |expression: &str, legend: &str, expect: &str| {
        let found = mistakes(&series, expression, legend);
        assert_eq!(found.is_empty(), expect.is_empty(), "{expression}: {found}");
        assert!(found.contains(expect), "{expression}: {found}");
    };
    check("sum(everfeed_feeds{job=~\"$job\"})", "{{instance}}", "");
    check(
        "rate(everfeed_polls_total{outcome=\"a}b\"}[5m])",
        "{{outcome}}",
        "",
    );
    check(
        "everfeed_lag_seconds_bucket{le=\"1\"} or everfeed_lag_seconds_sum",
        "",
        "",
    );
    check(
        "everfeed_lag_seconds",
        "",
        "no metric `everfeed_lag_seconds`",
    );
    check("everfeed_feed", "", "no metric `everfeed_feed`");
    check("rate(everfeed_polls[5m])", "", "no metric `everfeed_polls`");
    check("everfeed_feeds{whose=\"ours\"}", "", "no label `whose`");
    check(
        "everfeed_polls_total",
        "{{ $labels.feed }}",
        "no label `feed`",
    );
}
