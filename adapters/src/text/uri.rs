//! References and bases: what a relative URL means where it stands. For output only, never for
//! keys.

use url::Url;

use super::trim;

/// The reference made absolute. What is absolute already stays as written, because rewriting
/// somebody's URL ("adding the slash") makes a different string of it; what cannot be resolved
/// stays as written too.
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

/// Limit of a base, bytes: it comes to stand before every relative reference.
pub const BASE_BYTES_MAX: usize = 2048;

/// The base inside an element with this `xml:base`. `None`: it is none, and the base around it
/// stays. A base has to be a URL that references can be resolved against, which `mailto:` and
/// `data:` are not.
pub fn rebase(base: Option<&Url>, reference: &str) -> Option<Url> {
    let reference = trim(reference);
    if reference.len() > BASE_BYTES_MAX {
        return None;
    }
    let found = match base {
        Some(base) => base.join(reference),
        None => Url::parse(reference),
    };
    found
        .ok()
        .filter(|url| !url.cannot_be_a_base() && url.as_str().len() <= BASE_BYTES_MAX)
}

/// True when the reference begins with a scheme (RFC 3986 section 3.1).
pub fn is_absolute(reference: &str) -> bool {
    let Some((scheme, _)) = reference.split_once(':') else {
        return false;
    };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// Schemes that lead to something to read, to fetch or to write to. Those that run what follows
/// them (`javascript:`, `vbscript:`), that show a made-up document (`data:`, `blob:`, `about:`) or
/// look into the reader's own computer (`file:`, `view-source:`) are not among them, and no unknown
/// one is.
pub const SCHEMES: [&str; 64] = [
    "acct",
    "aim",
    "apt",
    "at",
    "bitcoin",
    "callto",
    "cid",
    "did",
    "doi",
    "ed2k",
    "ethereum",
    "facetime",
    "feed",
    "ftp",
    "ftps",
    "gemini",
    "geo",
    "git",
    "gopher",
    "gtalk",
    "hdl",
    "http",
    "https",
    "hyper",
    "im",
    "imap",
    "info",
    "ipfs",
    "ipns",
    "irc",
    "ircs",
    "itms",
    "itpc",
    "lightning",
    "magnet",
    "mailto",
    "matrix",
    "mid",
    "mms",
    "monero",
    "news",
    "nntp",
    "nostr",
    "openpgp4fpr",
    "pcast",
    "podcast",
    "rsync",
    "rtmp",
    "rtsp",
    "sftp",
    "sip",
    "sips",
    "skype",
    "sms",
    "snews",
    "spotify",
    "ssh",
    "svn",
    "tag",
    "tel",
    "tg",
    "urn",
    "webcal",
    "xmpp",
];

/// Schemes that may stand before another URL, which is the one that is followed.
const WRAPPING_SCHEMES: [&str; 4] = ["feed", "itpc", "pcast", "podcast"];

/// Images that hold no script, as `data:` URLs begin with them.
const IMAGES: [&str; 7] = [
    "data:image/png",
    "data:image/jpeg",
    "data:image/jpg",
    "data:image/gif",
    "data:image/webp",
    "data:image/avif",
    "data:image/bmp",
];

/// True for the target of a link that may be followed: a relative reference, or one of the
/// [`SCHEMES`]. Browsers pass over white space and control characters in a scheme, so they are
/// passed over here.
///
/// ```
/// use everfeed_adapters::text::uri::may_be_followed;
///
/// assert!(may_be_followed("https://example.org/") && may_be_followed("../a:b"));
/// assert!(!may_be_followed(" java\nscript:alert(1)"));
/// assert!(may_be_followed("feed:https://example.org/"));
/// assert!(!may_be_followed("feed:javascript:alert(1)"));
/// ```
pub fn may_be_followed(url: &str) -> bool {
    let mut url = url;
    loop {
        let Some(found) = scheme(url) else {
            return true;
        };
        if !SCHEMES.contains(&found.as_str()) {
            return false;
        }
        match url.split_once(':') {
            Some((_, inner)) if WRAPPING_SCHEMES.contains(&found.as_str()) => url = inner,
            _ => return true,
        }
    }
}

/// True for the data of an image that holds no script.
pub fn is_image_data(url: &str) -> bool {
    IMAGES.iter().any(|image| {
        let url = url.trim_start();
        let is_kind = url
            .get(..image.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(image));
        is_kind && url[image.len()..].starts_with([';', ','])
    })
}

/// True when a browser would find no scheme in the reference.
pub fn is_relative(reference: &str) -> bool {
    scheme(reference).is_none()
}

/// The scheme in lower case, as a browser would find it. `None`: the reference is relative.
fn scheme(url: &str) -> Option<String> {
    let is_passed_over = |c: &char| c.is_whitespace() || c.is_control();
    let mut found = String::new();
    for c in url
        .chars()
        .filter(|c| !is_passed_over(c) && super::is_legal(*c))
    {
        match c {
            ':' => return Some(found).filter(|found| !found.is_empty()),
            'a'..='z' | 'A'..='Z' => found.push(c.to_ascii_lowercase()),
            '0'..='9' | '+' | '-' | '.' if !found.is_empty() => found.push(c),
            _ => return None,
        }
    }
    None
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
    fn only_links_of_known_schemes_may_be_followed() {
        for url in [
            "",
            "a/b",
            "//e.org",
            "?a:b",
            "#a:b",
            "./a:b",
            "HTTPS://e.org",
            "mailto:a@b",
            "urn:x:y",
            "magnet:?xt=x",
            ":x",
        ] {
            assert!(may_be_followed(url), "{url}");
        }
        for url in [
            "javascript:alert(1)",
            "JavaScript:alert(1)",
            "\u{1} java\tscr\nipt\u{0}:alert(1)",
            "java\u{FFFE}script:x",
            "\u{A0}javascript:x",
            "vbscript:x",
            "data:text/html,<script>",
            "data:image/svg+xml,<svg>",
            "blob:x",
            "file:///etc/passwd",
            "view-source:http://e.org",
            "unknown:x",
        ] {
            assert!(!may_be_followed(url), "{url}");
        }
        assert!(is_image_data(" data:image/PNG;base64,AA=="));
        for url in [
            "data:image/svg+xml,x",
            "data:image/pngx,x",
            "data:text/html,x",
            "data:image/png",
        ] {
            assert!(!is_image_data(url), "{url}");
        }
        assert!(SCHEMES.is_sorted());
    }

    #[test]
    fn what_is_no_base_is_told_apart() {
        let base = Url::parse("http://e.org/a/").ok();
        let rebased = |reference: &str| rebase(base.as_ref(), reference).map(String::from);
        assert_eq!(rebased(" b/ ").as_deref(), Some("http://e.org/a/b/"));
        assert_eq!(rebased("//f.org").as_deref(), Some("http://f.org/"));
        assert_eq!(rebased("").as_deref(), Some("http://e.org/a/"));
        let long = "b/".repeat(BASE_BYTES_MAX / 2);
        for bad in [
            "http://[bad",
            "mailto:a@b",
            "data:,x",
            "javascript:alert(1)//",
            &long,
        ] {
            assert_eq!(rebased(bad), None, "{bad}");
        }
        assert_eq!(rebase(None, "b/"), None);
        assert_eq!(
            rebase(None, "http://f.org").map(String::from).as_deref(),
            Some("http://f.org/")
        );
    }
}
