//! Feeds of the registry: how the text of one is read, with the keys and the errors of `[[feed]]`;
//! not which of them can stand [beside the feeds of the file](super::beside_registry), nor where
//! entries are kept.

use super::{config_text::ConfigText, typed::ConfigReading};
use crate::{
    catalog::{FeedSettings, RegistryNames},
    setting::{RefusedSetting, quoted},
};
use everfeed_adapters::platforms::Platforms;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::PathBuf,
    sync::Arc,
};
use toml::{Table, Value};

/// A feed for the registry: what it means, and the text that is kept of it.
#[derive(Clone, Debug)]
pub struct FeedEntry {
    /// Its settings.
    pub settings: FeedSettings,
    /// Its keys as JSON, as they were written.
    pub text: String,
}

/// The way by which an entry comes in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryOrigin {
    /// Somebody gives it now.
    New,
    /// It is kept already, maybe since a version that refused less. Its feed goes on.
    Kept,
}

/// Reads entries of the registry.
#[derive(Clone, Debug)]
pub struct EntryReader {
    /// The profiles of platforms in force.
    pub profiles: Arc<Platforms>,
    /// The folder from which relative paths count: that of the configuration file.
    pub folder: PathBuf,
}

impl EntryReader {
    /// Reads the `[[feed]]` tables of a TOML text.
    pub fn of_toml(&self, text: &str) -> Result<Vec<FeedEntry>, Vec<RefusedSetting>> {
        let mut reading = ConfigReading::new(ConfigText::read(text, []));
        reading.refuse_control_characters();
        let entries = self.entries(reading)?;
        if entries.is_empty() {
            let wanted = "give at least one [[feed]] with a name and a url";
            return Err(vec![RefusedSetting::new("feed", "no feed", wanted)]);
        }
        Ok(entries)
    }

    /// Reads the keys of one feed as a JSON object. Its name may be left out.
    pub fn of_json(&self, name: &str, text: &str) -> Result<FeedEntry, Vec<RefusedSetting>> {
        self.json(name, text, EntryOrigin::New)
    }

    fn json(
        &self,
        name: &str,
        text: &str,
        door: EntryOrigin,
    ) -> Result<FeedEntry, Vec<RefusedSetting>> {
        let refuse = |key: String, found: &str, wanted: String| {
            Err(vec![RefusedSetting::new(key, found, wanted)])
        };
        let mut table: Table = match serde_json::from_str(text) {
            Ok(table) => table,
            Err(error) => {
                let wanted = format!("give the keys of [[feed]] as a JSON object ({error})");
                return refuse(format!("feed.{name}"), "a text that cannot be read", wanted);
            }
        };
        let given = table.entry("name").or_insert_with(|| name.into());
        if given.as_str() != Some(name) {
            let wanted = format!("give \"{name}\", as in the path, or leave it out");
            return refuse("feed.name".to_owned(), &given.to_string(), wanted);
        }
        let feeds = Value::Array(vec![Value::Table(table)]);
        let file = Table::from_iter([("feed".to_owned(), feeds)]);
        let mut reading = ConfigReading::new(ConfigText::of_table(file));
        if door == EntryOrigin::New {
            reading.refuse_control_characters();
        }
        let mut entries = self.entries(reading)?;
        Ok(entries.remove(0))
    }

    /// Reads a text that was kept under a name; the error says what is wrong with it.
    fn kept(&self, name: &str, text: &str) -> Result<FeedSettings, String> {
        let read = self.json(name, text, EntryOrigin::Kept);
        let read = read.map(|entry| entry.settings);
        read.map_err(|mistakes| {
            let told: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
            told.join("; ")
        })
    }

    fn entries(
        &self,
        mut reading: ConfigReading<'_>,
    ) -> Result<Vec<FeedEntry>, Vec<RefusedSetting>> {
        let tables = reading.tables("feed");
        reading.take_feeds_alone();
        let feeds: Vec<(String, FeedSettings)> = reading.list("feed");
        let mut names = BTreeSet::new();
        for (path, feed) in &feeds {
            let found = feed.problems(&self.profiles).into_iter();
            for problem in found.chain(hidden_secret(feed)) {
                reading.take_over(problem.within(path));
            }
            if !names.insert(&feed.name) {
                let wanted = "this is the second feed with this name. Give each its own";
                reading.refuse(&format!("{path}.name"), quoted(&feed.name), wanted);
            }
        }
        let mistakes = reading.into_mistakes();
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let entry = |((_, mut settings), table): ((String, FeedSettings), Value)| {
            if let Some(record) = &mut settings.record {
                record.folder = self.folder.join(&record.folder);
            }
            let text = serde_json::to_string(&table).expect("a table of TOML has plain values");
            FeedEntry { settings, text }
        };
        Ok(feeds.into_iter().zip(tables).map(entry).collect())
    }
}

