//! References and bases: what a relative URL means where it stands. For output only, never for keys.

use url::Url;

use super::trim;

/// The reference made absolute. What is absolute already stays as written, because rewriting somebody's URL ("adding the
/// slash") makes a different string of it; what cannot be resolved stays as written too.
pub fn resolve(base: Option<&Url>, reference: &str) -> String {
    let reference = trim(reference);
    if is_absolute(reference) {
        return reference.to_owned();
    }
    match base.and_then(|base| base.join(reference).ok()) {
        Some(url) => url.into(),
        None => reference.to_owned(),
    }
}

/// How long a base may be, in bytes: a longer one is none, because every reference resolved against it repeats it.
pub const BASE_BYTES_MAX: usize = 2048;

/// The base after an `xml:base`; one that is no URL changes nothing.
pub fn rebase(base: Option<&Url>, reference: &str) -> Option<Url> {
    let reference = trim(reference);
    let rebased = match base {
        _ if reference.len() > BASE_BYTES_MAX => None,
        Some(base) => base.join(reference).ok(),
        None => Url::parse(reference).ok(),
    };
    rebased.filter(|base| base.as_str().len() <= BASE_BYTES_MAX).or_else(|| base.cloned())
}

/// The base that a document's own URL is.
pub fn base(url: &str) -> Option<Url> {
    rebase(None, url)
}

/// Whether the reference begins with a scheme (RFC 3986 section 3.1).
pub fn is_absolute(reference: &str) -> bool {
    let Some((scheme, _)) = reference.split_once(':') else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(base: &str, reference: &str, expect: &str) {
        assert_eq!(resolve(Url::parse(base).ok().as_ref(), reference), expect);
    }

    #[test]
    fn relative_references_are_resolved_and_absolute_ones_untouched() {
        check("http://e.org/a/b", " ../c?d \n", "http://e.org/c?d");
        check("http://e.org/a/b", "//f.org", "http://f.org/");
        check("http://e.org/a/b", "HTTP://f.org", "HTTP://f.org");
        check("http://e.org/a/b", "urn:x:y z", "urn:x:y z");
        check("http://e.org/a/b", "#x", "http://e.org/a/b#x");
        check("no base", "a/b", "a/b");
    }

    #[test]
    fn a_base_that_is_no_url_changes_nothing() {
        let base = Url::parse("http://e.org/a/").ok();
        assert_eq!(rebase(base.as_ref(), "http://[bad"), base);
        assert_eq!(rebase(None, "b/"), None);
        assert_eq!(rebase(base.as_ref(), "b/").map(String::from).as_deref(), Some("http://e.org/a/b/"));
    }
}
