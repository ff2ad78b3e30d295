//! Question 11: one change of 4 KB pushed to thousands of subscribers, each at a host of its own,
//! and all at a few hosts. From the wake-up after a real commit until the last push has arrived,
//! beside a bare hyper client that opens as many connections at once, signs and sends the same
//! bodies.

use crate::{
    house::{NAME, PollerRig},
    report::{Aim, Report},
    rounds::Spread,
};
use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use everfeed::{
    catalog::{Catalog, CatalogSnapshot, FeedSettings, ReadGate, RegisteredFeed},
    clock::{Clock, System},
    hub::{self, CallbackParts, Hub, ProcessAddresses},
    layers::{ClientConfig, client::callback_via},
    telemetry::Metrics,
};
use futures_util::{StreamExt as _, stream};
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderValue, Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, client, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use sha2::Sha256;
use std::{
    convert::Infallible,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Handle,
};
use tower::util::BoxCloneSyncService;
use url::{Url, form_urlencoded};

/// Subscriptions, and the hosts of their callbacks.
const CROWDS: [(usize, usize); 4] = [
    (1_000, 1_000),
    (10_000, 10_000),
    (20_000, 20_000),
    (20_000, 50),
];
const TRIALS: usize = 3;
/// Hosts whose connections are kept, at most: both ends of one are files of this process. Those of
/// more hosts close theirs after each answer.
const KEPT_HOSTS_MAX: usize = 4_000;
/// Pushes under way at once, on both sides.
const IN_FLIGHT: usize = 300;
/// Addresses of loopback at which the sink listens, so that there are ports for all connections.
const ADDRESSES: u8 = 32;
/// Requests to subscribe under way at once.
const ASKING: usize = 64;
/// The crowd in which a tenth of the hosts never answer, and a tenth take [`SLOW`].
const TROUBLED: (usize, usize) = (10_000, 1_000);
/// Time that a slow callback takes for its answer.
const SLOW: Duration = Duration::from_secs(5);
/// Subscriptions that one client asks for: fewer than it may at once.
const CLIENT_SUBSCRIPTIONS: usize = 50;
const SECRET: &str = "a secret of a subscriber";
/// Cost of a push to the greatest crowd at most, by that to the smallest.
const FLAT_AIM: f64 = 1.3;
/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(120);
/// Time after which idle connections are closed and all is at rest.
const REST: Duration = Duration::from_secs(4);

pub(crate) async fn ask(report: &Report, sinks: &Handle) -> Result<()> {
    report.question(
        "(11) One change of 4 KB to N subscribers",
        &format!("from notify.moved to the last arrival, by a bare hyper client's time; median of {TRIALS} trials"),
    );
    let sink = sinks.spawn(Sink::listen()).await??;
    let mut cost_of_first = None;
    for (subscriptions, hosts) in CROWDS {
        sink.keeps.store(hosts <= KEPT_HOSTS_MAX, Ordering::Relaxed);
        let crowd = format!("{subscriptions} subscriptions at {hosts} hosts");
        let (mut house, _) = PollerRig::new(1_000).await?;
        let before = resident_bytes()?;
        let hub = hub_of(&house, subscriptions)?;
        hub.start(&[]).await?;
        let start = Instant::now();
        subscribe(&hub, &sink, subscriptions, hosts).await?;
        until(|| is_active(&hub, subscriptions)).await?;
        let subscribed = start.elapsed();
        tokio::time::sleep(REST).await;
        let idle = resident_bytes()?;
        let mut trials = Vec::new();
        for _ in 0..TRIALS {
            trials.push(push(&mut house, &sink, subscriptions, hosts).await?);
        }
        tokio::time::sleep(REST).await;
        let pushed = resident_bytes()?;
        let of = |figure: fn(&Trial) -> f64| Spread::of(trials.iter().map(figure).collect());
        report.ratio(
            &crowd,
            of(|trial| trial.bare_ms / trial.last_ms),
            Aim::AtLeast(0.8),
        );
        report.figure(
            "",
            format!(
                "first {:.1} ms, last {:.0} ms; bare {:.0} ms",
                of(|trial| trial.first_ms).median,
                of(|trial| trial.last_ms).median,
                of(|trial| trial.bare_ms).median
            ),
            "",
        );
        let cost = of(|trial| trial.last_ms).median / subscriptions as f64;
        let least = *cost_of_first.get_or_insert(cost);
        report.figure(
            "",
            format!(
                "{:.3} ms a push, {:.2} of the first crowd's",
                cost,
                cost / least
            ),
            if cost / least <= FLAT_AIM {
                "met"
            } else {
                "MISSED"
            },
        );
        let each = |bytes: usize| bytes.saturating_sub(before) as f64 / subscriptions as f64 / 1e3;
        report.figure(
            "",
            format!(
                "subscribed in {:.1} s; {:.1} KB each idle, {:.1} KB after pushes",
                subscribed.as_secs_f64(),
                each(idle),
                each(pushed)
            ),
            "",
        );
        hub.shutdown(Duration::from_secs(5)).await;
    }
    ask_troubled(report, &sink).await
}

