//! Folders of a list of feeds (OPML) as categories of its feeds; not the groups that take those in.

use super::feed_name::slug_of;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, HashMap};

/// Categories of a feed at most: so many groups may take it in.
pub const FEED_CATEGORIES_MAX: usize = 8;

/// Between the names of folders in the title of a group.
const BETWEEN: &str = " / ";

/// The folders of a list, and the category of each.
#[derive(Debug, Default)]
pub struct Folders {
    /// Categories by the path of a folder.
    by_path: HashMap<Vec<String>, String>,
    /// Titles by category, in the order of the list.
    titles: BTreeMap<String, String>,
    order: Vec<String>,
}

impl Folders {
    // Decides: Which categories does a feed of a list get?
    /// The categories of a feed in these folders: one for each folder around it, so that a folder
    /// holds what is in the folders below it, too.
    pub fn categories_of(&mut self, folders: &[String]) -> Vec<String> {
        let depths = 1..=folders.len().min(FEED_CATEGORIES_MAX);
        depths
            .map(|depth| self.category(&folders[..depth]))
            .collect()
    }

    /// The category of a folder; the same at each import of it.
    fn category(&mut self, path: &[String]) -> String {
        if let Some(category) = self.by_path.get(path) {
            return category.clone();
        }
        let title = path.join(BETWEEN);
        let mut category = slug_of(&title);
        if category.is_empty() || self.titles.contains_key(&category) {
            // A name without letters of ours, or one that looks the same without the others.
            let digest = hex::encode(&Sha256::digest(&title)[..4]);
            category = if category.is_empty() {
                format!("folder-{digest}")
            } else {
                format!("{category}-{digest}")
            };
        }
        self.by_path.insert(path.to_vec(), category.clone());
        self.titles.insert(category.clone(), title);
        self.order.push(category.clone());
        category
    }

    /// The categories with the titles of their folders, in the order of the list.
    pub fn titled(&self) -> impl Iterator<Item = (&String, &String)> {
        self.order
            .iter()
            .map(|category| (category, &self.titles[category]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn categories(folders: &mut Folders, path: &[&str]) -> Vec<String> {
        let path: Vec<String> = path.iter().map(|name| (*name).to_owned()).collect();
        folders.categories_of(&path)
    }

    #[test]
    fn a_feed_has_the_category_of_each_folder_around_it() {
        let mut folders = Folders::default();
        assert_eq!(
            categories(&mut folders, &["Tech", "Rust!"]),
            ["tech", "tech-rust"]
        );
        assert_eq!(categories(&mut folders, &["Tech"]), ["tech"]);
        assert!(categories(&mut folders, &[]).is_empty());
        let deep = ["a"; 20];
        assert_eq!(categories(&mut folders, &deep).len(), FEED_CATEGORIES_MAX);
    }

    #[test]
    fn folders_whose_names_look_alike_are_told_apart_and_named_the_same_each_time() {
        let of = |names: &[&str]| {
            let mut folders = Folders::default();
            let names = names.iter();
            names
                .flat_map(|name| categories(&mut folders, &[name]))
                .collect::<Vec<_>>()
        };
        let found = of(&["C++", "C#", "日本", "中国", "C++"]);
        assert_eq!((found[0].as_str(), &found[0]), ("c", &found[4]));
        assert!(found[1].starts_with("c-") && found[2].starts_with("folder-"));
        assert_ne!(found[2], found[3]);
        assert_eq!(of(&["C++", "C#", "日本", "中国", "C++"]), found);
    }
}
