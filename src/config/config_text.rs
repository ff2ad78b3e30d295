//! A configuration as it is written: one or several TOML texts, as far as they can be read, with the
//! environment laid over them, and the place of each key; not what the keys mean.

use super::keys::{LISTS, holds_secret};
use crate::{secret::masked, setting::RefusedSetting};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};
use toml::{
    Spanned, Table, Value,
    de::{DeTable, DeValue},
};

/// Environment variables that begin with this override the file: `EVERFEED__SERVER__LISTEN`,
/// `EVERFEED__FEED__blog__URL`.
const ENVIRONMENT: &str = "EVERFEED__";

/// A configuration as it is written. Paths are those of serde: `server.listen`,
/// `feed[0].poll.min_secs`.
pub(super) struct ConfigText<'t> {
    /// The configuration itself, and then the files that it includes.
    files: Vec<WrittenFile<'t>>,
    /// Variables of the environment by the path that they override.
    variables: BTreeMap<String, String>,
    /// The values.
    pub(super) table: Table,
    /// Everything that could not be read.
    pub(super) mistakes: Vec<RefusedSetting>,
}

/// A file that is included, and its text.
#[derive(Clone, Debug)]
pub(super) struct IncludedFile {
    /// The file.
    pub(super) path: PathBuf,
    /// Its text.
    pub(super) text: String,
}

/// A text of a configuration, and where in it everything stands.
struct WrittenFile<'t> {
    /// The file, where it is included.
    path: Option<PathBuf>,
    places: Spanned<DeTable<'t>>,
    /// Offset of each line.
    lines: Vec<usize>,
    /// Elements of each list of tables that stand in the files before this one.
    before: BTreeMap<&'static str, usize>,
}

/// The place that sets a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SetBy {
    /// Nothing: it is the default.
    Nothing,
    /// A line of the configuration, or of the included file that is named.
    Line(Option<PathBuf>, usize),
    /// A variable of the environment.
    Variable(String),
}

impl<'t> ConfigText<'t> {
    /// Reads a text, passing over what is no TOML, and lets the environment override it.
    pub(super) fn read(
        text: &'t str,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        Self::read_files(text, &[], environment)
    }

    /// Reads a text and the files that it includes, as if they were one; keys that two of them have
    /// are refused, and lists of tables go on from one to the next.
    pub(super) fn read_files(
        text: &'t str,
        included: &'t [IncludedFile],
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let mut written = Self {
            files: Vec::with_capacity(1 + included.len()),
            variables: BTreeMap::new(),
            table: Table::new(),
            mistakes: Vec::new(),
        };
        written.add_file(None, text);
        for file in included {
            written.add_file(Some(&file.path), &file.text);
        }
        for (name, value) in environment {
            if let Some(path) = name.strip_prefix(ENVIRONMENT)
                && let Err(refused) = written.override_key(&name, path, &value)
            {
                written.mistakes.push(refused);
            }
        }
        written
    }

    /// Reads a text, and joins it to those before.
    fn add_file(&mut self, path: Option<&Path>, text: &'t str) {
        let (places, errors) = DeTable::parse_recoverable(text);
        let lines = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        let file = WrittenFile {
            path: path.map(Path::to_owned),
            places,
            lines,
            before: LISTS
                .iter()
                .map(|list| (*list, self.list_len(list)))
                .collect(),
        };
        let syntax = errors.iter().map(|error| file.syntax(text, error));
        self.mistakes.extend(syntax);
        let mut too_large = Vec::new();
        let mut values = table(file.places.get_ref(), "", &mut too_large);
        for (path, found) in too_large {
            let wanted =
                "a number that cannot be read; give a whole number below 9223372036854775808";
            let found = match holds_secret(&path) {
                true => "***".to_owned(),
                false => found,
            };
            let refused = RefusedSetting {
                file: file.path.clone(),
                line: file.place(&path).map(|place| place.line),
                ..RefusedSetting::new(path, found, wanted)
            };
            self.mistakes.push(refused);
        }
        if self.files.is_empty() {
            self.table = values;
        } else {
            if values.remove(INCLUDE).is_some() {
                let wanted = "an included file includes no others. Leave this out";
                self.mistakes
                    .push(file.refused(INCLUDE, "a list of files", wanted));
            }
            let mut twice = Vec::new();
            merge(&mut self.table, values, "", &mut twice);
            for path in twice {
                let wanted = "another file of the configuration has this key. Leave out one";
                self.mistakes.push(file.refused(&path, "a value", wanted));
            }
        }
        self.files.push(file);
    }

