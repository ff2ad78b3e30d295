//! The common ground of formats and extensions: the scope and the dialect that an element stands
//! in, the draft of an entry, and the constructs that several of them share; not what the elements
//! of any one vocabulary mean.

pub(crate) mod construct;
mod dialect;
mod draft;
mod list;
pub(crate) mod person;
mod scope;
pub(crate) mod text_construct;
pub(crate) mod untyped_text;

pub(crate) use dialect::Dialect;
pub(crate) use draft::{Draft, Rank};
pub(crate) use list::{VALUES_MAX, add, add_categories, add_person, fill, has_room};
pub(crate) use scope::{Scope, language_tag};
