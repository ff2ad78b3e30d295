//! This process among those that share its store: it takes up work and lets go of it, follows what
//! the others change, and answers for them while it works. Not how the others are heard.

use super::{
    accounts,
    current_work::CurrentWork,
    insight::Following,
    open_listeners::Listening,
    relay::{Relay, RelayRequest, RelayTarget, asked_look, reply_words},
    work_context::WorkContext,
};
use crate::{
    catalog::{self, CatalogSnapshot, FeedSettings},
    edge::body,
    serve::{
        self,
        admin::{Admin, Relayed},
    },
    store::{Duty, Moves, NodeFace, Nodes, Question, Store, StoreError},
};
use agreement::Agreement;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, MissedTickBehavior, sleep},
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

mod agreement;

/// Time that pushes and polls have to end when another process has taken over: what they would
/// store is refused.
const LOST_MAX: Duration = Duration::from_secs(1);

/// Time between two looks at the store.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Time for which a start waits for feeds that the process that works does not know yet. One that
/// was started with another configuration never will.
const REGISTERED_MAX: Duration = Duration::from_secs(10);

/// Time between two looks at them.
const REGISTERED_EVERY: Duration = Duration::from_millis(100);

/// Bytes of an answer to the operator at most that goes to another process.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// The shifts of a process that shares its store.
pub(super) struct Shifts {
    bench: Arc<WorkContext>,
    admin: Admin,
    duty: watch::Receiver<Duty>,
    moves: mpsc::Receiver<Moves>,
    questions: mpsc::Receiver<Question>,
    /// Changes that were told and could not be followed yet.
    behind: Behind,
    /// The last look of the engine that told everything.
    heard: watch::Receiver<Option<Instant>>,
    /// True when nobody was known any more.
    was_unheard: bool,
    agreement: Agreement,
}

/// Changes of others that are not read yet.
#[derive(Clone, Copy, Debug, Default)]
struct Behind {
    catalog: bool,
    accounts: bool,
    /// The certificate that everfeed gets itself, and its challenges.
    certificate: bool,
}

/// The duty with which a process begins. One that is alone works.
pub(super) fn first_duty(nodes: Option<&Nodes>) -> Duty {
    nodes.map_or(Duty::Working, |nodes| *nodes.duty().borrow())
}

/// The feeds as the process that works has registered them, and those that it does not know. Of
/// processes that start together it may still be at it: without this wait a configured feed would
/// be answered 404.
pub(super) async fn registered_elsewhere(
    store: &dyn Store,
    feeds: Vec<FeedSettings>,
) -> Result<(CatalogSnapshot, Vec<FeedSettings>), StoreError> {
    let until = Instant::now() + REGISTERED_MAX;
    loop {
        let (known, unknown) = catalog::follow(store, feeds.clone()).await?;
        let is_alone = first_duty(store.nodes()) == Duty::Working;
        if unknown.is_empty() || is_alone || Instant::now() >= until {
            return Ok((known, unknown));
        }
        sleep(REGISTERED_EVERY).await;
    }
}

/// Says who this process is.
pub(super) fn face(server: &serve::Config, listening: &Listening) -> NodeFace {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = match host.trim() {
        "" => "everfeed",
        host => host,
    };
    face_of(server, format!("{host}:{}", listening.address().port()))
}

/// Says who a process of this configuration is.
pub(super) fn face_of(server: &serve::Config, name: String) -> NodeFace {
    let former = server.former_public_urls.iter();
    NodeFace {
        name,
        public_url: server.public_url.to_string(),
        prefix: server.prefix.clone(),
        former: former.map(ToString::to_string).collect(),
    }
}

impl Shifts {
    /// Shifts over this bench; `None` for a process that is alone.
    pub(super) fn of(bench: Arc<WorkContext>, admin: Admin, nodes: &Nodes) -> Option<Self> {
        Some(Self {
            duty: nodes.duty(),
            heard: nodes.heard(),
            moves: nodes.take_moves()?,
            questions: nodes.take_questions()?,
            bench,
            admin,
            behind: Behind::default(),
            was_unheard: false,
            agreement: Agreement::default(),
        })
    }

