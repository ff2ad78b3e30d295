//! The source of a document: a URL, a file with what was said of it, or standard input. Not what it
//! holds.

use super::{
    Trouble,
    sheet::{self, Keep},
};
use crate::{
    app::probe::{self, DocumentFormat},
    config::Config,
    feed::{absence::Coverage, schedule::Failure},
    secret::masked,
    setting::holds_controls,
};
use everfeed_adapters::{Hints, NotAFeed, named_feeds};
use http::{HeaderName, HeaderValue};
use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    path::Path,
};
use url::Url;

/// Columns of the title of a feed that a web page names.
const TITLE_COLUMNS: usize = 40;

/// A document and what came with it.
#[derive(Debug, Default)]
pub(super) struct Given {
    /// The URL without credentials, the file, or `-`.
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    /// `Content-Type` of the answer.
    pub(super) content_type: Option<String>,
    /// Headers of the answer that are text.
    pub(super) headers: Vec<(String, String)>,
    /// Base of relative references: the URL that answered, after redirects.
    pub(super) base_url: Option<String>,
    /// URL that names the document, where it is wanted as it is instead of as a feed.
    pub(super) resource: Option<String>,
    /// True when a publisher answered with it just now.
    pub(super) is_fetched: bool,
    /// The end of the permanent redirects.
    pub(super) moved_to: Option<String>,
    /// True for a part of a document (226).
    pub(super) is_part: bool,
}

impl Given {
    /// Hints that came with the document, as its reader wants to know it.
    pub(super) fn hints(&self) -> Hints<'_> {
        Hints {
            content_type: self.content_type.as_deref(),
            content_language: self.header("content-language"),
            base_url: self.base_url.as_deref(),
            resource: self.resource.as_deref(),
            ..Hints::default()
        }
    }

    fn header(&self, name: &str) -> Option<&str> {
        let named = self
            .headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str())
    }

    /// The text for a document that is no feed.
    pub(super) fn no_feed(&self, error: &NotAFeed) -> Trouble {
        let feeds = match error {
            NotAFeed::Html { .. } => named_feeds(&self.bytes, &self.hints()),
            _ => Vec::new(),
        };
        let named = feeds.iter().map(|feed| match &feed.link.title {
            Some(title) => {
                let title = sheet::cut(title, TITLE_COLUMNS, Keep::Start);
                format!("{} ({title})", feed.link.href)
            }
            None => feed.link.href.clone(),
        });
        let named = named.collect::<Vec<_>>().join(", ");
        let fault = if !named.is_empty() {
            format!("; ask for one of the feeds that it names: {named}")
        } else if self.is_fetched && *error != NotAFeed::Opml {
            let kind = self.content_type.as_ref().map(|kind| format!(" as {kind}"));
            let kind = kind.unwrap_or_default();
            format!("; the fault is the publisher's, who answered with it{kind}")
        } else {
            String::new()
        };
        Trouble::new(format!("no feed at {}: {error}{fault}", self.name))
    }
}

/// Reads what a target of the command line names.
pub(super) fn read(
    target: &OsStr,
    config: Option<&Config>,
    format: DocumentFormat,
) -> Result<Given, Trouble> {
    let mut given = read_as(target, config, format)?;
    if format == DocumentFormat::Resource && given.resource.is_none() {
        let url = given.base_url.as_ref().unwrap_or(&given.name);
        given.resource = Some(url.clone());
    }
    Ok(given)
}

fn read_as(
    target: &OsStr,
    config: Option<&Config>,
    format: DocumentFormat,
) -> Result<Given, Trouble> {
    let usual = Config::default();
    let bytes_max = config.unwrap_or(&usual).upstream.body_bytes_max;
    // What is no UTF-8 is a file.
    let text = target.to_str().unwrap_or_default();
    if text == "-" {
        let bytes = limited(io::stdin().lock(), bytes_max)
            .map_err(|error| Trouble::new(format!("standard input cannot be read: {error}")))?;
        return Ok(Given {
            name: text.to_owned(),
            bytes,
            ..Given::default()
        });
    }
    if text.contains("://") || text.starts_with("feed:") {
        return fetch(text, config, format, None);
    }
    let path = Path::new(target).display();
    let bytes = File::open(target).and_then(|file| limited(file, bytes_max));
    let bytes = bytes.map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::NotFound => "; a URL begins with http:// or https://",
            _ => "",
        };
        Trouble::new(format!("{path} cannot be read: {error}{hint}"))
    })?;
    Ok(Given {
        name: path.to_string(),
        bytes,
        ..Given::default()
    })
}

/// Reads to the end, unless that is further than polling would go.
fn limited(from: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::other(format!(
            "it is larger than {bytes_max} bytes"
        )));
    }
    Ok(bytes)
}

/// Reads the feed at a URL that a page names. Elsewhere than at the origin of the page, only public
/// addresses are asked.
pub(super) fn read_named(url: &Url, page: &Url, config: Option<&Config>) -> Result<Given, Trouble> {
    fetch(url.as_str(), config, DocumentFormat::Auto, Some(page))
}

fn fetch(
    target: &str,
    config: Option<&Config>,
    format: DocumentFormat,
    page: Option<&Url>,
) -> Result<Given, Trouble> {
    let shown = masked(target);
    let misused = |why| {
        let wanted = "give an http or https URL";
        Trouble::misused(format!(
            "{shown} is no URL that can be polled: {why}; {wanted}"
        ))
    };
    if holds_controls(target) {
        return Err(misused("control characters stand in it".to_owned()));
    }
    let url = Url::parse(target).map_err(|error| misused(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(misused(format!("its scheme is {}", url.scheme())));
    }
    let usual = Config::default();
    let limits = &config.unwrap_or(&usual).upstream;
    // Nobody is told our public URL unless it was configured.
    let contact = config.map(|config| config.contact_url().clone());
    let runtime = crate::cli::runtime().map_err(|error| Trouble::new(error.to_string()))?;
    let fetched = match page {
        Some(page) => runtime.block_on(probe::fetch_named(limits, contact, &url, page)),
        None => runtime.block_on(probe::fetch(limits, contact, &url, format)),
    };
    let fetched = fetched.map_err(|failure| unanswered(&shown, &failure))?;
    Ok(Given {
        name: shown,
        bytes: fetched.body.into(),
        content_type: fetched.content_type,
        headers: fetched
            .headers
            .iter()
            .filter_map(|(name, value)| header(name, value))
            .collect(),
        base_url: Some(fetched.base_url),
        resource: fetched.resource,
        is_fetched: true,
        moved_to: fetched.answer.moved_to,
        is_part: fetched.coverage == Coverage::Delta,
    })
}

fn header(name: &HeaderName, value: &HeaderValue) -> Option<(String, String)> {
    Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
}

/// The text for a document that did not come, with whose fault that is.
fn unanswered(name: &str, failure: &Failure) -> Trouble {
    let owner = failure.kind.owner();
    let wait = failure.retry_after_secs;
    let wait = wait.map(|secs| format!(", who wants to be left alone for {secs} s"));
    let wait = wait.unwrap_or_default();
    let said = if failure.status().is_some() {
        "no feed at"
    } else {
        "no answer from"
    };
    Trouble::new(format!(
        "{said} {name}: {}; the fault is {owner}{wait}",
        failure.kind
    ))
}
