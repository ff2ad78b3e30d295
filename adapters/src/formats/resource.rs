//! Any document as the only item of its own feed (the seed "Arbitrary Content Types"): its content
//! is what was sent.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chrono::{DateTime, SecondsFormat};
use url::Url;

use crate::note::Notes;
use crate::reading::Scope;
use crate::text::{encoding, is_one_of};
use crate::{Body, Date, Digest, Enclosure, Entry, Hints, Link, Metadata, Text, TextKind};

/// A document that is not looked into.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    /// The URL that it was requested by, and so its identity.
    url: String,
    /// The address at which readers find it, where that is another one.
    address: Option<String>,
    /// Time at which it was read, microseconds since 1970.
    read_at_us: Option<i64>,
    /// The URL where it was found, the base of its relative references.
    base: Option<Url>,
    content_type: Option<String>,
    bytes: Box<[u8]>,
}

/// Kind of a resource by its media type.
#[derive(Debug, PartialEq, Eq)]
enum ResourceKind {
    Plain,
    Html,
    /// Text of another type.
    Text,
    Binary,
}

impl Resource {
    pub(crate) fn new(url: &str, base: Option<Url>, hints: &Hints<'_>, bytes: &[u8]) -> Self {
        let address = hints.address.filter(|address| *address != url);
        Self {
            url: url.to_owned(),
            address: address.map(str::to_owned),
            read_at_us: hints.read_at_us,
            base,
            content_type: hints.content_type.map(str::to_owned),
            bytes: bytes.into(),
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The address at which readers find it.
    pub(crate) fn address(&self) -> &str {
        self.address.as_ref().unwrap_or(&self.url)
    }

    /// Metadata of the feed that is one document.
    pub(crate) fn metadata(&self) -> Metadata {
        Metadata {
            title: Some(Text::plain(title(self.address()))),
            links: vec![Link::to("alternate", self.address().to_owned())],
            ..Metadata::default()
        }
    }

    /// Over the type and the bytes as sent, and another address.
    pub(crate) fn digest(&self) -> Digest {
        let mut label = format!(
            "{}\n{}",
            self.content_type.as_deref().unwrap_or_default(),
            Digest::of(&self.bytes)
        );
        if let Some(address) = &self.address {
            label.push('\n');
            label.push_str(address);
        }
        Digest::of(label.as_bytes())
    }

    /// The entry: title from the address, content from the bytes, and the time of its reading as
    /// the date of its change, since a document has none of its own. What is no text is also pointed
    /// to as an enclosure, for formats that cannot carry it.
    pub(crate) fn entry(&self) -> (Entry, Notes) {
        let mut notes = Notes::default();
        let media_type = self.media_type();
        let kind = kind(&media_type);
        let text = match kind {
            ResourceKind::Binary => Text {
                kind: TextKind::Base64,
                value: BASE64_STANDARD.encode(&self.bytes),
                ..Text::default()
            },
            ResourceKind::Plain | ResourceKind::Html | ResourceKind::Text => {
                let decoded = encoding::decode(&self.bytes, self.content_type.as_deref());
                decoded.note.into_iter().for_each(|note| notes.add(note));
                match kind {
                    ResourceKind::Html => Scope {
                        base: self.base.clone(),
                        ..Scope::default()
                    }
                    .html(decoded.text),
                    _ => Text::plain(decoded.text),
                }
            }
        };
        let file = (kind == ResourceKind::Binary).then(|| Enclosure {
            url: self.address().to_owned(),
            media_type: Some(media_type.to_string()),
            length: Some(self.bytes.len().to_string()),
            title: None,
            is_illustration: false,
        });
        let named = (kind == ResourceKind::Text || kind == ResourceKind::Binary)
            .then(|| media_type.to_string());
        let entry = Entry {
            id: Some(self.address().to_owned()),
            title: Some(Text::plain(title(self.address()))),
            updated: self.read_at_us.and_then(read_at),
            content: Some(Body {
                text,
                media_type: named,
                src: None,
            }),
            links: vec![Link {
                media_type: Some(media_type.into_owned()),
                ..Link::to("alternate", self.address().to_owned())
            }],
            enclosures: file.into_iter().collect(),
            ..Entry::default()
        };
        (entry, notes)
    }

    /// The media type in lower case, without `charset`, which is that of the bytes and not of what
    /// is made of them. Where the publisher names none, or calls binary data text, the bytes decide
    /// as much as they can.
    fn media_type(&self) -> Cow<'_, str> {
        let named = self.content_type.as_deref().and_then(without_charset);
        let is_text = || !self.bytes.contains(&0) || self.is_wide();
        match named {
            Some(named) if kind(&named) == ResourceKind::Binary || is_text() => Cow::Owned(named),
            None if std::str::from_utf8(&self.bytes).is_ok() && is_text() => {
                Cow::Borrowed("text/plain")
            }
            _ => Cow::Borrowed("application/octet-stream"),
        }
    }

    /// True for wide characters: a zero byte says nothing there, since every second byte of a text
    /// is one.
    fn is_wide(&self) -> bool {
        let label = self
            .content_type
            .as_deref()
            .unwrap_or_default()
            .to_ascii_lowercase();
        [b"\xFF\xFE", b"\xFE\xFF"]
            .iter()
            .any(|mark| self.bytes.starts_with(*mark))
            || ["utf-16", "utf-32", "ucs-2"]
                .iter()
                .any(|wide| label.contains(wide))
    }
}

/// The date of a reading.
fn read_at(at_us: i64) -> Option<Date> {
    let at = DateTime::from_timestamp_micros(at_us)?;
    Some(Date {
        raw: at.to_rfc3339_opts(SecondsFormat::Micros, true),
        at_us: Some(at_us),
    })
}

/// `type/subtype` and the parameters that matter; `None` for what is no media type.
fn without_charset(content_type: &str) -> Option<String> {
    let mut parts = content_type.split(';').map(str::trim);
    let essence = parts.next()?.to_ascii_lowercase();
    let (group, subtype) = essence.split_once('/')?;
    if group.is_empty() || subtype.is_empty() || essence.contains(char::is_whitespace) {
        return None;
    }
    let is_charset = |part: &&str| {
        part.get(..7)
            .is_some_and(|name| name.eq_ignore_ascii_case("charset"))
    };
    let kept = parts.filter(|part| !part.is_empty() && !is_charset(part));
    Some(
        std::iter::once(essence.as_str())
            .chain(kept)
            .collect::<Vec<_>>()
            .join("; "),
    )
}

fn kind(media_type: &str) -> ResourceKind {
    let essence = media_type.split(';').next().unwrap_or_default();
    match essence {
        "text/plain" => ResourceKind::Plain,
        "text/html" | "application/xhtml+xml" => ResourceKind::Html,
        _ if is_text(essence) => ResourceKind::Text,
        _ => ResourceKind::Binary,
    }
}

fn is_text(essence: &str) -> bool {
    const APPLICATIONS: &str = "json xml javascript ecmascript yaml x-yaml toml sql \
        x-www-form-urlencoded x-ndjson";
    match essence.split_once('/') {
        Some(("text", _)) => true,
        Some(("application", name)) if is_one_of(name, APPLICATIONS) => true,
        _ => essence.ends_with("+xml") || essence.ends_with("+json"),
    }
}

/// The last step of the path as people would write it; without one, the URL.
fn title(url: &str) -> String {
    let last = Url::parse(url).ok().and_then(|url| {
        let last = url
            .path_segments()?
            .rfind(|step| !step.is_empty())?
            .to_owned();
        Some(
            percent_encoding::percent_decode_str(&last)
                .decode_utf8_lossy()
                .into_owned(),
        )
    });
    last.map_or_else(
        || url.to_owned(),
        |last| crate::text::clean(&last).into_owned(),
    )
}
