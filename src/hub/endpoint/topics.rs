//! Topics: the view, and the form of it, that a spelling means and a request wishes; not who is pushed
//! it.

use super::{Hub, HubAnswer, HubSender, slow_down};
use crate::{
    auth::{AuthVerdict, Credentials, Principal, PrincipalId},
    catalog::{CatalogSnapshot, RegisteredFeed, is_open_to},
    edge::accepted::media_ranges,
    feed::{
        filter::Filter,
        order::Order,
        record::FeedNo,
        view::{Deletions, View},
    },
    hub::{
        form::{self, Mode, RefusedForm},
        push::RESOURCE,
    },
    render::{Audience, Query, Representation, Topic, legacy::pushed},
    secret::Secret,
};
use std::{sync::Arc, time::Duration};
use url::{Url, form_urlencoded};

/// A topic of ours: what is pushed, and its canonical URL.
pub(in crate::hub) struct Subject {
    pub(in crate::hub) view: View,
    pub(in crate::hub) representation: Representation,
    pub(super) topic: String,
    /// The topic as the subscriber spelt it.
    pub(in crate::hub) spelt: String,
    /// The principal who asks for it.
    pub(in crate::hub) principal: Option<PrincipalId>,
    /// The wish for items that are gone that stands in the topic itself.
    pub(super) deletions: Option<Deletions>,
    /// The topics of its translations, where the request wishes none: it may mean a subscription to
    /// one, which was asked for by the same spelling.
    pub(in crate::hub) translations: Vec<String>,
    /// True for a resource that is pushed as it is.
    is_resource: bool,
}

impl Subject {
    /// The name of what is pushed, as it is stored.
    pub(super) fn form_name(&self) -> String {
        if self.is_resource {
            RESOURCE.to_owned()
        } else {
            self.representation.name()
        }
    }
}

/// A topic as a request asks for it.
#[derive(Clone, Copy)]
pub(super) struct TopicAsk<'a> {
    pub(super) spelt: &'a str,
    pub(super) mode: Mode,
    /// `format` of the form.
    pub(super) format: Option<&'a str>,
    /// `Accept` of the request.
    pub(super) accept: Option<&'a str>,
}

/// A topic without the wishes that stood in its query.
struct WishedTopic {
    url: String,
    format: Option<String>,
    deletions: Option<Deletions>,
}

impl WishedTopic {
    // Decides: Which parameters of a topic are wishes, and no part of its address?
    fn of(ask: TopicAsk<'_>) -> Result<Self, RefusedForm> {
        let (mut format, mut deletions) = (ask.format.map(str::to_owned), None);
        let (url, query) = ask.spelt.split_once('?').unwrap_or((ask.spelt, ""));
        let mut kept: Vec<&str> = Vec::new();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let pair = form_urlencoded::parse(part.as_bytes()).next();
            let (name, value) = pair.unwrap_or_default();
            match &*name {
                "format" if format.as_deref().is_some_and(|known| known != value) => {
                    return Err(RefusedForm::Twice("format"));
                }
                "format" => format = Some(value.into_owned()),
                "deletions" => deletions = Some(form::deletions(&value)?),
                _ => kept.push(part),
            }
        }
        let url = if kept.is_empty() {
            url.to_owned()
        } else {
            format!("{url}?{}", kept.join("&"))
        };
        Ok(Self {
            url,
            format,
            deletions,
        })
    }
}

/// A feed that a topic names, in the form in which its address shows it.
struct NamedView {
    feed: FeedNo,
    name: String,
    order: Order,
    filter: Filter,
    representation: Representation,
    place: TopicLocation,
}

impl NamedView {
    /// The whole feed, in the usual order.
    fn whole(feed: &RegisteredFeed, representation: Representation, place: TopicLocation) -> Self {
        Self {
            feed: feed.no,
            name: feed.settings.name.clone(),
            order: Order::default(),
            filter: Filter::All,
            representation,
            place,
        }
    }

    /// Its order in a form: a view for ordinary readers has one.
    fn order_in(&self, form: Representation) -> Order {
        if form.is_classic() {
            Order::default()
        } else {
            self.order
        }
    }
}

/// The place at which a topic stands.
enum TopicLocation {
    /// An old address, in its canonical spelling.
    Legacy(String),
    /// The URL of a resource, wherever it is.
    Resource(String),
    /// An address of ours, below a secret or not.
    Own(Option<String>),
}

