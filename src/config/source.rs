//! From a TOML file and the environment to a typed tree, with errors that name the file, the key, what was found and
//! what would do; not what the keys mean.

use crate::{secret::masked, setting::RefusedSetting};
use serde::de::DeserializeOwned;
use std::{
    fmt,
    path::{Path, PathBuf},
};
use toml::{Table, Value};

/// A configuration that is refused. Every problem that can be seen at once is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file.
    pub file: PathBuf,
    /// The problems, at least one.
    pub problems: Vec<RefusedSetting>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            write!(f, "{}: {problem}", self.file.display())?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// Environment variables that begin with this override the file: `EVERFEED__SERVER__LISTEN`,
/// `EVERFEED__FEED__blog__URL`.
const ENVIRONMENT: &str = "EVERFEED__";

/// The largest configuration, bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The text of a configuration file.
pub(super) fn read(file: &Path) -> Result<String, ConfigError> {
    let fail = |found: String| {
        let problem = RefusedSetting::new("", found, "give the path of a configuration with --config");
        ConfigError { file: file.to_owned(), problems: vec![problem] }
    };
    let size = std::fs::metadata(file).map_err(|error| fail(format!("no readable file ({error})")))?.len();
    if size > FILE_BYTES_MAX {
        return Err(fail(format!("{size} bytes, more than {FILE_BYTES_MAX}")));
    }
    std::fs::read_to_string(file).map_err(|error| fail(format!("no readable file ({error})")))
}

/// Reads a text as TOML and lets the environment override it.
pub(super) fn table(
    file: &Path,
    text: &str,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<Table, ConfigError> {
    let fail = |problem| ConfigError { file: file.to_owned(), problems: vec![problem] };
    let mut table: Table = text.parse().map_err(|error: toml::de::Error| fail(syntax(text, &error)))?;
    for (name, value) in environment {
        if let Some(path) = name.strip_prefix(ENVIRONMENT) {
            override_key(&mut table, &name, path, &value).map_err(fail)?;
        }
    }
    Ok(table)
}

/// Refuses keys that have another name by now: each of `renamed` is an old key, without indices, and its new name.
pub(super) fn refuse_renamed(
    file: &Path,
    table: &Table,
    renamed: &[(&str, &str)],
) -> Result<(), ConfigError> {
    let mut problems = Vec::new();
    for (old, new) in renamed {
        for (key, found) in places(table, old) {
            let wanted = format!("this key is called `{new}` now; the value may stay");
            problems.push(RefusedSetting::new(named(table, &key), shown(found), wanted));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(ConfigError { file: file.to_owned(), problems }) }
}

/// The places at which a key without indices stands, with their indices.
fn places<'a>(table: &'a Table, key: &str) -> Vec<(String, &'a Value)> {
    let (first, rest) = key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
    let Some(value) = table.get(first) else { return Vec::new() };
    let Some(rest) = rest else { return vec![(first.to_owned(), value)] };
    let tables: Vec<(String, &Table)> = match value {
        Value::Table(inner) => vec![(first.to_owned(), inner)],
        Value::Array(list) => {
            let named = |(at, value): (usize, &'a Value)| Some((format!("{first}[{at}]"), value.as_table()?));
            list.iter().enumerate().filter_map(named).collect()
        }
        _ => Vec::new(),
    };
    let below = |(at, inner): (String, &'a Table)| {
        places(inner, rest).into_iter().map(move |(key, value)| (format!("{at}.{key}"), value))
    };
    tables.into_iter().flat_map(below).collect()
}

/// Gives a table its type. `wanted` tells what would do for a key.
pub(super) fn typed<T: DeserializeOwned>(
    file: &Path,
    table: &Table,
    wanted: fn(&str) -> Option<&'static str>,
) -> Result<T, ConfigError> {
    let fail = |problem| ConfigError { file: file.to_owned(), problems: vec![problem] };
    let value = Value::Table(table.clone());
    serde_path_to_error::deserialize(value).map_err(|error| {
        let key = error.path().to_string();
        let value = at(table, error.path());
        let found = value.map_or_else(|| "nothing".to_owned(), shown);
        // The message repeats the value, and a URL may carry a password.
        let message = match value.and_then(Value::as_str) {
            Some(raw) => first_line(error.inner()).replace(raw, &masked(raw)),
            None => first_line(error.inner()),
        };
        let hint = wanted(&plain(&key)).map(|hint| format!("{message}; give {hint}"));
        fail(RefusedSetting::new(named(table, &key), found, hint.unwrap_or(message)))
    })
}

/// TOML that cannot be read: where, and the line.
fn syntax(text: &str, error: &toml::de::Error) -> RefusedSetting {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = text[..start].matches('\n').count() + 1;
    let found = text.lines().nth(line - 1).unwrap_or_default().trim();
    // What follows the key may be a URL with a password, however mangled.
    let found =
        found.split_once('=').map_or_else(|| masked(found), |(key, _)| format!("{} = …", key.trim_end()));
    RefusedSetting::new(
        format!("line {line}"),
        format!("`{found}`"),
        error.message().trim().replace('\n', ", "),
    )
}

fn first_line(error: &toml::de::Error) -> String {
    error.message().lines().next().unwrap_or_default().to_owned()
}

/// The value at a path, if there is one.
fn at<'a>(table: &'a Table, path: &serde_path_to_error::Path) -> Option<&'a Value> {
    use serde_path_to_error::Segment;
    let mut steps = path.iter();
    let Some(Segment::Map { key }) = steps.next() else { return None };
    steps.try_fold(table.get(key)?, |value, step| match step {
        Segment::Map { key } => value.get(key),
        Segment::Seq { index } => value.get(index),
        _ => None,
    })
}

