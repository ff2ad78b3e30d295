//! Keeps a stream open: connects, answers what comes, and begins anew after an end, later and later
//! while it fails; not what is answered.

use super::{
    element::Element,
    frames::Frame,
    pace::Flow,
    proof::Proofs,
    push,
    service::Service,
    stanza::{Received, Request},
    stanza_error::StanzaError,
    stream::{self, AnyConnection, OpenStream, Outbox, StreamEnd},
    subscribers::Subscribers,
    waiting_requests::WaitingRequests,
};
use crate::{
    clock::Clock, feed::stamp::Stamp, secret::Secret, telemetry::Metrics, xmpp::ConnectionState,
};
use futures_util::future::BoxFuture;
use jid::{BareJid, Jid};
use std::{io, ops::RangeInclusive, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

/// Seconds in which a connection must be there.
const CONNECT_SECS: u64 = 10;
/// The wait before the first new try, milliseconds; each further one is twice as long.
const WAIT_MS_MIN: u64 = 100;
/// The longest wait between two tries, milliseconds.
const WAIT_MS_MAX: u64 = 60_000;
/// The wait after a refusal that only an operator can end, milliseconds.
const REFUSED_WAIT_MS: u64 = 40_000;
/// A stream that served for as long as the next wait, within these bounds in milliseconds, was a
/// good one: the waits begin anew.
const GOOD_MS: RangeInclusive<u64> = 2_000..=30_000;
/// Seconds in which a server that refuses a stream by `conflict` may hold a former connection of
/// ours. After that another component has the name.
const HELD_SECS: u64 = 180;
/// Answers under way at once at most, until they are written. Each is as large as a stanza may be
/// (`xmpp.stanza_bytes_max`), so that all of them have a few megabytes.
const ANSWERS_MAX: usize = 16;

/// Makes a connection to the server.
pub(super) type Connect =
    Arc<dyn Fn() -> BoxFuture<'static, io::Result<AnyConnection>> + Send + Sync>;

/// Everything that a stream needs.
pub(super) struct Supervisor {
    pub(super) jid: String,
    /// The server, for the log.
    pub(super) server: String,
    pub(super) secret: Secret,
    pub(super) connect: Connect,
    pub(super) service: Arc<Service>,
    pub(super) subscribers: Arc<Subscribers>,
    pub(super) proofs: Arc<Proofs>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) metrics: Metrics,
    /// A part of 1: by up to a quarter waits are made shorter, so that components do not come all at
    /// once.
    pub(super) jitter: fn() -> f64,
    /// The way to the server, while there is one.
    pub(super) outbox: watch::Sender<Option<Outbox>>,
    pub(super) state: watch::Sender<ConnectionState>,
}

impl ConnectionState {
    /// Before the first try.
    pub(super) fn beginning(now: Stamp) -> Self {
        Self {
            is_online: false,
            since: now,
            streams: 0,
            fault: None,
        }
    }
}

/// The condition by which a server says that a component of our name is connected.
const CONFLICT: &str = "conflict";

/// Refusals in a row by `conflict`, of streams that were never open.
#[derive(Debug, Default)]
struct Conflicts {
    since: Option<Instant>,
}

impl Conflicts {
    // Decides: When does another component have our name?
    /// The end of a stream in other words where it may be our former connection that the server still
    /// holds. A server that ends an open stream so has connected another component since.
    fn seen(&mut self, end: StreamEnd, was_open: bool, now: Instant) -> StreamEnd {
        let is_conflict =
            matches!(&end, StreamEnd::Refused { condition, .. } if condition == CONFLICT);
        if !is_conflict || was_open {
            self.since = None;
            return end;
        }
        let since = *self.since.get_or_insert(now);
        if now.saturating_duration_since(since) < Duration::from_secs(HELD_SECS) {
            StreamEnd::Held
        } else {
            end
        }
    }
}

impl StreamEnd {
    // Decides: Which end of a stream needs an operator?
    /// True where another try will end in the same way, until somebody changes a configuration.
    fn needs_operator(&self) -> bool {
        let conditions = [
            "not-authorized",
            "host-unknown",
            CONFLICT,
            "invalid-namespace",
        ];
        matches!(self, Self::Refused { condition, .. } if conditions.contains(&condition.as_str()))
    }

