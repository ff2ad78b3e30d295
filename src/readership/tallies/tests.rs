use super::*;
use crate::readership::{counts::ClientBits, software::software};

const FEED: FeedNo = FeedNo(1);
const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;
/// The beginning of a step of each length.
const START: u64 = 300 * 3 * DAY;

fn at(secs: u64) -> Stamp {
    Stamp::from_secs(START + secs)
}

/// Tallies of one feed, and the time.
#[derive(Default)]
struct Rig(Tallies);

impl Rig {
    fn add(&mut self, agent: &str, secs: u64, counts: Counts) {
        let software = software(agent.as_bytes());
        assert!(self.0.add(FEED, &software, counts, at(secs)));
    }

    /// Requests of one client.
    fn ask(&mut self, agent: &str, secs: u64, requests: u32) {
        let clients = ClientBits::of(0);
        let counts = Counts {
            requests,
            clients,
            ..Counts::default()
        };
        self.add(agent, secs, counts);
    }

    fn figures(&self, secs: u64) -> ReaderFigures {
        self.0.figures(FEED, at(secs)).unwrap()
    }

    fn faults(&self, secs: u64, software: &str) -> String {
        let figures = self.figures(secs);
        let mut rows = figures.software.iter();
        let row = rows.find(|row| row.software == software).unwrap();
        row.misbehaves.join("; ")
    }
}

#[test]
fn claims_of_different_software_are_added_up_and_those_of_one_are_not() {
    let mut rig = Rig::default();
    for agent in [
        "Feedly/1.0 (120 subscribers)",
        "Feedly/1.0 (118 subscribers)",
        "FeedlyBot/1.0 (2 subscribers)",
        "Feedbin feed-id:1 - 5 subscribers",
        "Feedbin feed-id:2 - 7 subscribers",
        "curl/8",
    ] {
        rig.ask(agent, 0, 2);
    }
    let figures = rig.figures(0);
    assert_eq!(figures.claimed, 127);
    assert_eq!(figures.day.requests, 12);
    let rows = figures.software.iter();
    let rows: Vec<_> = rows
        .map(|row| (&*row.software, row.claimed, row.day.requests))
        .collect();
    assert_eq!(
        rows,
        [
            ("Feedly", Some(120), 6),
            ("Feedbin", Some(7), 4),
            ("curl", None, 2)
        ]
    );
}

#[test]
fn a_claim_of_a_million_million_readers_counts_as_none_and_is_named() {
    let mut rig = Rig::default();
    rig.ask("Feedly/1.0 (1000000000000 subscribers)", 0, 1);
    assert_eq!(rig.figures(0).claimed, 0);
    assert!(rig.faults(0, "Feedly").contains("1 of its requests claim"));
    rig.ask("Feedly/1.0 (12 subscribers)", 0, 1);
    assert_eq!(rig.figures(0).claimed, 12);
}

#[test]
fn a_hundred_thousand_invented_names_take_a_few_rows_and_nobodys_place() {
    let mut rig = Rig::default();
    rig.ask("First/1", 0, 3);
    for name in 0..100_000 {
        rig.ask(&format!("x{name}/1"), 0, 1);
    }
    rig.ask("Feedly/1.0 (120 subscribers)", 0, 1);
    rig.ask("First/1", 0, 3);
    let figures = rig.figures(0);
    assert_eq!(figures.software.len(), UNKNOWN_SOFTWARE_MAX + 2);
    assert_eq!(figures.day.requests, 100_007, "none is lost");
    assert_eq!(
        (figures.claimed, rig.0.rows),
        (120, UNKNOWN_SOFTWARE_MAX + 1)
    );
    let last = figures.software.last().unwrap();
    assert_eq!(
        (&*last.software, last.misbehaves.len()),
        (OTHER_SOFTWARE, 0)
    );
    let first = figures.software.iter().find(|row| row.software == "First");
    assert_eq!(first.unwrap().day.requests, 6);
    // A day later one that is idle gives way to another.
    rig.ask("Later/1", 2 * DAY, 1);
    let names =
        |figures: &ReaderFigures, name| figures.software.iter().any(|row| row.software == name);
    let figures = rig.figures(2 * DAY);
    assert!(names(&figures, "Later") && figures.software.len() == UNKNOWN_SOFTWARE_MAX + 2);
}

