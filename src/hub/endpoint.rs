//! Answers to requests to the hub: a form is judged, its command kept, its verification awaited
//! only when the old dialect asks for that. Not what becomes of the command.

use super::{
    Hub,
    admission::ClientNet,
    command::{SubscriptionCommand, TaskCommand},
    deliver::{self, question::Verdict},
    form::{self, HubRequest, Mode, RefusedForm, SubscriptionRequest, Verify},
    index::{Applicant, Key, Standing, SubscriptionLimits, Way},
    lease,
    retry_schedule::VERIFY_GIVE_UP_SECS,
    subscription_task::{self, NewTerms, TaskSlot},
};
use crate::{
    auth::Principal,
    edge::{
        body::{PLAIN_TEXT, short_of},
        fields,
    },
    feed::{record::FeedNo, stamp::Stamp},
    notify::{DelayCause, HintFate},
    render::Endpoint,
    store::{
        StoreError,
        subscriptions::{Intent, LeaseTerms, Pending, PushWishes, Start, Target},
    },
};
use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{ACCEPT, ALLOW, CONTENT_TYPE, RETRY_AFTER},
};
use std::{
    borrow::Cow,
    collections::{BTreeSet, HashSet},
    net::IpAddr,
    time::Duration,
};
use tokio::sync::oneshot;
use url::form_urlencoded;

mod cloud;
mod status;
mod topics;

pub(super) use topics::Subject;
use topics::TopicAsk;

/// Wait of a verification for the answer to its request to be on its way, microseconds. There are
/// subscribers that hold a lock until they have it (HUBS section 2, websubsub).
const VERIFY_AFTER_US: u64 = 250_000;
/// `Retry-After` of somebody who came when we were too busy, seconds (Google's hub).
const BUSY_SECS: u64 = 120;

/// An answer in the making.
struct HubAnswer {
    status: StatusCode,
    text: String,
    media_type: &'static str,
    retry_after: Option<Duration>,
}

impl HubAnswer {
    fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
            media_type: PLAIN_TEXT,
            retry_after: None,
        }
    }

    fn busy(text: &str) -> Self {
        let retry_after = Some(Duration::from_secs(BUSY_SECS));
        Self {
            retry_after,
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, text)
        }
    }

    fn respond(self) -> Response<Bytes> {
        let mut text = self.text;
        if !text.is_empty() {
            text.push('\n');
        }
        let mut response = short_of(self.status, self.media_type, Bytes::from(text));
        let headers = response.headers_mut();
        if self.status == StatusCode::NO_CONTENT {
            headers.remove(CONTENT_TYPE);
        }
        if let Some(after) = self.retry_after {
            let secs = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            headers.insert(RETRY_AFTER, HeaderValue::from(secs));
        }
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST, OPTIONS"));
        }
        response
    }
}

impl From<RefusedForm> for HubAnswer {
    fn from(refusal: RefusedForm) -> Self {
        Self::new(refusal.status(), refusal.to_string())
    }
}

impl From<StoreError> for HubAnswer {
    fn from(error: StoreError) -> Self {
        if matches!(error, StoreError::UnknownFeed(_)) {
            // Forgotten since its topic was looked up.
            return RefusedForm::GoneTopic.into();
        }
        tracing::error!("A request to the hub could not be kept: {error}");
        Self::busy(
            "the hub cannot store requests at the moment. The fault is this server's. Try again soon",
        )
    }
}

