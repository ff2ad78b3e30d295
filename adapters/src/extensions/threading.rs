//! Conversations: what an entry answers (RFC 4685), where its answers are, and how many. Views of
//! markup that is kept.

use crate::text::trim;
use crate::vocabulary::Vocabulary;
use crate::{Element, Entry};

/// The entry that another one answers: one `thr:in-reply-to` (RFC 4685 section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InReplyTo<'e> {
    /// `ref`: the id of the entry that is answered, byte-exact.
    pub reference: Option<&'e str>,
    /// `href`: where that entry can be read, resolved.
    pub href: Option<&'e str>,
    /// `type`: the media type of what is there.
    pub media_type: Option<&'e str>,
    /// `source`: the feed that holds the entry, resolved.
    pub source: Option<&'e str>,
}

impl Entry {
    /// The entries that this one answers, in document order.
    pub fn in_reply_to(&self) -> impl Iterator<Item = InReplyTo<'_>> {
        named(&self.foreign, Vocabulary::Thread, "in-reply-to").map(|element| InReplyTo {
            reference: element.attribute("ref"),
            href: element.attribute("href"),
            media_type: element.attribute("type"),
            source: element.attribute("source"),
        })
    }

    /// URL of the feed of this entry's comments: a link with rel `replies` to a feed,
    /// `wfw:commentRss` included.
    pub fn comment_feed(&self) -> Option<&str> {
        let is_feed =
            |media_type: &str| media_type.ends_with("+xml") && !media_type.contains("xhtml");
        let mut replies = self.links.iter().filter(|link| link.rel == "replies");
        replies
            .find(|link| link.media_type.as_deref().is_some_and(is_feed))
            .map(|link| link.href.as_str())
    }

    /// Number of comments that the publisher counts: `thr:total`, else `slash:comments`. It churns;
    /// no edit of the entry.
    pub fn comments_total(&self) -> Option<u64> {
        let total = named(&self.foreign, Vocabulary::Thread, "total").next();
        let slash = || named(&self.foreign, Vocabulary::Slash, "comments").next();
        trim(&total.or_else(slash)?.text()).parse().ok()
    }
}

/// The elements of a vocabulary with this name.
fn named<'e>(
    elements: &'e [Element],
    vocabulary: Vocabulary,
    name: &'static str,
) -> impl Iterator<Item = &'e Element> {
    let is_named =
        move |element: &&Element| element.name == name && Vocabulary::of(&element.ns) == vocabulary;
    elements.iter().filter(is_named)
}
