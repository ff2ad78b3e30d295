//! The ETag of a page: the same for a pull and for the push that leads to its state.

use super::{Config, ReadRequest, Readers};
use crate::{feed::record::Head, render};

impl Readers {
    /// The tag of a view in this state of its feed, with the end that a content coding has there:
    /// its visible state, its form, the build that renders it, and the configuration that shows in
    /// it. It is weak, since an edit of a page's surroundings alone need not change it.
    pub fn etag(&self, reading: &ReadRequest, head: Head, coding: &str) -> String {
        let (t, metadata_t) = (head.last_t.micros(), head.metadata_t.micros());
        let tail = self.tag_tail(reading);
        format!("W/\"{t:x}.{metadata_t:x}.{tail}{coding}\"")
    }

    /// Part of the tag that does not change with the feed. In it is a checksum of what a document
    /// shows of our configuration: after a change of it, no copy is fresh. The feed is in that, too:
    /// the state of another one is no base of a delta.
    pub fn tag_tail(&self, reading: &ReadRequest) -> String {
        let Config {
            page_items_max,
            page_bytes_max,
            classic_items,
            ..
        } = &self.config;
        let view = &reading.view;
        // Below a secret, other links.
        let (feed, root) = (view.feed, self.site_of(reading).hub());
        let hidden = if self.announces(feed) { "" } else { " hidden" };
        let setting = crc32fast::hash(
            format!("{feed} {root} {page_items_max} {page_bytes_max} {classic_items}{hidden}")
                .as_bytes(),
        );
        let (form, order) = (reading.representation.etag(), view.order);
        let (filter, build) = (view.filter.tag(), render::REVISION);
        format!("{form}{order}{filter}.{build}.{setting:x}")
    }
}