/// One push to a crowd that is well, and one to the same crowd with dead and slow hosts in it: the
/// last arrival at the others.
async fn ask_troubled(report: &Report, sink: &Sink) -> Result<()> {
    let (subscriptions, hosts) = TROUBLED;
    sink.keeps.store(true, Ordering::Relaxed);
    let (mut house, _) = PollerRig::new(1_000).await?;
    let hub = hub_of(&house, subscriptions)?;
    hub.start(&[]).await?;
    subscribe(&hub, sink, subscriptions, hosts).await?;
    until(|| is_active(&hub, subscriptions)).await?;
    let well = subscriptions - subscriptions / 5;
    let mut last_ms = Vec::new();
    for is_troubled in [false, false, true] {
        sink.forget();
        sink.is_troubled.store(is_troubled, Ordering::Relaxed);
        house.add(1).await?;
        let start = Instant::now();
        house.notify.moved(house.feed(), house.record.head());
        let expected = if is_troubled { well } else { subscriptions };
        until(|| sink.arrived.load(Ordering::Relaxed) >= expected).await?;
        let (_, last, _) = sink.told().context("a push has arrived")?;
        last_ms.push(last.duration_since(start).as_secs_f64() * 1e3);
        tokio::time::sleep(REST).await;
    }
    let ratio = last_ms[2] / last_ms[1];
    report.figure(
        format!("{subscriptions} at {hosts} hosts, a tenth dead and a tenth at 5 s"),
        format!(
            "last of the others {:.0} ms, {ratio:.2} of the clean run",
            last_ms[2]
        ),
        if ratio <= FLAT_AIM { "met" } else { "MISSED" },
    );
    hub.shutdown(Duration::from_secs(1)).await;
    Ok(())
}

/// Milliseconds from the wake-up to the first and the last arrival, and those of the bare client.
struct Trial {
    first_ms: f64,
    last_ms: f64,
    bare_ms: f64,
}

async fn push(
    house: &mut PollerRig,
    sink: &Sink,
    subscriptions: usize,
    hosts: usize,
) -> Result<Trial> {
    sink.forget();
    house.add(1).await?;
    let start = Instant::now();
    house.notify.moved(house.feed(), house.record.head());
    until(|| sink.arrived.load(Ordering::Relaxed) >= subscriptions).await?;
    let (first, last, body) = sink.told().context("a push has arrived")?;
    // The acknowledgements are written, too, before anything else is measured.
    tokio::time::sleep(Duration::from_secs(1)).await;
    ensure!(
        sink.arrived.load(Ordering::Relaxed) == subscriptions,
        "each has one push"
    );
    sink.forget();
    let bare = Instant::now();
    let mut sent = stream::iter(0..subscriptions)
        .map(|n| tokio::spawn(bare_push(sink.at(n % hosts), n, body.clone())))
        .buffer_unordered(IN_FLIGHT);
    while let Some(sent) = sent.next().await {
        sent??;
    }
    let ms = |from: Instant, to: Instant| to.duration_since(from).as_secs_f64() * 1e3;
    Ok(Trial {
        first_ms: ms(start, first),
        last_ms: ms(start, last),
        bare_ms: bare.elapsed().as_secs_f64() * 1e3,
    })
}