impl Hub {
    /// The topic that a spelling means: an old address, a Smart Feed there, or one of ours, in the
    /// form that the request wishes.
    pub(super) async fn subject(
        &self,
        ask: TopicAsk<'_>,
        sender: &HubSender,
    ) -> Result<Subject, HubAnswer> {
        let principal = self.principal_for(ask.spelt, sender).await?;
        let principal = principal.as_ref();
        let catalog = self.shared.gate.catalog.snapshot();
        // The parameters of an old address may have the names of ours.
        let is_known = catalog.by_legacy_url(ask.spelt).is_some()
            || catalog.by_resource_url(ask.spelt).is_some();
        let wished = if is_known {
            WishedTopic {
                url: ask.spelt.to_owned(),
                format: ask.format.map(str::to_owned),
                deletions: None,
            }
        } else {
            WishedTopic::of(ask)?
        };
        let named = match self.resource(&wished.url, sender, principal)? {
            Some(named) => named,
            None => match self.at_old_address(&wished.url, sender, principal).await? {
                Some(named) => named,
                None => self.own_topic(&wished.url, sender, ask.mode, principal)?,
            },
        };
        let form = match &wished.format {
            Some(format) => Some(named_form(format, &named)?),
            None => accepted_form(ask.accept.unwrap_or_default(), &named),
        };
        let deletions = wished.deletions.or(deletions_in(&named, form));
        Ok(Subject {
            spelt: ask.spelt.to_owned(),
            principal: principal.and_then(Principal::id),
            deletions,
            ..self.in_form(named, form)
        })
    }

    /// The feed that a publisher names by a topic; `None` for what is no topic of ours.
    pub(super) fn published_topic(
        &self,
        spelt: &str,
        sender: &HubSender,
        principal: Option<&Principal>,
    ) -> Option<FeedNo> {
        let named = self.own_topic(spelt, sender, Mode::Subscribe, principal);
        Some(named.ok()?.feed)
    }

    // Decides: Which topic is a translation?
    /// A named view in a form: at its own address where that is the form there, else at the address
    /// of ours that has it (HUB-18).
    fn in_form(&self, named: NamedView, wished: Option<Representation>) -> Subject {
        let is_resource = matches!(named.place, TopicLocation::Resource(_)) && wished.is_none();
        let form = wished.unwrap_or(named.representation);
        let topic = match &named.place {
            TopicLocation::Legacy(url) if form == named.representation => url.clone(),
            TopicLocation::Resource(url) if is_resource => url.clone(),
            _ => self.own_url(&named, form),
        };
        let others = Representation::all().filter(|other| *other != form);
        let translations = match wished {
            None => others.map(|other| self.own_url(&named, other)).collect(),
            Some(_) => Vec::new(),
        };
        let order = named.order_in(form);
        Subject {
            view: View {
                feed: named.feed,
                order,
                filter: named.filter,
            },
            representation: form,
            topic,
            spelt: String::new(),
            principal: None,
            deletions: None,
            translations,
            is_resource,
        }
    }

    /// The address of ours at which a named view has a form.
    fn own_url(&self, named: &NamedView, form: Representation) -> String {
        let (name, order, filter) = (&named.name, named.order_in(form), &named.filter);
        let site = self.shared.readers.site();
        match &named.place {
            TopicLocation::Own(Some(token)) => site
                .below_secret(token)
                .topic_url(name, form, order, filter),
            TopicLocation::Legacy(_) | TopicLocation::Resource(_) | TopicLocation::Own(None) => {
                site.topic_url(name, form, order, filter)
            }
        }
    }

    /// The topic that a spelling means, when it is one of ours. One of a feed that is not served any
    /// more can still be unsubscribed from.
    fn own_topic(
        &self,
        spelt: &str,
        sender: &HubSender,
        mode: Mode,
        principal: Option<&Principal>,
    ) -> Result<NamedView, RefusedForm> {
        let Topic {
            name,
            order,
            filter,
            representation,
            secret,
        } = self
            .shared
            .readers
            .site()
            .topic(spelt)
            .ok_or(RefusedForm::UnknownTopic(
                "take the rel=self URL of a feed served here, without other parameters",
            ))?;
        let catalog = self.shared.gate.catalog.snapshot();
        // While there is a private feed, nobody unknown is told which names there are.
        let is_hiding = catalog.has_private();
        let feed = match (catalog.feed(&name), catalog.withdrawn(&name)) {
            (Some(feed), _) if is_open_to(feed, principal) => feed.no,
            (None, Some(withdrawn)) if mode == Mode::Unsubscribe => withdrawn,
            // Limit: a feed whose entry in the registry cannot be read is told as one that is not there.
            (None, Some(_)) if !is_hiding && !catalog.registry().contains(&name) => {
                return Err(RefusedForm::GoneTopic);
            }
            _ if is_hiding && principal.is_none() => return Err(RefusedForm::Unauthenticated),
            _ => return Err(RefusedForm::UnknownTopic("there is no such feed")),
        };
        check_scope(sender, &name)?;
        check_order(order)?;
        Ok(NamedView {
            feed,
            name,
            order,
            filter,
            representation,
            place: TopicLocation::Own(secret),
        })
    }

