//! Pauses of authorities (no requests until then), and the places that each has for jobs in flight;
//! not the pace of single requests, which is that of a host.

use crate::{
    feed::{
        schedule::{Pause, PollState, RETRY_AFTER_SECS_MAX},
        stamp::Stamp,
    },
    layers::{HostNet, KnownNets},
    locks::{read, write},
    registrable_domain::registrable_domain,
    store::HostPause,
};
use std::{
    collections::{BTreeMap, HashMap, HashSet, hash_map::Entry},
    sync::{Arc, RwLock},
};
use url::Url;

/// Jobs in flight to the hosts of one registered domain at most, so that a platform with a thousand
/// feeds does not hold up all others.
const IN_FLIGHT_MAX: usize = 2;

/// The same for a domain of `upstream.large_domains`.
const IN_FLIGHT_LARGE_MAX: usize = 20;

/// Jobs in flight to one public network at most, whosever hosts are there; and to all hosts whose
/// network is not known yet.
const IN_FLIGHT_NET_MAX: usize = 64;

/// The beginning of the place of a network.
const NET: &str = "net ";

/// The ends of the pauses of hosts, for whoever wants to tell of them. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct PauseEnds(Arc<RwLock<HashMap<String, Pause>>>);

impl PauseEnds {
    /// End of the longest pause of these authorities.
    pub(super) fn until(&self, hosts: &[String]) -> Stamp {
        self.longest(hosts)
            .map_or(Stamp::ZERO, |(_, pause)| pause.until)
    }

    /// The longest pause of these authorities, and whose it is.
    pub(super) fn longest<'a>(&self, hosts: &'a [String]) -> Option<(&'a str, Pause)> {
        let ends = read(&self.0);
        let paused = hosts
            .iter()
            .filter_map(|host| Some((host.as_str(), *ends.get(host)?)));
        paused.max_by_key(|(_, pause)| pause.until)
    }

    fn change<T>(&self, change: impl FnOnce(&mut HashMap<String, Pause>) -> T) -> T {
        change(&mut write(&self.0))
    }
}

/// Pauses and places of hosts.
#[derive(Debug, Default)]
pub(super) struct HostPauses {
    ends: PauseEnds,
    /// Jobs by [`HostPauses::places`].
    in_flight: HashMap<String, usize>,
    /// Domains with many blogs, which have [`IN_FLIGHT_LARGE_MAX`] places.
    large_domains: Arc<HashSet<String>>,
    /// The networks of hosts.
    nets: KnownNets,
    /// Pauses since the last save.
    unsaved: BTreeMap<String, Pause>,
}

impl HostPauses {
    /// The pauses that were saved. One that is longer than any can be was saved while the clock ran
    /// ahead.
    pub(super) fn new(ends: PauseEnds, saved: Vec<HostPause>, now: Stamp) -> Self {
        let latest = now.plus_secs(RETRY_AFTER_SECS_MAX);
        ends.change(|ends| {
            let within = |pause: Pause| Pause {
                until: pause.until.min(latest),
                ..pause
            };
            *ends = saved
                .into_iter()
                .map(|(host, pause)| (host, within(pause)))
                .collect();
        });
        Self {
            ends,
            ..Self::default()
        }
    }

    /// The same, with these domains that have many places.
    pub(super) fn with_large_domains(self, domains: &[String]) -> Self {
        Self {
            large_domains: Arc::new(domains.iter().cloned().collect()),
            ..self
        }
    }

    /// The same, which knows the networks of hosts.
    pub(super) fn with_nets(self, nets: KnownNets) -> Self {
        Self { nets, ..self }
    }

    /// Ends all pauses so many microseconds earlier.
    pub(super) fn bring_forward(&mut self, us: u64) {
        self.ends.change(|ends| {
            for (host, pause) in ends {
                pause.until = Stamp::from_micros(pause.until.micros().saturating_sub(us));
                self.unsaved.insert(host.clone(), *pause);
            }
        });
    }

    /// End of the longest pause of these hosts.
    pub(super) fn until(&self, hosts: &[String]) -> Stamp {
        self.ends.until(hosts)
    }

    /// Pauses a host. A later pause does not shorten an earlier one: it may come from another of
    /// its feeds.
    pub(super) fn pause(&mut self, host: String, until: Stamp, now: Stamp) {
        let longest = self.ends.change(|ends| {
            ends.retain(|_, pause| pause.until > now);
            let since = now;
            let pause = ends.entry(host.clone()).or_insert(Pause { until, since });
            pause.until = until.max(pause.until);
            *pause
        });
        self.unsaved.insert(host, longest);
    }

    /// Ends the pauses of these hosts: one was asked all the same, and answers well.
    pub(super) fn end_now(&mut self, hosts: &[String], now: Stamp) {
        while let Some((host, pause)) = self
            .ends
            .longest(hosts)
            .filter(|(_, pause)| pause.until > now)
        {
            self.ends.change(|ends| ends.remove(host));
            self.unsaved.insert(
                host.to_owned(),
                Pause {
                    until: now,
                    ..pause
                },
            );
        }
    }

