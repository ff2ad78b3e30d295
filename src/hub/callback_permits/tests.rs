use super::*;
use futures_util::{FutureExt as _, future::BoxFuture};
use proptest::prelude::*;

fn at(host: &str) -> Destination {
    Destination::of(&format!("http://{host}.example/"))
}

fn enter(places: &CallbackPermits, host: &str) -> Option<CallbackPermit> {
    places
        .enter(&at(host), RequestPurpose::Question)
        .now_or_never()
        .map(|entered| entered.unwrap())
}

fn enter_all(places: &CallbackPermits, host: &str) -> Vec<CallbackPermit> {
    std::iter::from_fn(|| enter(places, host)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_destination_takes_no_room_from_the_others() {
    let places = CallbackPermits::new(200, 20);
    assert_eq!(enter_all(&places, "one").len(), 11);
    let places = CallbackPermits::new(200, 10);
    assert_eq!(enter_all(&places, "one").len(), 10, "no more than its room");
    let places = CallbackPermits::new(2, 2);
    let one = enter(&places, "one");
    let other = enter(&places, "other");
    assert!(
        one.is_some() && other.is_some(),
        "the second place is for another one"
    );
    assert!(
        enter(&places, "third").is_none(),
        "there is room for two in all"
    );
    drop(one);
    assert!(enter(&places, "third").is_some());
}

#[tokio::test(start_paused = true)]
async fn there_is_always_a_place_for_the_next_destination() {
    let places = CallbackPermits::new(200, 20);
    let mut held: Vec<CallbackPermit> = Vec::new();
    for n in 0..50 {
        let taken = enter_all(&places, &format!("greedy-{n}"));
        assert!(!taken.is_empty(), "destination {n} has its first place");
        held.extend(taken);
    }
    assert!(held.len() <= 200);
}

#[tokio::test(start_paused = true)]
async fn requests_that_take_long_count_apart_up_to_a_limit() {
    let places = CallbackPermits::new(16, 16);
    let hosts = |names: std::ops::Range<u32>| -> Vec<CallbackPermit> {
        names
            .flat_map(|n| enter_all(&places, &n.to_string()))
            .collect()
    };
    let mut first = hosts(0..30);
    assert_eq!(first.len(), 16);
    first.iter_mut().for_each(CallbackPermit::slowed);
    assert!(
        enter(&places, "0").is_none(),
        "in trouble, and their share is taken"
    );
    let mut second = hosts(100..130);
    assert_eq!(second.len(), 8, "half of them count apart");
    second.iter_mut().for_each(CallbackPermit::slowed);
    let third = hosts(200..230);
    assert_eq!(
        third.len(),
        0,
        "never more than one and a half times the room"
    );
    drop((first, second, third));
    let room = places.lock();
    assert_eq!(room.lanes.count(Lane::Brisk), 0);
    assert_eq!(room.lanes.count(Lane::Slow), 0);
}

#[tokio::test(start_paused = true)]
async fn destinations_in_trouble_share_a_quarter() {
    let places = CallbackPermits::new(40, 10);
    for n in 0..100 {
        enter(&places, &format!("slow-{n}"))
            .unwrap()
            .ended(Ending::AnsweredSlowly);
    }
    let held: Vec<CallbackPermit> = (0..100)
        .flat_map(|n| enter_all(&places, &format!("slow-{n}")))
        .collect();
    assert_eq!(held.len(), 10);
    assert!(!enter_all(&places, "well").is_empty());
}

#[tokio::test(start_paused = true)]
async fn places_go_to_destinations_in_turn_and_nobody_who_left_keeps_one() {
    let places = CallbackPermits::new(2, 1);
    let held = [enter(&places, "a").unwrap(), enter(&places, "b").unwrap()];
    let hosts = ["c", "c", "c", "d"].map(at);
    let mut waiting: Vec<_> = hosts
        .iter()
        .map(|host| Box::pin(places.enter(host, RequestPurpose::Question)))
        .collect();
    for waits in &mut waiting {
        assert!(waits.now_or_never().is_none());
    }
    let gone = waiting.remove(0);
    drop(gone);
    drop(held);
    let [c, c2, d] = &mut waiting[..] else {
        panic!("three are left")
    };
    let first = c.now_or_never().unwrap();
    assert!(c2.now_or_never().is_none(), "its destination has one place");
    let _d = d.now_or_never().unwrap();
    drop(first);
    assert!(c2.now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_push_is_not_sent_where_nobody_answers_and_a_question_is() {
    let places = CallbackPermits::new(200, 20);
    let dead = at("dead");
    for _ in 0..5 {
        places
            .enter(&dead, RequestPurpose::Push)
            .await
            .unwrap()
            .ended(Ending::Silent);
    }
    let closed = places.enter(&dead, RequestPurpose::Push).await.unwrap_err();
    assert!(closed.wait >= Duration::from_secs(20), "{closed:?}");
    places
        .enter(&dead, RequestPurpose::Question)
        .await
        .unwrap()
        .ended(Ending::Answered);
    assert!(
        places.enter(&dead, RequestPurpose::Push).await.is_ok(),
        "it has answered"
    );
}

#[tokio::test(start_paused = true)]
async fn destinations_at_rest_are_forgotten() {
    let places = CallbackPermits::new(200, 20);
    for n in 0..10 * SWEEP_MIN {
        let ending = if n % 2 == 0 {
            Ending::Answered
        } else {
            Ending::Silent
        };
        enter(&places, &n.to_string()).unwrap().ended(ending);
        tokio::time::advance(Duration::from_secs(2)).await;
    }
    let remembered = places.lock().used.len();
    assert!(remembered <= 4 * SWEEP_MIN, "{remembered}");
}

/// One thing that happens to the room; numbers are taken modulo what there is.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Enters(u8, RequestPurpose),
    Leaves(u8),
    Ends(u8, Ending),
    Slows(u8),
}

fn happening() -> impl Strategy<Value = Happening> {
    let errand = prop_oneof![4 => Just(RequestPurpose::Push), 1 => Just(RequestPurpose::Question)];
    let ending = prop_oneof![
        6 => Just(Ending::Answered),
        1 => Just(Ending::AnsweredSlowly),
        1 => Just(Ending::Silent),
    ];
    prop_oneof![
        8 => (any::<u8>(), errand).prop_map(|(host, errand)| Happening::Enters(host, errand)),
        1 => any::<u8>().prop_map(Happening::Leaves),
        6 => (any::<u8>(), ending).prop_map(|(place, ending)| Happening::Ends(place, ending)),
        1 => any::<u8>().prop_map(Happening::Slows),
    ]
}

/// Callers of a room: those who wait, and the places of those who do not.
struct Crowd {
    places: CallbackPermits,
    waiting: Vec<BoxFuture<'static, Result<CallbackPermit, IsClosed>>>,
    held: Vec<CallbackPermit>,
}

impl Crowd {
    fn happens(&mut self, happening: Happening) {
        let at = |number: u8, count: usize| (count > 0).then(|| usize::from(number) % count);
        match happening {
            Happening::Enters(host, errand) => {
                let (places, host) = (self.places.clone(), at_host(host % 40));
                self.waiting
                    .push(async move { places.enter(&host, errand).await }.boxed());
            }
            Happening::Leaves(number) => {
                if let Some(at) = at(number, self.waiting.len()) {
                    drop(self.waiting.remove(at));
                }
            }
            Happening::Ends(number, ending) => {
                if let Some(at) = at(number, self.held.len()) {
                    self.held.remove(at).ended(ending);
                }
            }
            Happening::Slows(number) => {
                if let Some(at) = at(number, self.held.len()) {
                    self.held[at].slowed();
                }
            }
        }
        for mut waits in std::mem::take(&mut self.waiting) {
            match waits.as_mut().now_or_never() {
                None => self.waiting.push(waits),
                Some(Ok(place)) => self.held.push(place),
                Some(Err(IsClosed { .. })) => {}
            }
        }
    }

    /// Checks the limits, and that nobody waits for whom there is a place: by a look at every
    /// destination.
    fn check(&self) {
        let mut room = self.places.lock();
        let (all_max, one_max) = (room.all_max, room.one_max);
        let (brisk, slow) = (room.lanes.count(Lane::Brisk), room.lanes.count(Lane::Slow));
        assert_eq!(brisk + slow, self.held.len());
        assert!(brisk <= all_max && slow <= (all_max / SLOW_SHARE).max(1));
        let hosts: Vec<Arc<Destination>> = room.used.keys().cloned().collect();
        for host in hosts {
            let used = &room.used[&host];
            assert!(used.held() <= one_max, "{host} holds more than one may");
            let waits = used.waiting.iter().any(|waiting| !waiting.is_closed());
            assert!(
                !(waits && room.has_place(&host)),
                "{host} waits for nothing"
            );
        }
    }
}

fn at_host(number: u8) -> Destination {
    at(&number.to_string())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    // Every wait and every place draws a number. A look gives a place or ends a wait, so there are
    // never more looks than numbers, however many wait.
    #[test]
    fn nobody_waits_for_a_free_place_and_nobody_is_looked_at_in_vain(
        all_max in 1_usize..60,
        one_max in 1_usize..8,
        happenings in proptest::collection::vec(happening(), 1..400),
    ) {
        let places = CallbackPermits::new(all_max, one_max);
        let mut crowd = Crowd { places, waiting: Vec::new(), held: Vec::new() };
        for happening in happenings {
            crowd.happens(happening);
            crowd.check();
        }
        let mut room = crowd.places.lock();
        prop_assert!(room.steps as u64 <= room.lanes.next_number());
    }
}

// Outside of a runtime, which would let a task poll no more than some futures at once.
#[test]
fn a_freed_place_costs_the_same_however_many_wait() {
    for waiters in [200, 20_000] {
        let places = CallbackPermits::new(50, 20);
        // A quarter of the hosts is in trouble, as their share of the room is.
        for n in (0..waiters).step_by(4) {
            enter(&places, &format!("h{n}"))
                .unwrap()
                .ended(Ending::AnsweredSlowly);
        }
        let mut waiting: VecDeque<_> = (0..waiters)
            .map(|n| {
                let (places, host) = (places.clone(), at(&format!("h{n}")));
                async move { places.enter(&host, RequestPurpose::Push).await }.boxed()
            })
            .collect();
        let mut held = VecDeque::new();
        waiting.retain_mut(|waits| match waits.now_or_never() {
            Some(place) => {
                held.push_back(place.unwrap());
                false
            }
            None => true,
        });
        let mut most = 0;
        // Only brisk places become free: the troubled who wait are in nobody's way.
        let brisk_at =
            |held: &VecDeque<CallbackPermit>| held.iter().position(|p| p.lane == Lane::Brisk);
        for _ in 0..40 {
            let place = held.remove(brisk_at(&held).unwrap()).unwrap();
            let before = places.lock().steps;
            drop(place);
            most = most.max(places.lock().steps - before);
            let given = waiting
                .iter_mut()
                .enumerate()
                .find_map(|(at, waits)| Some((at, waits.now_or_never()?)));
            let (at, place) = given.unwrap();
            drop(waiting.remove(at));
            held.push_back(place.unwrap());
        }
        assert_eq!(most, 1, "of {waiters}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_at_its_own_limit_is_in_no_queue() {
    let places = CallbackPermits::new(200, 1);
    let held = enter(&places, "one").unwrap();
    let host = at("one");
    let mut waits = Box::pin(places.enter(&host, RequestPurpose::Push));
    assert!((&mut waits).now_or_never().is_none());
    assert!(places.lock().used[&host].turn.is_none());
    drop(held);
    assert!(waits.now_or_never().is_some());
}
