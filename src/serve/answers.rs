//! The things that every answer has: its form, its validators, or its refusal; not what it tells.

pub(super) mod accept;
pub(super) mod refusal;
pub(super) mod validators;

pub mod first_seen;

pub(super) mod answer_memory;
