//! From values to typed settings: every wrong key and every wrong type is told, and the rest is
//! read as if they were not there; not what values mean.

use super::{
    config_text::ConfigText,
    key_table::give,
    keys::{self, KeyKind, LISTS},
};
use crate::{
    secret::masked,
    setting::{RefusedSetting, holds_controls},
};
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;
use std::{
    collections::{BTreeMap, HashSet},
    fmt,
};
use toml::{Table, Value};
use url::Url;

/// A configuration that is being read, with every mistake found so far. Paths are those of
/// [`ConfigText`].
pub(super) struct ConfigReading<'t> {
    written: ConfigText<'t>,
    mistakes: Vec<RefusedSetting>,
    /// Paths whose values are refused: what is said of the values in their places would be false.
    mistaken: HashSet<String>,
    /// True when lines could not be read: what is missing may stand there.
    is_torn: bool,
    /// Feeds that are missing in the text, and may be in the registry.
    lacking: Vec<LackingFeed>,
}

/// A feed that is missing in a text, and may be in the registry.
#[derive(Clone, Debug)]
pub(super) struct LackingFeed {
    /// The name of the feed, or `category:NAME`; empty where any feed would do.
    pub(super) name: String,
    /// The mistake that it is unless the registry has it.
    pub(super) mistake: RefusedSetting,
}

/// Keys whose values are judged by another one of the same table.
const JUDGED_BESIDE: &[(&str, &str)] = &[
    ("server.admin_listen", "listen"),
    ("hub.lease_max_secs", "lease_min_secs"),
    ("hub.lease_default_secs", "lease_min_secs"),
    ("hub.lease_default_secs", "lease_max_secs"),
    ("feed.poll.min_secs", "max_secs"),
];

impl<'t> ConfigReading<'t> {
    /// Begins with what is written; keys that there are not are refused and left out.
    pub(super) fn new(mut written: ConfigText<'t>) -> Self {
        let mistakes = std::mem::take(&mut written.mistakes);
        let is_torn = mistakes.iter().any(|mistake| mistake.line.is_some());
        let single: Vec<&str> = LISTS
            .iter()
            .filter(|name| wrap_single(&mut written.table, name))
            .copied()
            .collect();
        let mut unknown = Vec::new();
        take_unknown(&mut written.table, "", &mut unknown);
        let mut reading = Self {
            written,
            mistakes,
            mistaken: HashSet::new(),
            is_torn,
            lacking: Vec::new(),
        };
        for name in single {
            let wanted = format!("write [[{name}]], in two pairs of brackets, before each {name}");
            reading.miss(name, "a single table", wanted);
        }
        for (path, value) in unknown {
            let key = plain(&path);
            match keys::renamed(&key) {
                Some(new) => {
                    let wanted = format!("this key is called `{new}` now; the value may stay");
                    reading.refuse(&path, shown(&value), wanted);
                }
                None => reading.refuse(&path, "an unknown key", keys::advice(&key)),
            }
        }
        reading
    }

    /// Refuses the value at a path, unless it is refused already.
    pub(super) fn refuse(
        &mut self,
        path: &str,
        found: impl fmt::Display,
        wanted: impl Into<String>,
    ) {
        if self.mistaken.insert(path.to_owned()) {
            self.mistakes
                .push(self.written.refused(path, found, wanted));
        }
    }

    /// Says that a feed is missing that may be in the registry: the one of this name, or any.
    pub(super) fn lack(&mut self, name: &str, path: &str, found: &str, wanted: impl Into<String>) {
        if self.mistaken.insert(path.to_owned()) && !(self.is_torn && name.is_empty()) {
            self.lacking.push(LackingFeed {
                name: name.to_owned(),
                mistake: self.written.refused(path, found, wanted),
            });
        }
    }

    /// The feeds that are missing.
    pub(super) fn take_lacking(&mut self) -> Vec<LackingFeed> {
        std::mem::take(&mut self.lacking)
    }

