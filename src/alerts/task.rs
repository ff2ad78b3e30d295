//! The tasks that send alerts: one for each, so that a receiver that hangs holds up no other. What is
//! sent, and when, is the plan's business.

use super::{
    command::AlertCommand,
    mail::AlertMail,
    message::AlertMessage,
    plan::{AlertPlan, AlertStep, SentTimes},
    settings::AlertSettings,
    webhook::AlertWebhook,
};
use crate::{
    clock::Clock,
    events::{Cause, Event, EventTopic, FaultOwner, Finding},
    feed::stamp::Stamp,
    layers::Client,
    locks::lock,
};
use futures_util::future::{BoxFuture, FutureExt as _};
use http::HeaderValue;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// Events that wait for one alert at most; more are counted as lost in the log.
const WAITING_MAX: usize = 1000;
/// Waits before a message is tried again. A command is not: it may have done something.
const TRIES_AFTER: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(30),
];
/// The longest time of one try.
const TRY_MAX: Duration = Duration::from_secs(40);
/// The longest wait for an event: the wall clock, by which the plan goes, may be set.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The parts that alerts are sent by.
#[derive(Clone)]
pub struct AlertParts {
    /// The client of webhooks: it follows no redirects.
    pub client: Client,
    /// The name by which everfeed asks.
    pub user_agent: HeaderValue,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The root of the URLs that consumers see.
    pub public_url: String,
}

/// The alerts of a configuration. Cheap to clone.
#[derive(Clone, Default)]
pub struct Alerts(Arc<Vec<Alert>>);

/// One alert, as the events reach it. Its task ends once nobody can tell it of events any more.
#[derive(Clone)]
struct Alert {
    settings: AlertSettings,
    inbox: mpsc::Sender<Event>,
    state: AlertState,
    /// Its messages within the last hour.
    sent: SentTimes,
}

/// The state of an alert.
#[derive(Clone)]
struct AlertState {
    /// Its number in the file, from 1 on.
    number: usize,
    receiver: String,
    /// The reason for which its messages do not arrive, and since when.
    fault: Arc<Mutex<Option<(String, Stamp)>>>,
    /// True once a message was sent, or could not be.
    is_tried: Arc<AtomicBool>,
}

/// The way of the messages of an alert.
trait AlertWay: Send + Sync {
    /// Sends a message. The error is the reason for which it did not arrive.
    fn send<'a>(&'a self, message: &'a AlertMessage) -> BoxFuture<'a, Result<(), String>>;

    /// True where a message may be sent again that did not arrive.
    fn tries_again(&self) -> bool {
        true
    }
}

impl AlertWay for AlertWebhook {
    fn send<'a>(&'a self, message: &'a AlertMessage) -> BoxFuture<'a, Result<(), String>> {
        AlertWebhook::send(self, message).boxed()
    }
}

impl AlertWay for AlertMail {
    fn send<'a>(&'a self, message: &'a AlertMessage) -> BoxFuture<'a, Result<(), String>> {
        AlertMail::send(self, message).boxed()
    }
}

impl AlertWay for AlertCommand {
    fn send<'a>(&'a self, message: &'a AlertMessage) -> BoxFuture<'a, Result<(), String>> {
        AlertCommand::send(self, message).boxed()
    }

    fn tries_again(&self) -> bool {
        false
    }
}

