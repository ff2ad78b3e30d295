//! The file of a configuration, and the error that names it with the line, the key, what was found
//! and what would do for each mistake; not what the keys mean.

use crate::setting::RefusedSetting;
use std::{
    fmt,
    path::{Path, PathBuf},
};

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
        problems.sort_by_key(|problem| problem.line.unwrap_or(usize::MAX));
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
            write!(f, "{}: {problem}", self.file.display())?;
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
