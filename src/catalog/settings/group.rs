//! `[[group]]`: the settings of a feed that is made of other feeds; not how it comes about.

use super::{FeedSettings, NAME_WANTED, is_name};
use crate::{auth::AccessSettings, setting::RefusedSetting};
use everfeed_adapters::{Metadata, Text};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use url::Url;

/// `[[group]]`: a feed of the posts of other feeds, its members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSettings {
    /// Its name in our URLs, where feeds have theirs.
    pub name: String,
    /// Its members: names of feeds, and `category:NAME` for all feeds of a category.
    #[serde(default)]
    pub members: Vec<String>,
    /// Its title; the name without one.
    #[serde(default)]
    pub title: Option<String>,
    /// Those who may read it: nobody who may not read all members.
    #[serde(default)]
    pub access: AccessSettings,
}

/// Groups at most.
pub const GROUPS_MAX: usize = 1000;

/// Members of a group at most.
pub const GROUP_MEMBERS_MAX: usize = 1000;

/// Groups of one feed at most: each of its changes is written into all of them.
pub const FEED_GROUPS_MAX: usize = 16;

/// The mark before the name of a category among members.
const CATEGORY: &str = "category:";

/// The values that would do for `members`.
pub const MEMBERS_WANTED: &str =
    "give names of feeds, or categories of them: for instance [\"blog\", \"category:friends\"]";

impl GroupSettings {
    /// The settings of the feed that the group is. Its address says that nobody is asked for it.
    pub fn as_feed(&self) -> FeedSettings {
        let address = format!("group:{}", self.name);
        let url = Url::parse(&address).expect("a name that was checked is a path");
        FeedSettings {
            id_namespace: Some(address),
            access: self.access.clone(),
            group: Some(Box::new(self.clone())),
            ..FeedSettings::new(self.name.clone(), url)
        }
    }

    /// The metadata of the group: its title.
    pub fn metadata(&self) -> Metadata {
        let title = self.title.as_ref().unwrap_or(&self.name);
        Metadata {
            title: Some(Text::plain(title)),
            ..Metadata::default()
        }
    }

    /// True when whoever may read the group may read a feed, and the whole of it.
    pub fn may_hold(&self, feed: &FeedSettings) -> bool {
        feed.show.is_empty() && self.access.is_within(&feed.access)
    }

    /// Every setting that has the right type and still cannot be meant, as far as it concerns no
    /// feed.
    pub fn problems(&self) -> Vec<RefusedSetting> {
        let mut problems = Vec::new();
        let mut refuse = |key: &str, found: String, wanted: &str| {
            problems.push(RefusedSetting::new(key, found, wanted));
        };
        if !is_name(&self.name) {
            refuse("name", format!("\"{}\"", self.name), NAME_WANTED);
        }
        if let Some(title) = &self.title
            && title.trim().is_empty()
        {
            let wanted = "give a text in quotes, or leave it out";
            refuse("title", "an empty text".to_owned(), wanted);
        }
        if self.members.is_empty() {
            refuse("members", "no member".to_owned(), MEMBERS_WANTED);
        }
        problems.extend(self.access.problems());
        problems
    }
}

/// Feeds by the names under which groups know them.
pub struct NamedFeeds<'a> {
    by_name: HashMap<&'a str, &'a FeedSettings>,
    by_category: HashMap<&'a str, Vec<&'a FeedSettings>>,
}

impl<'a> NamedFeeds<'a> {
    /// These feeds. Groups among them are no members of others.
    pub fn of(feeds: impl Iterator<Item = &'a FeedSettings>) -> Self {
        let mut named = Self {
            by_name: HashMap::new(),
            by_category: HashMap::new(),
        };
        for feed in feeds.filter(|feed| feed.group.is_none()) {
            named.by_name.insert(&feed.name, feed);
            for category in &feed.categories {
                named.by_category.entry(category).or_default().push(feed);
            }
        }
        named
    }

    /// The feeds that an element of `members` means.
    pub fn meant_by(&self, member: &str) -> &[&'a FeedSettings] {
        match member.strip_prefix(CATEGORY) {
            Some(category) => self.by_category.get(category).map_or(&[], Vec::as_slice),
            None => self.by_name.get(member).map_or(&[], std::slice::from_ref),
        }
    }

    /// The members of a group, each once, in the order of its list. A feed that others may not read
    /// is none.
    pub fn members_of(&self, group: &GroupSettings) -> Vec<&'a FeedSettings> {
        let mut met = HashSet::new();
        let meant = group
            .members
            .iter()
            .flat_map(|member| self.meant_by(member))
            .copied();
        let members = meant.filter(|feed| group.may_hold(feed) && met.insert(feed.name.as_str()));
        members.take(GROUP_MEMBERS_MAX).collect()
    }
}
