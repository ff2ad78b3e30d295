//! The table of all keys, as the book holds it: the type and the default of each, and the moment
//! at which a changed one takes effect. It is the only place that says so; not what values mean.

use super::Config;
use crate::setting::differing_keys;
use std::sync::LazyLock;

/// The table as people read it, in Markdown.
pub const REFERENCE: &str = include_str!("../../docs/reference/configuration.md");

/// The moment at which a changed setting takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// At a reload.
    Reload,
    /// At the next start: the socket, the file, the cache or the client made from it is made once.
    Restart,
}

/// A row of the table.
#[derive(Clone, Debug)]
struct KeyRow {
    /// The key, dotted and without indices: those of a feed below `feed.`, of a group below
    /// `group.`, and of a site below `site.`.
    key: String,
    /// The values that would do, in words.
    values: &'static str,
    /// The default, in words or as it would be written.
    default: &'static str,
    /// The effect of a change; `None` for a table, and for a part of a value.
    effect: Option<Effect>,
}

impl KeyRow {
    /// Reads a line. `None` for one that is no row.
    fn read(line: &'static str) -> Option<Self> {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", key, values, default, effect, _, ""] = cells[..] else {
            return None;
        };
        Some(Self {
            key: key.strip_prefix('`')?.strip_suffix('`')?.to_owned(),
            values,
            default,
            effect: match effect {
                "reload" => Some(Effect::Reload),
                "restart" => Some(Effect::Restart),
                _ => None,
            },
        })
    }

    /// The rows that this one stands for: itself, or those of another key and below it, where its
    /// type is `as` that key.
    fn meant(&self, all: &[Self]) -> Vec<Self> {
        let other = self.values.strip_prefix("as `");
        let Some(other) = other.and_then(|rest| rest.strip_suffix('`')) else {
            return vec![self.clone()];
        };
        let same = |row: &Self| {
            let rest = row.key.strip_prefix(other)?;
            let is_within = rest.is_empty() || rest.starts_with('.');
            is_within.then(|| Self {
                key: format!("{}{rest}", self.key),
                effect: row.effect.and(self.effect),
                ..row.clone()
            })
        };
        all.iter().filter_map(same).collect()
    }
}

static ROWS: LazyLock<Vec<KeyRow>> = LazyLock::new(|| {
    let written: Vec<KeyRow> = REFERENCE.lines().filter_map(KeyRow::read).collect();
    let rows = written.iter().flat_map(|row| row.meant(&written));
    rows.collect()
});

fn row(key: &str) -> Option<&'static KeyRow> {
    ROWS.iter().find(|row| row.key == key)
}

/// Every key that has a value, dotted and without indices.
pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    let with_value = ROWS.iter().filter(|row| row.effect.is_some());
    with_value.map(|row| row.key.as_str())
}

/// The keys that their tables must have.
pub(super) fn required() -> impl Iterator<Item = &'static str> {
    let required = ROWS.iter().filter(|row| row.default == "required");
    required.map(|row| row.key.as_str())
}

/// The remedy for a value of another type, in the words of an error.
pub(super) fn give(key: &str) -> String {
    // Below a key that has a value there are parts of that value.
    let above = || row(key.rsplit_once('.')?.0).filter(|row| row.effect.is_some());
    let values = row(key).or_else(above).map(|row| row.values);
    format!("give {}", values.unwrap_or("a value of another kind"))
}

// Decides: Which keys take effect at a reload?
/// The effect of a setting, by its key: `server.listen`, `feed.poll.min_secs`. A key that is not in
/// the table waits for a restart, since nothing is known to take it while running.
pub fn effect(key: &str) -> Effect {
    let below = |row: &&KeyRow| {
        let rest = row.key.strip_prefix(key);
        rest.is_some_and(|rest| rest.starts_with('.')) && row.effect.is_some()
    };
    // A list is taken in whole where each of its keys is.
    let of_list = || {
        let mut effects = ROWS.iter().filter(below).map(|row| row.effect).peekable();
        let has_keys = effects.peek().is_some();
        (has_keys && effects.all(|effect| effect == Some(Effect::Reload))).then_some(Effect::Reload)
    };
    row(key)
        .and_then(|row| row.effect.or_else(of_list))
        .unwrap_or(Effect::Restart)
}

