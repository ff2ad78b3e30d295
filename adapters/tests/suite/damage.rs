//! Documents broken on purpose: nothing may panic, hang or grow without bound.

#[test]
fn nothing() {}
