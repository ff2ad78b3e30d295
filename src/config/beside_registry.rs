//! The feeds of the registry beside those of the file, as one configuration: which of them cannot
//! stand there; not how an entry is read.

use super::{
    Config, ConfigError,
    config_text::ConfigText,
    registered::Registered,
    typed::{ConfigReading, LackingFeed},
};
use crate::{
    catalog::{FeedSettings, GroupSettings, SiteSettings},
    setting::{RefusedSetting, quoted},
};
use std::{
    collections::{HashMap, HashSet},
    path::Path,
};
use toml::Table;

impl Config {
    /// True for a file that names feeds which it lacks.
    pub fn lacks_feeds(&self) -> bool {
        !self.lacking.is_empty()
    }

    // Decides: Which entries of the registry give way to the file?
    /// Shadows the entries of the registry whose name or ids a feed or a group of the file has. A
    /// start with such an entry goes on without it: the other feeds of the file do not wait for a
    /// remedy.
    pub fn shadow(&self, registered: &mut Registered) {
        if registered.feeds.is_empty() {
            return;
        }
        // Sites give theirs anew: an entry may be the feed at one of their addresses.
        let feeds = self.feed.iter().filter(|feed| !feed.is_given_by_site());
        let owners: HashMap<String, &str> = feeds
            .clone()
            .map(|feed| (feed.namespace(), feed.name.as_str()))
            .collect();
        let groups = self.group.iter().map(|group| group.name.as_str());
        let names: HashSet<&str> = feeds.map(|feed| feed.name.as_str()).chain(groups).collect();
        let mut shadowed = Vec::new();
        for feed in registered.feeds.values() {
            let name = &feed.name;
            let clash = if names.contains(name.as_str()) {
                "a feed or a group of this name".to_owned()
            } else if let Some(owner) = owners.get(&feed.namespace()) {
                format!("the feed `{owner}` with the same ids")
            } else {
                continue;
            };
            let why = format!(
                "the configuration file has {clash}, and that is used. Run `everfeed feeds remove {name}`, or take the other out of the file and reload"
            );
            shadowed.push((name.clone(), why));
        }
        for (name, why) in shadowed {
            registered.shadow(name, why);
        }
    }

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
        let of_file = std::mem::take(&mut self.lacking);
        let feeds = self.feeds_beside(registered, &mut reading);
        let groups: Vec<(String, GroupSettings)> = self
            .group
            .iter()
            .map(|group| (format!("group.{}", group.name), group.clone()))
            .collect();
        let sites: Vec<(String, SiteSettings)> = self
            .site
            .iter()
            .enumerate()
            .map(|(no, site)| (format!("site[{no}]"), site.clone()))
            .collect();
        let feeds = self.join_listed(feeds, &groups, &sites, &mut reading);
        let lacking = still_lacking(reading.take_lacking(), &of_file, registered);
        self.feed = feeds.into_iter().map(|(_, feed)| feed).collect();
        (self, [reading.into_mistakes(), lacking].concat())
    }

    /// The feeds of the file and those of the registry, each with the path of its keys. A name that
    /// is in both is refused.
    fn feeds_beside(
        &self,
        registered: &Registered,
        reading: &mut ConfigReading<'_>,
    ) -> Vec<(String, FeedSettings)> {
        // Sites give theirs anew: an entry may be the feed at one of their addresses.
        let mut feeds: Vec<&FeedSettings> = self.feed.iter().collect();
        feeds.retain(|feed| !feed.is_given_by_site());
        let groups = self.group.iter().map(|group| &group.name);
        let in_file: HashSet<&String> = feeds.iter().map(|feed| &feed.name).chain(groups).collect();
        for feed in registered.feeds.values() {
            let name = &feed.name;
            if !in_file.contains(name) {
                feeds.push(feed);
                continue;
            }
            let wanted = format!(
                "the registry has a feed of this name, too. Take it out of the file, or run `everfeed feeds remove {name}`"
            );
            reading.refuse(&format!("feed.{name}.name"), quoted(name), wanted);
        }
        let path = |feed: &FeedSettings| format!("feed.{}", feed.name);
        feeds
            .into_iter()
            .map(|feed| (path(feed), feed.clone()))
            .collect()
    }
}

/// The mistakes of names that neither the file nor the registry has. What was read of the file knows
/// its lines.
fn still_lacking(
    lacking: Vec<LackingFeed>,
    of_file: &[LackingFeed],
    registered: &Registered,
) -> Vec<RefusedSetting> {
    let mistake = |lacks: LackingFeed| {
        let known = of_file
            .iter()
            .find(|known| known.mistake.key == lacks.mistake.key);
        known.map_or(lacks.mistake, |known| known.mistake.clone())
    };
    lacking
        .into_iter()
        .filter(|lacks| !registered.may_have(&lacks.name))
        .map(mistake)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{super::registered::EntryReader, *};
    use everfeed_adapters::platforms::Platforms;
    use std::sync::Arc;

    fn registered(entries: &[(&str, &str)]) -> Registered {
        let reader = EntryReader {
            profiles: Arc::new(Platforms::embedded().clone()),
            folder: "/etc/everfeed".into(),
        };
        let mut registered = Registered::default();
        for (name, text) in entries {
            registered.take((*name).to_owned(), Ok((*text).to_owned()), &reader);
        }
        registered
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

    #[test]
    fn an_entry_that_clashes_with_the_file_is_shadowed_and_the_others_count() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ever.toml");
        let check = |text: &str, expect: &[(&str, &str)]| {
            std::fs::write(&file, text).unwrap();
            let config = Config::load(&file, []).unwrap();
            let mut registered = registered(&[
                ("a", "{\"url\":\"http://x/a\"}"),
                ("b", "{\"url\":\"http://x/b\"}"),
            ]);
            config.shadow(&mut registered);
            let names = registered.names.clone();
            assert_eq!(names.len(), 2, "nothing is lost");
            assert_eq!(names.shadowed.len(), expect.len(), "{text}: {names:?}");
            for (name, words) in expect {
                let why = &names.shadowed[*name];
                assert!(why.contains(words), "{text}: {why}");
                assert!(why.contains(&format!("feeds remove {name}")), "{why}");
                assert!(names.contains(name) && !names.sound.contains(*name));
            }
            let joined = config.clone().with_registered(&registered, &file).unwrap();
            assert_eq!(joined.feed.len(), config.feed.len() + 2 - expect.len());
            // An entry that is removed or put again is shadowed no more.
            for (name, _) in expect {
                assert!(registered.remove(name) && !registered.names.contains(name));
            }
        };
        let feed =
            |name: &str, url: &str| format!("[[feed]]\nname = \"{name}\"\nurl = \"{url}\"\n");
        check(&feed("c", "http://x/c"), &[]);
        check(&feed("a", "http://x/c"), &[("a", "of this name")]);
        check(&feed("c", "https://x/a"), &[("a", "`c` with the same ids")]);
        let both = feed("a", "http://x/a") + &feed("c", "http://x/b");
        check(&both, &[("a", "of this name"), ("b", "`c` with")]);
        // The file may name what is shadowed.
        let group = "[[group]]\nname = \"g\"\nmembers = [\"a\", \"c\"]\n";
        check(&(feed("c", "http://x/a") + group), &[("a", "`c` with")]);
    }
}