    /// Works and follows by turns until `stop`.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let wants_work = *self.duty.borrow_and_update() == Duty::Working;
            let works = self.workplace().work().is_some();
            match (wants_work, works) {
                (true, false) => self.take_up().await,
                (false, true) => self.let_go().await,
                _ => {}
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                changed = self.duty.changed() => if changed.is_err() { return },
                Some(moves) = self.moves.recv() => self.follow(moves).await,
                Some(question) = self.questions.recv() => self.answer(question),
                _ = look.tick() => {
                    self.note_heard().await;
                    if self.workplace().work().is_none() {
                        self.bench.wiring.notify.documents_may_differ();
                    }
                    self.catch_up().await;
                    let works = self.workplace().work().is_some();
                    self.agreement.look(&self.bench, works).await;
                }
            }
        }
    }

    /// Follows until all feeds are known. Nobody is answered before: a feed that is not known yet
    /// would be told as one that is not there.
    pub(super) async fn know_all(&mut self) {
        while self.heard.borrow_and_update().is_none() {
            tokio::select! {
                Some(moves) = self.moves.recv() => self.follow(moves).await,
                changed = self.heard.changed() => if changed.is_err() { return },
            }
        }
        self.take_moves().await;
    }

    /// Takes in all that is told already.
    async fn take_moves(&mut self) {
        while let Ok(moves) = self.moves.try_recv() {
            self.follow(moves).await;
        }
    }

    /// Says up to which time changes of others are known, and has those who wait look again when
    /// that is long ago.
    async fn note_heard(&mut self) {
        // What that look found was sent before.
        let heard = *self.heard.borrow_and_update();
        self.take_moves().await;
        let auth = &self.bench.wiring.gate.auth;
        if let Some(at) = heard.filter(|_| !self.behind.accounts) {
            auth.heard_at(at);
        }
        let is_unheard = auth.is_unheard();
        if is_unheard != self.was_unheard {
            self.was_unheard = is_unheard;
            auth.look_again();
        }
    }

    fn workplace(&self) -> &CurrentWork {
        &self.bench.workplace
    }

    /// Begins to work. What the others changed before is known first.
    async fn take_up(&mut self) {
        self.take_moves().await;
        self.behind.accounts = true;
        self.catch_up().await;
        let bench = &self.bench;
        let turn = bench.reloader.turn().await;
        let begun = match bench.reloader.register_again(&turn).await {
            Ok(()) => bench.begin().await,
            Err(error) => Err(error.into()),
        };
        drop(turn);
        match begun {
            Ok(overview) => {
                self.behind = Behind::default();
                self.admin.open(Arc::new(overview));
                tracing::info!("This everfeed works from now on: it polls and pushes");
            }
            Err(error) => {
                let secs = LOOK_EVERY.as_secs();
                tracing::error!("Work could not be begun, will try again in {secs} s: {error:#}");
            }
        }
    }

    /// Ends the work, which another process has taken over.
    async fn let_go(&mut self) {
        tracing::warn!("Another everfeed works from now on; this one serves");
        self.open_following();
        self.workplace().end(LOST_MAX).await;
        self.behind = Behind {
            catalog: true,
            accounts: true,
            certificate: true,
        };
        self.catch_up().await;
    }

    /// Answers the operator as a process that follows.
    pub(super) fn open_following(&self) {
        let bench = &self.bench;
        let wiring = &bench.wiring;
        let relay = Relay(wiring.store.clone());
        let to_worker = relay.clone();
        let relay = tower::service_fn(move |request: Request<Bytes>| {
            let relay = relay.clone();
            async move { Ok(relay.operator(&request).await) }
        });
        let following = Following {
            store: wiring.store.clone(),
            catalog: wiring.gate.catalog.clone(),
            notify: wiring.notify.clone(),
            relay: to_worker,
            reloader: bench.reloader.clone(),
            waiters: bench.context.waiters.clone(),
            readership: wiring.readership.clone(),
            started_at: bench.started_at.clone(),
        };
        self.admin.follow(
            Arc::new(following),
            tower::util::BoxCloneSyncService::new(relay),
        );
    }

    /// Takes in what another process changed.
    async fn follow(&mut self, moves: Moves) {
        let is_working = *self.duty.borrow() == Duty::Working;
        if is_working && self.workplace().work().is_some() {
            // What this process commits it announces itself, and nobody else commits.
            return;
        }
        for (feed, head) in moves.feeds {
            self.bench.wiring.notify.moved(feed, head);
        }
        self.behind.catalog |= moves.catalog;
        self.behind.accounts |= moves.accounts;
        self.behind.certificate |= moves.sealed;
        self.catch_up().await;
    }

    /// Reads what is not read yet of the changes of others.
    async fn catch_up(&mut self) {
        let bench = &self.bench;
        if self.behind.accounts {
            match accounts::stored(&*bench.wiring.store).await {
                Ok(accounts) => {
                    bench.wiring.gate.auth.publish(accounts);
                    self.behind.accounts = false;
                }
                Err(error) => tracing::debug!("The users could not be read: {error}"),
            }
        }
        let works = self.workplace().work().is_some();
        if self.behind.certificate && !works {
            self.behind.certificate = !self.take_up_certificate().await;
        }
        let bench = &self.bench;
        if self.behind.catalog && !works {
            match bench.reloader.follow().await {
                Ok(()) => self.behind.catalog = false,
                Err(error) => tracing::debug!("The feeds could not be read: {error}"),
            }
        }
    }

    /// Shows the certificate that the process that works was given, and answers its challenges. False
    /// where that is tried again.
    async fn take_up_certificate(&self) -> bool {
        let Some(certificate) = &self.bench.certificate else {
            return true;
        };
        let Err(error) = certificate.take_up().await else {
            return true;
        };
        let is_away = self.bench.wiring.store.condition().outage().is_some();
        if !is_away {
            let secs = LOOK_EVERY.as_secs();
            tracing::error!(
                "What is kept of the certificate could not be taken up, will try again in {secs} s: {error}"
            );
        }
        false
    }

    /// Answers a question of a process that follows, while everything goes on.
    fn answer(&self, question: Question) {
        let (bench, admin) = (self.bench.clone(), self.admin.clone());
        tokio::spawn(async move {
            // Dropped without an answer it tells that none comes.
            if let Some(answer) = answer_to(&bench, admin, &question.words).await {
                let _ = question.answer.send(reply_words(&answer));
            }
        });
    }
}

