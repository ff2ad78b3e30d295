//! Finding about the page of a post that is in the feed; not what it means for other pages.

use serde::{Deserialize, Serialize};

/// The page of a post that is in the feed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ControlFinding {
    /// No post of the feed has a page at the feed's own host.
    #[default]
    NoPost,
    /// It is there and shows its post.
    Shown,
    /// It is there, and does not show its post: a shell for scripts, a front page.
    Silent,
    /// It is not found (404).
    NotFound,
    /// It is gone (410).
    Gone,
    /// It is refused, or there is no answer.
    Refused,
    /// It leads to another host.
    Elsewhere,
}
