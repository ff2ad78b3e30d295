//! A read request: which view, in which form, from where, for whom; not how it is answered.

use crate::{
    feed::{
        cursor::Toc,
        filter::Filter,
        moment::Moment,
        order::Order,
        page::{ListingQuery, Numbering},
        position::{BadPosition, Position},
        record::FeedNo,
        stamp::Stamp,
        view::{Deletions, View},
    },
    render::{ArchiveAddress, ChainPosition, Representation, Site},
};
use std::sync::Arc;

/// A read: a view, a representation, a range. Equal reads of an unchanged feed get the same body.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReadRequest {
    pub(super) view: View,
    pub(super) representation: Representation,
    pub(super) purpose: Purpose,
    pub(super) since: Option<Spec>,
    pub(super) until: Option<Spec>,
    pub(super) max: usize,
    /// The site whose URLs the body prints, where it is not that of everybody: bodies of several
    /// sites are never one.
    pub(super) site: Option<Arc<Site>>,
    /// The address that the body calls its own, where that is not the canonical one of the view.
    pub(super) own_url: Option<Arc<str>>,
    /// The last cursor that was pushed before, where that is not the position.
    pub(super) prev: Option<Arc<str>>,
    /// True for a feed of which nobody is told what is gone.
    pub(super) hides_deletions: bool,
    /// The part of the numbers of items, for protocols that have them.
    pub(super) numbering: Numbering,
}

/// Purpose of a body; each is read in the file of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Purpose {
    /// A page with a link to the next.
    Page,
    /// The newest posts for ordinary readers; of a delta only those that changed after a state.
    Newest { changed_since: Option<Stamp> },
    /// An archive behind the newest posts.
    Archive(ArchiveAddress),
    /// A push: the page after a position, which names the cursor that was pushed last.
    Push {
        deletions: Deletions,
        bytes_max: usize,
        /// True for a subscriber of an old dialect, which takes nothing that is older than what it
        /// has.
        is_old: bool,
        /// True for a push without items, which ends where it begins.
        is_still: bool,
    },
    /// Events of a stream that goes on after them.
    Stream,
    /// A look whether a page or a push has any item, by one who waits: without a total and without
    /// a body.
    Look,
}

/// The size of a push at most; the rest follows in the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushMax {
    /// Items.
    pub items: usize,
    /// Bytes of stored items, though never less than one item.
    pub bytes: usize,
}

impl Default for PushMax {
    fn default() -> Self {
        Self {
            items: 200,
            bytes: 1 << 20,
        }
    }
}

/// A position and how it was spelt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Spec {
    pub(super) raw: String,
    pub(super) position: Position,
}

impl Spec {
    fn parse(raw: &str) -> Result<Option<Self>, BadPosition> {
        Ok(Position::parse(raw)?.map(|position| Self {
            raw: raw.to_owned(),
            position,
        }))
    }

    fn of_cursor(cursor: &str) -> Self {
        Self {
            raw: format!("cursor:{cursor}"),
            position: Position::of_cursor(cursor),
        }
    }
}

impl ReadRequest {
    /// A read without a range, for everybody.
    const fn of(view: View, representation: Representation, purpose: Purpose, max: usize) -> Self {
        Self {
            view,
            representation,
            purpose,
            since: None,
            until: None,
            max,
            site: None,
            own_url: None,
            prev: None,
            hides_deletions: false,
            numbering: Numbering::None,
        }
    }

    /// A page of a Smart Feed. `since` and `until` as the consumer wrote them, decoded; `max` at
    /// least 1.
    pub fn page(
        view: View,
        representation: Representation,
        since: &str,
        until: &str,
        max: usize,
    ) -> Result<Self, BadPosition> {
        Ok(Self {
            since: Spec::parse(since)?,
            until: Spec::parse(until)?,
            ..Self::of(view, representation, Purpose::Page, max)
        })
    }

    /// The newest posts that a filter shows, for ordinary readers; `own_url` is the address at which
    /// they read, where that is the one of the old feed.
    pub fn newest(
        feed: FeedNo,
        filter: Filter,
        representation: Representation,
        max: usize,
        own_url: Option<Arc<str>>,
    ) -> Self {
        let view = View::all(feed, Order::CREATED_REVERSE).filtered(filter);
        let purpose = Purpose::Newest {
            changed_since: None,
        };
        Self {
            own_url,
            ..Self::of(view, representation, purpose, max)
        }
    }

    /// An archive of a feed, for ordinary readers.
    pub fn archive(feed: FeedNo, representation: Representation, place: ArchiveAddress) -> Self {
        let view = View::all(feed, Order::CREATED_REVERSE);
        let purpose = Purpose::Archive(place);
        Self::of(view, representation, purpose, place.items())
    }

    /// The page that a subscriber is pushed after a position; `own_url` is its topic, where that is
    /// the address of the old feed.
    pub fn push(
        view: View,
        representation: Representation,
        position: &str,
        max: PushMax,
        own_url: Option<Arc<str>>,
    ) -> Self {
        let purpose = Purpose::Push {
            deletions: usual_deletions(representation),
            bytes_max: max.bytes,
            is_old: false,
            is_still: false,
        };
        Self {
            since: Some(Spec::of_cursor(position)),
            own_url,
            ..Self::of(view, representation, purpose, max.items)
        }
    }

    /// The same push for a subscriber to whom this cursor was pushed last: what lies between it and
    /// the position was hidden from it.
    #[must_use]
    pub fn following(self, prev: &str) -> Self {
        let prev = Some(prev).filter(|prev| self.kept_cursor() != Some(*prev));
        Self {
            prev: prev.map(Into::into),
            ..self
        }
    }

