//! Logs and counters for the operator. Names no other component; the gauges that need it are set
//! where they are read, on the admin listener.

use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};
use std::io::IsTerminal as _;
use tracing_subscriber::{EnvFilter, fmt, prelude::*};

#[cfg(test)]
pub mod testing;

/// The form of logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogForm {
    /// A line for people.
    #[default]
    Plain,
    /// A JSON object a line.
    Json,
}

/// Starts logging to standard error. `filter` as `RUST_LOG` has it; a second call changes nothing.
pub fn log(form: LogForm, filter: &str) {
    let asked_for = std::env::var_os(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let usual = || EnvFilter::new(without_strangers_lines(filter));
    let (filter, mistake) = match filter_of(&asked_for.to_string_lossy()) {
        Ok(asked_for) => (asked_for.unwrap_or_else(usual), None),
        Err(mistake) => (
            usual(),
            Some(format!("{mistake}; `{filter}` holds instead")),
        ),
    };
    let lines = tracing_subscriber::registry().with(filter);
    // Nobody hears of a closed standard error, least of all by way of itself.
    let layer = fmt::layer()
        .with_writer(std::io::stderr)
        .log_internal_errors(false);
    let _ = match form {
        LogForm::Plain => {
            let colours = std::io::stderr().is_terminal();
            lines
                .with(layer.with_target(false).with_ansi(colours))
                .try_init()
        }
        LogForm::Json => lines.with(layer.json()).try_init(),
    };
    if let Some(mistake) = mistake {
        // An error, so that it is seen however little is logged.
        tracing::error!("{mistake}");
    }
}

/// The root of our modules.
const OURS: &str = env!("CARGO_CRATE_NAME");

/// The names of levels.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The filter that a text of `RUST_LOG` asks for; `None` for one that is empty. A word alone that
/// is nearly a level is a mistake: it would be taken for the name of a module, of which there is
/// none, and nothing would be logged.
fn filter_of(text: &str) -> Result<Option<EnvFilter>, String> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let advice = "give a level (error, warn, info, debug, trace), or a module with one, such as everfeed::hub=debug";
    for word in text.split(',').map(str::trim) {
        let lower = word.to_ascii_lowercase();
        let is_near = |level: &&str| strsim::damerau_levenshtein(level, &lower) <= 2;
        if !LEVELS.contains(&lower.as_str())
            && word.bytes().all(|b| b.is_ascii_alphabetic())
            && let Some(near) = LEVELS.into_iter().find(is_near)
        {
            return Err(format!("RUST_LOG: found `{word}`; did you mean `{near}`?"));
        }
        // A filter for a module that is nearly ours is for nothing that there is.
        let module = word.split(['=', '[']).next().unwrap_or_default();
        let root = module.split("::").next().unwrap_or_default();
        if root != OURS && strsim::damerau_levenshtein(root, OURS) <= 2 {
            return Err(format!(
                "RUST_LOG: found `{module}`; did you mean `{}`?",
                module.replacen(root, OURS, 1)
            ));
        }
    }
    let text = without_strangers_lines(text);
    EnvFilter::builder()
        .parse(&text)
        .map(Some)
        .map_err(|error| format!("RUST_LOG: {error}; {advice}"))
}

/// A filter without the lines of two libraries, unless it asks for them or for everything: h2 warns
/// of single frames that a peer sent, so that anybody could fill the log, and the verifier of
/// certificates says once more what we say.
fn without_strangers_lines(filter: &str) -> String {
    let asks = |word: &str| filter.to_ascii_lowercase().contains(word);
    if ["h2", "rustls", "debug", "trace"].into_iter().any(asks) {
        filter.to_owned()
    } else {
        format!("{filter},h2=off,rustls_platform_verifier=off")
    }
}

/// The outcome of something.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct OutcomeLabel {
    /// In one word.
    pub outcome: &'static str,
}

/// The reason of a tombstone.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ReasonLabel {
    /// Its code, as in documents.
    pub reason: &'static str,
}

/// An answered request.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct RequestLabels {
    /// The form of the answer, in one word.
    pub form: &'static str,
    /// The HTTP status.
    pub status: u16,
}

/// An attempt to be known that was not taken.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct AuthFailureLabels {
    /// The scheme of the credentials, in one word.
    pub scheme: &'static str,
    /// The outcome in one word.
    pub outcome: &'static str,
}

/// A site before which we stand.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct SiteLabel {
    /// Its host, or its origin where it has none.
    pub site: String,
}

/// The metrics of one site.
#[derive(Clone, Debug)]
pub struct SiteMetrics {
    /// Places that are taken.
    pub places_in_use: Gauge,
    /// Places in all.
    pub places_max: Gauge,
    /// Requests that found none.
    pub places_refused: Counter,
    /// Requests that were ended to make room.
    pub places_taken_away: Counter,
}

