//! The places of one site for requests at its origin: how one begins, how it ends when it is taken
//! away, and what the operator hears of it; not which one is to go.

use super::{
    fair_permits::{Entered, FairPermits, Loss, PermitHolder, PermitNo},
    fault::ProxyFault,
    headers::ProxyPeer,
    permit_progress_times::PermitProgressTimes,
};
use crate::locks::lock;
use crate::telemetry::SiteMetrics;
use std::{
    mem,
    sync::{Arc, Mutex, OnceLock},
    task::Waker,
    time::Duration,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Time between two lines of a site that say that places were refused or taken away.
const LINE_GAP: Duration = Duration::from_secs(60);
/// Time between two warnings of a site that an address which may stand for many clients holds most
/// of its places.
const MANY_GAP: Duration = Duration::from_secs(60 * 60);

/// The places of one site.
#[derive(Clone, Debug)]
pub(super) struct SitePermits(Arc<SitePermitsParts>);

#[derive(Debug)]
struct SitePermitsParts {
    /// The name of the site in lines.
    site: String,
    began: Instant,
    metrics: SiteMetrics,
    state: Mutex<PermitTables>,
}

#[derive(Debug)]
struct PermitTables {
    places: FairPermits<PermitEnd>,
    lines: Lines,
}

/// Counts since the last line, and the moments of lines.
#[derive(Debug, Default)]
struct Lines {
    said: Option<Instant>,
    refused: u64,
    taken_away: u64,
    many_said: Option<Instant>,
}

/// The place of one exchange; dropping it gives it back.
#[derive(Debug)]
pub(super) struct SitePermit {
    places: SitePermits,
    place: PermitNo,
    progress: Arc<PermitProgressTimes>,
    end: PermitEnd,
}

/// Progress of an exchange that holds a place, told from where its bytes pass.
#[derive(Clone, Debug)]
pub(super) struct PermitProgress {
    began: Instant,
    progress: Arc<PermitProgressTimes>,
}

impl PermitProgress {
    /// Counts bytes that moved.
    pub(super) fn moved(&self, bytes: usize) {
        self.progress.moved(bytes, self.began.elapsed());
    }

    /// Notes that the origin has the whole request.
    pub(super) fn sent(&self) {
        self.progress.sent(self.began.elapsed());
    }

    /// Notes that the answer has begun.
    pub(super) fn answered(&self) {
        self.progress.answered(self.began.elapsed());
    }

    /// True once the answer has begun.
    pub(super) fn is_answered(&self) -> bool {
        self.progress.is_answered()
    }
}

/// The end of an exchange whose place is taken away.
#[derive(Clone, Debug, Default)]
struct PermitEnd {
    ended: CancellationToken,
    /// The reason, which is known before it ends.
    loss: Arc<OnceLock<Loss>>,
    /// The task that carries its answer: it looks whether it has ended.
    carrier: Arc<Mutex<Carrier>>,
}

#[derive(Default)]
struct Carrier {
    /// Lets the body go at once, whether or not its reader takes anything.
    let_go: Option<Box<dyn FnOnce() + Send>>,
    waker: Option<Waker>,
}

impl std::fmt::Debug for Carrier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Carrier")
            .field("lets_go", &self.let_go.is_some())
            .finish_non_exhaustive()
    }
}

impl PermitEnd {
    fn end(&self) {
        self.ended.cancel();
        let carrier = mem::take(&mut *lock(&self.carrier));
        if let Some(let_go) = carrier.let_go {
            let_go();
        }
        if let Some(waker) = carrier.waker {
            waker.wake();
        }
    }
}

impl SitePermits {
    /// So many places of a site, none of them taken.
    pub(super) fn new(site: String, max: usize, metrics: SiteMetrics) -> Self {
        metrics
            .places_max
            .set(i64::try_from(max).unwrap_or(i64::MAX));
        metrics.places_in_use.set(0);
        let state = PermitTables {
            places: FairPermits::new(max),
            lines: Lines::default(),
        };
        Self(Arc::new(SitePermitsParts {
            site,
            began: Instant::now(),
            metrics,
            state: Mutex::new(state),
        }))
    }

