//! What the pages of missed posts tell, asked at every poll: 410 once or 404 twice is the end of a post, 200 is none.

use crate::publisher::{Page, Publisher};
use std::collections::HashMap;

/// Posts whose pages were asked for, and what they said.
#[derive(Default)]
pub(crate) struct Pages {
    said: HashMap<u32, Said>,
}

#[derive(Clone, Copy)]
enum Said {
    /// 404, in that hour.
    Missing(f64),
    /// It is there: hidden from the feed, not gone.
    Shown,
    /// It is gone, and that was told.
    Told,
}

/// Hours between two 404 that are believed.
const APART_HOURS: f64 = 1.0;

impl Pages {
    /// Whether the page of a post that is missed says now that it is gone.
    pub(crate) fn tell_gone(&mut self, post: u32, publisher: &mut Publisher) -> bool {
        if matches!(self.said.get(&post), Some(Said::Shown | Said::Told)) {
            return false;
        }
        let page = publisher.page(post);
        let before = self.said.get(&post).copied();
        let (said, is_gone) = match (page, before) {
            (Page::Error, _) => return false,
            (Page::Shown, _) => (Said::Shown, false),
            (Page::Gone, _) => (Said::Told, true),
            (Page::Missing, Some(Said::Missing(hour))) if publisher.hour - hour >= APART_HOURS => {
                (Said::Told, true)
            }
            (Page::Missing, Some(before)) => (before, false),
            (Page::Missing, None) => (Said::Missing(publisher.hour), false),
        };
        self.said.insert(post, said);
        is_gone
    }

    /// Whether the page of a post that absence proves gone does not say otherwise.
    pub(crate) fn believes(&mut self, post: u32, publisher: &mut Publisher) -> bool {
        let is_shown = matches!(self.said.get(&post), Some(Said::Shown));
        !is_shown && publisher.page(post) != Page::Shown
    }

    /// What is not missed any more begins anew when it is missed again.
    pub(crate) fn forget_all_but(&mut self, missed: &[u32]) {
        self.said.retain(|post, _| missed.contains(post));
    }
}
