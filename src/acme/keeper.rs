//! The task that keeps a certificate: it takes up the kept one, and orders another in time; not the
//! protocol of an order.

use super::{
    authority::{Authority, ChallengeWay},
    fault::{AcmeFault, OrderStep},
    held::{HeldCertificate, IssuedCertificate},
    kept::AcmeKept,
    order_limit::OrderLimit,
    renewal::{renew_at, wait_secs},
    validity::{Validity, moment},
};
use crate::clock::Clock;
use crate::locks::{read, write};
use std::{
    io,
    sync::{Arc, RwLock},
    time::Duration,
};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// The longest time between two looks at the clock, which may be set.
const CLOCK_LOOK: Duration = Duration::from_secs(3600);
/// The longest time for which an authority may ask us to wait.
const AUTHORITY_WAIT_MAX: Duration = Duration::from_secs(7 * 86_400);

/// Time between two tries to keep a certificate that could not be kept.
const KEEP_AGAIN: Duration = Duration::from_secs(60);

/// Everything that a keeper stands on, and that stays while keepers come and go: of several nodes
/// the one that works has a keeper. Cheap to clone.
#[derive(Clone)]
pub struct KeeperParts {
    /// The names of the certificate.
    pub names: Vec<String>,
    /// The host of the authority, for the operator.
    pub authority_name: String,
    /// The authority.
    pub authority: Arc<dyn Authority>,
    /// The ways to prove the names, the best first.
    pub ways: Vec<ChallengeWay>,
    /// The place of what is kept.
    pub kept: AcmeKept,
    /// The certificate as listeners show it.
    pub held: Arc<HeldCertificate>,
    /// The state, for the operator.
    pub watch: CertificateWatch,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Chance, between 0 and 1.
    pub jitter: fn() -> f64,
}

impl KeeperParts {
    /// Shows the certificate that is kept, and answers the challenges that are open, whoever ordered
    /// it. A certificate that will not do is told by the keeper, which asks for another.
    pub async fn take_up(&self) -> io::Result<()> {
        let certificate = self.kept.certificate().await?;
        if let Some(Ok(certificate)) = certificate.map(|pem| IssuedCertificate::read(&pem)) {
            self.held.show(&certificate);
        }
        let challenges = self.kept.challenges().await?;
        let answered = self.held.answer(&challenges);
        answered.map_err(|fault| io::Error::other(fault.text))
    }
}

/// The state of the certificate, for the operator. Times are Unix seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateState {
    /// The names that it is for.
    pub names: Vec<String>,
    /// The host of the authority.
    pub authority: String,
    /// The end of the one in use, if there is one.
    pub expires_at: Option<u64>,
    /// The time at which the next order is placed.
    pub next_order_at: u64,
    /// Failures in a row.
    pub failures: u32,
    /// The last of them, if the last order failed.
    pub fault: Option<AcmeFault>,
}

/// A view of the state.
#[derive(Clone, Debug, Default)]
pub struct CertificateWatch(Arc<RwLock<CertificateState>>);

impl CertificateWatch {
    /// The state now.
    pub fn state(&self) -> CertificateState {
        read(&self.0).clone()
    }

    fn change(&self, change: impl FnOnce(&mut CertificateState)) {
        change(&mut write(&self.0));
    }
}

/// The keeper of a certificate.
pub struct CertificateKeeper {
    parts: KeeperParts,
    limit: OrderLimit,
    /// The time in which the certificate in use holds, if there is one.
    in_use: Option<Validity>,
    /// The time at which the certificate in use is renewed; `None` while there is none that will
    /// do.
    renew_at: Option<u64>,
    /// The moment before which nothing is tried again, after a failure. No wall clock: that may be
    /// set.
    wait_until: Option<Instant>,
    /// A certificate (PEM) that could not be kept yet.
    unkept: Option<String>,
}

impl CertificateKeeper {
    /// Takes up what is kept.
    pub async fn open(mut parts: KeeperParts) -> io::Result<Self> {
        let known = parts
            .kept
            .way()
            .await
            .and_then(|way| parts.ways.iter().position(|other| *other == way));
        if let Some(at) = known {
            parts.ways[..=at].rotate_right(1);
        }
        let limit = OrderLimit::new(parts.kept.orders().await?);
        parts.watch.change(|state| {
            *state = CertificateState {
                names: parts.names.clone(),
                authority: parts.authority_name.clone(),
                ..CertificateState::default()
            };
        });
        let mut keeper = Self {
            parts,
            limit,
            in_use: None,
            renew_at: None,
            wait_until: None,
            unkept: None,
        };
        keeper.take_up().await?;
        Ok(keeper)
    }