/// A push by nothing but hyper.
async fn bare_push(to: SocketAddr, n: usize, body: Bytes) -> Result<()> {
    let stream = TcpStream::connect(to).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes())?;
    mac.update(&body);
    let signature = format!("sha256={}", hex::encode(mac.finalize().into_bytes()));
    let request = Request::post(format!("/{n}"))
        .header("host", to.to_string())
        .header(CONTENT_TYPE, "application/atom+xml")
        .header("x-hub-signature", signature)
        .body(Full::new(body))?;
    let answer = sender.send_request(request).await?;
    ensure!(answer.status().is_success(), "{}", answer.status());
    drop(sender);
    connection.await??;
    Ok(())
}

/// A hub whose callbacks are at the addresses of the sink.
fn hub_of(house: &PollerRig, subscriptions: usize) -> Result<Hub> {
    let clock: Arc<dyn Clock> = Arc::new(System);
    let settings = FeedSettings::new(NAME, Url::parse("https://blog.example/feed")?);
    let feed = RegisteredFeed::new(house.feed(), settings);
    Ok(Hub::new(hub::Parts {
        config: hub::Config {
            callbacks_private: true,
            subscriptions_max: subscriptions,
            unverified_max: subscriptions * 16,
            in_flight_max: IN_FLIGHT,
            ..hub::Config::default()
        },
        readers: Arc::new(house.readers()?),
        store: house.store.clone(),
        notify: house.notify.clone(),
        clock: clock.clone(),
        callbacks: callbacks()?,
        gate: ReadGate::without_users(Catalog::new(CatalogSnapshot::new([feed], [])), clock),
        metrics: Metrics::default(),
        jitter: rand::random,
    }))
}

/// The way to callbacks at the sink.
pub(crate) fn callbacks() -> Result<CallbackParts> {
    let client = ClientConfig {
        private_ok: true,
        idle_per_host: 20,
        ..ClientConfig::for_callbacks()
    };
    let names = Arc::new(SinkNames);
    Ok(CallbackParts {
        service: BoxCloneSyncService::new(callback_via(&client, names.clone())?),
        resolver: names,
        user_agent: HeaderValue::from_static("everfeed"),
        own: ProcessAddresses::default(),
    })
}

async fn subscribe(hub: &Hub, sink: &Sink, subscriptions: usize, hosts: usize) -> Result<()> {
    let asked = stream::iter(0..subscriptions).map(|n| {
        let callback = format!("http://h{}.example:{}/{n}", n % hosts, sink.port);
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("hub.mode", "subscribe")
            .append_pair(
                "hub.topic",
                &format!("http://127.0.0.1:8080/feeds/{NAME}.atom?order=modified"),
            )
            .append_pair("hub.callback", &callback)
            .append_pair("hub.secret", SECRET)
            .finish();
        let client = u32::try_from(n / CLIENT_SUBSCRIPTIONS).unwrap_or_default();
        let client = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + client));
        async move {
            let request = Request::post("/hub")
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(Bytes::from(form))?;
            let answer = hub.handle(request, Some(client)).await;
            ensure!(
                answer.status() == StatusCode::ACCEPTED,
                "{}",
                String::from_utf8_lossy(answer.body())
            );
            Ok(())
        }
    });
    let mut asked = asked.buffer_unordered(ASKING);
    while let Some(asked) = asked.next().await {
        asked?;
    }
    Ok(())
}

fn is_active(hub: &Hub, subscriptions: usize) -> bool {
    hub.counts()
        .values()
        .map(|counts| counts.active)
        .sum::<usize>()
        == subscriptions
}

