//! One life of everfeed, from its start to its stop or crash: its parts as the application wires
//! them, over the disk and the network of the world.

use super::{
    mirror::KeptPresents,
    network::{Fate, broken, to_publishers, travel},
    plan::{Category, Shown},
    publisher::Publisher,
    push::{CallbackSide, PUSH_ITEMS_MAX},
    world::{PromptDisk, World, WorldClock, WorldDisk, jitter},
};
use bytes::Bytes;
use everfeed::{
    app::groups::GroupKeeper,
    auth::AccessSettings,
    catalog::{
        self, Catalog, FeedSettings, GroupSettings, ReadGate, RegistrationProgress, ShowRule,
    },
    clock::Clock,
    edge::body::ServeBody,
    feed::{filter::Filter, record::FeedNo},
    hub::{self, CallbackParts, Callbacks, Hub, ProcessAddresses},
    ingest::{self, Computing, FeedChange, FeedSpec, PollSettings, Poller, Upstream},
    layers::{ClientConfig, FetchError, Governor, OwnMark, client::upstream_over},
    notify::Notify,
    readers::{self, Readers},
    render::Site,
    serve::{
        self,
        answers::first_seen::FirstSeen,
        feeds::{context::ServeContext, long_poll::Waiters},
        own_mounts::{PushInletParts, own_mounts},
        routing::{router::Router, stack::stack},
    },
    store::{Store, StoreError, memory::Memory},
    telemetry::Metrics,
};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::{convert::Infallible, net::SocketAddr, num::NonZeroU32, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;
use tower::{BoxError, ServiceBuilder, ServiceExt as _, util::BoxCloneSyncService};
use url::Url;

/// The root of all URLs.
pub(crate) const ROOT: &str = "http://feeds.example";

/// Name of the group.
pub(crate) const GROUP: &str = "all";

/// The shortest and the longest time between polls, in seconds.
const POLL_SECS: [u64; 2] = [60, 900];

/// everfeed at work.
pub(crate) struct Life {
    world: Arc<World>,
    store: Arc<dyn Store>,
    /// The same store for a look at once.
    pub(crate) look: Memory,
    pub(crate) presents: KeptPresents,
    notify: Arc<Notify>,
    pub(crate) catalog: Catalog,
    poller: Poller,
    hub: Arc<Hub>,
    service: BoxCloneSyncService<Request<Full<Bytes>>, Response<ServeBody>, Infallible>,
    stop: CancellationToken,
    side: CallbackSide,
}

/// An answer that was read to its end.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Life {
    /// Starts with the configuration of now.
    pub(crate) async fn start(
        world: &Arc<World>,
        callbacks: Callbacks,
        side: CallbackSide,
    ) -> Result<Self, StoreError> {
        let clock: Arc<dyn Clock> = Arc::new(WorldClock(world.clone()));
        let pace = Arc::new(WorldDisk(world.clone()));
        let store: Arc<dyn Store> = Arc::new(Memory::on(&world.disk, clock.clone(), pace));
        let look = Memory::on(&world.disk, clock.clone(), Arc::new(PromptDisk));
        let feeds = settings(world);
        let progress = RegistrationProgress::of(feeds.len());
        let snapshot = catalog::register(&*store, feeds, &progress).await?;
        let catalog = Catalog::new(snapshot);
        let gate = ReadGate::without_users(catalog.clone(), clock.clone());
        let notify = Arc::new(Notify::new());
        let site = Site::new(&Url::parse(ROOT).unwrap(), "");
        let limits = readers::Config::default();
        let readers = Readers::new(
            store.clone(),
            notify.clone(),
            clock.clone(),
            Arc::new(site.clone()),
            limits,
        );
        let announcing = catalog.clone();
        let announces = move |feed| announcing.snapshot().announces_deletions(feed);
        let readers = Arc::new(readers.with_announced(announces));
        let context = ingest::Context {
            jitter,
            computing: Computing::InPlace,
            ..ingest::Context::new(store.clone(), notify.clone(), clock.clone())
        };
        let many = NonZeroU32::new(1_000_000).unwrap();
        let client = upstream_over(
            &ClientConfig::default(),
            Governor::new(many, many),
            to_publishers(world),
        );
        let contact = Url::parse(ROOT).unwrap();
        let upstream = Upstream::new(client, contact, clock.clone());
        let polled = catalog.snapshot();
        let polled = polled
            .polled()
            .map(|feed| FeedSpec::from(&**feed))
            .collect();
        let poller = Poller::load(context, upstream, polled).await?;
        let hub = Arc::new(Hub::new(hub::Parts {
            config: hub::Config {
                push_items_max: PUSH_ITEMS_MAX,
                ..hub::Config::default()
            },
            readers: readers.clone(),
            store: store.clone(),
            notify: notify.clone(),
            clock: clock.clone(),
            callbacks: CallbackParts {
                service: callbacks,
                resolver: Arc::new(OneAddress),
                user_agent: HeaderValue::from_static("everfeed"),
                own: ProcessAddresses::default(),
            },
            gate: gate.clone(),
            metrics: Metrics::default(),
            jitter,
        }));
        let stop = CancellationToken::new();
        let config = serve::Config::default();
        let context = Arc::new(ServeContext {
            first_seen: FirstSeen::default(),
            readership: Arc::default(),
            readers,
            store: store.clone(),
            clock,
            gate,
            own_calls: OwnMark::default(),
            takes_cloud: false,
            waiters: Waiters::new(&config),
            config,
            stop: stop.clone(),
        });
        let asked = hub.clone();
        let forms = tower::service_fn(move |request: Request<Bytes>| {
            let hub = asked.clone();
            async move { Ok::<_, Infallible>(hub.handle(request, None).await) }
        });
        let router = Router::new(own_mounts(
            context,
            BoxCloneSyncService::new(forms),
            PushInletParts::none(),
            None,
        ));
        let service = ServiceBuilder::new()
            .map_response(|answer: Response<_>| answer.map(UnsyncBoxBody::new))
            .service(stack(router, Metrics::default()));
        let life = Self {
            world: world.clone(),
            look,
            presents: KeptPresents::default(),
            store,
            notify,
            catalog,
            poller,
            hub,
            service: BoxCloneSyncService::new(service),
            stop,
            side,
        };
        life.announce().await?;
        life.hub.start(&[]).await?;
        let groups = GroupKeeper {
            store: life.store.clone(),
            notify: life.notify.clone(),
            catalog: life.catalog.clone(),
            site,
        };
        tokio::spawn(groups.run(life.stop.clone()));
        let (polling, stop) = (life.poller.clone(), life.stop.clone());
        tokio::spawn(async move { drop(polling.run(stop).await) });
        Ok(life)
    }

    /// Announces the heads of groups and parts that nobody has announced.
    async fn announce(&self) -> Result<(), StoreError> {
        let snapshot = self.catalog.snapshot();
        let feeds = snapshot.feeds().map(|feed| feed.no);
        for no in feeds.chain(snapshot.parts()) {
            let record = self.store.feed(no).await?;
            if !record.is_ready() || self.notify.head(no).is_none() {
                self.notify.moved(no, record.head());
            }
        }
        Ok(())
    }

    /// Takes in the configuration of now, as a reload does.
    pub(crate) async fn reload(&self) -> Result<(), StoreError> {
        let feeds = settings(&self.world);
        let progress = RegistrationProgress::of(feeds.len());
        let snapshot = catalog::register(&*self.store, feeds, &progress).await?;
        let before = self.catalog.snapshot();
        let changes = catalog::diff(&before, &snapshot);
        for no in changes
            .added
            .iter()
            .map(|feed| feed.no)
            .chain(snapshot.parts())
        {
            let record = self.store.feed(no).await?;
            if !record.is_ready() || self.notify.head(no).is_none() {
                self.notify.moved(no, record.head());
            }
        }
        let unused: Vec<FeedNo> = before
            .parts()
            .filter(|no| snapshot.feed_no(*no).is_none())
            .collect();
        self.catalog.publish(snapshot);
        for part in unused {
            if let Err(StoreError::UnknownFeed(_)) = self.store.feed(part).await {
                self.notify.forget(part);
            }
        }
        let polled = |feed: &Arc<catalog::RegisteredFeed>| !feed.is_group();
        let added = changes.added.iter().filter(|feed| polled(feed));
        let added = added.map(|feed| FeedChange::Added(FeedSpec::from(&**feed)));
        let changed = changes.changed.iter().map(|change| &change.feed);
        let changed = changed.filter(|feed| polled(feed));
        let changed = changed.map(|feed| FeedChange::Changed(FeedSpec::from(&**feed)));
        let removed = changes
            .removed
            .iter()
            .map(|feed| FeedChange::Removed(feed.no));
        self.poller
            .apply_all(added.chain(changed).chain(removed).collect::<Vec<_>>());
        Ok(())
    }

    /// The callbacks of its subscribers.
    pub(crate) fn callback_side(&self) -> CallbackSide {
        self.side.clone()
    }

    /// Stops in order.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.hub.shutdown(Duration::from_secs(10)).await;
        // The poller drains meanwhile.
        tokio::time::sleep(Duration::from_secs(12)).await;
        drop(self.store.close().await);
    }

    /// The number of a feed by its name.
    pub(crate) fn feed_no(&self, name: &str) -> Option<FeedNo> {
        Some(self.catalog.snapshot().feed(name)?.no)
    }

    /// The answer to a request, without the network.
    pub(crate) async fn answer(&self, request: Request<Full<Bytes>>) -> Response<ServeBody> {
        let answer = self.service.clone().oneshot(request).await;
        answer.unwrap_or_else(|never| match never {})
    }

    /// The head of an answer to a request that travels on the network.
    pub(crate) async fn open(
        &self,
        way: &str,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<ServeBody>, FetchError> {
        let fate = Fate::of(&self.world, way);
        travel(&self.world, way, fate).await;
        if fate == Fate::Lost {
            return Err(broken());
        }
        if fate == Fate::Doubled {
            drop(self.answer(request.clone()).await);
        }
        let response = self.answer(request).await;
        self.world.point("before an answer is sent").await;
        if fate == Fate::AnswerLost {
            return Err(broken());
        }
        Ok(response)
    }

    /// The whole answer to a request that travels on the network.
    pub(crate) async fn ask(
        &self,
        way: &str,
        request: Request<Full<Bytes>>,
    ) -> Result<Answer, FetchError> {
        let (parts, body) = self.open(way, request).await?.into_parts();
        let body = body.collect().await.map_err(|_: BoxError| broken())?;
        travel(&self.world, way, Fate::Well).await;
        Ok(Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: body.to_bytes(),
        })
    }
}

