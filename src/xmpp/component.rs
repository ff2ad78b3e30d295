//! The component: the service, and the supervisor that keeps a stream open for it; not what they
//! do.

use super::{Config, ConnectionState, Parts};
use crate::{
    clock::SettledClock,
    feed::{record::FeedNo, stamp::Stamp},
    setting::RefusedSetting,
};
use proof::Proofs;
use push::Pusher;
use secret_file::secret;
use service::Service;
use shown::ShownPages;
use std::{
    collections::HashMap,
    io,
    path::Path,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};
use subscribers::{Subscribers, SubscriptionLimits};
use supervisor::{Connect, Supervisor};
use tokio::{sync::watch, time::sleep};
use tokio_util::sync::CancellationToken;
use tracing::warn;

mod asked;
mod connect;
mod desk;
mod disco;
mod element;
mod end_reason;
mod fault;
mod frames;
mod lease;
mod node;
mod notice;
mod ns;
mod pace;
mod plan;
mod proof;
mod push;
mod reached;
mod rsm;
mod secret_file;
mod service;
mod shim;
mod shown;
mod stanza;
mod stanza_error;
mod stream;
mod subscribers;
mod supervisor;
mod waiting_requests;

#[cfg(test)]
mod tests;

/// Seconds after which the stored subscriptions are read once more, where they could not be.
const LOAD_AGAIN_SECS: u64 = 5;

/// The problem with the files of a configuration, as far as this user may read them.
pub fn problem_with_files(config: &Config) -> Option<RefusedSetting> {
    if let (Some(file), Some(error)) = (&config.secret_file, secret(config).err()) {
        return refused("secret_file", file, &error);
    }
    let file = config.tls_root.as_ref()?;
    let error = connect::roots(file).err()?;
    refused("tls_root", file, &error)
}

fn refused(key: &str, file: &Path, error: &io::Error) -> Option<RefusedSetting> {
    let found = format!("\"{}\"", file.display());
    let wanted = format!("{error}; give the path of another file");
    (error.kind() != io::ErrorKind::PermissionDenied)
        .then(|| RefusedSetting::new(key, found, wanted))
}

/// A component of a server of XMPP.
pub struct Component {
    jid: String,
    supervisor: Supervisor,
    pusher: Pusher,
}

impl Component {
    /// The component of a configuration; `None` where XMPP is off.
    ///
    /// # Errors
    /// The secret or a certificate cannot be read.
    pub fn new(parts: Parts) -> io::Result<Option<Self>> {
        if !parts.config.is_on() {
            return Ok(None);
        }
        let connect = connect::connect(&parts.config)?;
        Ok(Some(Self::over(parts, connect)?))
    }

    /// A component whose connections are made so.
    fn over(parts: Parts, connect: Connect) -> io::Result<Self> {
        let Parts {
            config,
            readers,
            store,
            gate,
            notify,
            clock,
            metrics,
        } = parts;
        let jid = config.jid.clone().unwrap_or_default();
        let pages = Arc::new(ShownPages::new(readers, config.stanza_bytes_max));
        let room = SubscriptionLimits {
            subscriptions_max: config.subscriptions_max,
            per_jid_max: config.subscriptions_per_jid_max,
            per_domain_max: config.subscriptions_per_domain_max,
        };
        let subscribers = Arc::new(Subscribers::new(store.clone(), room));
        let service = Arc::new(Service {
            jid: jid.clone(),
            store: store.clone(),
            gate: gate.clone(),
            pages: pages.clone(),
            subscribers: subscribers.clone(),
            clock: clock.clone(),
        });
        let proofs = Arc::new(Proofs::new(
            jid.clone(),
            store.clone(),
            subscribers.clone(),
            clock.clone(),
        ));
        let outbox = watch::Sender::new(None);
        let pusher = Pusher {
            jid: jid.clone(),
            subscribers: subscribers.clone(),
            pages,
            store,
            gate,
            notify,
            proofs: proofs.clone(),
            settled: SettledClock::new(clock.clone()),
            metrics: metrics.clone(),
            outbox: outbox.subscribe(),
            messages: AtomicU64::new(0),
            nonce: rand::random(),
        };
        let beginning = ConnectionState::beginning(Stamp::from_micros(clock.now_us()));
        let supervisor = Supervisor {
            jid: jid.clone(),
            server: config.server.clone().unwrap_or_default(),
            secret: secret(&config)?,
            connect,
            service,
            subscribers,
            proofs,
            clock,
            metrics,
            jitter: rand::random,
            outbox,
            state: watch::Sender::new(beginning),
        };
        Ok(Self {
            jid,
            supervisor,
            pusher,
        })
    }

    /// The address of the component.
    pub fn jid(&self) -> &str {
        &self.jid
    }

    /// State of the connection.
    pub fn state(&self) -> ConnectionState {
        self.supervisor.state.borrow().clone()
    }

    /// The number of subscriptions of each feed that has any.
    pub fn counts(&self) -> HashMap<FeedNo, usize> {
        self.supervisor.subscribers.counts()
    }

    /// Takes up the stored subscriptions, and serves until `stop`.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        while let Err(error) = self.supervisor.subscribers.load().await {
            warn!("The stored subscriptions of XMPP could not be read: {error}");
            let wait = sleep(Duration::from_secs(LOAD_AGAIN_SECS));
            if stop.run_until_cancelled(wait).await.is_none() {
                return;
            }
        }
        // A task of its own: reads for many filters must not keep the stream waiting.
        let pushing = tokio::spawn({
            let (component, stop) = (self.clone(), stop.clone());
            async move { component.pusher.run(&stop).await }
        });
        let pushing = async {
            if let Err(panicked) = pushing.await
                && panicked.is_panic()
            {
                std::panic::resume_unwind(panicked.into_panic());
            }
        };
        tokio::join!(self.supervisor.run(&stop), pushing);
    }
}
