//! Documents as polls and walks share them: cut into entries, staged as pages, laid beside older
//! ones.

mod given_up;
mod older;
mod pages;
mod sliced;

pub(super) use given_up::give_up_old_walk;
pub(super) use older::{Import, keys, older, opened, witnesses};
pub(super) use pages::{deflate, keys_of, may_lack, strong_of, unread, window};
pub(super) use sliced::Sliced;
