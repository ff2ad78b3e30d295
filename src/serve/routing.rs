//! The way of a request through the layers to the mount that takes it; not which mounts there are
//! (`own_mounts`), nor what they answer.

pub mod router;

pub mod mount;
pub(super) mod own_layers;

pub mod stack;