    /// Elements of a list of tables.
    fn list_len(&self, list: &str) -> usize {
        let list = self.table.get(list).and_then(Value::as_array);
        list.map_or(0, Vec::len)
    }

    /// A table that was written in another form: its keys have no lines.
    pub(super) fn of_table(table: Table) -> ConfigText<'static> {
        ConfigText {
            table,
            ..ConfigText::read("", [])
        }
    }

    /// A refusal of the value at a path, with its key as people know it, and its line.
    pub(super) fn refused(
        &self,
        path: &str,
        found: impl std::fmt::Display,
        wanted: impl Into<String>,
    ) -> RefusedSetting {
        let key = self.named(path);
        match self.variables.get(path) {
            Some(variable) => RefusedSetting::new(format!("{key} (by {variable})"), found, wanted),
            None => {
                let (file, line) = self.line(path).unzip();
                RefusedSetting {
                    file: file.flatten(),
                    line,
                    ..RefusedSetting::new(key, found, wanted)
                }
            }
        }
    }

    /// The file and the line of a key, or of the innermost table around it; `None` for one that is in
    /// no file.
    pub(super) fn line(&self, path: &str) -> Option<(Option<PathBuf>, usize)> {
        let (file, place) = self.place(path)?;
        Some((file.path.clone(), place.line))
    }

    /// The place that sets the value at a path, be it a part of a value that is written as a whole.
    pub(super) fn set_by(&self, path: &str) -> SetBy {
        if let Some(variable) = self.variables.get(path) {
            return SetBy::Variable(variable.clone());
        }
        match self.place(path) {
            Some((file, place)) if place.is_exact || !place.is_table => {
                SetBy::Line(file.path.clone(), place.line)
            }
            _ => SetBy::Nothing,
        }
    }

    /// Tables of a list that stand in the files.
    pub(super) fn tables_in(&self, list: &str) -> usize {
        match self.table.get(list) {
            Some(Value::Array(tables)) => tables.len(),
            // In single brackets it is a list of one.
            Some(_) => 1,
            None => 0,
        }
    }

    /// The file that has most of a path, and the place in it.
    fn place(&self, path: &str) -> Option<(&WrittenFile<'t>, TextPosition)> {
        let mut best: Option<(&WrittenFile<'t>, TextPosition)> = None;
        for file in &self.files {
            let Some(place) = file.local(path).and_then(|path| file.place(&path)) else {
                continue;
            };
            if best
                .as_ref()
                .is_none_or(|(_, best)| place.depth > best.depth)
            {
                best = Some((file, place));
            }
        }
        best
    }

    /// `feed[0].url` as `feed.blog.url`, which is how people know their feeds and groups.
    fn named(&self, path: &str) -> String {
        let of_list = element(path).filter(|(list, ..)| ["feed", "group"].contains(list));
        let Some((list, index, rest)) = of_list else {
            return path.to_owned();
        };
        let feed = self.table.get(list).and_then(|list| list.get(index));
        match feed
            .and_then(|feed| feed.get("name"))
            .and_then(Value::as_str)
        {
            // The name itself is what was found.
            _ if rest == ".name" => format!("{list}.name"),
            Some(name) if !rest.is_empty() => format!("{list}.{name}{rest}"),
            _ => path.to_owned(),
        }
    }

    /// Puts one variable of the environment into the table.
    fn override_key(&mut self, name: &str, path: &str, value: &str) -> Result<(), RefusedSetting> {
        let steps: Vec<&str> = path.split("__").collect();
        let unknown = |why: &str| {
            RefusedSetting::new(
                format!("environment {name}"),
                "a variable that means nothing",
                why,
            )
        };
        let (last, sections) = steps
            .split_last()
            .filter(|(last, _)| !last.is_empty())
            .ok_or_else(|| unknown("name a key"))?;
        if path.eq_ignore_ascii_case(INCLUDE) {
            return Err(unknown("name the files in the configuration itself"));
        }
        let mut place = &mut self.table;
        let mut overridden = String::new();
        let mut rest = sections.iter();
        while let Some(section) = rest.next() {
            let section = section.to_lowercase();
            if section == "feed" {
                let wanted = rest
                    .next()
                    .ok_or_else(|| unknown("name the feed: EVERFEED__FEED__blog__URL"))?;
                let named = |feed: &Value| feed.get("name").and_then(Value::as_str) == Some(wanted);
                let feeds = place.get_mut("feed").and_then(Value::as_array_mut);
                let mut feeds = feeds.into_iter().flatten().enumerate();
                let found = feeds.find(|(_, feed)| named(feed));
                let found = found.and_then(|(at, feed)| Some((at, feed.as_table_mut()?)));
                let (at, feed) =
                    found.ok_or_else(|| unknown("no [[feed]] of the file has that name"))?;
                place = feed;
                overridden = format!("feed[{at}].");
            } else {
                overridden = format!("{overridden}{section}.");
                let inner = place
                    .entry(section)
                    .or_insert_with(|| Value::Table(Table::new()));
                place = inner
                    .as_table_mut()
                    .ok_or_else(|| unknown("that key holds no others"))?;
            }
        }
        let last = last.to_lowercase();
        overridden.push_str(&last);
        place.insert(last, literal(value));
        self.variables.insert(overridden, name.to_owned());
        Ok(())
    }
}

