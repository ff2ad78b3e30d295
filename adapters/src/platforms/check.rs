//! From a TOML text to a profile that can be meant: what the types allow and still makes no sense
//! is refused here, with the key.

use super::{
    detect::GENERIC,
    history::Recipe,
    profile::{Complete, Conditional, Profile, Validators},
    sign::Weight,
};
use std::fmt::Display;

/// Limit of the length of one profile, bytes.
pub const PROFILE_BYTES_MAX: usize = 64 * 1024;

/// A profile that was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {key}: {problem}")]
pub struct BadProfile {
    /// The file's name.
    pub file: String,
    /// The key, dotted, with the place in lists: `detect[2].generator`; `line 3` when the TOML
    /// cannot be read.
    pub key: String,
    /// The mistake, and what would do.
    pub problem: String,
}

/// Reads one profile.
pub(super) fn read(file: &str, text: &str) -> Result<Profile, BadProfile> {
    let bad = |key: String, problem: String| BadProfile {
        file: file.to_owned(),
        key,
        problem,
    };
    let Some(name) = file.strip_suffix(".toml").filter(|name| is_name(name)) else {
        let problem =
            "name it after the platform, in lower-case letters and digits: wordpress.toml";
        return Err(bad("the file's name".into(), problem.into()));
    };
    if text.len() > PROFILE_BYTES_MAX {
        return Err(bad(
            "the file".into(),
            format!("{} bytes; {PROFILE_BYTES_MAX} must do", text.len()),
        ));
    }
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let start = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.as_bytes()[..start]
            .iter()
            .filter(|&&b| b == b'\n')
            .count()
            + 1;
        bad(format!("line {line}"), one_line(error.message()))
    })?;
    let mut profile: Profile = serde_path_to_error::deserialize(table).map_err(|error| {
        let key = error.path().to_string();
        let key = if key == "." {
            "the file".to_owned()
        } else {
            key
        };
        bad(key, one_line(error.inner().message()))
    })?;
    name.clone_into(&mut profile.name);
    match contradiction(&profile) {
        Some((key, problem)) => Err(bad(key, problem)),
        None => Ok(profile),
    }
}

fn one_line(message: &str) -> String {
    message.trim().replace('\n', ", ")
}

/// As a configuration may name it; `auto` and `none` mean something else there.
fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !name.is_empty() && name.bytes().all(plain) && !matches!(name, "auto" | "none")
}

/// The first thing in a profile that cannot be meant.
fn contradiction(profile: &Profile) -> Option<(String, String)> {
    detection(profile)
        .or_else(|| paths(profile))
        .or_else(|| {
            profile
                .history
                .iter()
                .enumerate()
                .find_map(|(at, recipe)| history(at, recipe))
        })
        .or_else(|| ids(profile))
        .or_else(|| words(profile))
        .or_else(|| rules(profile))
}

fn said(key: impl Display, problem: impl Display) -> Option<(String, String)> {
    Some((key.to_string(), problem.to_string()))
}