async fn until(mut is_so: impl FnMut() -> bool) -> Result<()> {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    Ok(tokio::time::timeout(PATIENCE, waiting).await?)
}

/// Bytes of memory that the process has.
pub(crate) fn resident_bytes() -> Result<usize> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: usize = text.split(' ').nth(1).context("statm")?.parse()?;
    Ok(pages * 4096)
}

/// Addresses of the hosts `h0.example` and so on: those of the sink, in turn.
struct SinkNames;

impl Resolve for SinkNames {
    fn resolve(&self, name: Name) -> Resolving {
        let number = name.as_str().trim_start_matches('h').split('.').next();
        let number: usize = number
            .and_then(|text| text.parse().ok())
            .unwrap_or_default();
        let address = SocketAddr::new(address(number), 0);
        Box::pin(async move { Ok(Box::new([address].into_iter()) as Addrs) })
    }
}

fn address(host: usize) -> IpAddr {
    let last = u8::try_from(host % usize::from(ADDRESSES)).unwrap_or_default() + 1;
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))
}

/// Callbacks that confirm everything and take every push.
#[derive(Clone)]
struct Sink {
    port: u16,
    /// True while connections are kept after an answer.
    keeps: Arc<AtomicBool>,
    /// True while a tenth of the hosts are dead and a tenth slow.
    is_troubled: Arc<AtomicBool>,
    arrived: Arc<AtomicUsize>,
    told: Arc<Mutex<Option<(Instant, Instant, Bytes)>>>,
}

impl Sink {
    /// Listens, on the present runtime.
    async fn listen() -> Result<Self> {
        let first = TcpListener::bind((address(0), 0)).await?;
        let sink = Self {
            port: first.local_addr()?.port(),
            keeps: Arc::default(),
            is_troubled: Arc::default(),
            arrived: Arc::default(),
            told: Arc::default(),
        };
        tokio::spawn(sink.clone().serve(first));
        for n in 1..usize::from(ADDRESSES) {
            let listener = TcpListener::bind((address(n), sink.port)).await?;
            tokio::spawn(sink.clone().serve(listener));
        }
        Ok(sink)
    }

    fn at(&self, host: usize) -> SocketAddr {
        SocketAddr::new(address(host), self.port)
    }

    fn forget(&self) {
        self.arrived.store(0, Ordering::Relaxed);
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The first and the last arrival, and a body.
    fn told(&self) -> Option<(Instant, Instant, Bytes)> {
        self.told
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    async fn serve(self, listener: TcpListener) {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            let sink = self.clone();
            let service = service_fn(move |request| sink.clone().answer(request));
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new());
            builder.keep_alive(self.keeps.load(Ordering::Relaxed));
            tokio::spawn(async move {
                let _ = builder
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        if request.method() == Method::GET {
            let query = request.uri().query().unwrap_or_default();
            let challenge = form_urlencoded::parse(query.as_bytes())
                .find(|(name, _)| name == "hub.challenge")
                .map(|(_, value)| value.into_owned());
            return Ok(Response::new(Full::from(challenge.unwrap_or_default())));
        }
        let path = request.uri().path().trim_start_matches('/');
        let host = path.parse().unwrap_or(0_usize) % TROUBLED.1;
        let body = request.into_body().collect().await;
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        match host % 10 {
            0 if self.is_troubled.load(Ordering::Relaxed) => std::future::pending().await,
            1 if self.is_troubled.load(Ordering::Relaxed) => {
                tokio::time::sleep(SLOW).await;
                let mut response = Response::new(Full::default());
                *response.status_mut() = StatusCode::NO_CONTENT;
                return Ok(response);
            }
            _ => {}
        }
        let now = Instant::now();
        {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            let (first, _, body) = told.take().unwrap_or((now, now, body));
            *told = Some((first, now, body));
        }
        self.arrived.fetch_add(1, Ordering::Relaxed);
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::NO_CONTENT;
        Ok(response)
    }
}