/// The counters of the process. Cheap to clone; every clone counts into the same.
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: Family<RequestLabels, Counter>,
    polls: Family<OutcomeLabel, Counter>,
    /// Seconds from the start of a poll to its commit.
    poll_secs: Histogram,
    /// Items that got a new T.
    pub items_changed: Counter,
    tombstones: Family<ReasonLabel, Counter>,
    permalink_checks: Family<OutcomeLabel, Counter>,
    pushes: Family<OutcomeLabel, Counter>,
    /// Seconds from a change to the moment at which a subscriber has taken it.
    push_lag_secs: Histogram,
    verifications: Family<OutcomeLabel, Counter>,
    xmpp_requests: Family<OutcomeLabel, Counter>,
    xmpp_pushes: Family<OutcomeLabel, Counter>,
    upstream_pushes: Family<OutcomeLabel, Counter>,
    auth_failures: Family<AuthFailureLabels, Counter>,
    places_in_use: Family<SiteLabel, Gauge>,
    places_max: Family<SiteLabel, Gauge>,
    places_refused: Family<SiteLabel, Counter>,
    places_taken_away: Family<SiteLabel, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            polls: Family::default(),
            // From a millisecond to half a minute.
            poll_secs: Histogram::new(exponential_buckets(0.001, 2.0, 16)),
            items_changed: Counter::default(),
            tombstones: Family::default(),
            permalink_checks: Family::default(),
            pushes: Family::default(),
            // From ten milliseconds to three days.
            push_lag_secs: Histogram::new(exponential_buckets(0.01, 3.0, 16)),
            verifications: Family::default(),
            xmpp_requests: Family::default(),
            xmpp_pushes: Family::default(),
            upstream_pushes: Family::default(),
            auth_failures: Family::default(),
            places_in_use: Family::default(),
            places_max: Family::default(),
            places_refused: Family::default(),
            places_taken_away: Family::default(),
        }
    }
}

impl Metrics {
    /// Counts a request.
    pub fn request(&self, form: &'static str, status: u16) {
        self.requests
            .get_or_create(&RequestLabels { form, status })
            .inc();
    }

    /// Counts a poll and its time.
    pub fn poll(&self, outcome: &'static str, secs: f64) {
        self.polls.get_or_create(&OutcomeLabel { outcome }).inc();
        self.poll_secs.observe(secs);
    }

    /// Counts a tombstone.
    pub fn tombstone(&self, reason: &'static str) {
        self.tombstones.get_or_create(&ReasonLabel { reason }).inc();
    }

    /// Counts what the page of a missing item said.
    pub fn permalink_check(&self, outcome: &'static str) {
        self.permalink_checks
            .get_or_create(&OutcomeLabel { outcome })
            .inc();
    }

