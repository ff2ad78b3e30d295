//! The file of a configuration, and the error that names it with the line, the key, what was found
//! and what would do for each mistake; not what the keys mean.

use super::config_text::{INCLUDE, IncludedFile};
use crate::setting::{RefusedSetting, quoted};
use glob::MatchOptions;
use std::{
    fmt,
    path::{Path, PathBuf},
};
use toml::de::{DeTable, DeValue};

/// A configuration that is refused. Every problem that can be seen at once is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file.
    pub file: PathBuf,
    /// The problems, at least one.
    pub problems: Vec<RefusedSetting>,
}

impl ConfigError {
    /// These problems of a file, in the order of their lines.
    pub(super) fn of(file: &Path, mut problems: Vec<RefusedSetting>) -> Self {
        let place = |problem: &RefusedSetting| {
            let line = problem.line.unwrap_or(usize::MAX);
            (problem.file.clone(), line)
        };
        problems.sort_by_cached_key(place);
        let file = file.to_owned();
        Self { file, problems }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().take(SHOWN_MAX).enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            let file = problem.file.as_deref().unwrap_or(&self.file);
            write!(f, "{}: {problem}", file.display())?;
        }
        match self.problems.len().saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, "\n{}: and {more} more mistakes", self.file.display()),
        }
    }
}

impl std::error::Error for ConfigError {}

/// Mistakes that are shown at most; the others are counted.
const SHOWN_MAX: usize = 1000;

/// The largest configuration, bytes: 100,000 feeds take about ten megabytes.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// The text of a configuration file.
pub(super) fn read(file: &Path) -> Result<String, ConfigError> {
    let fail = |found: String| {
        let problem = RefusedSetting::new(
            "",
            found,
            "give the path of a configuration with --config. Without it everfeed.toml is read, else /etc/everfeed.toml",
        );
        ConfigError {
            file: file.to_owned(),
            problems: vec![problem],
        }
    };
    let size = std::fs::metadata(file)
        .map_err(|error| fail(format!("no readable file ({error})")))?
        .len();
    if size > FILE_BYTES_MAX {
        return Err(fail(format!("{size} bytes, more than {FILE_BYTES_MAX}")));
    }
    std::fs::read_to_string(file).map_err(|error| fail(format!("no readable file ({error})")))
}

/// Files that a configuration includes at most.
const INCLUDED_MAX: usize = 10_000;

/// The words for a value of `include` that cannot be meant.
const INCLUDE_WANTED: &str =
    "give the path of a file, or a pattern such as \"conf.d/*.toml\", or a list of those";

/// The paths and patterns under `include` in a text that is TOML.
fn patterns(text: &str) -> Result<Vec<String>, RefusedSetting> {
    // Most files include nothing, and some are large.
    if !text.contains(INCLUDE) {
        return Ok(Vec::new());
    }
    let (places, _) = DeTable::parse_recoverable(text);
    let text = |value: &DeValue<'_>| value.as_str().map(str::to_owned);
    let patterns = match places.get_ref().get(INCLUDE).map(|value| value.get_ref()) {
        None => Some(Vec::new()),
        Some(DeValue::Array(list)) => list.iter().map(|value| text(value.get_ref())).collect(),
        Some(value) => text(value).map(|pattern| vec![pattern]),
    };
    patterns.ok_or_else(|| RefusedSetting::new(INCLUDE, "a value of another kind", INCLUDE_WANTED))
}

/// The files that the text of a configuration includes, each once: in the order of the patterns, and
/// those of one pattern by name. Relative paths count from the folder of `file`. A pattern may find
/// none; a path without a wildcard has to be there.
pub(super) fn included(file: &Path, text: &str) -> Result<Vec<IncludedFile>, ConfigError> {
    let fail = |found: String, wanted: &str| ConfigError {
        file: file.to_owned(),
        problems: vec![RefusedSetting::new(INCLUDE, found, wanted)],
    };
    let folder = file.with_file_name("");
    let mut included: Vec<IncludedFile> = Vec::new();
    let mut bytes = text.len() as u64;
    let patterns = patterns(text).map_err(|problem| ConfigError::of(file, vec![problem]))?;
    for pattern in patterns {
        // What stands before the pattern is a path, whatever characters are in it.
        let whole = if Path::new(&pattern).is_absolute() {
            pattern.clone()
        } else {
            let folder = folder.to_string_lossy();
            format!("{}{pattern}", glob::Pattern::escape(&folder))
        };
        let options = MatchOptions {
            require_literal_separator: true,
            require_literal_leading_dot: true,
            ..MatchOptions::new()
        };
        let found = glob::glob_with(&whole, options)
            .map_err(|error| fail(quoted(&pattern), &format!("{INCLUDE_WANTED} ({error})")))?;
        let mut paths = Vec::new();
        for path in found {
            let unread = |error: glob::GlobError| {
                fail(quoted(&pattern), &format!("it cannot be read: {error}"))
            };
            paths.push(path.map_err(unread)?);
        }
        if paths.is_empty() && !pattern.contains(['*', '?', '[']) {
            return Err(fail(quoted(&pattern), "there is no such file"));
        }
        for path in paths {
            if path.is_dir() || included.iter().any(|file| file.path == path) || path == file {
                continue;
            }
            if included.len() == INCLUDED_MAX {
                let wanted = format!("include {INCLUDED_MAX} files at most");
                return Err(fail(quoted(&pattern), &wanted));
            }
            let text = read(&path)?;
            bytes += text.len() as u64;
            if bytes > FILE_BYTES_MAX {
                let wanted = format!("give {FILE_BYTES_MAX} bytes in all files together at most");
                return Err(fail(quoted(&pattern), &wanted));
            }
            included.push(IncludedFile { path, text });
        }
    }
    Ok(included)
}
