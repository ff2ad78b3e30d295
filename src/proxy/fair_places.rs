//! The books of the places of one site: who holds how many, and which one is to go when they run
//! short; not how a place ends.

use crate::client_net::{client_net, client_site};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

/// Bytes that count as progress: fewer are a trickle.
pub(super) const LEAST_BYTES: u64 = 1000;
/// The part of the places that is kept for others than the client with most of them: one of so
/// many, and at least one.
const KEPT_PART: usize = 5;
/// Milliseconds for which a client that has lost a place takes none of its others away: its next
/// request is refused, and the origin hears nothing of it.
const LOSS_GAP_MS: u64 = 1000;
/// Milliseconds after which a place that waits for its client may be taken away although it is the
/// only one of that client, when none is free: it has not got on for so long.
const SLOW_MS: u64 = 1000;
/// The same for a place that waits for the origin.
const STALLED_MS: u64 = 30_000;

/// Whose places are counted as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum PlaceHolder {
    /// A client by its address, or by its network.
    Client(IpAddr),
    /// An address that may stand for many clients: it loses a place only as the slowest of all.
    Many(IpAddr),
    /// Requests whose client is not known. They lose a place in the same case.
    Unknown,
}

impl PlaceHolder {
    /// The holder of the places of a client.
    pub(super) fn client(address: IpAddr) -> Self {
        Self::Client(client_net(address))
    }

    /// The site of a client, whose clients are counted together, too.
    fn site(&self) -> Option<IpAddr> {
        match self {
            Self::Client(address) => Some(client_site(*address)),
            Self::Many(_) | Self::Unknown => None,
        }
    }

    /// The holder of the places of an address that may stand for many clients.
    pub(super) fn many(address: IpAddr) -> Self {
        Self::Many(address.to_canonical())
    }
}

/// The progress of what holds a place. Moments are times since the site began.
#[derive(Debug)]
pub(super) struct PlaceMoves {
    /// Milliseconds to the moment at which it last got on.
    moved_ms: AtomicU64,
    /// Bytes that have moved since, too few yet.
    bytes: AtomicU64,
    /// True once the whole of its request has come.
    is_asked: AtomicBool,
    /// True once its answer has begun: what still comes of its request is a stream.
    is_answered: AtomicBool,
}

impl PlaceMoves {
    pub(super) fn new(now: Duration) -> Self {
        Self {
            moved_ms: AtomicU64::new(millis(now)),
            bytes: AtomicU64::new(0),
            is_asked: AtomicBool::new(false),
            is_answered: AtomicBool::new(false),
        }
    }

    /// Counts bytes that moved either way. It has got on once they are no trickle.
    pub(super) fn moved(&self, bytes: usize, now: Duration) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        if self
            .bytes
            .fetch_add(bytes, Ordering::Relaxed)
            .saturating_add(bytes)
            >= LEAST_BYTES
        {
            self.bytes.store(0, Ordering::Relaxed);
            self.moved_ms.store(millis(now), Ordering::Relaxed);
        }
    }

    /// Notes that the whole of its request has come.
    pub(super) fn asked(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
    }

    /// Milliseconds for which it may stand still: it waits for its client, or for the origin, which
    /// is not the client's fault.
    fn patience_ms(&self) -> u64 {
        if self.is_asked.load(Ordering::Relaxed) && !self.is_answered() {
            STALLED_MS
        } else {
            SLOW_MS
        }
    }

    /// Notes that its answer has begun.
    pub(super) fn answered(&self) {
        self.is_answered.store(true, Ordering::Relaxed);
    }

    /// True once its answer has begun.
    pub(super) fn is_answered(&self) -> bool {
        self.is_answered.load(Ordering::Relaxed)
    }

    fn moved_ms(&self) -> u64 {
        self.moved_ms.load(Ordering::Relaxed)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A place that was taken, by its holder and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlaceNo {
    pub(super) holder: PlaceHolder,
    no: u64,
}

/// A place that a request got, and the one that was taken away for it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entered<E> {
    pub(super) place: PlaceNo,
    /// The holder that loses one, and the end of what held it.
    pub(super) lost: Option<(PlaceHolder, E)>,
}

#[derive(Debug)]
struct HeldPlace<E> {
    progress: Arc<PlaceMoves>,
    end: E,
}