fn detection(profile: &Profile) -> Option<(String, String)> {
    if profile.name == GENERIC {
        return (!profile.detect.is_empty()).then(|| {
            (
                "detect".into(),
                "this is the profile of what shows no platform; leave it out".into(),
            )
        });
    }
    let strong = profile
        .detect
        .iter()
        .any(|sign| sign.weight == Weight::Strong);
    let mut kinds: Vec<u8> = profile.detect.iter().map(|sign| sign.kind.rank()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    (!strong && kinds.len() < 2).then(|| {
        let problem =
            "one weak sign recognises nothing; give a strong one, or weak ones of two kinds";
        ("detect".into(), problem.into())
    })
}

/// Placeholders that may stand in braces in a path.
const PLACEHOLDERS: &[&str] = &[
    "permalink",
    "post",
    "user",
    "blog",
    "forum",
    "topic",
    "category",
    "term",
    "tag",
    "title",
    "page",
];

fn paths(profile: &Profile) -> Option<(String, String)> {
    let lists = [
        ("feeds.posts", &profile.feeds.posts),
        ("comments.site", &profile.comments.site),
        ("comments.post", &profile.comments.post),
    ];
    lists.into_iter().find_map(|(key, paths)| {
        paths.iter().enumerate().find_map(|(at, path)| {
            let key = format!("{key}[{at}]");
            let from_root =
                path.starts_with('/') || path.starts_with('?') || path.starts_with("{permalink}");
            if !from_root {
                return said(
                    key,
                    format!("`{path}` begins with neither / nor ? nor {{permalink}}"),
                );
            }
            unknown_placeholder(path, PLACEHOLDERS).and_then(|problem| said(key, problem))
        })
    })
}

/// The first `{placeholder}` that nobody fills in.
fn unknown_placeholder(template: &str, known: &[&str]) -> Option<String> {
    let unknown = template
        .split('{')
        .skip(1)
        .find_map(|rest| match rest.split_once('}') {
            Some((name, _)) if known.contains(&name) => None,
            Some((name, _)) => Some(name),
            None => Some(rest),
        })?;
    Some(format!("`{{{unknown}}}` is none of {}", known.join(", ")))
}

fn history(at: usize, recipe: &Recipe) -> Option<(String, String)> {
    let key = |key: &str| format!("history[{at}].{key}");
    let template = |name: &str, template: &str, needed: &[&str], known: &[&str]| {
        let has = |name: &&str| template.contains(&format!("{{{name}}}"));
        if !template.starts_with('/') {
            return said(key(name), format!("`{template}` does not begin with /"));
        }
        if !needed.iter().any(has) {
            return said(
                key(name),
                format!("`{template}` holds none of {{{}}}", needed.join("}, {")),
            );
        }
        unknown_placeholder(template, known).and_then(|problem| said(key(name), problem))
    };
    let parameter = |name: &str, value: &str| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
        let fits = !value.is_empty() && value.bytes().all(plain);
        if fits {
            None
        } else {
            said(key(name), format!("`{value}` is no name of a parameter"))
        }
    };
    let query = |name: &str, with: &Option<String>| {
        let with = with.as_deref()?;
        let fits = !with.is_empty() && !with.contains(['?', '#', ' ']) && with.contains('=');
        if fits {
            None
        } else {
            said(key(name), format!("`{with}` is no query such as order=ASC"))
        }
    };
    let zero = |name: &str, count: Option<u32>| {
        if count == Some(0) {
            said(key(name), "nothing would be given; leave it out")
        } else {
            None
        }
    };
    let ends = |name: &str, is_empty: bool| {
        if is_empty {
            said(
                key(name),
                "say what follows the last page, such as [\"not-found\"]",
            )
        } else {
            None
        }
    };
    match recipe {
        Recipe::Page {
            param, end, with, ..
        } => parameter("page.param", param)
            .or_else(|| query("page.with", with))
            .or_else(|| ends("page.end", end.is_empty())),
        Recipe::Offset {
            param,
            start,
            count,
            count_max,
            end,
        } => parameter("offset.param", param)
            .or_else(|| {
                count
                    .as_deref()
                    .and_then(|count| parameter("offset.count", count))
            })
            .or_else(|| zero("offset.count_max", *count_max))
            .or_else(|| ends("offset.end", end.is_empty()))
            .or_else(|| {
                if *start > 1 {
                    said(key("offset.start"), "entries count from 0 or 1")
                } else {
                    None
                }
            }),
        Recipe::All { param, .. } => parameter("all.param", param),
        Recipe::Limit { param, max, with } => parameter("limit.param", param)
            .or_else(|| zero("limit.max", *max))
            .or_else(|| query("limit.with", with)),
        Recipe::Link { rel } => {
            if rel.trim().is_empty() {
                said(key("link.rel"), "name the relation, such as next")
            } else {
                None
            }
        }
        Recipe::Path {
            template: path,
            end,
            ..
        } => template("path.template", path, &["page"], &["page"])
            .or_else(|| ends("path.end", end.is_empty())),
        Recipe::Calendar { template: path, .. } => template(
            "calendar.template",
            path,
            &["year"],
            &["year", "month", "day"],
        ),
        Recipe::Interface {
            template: path,
            document,
            count_max,
        } => {
            let known = ["offset", "page", "before", "count"];
            template("interface.template", path, &known[..3], &known)
                .or_else(|| zero("interface.count_max", *count_max))
                .or_else(|| {
                    if document.is_empty() {
                        said(key("interface.document"), "say what it answers")
                    } else {
                        None
                    }
                })
        }
    }
}

