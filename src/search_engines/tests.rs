//! Sites and a stub of an engine.