    /// The places that a job at these hosts needs: those of their domains and of their networks.
    pub(super) fn places(&self, hosts: &[String]) -> Vec<String> {
        let of_net = |host: &String| match self.nets.of(name_of(host)) {
            HostNet::Private => None,
            HostNet::Unknown => Some(format!("{NET}unknown")),
            HostNet::Public(net) => Some(format!("{NET}{net}")),
        };
        let domains = hosts.iter().map(|host| place_of(host));
        let mut places: Vec<String> = domains.chain(hosts.iter().filter_map(of_net)).collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// Takes the places of a job, if all are free; else the first that is not.
    pub(super) fn enter(&mut self, places: &[String]) -> Result<(), String> {
        if let Some(full) = places.iter().find(|place| !self.has_room(place)) {
            return Err(full.clone());
        }
        for place in places {
            *self.in_flight.entry(place.clone()).or_default() += 1;
        }
        Ok(())
    }

    /// True while one of these places is free.
    pub(super) fn has_room(&self, place: &str) -> bool {
        let max = if self.large_domains.contains(place) {
            IN_FLIGHT_LARGE_MAX
        } else if place.starts_with(NET) {
            IN_FLIGHT_NET_MAX
        } else {
            IN_FLIGHT_MAX
        };
        self.in_flight.get(place).is_none_or(|jobs| *jobs < max)
    }

    /// Gives the places back.
    pub(super) fn leave(&mut self, places: &[String]) {
        for place in places {
            if let Entry::Occupied(mut jobs) = self.in_flight.entry(place.clone()) {
                *jobs.get_mut() -= 1;
                if *jobs.get() == 0 {
                    jobs.remove();
                }
            }
        }
    }

    /// Takes the pauses that are to be saved.
    pub(super) fn take_unsaved(&mut self) -> BTreeMap<String, Pause> {
        std::mem::take(&mut self.unsaved)
    }

    /// Takes back the pauses that could not be saved.
    pub(super) fn give_back(&mut self, hosts: BTreeMap<String, Pause>) {
        for (host, pause) in hosts {
            self.unsaved.entry(host).or_insert(pause);
        }
    }

    pub(super) fn has_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }
}

/// The authority of a URL, whose pauses are its own: scheme, host and port. `http` and `https` at
/// the default ports of a host are one server, and go by the host alone, as stores of earlier
/// versions have it (DESIGN section 10).
pub(super) fn authority_of(url: &Url) -> Option<String> {
    let host = url.host_str()?.trim_end_matches('.');
    Some(match url.port() {
        None => host.to_owned(),
        Some(port) => format!("{}://{host}:{port}", url.scheme()),
    })
}

/// The place of an authority for jobs in flight: the registered domain, with scheme and port where
/// they are not the usual ones. Hosts of one owner share it.
fn place_of(authority: &str) -> String {
    let Some((scheme, rest)) = authority.split_once("://") else {
        return registrable_domain(authority);
    };
    let (host, port) = rest.rsplit_once(':').unwrap_or((rest, ""));
    format!("{scheme}://{}:{port}", registrable_domain(host))
}

/// The host of an authority.
fn name_of(authority: &str) -> &str {
    let Some((_, rest)) = authority.split_once("://") else {
        return authority;
    };
    rest.rsplit_once(':').map_or(rest, |(host, _)| host)
}

