//! From a TOML text to a profile that can be meant: what the types allow and still makes no sense
//! is refused here, with the key.

use super::{
    detect::GENERIC,
    history::Recipe,
    pattern::tested,
    profile::{Complete, Conditional, Profile, Validators},
    sign::Weight,
};
use std::{collections::BTreeSet, fmt::Display};

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
    let profile = parse(file, text)?;
    check(&profile).map_err(|Mistake { key, problem }| BadProfile {
        file: file.to_owned(),
        key,
        problem,
    })?;
    Ok(profile)
}

/// Reads one profile that a test has checked.
pub(super) fn read_tested(file: &str, text: &str) -> Result<Profile, BadProfile> {
    tested(|| parse(file, text))
}

fn parse(file: &str, text: &str) -> Result<Profile, BadProfile> {
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
        let problem = format!("{} bytes; {PROFILE_BYTES_MAX} must do", text.len());
        return Err(bad("the file".into(), problem));
    }
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let start = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.as_bytes()[..start].split(|&b| b == b'\n').count();
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
    Ok(profile)
}

fn one_line(message: &str) -> String {
    message.trim().replace('\n', ", ")
}

/// As a configuration may name it; `auto` and `none` mean something else there.
fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !name.is_empty() && name.bytes().all(plain) && !matches!(name, "auto" | "none")
}

/// A key of a profile, and what is wrong with it.
struct Mistake {
    key: String,
    problem: String,
}

/// Refuses a key unless its value fits.
fn need(fits: bool, key: impl Display, problem: impl Display) -> Result<(), Mistake> {
    if fits {
        return Ok(());
    }
    Err(Mistake {
        key: key.to_string(),
        problem: problem.to_string(),
    })
}

/// Finds the first thing in a profile that cannot be meant.
fn check(profile: &Profile) -> Result<(), Mistake> {
    detection(profile)?;
    paths(profile)?;
    for (at, recipe) in profile.history.iter().enumerate() {
        history(at, recipe)?;
    }
    ids(profile)?;
    words(profile)?;
    rules(profile)
}

fn detection(profile: &Profile) -> Result<(), Mistake> {
    if profile.name == GENERIC {
        let problem = "this is the profile of what shows no platform; leave it out";
        return need(profile.detect.is_empty(), "detect", problem);
    }
    let signs = profile.detect.iter();
    let kinds: BTreeSet<u8> = signs.clone().map(|sign| sign.kind.rank()).collect();
    let is_enough = kinds.len() >= 2 || signs.clone().any(|sign| sign.weight == Weight::Strong);
    let problem = "one weak sign recognises nothing; give a strong one, or weak ones of two kinds";
    need(is_enough, "detect", problem)
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

fn paths(profile: &Profile) -> Result<(), Mistake> {
    let lists = [
        ("feeds.posts", &profile.feeds.posts),
        ("comments.site", &profile.comments.site),
        ("comments.post", &profile.comments.post),
    ];
    for (key, paths) in lists {
        for (at, path) in paths.iter().enumerate() {
            let key = format!("{key}[{at}]");
            let from_root = path.starts_with(['/', '?']) || path.starts_with("{permalink}");
            let problem = format!("`{path}` begins with neither / nor ? nor {{permalink}}");
            need(from_root, &key, problem)?;
            placeholders(&key, path, PLACEHOLDERS)?;
        }
    }
    Ok(())
}

/// Refuses a `{placeholder}` that nobody fills in.
fn placeholders(key: &str, template: &str, known: &[&str]) -> Result<(), Mistake> {
    for rest in template.split('{').skip(1) {
        let name = rest.split_once('}').map(|(name, _)| name);
        let is_known = name.is_some_and(|name| known.contains(&name));
        let (name, known) = (name.unwrap_or(rest), known.join(", "));
        need(is_known, key, format!("`{{{name}}}` is none of {known}"))?;
    }
    Ok(())
}

fn history(at: usize, recipe: &Recipe) -> Result<(), Mistake> {
    let key = |key: &str| format!("history[{at}].{key}");
    let template = |name: &str, template: &str, needed: &[&str], known: &[&str]| {
        let has = |name: &&str| template.contains(&format!("{{{name}}}"));
        let begins = template.starts_with('/');
        need(
            begins,
            key(name),
            format!("`{template}` does not begin with /"),
        )?;
        let lacks = format!("`{template}` holds none of {{{}}}", needed.join("}, {"));
        need(needed.iter().any(has), key(name), lacks)?;
        placeholders(&key(name), template, known)
    };
    let parameter = |name: &str, value: &str| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
        let fits = !value.is_empty() && value.bytes().all(plain);
        need(
            fits,
            key(name),
            format!("`{value}` is no name of a parameter"),
        )
    };
    let query = |name: &str, with: &Option<String>| {
        let Some(with) = with else { return Ok(()) };
        let fits = !with.is_empty() && !with.contains(['?', '#', ' ']) && with.contains('=');
        need(
            fits,
            key(name),
            format!("`{with}` is no query such as order=ASC"),
        )
    };
    let count = |name: &str, count: Option<u32>| {
        need(
            count != Some(0),
            key(name),
            "nothing would be given; leave it out",
        )
    };
    let ends = |name: &str, is_said: bool| {
        let problem = "say what follows the last page, such as [\"not-found\"]";
        need(is_said, key(name), problem)
    };
    match recipe {
        Recipe::Page {
            param, end, with, ..
        } => {
            parameter("page.param", param)?;
            query("page.with", with)?;
            ends("page.end", !end.is_empty())
        }
        Recipe::Offset {
            param,
            start,
            count: number,
            count_max,
            end,
        } => {
            parameter("offset.param", param)?;
            if let Some(number) = number {
                parameter("offset.count", number)?;
            }
            count("offset.count_max", *count_max)?;
            ends("offset.end", !end.is_empty())?;
            need(
                *start <= 1,
                key("offset.start"),
                "entries count from 0 or 1",
            )
        }
        Recipe::All { param, .. } => parameter("all.param", param),
        Recipe::Limit { param, max, with } => {
            parameter("limit.param", param)?;
            count("limit.max", *max)?;
            query("limit.with", with)
        }
        Recipe::Link { rel } => {
            let is_named = !rel.trim().is_empty();
            need(is_named, key("link.rel"), "name the relation, such as next")
        }
        Recipe::Path {
            template: path,
            end,
            ..
        } => {
            template("path.template", path, &["page"], &["page"])?;
            ends("path.end", !end.is_empty())
        }
        Recipe::Calendar { template: path, .. } => {
            let known = ["year", "month", "day"];
            template("calendar.template", path, &known[..1], &known)
        }
        Recipe::Interface {
            template: path,
            document,
            count_max,
        } => {
            let known = ["offset", "page", "before", "count"];
            template("interface.template", path, &known[..3], &known)?;
            count("interface.count_max", *count_max)?;
            need(
                !document.is_empty(),
                key("interface.document"),
                "say what it answers",
            )
        }
    }
}

