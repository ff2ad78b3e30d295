//! What there is: the list of feeds and the description of each, for programs and for people.

use super::{
    accept,
    rescue::{Refusal, Response},
    router::Routes,
};
use http::request::Parts;
pub(super) async fn list(_routes: &Routes, _request: &Parts) -> Result<Response, Refusal> {
    let _ = accept::wants_html(None);
    Err(Refusal::busy())
}
pub(super) async fn about(_routes: &Routes, _request: &Parts, _name: &str) -> Result<Response, Refusal> {
    Err(Refusal::busy())
}