    /// The same push for a subscriber with a wish for items that are gone; `None` for what is usual
    /// with its representation.
    #[must_use]
    pub fn with_deletions(mut self, wish: Option<Deletions>) -> Self {
        if let (Purpose::Push { deletions, .. }, Some(wish)) = (&mut self.purpose, wish) {
            *deletions = wish;
        }
        self
    }

    /// The same push for a subscriber of an old dialect, or not.
    #[must_use]
    pub fn for_old_subscriber(mut self, of_old: bool) -> Self {
        if let Purpose::Push { is_old, .. } = &mut self.purpose {
            *is_old = of_old;
        }
        self
    }

    /// The same push of nothing but the channel: the last cursor is the one that was pushed before.
    #[must_use]
    pub fn standing_still(&self) -> Self {
        let mut still = self.clone();
        if let Purpose::Push { is_still, .. } = &mut still.purpose {
            *is_still = true;
        }
        still
    }

    /// The events of a view after a position, as the consumer wrote it, decoded; without one, from
    /// the beginning.
    pub fn events(view: View, since: &str, max: usize) -> Result<Self, BadPosition> {
        let since = if since.is_empty() { "cursor:" } else { since };
        Ok(Self {
            since: Spec::parse(since)?,
            ..Self::of(view, Representation::JSON, Purpose::Stream, max)
        })
    }

    /// The same read with numbers of items.
    #[must_use]
    pub fn numbered(self, numbering: Numbering) -> Self {
        Self { numbering, ..self }
    }

    /// The same read for somebody who sees the feeds below another site.
    #[must_use]
    pub fn seen_from(self, site: Option<Arc<Site>>) -> Self {
        Self { site, ..self }
    }

    /// The items of the same page that have changed since a state; `None` where its order cannot
    /// tell.
    pub fn changed_since(mut self, state: Stamp) -> Option<Self> {
        if let Purpose::Newest { changed_since } = &mut self.purpose {
            *changed_since = Some(state);
            return Some(self);
        }
        let after = Spec::parse(&format!("time:{}", state.next())).ok()?;
        match self.view.order {
            Order::MODIFIED => self.since = after,
            Order::MODIFIED_REVERSE => self.until = after,
            _ => return None,
        }
        Some(self)
    }

    /// The same read of at most so many items.
    #[must_use]
    pub fn of_at_most(&self, max: usize) -> Self {
        Self {
            max: self.max.min(max),
            ..self.clone()
        }
    }

    /// A look whether this read has any item. It is empty, and at its end, where the read is.
    pub(super) fn look(&self) -> Self {
        Self {
            max: 1,
            purpose: Purpose::Look,
            ..self.clone()
        }
    }

    /// The same read from a cursor on.
    pub(super) fn after(&self, cursor: &str) -> Self {
        Self {
            since: Some(Spec::of_cursor(cursor)),
            ..self.clone()
        }
    }

    /// True where a body of it tells the total of a view that has to be counted.
    pub(super) fn tells_total(&self) -> bool {
        let is_told = matches!(self.purpose, Purpose::Page | Purpose::Push { .. });
        is_told && !self.representation.is_classic() && self.view.filter.has_terms()
    }

    /// The view that is read.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The form of the body.
    pub fn representation(&self) -> Representation {
        self.representation
    }

    /// The place of a push in its chain.
    pub(super) fn chain_place(&self) -> Option<ChainPosition<'_>> {
        let Purpose::Push {
            deletions, is_old, ..
        } = self.purpose
        else {
            return None;
        };
        let prev_cursor = self.prev.as_deref().or_else(|| self.kept_cursor())?;
        let last_t = Toc::parse(prev_cursor).and_then(|toc| toc.t.stamp());
        Some(ChainPosition {
            prev_cursor,
            deletions,
            dated_since: last_t.filter(|_| is_old),
        })
    }

    /// The cursor that a reader keeps for its position: the subscriber of a push, or the browser
    /// behind a stream.
    pub(super) fn kept_cursor(&self) -> Option<&str> {
        if !matches!(self.purpose, Purpose::Push { .. } | Purpose::Stream) {
            return None;
        }
        self.since.as_ref()?.raw.strip_prefix("cursor:")
    }

    /// True where a position behind an item at this stamp is further on in an ascending order.
    pub(super) fn is_before(&self, t: Stamp) -> bool {
        match self.since.as_ref().map(|spec| &spec.position) {
            None | Some(Position::Start { .. }) => true,
            Some(Position::Cursor { toc, .. }) => toc.t < Moment::from(t),
            Some(Position::Time { span, .. }) => span.low_us <= Moment::from(t).micros(),
            // Of an item that was there before.
            Some(Position::Id(_)) => true,
        }
    }

    pub(super) fn ask(&self) -> ListingQuery<'_> {
        ListingQuery {
            order: self.view.order,
            since: self.since.as_ref().map(|spec| &spec.position),
            until: self.until.as_ref().map(|spec| &spec.position),
            max: self.max,
            bytes_max: usize::MAX,
        }
    }

    /// Bytes of its positions as consumers spelt them, which may be as long as they like.
    pub(super) fn spelt_bytes(&self) -> usize {
        let specs = [&self.since, &self.until].into_iter().flatten();
        specs.map(|spec| spec.raw.len()).sum()
    }
}

// Decides: Who is pushed deletions without asking?
/// The usual wish for items that are gone: ordinary readers would not know what to make of them.
pub fn usual_deletions(representation: Representation) -> Deletions {
    if representation.is_classic() {
        Deletions::Omit
    } else {
        Deletions::Announce
    }
}