    /// Takes over the refusal of a value whose key is a path. It is passed over while a value
    /// beside it that it was judged by is refused itself.
    pub(super) fn take_over(&mut self, refused: RefusedSetting) {
        let key = plain(&refused.key);
        let table = refused.key.rsplit_once('.').map_or("", |(table, _)| table);
        let is_beside = |(one, other): &(&str, &str)| {
            *one == key && self.mistaken.contains(&format!("{table}.{other}"))
        };
        if !JUDGED_BESIDE.iter().any(is_beside) {
            self.refuse(&refused.key, refused.found, refused.wanted);
        }
    }

    /// Takes over the mistakes of a further part of the text, in which nothing but feeds and groups
    /// may stand.
    pub(super) fn take_over_all(&mut self, further: Self) {
        let others = further
            .written
            .table
            .keys()
            .filter(|key| !matches!(key.as_str(), "feed" | "group"));
        let others = others.map(|key| {
            further
                .written
                .refused(key, "a table", "keep it before the feeds")
        });
        self.mistakes.extend(others);
        self.mistakes.extend(further.mistakes);
    }

    /// Refuses URLs with control characters. A parser takes line feeds and tabs out of a URL, so what
    /// is polled would not be what is written, nor what anybody is shown.
    pub(super) fn refuse_control_characters(&mut self) {
        let mut found = Vec::new();
        for (name, value) in &self.written.table {
            urls_with_controls(value, name.clone(), &mut found);
        }
        for (path, shown) in found {
            let wanted = "control characters stand in this URL. Give it on one line, without any";
            self.refuse(&path, shown, wanted);
        }
    }

    /// Refuses two keys of a table that exclude each other.
    pub(super) fn refuse_both(&mut self, table: &str, one: &str, other: &str) {
        let values = self.written.table.get(table).and_then(Value::as_table);
        let has = |key| values.is_some_and(|values| values.contains_key(key));
        if has(one) && has(other) {
            let wanted = format!("leave out one of {table}.{one} and {table}.{other}");
            self.refuse(
                &format!("{table}.{one}"),
                format!("a value beside {table}.{other}"),
                wanted,
            );
        }
    }

    /// Refuses everything but a list of feeds.
    pub(super) fn take_feeds_alone(&mut self) {
        let keys: Vec<String> = self.written.table.keys().cloned().collect();
        for key in keys.iter().filter(|key| *key != "feed") {
            self.refuse(key, "a table", "give nothing but [[feed]] here");
        }
    }

    /// Takes over a refusal of something outside of the text.
    pub(super) fn add(&mut self, refused: RefusedSetting) {
        self.mistakes.push(refused);
    }

    /// Says that something is missing, unless lines could not be read, in which it may stand.
    pub(super) fn miss(&mut self, path: &str, found: &str, wanted: impl Into<String>) {
        if !self.is_torn {
            self.refuse(path, found, wanted);
        }
        self.mistaken.insert(path.to_owned());
    }

    /// A table directly below the file, or those keys of it that a type has. `check` tells one mistake at a time, so each value that it
    /// refuses is left out until it is content.
    pub(super) fn section<T: DeserializeOwned + Default>(
        &mut self,
        name: &str,
        check: fn(&T) -> Result<(), RefusedSetting>,
    ) -> T {
        let mut values = self
            .written
            .table
            .get(name)
            .cloned()
            .unwrap_or_else(|| Value::Table(Table::new()));
        if !values.is_table() {
            self.refuse(name, shown(&values), give(name));
            return T::default();
        }
        loop {
            let Some(settings) = self.typed::<T>(name, &mut values) else {
                return T::default();
            };
            let Err(refused) = check(&settings) else {
                return settings;
            };
            let key = refused.key.clone();
            self.take_over(refused.within(name));
            // Of a default that is refused beside another value nothing more can be told.
            if values
                .as_table_mut()
                .and_then(|table| table.remove(&key))
                .is_none()
            {
                return settings;
            }
        }
    }

