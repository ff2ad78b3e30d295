//! Filled when the stores are there.
