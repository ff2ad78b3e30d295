//! The tasks of the listeners and of what they serve, and how they end; not those of work.

use crate::{
    acme::HeldCertificate,
    byte_budget::ByteBudget,
    clock::Clock,
    edge::{https_redirect::redirecting, listen, listener::Listener, tls::Certificate},
    serve::{
        admin::{Admin, AdminGuard},
        routing::{router::Router, stack},
    },
    telemetry::Metrics,
    threads::ServingThreads,
};
use std::{io, sync::Arc, time::Duration};
use tokio::{net::TcpListener, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

/// Connections of operators at most: they are few.
const ADMIN_CONNECTIONS_MAX: usize = 64;
/// Connections at most that are sent to HTTPS: each is short.
const REDIRECT_CONNECTIONS_MAX: usize = 256;
/// Bytes of answers to operators at most that they have not read.
const ADMIN_ANSWERS_BYTES_MAX: usize = 64 << 20;

/// Tasks that run until they are told to stop.
pub(super) struct Tasks {
    /// Ends what consumers see: listeners and held requests.
    stop_serving: CancellationToken,
    serving: TaskTracker,
    /// The threads on which consumers are served.
    threads: Arc<ServingThreads>,
    within: Duration,
}

impl Tasks {
    /// No tasks yet; they may take so many seconds to stop.
    pub(super) fn new(shutdown_secs: u64) -> io::Result<Self> {
        Ok(Self {
            stop_serving: CancellationToken::new(),
            serving: TaskTracker::new(),
            threads: Arc::new(ServingThreads::start()?),
            within: Duration::from_secs(shutdown_secs),
        })
    }

    /// Token that is cancelled when serving ends.
    pub(super) fn serving_ends(&self) -> CancellationToken {
        self.stop_serving.clone()
    }

    /// Time that stopping may take.
    pub(super) fn within(&self) -> Duration {
        self.within
    }

    /// Serves consumers.
    pub(super) fn serve(
        &self,
        listeners: Vec<Listener>,
        router: Router,
        metrics: Metrics,
        limits: listen::ListenerLimits,
    ) {
        let service = stack::stack(router, metrics);
        let (threads, stop) = (self.threads.clone(), self.stop_serving.clone());
        self.serving
            .spawn(listen::serve(listeners, service, limits, threads, stop));
    }

    /// Serves the operator.
    pub(super) fn serve_operator(&self, listener: TcpListener, admin: AdminGuard<Admin>) {
        let stop = self.stop_serving.clone();
        let limits = for_few(ADMIN_CONNECTIONS_MAX);
        let serving = listen::serve([listener.into()], admin, limits, Arc::default(), stop);
        self.serving.spawn(serving);
    }

    /// Sends those who ask by HTTP to HTTPS.
    pub(super) fn redirect(
        &self,
        listener: TcpListener,
        held: Option<Arc<HeldCertificate>>,
        public_url: &Url,
        port: u16,
    ) {
        let stop = self.stop_serving.clone();
        let service = redirecting(public_url, port, held);
        let limits = for_few(REDIRECT_CONNECTIONS_MAX);
        let serving = listen::serve([listener.into()], service, limits, Arc::default(), stop);
        self.serving.spawn(serving);
    }

    /// Takes a certificate into use when its files change.
    pub(super) fn follow_certificate(
        &self,
        certificate: Option<Certificate>,
        clock: Arc<dyn Clock>,
    ) {
        if let Some(certificate) = certificate {
            self.serving
                .spawn(certificate.follow(clock, self.stop_serving.clone()));
        }
    }

    /// Runs a task that ends with serving.
    pub(super) fn follow(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.serving.spawn(task);
    }

    /// Stops all, and waits for them as long as they may take.
    pub(super) async fn stop(&self) {
        self.stop_serving.cancel();
        self.serving.close();
        let serving = timeout(self.within, self.serving.wait()).await;
        if serving.is_err() {
            tracing::warn!(
                "Some connections were cut off: they did not end within {} s",
                self.within.as_secs()
            );
        }
    }
}

/// Limits of a listener for so many connections, which have to ask for something at once.
fn for_few(connections_max: usize) -> listen::ListenerLimits {
    let budget = Arc::new(ByteBudget::new(ADMIN_ANSWERS_BYTES_MAX));
    listen::ListenerLimits {
        idle_least: Duration::ZERO,
        ..listen::ListenerLimits::new(connections_max, ADMIN_ANSWERS_BYTES_MAX, budget)
    }
}