    /// The words for the operator.
    fn told(&self, jid: &str) -> String {
        let Self::Refused { condition, .. } = self else {
            return self.to_string();
        };
        let remedy = match condition.as_str() {
            "not-authorized" => {
                "xmpp.secret is not the secret that the server has for the component"
            }
            "host-unknown" => {
                "the server knows no component of this name; compare xmpp.jid with its configuration"
            }
            CONFLICT => {
                "another component of this name is connected, or the server holds a connection that is gone; end it, or give one of them another xmpp.jid"
            }
            _ => return self.to_string(),
        };
        format!("{self}: {remedy} ({jid})")
    }
}

impl Supervisor {
    /// Keeps a stream open until `stop`.
    pub(super) async fn run(&self, stop: &CancellationToken) {
        let mut wait_ms = WAIT_MS_MIN;
        let mut told = String::new();
        let mut conflicts = Conflicts::default();
        while !stop.is_cancelled() {
            let mut served = None;
            let end = self.one_stream(stop, &mut told, &mut served).await;
            self.outbox.send_replace(None);
            let end = conflicts.seen(end, served.is_some(), Instant::now());
            if end == StreamEnd::Stopped {
                break;
            }
            self.tell(&end, &mut told);
            self.note(false, Some(end.told(&self.jid)));
            let good_ms = wait_ms.clamp(*GOOD_MS.start(), *GOOD_MS.end());
            if served.unwrap_or_default() >= Duration::from_millis(good_ms) {
                wait_ms = WAIT_MS_MIN;
            }
            let this_ms = if end.needs_operator() {
                wait_ms.max(REFUSED_WAIT_MS)
            } else {
                wait_ms
            };
            let jittered = this_ms as f64 * (1.0 - (self.jitter)() / 4.0);
            let wait = Duration::from_millis(jittered as u64);
            wait_ms = wait_ms.saturating_mul(2).min(WAIT_MS_MAX);
            if stop.run_until_cancelled(sleep(wait)).await.is_none() {
                break;
            }
        }
        self.note(false, Some(StreamEnd::Stopped.to_string()));
    }

    /// Tells the log of an end, once as long as it is the same.
    fn tell(&self, end: &StreamEnd, told: &mut String) {
        let (text, server) = (end.told(&self.jid), &self.server);
        if *told == text {
            return;
        }
        if end.needs_operator() {
            error!(xmpp.server = %server, "XMPP is off: {text}. It is tried again every minute at the latest");
        } else {
            warn!(xmpp.server = %server, "The stream to {server} is down: {text}. It is tried again");
        }
        *told = text;
    }

    fn note(&self, is_online: bool, fault: Option<String>) {
        let now = Stamp::from_micros(self.clock.now_us());
        self.state.send_modify(|state| {
            if state.is_online != is_online || state.fault.is_none() != fault.is_none() {
                state.since = now;
            }
            state.is_online = is_online;
            state.streams += u64::from(is_online);
            state.fault = fault;
        });
    }

    /// Serves on one stream, and notes for how long it was open.
    async fn one_stream(
        &self,
        stop: &CancellationToken,
        told: &mut String,
        served: &mut Option<Duration>,
    ) -> StreamEnd {
        let opened = match stop.run_until_cancelled(self.open()).await {
            Some(Ok(opened)) => opened,
            Some(Err(end)) => return end,
            None => return StreamEnd::Stopped,
        };
        told.clear();
        info!(xmpp.server = %self.server, "XMPP is served as {}", self.jid);
        self.note(true, None);
        self.outbox.send_replace(Some(opened.outbox.clone()));
        let answering = self.answer_all(opened.incoming, &opened.outbox);
        let began = Instant::now();
        let end = tokio::select! {
            end = opened.stream.run(stop) => end,
            () = answering => StreamEnd::Closed,
        };
        *served = Some(began.elapsed());
        end
    }

    async fn open(&self) -> Result<OpenStream, StreamEnd> {
        let connecting = timeout(Duration::from_secs(CONNECT_SECS), (self.connect)());
        let connection = match connecting.await {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return Err(StreamEnd::Broken(error.to_string())),
            Err(_) => {
                let text = format!("no connection to {} within {CONNECT_SECS} s", self.server);
                return Err(StreamEnd::Broken(text));
            }
        };
        stream::open(connection, &self.jid, &self.secret).await
    }

