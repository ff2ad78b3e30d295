//! Deliberate mistakes, of which one at a time is made in a world: each must be found. Here are those
//! of consumers; those of everfeed are behind its feature `mistakes`.

use std::cell::Cell;

thread_local! {
    static CONSUMER: Cell<Option<ConsumerMistake>> = const { Cell::new(None) };
}

/// A mistake of a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConsumerMistake {
    /// It keeps what it did not meet when it read anew.
    NoSweep,
    /// It keeps the items of another part.
    ResetUnheard,
    /// It saves its cursor before the items of the page.
    CursorFirst,
    /// It confirms a push whose pull failed.
    ConfirmsUnread,
}

#[cfg(feature = "mistakes")]
impl ConsumerMistake {
    pub(crate) const ALL: [Self; 4] = [
        Self::NoSweep,
        Self::ResetUnheard,
        Self::CursorFirst,
        Self::ConfirmsUnread,
    ];
}

/// True where consumers on this thread make the mistake.
pub(crate) fn made(mistake: ConsumerMistake) -> bool {
    CONSUMER.get() == Some(mistake)
}

/// Has consumers on this thread make a mistake from now on.
#[cfg(feature = "mistakes")]
pub(crate) fn make(mistake: Option<ConsumerMistake>) {
    CONSUMER.set(mistake);
}

#[cfg(feature = "mistakes")]
mod found {
    use super::{ConsumerMistake, make};
    use crate::{plan::Plan, play::play};
    use everfeed::mistakes::{self, Mistake};
    use std::{
        env,
        sync::{
            Mutex,
            atomic::{AtomicUsize, Ordering},
        },
        thread,
    };

    /// Worlds within which each mistake is found.
    const WORLDS_MAX: u64 = 300;

    #[derive(Clone, Copy, Debug)]
    enum Any {
        Everfeed(Mistake),
        Consumer(ConsumerMistake),
    }

    /// Worlds that are played until one finds a mistake, and what it says.
    fn worlds_until_found(mistake: Any) -> Option<(u64, String)> {
        match mistake {
            Any::Everfeed(mistake) => mistakes::make(Some(mistake)),
            Any::Consumer(mistake) => make(Some(mistake)),
        }
        let found = (0..WORLDS_MAX).find_map(|seed| {
            let outcome = play(&Plan::of(seed));
            Some((seed + 1, outcome.fault?))
        });
        mistakes::make(None);
        make(None);
        found
    }

    #[test]
    fn each_mistake_is_found() {
        let wanted = env::var("EVERFEED_MISTAKE").unwrap_or_default();
        let of_everfeed = Mistake::ALL.into_iter().map(Any::Everfeed);
        let of_consumers = ConsumerMistake::ALL.into_iter().map(Any::Consumer);
        let all: Vec<Any> = of_everfeed
            .chain(of_consumers)
            .filter(|mistake| format!("{mistake:?}").contains(&wanted))
            .collect();
        let (next, table) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let search = || {
            while let Some(mistake) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                let found = worlds_until_found(*mistake);
                let (worlds, fault) = match &found {
                    Some((worlds, fault)) => (worlds.to_string(), fault.as_str()),
                    None => ("none".to_owned(), ""),
                };
                let fault: String = fault.chars().take(90).collect();
                println!("{:<36} {worlds:>5}  {fault}", format!("{mistake:?}"));
                table.lock().unwrap().push((*mistake, found));
            }
        };
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(search);
            }
        });
        let table = table.into_inner().unwrap();
        let within = |worlds: u64| {
            let found = table.iter().filter_map(|(_, found)| found.as_ref());
            found.filter(|(needed, _)| *needed <= worlds).count()
        };
        println!(
            "of {} mistakes {} are found in 10 worlds, {} in 100, {} in {WORLDS_MAX}",
            table.len(),
            within(10),
            within(100),
            within(WORLDS_MAX)
        );
        assert_eq!(within(WORLDS_MAX), table.len());
    }
}
