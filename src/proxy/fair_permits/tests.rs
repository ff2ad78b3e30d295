//! Books of places, with clients that take them away from each other.

use super::*;
use proptest::prelude::*;

/// A client of a network of its own.
fn client(no: u8) -> PermitHolder {
    PermitHolder::client(IpAddr::from([198, 51, no, 1]))
}

fn of(address: &str) -> PermitHolder {
    PermitHolder::client(address.parse().unwrap())
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A place that is taken at a moment.
fn enter<E>(
    places: &mut FairPermits<E>,
    holder: PermitHolder,
    end: E,
    now: Duration,
) -> Option<Entered<E>> {
    places.enter(holder, Arc::new(PermitProgressTimes::new(now)), end, now)
}

#[test]
fn one_client_keeps_four_fifths_and_others_find_room() {
    let mut places = FairPermits::new(1000);
    for no in 0..1010 {
        let entered = enter(&mut places, client(1), no, secs(no)).unwrap();
        let first = no.checked_sub(800);
        assert_eq!(entered.lost, first.map(|first| (Loss::TooMany, first)));
    }
    assert_eq!(places.taken(), 800);
    for other in 0..200 {
        let other = PermitHolder::client(IpAddr::from([192, 0, other, 1]));
        let entered = enter(&mut places, other, 0, secs(2000)).unwrap();
        assert!(entered.lost.is_some());
    }
    assert_eq!((places.taken(), places.count(client(1))), (800, 600));
}

/// The attack: each place is of another network of one site, and each trickles.
fn trickling(max: usize, net: impl Fn(usize) -> PermitHolder, bytes_per_sec: usize) {
    let mut places = FairPermits::new(max);
    let mut moves: Vec<Arc<PermitProgressTimes>> = Vec::new();
    let mut now = secs(0);
    for no in 0..max {
        let progress = Arc::new(PermitProgressTimes::new(now));
        moves.push(progress.clone());
        places.enter(net(no), progress, (), now);
    }
    let (mut got, mut refused) = (0, 0);
    for second in 1..=120 {
        now = secs(second);
        for progress in &moves {
            progress.moved(bytes_per_sec, now);
        }
        // Twenty honest requests a second, each of which is answered and read within it.
        for no in 0..20 {
            let honest = PermitHolder::client(IpAddr::from([203, 0, 113, no]));
            match enter(&mut places, honest, (), now) {
                Some(entered) => {
                    got += 1;
                    places.leave(entered.place);
                }
                None => refused += 1,
            }
        }
    }
    // At half the pace the slowest are two seconds behind after four.
    assert!(refused <= 80, "{got} got a place, {refused} were refused");
}

#[test]
fn a_thousand_networks_of_one_site_keep_nobody_out() {
    for bytes_per_sec in [0, 1, 34, 500, 1000, 4000] {
        let net = |no: usize| of(&format!("2001:db8:7:{no:x}::1"));
        trickling(1000, net, bytes_per_sec);
        trickling(10, net, bytes_per_sec);
    }
}

#[test]
fn a_thousand_sites_of_one_provider_keep_nobody_out() {
    for bytes_per_sec in [0, 1, 34, 500, 1000, 4000] {
        let sites = |no: usize| of(&format!("2001:db8:{no:x}::1"));
        trickling(1000, sites, bytes_per_sec);
        // Likewise everywhere in version 4, and in tunnels.
        let everywhere = |no: usize| {
            let [.., high, low] = (no as u32).to_be_bytes();
            PermitHolder::client(IpAddr::from([7, high, low, 1]))
        };
        trickling(1000, everywhere, bytes_per_sec);
        let tunnels = |no: usize| of(&format!("2002:0700:{no:04x}:1::1"));
        trickling(1000, tunnels, bytes_per_sec);
    }
}

#[test]
fn the_addresses_of_one_network_of_version_four_are_weighed_together() {
    let mut places = FairPermits::new(1000);
    for no in 0..200_u8 {
        for _ in 0..5 {
            let holder = PermitHolder::client(IpAddr::from([198, 51, 100, no]));
            enter(&mut places, holder, (), secs(0));
        }
    }
    assert_eq!(places.taken(), 800, "then the network is refused");
    assert_eq!(
        places.most(),
        Some((PermitHolder::Net("198.51.100.0/24".parse().unwrap()), 800))
    );
    // A reader with six requests at once is nobody with too many.
    for no in 0..6 {
        let entered = enter(&mut places, client(9), (), Duration::from_millis(no)).unwrap();
        assert_eq!(entered.lost.map(|(loss, ())| loss), Some(Loss::TooMany));
    }
    assert_eq!(places.count(client(9)), 6);
}

#[test]
fn neighbours_of_a_greedy_client_keep_their_places() {
    let mut places = FairPermits::new(100);
    let neighbour = |no: u8| PermitHolder::client(IpAddr::from([198, 51, 100, no]));
    for no in 1..30 {
        enter(&mut places, neighbour(no), no, secs(0)).unwrap();
    }
    for second in 1..200 {
        let entered = enter(&mut places, neighbour(200), 200, secs(second));
        let lost = entered.unwrap().lost;
        assert!(lost.is_none_or(|(_, lost)| lost == 200), "{lost:?}");
    }
    assert_eq!(places.count(neighbour(200)), 80 - 29);
}

#[test]
fn whoever_is_furthest_behind_goes_first() {
    let mut places = FairPermits::new(5);
    let progress: Vec<_> = (0..4)
        .map(|_| Arc::new(PermitProgressTimes::new(secs(0))))
        .collect();
    for (no, progress) in progress.iter().enumerate() {
        places
            .enter(client(1), progress.clone(), no, secs(0))
            .unwrap();
    }
    for second in 1..100 {
        for (progress, bytes) in progress.iter().zip([8000, 5, 500, 1]) {
            progress.moved(bytes, secs(second));
        }
    }
    let mut loser = || {
        let entered = enter(&mut places, client(2), 9, secs(100));
        entered.unwrap().lost.unwrap().1
    };
    assert_eq!((loser(), loser()), (3, 1));
}

#[test]
fn an_address_that_may_be_many_has_never_too_many_and_its_slowest_goes_when_none_is_free() {
    let proxy = PermitHolder::many(IpAddr::from([127, 0, 0, 1]));
    let mut places = FairPermits::new(10);
    for no in 0..10 {
        assert!(
            enter(&mut places, proxy, no, secs(0))
                .unwrap()
                .lost
                .is_none()
        );
    }
    let at = Duration::from_millis(1900);
    assert!(
        enter(&mut places, client(1), 10, at).is_none(),
        "none is due"
    );
    let lost = enter(&mut places, client(1), 11, secs(4)).unwrap().lost;
    assert_eq!(lost, Some((Loss::Slowest, 0)));
    let lost = enter(&mut places, proxy, 12, secs(4)).unwrap().lost;
    assert_eq!(lost, Some((Loss::Slowest, 1)));
    assert_eq!((places.taken(), places.count(proxy)), (10, 9));
}

#[test]
fn who_comes_again_at_once_is_refused_and_others_are_not() {
    let mut places = FairPermits::new(10);
    let at = Duration::from_millis;
    for no in 0..8 {
        enter(&mut places, client(1), (), at(no)).unwrap();
    }
    let mut got = 0;
    for ms in 0..5000 {
        got += usize::from(enter(&mut places, client(1), (), at(100 + ms)).is_some());
    }
    assert_eq!(got, 5, "one a second, whatever it tries");
    for other in 2..6 {
        let entered = enter(&mut places, client(other), (), at(5100)).unwrap();
        assert_eq!(entered.lost, Some((Loss::TooMany, ())));
    }
    assert_eq!((places.taken(), places.count(client(1))), (8, 4));
}

#[test]
fn a_site_that_comes_again_from_another_network_is_refused_too() {
    let mut places = FairPermits::new(100);
    let mut got = 0;
    for no in 0..5000_u64 {
        let holder = of(&format!("2001:db8:7:{no:x}::1"));
        got += usize::from(enter(&mut places, holder, (), Duration::from_millis(no)).is_some());
    }
    assert_eq!((got, places.taken()), (80 + 5, 80), "one a second");
}

#[test]
fn a_request_that_waits_for_its_origin_is_not_the_slowest_for_half_a_minute() {
    let mut places = FairPermits::new(3);
    let waiting = |places: &mut FairPermits<u8>, no| {
        let progress = Arc::new(PermitProgressTimes::new(secs(0)));
        progress.sent(secs(0));
        places.enter(client(no), progress, no, secs(0)).unwrap();
    };
    waiting(&mut places, 1);
    waiting(&mut places, 2);
    let slow = Arc::new(PermitProgressTimes::new(secs(0)));
    slow.answered(secs(20));
    places.enter(client(3), slow, 3, secs(20)).unwrap();
    let lost = enter(&mut places, client(4), 4, secs(25)).unwrap().lost;
    assert_eq!(lost, Some((Loss::Slowest, 3)), "it reads nothing");
    assert!(enter(&mut places, client(5), 5, secs(26)).is_none());
    let lost = enter(&mut places, client(5), 5, secs(28)).unwrap().lost;
    assert_eq!(lost, Some((Loss::Slowest, 4)));
    let lost = enter(&mut places, client(6), 6, secs(40)).unwrap().lost;
    assert_eq!(lost, Some((Loss::Slowest, 1)));
}

#[test]
fn of_few_places_one_is_kept_for_others_and_the_only_one_goes_once_it_is_due() {
    for max in 2..5 {
        let mut places = FairPermits::new(max);
        for no in 0..20 {
            enter(&mut places, client(1), (), secs(no)).unwrap();
        }
        assert_eq!(places.count(client(1)), max - 1);
        let entered = enter(&mut places, client(2), (), secs(20));
        assert!(entered.is_some(), "{max}");
    }
    let mut places = FairPermits::new(1);
    enter(&mut places, client(1), (), secs(0)).unwrap();
    assert!(enter(&mut places, client(2), (), secs(1)).is_none());
    let entered = enter(&mut places, client(2), (), secs(2)).unwrap();
    assert_eq!(entered.lost, Some((Loss::Slowest, ())));
}

#[derive(Clone, Debug)]
enum Step {
    Enter(u8),
    Leave(usize),
    Move(usize, u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..8_u8).prop_map(Step::Enter),
        1 => any::<usize>().prop_map(Step::Leave),
        1 => (any::<usize>(), any::<u16>()).prop_map(|(at, bytes)| Step::Move(at, bytes)),
    ]
}

