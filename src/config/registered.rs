//! Feeds of the registry: how the text of one is read, with the keys and the errors of `[[feed]]`,
//! and how they stand beside the feeds of the file; not where entries are kept.

use super::{
    Config, ConfigError, config_text::ConfigText, join_feeds_of_sites, lack_any_feed, problems,
    typed::ConfigReading,
};
use crate::{
    catalog::{FeedSettings, GroupSettings, RegistryNames, SiteSettings},
    setting::{RefusedSetting, quoted},
};
use everfeed_adapters::platforms::Platforms;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
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
        let entries = self.entries(ConfigText::read(text, []))?;
        if entries.is_empty() {
            let wanted = "give at least one [[feed]] with a name and a url";
            return Err(vec![RefusedSetting::new("feed", "no feed", wanted)]);
        }
        Ok(entries)
    }

    /// Reads the keys of one feed as a JSON object. Its name may be left out.
    pub fn of_json(&self, name: &str, text: &str) -> Result<FeedEntry, Vec<RefusedSetting>> {
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
        let mut entries = self.entries(ConfigText::of_table(file))?;
        Ok(entries.remove(0))
    }

    /// Reads a text that was kept under a name; the error says what is wrong with it.
    fn kept(&self, name: &str, text: &str) -> Result<FeedSettings, String> {
        let read = self.of_json(name, text).map(|entry| entry.settings);
        read.map_err(|mistakes| {
            let told: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
            told.join("; ")
        })
    }

    fn entries(&self, written: ConfigText<'_>) -> Result<Vec<FeedEntry>, Vec<RefusedSetting>> {
        let tables = match written.table.get("feed") {
            Some(Value::Array(tables)) => tables.clone(),
            _ => Vec::new(),
        };
        let mut reading = ConfigReading::new(written);
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
        let known = self.feeds.remove(name);
        if let Some(known) = &known {
            self.names.sound.remove(name);
            self.namespaces.remove(&known.namespace());
        }
        self.names.unread.remove(name).is_some() || known.is_some()
    }

    /// True where a feed that a file lacks may be one of the entries that cannot be read.
    fn may_have(&self, name: &str) -> bool {
        let is_any = name.is_empty() || name.contains(':');
        self.names.unread.contains_key(name) || (is_any && !self.names.unread.is_empty())
    }
}

impl Config {
    // Decides: Which feeds of the registry cannot stand beside those of the file?
    /// The configuration with the feeds of the registry among its own. Refused where a name is in
    /// both, or where one could not stand beside another in one file. Errors name `file`.
    pub fn with_registered(
        self,
        registered: &Registered,
        file: &Path,
    ) -> Result<Self, ConfigError> {
        if registered.feeds.is_empty() && self.lacking.is_empty() {
            return Ok(self);
        }
        let (joined, problems) = self.beside(registered);
        if problems.is_empty() {
            return Ok(joined);
        }
        Err(ConfigError::of(file, problems))
    }

    /// The same, with every problem that the two have beside each other.
    pub fn beside(mut self, registered: &Registered) -> (Self, Vec<RefusedSetting>) {
        let mut reading = ConfigReading::new(ConfigText::of_table(Table::new()));
        let lacking = std::mem::take(&mut self.lacking);
        // Sites give theirs anew: an entry may be the feed at one of their addresses.
        let mut feeds = std::mem::take(&mut self.feed);
        feeds.retain(|feed| !feed.is_called_by_site());
        let in_file = feeds.iter().map(|feed| &feed.name);
        let in_file: BTreeSet<String> = in_file
            .chain(self.group.iter().map(|group| &group.name))
            .cloned()
            .collect();
        for feed in registered.feeds.values() {
            if !in_file.contains(&feed.name) {
                feeds.push(feed.clone());
                continue;
            }
            let name = &feed.name;
            let wanted = format!(
                "the registry has a feed of this name, too. Take it out of the file, or run `everfeed feeds remove {name}`"
            );
            reading.refuse(&format!("feed.{name}.name"), quoted(name), wanted);
        }
        let sites: Vec<(String, SiteSettings)> = self
            .site
            .iter()
            .cloned()
            .enumerate()
            .map(|(no, site)| (format!("site[{no}]"), site))
            .collect();
        let groups: Vec<(String, GroupSettings)> = self
            .group
            .iter()
            .cloned()
            .map(|group| (format!("group.{}", group.name), group))
            .collect();
        let feeds: Vec<(String, FeedSettings)> = feeds
            .into_iter()
            .map(|feed| (format!("feed.{}", feed.name), feed))
            .collect();
        if feeds.is_empty() && sites.is_empty() {
            lack_any_feed(&mut reading);
        }
        let feeds = join_feeds_of_sites(&sites, feeds, &self.server.public_url);
        problems::of_listed_feeds(&sites, &feeds, &mut reading);
        problems::of_feeds(&feeds, &sites, &self.platforms.profiles(), &mut reading);
        problems::of_groups(&groups, &feeds, &sites, &mut reading);
        problems::of_webhooks(&self.webhook, (&feeds, &groups, &sites), &mut reading);
        let still = reading.take_lacking().into_iter();
        let still = still.filter(|lacks| !registered.may_have(&lacks.name));
        // What was read of the file knows its lines.
        let told = still.map(|lacks| {
            let known = lacking
                .iter()
                .find(|known| known.mistake.key == lacks.mistake.key);
            known.map_or(lacks.mistake, |known| known.mistake.clone())
        });
        let told: Vec<RefusedSetting> = told.collect();
        self.feed = feeds.into_iter().map(|(_, feed)| feed).collect();
        (self, [reading.into_mistakes(), told].concat())
    }

    /// True for a file that names feeds which it lacks.
    pub fn lacks_feeds(&self) -> bool {
        !self.lacking.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn what_a_file_lacks_may_be_registered_and_keeps_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ever.toml");
        let load = |text: &str| {
            std::fs::write(&file, text).unwrap();
            Config::load(&file, []).unwrap()
        };
        let told = |text: &str, entries: &[(&str, &str)]| {
            let joined = load(text).with_registered(&registered(entries), &file);
            joined
                .map(|config| config.feed.len())
                .map_err(|error| error.to_string())
        };
        let group = "[[group]]\nname = \"g\"\nmembers = [\n\"a\",\n\"category:c\"]\n";
        let a = ("a", "{\"url\":\"http://x/a\",\"categories\":[\"c\"]}");
        let b = ("b", "{\"url\":\"http://x/b\"}");
        let broken = ("z", "{");
        assert_eq!(told("", &[b]), Ok(1));
        assert_eq!(told("", &[broken]), Ok(0), "another may be the one");
        assert!(told("", &[]).unwrap_err().contains("found no feed"));
        assert_eq!(told(group, &[a]), Ok(1));
        let refused = told(group, &[b]).unwrap_err();
        assert_eq!(refused.lines().count(), 2, "{refused}");
        let first = "ever.toml: line 4: group.g.members[0]: found \"a\"; no feed has this name";
        assert!(refused.contains(first), "{refused}");
        // The category may be that of the broken one; the name is not.
        let refused = told(group, &[b, broken]).unwrap_err();
        assert!(
            refused.lines().count() == 1 && refused.contains("[0]"),
            "{refused}"
        );
        let both = "[[feed]]\nname = \"a\"\nurl = \"http://y/\"\n";
        assert!(told(both, &[a]).unwrap_err().contains("feeds remove a"));
        let same_ids = "[[feed]]\nname = \"one\"\nurl = \"http://x/a\"\n";
        assert!(told(same_ids, &[a]).unwrap_err().contains("same namespace"));
    }
}