/// The answer to the words of another process; `None` where this one does not work, or does not
/// understand them.
async fn answer_to(bench: &WorkContext, admin: Admin, words: &[u8]) -> Option<Response<Bytes>> {
    let letter = RelayRequest::read(words)?;
    let mut request = letter.request()?;
    let work = bench.workplace.work()?;
    match letter.door {
        RelayTarget::Hub => {
            if let Some(sender) = letter.sender() {
                let Some(known) = bench.wiring.gate.auth.principal(sender) else {
                    let mut answer = Response::new(Bytes::from_static(b"who are you?\n"));
                    *answer.status_mut() = StatusCode::UNAUTHORIZED;
                    return Some(answer);
                };
                request.extensions_mut().insert(known);
            }
            Some(work.hub.handle(request, letter.client).await)
        }
        RelayTarget::Callback { is_whole } => {
            let subscriber = work.subscriber.as_ref()?;
            let token = request.uri().path().trim_start_matches('/').to_owned();
            Some(subscriber.answer(&token, &request, is_whole).await)
        }
        RelayTarget::Look => {
            let (feed, fresh_secs) = asked_look(request.uri())?;
            if let Some(look) = work.poller.look(feed, fresh_secs) {
                look.await;
            }
            Some(Response::new(Bytes::new()))
        }
        RelayTarget::Operator => {
            let mut request = request.map(body::whole);
            request.extensions_mut().insert(Relayed);
            let answer: BoxFuture<'static, _> = Box::pin(admin.oneshot(request));
            let (head, body) = answer.await.ok()?.into_parts();
            let body = body.collect().await.ok()?.to_bytes();
            (body.len() <= ANSWER_BYTES_MAX).then(|| Response::from_parts(head, body))
        }
    }
}

#[cfg(test)]
mod tests;
