//! The document formats: what the elements of each mean. The vocabularies that stand beside them
//! are `extensions`.

pub(crate) mod atom;
pub(crate) mod cdf;
pub(crate) mod json_feed;
pub(crate) mod rdf;
pub(crate) mod resource;
pub(crate) mod rss;
pub(crate) mod version;