/// The problem with a URL that was shown without its secrets.
fn hidden_secret(feed: &FeedSettings) -> Option<RefusedSetting> {
    if !feed.url.as_str().contains("***") {
        return None;
    }
    let wanted = "*** stands for a secret that is not shown. Give the whole URL";
    Some(RefusedSetting::new(
        "url",
        quoted(feed.url.as_str()),
        wanted,
    ))
}

/// The feeds of the registry.
#[derive(Clone, Debug, Default)]
pub struct Registered {
    /// The feeds that could be read, by name.
    pub feeds: BTreeMap<String, FeedSettings>,
    /// The names of all entries.
    pub names: RegistryNames,
    /// Names by namespaces of ids.
    namespaces: HashMap<String, String>,
}

impl Registered {
    /// Takes in an entry. One that cannot be read, or whose ids another entry has, is told and takes
    /// no other with it.
    pub fn take(&mut self, name: String, text: Result<String, String>, reader: &EntryReader) {
        let read = text.and_then(|text| reader.kept(&name, &text));
        let read = read.and_then(
            |settings| match self.namespaces.get(&settings.namespace()) {
                Some(other) => Err(format!("feed `{other}` of the registry has the same ids")),
                None => Ok(settings),
            },
        );
        match read {
            Ok(settings) => self.put(settings),
            Err(why) => {
                self.names.unread.insert(name, why);
            }
        }
    }

    /// Puts a feed in the place of the one of its name.
    pub fn put(&mut self, settings: FeedSettings) {
        self.remove(&settings.name);
        let name = settings.name.clone();
        self.namespaces.insert(settings.namespace(), name.clone());
        self.names.sound.insert(name.clone());
        self.feeds.insert(name, settings);
    }

    /// Removes the entry of a name. True when there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        let was_sound = self.remove_sound(name);
        let was_unread = self.names.unread.remove(name).is_some();
        let was_shadowed = self.names.shadowed.remove(name).is_some();
        was_sound || was_unread || was_shadowed
    }

    /// Takes a feed out of those that count. Its entry stays, with the reason and the remedy.
    pub(super) fn shadow(&mut self, name: String, why: String) {
        if self.remove_sound(&name) {
            self.names.shadowed.insert(name, why);
        }
    }

    fn remove_sound(&mut self, name: &str) -> bool {
        let known = self.feeds.remove(name);
        if let Some(known) = &known {
            self.names.sound.remove(name);
            self.namespaces.remove(&known.namespace());
        }
        known.is_some()
    }

    /// True where a feed that a file lacks may be one of the entries that cannot be read or are
    /// shadowed.
    pub(super) fn may_have(&self, name: &str) -> bool {
        let is_any = name.is_empty() || name.contains(':');
        let off = [&self.names.unread, &self.names.shadowed];
        off.iter()
            .any(|entries| entries.contains_key(name) || is_any && !entries.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn reader() -> EntryReader {
        EntryReader {
            profiles: Arc::new(Platforms::embedded().clone()),
            folder: PathBuf::from("/etc/everfeed"),
        }
    }

    fn registered(entries: &[(&str, &str)]) -> Registered {
        let mut registered = Registered::default();
        for (name, text) in entries {
            registered.take((*name).to_owned(), Ok((*text).to_owned()), &reader());
        }
        registered
    }

    #[test]
    fn an_entry_is_kept_as_it_was_written_and_read_back() {
        let toml = "[[feed]]\nname = \"a\"\nurl = \"http://x/a\"\n[feed.poll]\nmin_secs = 5000\n\
                    [feed.record]\nfolder = \"documents\"\n";
        let entry = reader().of_toml(toml).unwrap().remove(0);
        let expect = "{\"name\":\"a\",\"poll\":{\"min_secs\":5000},\"record\":{\"folder\":\"documents\"},\"url\":\"http://x/a\"}";
        assert_eq!(entry.text, expect);
        let read = registered(&[("a", &entry.text)]);
        assert_eq!(read.feeds["a"], entry.settings);
        let folder = &read.feeds["a"].record.as_ref().unwrap().folder;
        assert_eq!(folder, Path::new("/etc/everfeed/documents"));
    }

    #[test]
    fn an_entry_that_cannot_be_read_takes_no_other_with_it() {
        let read = registered(&[
            ("a", "{\"url\":\"http://x/a\"}"),
            ("b", "{"),
            ("c", "{\"url\":\"http://x/c\",\"newer\":1}"),
            ("d", "{\"name\":\"e\",\"url\":\"http://x/d\"}"),
            ("e", "{\"url\":null}"),
            ("f", "{\"url\":\"https://x/a\"}"),
        ]);
        let sound: Vec<&String> = read.names.sound.iter().collect();
        assert_eq!(sound, ["a"]);
        let check = |name: &str, part: &str| {
            let why = &read.names.unread[name];
            assert!(why.contains(part), "{name}: {why}");
        };
        check("b", "JSON");
        check("c", "newer");
        check("d", "as in the path");
        check("e", "JSON");
        check("f", "feed `a` of the registry has the same ids");
    }
}
