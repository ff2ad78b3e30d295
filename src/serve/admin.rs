//! The operator's listener.