fn ids(profile: &Profile) -> Option<(String, String)> {
    let ids = &profile.ids;
    let Some(pattern) = &ids.pattern else {
        return (!ids.examples.is_empty()).then(|| {
            (
                "ids.examples".into(),
                "they are a check of ids.pattern, which is missing".into(),
            )
        });
    };
    let wrong = ids
        .examples
        .iter()
        .position(|example| !pattern.is_match(example));
    wrong.and_then(|at| {
        said(
            format!("ids.examples[{at}]"),
            format!("`{}` does not match ids.pattern", ids.examples[at]),
        )
    })
}

fn words(profile: &Profile) -> Option<(String, String)> {
    if profile.title.trim().is_empty() {
        return said("title", "give the platform's name");
    }
    if profile
        .sources
        .iter()
        .all(|source| source.trim().is_empty())
    {
        return said(
            "sources",
            "say where these values come from; your own observation will do",
        );
    }
    let pings = &profile.pings;
    let places = [
        ("pings.rss_cloud", &pings.rss_cloud),
        ("pings.hub", &pings.hub),
    ];
    let one = places
        .into_iter()
        .filter_map(|(key, place)| Some((key, place.as_deref()?)));
    let many = pings
        .xml_rpc_default
        .iter()
        .map(|url| ("pings.xml_rpc_default", url.as_str()));
    let wrong = one
        .chain(many)
        .find(|(_, place)| !place.starts_with('/') && url::Url::parse(place).is_err());
    wrong.and_then(|(key, place)| said(key, format!("`{place}` is neither a path nor a URL")))
}

/// Values that exclude each other, and those that would lower what a deletion needs.
fn rules(profile: &Profile) -> Option<(String, String)> {
    /// A day: nobody wants to be polled less often because of the software that it runs.
    const GAP_SECS_MAX: u32 = 86_400;
    let http = &profile.http;
    let one_validator = matches!(
        http.validators,
        Validators::Etag | Validators::LastModified | Validators::None
    );
    let none = http.validators == Validators::None;
    let checks = [
        (
            profile
                .deletions
                .confirmations_min
                .is_some_and(|min| min < 2),
            "deletions.confirmations_min",
            "a profile never lowers what a deletion needs; give at least 2, or leave it out",
        ),
        (
            profile.window == Some(0),
            "window",
            "no entry at all; leave it out when it is not known",
        ),
        (
            profile.event_log && profile.complete != Complete::Never,
            "complete",
            "what leaves an event log is not deleted, so it is never complete",
        ),
        (
            http.send_both_validators && one_validator,
            "http.send_both_validators",
            "http.validators says that there are not two of them",
        ),
        (
            http.hides_deletes && none,
            "http.hides_deletes",
            "without validators nothing is hidden by a 304",
        ),
        (
            none && http.conditional == Conditional::Delta,
            "http.conditional",
            "without validators no request is conditional",
        ),
        (
            none && http.future_last_modified,
            "http.future_last_modified",
            "http.validators says that there is none",
        ),
        (
            http.min_gap_secs
                .is_some_and(|gap| gap == 0 || gap > GAP_SECS_MAX),
            "http.min_gap_secs",
            "give 1 to 86400 seconds, or leave it out",
        ),
    ];
    checks
        .into_iter()
        .find_map(|(is_wrong, key, problem)| if is_wrong { said(key, problem) } else { None })
}
