//! Groups for the folders of a list; not which categories its feeds get.

use super::super::edited_config::{AddedFeed, AddedGroup, EditedConfig};
use crate::app::{
    folder_categories::Folders,
    registry::{GROUP_MEMBERS_MAX, GROUPS_MAX},
};
use std::collections::HashMap;

// Decides: Which folders become groups?
/// Groups for the folders of the added feeds that no group takes in yet, and a line for each
/// folder that can have none.
pub(super) fn groups(
    folders: &Folders,
    added: &[AddedFeed],
    edited: &mut EditedConfig<'_>,
) -> (Vec<AddedGroup>, Vec<String>) {
    let mut members: HashMap<&str, usize> = HashMap::new();
    for category in added.iter().flat_map(|feed| &feed.categories) {
        *members.entry(category).or_default() += 1;
    }
    let mut groups = Vec::new();
    let mut notes = Vec::new();
    for (category, title) in folders.titled() {
        let Some(new) = members.get(category.as_str()) else {
            continue;
        };
        let member = format!("category:{category}");
        let present = edited.config.iter();
        if present.clone().any(|config| {
            let mut groups = config.group.iter();
            groups.any(|group| group.members.contains(&member))
        }) {
            continue;
        }
        let of_category = present
            .clone()
            .flat_map(|config| &config.feed)
            .filter(|feed| feed.categories.contains(category));
        let has_private = of_category.clone().any(|feed| feed.is_private());
        let count = present.map(|config| config.group.len()).sum::<usize>() + groups.len();
        let why = if of_category.count() + new > GROUP_MEMBERS_MAX {
            format!("it has more than {GROUP_MEMBERS_MAX} feeds")
        } else if has_private {
            format!("a private feed has the category {category}")
        } else if count >= GROUPS_MAX {
            format!("there are {GROUPS_MAX} groups")
        } else {
            let numbered = (2..).map(|number: u64| format!("{category}-{number}"));
            let names = [category.clone(), format!("{category}-group")];
            groups.push(AddedGroup {
                name: edited.first_free(names.into_iter().chain(numbered)),
                title: title.clone(),
                members: vec![member],
            });
            continue;
        };
        notes.push(format!(
            "No group for “{title}”: {why}. Its feeds have the category {category}"
        ));
    }
    (groups, notes)
}
