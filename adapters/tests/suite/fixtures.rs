//! Our own fixtures: XML files that say themselves what they show and what is expected.

#[test]
fn nothing() {}