/// Some clients, of whom some are neighbours, one that may be many, and one that is not known.
fn holder(no: u8) -> PermitHolder {
    match no {
        7 => PermitHolder::Unknown,
        6 => PermitHolder::many(IpAddr::from([10, 0, 0, 1])),
        3..6 => PermitHolder::client(IpAddr::from([203, 0, 113, no])),
        _ => client(no),
    }
}

proptest! {
    #[test]
    fn the_books_hold_and_a_place_is_lost_by_who_has_too_many_or_is_the_slowest(
        max in 1..30_usize,
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let mut places = FairPermits::new(max);
        let mut held: Vec<(PermitNo, Arc<PermitProgressTimes>, usize)> = Vec::new();
        for (at, step) in steps.into_iter().enumerate() {
            let now = secs(at as u64);
            match step {
                Step::Enter(no) => {
                    let before = held.len();
                    let progress = Arc::new(PermitProgressTimes::new(now));
                    let entered = places.enter(holder(no), progress.clone(), at, now);
                    let Some(entered) = entered else {
                        prop_assert_eq!(before, max, "it is refused only where none is free");
                        continue;
                    };
                    held.push((entered.place, progress, at));
                    let Some((loss, end)) = entered.lost else {
                        prop_assert!(before < max);
                        continue;
                    };
                    let gone = held.iter().position(|(.., its)| *its == end).unwrap();
                    let (lost, moves, _) = held.remove(gone);
                    prop_assert!(end != at, "never the newest");
                    let others = held.iter().filter(|(.., its)| *its != at);
                    match loss {
                        Loss::Slowest => {
                            prop_assert!(before == max && moves.due_us() <= micros(now));
                            let mut others = others;
                            prop_assert!(others.all(|(_, its, _)| its.due_us() >= moves.due_us()));
                        }
                        Loss::TooMany => {
                            prop_assert!(before + 1 > max - max.div_ceil(5));
                            prop_assert!(lost.holder.weight(1).is_some());
                            let mut same = others.filter(|(place, ..)| place.holder == lost.holder);
                            prop_assert!(same.all(|(_, its, _)| its.due_us() >= moves.due_us()));
                        }
                    }
                }
                Step::Leave(which) if !held.is_empty() => {
                    let (place, _, end) = held.swap_remove(which % held.len());
                    prop_assert_eq!(places.leave(place), Some(end));
                    prop_assert_eq!(places.leave(place), None, "only once");
                }
                Step::Move(which, bytes) if !held.is_empty() => {
                    held[which % held.len()].1.moved(bytes.into(), now);
                }
                Step::Leave(_) | Step::Move(..) => {}
            }
            prop_assert!(held.len() <= max);
            prop_assert_eq!(places.taken(), held.len());
            for no in 0..8 {
                let count = held.iter().filter(|(place, ..)| place.holder == holder(no)).count();
                prop_assert_eq!(places.count(holder(no)), count);
            }
        }
    }
}
