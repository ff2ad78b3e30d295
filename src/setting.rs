//! Settings apart from their meaning: the refusal of one, and a list of all by dotted key; not
//! where they are read from.

use crate::secret::{logged_text, masked};
use serde::Serialize;
use serde_json::Value;
use std::{collections::BTreeMap, fmt, path::PathBuf};
use thiserror::Error;

/// A setting that is refused. It holds no credentials: those of a URL are masked when it is made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct RefusedSetting {
    /// The key, dotted; empty for the file as a whole.
    pub key: String,
    /// The value found.
    pub found: String,
    /// The values that would do.
    pub wanted: String,
    /// The included file in which it stands; `None` for the configuration itself.
    pub file: Option<PathBuf>,
    /// The line of the file on which it stands; `None` where that is not known.
    pub line: Option<usize>,
}

impl RefusedSetting {
    /// A refusal of the value of a key.
    pub fn new(
        key: impl Into<String>,
        found: impl fmt::Display,
        wanted: impl Into<String>,
    ) -> Self {
        Self {
            key: key.into(),
            // What is written may not write to a terminal.
            found: logged_text(&masked(&found.to_string())).replace(char::is_control, "\u{FFFD}"),
            wanted: wanted.into(),
            file: None,
            line: None,
        }
    }

    /// The same below a table.
    pub fn within(self, table: &str) -> Self {
        Self {
            key: format!("{table}.{}", self.key),
            ..self
        }
    }
}

impl fmt::Display for RefusedSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "found {}; {}", self.found, self.wanted)
    }
}

/// A value between quotation marks, as an error shows it.
pub fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

/// True for a text with characters that nobody sees and no URL holds: a parser of URLs would drop some
/// of them silently.
pub fn holds_controls(text: &str) -> bool {
    text.contains(char::is_control)
}

/// Refuses 0.
pub fn at_least_one(key: &str, value: u64, wanted: &str) -> Result<(), RefusedSetting> {
    if value == 0 {
        Err(RefusedSetting::new(key, 0, wanted))
    } else {
        Ok(())
    }
}

/// Refuses the first of some numbers that is 0.
pub fn all_at_least_one<'a>(
    numbers: impl IntoIterator<Item = (&'a str, u64)>,
    wanted: &str,
) -> Result<(), RefusedSetting> {
    numbers
        .into_iter()
        .try_for_each(|(key, value)| at_least_one(key, value, wanted))
}

/// Every setting of a table by its dotted key. Lists are one setting each; a setting without a
/// value is `null`.
pub fn by_key(table: &impl Serialize) -> BTreeMap<String, Value> {
    let mut settings = BTreeMap::new();
    let value = serde_json::to_value(table).expect("settings have names and plain values");
    collect(String::new(), value, &mut settings);
    settings
}

fn collect(key: String, value: Value, settings: &mut BTreeMap<String, Value>) {
    let Value::Object(table) = value else {
        settings.insert(key, value);
        return;
    };
    for (name, value) in table {
        let below = if key.is_empty() {
            name
        } else {
            format!("{key}.{name}")
        };
        collect(below, value, settings);
    }
}

/// The keys whose values differ between two tables, in order.
pub fn differing_keys(old: &impl Serialize, new: &impl Serialize) -> Vec<String> {
    let (old, new) = (by_key(old), by_key(new));
    let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter()
        .filter(|key| old.get(*key) != new.get(*key))
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tables_differ_by_their_dotted_keys() {
        let old = json!({ "a": { "b": 1, "c": [1, 2] }, "d": null, "e": 5 });
        let new = json!({ "a": { "b": 2, "c": [1, 2] }, "d": { "x": 1 }, "e": 5 });
        assert_eq!(differing_keys(&old, &new), ["a.b", "d", "d.x"]);
        assert!(differing_keys(&new, &new).is_empty());
    }

    #[test]
    fn a_refusal_shows_no_credentials() {
        let refused = RefusedSetting::new("url", "\"http://u:hunter2@x/\"", "give another")
            .within("feed.blog");
        assert_eq!(
            refused.to_string(),
            "feed.blog.url: found \"http://***@x/\"; give another"
        );
    }
}