    /// A place for a request, held as long as its exchange lasts.
    pub(super) fn enter(&self, peer: ProxyPeer) -> Result<SitePermit, ProxyFault> {
        let holder = match peer.client {
            Some(address) if peer.is_many => PermitHolder::many(address),
            Some(address) => PermitHolder::client(address),
            None => PermitHolder::Unknown,
        };
        let now = self.0.began.elapsed();
        let progress = Arc::new(PermitProgressTimes::new(now));
        let end = PermitEnd::default();
        let mut state = lock(&self.0.state);
        let most = state.places.most();
        let entered = state
            .places
            .enter(holder, progress.clone(), end.clone(), now);
        self.gauge(&state);
        let lost = match &entered {
            Some(Entered { lost, .. }) => lost.clone(),
            None => None,
        };
        let line = self.line(&mut state, most, entered.is_none(), lost.is_some());
        let warning = self.warning(&mut state, holder);
        drop(state);
        // Lines are written, and exchanges end, while nobody waits for the books.
        for line in [line, warning].into_iter().flatten() {
            tracing::warn!("{line}");
        }
        if let Some((loss, lost)) = lost {
            // It is set once: a place is lost once.
            let _ = lost.loss.set(loss);
            lost.end();
        }
        let Entered { place, .. } = entered.ok_or(ProxyFault::Full)?;
        Ok(SitePermit {
            places: self.clone(),
            place,
            progress,
            end,
        })
    }

    /// Places that are taken.
    pub(super) fn taken(&self) -> usize {
        lock(&self.0.state).places.taken()
    }

    fn gauge(&self, state: &PermitTables) {
        self.0
            .metrics
            .places_in_use
            .set(i64::try_from(state.places.taken()).unwrap_or(i64::MAX));
    }

    /// The line that is due once a place was refused or taken away. `most` is who held most before.
    fn line(
        &self,
        state: &mut PermitTables,
        most: Option<(PermitHolder, usize)>,
        is_refused: bool,
        is_taken_away: bool,
    ) -> Option<String> {
        let PermitTables { places, lines } = state;
        self.0.metrics.places_refused.inc_by(is_refused.into());
        self.0
            .metrics
            .places_taken_away
            .inc_by(is_taken_away.into());
        lines.refused += u64::from(is_refused);
        lines.taken_away += u64::from(is_taken_away);
        if !(is_refused || is_taken_away) || !is_due(&mut lines.said, LINE_GAP) {
            return None;
        }
        let (refused, taken_away) = (
            mem::take(&mut lines.refused),
            mem::take(&mut lines.taken_away),
        );
        let most = most.map_or_else(String::new, |(holder, count)| match holder {
            PermitHolder::Client(address) => {
                format!("; most are held by the client {address}: {count}")
            }
            PermitHolder::Net(net) => {
                format!("; most are held by clients of the network {net}: {count}")
            }
            PermitHolder::Many(address) => {
                format!("; most are held by {address}, which may stand for many clients: {count}")
            }
            PermitHolder::Unknown => {
                format!("; most are held by clients that are not known: {count}")
            }
        });
        Some(format!(
            "site {}: {} of {} places at the origin are taken (site.requests_max). Since the last such line \
             {} ended to make room, and {} 503{most}. This is said once a minute at most",
            self.0.site,
            places.taken(),
            places.max(),
            counted(taken_away, "slow request was", "slow requests were"),
            counted(refused, "request received", "requests received"),
        ))
    }

    /// The warning that is due when one address that may stand for many clients holds most places.
    fn warning(&self, state: &mut PermitTables, holder: PermitHolder) -> Option<String> {
        let PermitHolder::Many(address) = holder else {
            return None;
        };
        let (count, max) = (state.places.count(holder), state.places.max());
        if count <= max / 2 || !is_due(&mut state.lines.many_said, MANY_GAP) {
            return None;
        }
        Some(format!(
            "site {}: {address} holds {count} of {max} places at the origin. It is local or a proxy, and may stand for many \
             clients, so no part of them is kept for others. If it is a proxy, name it in server.trusted_proxies \
             and let it send X-Forwarded-For. This is said once an hour at most",
            self.0.site,
        ))
    }
}