impl Hub {
    /// Answers `/hub`, `/feeds/{name}/hub` and `/pleaseNotify`. On the second only topics of that
    /// feed are known. `client` is the address of whoever asks, as far as it is known.
    pub async fn handle(&self, request: Request<Bytes>, client: Option<IpAddr>) -> Response<Bytes> {
        if self.shared.readers.site().endpoint(request.uri().path()) == Some(Endpoint::Cloud) {
            return self.please_notify(&request, client).await;
        }
        let answer = match *request.method() {
            Method::GET | Method::HEAD => Ok(self.about(request.uri().query().unwrap_or_default())),
            Method::POST => self.post(&request, client).await,
            _ => Ok(HubAnswer::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "use POST here",
            )),
        };
        let response = answer.unwrap_or_else(|answer| answer).respond();
        if response.status().is_client_error() {
            tracing::debug!(
                status = response.status().as_u16(),
                "A request to the hub was refused"
            );
        }
        response
    }

    /// The page for people. A request that was meant as a POST is told so (HUBS 5.3).
    fn about(&self, query: &str) -> HubAnswer {
        if form_urlencoded::parse(query.as_bytes()).any(|(name, _)| name == "hub.mode") {
            return HubAnswer::new(
                StatusCode::BAD_REQUEST,
                "send `hub.mode` and the rest as a form, with POST",
            );
        }
        let text = format!(
            "This is a WebSub hub, for the feeds served here and no others. To subscribe, POST a form with\n\
             hub.mode=subscribe, hub.topic (the rel=self URL of a feed) and hub.callback to {}.\n\
             The feeds: {}",
            self.shared.readers.site().hub(),
            self.shared.readers.site().list()
        );
        HubAnswer::new(StatusCode::OK, text)
    }

    async fn post(
        &self,
        request: &Request<Bytes>,
        client: Option<IpAddr>,
    ) -> Result<HubAnswer, HubAnswer> {
        if self.shared.stop.is_cancelled() {
            return Err(HubAnswer::busy("the hub is stopping"));
        }
        let mut sender = HubSender::of(request, client);
        let endpoint = self.shared.readers.site().endpoint(request.uri().path());
        if let Some(Endpoint::HubOf(name)) = endpoint {
            sender.scope = Some(name);
        }
        let content_type = fields::text(request.headers(), &CONTENT_TYPE);
        match form::parse(content_type, request.body())? {
            HubRequest::Publish(urls) => self.publish(&urls, &sender),
            HubRequest::Status(asked) => self.status(&asked, &sender).await,
            HubRequest::SubscriptionRequest(change) => self.change(&change, &sender).await,
        }
    }

    /// Somebody says that something has changed. We look ourselves, when it is ours to look at
    /// (P-40, SF-86), at once as long as such hints are right now and then.
    fn publish(&self, urls: &[String], sender: &HubSender) -> Result<HubAnswer, HubAnswer> {
        self.admission
            .publish(sender.net, urls.len())
            .map_err(|full| slow_down(full.wait))?;
        if !self.shared.config().publish_hints {
            return Err(RefusedForm::HintsOff.into());
        }
        let principal = sender.principal.as_ref();
        let known = |url: &str| match self.shared.gate.catalog.snapshot().by_origin(url) {
            Some(feed) => Some(feed),
            None => self.published_topic(url, sender, principal),
        };
        let mut hinted = BTreeSet::new();
        for url in urls {
            // Some send a list; a comma may be a URL's own, too.
            match known(url) {
                Some(feed) => hinted.extend([feed]),
                None => hinted.extend(url.split(',').filter_map(|url| known(url.trim()))),
            }
        }
        if hinted.is_empty() {
            return Err(RefusedForm::NothingPublished.into());
        }
        // Its publisher may say that a private feed has changed, but nobody is told that there is
        // one.
        let is_told = |feed: &FeedNo| self.shared.gate.admits(principal, *feed);
        let (told, hidden): (Vec<_>, Vec<_>) = hinted.into_iter().partition(is_told);
        hidden.into_iter().for_each(|feed| drop(self.hint(feed)));
        if told.is_empty() {
            return Err(RefusedForm::NothingPublished.into());
        }
        let waiting: Vec<String> = told
            .into_iter()
            .filter_map(|feed| self.hint(feed))
            .collect();
        if waiting.is_empty() {
            return Ok(HubAnswer::new(StatusCode::NO_CONTENT, ""));
        }
        Ok(HubAnswer::new(StatusCode::ACCEPTED, waiting.join("\n")))
    }

    /// Gives a hint; the reason when it leads to no poll now.
    fn hint(&self, feed: FeedNo) -> Option<String> {
        let catalog = self.shared.gate.catalog.snapshot();
        let name = catalog
            .feed_no(feed)
            .map_or("", |feed| feed.settings.name.as_str());
        if catalog.members(feed).is_some() {
            return Some(format!(
                "`{name}` is a group, and a group is not polled. Name the feed that has changed"
            ));
        }
        let now = self.shared.now();
        let HintFate::Delayed(delay) = self.notify.hint(feed, now) else {
            return None;
        };
        let why = match delay.cause {
            DelayCause::HostPause => "its host asked to be left alone (Retry-After or 429)",
            DelayCause::Gone => "its publisher says that it is gone for good (410)",
            DelayCause::Quota => "it is at its quota, and nothing more of it can be stored",
            DelayCause::Budget => "the hints before this one brought nothing new",
        };
        let (at, secs) = (delay.until.rfc3339(), delay.until.secs_since(now));
        let since = delay
            .since
            .map(|since| format!(", since {}", since.rfc3339()))
            .unwrap_or_default();
        let why = format!(
            "`{name}` is not polled before {at}, in {secs} s: {why}{since}. This hint waits until then"
        );
        tracing::debug!(feed.name = %name, "A publish hint leads to no poll now: {why}");
        Some(why)
    }

    async fn change(
        &self,
        change: &SubscriptionRequest,
        sender: &HubSender,
    ) -> Result<HubAnswer, HubAnswer> {
        self.check_address(&change.callback, ["hub.callback", "hub.callback"])?;
        let mut registrations = Vec::with_capacity(change.topics.len());
        for topic in &change.topics {
            let ask = TopicAsk {
                spelt: topic,
                mode: change.mode,
                format: change.format.as_deref(),
                accept: sender.accept.as_deref(),
            };
            let subject = self.subject(ask, sender).await?;
            let target = deliver::target(change, &subject.spelt, subject.deletions);
            registrations.push(self.registration(subject, target).await?);
        }
        self.admit(&registrations, &change.callback, sender)?;
        // One topic in several spellings is one.
        let mut seen = HashSet::new();
        registrations.retain(|registration| seen.insert(registration.key));
        let grant = lease::grant(change.lease.as_deref(), &self.shared.config());
        let is_legacy_end = change.is_legacy() && change.mode == Mode::Unsubscribe;
        let mut commanded = false;
        let mut awaited = Vec::new();
        for registration in registrations {
            if is_legacy_end && !self.shared.index.knows(registration.key) {
                // What is wanted is the case already; Google's hub said 204 too.
                continue;
            }
            let target = registration.target.clone();
            let subject = &registration.subject;
            let pending = self.pending(change, subject, target, &grant).await?;
            let sync = matches!(change.verify, Some(Verify::Sync { .. }));
            awaited.extend(self.command(&registration, sender, pending, sync).await?);
            commanded = true;
        }
        match change.verify {
            _ if !commanded => Ok(HubAnswer::new(StatusCode::NO_CONTENT, "")),
            // The synchronous answer (P03-2): verified, or not.
            Some(Verify::Sync { or_async }) => {
                let refused = "`hub.callback` could not be verified";
                let busy = "the hub is too busy to verify now";
                if all_confirmed(awaited, or_async, refused, busy).await? {
                    return Ok(accepted(change, &grant));
                }
                Ok(HubAnswer::new(StatusCode::NO_CONTENT, ""))
            }
            // The answer is the same whatever the verification will come to (HUB-3).
            None | Some(Verify::Async) => Ok(accepted(change, &grant)),
        }
    }

    /// Admits a request for some subscriptions. One for those that are verified all counts for its
    /// callback, whoever asks for it.
    fn admit(
        &self,
        registrations: &[Registration],
        callback: &str,
        sender: &HubSender,
    ) -> Result<(), HubAnswer> {
        let mut keys = registrations.iter().map(|registration| registration.key);
        let is_known = keys.all(|key| self.shared.index.is_verified(key));
        let admitted = if is_known {
            self.admission.renew(callback, registrations.len())
        } else {
            self.admission.subscribe(sender.net, registrations.len())
        };
        admitted.map_err(|full| slow_down(full.wait))
    }

    /// Refuses an address that we do not call, by the parameters that say its host and its port.
    fn check_address(&self, url: &str, [host, port]: [&'static str; 2]) -> Result<(), RefusedForm> {
        let is_guarded = !self.shared.config().callbacks_private;
        if is_guarded && form::is_private(url) {
            let why = "is at an address that is not on the public internet";
            return Err(RefusedForm::Bad { name: host, why });
        }
        if is_guarded && form::is_barred_port(url) {
            let why = "is at a port that we do not call: use 80, 443 or one from 1024 on";
            return Err(RefusedForm::Bad { name: port, why });
        }
        // Said only of what may be called at all: nobody learns from it where we listen.
        if self.shared.client.own.holds(url, &[]) {
            let why = "is an address that everfeed answers itself, and never a callback; give the address of a subscriber";
            return Err(RefusedForm::Bad { name: host, why });
        }
        Ok(())
    }

    async fn pending(
        &self,
        change: &SubscriptionRequest,
        subject: &Subject,
        target: Target,
        grant: &lease::Grant,
    ) -> Result<Pending, HubAnswer> {
        let now = self.shared.now();
        let wishes = target.wishes();
        let (intent, (start, scanned)) = match change.mode {
            Mode::Unsubscribe => (Intent::Unsubscribe { target }, (Start::Head(None), None)),
            Mode::Subscribe => {
                let auto_refresh = change.is_legacy() && !grant.asked;
                let lease = LeaseTerms {
                    secs: grant.secs,
                    auto_refresh,
                };
                let start = match &change.since {
                    Some(cursor) => (Start::Given(cursor.clone()), None),
                    None => self.start_of(subject, &wishes).await?,
                };
                (Intent::Subscribe { target, lease }, start)
            }
        };
        let (next_try, give_up_at) = match change.verify {
            Some(Verify::Sync { or_async: false }) => (now, now),
            Some(Verify::Sync { or_async: true }) => (now, now.plus_secs(VERIFY_GIVE_UP_SECS)),
            Some(Verify::Async) | None => (
                Stamp::from_micros(now.micros() + VERIFY_AFTER_US),
                now.plus_secs(VERIFY_GIVE_UP_SECS),
            ),
        };
        Ok(Pending {
            intent,
            attempts: 0,
            next_try,
            give_up_at,
            start,
            principal: subject.principal,
            scanned,
        })
    }

    /// The start of who names none: the newest item now, and the position behind it, where that is
    /// another.
    async fn start_of(
        &self,
        subject: &Subject,
        wishes: &PushWishes,
    ) -> Result<(Start, Option<String>), StoreError> {
        let start = self.shared.start_for(subject, wishes).await?;
        let (acked, scanned) = start.map(|it| (it.acked, it.scanned)).unzip();
        Ok((Start::Head(acked), scanned.flatten()))
    }

    /// Hands a command to the subscription's task, started if there is none, and waits until it is
    /// kept.
    async fn command(
        &self,
        wanted: &Registration,
        sender: &HubSender,
        pending: Pending,
        sync: bool,
    ) -> Result<Option<oneshot::Receiver<Verdict>>, HubAnswer> {
        let Registration {
            key,
            topic,
            subject,
            target,
        } = wanted;
        let config = self.shared.config();
        let room = SubscriptionLimits {
            subscriptions_max: config.subscriptions_max,
            unverified_max: config.unverified_max,
            host_max: config.subscriptions_per_host_max,
            client_max: config.subscriptions_per_client_max,
        };
        let applicant = Applicant {
            feed: subject.view.feed,
            standing: Standing::Unverified,
            client: sender.net,
        };
        for _ in 0..COMMAND_TRIES {
            let (kept, is_kept) = oneshot::channel();
            let (tell, verdict) = oneshot::channel();
            let command = TaskCommand::Change(Box::new(SubscriptionCommand {
                pending: pending.clone(),
                kept,
                verdict: sync.then_some(tell),
            }));
            let sent = match self
                .shared
                .index
                .way(*key, applicant, target.address(), room)
            {
                Way::Full(limit) => return Err(HubAnswer::busy(limit.told())),
                Way::Known(mailbox) => mailbox.send(command).await.is_ok(),
                Way::AtRest(called_up, mailbox) => {
                    let sent = mailbox.try_send(command).is_ok();
                    self.shared.start_all(vec![called_up]);
                    sent
                }
                Way::New(new) => {
                    // Without waiting: a task whose first command never comes would never end.
                    let sent = new.mailbox.try_send(command).is_ok();
                    let place = TaskSlot::of(&self.shared, &new);
                    let terms = NewTerms {
                        topic: topic.clone(),
                        view: subject.view.clone(),
                        representation: subject.form_name(),
                    };
                    let task = subscription_task::begin(place, terms, new.commands);
                    self.shared.start_one(topic, task);
                    sent
                }
            };
            match is_kept.await {
                Ok(Ok(())) if sent => return Ok(sync.then_some(verdict)),
                Ok(Err(error)) => return Err(error.into()),
                // The task ended before it came to the command; its successor takes it.
                _ => {}
            }
        }
        Err(HubAnswer::busy("the hub is stopping, or very busy"))
    }
}

