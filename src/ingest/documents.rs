//! Documents as polls and walks share them: cut into entries, staged as pages, and the pages
//! opened again.

mod given_up;
mod import;
mod pages;
mod sliced;

pub(super) use given_up::give_up_old_walk;
pub(super) use import::{Import, opened};
pub(super) use pages::{deflate, keys_of, may_lack, strong_of, unread, window};
pub(super) use sliced::{Sliced, is_damaged};