#[test]
fn rows_of_all_feeds_are_bounded_and_go_after_a_month() {
    let mut tallies = Tallies::default();
    let agents: Vec<_> = (0..20)
        .map(|no| software(format!("x{no}").as_bytes()))
        .collect();
    let one = Counts {
        requests: 1,
        ..Counts::default()
    };
    for feed in 0..10_100 {
        for agent in &agents {
            assert!(tallies.add(FeedNo(feed), agent, one, at(0)));
        }
    }
    assert_eq!(tallies.rows, SOFTWARE_ROWS_MAX);
    let last = tallies.figures(FeedNo(10_099), at(0)).unwrap();
    assert_eq!((last.software.len(), last.day.requests), (1, 20));
    assert!(tallies.add(FeedNo(0), &agents[0], one, at(32 * DAY)));
    assert_eq!((tallies.rows, tallies.feeds.len()), (1, 1));
    let figures = tallies.figures(FeedNo(0), at(32 * DAY)).unwrap();
    assert_eq!(figures.month.requests, 1);
}

#[test]
fn software_that_never_asks_with_a_condition_and_often_is_named() {
    let mut rig = Rig::default();
    // Every four minutes, every six minutes, and one that was conditional once.
    for minute in 0..20 * 60 {
        if minute % 4 == 0 {
            rig.ask("often/1", minute * 60, 1);
            rig.ask("once-conditional/1", minute * 60, 1);
        }
        if minute % 6 == 0 {
            rig.ask("seldom/1", minute * 60, 1);
        }
    }
    let conditional = Counts {
        requests: 1,
        conditional: 1,
        ..Counts::default()
    };
    rig.add("once-conditional/1", 20 * HOUR, conditional);
    let now = 20 * HOUR;
    let told = rig.faults(now, "often");
    assert!(
        told.contains("about 1") && told.contains("every 240 s"),
        "{told}"
    );
    assert_eq!(rig.faults(now, "seldom"), "");
    assert_eq!(rig.faults(now, "once-conditional"), "");
    let row = &rig.figures(now).software[0];
    assert!(row.software == "once-conditional" && row.day.conditional == 1);
}

#[test]
fn many_clients_of_one_software_are_not_one_that_asks_often() {
    let mut rig = Rig::default();
    for client in 0..40_u64 {
        let counts = Counts {
            requests: 4,
            clients: ClientBits::of(client << 58),
            ..Counts::default()
        };
        rig.add("Many/1", 0, counts);
    }
    assert_eq!(rig.faults(0, "Many"), "");
    assert!(rig.figures(0).software[0].clients_about.unwrap() > 30);
    for client in 40..64_u64 {
        let counts = Counts {
            requests: 10_000,
            clients: ClientBits::of(client << 58),
            ..Counts::default()
        };
        rig.add("Many/1", 0, counts);
    }
    assert_eq!(rig.faults(0, "Many"), "", "too many to be counted");
    assert_eq!(rig.figures(0).software[0].clients_about, None);
}

#[test]
fn software_that_heeds_neither_410_nor_429_is_named() {
    let mut rig = Rig::default();
    let gone = |gone| Counts {
        requests: gone,
        gone,
        ..Counts::default()
    };
    rig.add("Patient/1", 0, gone(GONE_BORNE));
    rig.add("Deaf/1", 0, gone(GONE_BORNE));
    rig.add("Deaf/1", 10 * DAY, gone(1));
    assert_eq!(rig.faults(10 * DAY, "Patient"), "");
    assert!(
        rig.faults(10 * DAY, "Deaf")
            .contains("410 (gone): 10 times")
    );
    let refused = |refused| Counts {
        requests: 15,
        refused,
        conditional: 1,
        ..Counts::default()
    };
    rig.add("Pushing/1", 10 * DAY, refused(10));
    rig.add("Sometimes/1", 10 * DAY, refused(7));
    assert!(
        rig.faults(10 * DAY, "Pushing")
            .contains("429 (too many requests) answered 10 of its 15")
    );
    assert_eq!(rig.faults(10 * DAY, "Sometimes"), "");
}
