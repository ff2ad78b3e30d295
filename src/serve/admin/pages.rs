//! The operator's pages: which path is one, and the answer to a request for it; not their text.

use super::{AdminAnswer, OwnInsight, bad_request, failed};
use crate::{
    edge::fields::list_value,
    render::overview,
    serve::{answers::accept, feeds::list_range::FeedRange},
};
use http::{Method, Request, StatusCode, header::ACCEPT};
use percent_encoding::percent_decode_str;

/// The answer to a request for a page of the operator.
pub(super) async fn answer<I: OwnInsight + ?Sized>(
    insight: &I,
    method: &Method,
    feed: Option<String>,
    query: &str,
) -> AdminAnswer {
    let feed = feed.filter(|name| !name.is_empty());
    if !matches!(*method, Method::GET | Method::HEAD) {
        return AdminAnswer::not_allowed("GET, HEAD", "GET\n");
    }
    let range = match FeedRange::of_operator(query) {
        Ok(range) => FeedRange {
            max: Some(range.max.unwrap_or(PAGE_FEEDS_MAX).min(PAGE_FEEDS_MAX)),
            name: feed,
            ..range
        },
        Err(why) => return bad_request(why),
    };
    match insight.page(range).await {
        Ok(Some(page)) => AdminAnswer::new(
            StatusCode::OK,
            overview::CONTENT_TYPE,
            String::from_utf8_lossy(&page).into_owned(),
        ),
        Ok(None) => AdminAnswer::text(
            StatusCode::NOT_FOUND,
            "no feed of that name is configured\n",
        ),
        Err(why) => failed(why),
    }
}

/// Feeds on a page of the operator.
const PAGE_FEEDS_MAX: usize = 100;

/// True for a request of a browser.
pub(super) fn prefers_page(request: &Request<()>) -> bool {
    let accepted = list_value(request.headers(), &ACCEPT);
    accept::prefers_page(accepted.as_deref())
}

/// The feed of whose page a path is, decoded; empty for the overview, and `None` for other paths.
pub(super) fn page_of(path: &str) -> Option<String> {
    if path == "/" {
        return Some(String::new());
    }
    let rest = path.strip_prefix(overview::PATH)?;
    if rest.is_empty() {
        return Some(String::new());
    }
    let name = rest.strip_prefix('/')?;
    Some(percent_decode_str(name).decode_utf8_lossy().into_owned())
}
