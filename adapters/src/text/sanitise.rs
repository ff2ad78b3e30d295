//! HTML of strangers made fit for a page of one's own: what a post is written with stays, what
//! could act is taken away. Not part of reading a feed: entries keep their HTML as it was.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::LazyLock;

use ammonia::{Builder, UrlRelative};

use super::entities::{self, Resolved};
use super::markup::push_text;
use super::{clean, uri};

mod load;

/// Limit of a fragment, bytes. Posts of this size hold their pictures as `data:` URLs.
const HTML_BYTES_MAX: usize = 8 << 20;

/// Prefix of the names of a post's own anchors, so that none of them takes the place of a name of
/// the page.
const OWN: &str = "post-";

// Decides: Which markup of a post gets onto a page of ours?
/// The fragment without scripts, handlers, styles, forms, frames and plug-ins, and without URLs
/// that could run something. Headings, lists, tables, figures, code, ruby, images, audio and video
/// stay; links get `rel="noopener"`; `id`s and the links to them begin with `post-`; images may be
/// `data:` URLs of PNG, JPEG, GIF, WebP, AVIF and BMP.
///
/// A fragment that is too long, or nested so deeply that a browser would choke on it, comes out as
/// its own source, escaped.
///
/// The result is safe inside an element of an HTML page (not inside a `script`, a `style`, an
/// attribute or a comment), and sanitising it again changes nothing.
///
/// ```
/// use everfeed_adapters::text::sanitise;
///
/// let html = r#"<p onclick="a()">Hi <a href="javascript:b()">there</a><script>c()</script>"#;
/// assert_eq!(sanitise(html), r#"<p>Hi <a rel="noopener">there</a></p>"#);
/// ```
pub fn sanitise(html: &str) -> String {
    let html = clean(html);
    let spelled = spelled_out(&html);
    if spelled.len() > HTML_BYTES_MAX || !load::is_light(&spelled) {
        let mut source = String::new();
        push_text(&mut source, &html);
        return source;
    }
    POST.clean(&spelled).to_string()
}

/// References to characters outside ASCII as those characters, and ampersands that begin no
/// reference as `&amp;`: the parser takes its time with each, and posts in some alphabets are
/// nothing but references.
fn spelled_out(html: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut kept = 0;
    for at in memchr::memchr_iter(b'&', html.as_bytes()) {
        let after = &html[at + 1..];
        let end = after
            .bytes()
            .take(REFERENCE_BYTES_MAX)
            .position(|b| b == b';');
        let (spelled, end) =
            match end.and_then(|end| Some((entities::resolve(&after[..end])?, end))) {
                Some((Resolved::Character(c), end)) if !c.is_ascii() => {
                    (Cow::Owned(c.to_string()), at + end + 2)
                }
                None if !after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '#') => {
                    (Cow::Borrowed("&amp;"), at + 1)
                }
                _ => continue,
            };
        out.push_str(&html[kept..at]);
        out.push_str(&spelled);
        kept = end;
    }
    if kept == 0 {
        return Cow::Borrowed(html);
    }
    out.push_str(&html[kept..]);
    Cow::Owned(out)
}

/// The longest reference that is looked for: `&thetasym;`, and numbers with some zeros.
const REFERENCE_BYTES_MAX: usize = 32;

static POST: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut builder = Builder::default();
    builder
        .add_tags(MORE_TAGS)
        .add_clean_content_tags([
            "xmp", "textarea", "title", "template", "select", "object", "applet", "svg",
        ])
        .generic_attributes(HashSet::from(["lang", "title", "dir", "id"]))
        .url_schemes(uri::SCHEMES.into_iter().chain(["data"]).collect())
        .url_relative(UrlRelative::PassThrough)
        .link_rel(Some("noopener"))
        .attribute_filter(filter);
    for (tags, attributes) in MORE_ATTRIBUTES {
        for tag in *tags {
            builder.add_tag_attributes(*tag, *attributes);
        }
    }
    builder
});

/// Elements of old and new posts beyond the library's own list.
const MORE_TAGS: &[&str] = &[
    "address", "audio", "big", "font", "main", "picture", "section", "source", "tfoot", "track",
    "video",
];

const MORE_ATTRIBUTES: &[(&[&str], &[&str])] = &[
    (&["a"], &["name", "type"]),
    (&["area"], &["alt", "coords", "href", "shape"]),
    (
        &["audio", "video"],
        &["controls", "loop", "muted", "preload", "src"],
    ),
    (&["video"], &["height", "poster", "width"]),
    (
        &["source"],
        &["height", "media", "sizes", "src", "srcset", "type", "width"],
    ),
    (&["track"], &["default", "kind", "label", "src", "srclang"]),
    (
        &["img"],
        &[
            "border", "hspace", "longdesc", "sizes", "srcset", "usemap", "vspace",
        ],
    ),
    (&["map"], &["name"]),
    (&["font"], &["color", "face", "size"]),
    (
        &["table"],
        &["bgcolor", "border", "cellpadding", "cellspacing", "width"],
    ),
    (
        &["td", "th"],
        &["bgcolor", "height", "nowrap", "valign", "width"],
    ),
    (&["tr"], &["bgcolor", "valign"]),
    (&["col", "colgroup"], &["valign", "width"]),
    (
        &["caption", "div", "h1", "h2", "h3", "h4", "h5", "h6", "p"],
        &["align"],
    ),
    (&["br"], &["clear"]),
    (&["ol"], &["reversed", "type"]),
    (&["ul"], &["type"]),
    (&["li"], &["type", "value"]),
    (&["details"], &["open"]),
    (&["time"], &["datetime"]),
    (&["data"], &["value"]),
];

/// The last word on an attribute that may stay as far as its name goes.
fn filter<'v>(element: &str, attribute: &str, value: &'v str) -> Option<Cow<'v, str>> {
    match attribute {
        "id" | "name" => own(value),
        "href" | "usemap" if value.starts_with('#') => own_target(value),
        "href" | "cite" | "longdesc" => uri::may_be_followed(value).then_some(value.into()),
        // A picture in the text of the post itself is fetched from nowhere.
        "src" if element == "img" && uri::is_image_data(value) => Some(value.into()),
        "src" | "poster" => may_be_fetched(value).then_some(value.into()),
        "srcset" => {
            let words = value
                .split_ascii_whitespace()
                .flat_map(|word| word.split(','));
            words
                .into_iter()
                .all(may_be_fetched)
                .then_some(value.into())
        }
        "usemap" => None,
        _ => Some(value.into()),
    }
}

/// True for a URL that a page may load something from: of the schemes only the web's.
fn may_be_fetched(url: &str) -> bool {
    let is_web = |scheme: &str| {
        url.trim()
            .get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    is_web("https:") || is_web("http:") || uri::is_relative(url)
}

fn own(name: &str) -> Option<Cow<'_, str>> {
    Some(if name.starts_with(OWN) {
        name.into()
    } else {
        format!("{OWN}{name}").into()
    })
}

fn own_target(reference: &str) -> Option<Cow<'_, str>> {
    let name = &reference[1..];
    Some(if name.is_empty() || name.starts_with(OWN) {
        reference.into()
    } else {
        format!("#{OWN}{name}").into()
    })
}

#[cfg(test)]
mod tests;
