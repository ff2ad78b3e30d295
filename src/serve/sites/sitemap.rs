//! `/sitemap.xml` of a site: made of the posts of its public feeds, only if the old
//! server has none. That is asked first each time; not how a sitemap is written (`render`).

use crate::{
    catalog::{CatalogSnapshot, ProxiedSite},
    edge::{
        body::{MountService, Response, ServeBody, whole},
        fields::{list_value, set},
    },
    feed::{
        filter::Filter,
        order::Order,
        page::PageQuery,
        position::Position,
        record::{FeedNo, Head},
        site_page::{last_change, page_of},
        stamp::Stamp,
    },
    locks::lock,
    readers::{Coding, coding::coded},
    render::sitemap::{SITEMAP_TYPE, SitemapPages, document_at},
    serve::{
        answers::{accept, refusal::Refusal},
        feeds::context::ServeContext,
        routing::mount::{Handler, answer_of},
    },
    store::StoreError,
};
use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
        X_CONTENT_TYPE_OPTIONS,
    },
    request::Parts,
};
use moka::future::Cache;
use sha2::{Digest as _, Sha256};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::Semaphore;
use url::Url;

/// Items that are read at once.
const ITEMS_MAX: usize = 500;
/// Bytes of stored items that are read at once, though never less than one item.
const BYTES_MAX: usize = 4 << 20;
/// Bytes of sitemaps that are kept in memory.
const KEPT_BYTES: u64 = 128 << 20;
/// Time for which a sitemap is kept that nobody asks for.
const KEPT_IDLE: Duration = Duration::from_secs(600);

/// The answers of the old servers about their sitemaps, by the roots of their sites. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct OriginSitemaps(Arc<Mutex<BTreeMap<String, OriginSitemap>>>);

/// The answer of an old server at `/sitemap.xml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginSitemap {
    /// It has none.
    Absent,
    /// It has one, since this look; the status of its answer.
    Present(Stamp, StatusCode),
}

impl OriginSitemaps {
    /// The answer of the old server of a site since the start; `None` before it was asked.
    pub fn of(&self, root: &str) -> Option<OriginSitemap> {
        lock(&self.0).get(root).copied()
    }

    // Decides: Has the old server of a site a sitemap of its own?
    /// Notes its answer. One that says nothing of it leaves what is known.
    fn note(&self, root: &str, status: StatusCode, now: Stamp) {
        let is_there =
            status.is_success() || status.is_redirection() || status == StatusCode::NOT_MODIFIED;
        let mut known = lock(&self.0);
        if is_absent(status) {
            known.insert(root.to_owned(), OriginSitemap::Absent);
        } else if is_there && !matches!(known.get(root), Some(OriginSitemap::Present(..))) {
            tracing::info!(
                "{root} has a sitemap of its own ({status}), which is passed on in the place of that of everfeed"
            );
            known.insert(root.to_owned(), OriginSitemap::Present(now, status));
        }
    }
}

fn is_absent(status: StatusCode) -> bool {
    matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE)
}

/// True for a request that could be for the sitemap of a site.
pub(crate) fn could_be_sitemap(context: &ServeContext, request: &Parts) -> bool {
    document_at(request.uri.path()).is_some()
        && matches!(request.method, Method::GET | Method::HEAD)
        && context
            .catalog()
            .site_of(request)
            .is_some_and(|site| site.settings.sitemap)
}

/// The sitemaps of all sites.
#[derive(Clone)]
pub(crate) struct Sitemaps {
    context: Arc<ServeContext>,
    origin: MountService,
    seen: OriginSitemaps,
    kept: Cache<SitemapKey, Arc<SiteSitemap>>,
    /// One is made at a time: each reads all posts of its site.
    turn: Arc<Semaphore>,
}

/// The root of a site, and the feeds of its sitemap as they are.
type SitemapKey = (String, Vec<(FeedNo, Head)>);

/// The sitemap of a site.
struct SiteSitemap {
    documents: Vec<SitemapDocument>,
}

/// One document of it.
struct SitemapDocument {
    tag: String,
    body: Bytes,
    /// The codings that were asked for.
    coded: Mutex<Vec<(Coding, Bytes)>>,
}

impl SitemapDocument {
    fn new(text: String) -> Self {
        Self {
            tag: hex::encode(&Sha256::digest(&text)[..16]),
            body: text.into(),
            coded: Mutex::default(),
        }
    }

    async fn in_coding(&self, coding: Coding) -> Bytes {
        let is_it = |(known, _): &&(Coding, Bytes)| *known == coding;
        if let Some((_, made)) = lock(&self.coded).iter().find(is_it) {
            return made.clone();
        }
        let made = coded(coding, self.body.clone()).await;
        lock(&self.coded).push((coding, made.clone()));
        made
    }
}