impl Alerts {
    /// Makes the alerts of these settings, and hands each task to `spawn`. The receivers know these
    /// events from before, oldest first.
    pub fn start(
        settings: &[AlertSettings],
        parts: &AlertParts,
        known: &[Event],
        spawn: impl FnMut(BoxFuture<'static, ()>),
        stop: &CancellationToken,
    ) -> Self {
        Self::default().changed(settings, parts, known, spawn, stop)
    }

    /// True for the alerts of these settings.
    pub fn have(&self, settings: &[AlertSettings]) -> bool {
        let own = self.0.iter().map(|alert| &alert.settings);
        own.eq(settings)
    }

    /// The alerts of other settings. Those that stand in them as they were go on; each of the others
    /// ends once it has sent what is due, or begins. One to the same receiver goes on with the count of
    /// messages within an hour.
    #[must_use]
    pub fn changed(
        &self,
        settings: &[AlertSettings],
        parts: &AlertParts,
        known: &[Event],
        mut spawn: impl FnMut(BoxFuture<'static, ()>),
        stop: &CancellationToken,
    ) -> Self {
        let mut alerts = Vec::new();
        for (number, settings) in (1..).zip(settings) {
            let mut before = self.0.iter();
            let same = |alert: &&Alert| alert.state.number == number && alert.settings == *settings;
            if let Some(alert) = before.find(same) {
                alerts.push(alert.clone());
                continue;
            }
            let Some(way) = way(settings, parts) else {
                continue;
            };
            let (inbox, events) = mpsc::channel(WAITING_MAX);
            let is_same = |alert: &&Alert| alert.settings.is_to_receiver_of(settings);
            let known_receiver = self.0.iter().find(is_same);
            let sent = known_receiver.map_or_else(SentTimes::default, |alert| alert.sent.clone());
            let state = AlertState {
                number,
                receiver: settings.receiver(),
                fault: Arc::default(),
                is_tried: Arc::default(),
            };
            let task = AlertTask {
                way,
                plan: AlertPlan::after(
                    settings.quiet(),
                    settings.again_after_secs,
                    known,
                    Stamp::from_micros(parts.clock.now_us()),
                )
                .counting(sent.clone()),
                clock: parts.clock.clone(),
                events,
                state: state.clone(),
            };
            spawn(task.run(stop.clone()).boxed());
            alerts.push(Alert {
                settings: settings.clone(),
                inbox,
                state,
                sent,
            });
        }
        Self(Arc::new(alerts))
    }

    /// Tells each alert of an event, without waiting.
    pub fn tell(&self, event: &Event) {
        for alert in &*self.0 {
            if alert.inbox.try_send(event.clone()).is_err() {
                let receiver = &alert.state.receiver;
                tracing::warn!("An event is lost for {receiver}: {WAITING_MAX} wait");
            }
        }
    }

    /// The causes of alerts of which nothing is known yet: they have sent nothing since the start.
    pub fn untried(&self) -> impl Iterator<Item = Cause> {
        let untried = self
            .0
            .iter()
            .filter(|alert| !alert.state.is_tried.load(Ordering::Relaxed));
        untried.map(|alert| alert.state.cause())
    }

    /// The alerts that fail now.
    pub fn findings(&self) -> Vec<Finding> {
        self.0
            .iter()
            .filter_map(|alert| alert.state.finding())
            .collect()
    }
}

/// The way of an alert; `None` for settings that were refused.
fn way(settings: &AlertSettings, parts: &AlertParts) -> Option<Box<dyn AlertWay>> {
    let public_url = parts.public_url.clone();
    if let (Some(url), Some(secret)) = (settings.url.clone(), settings.secret.clone()) {
        return Some(Box::new(AlertWebhook {
            client: parts.client.clone(),
            user_agent: parts.user_agent.clone(),
            clock: parts.clock.clone(),
            url,
            secret,
            public_url,
        }));
    }
    if !settings.command.is_empty() {
        let command = settings.command.clone();
        return Some(Box::new(AlertCommand {
            command,
            public_url,
        }));
    }
    Some(Box::new(AlertMail::of(settings, &public_url)?))
}

impl AlertState {
    fn cause(&self) -> Cause {
        Cause::new(EventTopic::Alert, &self.number.to_string())
    }

    fn finding(&self) -> Option<Finding> {
        let (why, since) = lock(&self.fault).clone()?;
        let Self {
            number, receiver, ..
        } = self;
        let cause = self.cause();
        let title = format!("Alerts do not reach {receiver}");
        let finding = Finding::new(cause, FaultOwner::Receiver, since, &title, &why);
        Some(finding.remedy(&format!(
            "check the [[alert]] number {number} of the configuration, and its receiver; what could not be sent is tried again every ten minutes"
        )))
    }

    fn note(&self, sent: &Result<(), String>, now: Stamp) {
        self.is_tried.store(true, Ordering::Relaxed);
        let mut fault = lock(&self.fault);
        let receiver = &self.receiver;
        match sent {
            Ok(()) if fault.is_some() => {
                tracing::info!("Alerts reach {receiver} again");
                *fault = None;
            }
            Ok(()) => {}
            Err(why) => {
                if fault.is_none() {
                    tracing::warn!("An alert did not reach {receiver}, will try again: {why}");
                }
                let since = fault.as_ref().map_or(now, |(_, since)| *since);
                *fault = Some((why.clone(), since));
            }
        }
    }
}

/// The task of one alert.
struct AlertTask {
    way: Box<dyn AlertWay>,
    plan: AlertPlan,
    clock: Arc<dyn Clock>,
    events: mpsc::Receiver<Event>,
    state: AlertState,
}

impl AlertTask {
    /// Sends until `stop`.
    async fn run(mut self, stop: CancellationToken) {
        loop {
            while let Ok(event) = self.events.try_recv() {
                self.plan.take_in(event);
            }
            match self.plan.next(self.now()) {
                AlertStep::Send(message) => {
                    let sent = tokio::select! {
                        () = stop.cancelled() => return,
                        sent = self.send(&message) => sent,
                    };
                    let now = self.now();
                    self.state.note(&sent, now);
                    match sent {
                        Ok(()) => self.plan.sent(&message, now),
                        Err(_) => self.plan.failed(now),
                    }
                }
                AlertStep::Wait(until) => {
                    let wait = until.map_or(WAIT_MAX, |until| {
                        let left = until.micros().saturating_sub(self.now().micros());
                        Duration::from_micros(left).min(WAIT_MAX)
                    });
                    tokio::select! {
                        () = stop.cancelled() => return,
                        event = self.events.recv() => match event {
                            Some(event) => self.plan.take_in(event),
                            None => return,
                        },
                        () = sleep(wait) => {}
                    }
                }
            }
        }
    }

    /// Sends a message, and tries again where that may help.
    async fn send(&self, message: &AlertMessage) -> Result<(), String> {
        let mut waits = TRIES_AFTER.iter();
        loop {
            let tried = timeout(TRY_MAX, self.way.send(message)).await;
            let sent = tried.unwrap_or_else(|_| {
                Err(format!("it did not answer within {} s", TRY_MAX.as_secs()))
            });
            let Err(why) = sent else { return Ok(()) };
            match waits.next().filter(|_| self.way.tries_again()) {
                Some(wait) => sleep(*wait).await,
                None => return Err(why),
            }
        }
    }

    fn now(&self) -> Stamp {
        Stamp::from_micros(self.clock.now_us())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{AffectedFeeds, EventKind, Severity};
    use tokio::time::Instant;

    /// A wall clock that goes with the clock of tokio.
    struct Paused(Instant);

    const BEGIN_US: u64 = 1_795_824_000_000_000;

    impl Clock for Paused {
        fn now_us(&self) -> u64 {
            BEGIN_US + u64::try_from(self.0.elapsed().as_micros()).unwrap()
        }
    }

    /// A receiver that refuses so many messages, and notes when it took others.
    struct Fake {
        refuses: Mutex<usize>,
        began: Instant,
        taken: Arc<Mutex<Vec<(u64, String)>>>,
        hangs: bool,
    }

    impl AlertWay for Fake {
        fn send<'a>(&'a self, message: &'a AlertMessage) -> BoxFuture<'a, Result<(), String>> {
            async move {
                if self.hangs {
                    std::future::pending::<()>().await;
                }
                let mut refuses = lock(&self.refuses);
                if *refuses > 0 {
                    *refuses -= 1;
                    return Err("421".into());
                }
                let at = self.began.elapsed().as_secs();
                lock(&self.taken).push((at, message.subject()));
                Ok(())
            }
            .boxed()
        }
    }

    fn event(key: &str) -> Event {
        Event {
            at: Stamp::from_micros(BEGIN_US),
            kind: EventKind::Happened,
            cause: Cause::new(EventTopic::Feeds, key),
            severity: Severity::Fault,
            whose: FaultOwner::Upstream,
            owner: String::new(),
            since: Stamp::from_micros(BEGIN_US),
            title: key.into(),
            text: key.into(),
            remedy: String::new(),
            feeds: AffectedFeeds::default(),
            joined_at: None,
        }
    }

    /// What a receiver gets of some events, and the finding of its alert after so many seconds.
    async fn check(
        refuses: usize,
        hangs: bool,
        secs: u64,
        expect: &[(u64, &str)],
        is_failing: bool,
    ) {
        let began = Instant::now();
        let taken = Arc::default();
        let (inbox, events) = mpsc::channel(9);
        let state = AlertState {
            number: 1,
            receiver: "the test".into(),
            fault: Arc::default(),
            is_tried: Arc::default(),
        };
        let task = AlertTask {
            way: Box::new(Fake {
                refuses: Mutex::new(refuses),
                began,
                taken: Arc::clone(&taken),
                hangs,
            }),
            plan: AlertPlan::after(None, 3600, [], Stamp::from_micros(BEGIN_US)),
            clock: Arc::new(Paused(began)),
            events,
            state: state.clone(),
        };
        let stop = CancellationToken::new();
        let running = tokio::spawn(task.run(stop.clone()));
        inbox.send(event("a")).await.unwrap();
        sleep(Duration::from_secs(secs)).await;
        stop.cancel();
        running.await.unwrap();
        let taken: Vec<(u64, String)> = lock(&taken).clone();
        let taken: Vec<(u64, &str)> = taken
            .iter()
            .map(|(at, subject)| (*at, &**subject))
            .collect();
        assert_eq!(taken, expect);
        assert_eq!(state.finding().is_some(), is_failing);
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_is_sent_at_once_and_a_refusal_is_tried_again() {
        check(0, false, 5, &[(0, "[everfeed] a")], false).await;
        check(1, false, 5, &[(1, "[everfeed] a")], false).await;
        check(3, false, 60, &[(36, "[everfeed] a")], false).await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_alert_that_fails_is_a_finding_until_it_is_sent() {
        check(4, false, 60, &[], true).await;
        check(4, false, 700, &[(636, "[everfeed] a")], false).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_receiver_that_hangs_is_left_and_its_alert_fails() {
        check(0, true, 300, &[], true).await;
    }
}