/// The keys outside `[[feed]]` and `[[group]]` in which a configuration differs from the one that
/// runs, and that wait for a restart.
pub fn waiting_for_restart(running: &Config, new: &Config) -> Vec<String> {
    let global = |config: &Config| Config {
        feed: Vec::new(),
        group: Vec::new(),
        ..config.clone()
    };
    let keys = differing_keys(&global(running), &global(new));
    keys.into_iter()
        .filter(|key| effect(key) == Effect::Restart)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        alerts::AlertSettings,
        catalog::{GroupSettings, OpmlSettings},
        hub::WebhookSettings,
        ingest::CredentialSettings,
        setting::by_key,
    };
    use serde_json::Value;
    use std::collections::BTreeMap;

    const WHOLE: &str =
        "[[feed]]\nname = \"blog\"\nurl = \"http://x/\"\nrecord = { folder = \"x\" }\n";
    const GROUP: &str = "name = \"planet\"\n";
    const WEBHOOK: &str = "url = \"http://x/\"\nfeed = \"blog\"\nsecret = \"whsec_\"\n";
    const CREDENTIALS: &str = "origin = \"http://x\"\n";
    const SITE: &str = "[[site]]\norigin = \"http://y/\"\n";

    /// Every setting, with its default where it has one.
    fn settings() -> BTreeMap<String, Value> {
        let feeds = Config::parse("x", &format!("{SITE}{WHOLE}")).unwrap();
        let mut global = Config::default();
        global.server.tls.acme = Some(Default::default());
        let mut settings = by_key(&global);
        settings.retain(|key, _| {
            !matches!(
                key.as_str(),
                "alert" | "credentials" | "feed" | "group" | "opml" | "site" | "webhook"
            )
        });
        let group = toml::from_str::<GroupSettings>(GROUP).unwrap();
        let webhook = toml::from_str::<WebhookSettings>(WEBHOOK).unwrap();
        let credentials = toml::from_str::<CredentialSettings>(CREDENTIALS).unwrap();
        let list = toml::from_str::<OpmlSettings>("name = \"planet\"\n").unwrap();
        for (list, of_one) in [
            ("feed", by_key(&feeds.feed[0])),
            ("site", by_key(&feeds.site[0])),
            ("group", by_key(&group)),
            ("webhook", by_key(&webhook)),
            ("credentials", by_key(&credentials)),
            ("alert", by_key(&AlertSettings::default())),
            ("opml", by_key(&list)),
        ] {
            let named = of_one.into_iter();
            settings.extend(named.map(|(key, value)| (format!("{list}.{key}"), value)));
        }
        settings
    }

    #[test]
    fn the_table_has_every_key_once_and_no_other() {
        let listed: Vec<&str> = keys().collect();
        let mut sorted = listed.clone();
        sorted.sort_unstable();
        assert_eq!(settings().keys().collect::<Vec<_>>(), sorted);
    }

    #[test]
    fn the_table_has_every_default() {
        let settings = settings();
        for row in ROWS.iter().filter(|row| row.effect.is_some()) {
            let default = &settings[&row.key];
            let written = row.default.strip_prefix('`');
            match written.and_then(|rest| rest.strip_suffix('`')) {
                Some(written) => {
                    let written: toml::Table = toml::from_str(&format!("x = {written}")).unwrap();
                    let written = serde_json::to_value(&written["x"]).unwrap();
                    assert_eq!(&written, default, "{}", row.key);
                }
                None if row.default == "required" => {}
                None => assert!(default.is_null(), "{}: {default}", row.key),
            }
        }
    }

    #[test]
    fn every_line_of_the_table_is_read() {
        let lines = REFERENCE.lines().filter(|line| line.starts_with("| `"));
        for line in lines {
            let row = KeyRow::read(line).unwrap_or_else(|| panic!("{line}"));
            let is_section = line.split('|').nth(4).unwrap().trim().is_empty();
            assert_eq!(row.effect.is_none(), is_section, "{line}");
            assert!(
                !row.values.is_empty() && !row.meant(&ROWS).is_empty(),
                "{line}"
            );
        }
    }

    #[test]
    fn a_key_that_waits_for_a_restart_is_named_and_feeds_and_sites_do_not_wait() {
        let running = Config::parse("x", WHOLE).unwrap();
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:9\"\n[hub]\ndeliver_secs = 9\n{WHOLE}platform = \"none\"\n"
        );
        let new = Config::parse("x", &text).unwrap();
        assert_eq!(
            waiting_for_restart(&running, &new),
            ["hub.deliver_secs", "server.listen"]
        );
        assert!(waiting_for_restart(&new, &new).is_empty());
        let before_a_site = Config::parse("x", &format!("{SITE}{WHOLE}")).unwrap();
        assert!(waiting_for_restart(&running, &before_a_site).is_empty());
    }
}