/// A value as it is shown: short, and without what may be secret in a URL.
fn shown(value: &Value) -> String {
    /// Characters of a value that are shown.
    const SHOWN_MAX: usize = 80;
    match value {
        Value::Table(_) => "a table".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) => {
            format!("\"{}\"", masked(text).chars().take(SHOWN_MAX).collect::<String>())
        }
        other => other.to_string().chars().take(SHOWN_MAX).collect(),
    }
}

/// `feed[0].url` as `feed.url`, by which hints are found.
fn plain(key: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for c in key.chars() {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            c if !inside => out.push(c),
            _ => {}
        }
    }
    out
}

/// `feed[0].url` as `feed.blog.url`, which is how people know their feeds.
fn named(table: &Table, key: &str) -> String {
    let Some((index, rest)) = key.strip_prefix("feed[").and_then(|rest| rest.split_once(']')) else {
        return key.to_owned();
    };
    let feed = index.parse::<usize>().ok().and_then(|index| table.get("feed")?.get(index));
    match feed.and_then(|feed| feed.get("name")).and_then(Value::as_str) {
        Some(name) => format!("feed.{name}{rest}"),
        None => key.to_owned(),
    }
}

/// Puts one variable of the environment into the table, before it gets its type.
fn override_key(table: &mut Table, name: &str, path: &str, value: &str) -> Result<(), RefusedSetting> {
    let steps: Vec<&str> = path.split("__").collect();
    let unknown =
        |why: &str| RefusedSetting::new(format!("environment {name}"), "a variable that means nothing", why);
    let (last, sections) =
        steps.split_last().filter(|(last, _)| !last.is_empty()).ok_or_else(|| unknown("name a key"))?;
    let mut place = table;
    let mut rest = sections.iter();
    while let Some(section) = rest.next() {
        let section = section.to_lowercase();
        if section == "feed" {
            let wanted = rest.next().ok_or_else(|| unknown("name the feed: EVERFEED__FEED__blog__URL"))?;
            let feeds = place.get_mut("feed").and_then(Value::as_array_mut);
            let named = |feed: &&mut Value| feed.get("name").and_then(Value::as_str) == Some(wanted);
            let feed = feeds.and_then(|feeds| feeds.iter_mut().find(named)).and_then(Value::as_table_mut);
            place = feed.ok_or_else(|| unknown("no [[feed]] of the file has that name"))?;
        } else {
            let inner = place.entry(section).or_insert_with(|| Value::Table(Table::new()));
            place = inner.as_table_mut().ok_or_else(|| unknown("that key holds no others"))?;
        }
    }
    place.insert(last.to_lowercase(), literal(value));
    Ok(())
}

/// A variable's value: TOML where it is a number, a boolean, a list or a table, else text.
fn literal(value: &str) -> Value {
    let parsed = format!("value = {value}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
    parsed.unwrap_or_else(|| Value::String(value.to_owned()))
}