fn counted(count: u64, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// True when something may be said again; then it counts as said.
fn is_due(said: &mut Option<Instant>, gap: Duration) -> bool {
    let is_due = said.is_none_or(|said| said.elapsed() >= gap);
    if is_due {
        *said = Some(Instant::now());
    }
    is_due
}

impl SitePermit {
    /// The progress of its exchange.
    pub(super) fn progress(&self) -> PermitProgress {
        PermitProgress {
            began: self.places.0.began,
            progress: self.progress.clone(),
        }
    }

    /// Completes once it was taken away.
    pub(super) async fn taken_away(&self) {
        self.end.ended.cancelled().await;
    }

    /// True once it was taken away.
    pub(super) fn is_taken_away(&self) -> bool {
        self.end.ended.is_cancelled()
    }

    /// The fault of a request whose place was taken away.
    pub(super) fn loss(&self) -> ProxyFault {
        match self.end.loss.get() {
            Some(Loss::Slowest) => ProxyFault::Slowest,
            Some(Loss::TooMany) | None => ProxyFault::TakenAway,
        }
    }

    /// Does `let_go` at once when it is taken away; now, if it was.
    pub(super) fn when_taken_away(&self, let_go: impl FnOnce() + Send + 'static) {
        lock(&self.end.carrier).let_go = Some(Box::new(let_go));
        if self.is_taken_away() {
            self.end.end();
        }
    }

    /// Wakes a task when it is taken away.
    pub(super) fn wakes(&self, waker: &Waker) {
        let mut carrier = lock(&self.end.carrier);
        match &mut carrier.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }
}

impl Drop for SitePermit {
    fn drop(&mut self) {
        let mut state = lock(&self.places.0.state);
        state.places.leave(self.place);
        self.places.gauge(&state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Metrics;
    use std::{io, net::IpAddr};
    use tracing_subscriber::{fmt, prelude::*};

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            lock(&self.0).write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Log {
        /// The lines since it was last asked.
        fn lines(&self) -> Vec<String> {
            let text = String::from_utf8(mem::take(&mut *lock(&self.0))).unwrap();
            text.lines().map(str::to_owned).collect()
        }
    }

    fn peer(address: &str, is_many: bool) -> ProxyPeer {
        let client = Some(address.parse::<IpAddr>().unwrap());
        ProxyPeer {
            client,
            is_many,
            ..ProxyPeer::default()
        }
    }

    fn places(max: usize) -> SitePermits {
        SitePermits::new(
            "blog.example".into(),
            max,
            Metrics::default().of_site("blog.example".into()),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_taken_away_is_said_once_a_minute_with_whom_it_is_about() {
        let log = Log::default();
        let writer = log.clone();
        let layer = fmt::layer()
            .with_ansi(false)
            .with_writer(move || writer.clone());
        let _logging = tracing_subscriber::registry().with(layer).set_default();
        let places = places(10);
        let enter = || places.enter(peer("203.0.113.9", false)).unwrap();
        let mut held: Vec<_> = (0..8).map(|_| enter()).collect();
        assert!(log.lines().is_empty());
        for _ in 0..3 {
            tokio::time::advance(Duration::from_secs(1)).await;
            held.push(enter());
        }
        let lines = log.lines();
        assert_eq!(lines.len(), 1, "{lines:?}");
        for part in [
            "WARN",
            "blog.example",
            "8 of 10",
            "1 slow request",
            "203.0.113.9: 8",
            "site.requests_max",
        ] {
            assert!(lines[0].contains(part), "{part}: {lines:?}");
        }
        assert!(held[..3].iter().all(SitePermit::is_taken_away) && !held[3].is_taken_away());
        tokio::time::advance(LINE_GAP).await;
        held.push(enter());
        let lines = log.lines();
        assert!(
            lines.len() == 1 && lines[0].contains("3 slow requests"),
            "{lines:?}"
        );
        drop(held);
        assert_eq!(
            (places.taken(), places.0.metrics.places_in_use.get()),
            (0, 0)
        );
        assert_eq!(places.0.metrics.places_taken_away.get(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_proxy_that_nobody_named_is_warned_of_once_an_hour_with_the_remedy() {
        let log = Log::default();
        let writer = log.clone();
        let layer = fmt::layer()
            .with_ansi(false)
            .with_writer(move || writer.clone());
        let _logging = tracing_subscriber::registry().with(layer).set_default();
        let places = places(10);
        let enter = || places.enter(peer("127.0.0.1", true));
        let mut held: Vec<_> = (0..5).map(|_| enter().unwrap()).collect();
        assert!(log.lines().is_empty(), "half of them are not most");
        held.extend((0..5).map(|_| enter().unwrap()));
        let lines = log.lines();
        assert!(
            lines.len() == 1 && lines[0].contains("server.trusted_proxies"),
            "{lines:?}"
        );
        assert!(enter().is_err() && held.iter().all(|place| !place.is_taken_away()));
        let lines = log.lines();
        assert!(
            lines.len() == 1
                && lines[0].contains("1 request received 503; most are held by 127.0.0.1"),
            "{lines:?}"
        );
        assert_eq!(places.0.metrics.places_refused.get(), 1);
        drop(held.pop());
        tokio::time::advance(MANY_GAP).await;
        held.push(enter().unwrap());
        assert!(log.lines()[0].contains("server.trusted_proxies"));
    }
}