impl Hub {
    // Decides: Which subscription does a request mean?
    /// A subscription that is asked for. One that was made before our URLs changed stays the one that
    /// it is, under the topic that it had then, and so does one to a translation.
    async fn registration(
        &self,
        subject: Subject,
        target: Target,
    ) -> Result<Registration, StoreError> {
        let index = &self.shared.index;
        let key = |topic: &str| Key::of(topic, target.address());
        let mut topic = subject.topic.clone();
        if !index.knows(key(&topic)) {
            let former = self.shared.former_topics(subject.view.feed, &topic);
            let mut former = former.into_iter();
            topic = former
                .find(|topic| index.knows(key(topic)))
                .unwrap_or(topic);
        }
        if !index.knows(key(&topic)) {
            let translated = self.shared.find_translated(&subject, target.address());
            topic = translated.await?.map_or(topic, |(sub, _)| sub.topic);
        }
        Ok(Registration {
            key: key(&topic),
            topic,
            subject,
            target,
        })
    }
}

/// A subscription that is asked for: what is pushed, and to whom.
struct Registration {
    /// Its identity: the topic by which it is known, and the address of the target.
    key: Key,
    topic: String,
    subject: Subject,
    target: Target,
}

/// The sender of a request to the hub.
struct HubSender {
    /// The feed whose hub was asked; `None` for that of all feeds.
    scope: Option<String>,
    principal: Option<Principal>,
    address: Option<IpAddr>,
    net: ClientNet,
    /// The media types that it accepts, as it wrote them.
    accept: Option<String>,
}

