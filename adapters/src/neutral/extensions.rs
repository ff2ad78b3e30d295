//! Extension fields of the neutral form, read from foreign markup; the common fields are `neutral`'s.

use serde_json::{Map, Value};

use crate::{Entry, Head};

/// Adds what the foreign markup of a head says.
pub(super) fn head(_head: &Head, _fields: &mut Map<String, Value>) {}

/// Adds what the foreign markup of an entry says.
pub(super) fn entry(_entry: &Entry, _fields: &mut Map<String, Value>) {}
