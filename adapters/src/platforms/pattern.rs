//! A regular expression of a profile: compiled once, at its first use where a test has compiled it, linear in what it reads, and bounded in size;
//! not what it is for.

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Deserializer, de::Error as _};
use std::{
    cell::Cell,
    fmt,
    sync::{Arc, OnceLock},
};

/// Limit of the length of a pattern, bytes.
const PATTERN_BYTES_MAX: usize = 1000;

/// Limit of the memory of a compiled pattern, bytes.
const COMPILED_BYTES_MAX: usize = 256 * 1024;

/// A regular expression in the syntax of the `regex` crate, which knows no backtracking: time is
/// linear in the text.
#[derive(Clone)]
pub struct Pattern(Arc<Lazy>);

/// A pattern that is compiled when it is first used.
struct Lazy {
    source: String,
    compiled: OnceLock<Regex>,
}

thread_local! {
    /// True while patterns are read that a test compiles.
    static IS_TESTED: Cell<bool> = const { Cell::new(false) };
}

/// Reads patterns that a test compiles: they are compiled when they are first used.
pub(super) fn tested<T>(read: impl FnOnce() -> T) -> T {
    let before = IS_TESTED.replace(true);
    let result = read();
    IS_TESTED.set(before);
    result
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// With a sentence that says what is wrong with it.
    pub fn new(source: &str) -> Result<Self, String> {
        let regex = Self::compiled(source)?;
        Ok(Self::of(source, OnceLock::from(regex)))
    }

    fn of(source: &str, compiled: OnceLock<Regex>) -> Self {
        let source = source.to_owned();
        Self(Arc::new(Lazy { source, compiled }))
    }

    fn compiled(source: &str) -> Result<Regex, String> {
        if source.is_empty() {
            return Err("an empty pattern matches everything; leave the key out".to_owned());
        }
        if source.len() > PATTERN_BYTES_MAX {
            return Err(format!(
                "a pattern of {} bytes; {PATTERN_BYTES_MAX} must do",
                source.len()
            ));
        }
        let built = RegexBuilder::new(source)
            .size_limit(COMPILED_BYTES_MAX)
            .build();
        let regex = built.map_err(|error| match error {
            regex::Error::Syntax(text) => {
                let why = text
                    .lines()
                    .rev()
                    .find_map(|line| line.strip_prefix("error: "));
                format!(
                    "`{source}` is no pattern: {}",
                    why.unwrap_or("its syntax is wrong")
                )
            }
            other => format!("`{source}` is no pattern: {other}"),
        })?;
        if regex.is_match("") {
            return Err(format!(
                "`{source}` matches the empty text, so it matches everything"
            ));
        }
        Ok(regex)
    }

    fn regex(&self) -> &Regex {
        let Lazy { source, compiled } = &*self.0;
        compiled.get_or_init(|| Self::compiled(source).expect("a test compiles it"))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0.source
    }

    /// True when it occurs in a text.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex().is_match(text)
    }

    /// The match of the group `stable` in a text; `None` when the pattern does not match or has no
    /// such group.
    pub fn stable<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.group("stable", text)
    }

    /// The match of a named group in a text.
    pub(super) fn group<'t>(&self, name: &str, text: &'t str) -> Option<&'t str> {
        // Captures cost more than a match, and most patterns have no such group.
        let has = self
            .regex()
            .capture_names()
            .flatten()
            .any(|group| group == name);
        has.then(|| self.regex().captures(text))??
            .name(name)
            .map(|found| found.as_str())
    }

    /// Its occurrences, from left to right.
    pub(super) fn places<'t>(
        &self,
        text: &'t str,
    ) -> impl Iterator<Item = std::ops::Range<usize>> + use<'_, 't> {
        self.regex().find_iter(text).map(|found| found.range())
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let source = String::deserialize(deserializer)?;
        if IS_TESTED.get() {
            return Ok(Self::of(&source, OnceLock::new()));
        }
        Self::new(&source).map_err(D::Error::custom)
    }
}
