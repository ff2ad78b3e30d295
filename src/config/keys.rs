//! The keys that there are, and the nearest one to a key that is none; not their values.

use super::key_table;
use std::collections::BTreeSet;

/// Lists of tables directly below the file.
pub(super) const LISTS: &[&str] = &[
    "alert",
    "credentials",
    "feed",
    "group",
    "opml",
    "site",
    "webhook",
];

/// Keys that once had another name, without indices, and the names that they have now.
const RENAMED: &[(&str, &str)] = &[
    ("feed.deletions.probe", "permalink_checks"),
    ("upstream.probe_gap_secs", "permalink_check_gap_secs"),
];

/// The use of a dotted key without indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyKind {
    /// It has a value.
    Value,
    /// It is a table that holds other keys.
    Table,
    /// There is no such key.
    Unknown,
}

/// The use of a key.
pub(super) fn kind(key: &str) -> KeyKind {
    if key_table::keys().any(|known| known == key) {
        KeyKind::Value
    } else if !below(key).is_empty() {
        KeyKind::Table
    } else {
        KeyKind::Unknown
    }
}

/// The required keys of a table, without the table.
pub(super) fn required(table: &str) -> impl Iterator<Item = &'static str> {
    key_table::required()
        .filter_map(move |key| key.strip_prefix(table)?.strip_prefix('.'))
        .filter(|key| !key.contains('.'))
}

/// True for a key that its table must have.
pub(super) fn is_required(key: &str) -> bool {
    key_table::required().any(|known| known == key)
}

/// The name of a key that once had another one.
pub(super) fn renamed(key: &str) -> Option<&'static str> {
    let (_, new) = RENAMED.iter().find(|(old, _)| *old == key)?;
    Some(new)
}

/// Advice on a key that there is not: the key that was probably meant, or those that its table has.
pub(super) fn advice(key: &str) -> String {
    let (table, name) = key.rsplit_once('.').unwrap_or(("", key));
    let beside = below(table);
    if let Some(near) = nearest(name, beside.iter().copied()) {
        return format!("did you mean `{near}`?");
    }
    // A key of another table, often because a header stands before it.
    let mut elsewhere: Vec<&str> = key_table::keys()
        .filter(|known| known.rsplit('.').next() == Some(name))
        .collect();
    if elsewhere.iter().any(|known| is_below(table, known)) {
        elsewhere.retain(|known| is_below(table, known));
    }
    if !elsewhere.is_empty() {
        let quoted = |one: &&'static str| format!("`{}`", relative(table, one));
        let places: Vec<String> = elsewhere.iter().map(quoted).collect();
        return format!("did you mean {}?", places.join(" or "));
    }
    let near = key_table::keys().filter_map(|known| {
        let last = known.rsplit('.').next()?;
        is_near(name, last).then(|| relative(table, known))
    });
    if let Some(near) = near.min_by_key(|known| strsim::damerau_levenshtein(name, known)) {
        return format!("did you mean `{near}`?");
    }
    let beside = Vec::from_iter(beside).join(", ");
    if table.is_empty() {
        return format!("leave it out; the file may have {beside}");
    }
    format!("leave it out; `{table}` may have {beside}")
}

/// The names directly below a table, `""` for the whole file.
fn below(table: &str) -> BTreeSet<&'static str> {
    let inner = key_table::keys().filter_map(|key| {
        if table.is_empty() {
            Some(key)
        } else {
            key.strip_prefix(table)?.strip_prefix('.')
        }
    });
    inner
        .map(|key| key.split('.').next().unwrap_or(key))
        .collect()
}

/// A key as it is written below a table: `poll.min_secs` of `feed.poll.min_secs` in `feed`, else
/// the whole key.
fn relative(table: &str, key: &'static str) -> String {
    let inner = key
        .strip_prefix(table)
        .and_then(|rest| rest.strip_prefix('.'));
    inner.unwrap_or(key).to_owned()
}

fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    known
        .filter(|known| is_near(name, known))
        .min_by_key(|known| strsim::damerau_levenshtein(name, known))
}

/// True for a key in a table, or in one that stands in it.
fn is_below(table: &str, key: &str) -> bool {
    let rest = key.strip_prefix(table);
    !table.is_empty() && rest.is_some_and(|rest| rest.starts_with('.'))
}

/// True for names that differ by case, hyphens, a slip in every third letter, or a part left out at
/// either end.
fn is_near(name: &str, known: &str) -> bool {
    /// A shorter part of a name says too little.
    const PART_CHARS_MIN: usize = 3;
    let bare = |name: &str| name.to_lowercase().replace(['-', '_', ' '], "");
    let (name, known) = (bare(name), bare(known));
    let slips_max = name.chars().count().max(known.chars().count()) / 3;
    let is_part = |part: &str, whole: &str| {
        part.len() >= PART_CHARS_MIN && (whole.starts_with(part) || whole.ends_with(part))
    };
    strsim::damerau_levenshtein(&name, &known) <= slips_max
        || is_part(&name, &known)
        || is_part(&known, &name)
}

/// True for a key whose value is a secret.
pub(super) fn holds_secret(key: &str) -> bool {
    let name = key.rsplit('.').next().unwrap_or(key);
    ["_token", "secret"].iter().any(|end| name.ends_with(end))
        || ["password", "bearer", "value"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_none_leads_to_the_one_that_was_meant() {
        let check = |key: &str, expect: &str| assert_eq!(advice(key), expect, "{key}");
        check("sever", "did you mean `server`?");
        check("feeds", "did you mean `feed`?");
        check("server.lissten", "did you mean `listen`?");
        check("server.public-url", "did you mean `public_url`?");
        check("server.publicUrl", "did you mean `public_url`?");
        check("feed.poll.min", "did you mean `min_secs`?");
        check("feed.min_secs", "did you mean `poll.min_secs`?");
        check("listen", "did you mean `server.listen`?");
        check("feed.admin_listen", "did you mean `server.admin_listen`?");
        check(
            "url",
            "did you mean `store.url` or `feed.url` or `opml.url` or `webhook.url` or `alert.url`?",
        );
        check(
            "store.colour",
            "leave it out; `store` may have cache_bytes, key_file, path, url, wake",
        );
        assert!(
            advice("zzz").starts_with(
                "leave it out; the file may have alert, credentials, feed, group, hub"
            ),
            "{}",
            advice("zzz")
        );
    }

    #[test]
    fn the_uses_of_keys_follow_from_the_list() {
        assert_eq!(kind("server.listen"), KeyKind::Value);
        assert_eq!(
            (kind("server"), kind("feed.poll")),
            (KeyKind::Table, KeyKind::Table)
        );
        assert_eq!(
            (kind("server.listen.x"), kind("serve")),
            (KeyKind::Unknown, KeyKind::Unknown)
        );
        assert_eq!(required("feed").collect::<Vec<_>>(), ["name", "url"]);
        assert_eq!(required("feed.record").collect::<Vec<_>>(), ["folder"]);
    }
}