    /// The topic that the URL of a resource means, which is pushed as it is.
    fn resource(
        &self,
        url: &str,
        sender: &HubSender,
        principal: Option<&Principal>,
    ) -> Result<Option<NamedView>, HubAnswer> {
        let catalog = self.shared.gate.catalog.snapshot();
        let Some(feed) = catalog.by_resource_url(url) else {
            return Ok(None);
        };
        if !is_open_to(feed, principal) {
            return Err(refused(principal).into());
        }
        check_scope(sender, &feed.settings.name)?;
        let place = TopicLocation::Resource(feed.known_url());
        Ok(Some(NamedView::whole(feed, Representation::ATOM, place)))
    }

    /// The topic that the address of an old feed means, when it is one before which we stand:
    /// documents of the format that its publisher writes, or the Smart Feed that is read there.
    async fn at_old_address(
        &self,
        url: &str,
        sender: &HubSender,
        principal: Option<&Principal>,
    ) -> Result<Option<NamedView>, HubAnswer> {
        let catalog = self.shared.gate.catalog.snapshot();
        let Some((feed, ours)) = old_feed(&catalog, url) else {
            return Ok(None);
        };
        let Some(place) = &feed.settings.legacy else {
            return Ok(None);
        };
        if !is_open_to(feed, principal) {
            return Err(refused(principal).into());
        }
        check_scope(sender, &feed.settings.name)?;
        let named = match ours {
            Some(ours) => old_view(feed, &place.url, &ours)?,
            None => self.old_document(feed, &place.url).await?,
        };
        Ok(Some(named))
    }

    /// The topic of the documents of an old feed.
    async fn old_document(&self, feed: &RegisteredFeed, url: &Url) -> Result<NamedView, HubAnswer> {
        if feed.settings.is_resource() {
            let place = TopicLocation::Resource(url.to_string());
            return Ok(NamedView::whole(feed, Representation::ATOM, place));
        }
        let Some(document) = self.shared.store.document(feed.no).await? else {
            return Err(HubAnswer::busy(
                "this feed has not been read from its origin yet",
            ));
        };
        let representation = pushed(document.syntax).ok_or(RefusedForm::UnknownTopic(
            "documents of its format (CDF, or no feed) are not pushed; add `order=modified` to it, or take the feed as /feeds lists it",
        ))?;
        let place = TopicLocation::Legacy(url.to_string());
        Ok(NamedView::whole(feed, representation, place))
    }

    /// The principal who asks for a topic: whom the secret in it makes known, else the sender.
    async fn principal_for(
        &self,
        spelt: &str,
        sender: &HubSender,
    ) -> Result<Option<Principal>, HubAnswer> {
        let topic = self.shared.readers.site().topic(spelt);
        let Some(token) = topic.and_then(|topic| topic.secret) else {
            return Ok(sender.principal.clone());
        };
        let credentials = Credentials::SecretUrl(Secret::new(token));
        let auth = &self.shared.gate.auth;
        match auth.check(&credentials, sender.address).await {
            AuthVerdict::Known(principal) => Ok(Some(principal)),
            AuthVerdict::SlowDown { secs } => Err(slow_down(Duration::from_secs(secs))),
            AuthVerdict::Busy | AuthVerdict::Unheard => {
                Err(HubAnswer::busy("the hub is very busy"))
            }
            AuthVerdict::Refused | AuthVerdict::Anonymous => {
                Err(RefusedForm::UnknownTopic("there is no such feed").into())
            }
        }
    }
}

/// The feed that an address of an old one means, and the query of ours behind it where that is of a
/// Smart Feed.
fn old_feed<'a>(
    catalog: &'a CatalogSnapshot,
    url: &str,
) -> Option<(&'a Arc<RegisteredFeed>, Option<String>)> {
    if let Some(feed) = catalog.by_legacy_url(url) {
        return Some((feed, None));
    }
    // As with reads, filters count beside a parameter that only a Smart Feed has.
    for with_filters in [false, true] {
        let (own, ours) = Query::split_address(url, with_filters);
        if Query::is_smart(&ours)
            && let Some(feed) = catalog.by_legacy_url(&own)
        {
            return Some((feed, Some(ours)));
        }
    }
    None
}