/// The authorities that the next request for a feed meets as far as one knows: the one asked, and
/// the one that answered last.
pub fn hosts_of(state: &PollState, audit_secs: u64, now: Stamp) -> Vec<String> {
    let host = |url: &str| authority_of(&Url::parse(url).ok()?);
    let asked = host(&state.plan(audit_secs, now).url);
    let answered = state.validators.as_ref().and_then(|pair| host(&pair.url));
    let mut hosts: Vec<String> = [asked, answered].into_iter().flatten().collect();
    hosts.dedup();
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::schedule::ValidatorPair;

    const NOW: Stamp = Stamp::from_secs(1_000);

    fn pause_until(until: Stamp) -> Pause {
        Pause { until, since: NOW }
    }

    #[test]
    fn a_host_pauses_for_as_long_as_its_longest_pause() {
        let mut hosts = HostPauses::new(
            PauseEnds::default(),
            vec![
                ("old".into(), pause_until(Stamp::from_secs(900))),
                ("far".into(), pause_until(Stamp::MAX)),
            ],
            NOW,
        );
        assert_eq!(
            hosts.until(&["far"].map_to_strings()),
            NOW.plus_secs(RETRY_AFTER_SECS_MAX)
        );
        hosts.pause("a".into(), NOW.plus_secs(60), NOW);
        hosts.pause("a".into(), NOW.plus_secs(10), NOW);
        let until = |names: &[&str]| hosts.until(&names.map_to_strings());
        assert_eq!(until(&["a", "b"]), NOW.plus_secs(60));
        assert_eq!(until(&["b"]), Stamp::ZERO);
        assert_eq!(
            until(&["old"]),
            Stamp::ZERO,
            "a pause that is over is forgotten"
        );
        hosts.take_unsaved();
        hosts.end_now(&["a", "b"].map_to_strings(), NOW);
        assert_eq!(hosts.until(&["a"].map_to_strings()), Stamp::ZERO);
        assert_eq!(
            hosts.take_unsaved().into_iter().collect::<Vec<_>>(),
            [("a".to_owned(), pause_until(NOW))]
        );
    }

    #[test]
    fn a_host_has_few_places_and_gets_them_back() {
        let mut hosts = HostPauses::default();
        let (a, ab) = (["a"].map_to_strings(), ["a", "b"].map_to_strings());
        assert!(hosts.enter(&a).is_ok() && hosts.enter(&ab).is_ok());
        assert_eq!(
            (hosts.enter(&a), hosts.enter(&["b", "a"].map_to_strings())),
            (Err("a".to_owned()), Err("a".to_owned()))
        );
        assert_eq!(
            hosts.enter(&["b"].map_to_strings()),
            Ok(()),
            "a refused poll took no place"
        );
        hosts.leave(&ab);
        assert_eq!(hosts.enter(&a), Ok(()));
    }

    #[test]
    fn the_hosts_of_one_owner_share_places_and_those_of_a_platform_do_not() {
        let mut hosts = HostPauses::default().with_large_domains(&["large.example".to_owned()]);
        let enters = |hosts: &mut HostPauses, name: &str| {
            let places = hosts.places(&[name.to_owned()]);
            hosts.enter(&places).is_ok()
        };
        let blogs = ["a.owner.example", "b.owner.example", "c.owner.example"];
        assert_eq!(
            blogs.map(|name| enters(&mut hosts, name)),
            [true, true, false]
        );
        // `github.io` is a public suffix: each name below it has an owner of its own.
        let pages = ["a.github.io", "b.github.io", "c.github.io"];
        assert_eq!(pages.map(|name| enters(&mut hosts, name)), [true; 3]);
        let ports = [
            "http://127.0.0.1:1",
            "http://127.0.0.1:2",
            "http://127.0.0.1:2",
        ];
        assert_eq!(ports.map(|name| enters(&mut hosts, name)), [true; 3]);
        for n in 0..IN_FLIGHT_LARGE_MAX {
            assert!(enters(&mut hosts, &format!("{n}.large.example")));
        }
        assert!(!enters(&mut hosts, "large.example"));
        let left = hosts.places(&[blogs[0].to_owned()]);
        hosts.leave(&left);
        assert!(enters(&mut hosts, blogs[2]));
    }

    #[test]
    fn a_network_has_many_places_and_those_that_are_not_known_have_as_many_together() {
        let mut hosts = HostPauses::default();
        let mut entered = |host: String| {
            let places = hosts.places(&[host]);
            usize::from(hosts.enter(&places).is_ok())
        };
        let count = |made: usize| assert_eq!(made, IN_FLIGHT_NET_MAX);
        count((0..200).map(|n| entered(format!("93.184.215.{n}"))).sum());
        count((0..200).map(|n| entered(format!("b{n}.example"))).sum());
        let private: usize = (0..200).map(|n| entered(format!("10.0.0.{n}"))).sum();
        assert_eq!(private, 200, "the operator's own");
    }

    #[test]
    fn a_feed_meets_the_host_asked_and_the_host_that_answered() {
        let pair = ValidatorPair {
            url: "http://feeds.example/x".into(),
            ..ValidatorPair::default()
        };
        let state = PollState {
            validators: Some(pair),
            ..PollState::unpolled("http://Blog.example/rss")
        };
        assert_eq!(hosts_of(&state, 1, NOW), ["blog.example", "feeds.example"]);
        assert_eq!(
            hosts_of(&PollState::unpolled("http://blog.example/rss"), 1, NOW),
            ["blog.example"]
        );
    }

    #[test]
    fn an_authority_is_scheme_host_and_port_and_the_default_ports_of_a_host_are_one() {
        let check = |url: &str, expect: &str| {
            assert_eq!(
                authority_of(&Url::parse(url).unwrap()).as_deref(),
                Some(expect),
                "{url}"
            );
        };
        check("http://Blog.example/rss", "blog.example");
        check("https://blog.example:443/rss", "blog.example");
        check("http://blog.example.:80/", "blog.example");
        check("http://blog.example:443/", "http://blog.example:443");
        check("https://blog.example:80/", "https://blog.example:80");
        check("http://u:p@127.0.0.1:8081/", "http://127.0.0.1:8081");
        check("http://[::1]:8081/", "http://[::1]:8081");
        check("http://[::1]/", "[::1]");
    }

    /// Shortens the lists above.
    trait Strings {
        fn map_to_strings(&self) -> Vec<String>;
    }

    impl Strings for [&str] {
        fn map_to_strings(&self) -> Vec<String> {
            self.iter().map(|text| (*text).to_owned()).collect()
        }
    }
}
