//! The house around a Smart Feed: library half of the `everfeed` binary.

pub mod clock;
pub mod layers;