/// The key of the files that are included.
pub(super) const INCLUDE: &str = "include";

/// The place of a path in a file, as far as the file has it.
struct TextPosition {
    line: usize,
    /// Steps of the path that the file has.
    depth: usize,
    /// True where it has them all.
    is_exact: bool,
    /// True where the last of them is a table.
    is_table: bool,
}

impl WrittenFile<'_> {
    /// A path as this file alone would have it; `None` for an element of a list that stands in
    /// another one.
    fn local(&self, path: &str) -> Option<String> {
        let Some((list, index, rest)) = element(path) else {
            return Some(path.to_owned());
        };
        let Some(before) = self.before.get(list) else {
            return Some(path.to_owned());
        };
        let index = index.checked_sub(*before)?;
        // A table in single brackets is a list of one.
        let len = match self.places.get_ref().get(list)?.get_ref() {
            DeValue::Array(list) => list.len(),
            _ => 1,
        };
        (index < len).then(|| format!("{list}[{index}]{rest}"))
    }

    fn place(&self, path: &str) -> Option<TextPosition> {
        let mut found = None;
        let mut table = Some(self.places.get_ref());
        let steps = path.split('.').count();
        for (at, step) in path.split('.').enumerate() {
            let (key, indices) = step.split_once('[').unwrap_or((step, ""));
            let Some((key, value)) = table.and_then(|table| table.get_key_value(key)) else {
                break;
            };
            let mut line = self.line_at(key.span().start);
            let mut inner = value;
            for index in indices
                .split('[')
                .filter_map(|index| index.trim_end_matches(']').parse().ok())
            {
                // `[feed]` in single brackets is read as a list of one.
                let Some(element) = inner
                    .get_ref()
                    .as_array()
                    .and_then(|list| list.get::<usize>(index))
                else {
                    break;
                };
                line = self.line_at(element.span().start);
                inner = element;
            }
            table = inner.get_ref().as_table();
            found = Some(TextPosition {
                line,
                depth: at + 1,
                is_exact: at + 1 == steps,
                is_table: table.is_some(),
            });
        }
        found
    }

    fn line_at(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start <= offset)
    }

    fn refused(&self, path: &str, found: &str, wanted: &str) -> RefusedSetting {
        RefusedSetting {
            file: self.path.clone(),
            line: self.place(path).map(|place| place.line),
            ..RefusedSetting::new(path, found, wanted)
        }
    }

    /// TOML that cannot be read: the line and the reason.
    fn syntax(&self, text: &str, error: &toml::de::Error) -> RefusedSetting {
        let start = error.span().map_or(0, |span| span.start.min(text.len()));
        // What is missing at the end of a line is missed after its line feed.
        let start = if text[start..].trim().is_empty() {
            text[..start].trim_end().len()
        } else {
            start
        };
        let line = self.line_at(start);
        let found = text.lines().nth(line - 1).unwrap_or_default().trim();
        // What follows the key may be a secret, and so may a line that has no key, however mangled: a half of a text that was
        // broken in two, or a line of another file.
        let found = match found.split_once('=') {
            Some((key, _)) if is_key(key.trim_end()) => format!("`{} = …`", key.trim_end()),
            None if found.starts_with('[') => format!("`{}`", masked(found)),
            _ => "a line that is no `key = value` and no `[table]`".to_owned(),
        };
        let wanted = error.message().trim().replace('\n', ", ");
        RefusedSetting {
            file: self.path.clone(),
            line: Some(line),
            ..RefusedSetting::new("", found, wanted)
        }
    }
}

