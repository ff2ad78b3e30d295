//! JSON as its syntaxes write it, member by member; one without a value is left out. Not which
//! members a syntax has.

use crate::render::document::Document;
use serde::Serialize;

/// An object that is being written.
pub(super) struct JsonObject<'o> {
    out: &'o mut Vec<u8>,
    /// Length of `out` before the first member.
    start: usize,
}

/// The bytes of a document that is one object.
pub(super) fn document(
    document: &Document<'_>,
    members: impl FnOnce(&mut JsonObject<'_>),
) -> Vec<u8> {
    let mut out = Vec::with_capacity(document.capacity_bytes());
    JsonObject::write(&mut out, members);
    out
}

/// The bytes of one item.
pub(super) fn item(members: impl FnOnce(&mut JsonObject<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    JsonObject::write(&mut out, members);
    out
}

impl JsonObject<'_> {
    /// Writes an object behind what there is.
    pub(super) fn write(out: &mut Vec<u8>, members: impl FnOnce(&mut JsonObject<'_>)) {
        out.push(b'{');
        let start = out.len();
        members(&mut JsonObject { out, start });
        out.push(b'}');
    }

    /// A member, whatever its value is.
    pub(super) fn put(&mut self, name: &str, value: impl Serialize) {
        self.name(name);
        serde_json::to_writer(&mut *self.out, &value)
            .expect("strings and numbers always serialize into memory");
    }

    /// A member that has a value.
    pub(super) fn put_some(&mut self, name: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }

    /// A member that is an object, be it empty or not.
    pub(super) fn object(&mut self, name: &str, members: impl FnOnce(&mut JsonObject<'_>)) {
        self.name(name);
        JsonObject::write(self.out, members);
    }

    /// A member that is an object with something in it.
    pub(super) fn object_some(&mut self, name: &str, members: impl FnOnce(&mut JsonObject<'_>)) {
        let before = self.out.len();
        self.object(name, members);
        if self.out.ends_with(b"{}") {
            self.out.truncate(before);
        }
    }

    /// A member that is a list of objects, be it empty or not.
    pub(super) fn list<T>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut JsonObject<'_>, T),
    ) {
        self.name(name);
        self.out.push(b'[');
        let start = self.out.len();
        for value in values {
            if self.out.len() > start {
                self.out.push(b',');
            }
            JsonObject::write(self.out, |object| write(object, value));
        }
        self.out.push(b']');
    }

    /// A member that is a list with something in it.
    pub(super) fn list_some<T>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = T>,
        write: impl FnMut(&mut JsonObject<'_>, T),
    ) {
        let before = self.out.len();
        self.list(name, values, write);
        if self.out.ends_with(b"[]") {
            self.out.truncate(before);
        }
    }

    fn name(&mut self, name: &str) {
        if self.out.len() > self.start {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_value_is_left_out_with_its_comma() {
        let nothing = None::<&str>;
        let no_member = |_: &mut JsonObject<'_>| {};
        let member = |json: &mut JsonObject<'_>, value| json.put("v", value);
        let written = item(|json| {
            json.put_some("a", nothing);
            json.object_some("b", no_member);
            json.list_some("c", [0_u8; 0], member);
            json.put("d", "\"{}");
            json.put_some("e", nothing);
            json.object("f", no_member);
            json.list("g", [0_u8; 0], member);
            json.list_some("h", [1_u8, 2], member);
            json.object_some("i", |json| json.object("j", no_member));
            json.list_some("k", [0_u8; 0], member);
        });
        assert_eq!(
            String::from_utf8(written).unwrap(),
            r#"{"d":"\"{}","f":{},"g":[],"h":[{"v":1},{"v":2}],"i":{"j":{}}}"#
        );
    }
}
