//! Makes each component from the configuration and from the components that it stands on; not what
//! they do.

use super::{
    accounts::{self, AccountCommands},
    current_work::CurrentWork,
    descriptors::waiting_connections,
    event_log::EventLog,
    explain::Explainer,
    groups::GroupKeeper,
    live_settings::LiveSettings,
    open_listeners::Listening,
    opml_lists::{OpmlLists, OpmlParts},
    polls_for_readers::PollsForReaders,
    push_inlet::WorkInlet,
    relay::Relay,
    reload::Reloader,
    site_feeds::{SiteFaults, SiteWatches},
    upstream_ways::{UpstreamParts, UpstreamWay, UpstreamWays},
};
use crate::{
    acme::{
        AcmeAuthority, AcmeFolder, AcmeKept, AcmeRows, AcmeSettings, CertificateWatch,
        ProtocolParts, authority::ChallengeWay, keeper::KeeperParts,
    },
    alerts::AlertParts,
    auth::{Authenticator, Principal},
    catalog::{Catalog, CatalogSnapshot, ReadGate, RegisteredFeed, Sites},
    clock::Clock,
    config::Config,
    edge::{
        body::{MountService, Response, ServeBody, Streamed},
        client_address::{OverTls, PeerAddress, client_address, is_trusted, may_be_many},
        listen::KeepsHeaderCase,
    },
    events::Happenings,
    feed::stamp::Stamp,
    hub::{self, Hub, ProcessAddresses},
    identity::Identity,
    ingest::{Context, FeedSpec, Poller, Upstream},
    layers::{
        self, ClientConfig, Governor, KnownNets, OwnMark, Signer, public_address::SystemResolver,
    },
    notify::Notify,
    proxy::{Proxy, ProxyPeer},
    readers::Readers,
    readership::Readership,
    render::Site,
    search_engines::{SearchEngineParts, SearchEngines},
    serve::{
        self,
        answers::first_seen::FirstSeen,
        feeds::{context::ServeContext, long_poll::Waiters},
        hub_forms::HubService,
        key_directory::key_directory,
        own_addresses::Listeners,
        own_mounts::{PushInletParts, WayToOrigins, answers_itself, own_mounts},
        routing::mount::Mount,
        sites::{
            poll_for_reader::PollForReader, readers_page::PushCounts, sitemap::OriginSitemaps,
        },
    },
    store::{SealKey, Store},
    subscriber::{self, Subscriber},
    telemetry::Metrics,
    xmpp::{self, Component},
};
use anyhow::Context as _;
use bytes::Bytes;
use http::HeaderValue;
use ipnet::IpNet;
use std::{
    convert::Infallible,
    num::NonZeroU32,
    sync::{Arc, Mutex},
};
use tokio_util::sync::CancellationToken;
use tower::{ServiceBuilder, util::BoxCloneSyncService};
use url::Url;

/// Polls a second at most after a first start, when all feeds were polled at one time.
const POLLS_PER_SEC: u64 = 10;

/// Bytes of the answer of a hub at most.
const HUB_ANSWER_BYTES_MAX: u64 = 64 << 10;

/// PollsForReaders for readers of old addresses at one host at once, without waiting.
const LOOKS_BURST: NonZeroU32 = NonZeroU32::new(20).expect("20 is not 0");

/// PollsForReaders a second at one host after that.
const LOOKS_PER_SEC: NonZeroU32 = NonZeroU32::new(5).expect("5 is not 0");

/// The components that all others stand on.
pub(super) struct Wiring {
    pub(super) config: Config,
    pub(super) gate: ReadGate,
    pub(super) store: Arc<dyn Store>,
    pub(super) notify: Arc<Notify>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) metrics: Metrics,
    /// Idle connections kept for each host of publishers and callbacks.
    pub(super) idle_per_host: usize,
    /// The mark by which listeners know our own polls.
    pub(super) mark: OwnMark,
    /// The keys that sign our requests to publishers.
    identity: Option<Arc<Identity>>,
    /// The networks of publishers, as far as they were looked up.
    nets: KnownNets,
    /// Faults of origins at which feeds are looked for.
    pub(super) site_faults: SiteFaults,
    /// The answers of origins about their sitemaps.
    pub(super) origin_sitemaps: OriginSitemaps,
    /// The readers of the feeds of this process.
    pub(super) readership: Arc<Readership>,
    /// What happens to windows, on its way to the journal.
    pub(super) happenings: Happenings,
    /// The settings that a reload changes.
    pub(super) live: LiveSettings,
}