impl HubSender {
    fn of(request: &Request<Bytes>, address: Option<IpAddr>) -> Self {
        Self {
            scope: None,
            principal: request.extensions().get().cloned(),
            address,
            net: ClientNet::of(address),
            accept: fields::list_value(request.headers(), &ACCEPT).map(Cow::into_owned),
        }
    }
}

/// Times that a command is handed to another task after one that had just ended.
const COMMAND_TRIES: usize = 3;

/// Waits for verifications; true where one comes later, which may be with `or_async`. `refused`
/// and `busy` are what the subscriber is told.
async fn all_confirmed(
    awaited: Vec<oneshot::Receiver<Verdict>>,
    or_async: bool,
    refused: &str,
    busy: &str,
) -> Result<bool, HubAnswer> {
    let mut later = false;
    for verdict in awaited {
        match verdict.await {
            Ok(Verdict::Confirmed(_)) => {}
            Ok(Verdict::Later { .. } | Verdict::Busy) if or_async => later = true,
            Ok(Verdict::Refused(why) | Verdict::Later { why, .. }) => {
                let text = format!("{refused}: {why}");
                return Err(HubAnswer::new(StatusCode::CONFLICT, text));
            }
            Ok(Verdict::Busy) => return Err(HubAnswer::busy(busy)),
            Err(_) => {
                let text = "a newer request, or the end of the hub, came in between";
                return Err(HubAnswer::busy(text));
            }
        }
    }
    Ok(later)
}

/// 202, with what the subscriber should know.
fn accepted(change: &SubscriptionRequest, grant: &lease::Grant) -> HubAnswer {
    let mut text = "accepted; `hub.callback` will be asked to confirm".to_owned();
    if change.mode == Mode::Subscribe {
        text.push_str(&format!("\nlease: {} seconds from then", grant.secs));
        if let Some(word) = &grant.word {
            text.push_str("\nnote: ");
            text.push_str(word);
        }
    }
    HubAnswer::new(StatusCode::ACCEPTED, text)
}

fn slow_down(wait: Duration) -> HubAnswer {
    let text = "too many requests; try again after the time in Retry-After";
    HubAnswer {
        retry_after: Some(wait),
        ..HubAnswer::new(StatusCode::TOO_MANY_REQUESTS, text)
    }
}