/// True for a bare key of TOML, dotted or not.
fn is_key(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    !text.is_empty() && text.bytes().all(is_part)
}

/// The parts of `feed[3].url`: the list, the index and the rest.
fn element(path: &str) -> Option<(&str, usize, &str)> {
    let (list, rest) = path.split_once('[')?;
    let (index, rest) = rest.split_once(']')?;
    Some((list, index.parse().ok()?, rest))
}

/// Joins the values of a further file to those before. Paths that both have are told.
fn merge(into: &mut Table, further: Table, path: &str, twice: &mut Vec<String>) {
    for (key, value) in further {
        let below = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        match (into.get_mut(&key), value) {
            (None, value) => {
                into.insert(key, value);
            }
            (Some(Value::Array(list)), Value::Array(more))
                if path.is_empty() && LISTS.contains(&key.as_str()) =>
            {
                list.extend(more);
            }
            (Some(Value::Table(before)), Value::Table(more)) => {
                merge(before, more, &below, twice);
            }
            (Some(_), _) => twice.push(below),
        }
    }
}

/// The values of a table. Numbers that are out of range are left out, and told with their paths.
fn table(places: &DeTable<'_>, path: &str, too_large: &mut Vec<(String, String)>) -> Table {
    let below = |key: &str| {
        if path.is_empty() {
            key.to_owned()
        } else {
            format!("{path}.{key}")
        }
    };
    let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let key: &str = AsRef::<str>::as_ref(key.get_ref());
        Some((
            key.to_owned(),
            value_of(value.get_ref(), below(key), too_large)?,
        ))
    };
    places.iter().filter_map(entry).collect()
}

fn value_of(
    place: &DeValue<'_>,
    path: String,
    too_large: &mut Vec<(String, String)>,
) -> Option<Value> {
    let number = match place {
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .ok()
            .map(Value::Integer),
        DeValue::Float(number) => number.as_str().parse().ok().map(Value::Float),
        DeValue::String(text) => return Some(Value::String(text.to_string())),
        DeValue::Boolean(is) => return Some(Value::Boolean(*is)),
        DeValue::Datetime(moment) => return Some(Value::Datetime(*moment)),
        DeValue::Table(inner) => return Some(Value::Table(table(inner, &path, too_large))),
        DeValue::Array(list) => {
            let element = |(at, value): (usize, &Spanned<DeValue<'_>>)| {
                value_of(value.get_ref(), format!("{path}[{at}]"), too_large)
            };
            return Some(Value::Array(
                list.iter().enumerate().filter_map(element).collect(),
            ));
        }
    };
    if number.is_none() {
        let found = match place {
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.as_str().to_owned(),
            _ => String::new(),
        };
        too_large.push((path, found));
    }
    number
}

/// A variable's value: TOML where it is a number, a boolean, a list or a table, else text.
fn literal(value: &str) -> Value {
    let parsed = format!("value = {value}")
        .parse::<Table>()
        .ok()
        .and_then(|mut table| table.remove("value"));
    parsed.unwrap_or_else(|| Value::String(value.to_owned()))
}
