//! The key file of `IndexNow` at the host of a site, by which search engines know that we may
//! speak for it. The only path of that kind at a site; not what is sent.

use crate::{
    catalog::ProxiedSite,
    edge::body::{MountService, Response, ServeBody, plain},
    serve::{
        answers::refusal::Refusal,
        feeds::context::ServeContext,
        routing::mount::{Handler, answer_of},
    },
};
use http::{Method, Request, StatusCode, request::Parts};
use std::sync::Arc;

/// Characters of a key of ours.
const KEY_CHARS: usize = 32;

/// The key that a path would be the file of, as ours are made.
fn key_of(path: &str) -> Option<&str> {
    let key = path.strip_prefix('/')?.strip_suffix(".txt")?;
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (key.len() == KEY_CHARS && key.bytes().all(is_hex)).then_some(key)
}

/// True for a request that could be for the key file of a site.
pub(crate) fn could_be_key(context: &ServeContext, request: &Parts) -> bool {
    key_of(request.uri.path()).is_some()
        && matches!(request.method, Method::GET | Method::HEAD)
        && context
            .catalog()
            .site_of(request)
            .is_some_and(|site| site.settings.indexnow)
}

/// The key file. The origin answers for every other path that looks like one.
#[derive(Clone)]
pub(crate) struct IndexKey {
    pub(crate) context: Arc<ServeContext>,
    pub(crate) origin: MountService,
}

impl Handler for IndexKey {
    async fn handle(&self, request: &Parts, body: ServeBody) -> Result<Response, Refusal> {
        let context = &self.context;
        let asked = key_of(request.uri.path());
        let public_url = context.readers.site().public_url();
        let root = |site: &Arc<ProxiedSite>| site.settings.public_root(public_url);
        let root = context.catalog().site_of(request).map(root);
        if let Some((root, asked)) = root.zip(asked) {
            let row = context.store.index_now(root.as_str()).await?;
            if row.is_some_and(|row| row.key.reveal() == asked) {
                return Ok(plain(StatusCode::OK, asked.to_owned()));
            }
        }
        let request = Request::from_parts(request.clone(), body);
        Ok(answer_of(&self.origin, request).await)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_that_a_key_of_ours_may_have_is_looked_up_r_2() {
        let key = "0123456789abcdef0123456789abcdef";
        assert_eq!(key_of(&format!("/{key}.txt")), Some(key));
        for other in ["/robots.txt", "/0123456789ABCDEF0123456789ABCDEF.txt"] {
            assert_eq!(key_of(other), None);
        }
        assert_eq!(key_of(&format!("/a/{key}.txt")), None);
        assert_eq!(key_of(&format!("/{key}0.txt")), None);
    }
}