impl Wiring {
    /// Components over a catalog that holds no feed yet: those of the configuration are registered
    /// later. Users are known at once.
    pub(super) async fn new(
        config: Config,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        idle_per_host: usize,
    ) -> anyhow::Result<Self> {
        let identity = config.upstream.read_identity(&config.server.public_url);
        let identity = identity.map_err(anyhow::Error::from)?.map(Arc::new);
        let sites = Arc::new(Sites::new(&config.site));
        let catalog = Catalog::new(CatalogSnapshot::default().with_sites(sites));
        let (notify, metrics) = (Arc::default(), Metrics::default());
        let accounts = accounts::stored(&*store).await?;
        let auth = Arc::new(Authenticator::new(accounts, clock.clone(), metrics.clone()));
        let gate = ReadGate { catalog, auth };
        let now = Stamp::from_micros(clock.now_us());
        Ok(Self {
            live: LiveSettings::of(&config),
            config,
            gate,
            store,
            notify,
            clock,
            metrics,
            idle_per_host,
            mark: OwnMark::random(),
            identity,
            nets: KnownNets::default(),
            site_faults: SiteFaults::default(),
            origin_sitemaps: OriginSitemaps::default(),
            readership: Arc::new(Readership::new(now)),
            happenings: Happenings::default(),
        })
    }

    /// The ways to publishers. Looks for readers of old addresses have a pace of their own, beside that
    /// of polls, checks and walks.
    pub(super) fn upstream_ways(&self) -> anyhow::Result<UpstreamWays> {
        let signer = self.identity.clone().map(|identity| Signer {
            identity,
            clock: self.clock.clone(),
        });
        let parts = UpstreamParts {
            signer,
            idle_per_host: self.idle_per_host,
            nets: self.nets.clone(),
        };
        let polls = self.upstream_way(&parts, Governor::default())?;
        let looks = self.upstream_way(&parts, Governor::new(LOOKS_BURST, LOOKS_PER_SEC))?;
        Ok(UpstreamWays {
            parts,
            polls,
            looks,
        })
    }

    fn upstream_way(&self, parts: &UpstreamParts, pace: Governor) -> anyhow::Result<UpstreamWay> {
        let config = self.live.upstream();
        let client = parts.client(&config, pace.clone())?;
        let contact = config.contact_url_or(&self.config.server.public_url);
        let upstream = Upstream::new(client, contact.clone(), self.clock.clone())
            .marked(self.mark.clone())
            .with_credentials(self.live.credentials());
        Ok(UpstreamWay { upstream, pace })
    }

    /// The name by which everfeed asks callbacks and authorities.
    fn user_agent(&self) -> anyhow::Result<HeaderValue> {
        let version = env!("CARGO_PKG_VERSION");
        let contact = &self.config.server.public_url;
        Ok(HeaderValue::try_from(format!(
            "everfeed/{version} (+{contact})"
        ))?)
    }

    /// The URLs that are printed.
    fn site(&self) -> Site {
        let (server, xmpp) = (&self.config.server, &self.config.xmpp);
        let service = xmpp.jid.as_deref().filter(|_| xmpp.is_on());
        Site::new(&server.public_url, &server.prefix)
            .with_former(&server.former_public_urls)
            .with_xmpp(service)
    }