impl Sitemaps {
    pub(crate) fn new(
        context: Arc<ServeContext>,
        origin: MountService,
        seen: OriginSitemaps,
    ) -> Self {
        let weigh = |_: &SitemapKey, made: &Arc<SiteSitemap>| {
            let bytes: usize = made.documents.iter().map(|one| one.body.len()).sum();
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        let kept = Cache::builder()
            .max_capacity(KEPT_BYTES)
            .weigher(weigh)
            .time_to_idle(KEPT_IDLE)
            .build();
        Self {
            context,
            origin,
            seen,
            kept,
            turn: Arc::new(Semaphore::new(1)),
        }
    }

    /// The sitemap of a site as its feeds are now.
    async fn sitemap(
        &self,
        catalog: &CatalogSnapshot,
        site: &ProxiedSite,
        root: &Url,
    ) -> Result<Arc<SiteSitemap>, Refusal> {
        let head = |no| self.context.readers.head(no).ok().filter(|head| head.ready);
        let feeds = catalog.public_feeds_of_site(site.no);
        let feeds: Vec<(FeedNo, Head)> = feeds
            .filter_map(|feed| Some((feed.no, head(feed.no)?)))
            .collect();
        let made = self
            .kept
            .try_get_with((root.to_string(), feeds.clone()), async {
                let _turn = self.turn.acquire().await;
                self.made(&feeds, root).await.map(Arc::new)
            });
        let made = made.await;
        made.map_err(|error: Arc<StoreError>| {
            Refusal::from(crate::readers::ReadError::Store(error))
        })
    }

    // Decides: Which posts are in the sitemap of a site?
    /// Makes a sitemap of the live posts of these feeds, those that changed last first.
    async fn made(&self, feeds: &[(FeedNo, Head)], root: &Url) -> Result<SiteSitemap, StoreError> {
        let mut pages = SitemapPages::default();
        'feeds: for (feed, _) in feeds {
            let mut since = None;
            loop {
                let query = PageQuery {
                    since: since.take(),
                    max: ITEMS_MAX,
                    bytes_max: BYTES_MAX,
                    filter: Filter::Live,
                    ..PageQuery::all(*feed, Order::MODIFIED_REVERSE)
                };
                let page = self.context.store.page(query).await?;
                for item in &page.items {
                    let Some(url) = page_of(item, root).filter(|_| !item.is_gone()) else {
                        continue;
                    };
                    if !pages.add(url, last_change(item)) {
                        tracing::warn!("The sitemap of {root} is full, and lacks older posts");
                        break 'feeds;
                    }
                }
                if !page.more {
                    break;
                }
                since = Some(Position::of_cursor(&page.last_cursor));
            }
        }
        if pages.is_empty() {
            return Ok(SiteSitemap {
                documents: Vec::new(),
            });
        }
        let root = root.to_string();
        // It may be tens of megabytes.
        let documents = tokio::task::spawn_blocking(move || {
            let documents = pages.documents(&root).into_iter();
            documents.map(SitemapDocument::new).collect()
        });
        let documents = documents
            .await
            .map_err(|error| StoreError::Failed(format!("a sitemap was not made: {error}")))?;
        Ok(SiteSitemap { documents })
    }
}

impl Handler for Sitemaps {
    async fn handle(&self, request: &Parts, body: ServeBody) -> Result<Response, Refusal> {
        let context = &self.context;
        let asked = Request::from_parts(request.clone(), body);
        let theirs = answer_of(&self.origin, asked).await;
        let number = document_at(request.uri.path());
        let catalog = context.catalog();
        let Some((site, number)) = catalog.site_of(request).zip(number) else {
            return Ok(theirs);
        };
        let public_url = context.readers.site().public_url();
        let root = site.settings.public_root(public_url);
        if number == 0 {
            let now = Stamp::from_micros(context.clock.now_us());
            self.seen.note(root.as_str(), theirs.status(), now);
        }
        // An old server that cannot be reached may have a sitemap: search engines come again.
        if !is_absent(theirs.status()) {
            return Ok(theirs);
        }
        let sitemap = self.sitemap(&catalog, site, &root).await?;
        let Some(document) = sitemap.documents.get(number) else {
            return Ok(theirs);
        };
        Ok(answer(request, document).await)
    }
}

/// A document with validators, in the coding that its reader takes.
async fn answer(request: &Parts, document: &SitemapDocument) -> Response {
    let coding = accept::coding_for(request);
    let etag = format!("W/\"{}{}\"", document.tag, accept::coding_tag(coding));
    let mut response = Response::default();
    let known = list_value(&request.headers, &IF_NONE_MATCH);
    if known.is_some_and(|known| accept::names_tag(&known, &etag)) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        *response.body_mut() = whole(document.in_coding(coding).await);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(SITEMAP_TYPE));
        if let Some(token) = coding.token() {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(token));
        }
    }
    let headers = response.headers_mut();
    set(headers, ETAG, etag);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