/// The topic of the Smart Feed at the address of an old feed, by the query of ours behind it.
fn old_view(feed: &RegisteredFeed, url: &Url, ours: &str) -> Result<NamedView, RefusedForm> {
    let query = Query::parse(ours).ok().filter(Query::is_whole);
    let Query { order, filter, .. } = query.ok_or(RefusedForm::UnknownTopic(
        "a topic is a whole feed: leave out since, until, max, timeout and callback",
    ))?;
    check_order(order)?;
    let query = Query {
        order,
        filter: filter.clone(),
        ..Query::default()
    };
    let glue = if url.query().is_some() { '&' } else { '?' };
    let place = TopicLocation::Legacy(format!("{url}{glue}{query}"));
    Ok(NamedView {
        order,
        filter,
        ..NamedView::whole(feed, Representation::ATOM, place)
    })
}

/// The refusal of what a principal may not read.
fn refused(principal: Option<&Principal>) -> RefusedForm {
    match principal {
        None => RefusedForm::Unauthenticated,
        Some(_) => RefusedForm::UnknownTopic("there is no such feed"),
    }
}

fn check_scope(sender: &HubSender, name: &str) -> Result<(), RefusedForm> {
    if sender.scope.as_ref().is_some_and(|scope| scope != name) {
        Err(RefusedForm::UnknownTopic("this is the hub of another feed"))
    } else {
        Ok(())
    }
}

fn check_order(order: Order) -> Result<(), RefusedForm> {
    if !order.is_to_sync_by() {
        return Err(RefusedForm::UnknownTopic(
            "posts come in anywhere by `published`; take the order modified or created",
        ));
    }
    if order.reverse {
        return Err(RefusedForm::UnknownTopic(
            "a feed grows at its new end; take the order without `-`",
        ));
    }
    Ok(())
}

// Decides: Which form does a request for a translation mean?
/// The form that `format` names. Beside a view for ordinary readers of ours it is one of those,
/// where there is one.
fn named_form(format: &str, named: &NamedView) -> Result<Representation, RefusedForm> {
    let is_own_classic =
        named.representation.is_classic() && matches!(named.place, TopicLocation::Own(_));
    let classic = Representation::with_suffix(Audience::Classic, format);
    classic
        .filter(|_| is_own_classic)
        .or_else(|| Representation::named(format))
        .ok_or_else(|| {
            let names: Vec<String> = Representation::all().map(Representation::name).collect();
            RefusedForm::UnknownFormat(names.join(", "))
        })
}

/// The word on deletions in a translation that would tell of them, unlike its topic: a view of ours
/// for ordinary readers shows none in any form. An old address shows them to whoever takes JSON.
fn deletions_in(named: &NamedView, form: Option<Representation>) -> Option<Deletions> {
    let is_own_classic =
        named.representation.is_classic() && matches!(named.place, TopicLocation::Own(_));
    let tells = form.is_some_and(|form| !form.is_classic());
    (is_own_classic && tells).then_some(Deletions::Omit)
}

/// Media types by which `Accept` asks for a translation, and the suffixes of their forms. HTTP
/// libraries send the others by themselves.
const TRANSLATED: [(&str, &str); 3] = [
    ("application/atom+xml", "atom"),
    ("application/rss+xml", "rss"),
    ("application/stream+json", "json"),
];

/// The form that `Accept` asks for: one that it names, unless it names that of the topic.
fn accepted_form(accept: &str, named: &NamedView) -> Option<Representation> {
    let own = named.representation;
    let ranges = media_ranges(accept);
    let quality = |media_type: &str| {
        let named = ranges.iter().filter(|(range, _)| range == media_type);
        named.map(|(_, quality)| *quality).max().unwrap_or(0)
    };
    let is_own_named = [own.media_type()]
        .into_iter()
        .chain(own.aliases().iter().copied())
        .any(|media_type| quality(media_type) > 0);
    // What a resource is shows only when it comes.
    let is_resource = matches!(named.place, TopicLocation::Resource(_));
    if is_own_named && !is_resource {
        return None;
    }
    let mut best = (0, None);
    for (media_type, suffix) in TRANSLATED {
        let form = Representation::with_suffix(own.audience(), suffix)
            .or_else(|| Representation::named(suffix));
        if let Some(form) = form
            && quality(media_type) > best.0
        {
            best = (quality(media_type), Some(form));
        }
    }
    best.1
}