/// The places of one holder.
#[derive(Debug)]
struct HolderPlaces<E> {
    places: BTreeMap<u64, HeldPlace<E>>,
    /// Milliseconds to the moment at which it last lost one.
    lost_ms: Option<u64>,
}

/// The places of one site. `E` is what ends a place that is taken away; its place is free at once.
#[derive(Debug)]
pub(super) struct FairPlaces<E> {
    max: usize,
    taken: usize,
    next_no: u64,
    held: HashMap<PlaceHolder, HolderPlaces<E>>,
    /// Every holder with the number of its places, the one with most of them last.
    by_count: BTreeSet<(usize, PlaceHolder)>,
    /// Number of places of the clients of each site.
    of_sites: HashMap<IpAddr, usize>,
}

impl<E> FairPlaces<E> {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            taken: 0,
            next_no: 0,
            held: HashMap::new(),
            by_count: BTreeSet::new(),
            of_sites: HashMap::new(),
        }
    }

    /// Places that are taken.
    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    /// Places in all.
    pub(super) fn max(&self) -> usize {
        self.max
    }

    /// The holder with most places, and how many those are.
    pub(super) fn most(&self) -> Option<(PlaceHolder, usize)> {
        self.by_count
            .last()
            .map(|(count, holder)| (*holder, *count))
    }

    /// The number of places of a holder.
    pub(super) fn count(&self, holder: PlaceHolder) -> usize {
        self.held.get(&holder).map_or(0, |held| held.places.len())
    }

    // Decides: Who loses a place at an origin when they run short?
    /// Takes a place. Above four fifths of them, the site with more than a fifth loses the slowest
    /// of its client with most, and else the client with most loses its slowest one, though never
    /// its only one. When none is free, the slowest of all goes, whoever holds it, if it has not got
    /// on for its time. `None` when none is free, and for a client that has just lost one and would
    /// lose the next.
    pub(super) fn enter(
        &mut self,
        holder: PlaceHolder,
        progress: Arc<PlaceMoves>,
        end: E,
    ) -> Option<Entered<E>> {
        let place = PlaceNo {
            holder,
            no: self.next_no,
        };
        let now_ms = progress.moved_ms();
        self.next_no += 1;
        self.change(holder, |places| {
            places.insert(place.no, HeldPlace { progress, end });
        });
        let share = self.max - self.max.div_ceil(KEPT_PART);
        let loser = if self.taken > share {
            self.loser(place, now_ms)
        } else {
            None
        };
        let is_own = loser.is_some_and(|loser| loser.holder == holder);
        if is_own && self.has_just_lost(holder, now_ms) {
            self.leave(place);
            return None;
        }
        let lost = loser.and_then(|loser| {
            if let Some(held) = self.held.get_mut(&loser.holder) {
                held.lost_ms = Some(now_ms);
            }
            self.leave(loser).map(|end| (loser.holder, end))
        });
        if self.taken > self.max {
            self.leave(place);
            return None;
        }
        Some(Entered { place, lost })
    }

    fn has_just_lost(&self, holder: PlaceHolder, now_ms: u64) -> bool {
        let lost_ms = self.held.get(&holder).and_then(|held| held.lost_ms);
        lost_ms.is_some_and(|lost_ms| now_ms < lost_ms + LOSS_GAP_MS)
    }

    /// Gives a place back, unless it was taken away.
    pub(super) fn leave(&mut self, place: PlaceNo) -> Option<E> {
        self.change(place.holder, |places| places.remove(&place.no))
            .map(|held| held.end)
    }

    /// The place that is to go for the newest one.
    fn loser(&self, newest: PlaceNo, now_ms: u64) -> Option<PlaceNo> {
        let is_client = |holder: &PlaceHolder| matches!(holder, PlaceHolder::Client(_));
        let mut most = self.by_count.iter().rev();
        let most = most.find(|(_, holder)| is_client(holder));
        let count = most.map_or(0, |(count, _)| *count);
        if let Some(place) = self.loser_of_site(newest, count) {
            return Some(place);
        }
        if let Some((2.., holder)) = most {
            return self.slowest(*holder, newest).map(|(_, place)| place);
        }
        if self.taken <= self.max {
            return None;
        }
        let is_slow = |moves: &PlaceMoves| now_ms >= moves.moved_ms() + moves.patience_ms();
        let slow = self.held.iter().flat_map(|(holder, held)| {
            let places = held.places.iter();
            let slow = places.filter(|(_, place)| is_slow(&place.progress));
            slow.map(|(no, place)| (place.progress.moved_ms(), *no, *holder))
        });
        let (_, no, holder) = slow.filter(|(_, no, _)| *no != newest.no).min()?;
        Some(PlaceNo { holder, no })
    }

    /// The place that goes from the site with most places, if that has more than its share and than
    /// the client with most: the slowest of its client with most.
    fn loser_of_site(&self, newest: PlaceNo, most_of_client: usize) -> Option<PlaceNo> {
        let (site, count) = self
            .of_sites
            .iter()
            .max_by_key(|(site, count)| (**count, **site))?;
        if *count <= self.max.div_ceil(KEPT_PART) || *count <= most_of_client {
            return None;
        }
        let of_site = self
            .held
            .iter()
            .filter(|(holder, _)| holder.site() == Some(*site));
        let slowest = of_site.filter_map(|(holder, held)| {
            let (moved_ms, place) = self.slowest(*holder, newest)?;
            Some((Reverse(held.places.len()), moved_ms, place.no, place))
        });
        let least = slowest.min_by_key(|(count, moved_ms, no, _)| (*count, *moved_ms, *no))?;
        Some(least.3)
    }

    /// The place of a holder that got on least lately, and when that was; not the newest of all.
    fn slowest(&self, holder: PlaceHolder, newest: PlaceNo) -> Option<(u64, PlaceNo)> {
        let places = self.held.get(&holder)?.places.iter();
        let older = places.filter(|(no, _)| **no != newest.no);
        let (moved_ms, no) = older
            .map(|(no, held)| (held.progress.moved_ms(), *no))
            .min()?;
        Some((moved_ms, PlaceNo { holder, no }))
    }

    /// Changes the places of a holder, and what is known of them beside.
    fn change<T>(
        &mut self,
        holder: PlaceHolder,
        change: impl FnOnce(&mut BTreeMap<u64, HeldPlace<E>>) -> T,
    ) -> T {
        let held = self.held.entry(holder).or_insert_with(|| HolderPlaces {
            places: BTreeMap::new(),
            lost_ms: None,
        });
        let before = held.places.len();
        let changed = change(&mut held.places);
        let after = held.places.len();
        if after == 0 {
            self.held.remove(&holder);
        }
        if before != after {
            if let Some(site) = holder.site() {
                let of_site = self.of_sites.entry(site).or_default();
                *of_site = *of_site + after - before;
                if *of_site == 0 {
                    self.of_sites.remove(&site);
                }
            }
            self.by_count.remove(&(before, holder));
            self.taken = self.taken + after - before;
            if after > 0 {
                self.by_count.insert((after, holder));
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn client(no: u8) -> PlaceHolder {
        PlaceHolder::client(IpAddr::from([198, 51, no, 1]))
    }

    fn fresh(secs: u64) -> Arc<PlaceMoves> {
        Arc::new(PlaceMoves::new(Duration::from_secs(secs)))
    }

    #[test]
    fn one_client_keeps_four_fifths_and_others_find_room() {
        let mut places = FairPlaces::new(1000);
        for no in 0..1010 {
            let entered = places.enter(client(1), fresh(no), no).unwrap();
            assert_eq!(
                entered.lost,
                no.checked_sub(800).map(|first| (client(1), first)),
                "{no}"
            );
        }
        assert_eq!(places.taken(), 800);
        for other in 0..200 {
            let entered = places.enter(
                PlaceHolder::client(IpAddr::from([192, 0, other, 2])),
                fresh(2000),
                0,
            );
            assert!(
                entered.is_some_and(|entered| entered.lost.is_some_and(|lost| lost.0 == client(1)))
            );
        }
        assert_eq!((places.taken(), places.count(client(1))), (800, 600));
    }

    #[test]
    fn whoever_got_on_least_lately_goes_and_a_trickle_is_no_progress() {
        let mut places = FairPlaces::new(5);
        let progress: Vec<_> = (0..4).map(|_| fresh(0)).collect();
        for (no, progress) in progress.iter().enumerate() {
            places.enter(client(1), progress.clone(), no).unwrap();
        }
        for secs in 1..100 {
            let now = Duration::from_secs(secs);
            progress[0].moved(1000, now);
            progress[1].moved(5, now);
            progress[2].moved(500, now);
            progress[3].moved(1, now);
        }
        let mut loser = || {
            places
                .enter(client(2), fresh(100), 9)
                .unwrap()
                .lost
                .unwrap()
                .1
        };
        assert_eq!(
            (loser(), loser(), loser()),
            (1, 3, 9),
            "of the two that trickle the older one"
        );
    }

    #[test]
    fn who_may_be_many_loses_nothing_and_a_network_of_version_6_is_one_client() {
        let proxy = PlaceHolder::many(IpAddr::from([127, 0, 0, 1]));
        let mut places = FairPlaces::new(10);
        for _ in 0..10 {
            assert!(places.enter(proxy, asked(0), ()).unwrap().lost.is_none());
        }
        assert!(
            places.enter(client(1), fresh(29), ()).is_none(),
            "a single request takes nothing away"
        );
        assert_eq!((places.taken(), places.count(client(1))), (10, 0));
        let of = |address: &str| PlaceHolder::client(address.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::2:3"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:198.51.1.1"), client(1));
    }

    #[test]
    fn who_comes_again_at_once_is_refused_and_others_are_not() {
        let mut places = FairPlaces::new(10);
        let at = |ms| Arc::new(PlaceMoves::new(Duration::from_millis(ms)));
        for no in 0..8 {
            places.enter(client(1), at(no), ()).unwrap();
        }
        let mut got = 0;
        for ms in 0..5000 {
            got += usize::from(places.enter(client(1), at(100 + ms), ()).is_some());
        }
        assert_eq!(got, 5, "one a second, whatever it tries");
        for other in 2..6 {
            let entered = places.enter(client(other), at(5100), ()).unwrap();
            assert_eq!(entered.lost.map(|(loser, ())| loser), Some(client(1)));
        }
        assert_eq!((places.taken(), places.count(client(1))), (8, 4));
    }

    #[test]
    fn of_few_places_one_is_kept_for_others_and_the_only_one_goes_once_it_has_stalled() {
        for max in 2..5 {
            let mut places = FairPlaces::new(max);
            for no in 0..20 {
                places.enter(client(1), fresh(no), ()).unwrap();
            }
            assert_eq!(places.count(client(1)), max - 1);
            assert!(places.enter(client(2), fresh(20), ()).is_some(), "{max}");
        }
        let mut places = FairPlaces::new(1);
        places.enter(client(1), asked(0), ()).unwrap();
        assert!(places.enter(client(2), fresh(29), ()).is_none());
        let entered = places.enter(client(2), fresh(30), ()).unwrap();
        assert_eq!(entered.lost, Some((client(1), ())));
    }

    /// Enters a request whose bytes have come.
    fn asked(secs: u64) -> Arc<PlaceMoves> {
        let moves = fresh(secs);
        moves.asked();
        moves
    }

    #[test]
    fn a_thousand_networks_of_one_site_shut_nobody_out() {
        for base in ["2001:db8:7::", "203.0.113.0"] {
            let base: IpAddr = base.parse().unwrap();
            let stranger = |no: u64| match base {
                IpAddr::V6(v6) => {
                    IpAddr::from((v6.to_bits() + (u128::from(no) << 64)).to_be_bytes())
                }
                IpAddr::V4(v4) => IpAddr::from((v4.to_bits() + no as u32 % 256).to_be_bytes()),
            };
            let mut places = FairPlaces::new(256);
            let strangers: Vec<_> = (0..256).map(|_| fresh(0)).collect();
            for (no, moves) in (0..).zip(&strangers) {
                places.enter(PlaceHolder::client(stranger(no)), moves.clone(), no);
            }
            for secs in 1..100 {
                for moves in &strangers {
                    moves.moved(2000, Duration::from_secs(secs));
                }
                let honest = PlaceHolder::client(IpAddr::from([192, 0, secs as u8, 2]));
                let entered = places.enter(honest, asked(secs), 1000).unwrap();
                assert!(entered.lost.unwrap().1 < 256, "{base}: a stranger goes");
            }
        }
    }

    #[test]
    fn the_slowest_goes_when_none_is_free_whoever_it_is_and_who_waits_for_the_origin_is_not_slow() {
        let mut places = FairPlaces::new(10);
        let trickle: Vec<_> = (0..9).map(|_| fresh(0)).collect();
        for (no, moves) in trickle.iter().enumerate() {
            places.enter(client(no as u8), moves.clone(), no).unwrap();
        }
        let at = |ms| Duration::from_millis(ms);
        let honest = asked(0);
        places.enter(client(100), honest.clone(), 100).unwrap();
        for second in 1..=20_u64 {
            for moves in &trickle {
                moves.moved(34, at(second * 1000));
            }
        }
        for no in 101..110 {
            let entered = places
                .enter(client(no), asked(20), usize::from(no))
                .unwrap();
            assert!(
                entered.lost.unwrap().1 < 9,
                "who sends 34 bytes a second goes"
            );
        }
        assert_eq!(places.count(client(100)), 1, "it waits for the origin");
        assert!(
            places.enter(client(120), asked(21), 120).is_none(),
            "nobody is slow"
        );
        let many = PlaceHolder::many(IpAddr::from([127, 0, 0, 1]));
        let mut places = FairPlaces::new(1);
        places.enter(many, fresh(0), 0).unwrap();
        assert!(places.enter(client(1), asked(2), 1).unwrap().lost.is_some());
    }

    #[derive(Clone, Debug)]
    enum Step {
        Enter(u8),
        Leave(usize),
        Move(usize, u16),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..6_u8).prop_map(Step::Enter),
            1 => any::<usize>().prop_map(Step::Leave),
            1 => (any::<usize>(), any::<u16>()).prop_map(|(at, bytes)| Step::Move(at, bytes)),
        ]
    }

    proptest! {
        #[test]
        fn the_books_hold_and_only_who_has_most_loses_its_slowest(
            max in 1..30_usize,
            steps in prop::collection::vec(step(), 0..200),
        ) {
            // The last of the holders stands for many.
            let holder = |no: u8| if no == 5 { PlaceHolder::many(IpAddr::from([10, 0, 0, 1])) } else { client(no) };
            let mut places = FairPlaces::new(max);
            let mut held: Vec<(PlaceNo, Arc<PlaceMoves>, usize)> = Vec::new();
            for (at, step) in steps.into_iter().enumerate() {
                let now = Duration::from_secs(at as u64);
                match step {
                    Step::Enter(no) => {
                        let before = held.len();
                        let progress = Arc::new(PlaceMoves::new(now));
                        let Some(entered) = places.enter(holder(no), progress.clone(), at) else {
                            prop_assert_eq!(before, max);
                            continue;
                        };
                        held.push((entered.place, progress, at));
                        let count = |holder| held.iter().filter(|(place, ..)| place.holder == holder).count();
                        if let Some((loser, end)) = entered.lost {
                            prop_assert!(before + 1 > max - max.div_ceil(5));
                            prop_assert!(end != at);
                            let is_of_most = matches!(loser, PlaceHolder::Client(_)) && count(loser) >= 2;
                            prop_assert!(is_of_most || before == max);
                            prop_assert!(!is_of_most || (0..5).all(|no| count(holder(no)) <= count(loser)));
                            let gone = held.iter().position(|(.., its)| *its == end).unwrap();
                            let slowest = held.iter().filter(|(place, _, its)| {
                                (place.holder == loser || !is_of_most) && *its != at
                            });
                            let slowest = slowest.map(|(_, progress, _)| progress.moved_ms()).min();
                            prop_assert_eq!(Some(held[gone].1.moved_ms()), slowest);
                            held.remove(gone);
                        } else {
                            let most = (0..5).map(|no| count(holder(no))).max().unwrap_or(0);
                            prop_assert!(before < max - max.div_ceil(5) || most < 2);
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
                let most = (0..6).map(|no| places.count(holder(no))).max().unwrap_or(0);
                prop_assert_eq!(places.most().map_or(0, |(_, count)| count), most);
            }
        }
    }
}
