//! Finding about the page of a post that is in the feed, or about the front page of a feed without
//! posts; not what it means for other pages.

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
    /// The feed shows no post, and the front page of its site, asked for in the place of one, is
    /// there.
    FrontPage,
}