    /// Answers what comes, until the stream ends. Requests are read while answers are under way,
    /// so that one that is refused, or whose client has asked for little, waits for nobody.
    async fn answer_all(&self, mut incoming: mpsc::Receiver<Frame>, outbox: &Outbox) {
        let mut under_way: JoinSet<(BareJid, usize)> = JoinSet::new();
        let mut flow = Flow::new(ANSWERS_MAX);
        let mut waiting = WaitingRequests::default();
        loop {
            while under_way.len() < ANSWERS_MAX {
                let now = Instant::now();
                let Some((address, request)) = waiting.take(&flow, now) else {
                    break;
                };
                flow.begun(&address, now);
                under_way.spawn(self.answered(address, request, outbox.clone()));
            }
            let frame = tokio::select! {
                Some(ended) = under_way.join_next() => {
                    if let Ok((address, bytes)) = ended {
                        flow.ended(&address, bytes, Instant::now());
                    }
                    continue;
                }
                frame = incoming.recv() => frame,
            };
            let Some(frame) = frame else {
                return;
            };
            let (stanza, is_whole) = match frame {
                Frame::Stanza(stanza) => (stanza, true),
                Frame::TooLarge(head) => (head, false),
                Frame::Open(_) | Frame::Close => continue,
            };
            self.proofs.note(&stanza);
            let mut request = match Received::of(stanza) {
                Received::Request(request) => request,
                Received::Answer(answer) => {
                    if let Some(no) = push::probed(&answer.id) {
                        let error = answer.error.as_ref();
                        self.subscribers.note_probe(no, &answer.from, error);
                    }
                    continue;
                }
                Received::Bounce(bounce) => {
                    self.metrics.xmpp_push("bounced");
                    let now = Stamp::from_micros(self.clock.now_us());
                    self.subscribers
                        .note_bounce(&bounce.from, &bounce.failure, now);
                    continue;
                }
                Received::Nothing => continue,
            };
            let now = Instant::now();
            let refused = match self.refused(&mut request, is_whole, &mut flow) {
                Some(error) => Some((request, error)),
                None => {
                    let address = request.from.to_bare();
                    let beyond = waiting.add(address, request, &flow, now);
                    beyond.map(|(address, request)| {
                        flow.ended(&address, 0, now);
                        (request, busy())
                    })
                }
            };
            if let Some((request, error)) = refused {
                self.metrics.xmpp_request("refused");
                if outbox.refuse(&request.error(&error)).await.is_err() {
                    return;
                }
            }
        }
    }

    // Decides: Which requests are refused, whatever they ask for?
    /// The refusal of a request, unless it is answered; its answer counts from now on.
    fn refused(
        &self,
        request: &mut Request,
        is_whole: bool,
        flow: &mut Flow,
    ) -> Option<StanzaError> {
        if let Ok(own) = Jid::new(&self.jid)
            && own.domain() != request.to.domain()
        {
            // Servers end a stream that answers from a domain of others (XMPP-2).
            request.to = own;
            return Some(StanzaError::NO_SERVICE);
        }
        if !is_whole {
            return Some(StanzaError::TOO_LARGE.saying("the stanza is too large"));
        }
        if request.has_long_id() {
            return Some(StanzaError::TOO_LARGE.saying("the id of the stanza is too long"));
        }
        let address = request.from.to_bare();
        self.subscribers.note_seen(address.as_str());
        let is_admitted = flow.admits(&address, Instant::now());
        (!is_admitted).then(busy)
    }

    /// Answers a request of an address; with the bytes of the answer, once they are written.
    fn answered(
        &self,
        address: BareJid,
        request: Request,
        outbox: Outbox,
    ) -> impl Future<Output = (BareJid, usize)> + use<> {
        let (service, metrics) = (self.service.clone(), self.metrics.clone());
        async move {
            let answer: Element = service.answer(&request).await;
            metrics.xmpp_request(if answer.attribute("type") == Some("result") {
                "answered"
            } else {
                "refused"
            });
            // Whoever asked asks again where the stream has ended.
            let bytes = outbox.answer_written(&answer).await.unwrap_or_default();
            (address, bytes)
        }
    }
}

/// The refusal of a request that there is no room for.
fn busy() -> StanzaError {
    StanzaError::BUSY.saying("too many requests; try again soon")
}
