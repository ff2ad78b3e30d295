//! Well-Formed Web's CommentAPI: the feed of an entry's comments as a link. Where to post comments
//! stays foreign markup.

use crate::reading::Scope;
use crate::{Element, Link};

/// `wfw:commentRss` as a link with rel `replies` (RFC 4685 section 3). Half of the software of the
/// time wrote `commentRSS`. The element itself stays foreign markup, for it is what readers of RSS
/// look for.
pub(crate) fn link(element: &Element, scope: &Scope) -> Option<Link> {
    if !element.name.eq_ignore_ascii_case("commentRss") {
        return None;
    }
    Some(Link {
        href: scope.resolve(&element.words()?),
        rel: "replies".to_owned(),
        media_type: Some("application/rss+xml".to_owned()),
        ..Link::default()
    })
}
