//! The spellings of a path: all those that some server takes for the same; not which paths there
//! are.

use percent_encoding::percent_decode_str;
use url::Url;

/// Times that a path is unescaped at most: there are servers that do it twice.
const UNESCAPED_MAX: usize = 3;

/// A path in the one form that all its spellings have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PathSpelling(Vec<String>);

/// A relation of one path to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathRelation {
    /// Some server takes it for the other.
    Same,
    /// It leads on from there: a script gets it as a parameter.
    Below,
}

impl PathSpelling {
    /// The form of a path, without its query. Of what servers do, everything is undone: escapes,
    /// case, slashes, steps back, parameters of a step, dots and spaces at its end.
    pub(crate) fn of(path: &str) -> Self {
        let mut path = path.to_owned();
        for _ in 0..UNESCAPED_MAX {
            path = percent_decode_str(&path).decode_utf8_lossy().into_owned();
        }
        let end = path.find(['?', '#', '\0']).unwrap_or(path.len());
        let mut steps = Vec::new();
        for step in path[..end].split(['/', '\\']) {
            let step = step.split(';').next().unwrap_or_default().to_lowercase();
            match step.as_str() {
                "" | "." => {}
                ".." => drop(steps.pop()),
                _ => steps.push(
                    step.trim_end_matches(['.', ' ', '\t', '\r', '\n'])
                        .to_owned(),
                ),
            }
        }
        Self(steps)
    }

    /// The relation of this path to another, if it has any.
    pub(crate) fn relation_to(&self, other: &Self) -> Option<PathRelation> {
        match self.0.strip_prefix(&other.0[..])? {
            [] => Some(PathRelation::Same),
            // Below the root there is everything.
            _ if other.0.is_empty() => None,
            _ => Some(PathRelation::Below),
        }
    }
}

/// The parameters of a query, in one form each.
pub(crate) fn parameters(url: &Url) -> Vec<String> {
    let pairs = url.query().unwrap_or_default().split('&');
    pairs
        .filter(|pair| !pair.is_empty())
        .map(|pair| percent_decode_str(pair).decode_utf8_lossy().to_lowercase())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_path_is_known_and_no_other_path() {
        let check = |path: &str, other: &str, expect: Option<PathRelation>| {
            assert_eq!(
                PathSpelling::of(path).relation_to(&PathSpelling::of(other)),
                expect,
                "{path} {other}"
            );
        };
        for same in [
            "/comments/feed/",
            "/comments/feed",
            "/Comments/FEED/",
            "//comments///feed//",
            "/./comments/x/../feed/.",
            "/%63omments/fee%64/",
            "/%2563omments/feed",
            "/comments%2ffeed",
            "/comments%5Cfeed",
            "/comments;a=b/feed;jsessionid=1",
            "/comments/feed.",
            "/comments/feed%20",
            "/comments/feed%00.html",
            "/comments/feed?x=1",
            "/../comments/feed",
        ] {
            check(same, "/comments/feed/", Some(PathRelation::Same));
        }
        for below in ["/comments/feed/atom/", "/comments/feed/x/y"] {
            check(below, "/comments/feed/", Some(PathRelation::Below));
        }
        for other in [
            "/",
            "/comments",
            "/comments/feeds",
            "/feed/",
            "/x/comments/feed",
        ] {
            check(other, "/comments/feed/", None);
        }
        check("/", "/", Some(PathRelation::Same));
        check("/page", "/", None);
    }
}