    /// Whoever looks for feeds on sites.
    pub(super) fn site_watches(
        &self,
        upstream: &Upstream,
        reloader: &Arc<Reloader>,
    ) -> SiteWatches {
        SiteWatches {
            public_url: self.config.server.public_url.clone(),
            catalog: self.gate.catalog.clone(),
            store: self.store.clone(),
            upstream: upstream.clone(),
            clock: self.clock.clone(),
            reloader: reloader.clone(),
            platforms: self.config.platforms.profiles(),
            faults: self.site_faults.clone(),
        }
    }

    /// Keeps the case of header names while there is a site.
    pub(super) fn keeps_header_case(&self) -> KeepsHeaderCase {
        let catalog = self.gate.catalog.clone();
        Arc::new(move || !catalog.snapshot().sites().is_empty())
    }

    /// The lists of feeds that are read at intervals.
    pub(super) fn opml_lists(&self, upstream: &Upstream, reloader: &Arc<Reloader>) -> OpmlLists {
        OpmlLists::new(OpmlParts {
            settings: self.live.lists(),
            store: self.store.clone(),
            catalog: self.gate.catalog.clone(),
            clock: self.clock.clone(),
            upstream: upstream.clone(),
            reloader: reloader.clone(),
        })
    }

    /// The certificate that everfeed gets itself, if it does. What is kept of it is shown.
    pub(super) async fn own_certificate(&self) -> anyhow::Result<Option<KeeperParts>> {
        let server = &self.config.server;
        let Some(settings) = server.tls.acme.clone() else {
            return Ok(None);
        };
        let kept = self.kept_of(&settings)?;
        let roots = settings
            .roots()
            .map_err(anyhow::Error::msg)
            .context("the file of server.tls.acme.root")?;
        let held = Arc::default();
        let clock = self.clock.clone();
        let authority_name = settings.directory.host_str().unwrap_or_default().to_owned();
        let mut ways = vec![ChallengeWay::TlsAlpn];
        ways.extend(server.tls.redirect_from.map(|_| ChallengeWay::Http));
        let names = settings.names();
        let parts = ProtocolParts {
            settings,
            client: layers::authority(roots)?,
            user_agent: self.user_agent()?,
            kept: kept.clone(),
            held: Arc::clone(&held),
        };
        let authority = Arc::new(AcmeAuthority::new(parts, move || clock.now()));
        let parts = KeeperParts {
            names,
            authority_name,
            authority,
            ways,
            kept,
            held,
            watch: CertificateWatch::default(),
            clock: self.clock.clone(),
            jitter: rand::random,
        };
        let unread = "what is kept of the certificate of server.tls.acme";
        parts.kept.check().await.context(unread)?;
        parts.take_up().await.context(unread)?;
        Ok(Some(parts))
    }

    /// The place of what an authority gives: the database that nodes share, or a folder.
    fn kept_of(&self, settings: &AcmeSettings) -> anyhow::Result<AcmeKept> {
        let store = &self.config.store;
        if store.url.is_none() {
            let path = settings.folder(&store.path);
            let of_folder = || format!("the folder of server.tls.acme, {}", path.display());
            let folder = AcmeFolder::open(&path, &settings.directory).with_context(of_folder)?;
            return Ok(AcmeKept::Folder(folder));
        }
        let file = store.key_file.as_ref();
        let file = file.context("set store.key_file, for what the database keeps of acme")?;
        let of_key = || format!("the key of store.key_file, {}", file.display());
        let key = SealKey::read(file).with_context(of_key)?;
        let nodes = self.store.nodes().context("the store is for one process")?;
        let rows = AcmeRows::new(nodes.sealed_rows(key), &settings.directory);
        Ok(AcmeKept::Rows(rows))
    }