    /// The texts of a list directly in the file, or the one text there; [`super::source`] has refused
    /// what is neither.
    pub(super) fn top(&self, name: &str) -> Vec<String> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        match self.written.table.get(name) {
            Some(Value::Array(list)) => list.iter().filter_map(text).collect(),
            other => other.and_then(text).into_iter().collect(),
        }
    }

    /// The tables of a list as they are written.
    pub(super) fn tables(&self, name: &str) -> Vec<Value> {
        match self.written.table.get(name) {
            Some(Value::Array(tables)) => tables.clone(),
            _ => Vec::new(),
        }
    }

    /// The tables of a list of tables, such as the feeds, each with its path.
    pub(super) fn list<T: DeserializeOwned>(&mut self, name: &str) -> Vec<(String, T)> {
        let list = match self.written.table.get(name) {
            None => return Vec::new(),
            Some(Value::Array(list)) => list.clone(),
            Some(other) => {
                let found = shown(other);
                self.refuse(name, found, give(name));
                return Vec::new();
            }
        };
        let typed = |(at, mut values): (usize, Value)| {
            let path = format!("{name}[{at}]");
            if !values.is_table() {
                self.refuse(&path, shown(&values), give(name));
                return None;
            }
            let settings = self.typed::<T>(&path, &mut values)?;
            Some((path, settings))
        };
        list.into_iter().enumerate().filter_map(typed).collect()
    }

    /// Every mistake, in the order of the file. Of a line that could not be read nothing else is
    /// said.
    pub(super) fn into_mistakes(mut self) -> Vec<RefusedSetting> {
        let place = |mistake: &RefusedSetting| (mistake.file.clone(), mistake.line);
        let torn = self
            .mistakes
            .iter()
            .filter(|mistake| mistake.key.is_empty());
        let torn: HashSet<_> = torn.map(place).collect();
        self.mistakes.retain(|mistake| {
            let is_whole = mistake.line.is_none() || !torn.contains(&place(mistake));
            mistake.key.is_empty() || is_whole
        });
        self.mistakes.sort_by_cached_key(|mistake| {
            (mistake.file.clone(), mistake.line.unwrap_or(usize::MAX))
        });
        self.mistakes
    }

    /// Gives a table its type. Values that have another one are refused, and left out of it or
    /// replaced.
    fn typed<T: DeserializeOwned>(&mut self, path: &str, values: &mut Value) -> Option<T> {
        self.fill_required(path, values);
        // Elements that were left out of lists, by the paths of those.
        let mut left_out: BTreeMap<String, usize> = BTreeMap::new();
        loop {
            let error = match serde_path_to_error::deserialize::<_, T>(values.clone()) {
                Ok(typed) => return Some(typed),
                Err(error) => error,
            };
            let mut at = path.to_owned();
            for segment in error.path().iter() {
                at = match segment {
                    Segment::Map { key } => format!("{at}.{key}"),
                    Segment::Seq { index } => {
                        format!("{at}[{}]", index + left_out.get(&at).copied().unwrap_or(0))
                    }
                    _ => at,
                };
            }
            let key = plain(&at);
            let replacement = (keys::is_required(&key)).then(|| placeholder(&at));
            let steps: Vec<&Segment> = error.path().iter().collect();
            let is_value = keys::kind(&key) != KeyKind::Table;
            match exchange(values, &steps, replacement, is_value) {
                // A token is not shown, good or not.
                Some(_) if keys::holds_secret(&key) => self.refuse(&at, "***", give(&key)),
                Some(found) => self.refuse(&at, shown(&found), give(&key)),
                // Not a value, but a whole table cannot be read: no more can be told of it.
                None => {
                    let message = error
                        .inner()
                        .message()
                        .lines()
                        .next()
                        .unwrap_or_default()
                        .to_owned();
                    self.refuse(&at, "a value that cannot be read", message);
                    return None;
                }
            }
            if let Some((list, _)) = at.rsplit_once('[').filter(|_| at.ends_with(']')) {
                *left_out.entry(list.to_owned()).or_default() += 1;
            }
        }
    }

    /// Refuses a table in which something required is missing, and puts something in its place.
    fn fill_required(&mut self, path: &str, values: &mut Value) {
        let Some(table) = values.as_table_mut() else {
            return;
        };
        for name in keys::required(&plain(path)) {
            let path = format!("{path}.{name}");
            if !table.contains_key(name) {
                self.miss(&path, "nothing", give(&plain(&path)));
                table.insert(name.to_owned(), placeholder(&path));
            }
        }
        for (name, inner) in table.iter_mut() {
            self.fill_required(&format!("{path}.{name}"), inner);
        }
    }
}