fn ids(profile: &Profile) -> Result<(), Mistake> {
    let ids = &profile.ids;
    let Some(pattern) = &ids.pattern else {
        let problem = "they are a check of ids.pattern, which is missing";
        return need(ids.examples.is_empty(), "ids.examples", problem);
    };
    for (at, example) in ids.examples.iter().enumerate() {
        let problem = format!("`{example}` does not match ids.pattern");
        need(
            pattern.is_match(example),
            format!("ids.examples[{at}]"),
            problem,
        )?;
    }
    Ok(())
}

fn words(profile: &Profile) -> Result<(), Mistake> {
    let has_title = !profile.title.trim().is_empty();
    need(has_title, "title", "give the platform's name")?;
    let has_source = profile
        .sources
        .iter()
        .any(|source| !source.trim().is_empty());
    let problem = "say where these values come from; your own observation will do";
    need(has_source, "sources", problem)?;
    let pings = &profile.pings;
    let cloud = pings
        .rss_cloud
        .iter()
        .map(|place| ("pings.rss_cloud", place));
    let hub = pings.hub.iter().map(|place| ("pings.hub", place));
    let others = pings
        .xml_rpc_default
        .iter()
        .map(|url| ("pings.xml_rpc_default", url));
    for (key, place) in cloud.chain(hub).chain(others) {
        let is_place = place.starts_with('/') || url::Url::parse(place).is_ok();
        need(
            is_place,
            key,
            format!("`{place}` is neither a path nor a URL"),
        )?;
    }
    Ok(())
}

/// Refuses values that exclude each other, and those that would lower what a deletion needs.
fn rules(profile: &Profile) -> Result<(), Mistake> {
    /// A day: nobody wants to be polled less often because of the software that it runs.
    const GAP_SECS_MAX: u32 = 86_400;
    let http = &profile.http;
    let none = http.validators == Validators::None;
    let one = none || matches!(http.validators, Validators::Etag | Validators::LastModified);
    need(
        profile
            .deletions
            .confirmations_min
            .is_none_or(|min| min >= 2),
        "deletions.confirmations_min",
        "a profile never lowers what a deletion needs; give at least 2, or leave it out",
    )?;
    need(
        profile.window != Some(0),
        "window",
        "no entry at all; leave it out when it is not known",
    )?;
    need(
        !profile.event_log || profile.complete == Complete::Never,
        "complete",
        "what leaves an event log is not deleted, so it is never complete",
    )?;
    need(
        !(http.send_both_validators && one),
        "http.send_both_validators",
        "http.validators says that there are not two of them",
    )?;
    need(
        !(http.hides_deletes && none),
        "http.hides_deletes",
        "without validators nothing is hidden by a 304",
    )?;
    need(
        !(none && http.conditional == Conditional::Delta),
        "http.conditional",
        "without validators no request is conditional",
    )?;
    need(
        !(none && http.future_last_modified),
        "http.future_last_modified",
        "http.validators says that there is none",
    )?;
    need(
        http.min_gap_secs
            .is_none_or(|gap| (1..=GAP_SECS_MAX).contains(&gap)),
        "http.min_gap_secs",
        "give 1 to 86400 seconds, or leave it out",
    )
}