    /// Counts a push.
    pub fn push(&self, outcome: &'static str) {
        self.pushes.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    /// Notes after how many seconds a change was taken.
    pub fn push_lag(&self, secs: f64) {
        self.push_lag_secs.observe(secs);
    }

    /// Counts a verification.
    pub fn verification(&self, outcome: &'static str) {
        self.verifications
            .get_or_create(&OutcomeLabel { outcome })
            .inc();
    }

    /// Counts a request over XMPP.
    pub fn xmpp_request(&self, outcome: &'static str) {
        self.xmpp_requests
            .get_or_create(&OutcomeLabel { outcome })
            .inc();
    }

    /// Counts a message to a subscriber over XMPP.
    pub fn xmpp_push(&self, outcome: &'static str) {
        self.xmpp_pushes(outcome, 1);
    }

    /// Counts messages to subscribers over XMPP.
    pub fn xmpp_pushes(&self, outcome: &'static str, count: u64) {
        self.xmpp_pushes
            .get_or_create(&OutcomeLabel { outcome })
            .inc_by(count);
    }

    /// Counts a push of a hub or a cloud of others.
    pub fn upstream_push(&self, outcome: &'static str) {
        self.upstream_pushes
            .get_or_create(&OutcomeLabel { outcome })
            .inc();
    }

    /// Counts credentials that were not taken.
    pub fn auth_failure(&self, scheme: &'static str, outcome: &'static str) {
        self.auth_failures
            .get_or_create(&AuthFailureLabels { scheme, outcome })
            .inc();
    }

    /// The metrics of a site, which are there from now on.
    pub fn of_site(&self, site: String) -> SiteMetrics {
        let label = SiteLabel { site };
        SiteMetrics {
            places_in_use: self.places_in_use.get_or_create(&label).clone(),
            places_max: self.places_max.get_or_create(&label).clone(),
            places_refused: self.places_refused.get_or_create(&label).clone(),
            places_taken_away: self.places_taken_away.get_or_create(&label).clone(),
        }
    }

    /// A registry that holds these counters, to which gauges may be added. The library appends
    /// `_total`.
    pub fn registry(&self) -> Registry {
        let mut all = Registry::with_prefix("everfeed");
        let help = "Requests answered to consumers";
        all.register("http_requests", help, self.requests.clone());
        let help = "Polls of upstreams ended";
        all.register("polls", help, self.polls.clone());
        let help = "Items that got a new T";
        all.register("items_changed", help, self.items_changed.clone());
        let help = "Items that became tombstones, by reason";
        all.register("tombstones", help, self.tombstones.clone());
        let help = "Pages of missing items, by what they said";
        all.register("permalink_checks", help, self.permalink_checks.clone());
        let help = "Pushes to subscribers ended";
        all.register("pushes", help, self.pushes.clone());
        let help = "Seconds from a change to the moment at which a subscriber has taken it";
        all.register("push_lag_seconds", help, self.push_lag_secs.clone());
        let help = "Credentials refused, slowed or not checked";
        all.register("auth_failures", help, self.auth_failures.clone());
        let help = "Verifications of subscribers ended";
        all.register("verifications", help, self.verifications.clone());
        let help = "Requests over XMPP ended";
        all.register("xmpp_requests", help, self.xmpp_requests.clone());
        let help = "Messages to subscribers over XMPP, and what came of subscriptions";
        all.register("xmpp_pushes", help, self.xmpp_pushes.clone());
        let help = "Pushes of hubs and clouds that feeds name, by what they were worth: a document, a hint, or forged";
        all.register("upstream_pushes", help, self.upstream_pushes.clone());
        let help = "Seconds from the start of a poll to its commit";
        all.register("poll_duration_seconds", help, self.poll_secs.clone());
        let help = "Requests at the origin of a site now, WebSockets included";
        all.register("site_places_in_use", help, self.places_in_use.clone());
        let help = "Requests at the origin of a site at most";
        all.register("site_places_max", help, self.places_max.clone());
        let help = "Requests that received 503 because all places of a site were taken";
        all.register("site_places_refused", help, self.places_refused.clone());
        let help = "Slow requests that were ended to make room at the origin of a site";
        all.register(
            "site_places_taken_away",
            help,
            self.places_taken_away.clone(),
        );
        all
    }
}

/// The text form that Prometheus scrapes.
pub fn exposition(registry: &Registry) -> String {
    let mut out = String::new();
    text::encode(&mut out, registry).expect("writing to memory does not fail");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn a_mistake_in_rust_log_is_told_and_what_is_meant_is_taken() {
        for good in [
            "debug",
            "WARN",
            "everfeed::hub=debug,info",
            "everfeed",
            "info,h2=off",
            "tower_http=trace",
        ] {
            assert!(matches!(filter_of(good), Ok(Some(_))), "{good}");
        }
        assert!(matches!(filter_of(" "), Ok(None)));
        for (bad, part) in [
            ("inof", "did you mean `info`?"),
            ("Debgu", "did you mean `debug`?"),
            ("h2=off,tarce", "did you mean `trace`?"),
            ("everfed=debug", "did you mean `everfeed`?"),
            ("info,everfeeds::hub=trace", "did you mean `everfeed::hub`?"),
            ("everfeed=loud", "give a level"),
            ("everfeed=info=debug", "give a level"),
        ] {
            let mistake = filter_of(bad)
                .err()
                .unwrap_or_else(|| panic!("`{bad}` is a mistake"));
            assert!(
                mistake.contains("RUST_LOG") && mistake.contains(part),
                "{mistake}"
            );
        }
    }

    /// True when a warning of this module is logged.
    fn warns(filter: &str) -> bool {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let written = lines.clone();
        let layer = fmt::layer().with_writer(move || Written(written.clone()));
        let filter = filter_of(filter).unwrap().unwrap();
        let _logging = tracing_subscriber::registry()
            .with(filter)
            .with(layer)
            .set_default();
        tracing::warn!(target: "h2::proto::ping_pong", "recv PING ack that we never sent");
        let lines = lines.lock().unwrap();
        !lines.is_empty()
    }

    struct Written(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_peer_cannot_fill_the_log_with_frames_unless_somebody_asks_for_that() {
        for quiet in ["info", "warn", "info,everfeed::hub=warn", "everfeed=info"] {
            assert!(!warns(quiet), "{quiet}");
        }
        for asked in ["debug", "trace", "info,h2=warn"] {
            assert!(warns(asked), "{asked}");
        }
    }

    #[test]
    fn every_clone_counts_into_the_same() {
        let metrics = Metrics::default();
        metrics.clone().push("delivered");
        metrics.push("delivered");
        metrics.items_changed.inc_by(3);
        metrics.tombstone("gone");
        metrics.request("atom", 200);
        metrics.poll("stored", 0.01);
        let text = exposition(&metrics.registry());
        for line in [
            "everfeed_pushes_total{outcome=\"delivered\"} 2",
            "everfeed_items_changed_total 3",
            "everfeed_tombstones_total{reason=\"gone\"} 1",
            "everfeed_http_requests_total{form=\"atom\",status=\"200\"} 1",
            "everfeed_polls_total{outcome=\"stored\"} 1",
            "everfeed_poll_duration_seconds_count 1",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
    }
}
