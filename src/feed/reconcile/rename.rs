//! Which of the entries that seem new are items of the last document under another id (POLLING 2.3, step 2): a blog that
//! moves its host or its software renames its whole archive. Only one-to-one matches count.

use super::{Known, ParsedEntry, WindowEntry};
use crate::feed::item::{Item, ItemId};
use everfeed_adapters::{Entry, Key};
use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
    sync::Arc,
};

/// The items that entries with unknown keys are, by the place of the entry. `claimed` are the items that the document
/// shows under a key that is known.
pub(super) fn renamed<'a>(
    known: &Known,
    claimed: &HashSet<ItemId>,
    unknown: impl IntoIterator<Item = (usize, &'a ParsedEntry)>,
) -> HashMap<usize, Arc<Item>> {
    let is_missed = |row: &&WindowEntry| !claimed.contains(&row.id);
    let item =
        |row: &WindowEntry| known.items.get(&row.key).filter(|item| item.id == row.id && !item.is_gone());
    let mut missed: Vec<&Arc<Item>> =
        known.window.entries.iter().filter(is_missed).filter_map(item).collect();
    let mut unknown: Vec<(usize, &ParsedEntry)> = unknown.into_iter().collect();
    let mut found = HashMap::new();
    for stage in [by_id, by_link, by_path, by_title] {
        if missed.is_empty() || unknown.is_empty() {
            break;
        }
        let old = unique(missed.iter().map(|item| (item.id, item.entry().and_then(stage))));
        let new = unique(unknown.iter().map(|(at, reading)| (*at, stage(&reading.entry))));
        let pairs: Vec<(usize, ItemId)> =
            new.into_iter().filter_map(|(head, at)| Some((at, *old.get(&head)?))).collect();
        for (at, id) in pairs {
            let Some(place) = missed.iter().position(|item| item.id == id) else { continue };
            found.insert(at, Arc::clone(missed.swap_remove(place)));
            unknown.retain(|(other, _)| *other != at);
        }
    }
    found
}

/// The marks that exactly one of the candidates bears.
fn unique<M: Eq + Hash + Clone, C: Copy>(candidates: impl Iterator<Item = (C, Option<M>)>) -> HashMap<M, C> {
    let mut of: HashMap<M, Option<C>> = HashMap::new();
    for (candidate, head) in candidates {
        if let Some(head) = head {
            of.entry(head).and_modify(|other| *other = None).or_insert(Some(candidate));
        }
    }
    of.into_iter().filter_map(|(head, candidate)| Some((head, candidate?))).collect()
}

/// The id without scheme, `www.`, default port and last slash.
fn by_id(entry: &Entry) -> Option<String> {
    entry.id.as_deref().map(plain)
}

/// The permalink, if the date of publication is the same too: many entries may point to one page.
fn by_link(entry: &Entry) -> Option<String> {
    Some(format!("{}\n{}", plain(entry.permalink()?), published(entry)?))
}

/// The part of an id behind its host, compared if title or date agree: a blog that moved to another host.
fn by_path(entry: &Entry) -> Option<String> {
    let id = plain(entry.id.as_deref()?);
    let (_, path) = id.split_once('/')?;
    let witness = title(entry).or_else(|| published(entry))?;
    (!path.is_empty()).then(|| format!("{path}\n{witness}"))
}

/// The same words at the same time.
fn by_title(entry: &Entry) -> Option<String> {
    Some(format!("{}\n{}", title(entry)?, published(entry)?))
}

fn title(entry: &Entry) -> Option<String> {
    entry.title.as_ref().map(|title| title.value.clone()).filter(|title| !title.is_empty())
}

fn published(entry: &Entry) -> Option<String> {
    let date = entry.published.as_ref()?;
    Some(date.at_us.map_or_else(|| date.raw.clone(), |at| at.to_string()))
}

fn plain(id: &str) -> String {
    let bare = Key::Id(id.to_owned()).stripped();
    let bare = bare.strip_prefix("www.").unwrap_or(&bare);
    let (host, rest) = bare.split_at(bare.find('/').unwrap_or(bare.len()));
    let host = host.strip_suffix(":80").or_else(|| host.strip_suffix(":443")).unwrap_or(host);
    format!("{host}{}", rest.strip_suffix('/').unwrap_or(rest))
}