    /// Orders a certificate whenever one is due, until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut is_told = false;
        self.close_left_challenges().await;
        loop {
            let wait = self.wait();
            if wait.is_zero() {
                let ordered = tokio::select! {
                    () = stop.cancelled() => return,
                    ordered = self.order() => ordered,
                };
                match ordered {
                    Ok((certificate, pem)) => self.take(certificate, pem).await,
                    Err(fault) => self.note(fault),
                }
                is_told = true;
                continue;
            }
            if !is_told && self.renew_at.is_none_or(|at| at <= self.now()) {
                let next = span(wait);
                tracing::warn!(
                    "A certificate is ordered in {next}: there were enough orders in this hour"
                );
            }
            is_told = true;
            let pause = match &self.unkept {
                Some(_) => KEEP_AGAIN,
                None => CLOCK_LOOK,
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(wait.min(pause)) => self.keep().await,
            }
        }
    }

    /// Closes the challenges of an order whose process has gone.
    async fn close_left_challenges(&self) {
        self.parts.held.close_challenges();
        if let Err(error) = self.parts.kept.close_challenges().await {
            tracing::debug!("A challenge of an order that was cut off stays open: {error}");
        }
    }

    /// Uses the kept certificate, whatever it is worth: an old one is better than none.
    async fn take_up(&mut self) -> io::Result<()> {
        let (names, authority) = (self.names(), self.parts.authority_name.clone());
        let none_yet =
            format!("HTTPS connections fail until {authority} has given one for {names}");
        let Some(pem) = self.parts.kept.certificate().await? else {
            tracing::warn!("There is no certificate yet: {none_yet}");
            return Ok(());
        };
        let kept = match IssuedCertificate::read(&pem) {
            Ok(kept) => kept,
            Err(error) => {
                tracing::error!(
                    "{} is no certificate with its key: {error}; {none_yet}",
                    self.parts.kept.certificate_place()
                );
                return Ok(());
            }
        };
        self.show(&kept);
        let until = moment(kept.validity.until);
        if kept.validity.until <= self.now() {
            tracing::error!(
                "The kept certificate for {names} has expired at {until}; {authority} is asked for another"
            );
        } else if kept.covers(&self.parts.names) {
            let next = moment(self.parts.watch.state().next_order_at);
            tracing::info!(
                "The kept certificate for {names} is in use; it holds until {until}, and is renewed at {next}"
            );
            return Ok(());
        } else {
            tracing::warn!(
                "The kept certificate is not for all of {names}; {authority} is asked for another"
            );
        }
        self.renew_at = None;
        Ok(())
    }

    /// Shows a certificate, and knows when it is renewed.
    fn show(&mut self, certificate: &IssuedCertificate) {
        self.parts.held.show(certificate);
        self.in_use = Some(certificate.validity);
        let which = format!("for {}", self.names());
        certificate.validity.warn_of_early(&which, self.now());
        let next = renew_at(certificate.validity, (self.parts.jitter)());
        self.renew_at = Some(next);
        self.parts.watch.change(|state| {
            (state.expires_at, state.next_order_at) = (Some(certificate.validity.until), next);
        });
    }

    /// The time until the next order.
    fn wait(&self) -> Duration {
        let now = self.now();
        let due = self.renew_at.unwrap_or(now).max(now);
        let by_clock = Duration::from_secs(due.max(self.limit.free_at(now)) - now);
        let by_failure = self
            .wait_until
            .map(|until| until.saturating_duration_since(Instant::now()));
        let wait = by_clock.max(by_failure.unwrap_or_default());
        let next = now.saturating_add(wait.as_secs());
        self.parts.watch.change(|state| state.next_order_at = next);
        wait
    }

    /// Places an order; where the names are not proven, another one in each further way.
    async fn order(&mut self) -> Result<(IssuedCertificate, String), AcmeFault> {
        let mut found: Option<AcmeFault> = None;
        for at in 0..self.parts.ways.len() {
            let now = self.now();
            if self.limit.free_at(now) > now {
                break;
            }
            self.limit.note(now);
            self.keep_orders().await?;
            match self.parts.authority.order(self.parts.ways[at]).await {
                Ok(pem) => {
                    // The way that led there is tried first from now on.
                    self.parts.ways[..=at].rotate_right(1);
                    self.keep_way().await;
                    return self.judge(&pem).map(|certificate| (certificate, pem));
                }
                Err(fault) => {
                    if fault.step == OrderStep::Account {
                        self.limit.take_back(now);
                        self.keep_orders().await?;
                    }
                    let is_unproven = fault.step == OrderStep::Proof;
                    let before = found
                        .map(|found| format!("{}; ", found.text))
                        .unwrap_or_default();
                    let text = format!("{before}{}", fault.text);
                    found = Some(AcmeFault { text, ..fault });
                    if !is_unproven {
                        break;
                    }
                }
            }
        }
        Err(found.unwrap_or_else(|| AcmeFault::ours("there were enough orders in this hour")))
    }

    async fn keep_orders(&self) -> Result<(), AcmeFault> {
        let kept = self.parts.kept.keep_orders(self.limit.times()).await;
        kept.map_err(|error| {
            AcmeFault::ours(format!(
                "nothing is ordered, since orders cannot be counted: {error}"
            ))
        })
    }

    /// Notes the first of several ways for the next start, which can do without the note.
    async fn keep_way(&self) {
        let [way, _, ..] = self.parts.ways[..] else {
            return;
        };
        if let Err(error) = self.parts.kept.keep_way(way).await {
            tracing::warn!("The next start will not know that names are proven by {way}: {error}");
        }
    }

    /// Reads a certificate that was given.
    fn judge(&self, pem: &str) -> Result<IssuedCertificate, AcmeFault> {
        let of_authority = |what: &str| {
            AcmeFault::of_authority(format!("it gave a certificate that is no good: {what}"))
        };
        let certificate = IssuedCertificate::read(pem).map_err(|error| of_authority(&error))?;
        if !certificate.covers(&self.parts.names) {
            return Err(of_authority("it is for other names"));
        }
        if certificate.validity.until <= self.now() {
            let until = moment(certificate.validity.until);
            return Err(AcmeFault::ours(format!(
                "a new certificate ended at {until}; is the clock of this machine right?"
            )));
        }
        let (validity, now) = (certificate.validity, self.now());
        if validity.gives_way_to(self.in_use, now) {
            let text = format!(
                "a new certificate holds from {} on, and the one before it stays in use; is the clock of this machine right?",
                moment(validity.from)
            );
            // Before that time another one would be no better.
            let wait = Some(Duration::from_secs(validity.from - now));
            return Err(AcmeFault {
                wait,
                ..AcmeFault::ours(text)
            });
        }
        Ok(certificate)
    }

    /// Uses and keeps a new certificate.
    async fn take(&mut self, certificate: IssuedCertificate, pem: String) {
        self.show(&certificate);
        self.wait_until = None;
        self.parts
            .watch
            .change(|state| (state.failures, state.fault) = (0, None));
        let (names, until) = (self.names(), moment(certificate.validity.until));
        let next = moment(self.parts.watch.state().next_order_at);
        tracing::info!(
            "A new certificate for {names} is in use; it holds until {until}, and is renewed at {next}"
        );
        self.unkept = Some(pem);
        self.keep().await;
    }

    /// Keeps a new certificate for the next start and for the other nodes, as soon as that succeeds.
    async fn keep(&mut self) {
        let Some(pem) = &self.unkept else {
            return;
        };
        let fault = match self.parts.kept.keep_certificate(pem).await {
            Ok(()) => {
                self.unkept = None;
                None
            }
            Err(error) => Some(AcmeFault::ours(format!(
                "the certificate cannot be kept, will try again in {}; a start before that asks for another: {error}",
                span(KEEP_AGAIN)
            ))),
        };
        let state = self.parts.watch.state();
        if let Some(fault) = fault.as_ref().filter(|_| state.fault != fault) {
            tracing::error!("Of ours: {}", fault.text);
        }
        if state.failures == 0 {
            self.parts.watch.change(|state| state.fault = fault);
        }
    }

    /// Tells a failure, and when it is tried again.
    fn note(&mut self, fault: AcmeFault) {
        let fault = fault.told();
        let failures = self.parts.watch.state().failures.saturating_add(1);
        let wait = Duration::from_secs(wait_secs(failures, (self.parts.jitter)()));
        let wait = wait.max(fault.wait.unwrap_or_default().min(AUTHORITY_WAIT_MAX));
        self.wait_until = Some(Instant::now() + wait);
        let (names, wait) = (self.names(), self.wait());
        let next = span(wait);
        let authority = &self.parts.authority_name;
        let expires_at = self.parts.watch.state().expires_at;
        let told = format!(
            "No certificate for {names} from {authority}: {fault}; the next try is in {next}"
        );
        match expires_at.filter(|until| *until > self.now()) {
            Some(until) => {
                tracing::warn!(whose = ?fault.whose, failures, "{told}; the one in use holds until {}", moment(until));
            }
            None => {
                tracing::error!(whose = ?fault.whose, failures, "{told}; until then HTTPS connections fail");
            }
        }
        self.parts
            .watch
            .change(|state| (state.failures, state.fault) = (failures, Some(fault)));
    }

    fn names(&self) -> String {
        self.parts.names.join(", ")
    }

    fn now(&self) -> u64 {
        self.parts.clock.now_us() / 1_000_000
    }
}

/// A time to wait, for people.
fn span(wait: Duration) -> String {
    match wait.as_secs() {
        secs @ ..120 => format!("{secs} s"),
        secs => format!("{} min", secs.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests;
