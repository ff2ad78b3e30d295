//! The trace of a world: one line for each thing that happened, with its time.

use sha2::{Digest as _, Sha256};

/// Lines kept at the end of a trace; the digest is of all.
const KEPT: usize = 4000;

#[derive(Default)]
pub(crate) struct Trace {
    digest: Sha256,
    lines: std::collections::VecDeque<String>,
    count: usize,
    bytes: usize,
}

impl Trace {
    /// Adds a line. One that says little is not shown.
    pub(crate) fn add(&mut self, now_us: u64, line: &str, is_shown: bool) {
        let secs = now_us / 1_000_000;
        let line = format!(
            "{:02}:{:02}:{:02}.{:06} {line}",
            secs / 3600,
            secs / 60 % 60,
            secs % 60,
            now_us % 1_000_000
        );
        self.digest.update(&line);
        self.digest.update("\n");
        self.bytes += line.len() + 1;
        self.count += 1;
        if is_shown {
            self.lines.push_back(line);
        }
        if self.lines.len() > KEPT {
            self.lines.pop_front();
        }
    }

    /// Digest of all lines.
    pub(crate) fn digest(&self) -> String {
        hex::encode(&self.digest.clone().finalize()[..16])
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The last lines.
    pub(crate) fn tail(&self, max: usize) -> String {
        let skipped = self.lines.len().saturating_sub(max);
        let lines: Vec<&str> = self
            .lines
            .iter()
            .skip(skipped)
            .map(String::as_str)
            .collect();
        lines.join("\n")
    }
}
