//! A read request: which view, in which form, from where, for whom; not how it is answered.

use super::Rendered;
use crate::{
    feed::{
        filter::Filter,
        moment::Moment,
        order::Order,
        page::ListingQuery,
        position::{BadPosition, Position},
        record::FeedNo,
        stamp::Stamp,
        view::View,
    },
    render::{ArchivePlace, Representation, Site},
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
    /// The state since which an item of a classic view must have changed to be in the body.
    pub(super) base: Option<Stamp>,
    /// True for a look whether there is anything, by one who waits: without a total and without a
    /// body.
    pub(super) is_look: bool,
}

/// Purpose of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Purpose {
    /// A page with a link to the next.
    Page,
    /// A push: the page after the acknowledged cursor, which it names as previous.
    Push,
    /// An archive of a classic view.
    Archive(ArchivePlace),
    /// Events of a stream that goes on after them.
    Events,
}

/// A position and how it was spelt.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) raw: String,
    pub(super) position: Position,
}

impl PartialEq for Spec {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl Eq for Spec {}

impl std::hash::Hash for Spec {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.raw.hash(state);
    }
}

impl Spec {
    fn parse(raw: &str) -> Result<Option<Self>, BadPosition> {
        Ok(Position::parse(raw)?.map(|position| Self {
            raw: raw.to_owned(),
            position,
        }))
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
            base: None,
            is_look: false,
        }
    }

    /// A page of a view. `since` and `until` as the consumer wrote them, decoded; `max` at least 1.
    pub fn page(
        view: View,
        representation: Representation,
        (since, until): (&str, &str),
        max: usize,
    ) -> Result<Self, BadPosition> {
        let (since, until) = (Spec::parse(since)?, Spec::parse(until)?);
        Ok(Self {
            since,
            until,
            ..Self::of(view, representation, Purpose::Page, max)
        })
    }

    /// The newest items, for ordinary readers.
    pub fn classic(feed: FeedNo, representation: Representation, items: usize) -> Self {
        let view = View::all(feed, Order::CREATED_REVERSE);
        Self::of(view, representation, Purpose::Page, items)
    }

    /// An archive of a view for ordinary readers.
    pub fn archive(feed: FeedNo, representation: Representation, place: ArchivePlace) -> Self {
        Self {
            purpose: Purpose::Archive(place),
            ..Self::classic(feed, representation, place.items())
        }
    }

    /// The page that a subscriber is pushed after the cursor that it acknowledged.
    pub fn push(view: View, representation: Representation, acked: &str, items_max: usize) -> Self {
        Self::of(view, representation, Purpose::Push, items_max).after(acked)
    }

    /// The same read of those items that a filter shows.
    #[must_use]
    pub fn filtered(self, filter: Filter) -> Self {
        Self {
            view: self.view.filtered(filter),
            ..self
        }
    }

    /// The events of a view after a position, as the consumer wrote it, decoded; without one, from
    /// the beginning.
    pub fn events(view: View, since: &str, items_max: usize) -> Result<Self, BadPosition> {
        let since = if since.is_empty() { "cursor:" } else { since };
        let page = Self::page(view, Representation::JSON, (since, ""), items_max)?;
        Ok(Self {
            purpose: Purpose::Events,
            ..page
        })
    }

    /// The same read for somebody who sees the feeds below another site.
    #[must_use]
    pub fn seen_from(self, site: Option<Arc<Site>>) -> Self {
        Self { site, ..self }
    }

    /// The same read, whose body calls another address its own.
    #[must_use]
    pub fn at(self, own_url: Option<Arc<str>>) -> Self {
        Self { own_url, ..self }
    }

    /// The items of the same read that have changed since a state; `None` where its order cannot
    /// tell.
    pub fn changed_since(self, base: Stamp) -> Option<Self> {
        if self.representation.is_classic() {
            return Some(Self {
                base: Some(base),
                ..self
            });
        }
        let after = Spec::parse(&format!("time:{}", Stamp::from_micros(base.micros() + 1))).ok()?;
        match self.view.order {
            Order::MODIFIED => Some(Self {
                since: after,
                ..self
            }),
            Order::MODIFIED_REVERSE => Some(Self {
                until: after,
                ..self
            }),
            _ => None,
        }
    }

    /// A look whether this read has any item. It is empty, and at its end, where the read is.
    pub(super) fn look(&self) -> Self {
        Self {
            max: 1,
            is_look: true,
            ..self.clone()
        }
    }

    /// True where a body of it tells the total of a view that has to be counted.
    pub(super) fn tells_total(&self) -> bool {
        let is_told = !self.representation.is_classic() && self.purpose != Purpose::Events;
        is_told && !self.is_look && self.view.filter.has_terms()
    }

    /// The view that is read.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The form of the body.
    pub fn representation(&self) -> Representation {
        self.representation
    }

    /// The same read from a cursor on.
    #[must_use]
    pub(super) fn after(self, cursor: &str) -> Self {
        let since = Spec {
            raw: format!("cursor:{cursor}"),
            position: Position::of_cursor(cursor),
        };
        Self {
            since: Some(since),
            ..self
        }
    }

    /// The cursor that the subscriber of a push has acknowledged.
    pub(super) fn acked(&self) -> Option<&str> {
        self.kept_cursor().filter(|_| self.purpose == Purpose::Push)
    }

    /// The cursor that a reader keeps for its position: the subscriber of a push, or the browser
    /// behind a stream.
    pub(super) fn kept_cursor(&self) -> Option<&str> {
        let cursor = self
            .since
            .as_ref()
            .and_then(|spec| spec.raw.strip_prefix("cursor:"));
        cursor.filter(|_| self.purpose != Purpose::Page)
    }

    /// True for a page with which the position moves that a reader keeps.
    pub(super) fn is_moved_by(&self, page: &Rendered) -> bool {
        self.kept_cursor()
            .is_some_and(|kept| page.lies_beyond(kept) || self.goes_on_at(page) != kept)
    }

    /// The cursor at which a page leaves its reader. That of a stream of events passes what a
    /// filter has hidden at its end.
    pub(super) fn goes_on_at<'a>(&self, page: &'a Rendered) -> &'a str {
        let scanned = page
            .scanned
            .as_ref()
            .filter(|_| self.purpose == Purpose::Events);
        scanned.unwrap_or(&page.last_cursor)
    }

    /// True where a position behind an item at this stamp is further on in an ascending order.
    pub(super) fn is_before(&self, t: Stamp) -> bool {
        let t = Moment::from(t);
        match self.since.as_ref().map(|spec| &spec.position) {
            None | Some(Position::Start { .. }) => true,
            Some(Position::Cursor { toc, .. }) => toc.t < t,
            Some(Position::Time { span, .. }) => span.low_us <= t.micros(),
            // Of an item that was there before.
            Some(Position::Id(_)) => true,
        }
    }

    /// The items of its page: ordinary readers are shown nothing of what is gone. (In a push that
    /// is left out later, so that the position moves past it.)
    pub(super) fn filter(&self) -> Filter {
        if self.representation.is_classic() && self.purpose == Purpose::Page {
            self.view.filter.live()
        } else {
            self.view.filter.clone()
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
        [&self.since, &self.until]
            .into_iter()
            .flatten()
            .map(|spec| spec.raw.len())
            .sum()
    }
}