    pub(super) async fn poller(&self, ways: &UpstreamWays) -> anyhow::Result<Poller> {
        let (upstream, looks) = (ways.polls.upstream.clone(), ways.looks.upstream.clone());
        let (store, notify) = (self.store.clone(), self.notify.clone());
        let context = Context {
            metrics: self.metrics.clone(),
            platforms: self.config.platforms.profiles(),
            config: self.config.upstream.clone().into(),
            nets: self.nets.clone(),
            happenings: self.happenings.clone(),
            ..Context::new(store, notify, self.clock.clone())
        };
        let catalog = self.gate.catalog.snapshot();
        let spread_secs = u64::try_from(catalog.feeds().len()).unwrap_or(u64::MAX) / POLLS_PER_SEC;
        let feeds = catalog.polled().map(|feed| FeedSpec::from(&**feed));
        let mut feeds: Vec<FeedSpec> = feeds.collect();
        for feed in &mut feeds {
            feed.spread_secs = spread_secs;
        }
        Ok(Poller::load(context, upstream, feeds)
            .await?
            .looking_by(looks))
    }

    /// The keeper of groups, whose heads are known from here on.
    pub(super) async fn groups(&self) -> anyhow::Result<GroupKeeper> {
        let catalog = self.gate.catalog.snapshot();
        let groups = catalog.feeds().filter(|feed| feed.is_group());
        for no in groups.map(|group| group.no).chain(catalog.parts()) {
            match self.store.feed(no).await {
                Ok(record) => self.notify.moved(no, record.head()),
                // Whoever asks for it is told.
                Err(error) if error.is_of_one_feed() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(GroupKeeper {
            store: self.store.clone(),
            notify: self.notify.clone(),
            catalog: self.gate.catalog.clone(),
            site: self.site(),
        })
    }

    pub(super) fn readers(&self) -> Arc<Readers> {
        let site = Arc::new(self.site());
        let catalog = self.gate.catalog.clone();
        let ttl_mins = move |feed| Some(catalog.snapshot().feed_no(feed)?.settings.poll.ttl_mins());
        let (has_cloud, catalog) = (self.config.hub.rsscloud, self.gate.catalog.clone());
        // Listeners know no credentials.
        let takes_cloud = move |feed| {
            let catalog = catalog.snapshot();
            let is_public = |feed: &Arc<RegisteredFeed>| !feed.settings.is_private();
            has_cloud && catalog.feed_no(feed).is_some_and(is_public)
        };
        let readers = Readers::new(
            self.store.clone(),
            self.notify.clone(),
            self.clock.clone(),
            site,
            self.config.server.readers.clone(),
        );
        let catalog = self.gate.catalog.clone();
        let announces = move |feed| catalog.snapshot().announces_deletions(feed);
        let readers = readers.with_ttl_mins(ttl_mins).with_cloud(takes_cloud);
        Arc::new(readers.with_announced(announces))
    }

    /// The places at which this process answers itself: no callback is there.
    pub(super) fn own_places(
        &self,
        context: &Arc<ServeContext>,
        listening: &Listening,
    ) -> ProcessAddresses {
        let context = context.clone();
        let Listeners { consumers, closed } = listening.bound();
        let catalog = self.gate.catalog.clone();
        ProcessAddresses {
            closed,
            consumers,
            roots: std::iter::once(&self.config.server.public_url)
                .chain(&self.config.server.former_public_urls)
                .cloned()
                .collect(),
            site_hosts: Arc::new(move || catalog.snapshot().sites().hosts()),
            answers: Arc::new(move |request| answers_itself(&context, request)),
        }
    }

    pub(super) fn hub(
        &self,
        readers: &Arc<Readers>,
        own: ProcessAddresses,
    ) -> anyhow::Result<Arc<Hub>> {
        let config = self.live.hub();
        let client = ClientConfig {
            total_secs: config.deliver_secs,
            private_ok: config.callbacks_private,
            idle_per_host: self.idle_per_host,
            ..ClientConfig::for_callbacks()
        };
        Ok(Arc::new(Hub::new(hub::Parts {
            config,
            readers: readers.clone(),
            store: self.store.clone(),
            notify: self.notify.clone(),
            clock: self.clock.clone(),
            callbacks: hub::CallbackParts {
                service: layers::marked_callbacks(layers::callback(&client)?, self.mark.clone()),
                resolver: Arc::new(SystemResolver),
                user_agent: self.user_agent()?,
                own,
            },
            gate: self.gate.clone(),
            metrics: self.metrics.clone(),
            jitter: rand::random,
        })))
    }

    /// The events as the operator reads them.
    pub(super) fn event_log(&self) -> EventLog {
        let now = Stamp::from_micros(self.clock.now_us());
        let public_url = self.config.server.public_url.to_string();
        EventLog::new(self.store.clone(), public_url, now)
    }

    /// The parts that alerts are sent by.
    pub(super) fn alert_parts(&self) -> anyhow::Result<AlertParts> {
        Ok(AlertParts {
            client: layers::callback(&ClientConfig::for_callbacks())?,
            user_agent: self.user_agent()?,
            clock: self.clock.clone(),
            public_url: self.config.server.public_url.to_string(),
        })
    }

    /// Whoever tells search engines of the posts of sites.
    pub(super) fn search_engines(&self) -> anyhow::Result<SearchEngines> {
        Ok(SearchEngines::new(SearchEngineParts {
            config: self.config.search_engines.clone(),
            public_url: self.config.server.public_url.clone(),
            store: self.store.clone(),
            notify: self.notify.clone(),
            catalog: self.gate.catalog.clone(),
            clock: self.clock.clone(),
            client: BoxCloneSyncService::new(layers::callback(&ClientConfig::for_callbacks())?),
            user_agent: self.user_agent()?,
        }))
    }

    /// Whoever subscribes at the hubs that feeds name, if anybody does.
    pub(super) async fn subscriber(
        &self,
        own: ProcessAddresses,
    ) -> anyhow::Result<Option<Subscriber>> {
        let config = &self.config.push;
        if !config.is_on(&self.config.server.public_url) {
            return Ok(None);
        }
        let client = ClientConfig {
            wire_bytes_max: HUB_ANSWER_BYTES_MAX,
            body_bytes_max: HUB_ANSWER_BYTES_MAX,
            idle_per_host: self.idle_per_host,
            ..ClientConfig::default()
        };
        let client = layers::upstream(&client, Governor::default())?;
        let subscriber = Subscriber::open(subscriber::Parts {
            config: config.clone(),
            callbacks: Url::parse(&self.site().callbacks())?,
            store: self.store.clone(),
            notify: self.notify.clone(),
            catalog: self.gate.catalog.clone(),
            clock: self.clock.clone(),
            client: layers::marked_callbacks(client, self.mark.clone()),
            user_agent: self.user_agent()?,
            is_own: Arc::new(move |url| own.holds(url, &[])),
            metrics: self.metrics.clone(),
        });
        Ok(Some(subscriber.await?))
    }

    /// The component of a server of XMPP, if there is one.
    pub(super) fn xmpp(&self, readers: &Arc<Readers>) -> anyhow::Result<Option<Arc<Component>>> {
        let component = Component::new(xmpp::Parts {
            config: self.config.xmpp.clone(),
            readers: readers.clone(),
            store: self.store.clone(),
            gate: self.gate.clone(),
            notify: self.notify.clone(),
            clock: self.clock.clone(),
            metrics: self.metrics.clone(),
        });
        Ok(component.context("the component of XMPP")?.map(Arc::new))
    }

    /// `[server]`, so that so many of so many connections wait at most that others are answered,
    /// too.
    pub(super) fn server_in_force(&self, connections_max: usize) -> serve::Config {
        let mut server = self.config.server.clone();
        let (most, of_client) = waiting_connections(connections_max);
        server.waiters_max = server.waiters_max.min(most);
        server.waiters_per_client_max = server.waiters_per_client_max.min(of_client);
        server
    }

    /// The things that answers are made from.
    pub(super) fn serve_context(
        &self,
        readers: Arc<Readers>,
        config: serve::Config,
        stop: CancellationToken,
    ) -> Arc<ServeContext> {
        Arc::new(ServeContext {
            readership: self.readership.clone(),
            first_seen: FirstSeen::default(),
            readers,
            store: self.store.clone(),
            clock: self.clock.clone(),
            gate: self.gate.clone(),
            own_calls: self.mark.clone(),
            takes_cloud: self.config.hub.rsscloud,
            waiters: Waiters::new(&config),
            config,
            stop,
        })
    }

    pub(super) fn mounts(
        &self,
        context: Arc<ServeContext>,
        workplace: &CurrentWork,
        stop: CancellationToken,
    ) -> anyhow::Result<Vec<Mount>> {
        let trusted = self.config.server.trusted_proxies.clone();
        let hub = hub_service(workplace.clone(), Relay(self.store.clone()), trusted);
        let body_bytes_max = self.config.upstream.wire_bytes_max;
        let pushes = PushInletParts {
            inlet: Arc::new(WorkInlet::new(workplace.clone(), Relay(self.store.clone()))),
            body_bytes_max: usize::try_from(body_bytes_max).unwrap_or(usize::MAX),
        };
        let looks: Arc<dyn PollForReader> = Arc::new(PollsForReaders {
            workplace: workplace.clone(),
            relay: Relay(self.store.clone()),
            notify: self.notify.clone(),
            asked: Mutex::default(),
        });
        let working = workplace.clone();
        let subscribers: PushCounts = Arc::new(move || Some(working.work()?.push_subscribers()));
        let origin = self.way_to_origins(stop)?;
        let directory = self.identity.clone().map(|identity| {
            key_directory(identity, &self.config.server.public_url, self.clock.clone())
        });
        let ours = own_mounts(
            context,
            hub,
            pushes,
            Some(WayToOrigins {
                origin,
                looks,
                sitemaps: self.origin_sitemaps.clone(),
                subscribers,
            }),
        );
        Ok(directory.into_iter().chain(ours).collect())
    }

    /// The way to the origins of the sites before which we stand.
    fn way_to_origins(&self, stop: CancellationToken) -> anyhow::Result<MountService> {
        let server = &self.config.server;
        let proxy = Proxy::new(&self.metrics, stop)?;
        let is_https = server.public_url.scheme() == "https";
        let trusted = server.trusted_proxies.clone();
        let service = ServiceBuilder::new()
            .map_request(move |mut request: http::Request<ServeBody>| {
                let peer = request.extensions().get();
                let address = peer.map(|PeerAddress(address)| *address);
                let is_trusted = address.is_some_and(|address| is_trusted(address, &trusted));
                let is_secure = is_https || request.extensions().get::<OverTls>().is_some();
                let client = client_address(request.extensions(), request.headers(), &trusted);
                let is_many = address
                    .zip(client)
                    .is_some_and(|(peer, client)| may_be_many(peer, client, &trusted));
                request.extensions_mut().insert(ProxyPeer {
                    address,
                    is_trusted,
                    is_secure,
                    client,
                    is_many,
                });
                request
            })
            .map_response(|mut answer: Response| {
                answer.extensions_mut().insert(Streamed);
                answer
            })
            .service(proxy);
        Ok(BoxCloneSyncService::new(service))
    }

    /// The desk for users and tokens.
    pub(super) fn account_desk(&self) -> AccountCommands {
        AccountCommands {
            store: self.store.clone(),
            auth: Some(self.gate.auth.clone()),
            site: self.site(),
            clock: self.clock.clone(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn explainer(&self) -> Explainer {
        Explainer {
            store: self.store.clone(),
            catalog: self.gate.catalog.clone(),
            platforms: self.config.platforms.profiles(),
        }
    }
}

/// The hub as a service, so that the server need not know it: that of this process while it works,
/// else that of the process that does.
fn hub_service(workplace: CurrentWork, relay: Relay, trusted: Vec<IpNet>) -> HubService {
    BoxCloneSyncService::new(tower::service_fn(move |request: http::Request<Bytes>| {
        let (workplace, relay) = (workplace.clone(), relay.clone());
        let client = client_address(request.extensions(), request.headers(), &trusted);
        async move {
            if let Some(work) = workplace.work() {
                return Ok::<_, Infallible>(work.hub.handle(request, client).await);
            }
            let sender = request.extensions().get().and_then(Principal::id);
            Ok(relay.hub(&request, client, sender).await)
        }
    }))
}