/// The feeds of the configuration of now.
fn settings(world: &World) -> Vec<FeedSettings> {
    let configured = world.state().configured.clone();
    let mut feeds: Vec<FeedSettings> = Vec::new();
    for (no, shown) in configured {
        let url = format!("http://{}/feed", Publisher::host(no));
        let mut feed = FeedSettings::new(feed_name(no), Url::parse(&url).unwrap());
        let [min_secs, max_secs] = POLL_SECS;
        feed.poll = PollSettings {
            min_secs: Some(min_secs),
            max_secs,
        };
        match shown {
            Shown::All => {}
            Shown::Only(category) => feed.show.push(show(category)),
            Shown::Nothing => feed.access = AccessSettings::Users,
        }
        feeds.push(feed);
    }
    if world.plan.has_group {
        let group = GroupSettings {
            name: GROUP.to_owned(),
            members: feeds.iter().map(|feed| feed.name.clone()).collect(),
            title: None,
            access: AccessSettings::default(),
        };
        feeds.push(group.as_feed());
    }
    feeds
}

/// The rule by which everybody sees the posts of a category.
fn show(category: Category) -> ShowRule {
    ShowRule {
        access: AccessSettings::default(),
        filter: Filter::spelt(&format!("category={}", category.name())).unwrap(),
    }
}

/// The name of the feed of a publisher.
pub(crate) fn feed_name(no: usize) -> String {
    format!("blog{no}")
}

/// All names have one address.
struct OneAddress;

impl Resolve for OneAddress {
    fn resolve(&self, _: Name) -> Resolving {
        let address = SocketAddr::from(([192, 0, 2, 1], 0));
        Box::pin(async move { Ok(Box::new([address].into_iter()) as Addrs) })
    }
}
