//! The page about the readers of a site for its owner, at an address with a secret
//! (`site.readers_secret`): only of the feeds of that site. Without the secret there is nothing.

use crate::{
    catalog::{CatalogSnapshot, ProxiedSite},
    edge::body::{self, Response, ServeBody},
    feed::{record::FeedNo, stamp::Stamp},
    readership::ReaderFigures,
    render::reader_page,
    serve::{
        answers::refusal::Refusal,
        feeds::context::ServeContext,
        reader_sheets::{reader_sheet, to_the_minute},
        routing::{
            mount::{Handler, Mount},
            own_layers::guarded,
        },
    },
};
use http::{
    HeaderName, HeaderValue, Method,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY},
    request::Parts,
};
use std::{collections::HashMap, sync::Arc};

/// Feeds on a page at most.
const FEEDS_MAX: usize = 200;

const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");

/// Counts active push subscriptions by feed; `None` while another process pushes.
pub type PushCounts = Arc<dyn Fn() -> Option<HashMap<FeedNo, usize>> + Send + Sync>;

/// The mount of the pages of all sites that have one.
pub(crate) fn mount(context: &Arc<ServeContext>, subscribers: PushCounts) -> Mount {
    let page = ReadersPage {
        context: context.clone(),
        subscribers,
    };
    let context = context.clone();
    let takes = move |request: &Parts| site_of(&context, request).is_some();
    // Pages of other origins have no business here.
    Mount::bare(takes, page)
}

// Decides: Who sees the readers of a site?
/// The site of whose readers a request asks with the secret of that site, and the catalog that has it.
fn site_of(
    context: &ServeContext,
    request: &Parts,
) -> Option<(Arc<CatalogSnapshot>, Arc<ProxiedSite>)> {
    let urls = context.readers.site();
    let given = urls.readers_secret(request.uri.path())?;
    let catalog = context.catalog();
    let site = catalog.site_of(request)?.clone();
    let secret = site.settings.readers_secret.as_ref()?;
    secret.is(given.as_bytes()).then_some((catalog, site))
}

/// The pages.
#[derive(Clone)]
struct ReadersPage {
    context: Arc<ServeContext>,
    subscribers: PushCounts,
}

impl ReadersPage {
    /// Figures of the feeds of a site, those with the most claimed readers first.
    fn figures(
        &self,
        catalog: &CatalogSnapshot,
        site: &ProxiedSite,
        now: Stamp,
    ) -> Vec<ReaderFigures> {
        let subscribers = (self.subscribers)();
        let of_site = catalog.feeds().filter(|feed| {
            let place = feed.settings.legacy.as_ref();
            place.is_some_and(|place| place.site == site.no)
        });
        let readership = &self.context.readership;
        let figures = of_site.filter_map(|feed| {
            let pushed = subscribers.as_ref();
            let pushed = pushed.map(|counts| counts.get(&feed.no).copied().unwrap_or(0));
            let figures = readership.figures(feed.no, now);
            let is_shown = figures.is_some() || pushed.is_some_and(|pushed| pushed > 0);
            is_shown.then(|| ReaderFigures {
                feed: feed.settings.name.clone(),
                push_subscribers: pushed,
                ..figures.unwrap_or_default()
            })
        });
        let mut figures: Vec<ReaderFigures> = figures.collect();
        let order = |it: &ReaderFigures| (it.claimed, it.month.requests);
        figures.sort_by_key(|it| std::cmp::Reverse(order(it)));
        figures
    }
}

impl Handler for ReadersPage {
    const METHODS: &'static str = "GET, HEAD";

    async fn handle(&self, request: &Parts, _: ServeBody) -> Result<Response, Refusal> {
        if !matches!(request.method, Method::GET | Method::HEAD) {
            return Err(Refusal::method(Self::METHODS));
        }
        let Some((catalog, site)) = site_of(&self.context, request) else {
            return Err(self.context.unknown("there is nothing here"));
        };
        let now = Stamp::from_micros(self.context.clock.now_us());
        let figures = self.figures(&catalog, &site, now);
        let since = to_the_minute(&self.context.readership.since().rfc3339());
        let mut lines = vec![format!(
            "Counted since {since}, for 30 days at most. Readers are those that the software of each service claims. No address of a \
             reader is stored."
        )];
        let more = figures.len().saturating_sub(FEEDS_MAX);
        if more > 0 {
            lines.push(format!("More feeds, which are not shown: {more}"));
        }
        let sheets: Vec<_> = figures.iter().take(FEEDS_MAX).map(reader_sheet).collect();
        let root = site
            .settings
            .public_root(self.context.readers.site().public_url());
        let host = root.host_str().unwrap_or("this site");
        let page = reader_page::page(host, &lines, &sheets);
        let mut response = Response::new(body::whole(page));
        let headers = response.headers_mut();
        for (name, value) in [
            (CONTENT_TYPE, reader_page::CONTENT_TYPE),
            (
                CONTENT_SECURITY_POLICY,
                reader_page::CONTENT_SECURITY_POLICY,
            ),
            (CACHE_CONTROL, "private, no-store"),
            (ROBOTS, "noindex, nofollow"),
            (REFERRER_POLICY, "no-referrer"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        Ok(guarded(response))
    }
}
