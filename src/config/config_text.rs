//! A configuration as it is written: a TOML text, as far as it can be read, with the environment
//! laid over it, and the place of each key; not what the keys mean.

use crate::{secret::masked, setting::RefusedSetting};
use std::collections::BTreeMap;
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
    places: Spanned<DeTable<'t>>,
    /// Offset of each line.
    lines: Vec<usize>,
    /// Variables of the environment by the path that they override.
    variables: BTreeMap<String, String>,
    /// The values.
    pub(super) table: Table,
    /// Everything that could not be read.
    pub(super) mistakes: Vec<RefusedSetting>,
}

impl<'t> ConfigText<'t> {
    /// Reads a text, passing over what is no TOML, and lets the environment override it.
    pub(super) fn read(
        text: &'t str,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let (places, errors) = DeTable::parse_recoverable(text);
        let lines = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        let mut written = Self {
            places,
            lines,
            variables: BTreeMap::new(),
            table: Table::new(),
            mistakes: Vec::new(),
        };
        let syntax = errors.iter().map(|error| written.syntax(text, error));
        written.mistakes = syntax.collect();
        let mut too_large = Vec::new();
        written.table = table(written.places.get_ref(), "", &mut too_large);
        for (path, found) in too_large {
            let wanted =
                "a number that cannot be read; give a whole number below 9223372036854775808";
            written.mistakes.push(written.refused(&path, found, wanted));
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
            None => RefusedSetting {
                line: self.line(path),
                ..RefusedSetting::new(key, found, wanted)
            },
        }
    }

    /// The line of a key, or of the innermost table around it; `None` for one that is not in the
    /// file.
    pub(super) fn line(&self, path: &str) -> Option<usize> {
        let mut line = None;
        let mut value: Option<&DeValue<'_>> = None;
        let mut table = Some(self.places.get_ref());
        for step in path.split('.') {
            let (key, indices) = step.split_once('[').unwrap_or((step, ""));
            let Some((key, found)) = table.and_then(|table| table.get_key_value(key)) else {
                break;
            };
            line = Some(self.line_at(key.span().start));
            let mut inner = found;
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
                line = Some(self.line_at(element.span().start));
                inner = element;
            }
            value = Some(inner.get_ref());
            table = value.and_then(DeValue::as_table);
        }
        value.and(line)
    }

    fn line_at(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start <= offset)
    }

    /// `feed[0].url` as `feed.blog.url`, which is how people know their feeds and groups.
    fn named(&self, path: &str) -> String {
        let of_list = ["feed", "group"].into_iter().find_map(|list| {
            let (index, rest) = path
                .strip_prefix(list)?
                .strip_prefix('[')?
                .split_once(']')?;
            Some((list, index, rest))
        });
        let Some((list, index, rest)) = of_list else {
            return path.to_owned();
        };
        let feed = index
            .parse::<usize>()
            .ok()
            .and_then(|index| self.table.get(list)?.get(index));
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
        // What follows the key may be a URL with a password, however mangled.
        let found = match found.split_once('=') {
            Some((key, _)) => format!("{} = …", key.trim_end()),
            None => masked(found),
        };
        let wanted = error.message().trim().replace('\n', ", ");
        RefusedSetting {
            line: Some(line),
            ..RefusedSetting::new("", format!("`{found}`"), wanted)
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