/// Finds the texts that a parser of URLs would take although control characters stand in them: their
/// paths, and what may be shown of them.
fn urls_with_controls(value: &Value, path: String, found: &mut Vec<(String, String)>) {
    match value {
        Value::String(text)
            if holds_controls(text) && Url::parse(text).is_ok_and(|url| url.has_host()) =>
        {
            found.push((path, shown(value)));
        }
        Value::Array(list) => {
            for (at, value) in list.iter().enumerate() {
                urls_with_controls(value, format!("{path}[{at}]"), found);
            }
        }
        Value::Table(table) => {
            for (name, value) in table {
                urls_with_controls(value, format!("{path}.{name}"), found);
            }
        }
        _ => {}
    }
}

/// Puts a table that stands where a list of tables is wanted into a list. True if there is one.
fn wrap_single(table: &mut Table, name: &str) -> bool {
    let Some(value) = table.get_mut(name).filter(|value| value.is_table()) else {
        return false;
    };
    let one = std::mem::replace(value, Value::Array(Vec::new()));
    *value = Value::Array(vec![one]);
    true
}

/// A value for a required key that is refused. It never leaves this program: the configuration is
/// refused.
fn placeholder(path: &str) -> Value {
    let number: String = path.chars().filter(char::is_ascii_digit).collect();
    Value::String(match path.rsplit('.').next() {
        Some("url" | "origin") => format!("http://{number}.invalid/"),
        _ => format!("unnamed-{number}"),
    })
}

/// Takes the keys that there are not out of a table, and tells their paths and values.
fn take_unknown(table: &mut Table, path: &str, unknown: &mut Vec<(String, Value)>) {
    table.retain(|name, value| {
        let path = if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        };
        match keys::kind(&plain(&path)) {
            KeyKind::Value => true,
            KeyKind::Unknown => {
                unknown.push((path, value.clone()));
                false
            }
            KeyKind::Table => {
                match value {
                    Value::Table(inner) => take_unknown(inner, &path, unknown),
                    Value::Array(list) => {
                        for (at, inner) in list.iter_mut().enumerate() {
                            if let Value::Table(inner) = inner {
                                take_unknown(inner, &format!("{path}[{at}]"), unknown);
                            }
                        }
                    }
                    _ => {}
                }
                true
            }
        }
    });
}

/// Takes the value at a path out, or puts another one in its place. A table is taken out only where
/// a value should be.
fn exchange(
    values: &mut Value,
    steps: &[&Segment],
    replacement: Option<Value>,
    is_value: bool,
) -> Option<Value> {
    let (last, before) = steps.split_last()?;
    let mut place = values;
    for step in before {
        place = match step {
            Segment::Map { key } => place.get_mut(key.as_str())?,
            Segment::Seq { index } => place.get_mut(*index)?,
            _ => return None,
        };
    }
    match (last, place) {
        (Segment::Map { key }, Value::Table(table)) => {
            table
                .get(key)
                .filter(|found| is_value || !found.is_table())?;
            match replacement {
                Some(value) => table.insert(key.clone(), value),
                None => table.remove(key),
            }
        }
        (Segment::Seq { index }, Value::Array(list)) if *index < list.len() => {
            Some(list.remove(*index))
        }
        _ => None,
    }
}

/// A value as it is shown: short, and without what may be secret in a URL.
fn shown(value: &Value) -> String {
    /// Characters of a value that are shown.
    const SHOWN_MAX: usize = 80;
    match value {
        Value::Table(_) => "a table".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) => {
            format!(
                "\"{}\"",
                masked(text).chars().take(SHOWN_MAX).collect::<String>()
            )
        }
        other => other.to_string().chars().take(SHOWN_MAX).collect(),
    }
}

/// `feed[0].url` as `feed.url`, by which keys are known.
fn plain(path: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for c in path.chars() {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            c if !inside => out.push(c),
            _ => {}
        }
    }
    out
}
