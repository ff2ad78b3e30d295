//! Links, categories and generators as Atom writes them, which other formats borrow, and the plain
//! forms of links and pictures.

use url::Url;

use crate::reading::Scope;
use crate::text::{present, uri};
use crate::{Category, Element, Generator, Image, Link};

/// A link; without a target there is none. Some early writers put the target into the text.
pub(crate) fn link(element: &Element, scope: &Scope) -> Option<Link> {
    let named = element.attribute("href");
    // An empty reference is the base itself (RFC 3986 section 5.2), which says something only if
    // the document named it.
    let base = || {
        let base = named.and(scope.base.as_ref());
        base.filter(|_| scope.is_rebased).map(Url::to_string)
    };
    let href = named.and_then(present).or_else(|| element.words());
    let href = href.or_else(base)?;
    let rel = element.filled("rel");
    let rel = rel.map(
        |rel| match rel.strip_prefix("http://www.iana.org/assignments/relation/") {
            Some(short) => short.to_owned(),
            // Registered relations are compared without regard to case; those that are URIs are not
            // (RFC 8288 section 2.1).
            None if rel.contains(':') => rel,
            None => rel.to_ascii_lowercase(),
        },
    );
    Some(Link {
        href: scope.resolve(&href),
        rel: rel.unwrap_or_else(|| "alternate".to_owned()),
        media_type: element.filled("type"),
        title: element.filled("title"),
        hreflang: element.filled("hreflang"),
        length: element.filled("length"),
    })
}

/// A category; some writers put the term into the text.
pub(crate) fn category(element: &Element) -> Option<Category> {
    let label = element.filled("label");
    let term = element.filled("term").or_else(|| label.clone());
    Some(Category {
        term: term.or_else(|| element.words())?,
        scheme: element.filled("scheme"),
        label,
    })
}

/// A generator (RFC 4287 section 4.2.4); 0.3 says `url` for `uri`.
pub(crate) fn generator(element: &Element, scope: &Scope) -> Option<Generator> {
    let uri = element.filled("uri").or_else(|| element.filled("url"));
    let generator = Generator {
        name: element.words(),
        version: element.filled("version"),
        uri: uri.map(|uri| scope.resolve(&uri)),
    };
    (generator != Generator::default()).then_some(generator)
}

/// A picture of which only the URL is known.
pub(crate) fn picture(url: &str, scope: &Scope) -> Image {
    Image {
        url: scope.resolve(url),
        ..Image::default()
    }
}

/// True for a URL of which a permalink can be made.
pub(crate) fn is_web_url(text: &str) -> bool {
    let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
    uri::is_absolute(text)
        && (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https"))
}
