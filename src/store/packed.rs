//! Poll states as they are stored, for whoever keeps many of them in memory: a tenth of the size;
//! not where they are kept.

use super::stored::{decode, encode};
use crate::feed::schedule::PollState;

/// A poll state in few bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedPollState(Box<[u8]>);

impl PackedPollState {
    /// Packs a state.
    pub fn of(state: &PollState) -> Self {
        let bytes = encode(state).expect("a poll state can always be written");
        Self(bytes.into())
    }

    /// The state.
    pub fn unpacked(&self) -> PollState {
        decode("a packed poll state", &self.0).expect("packed by this process")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::{
        schedule::{FaultKind, FaultNote, Policy},
        stamp::Stamp,
    };

    #[test]
    fn a_state_comes_out_as_it_went_in_and_is_small_meanwhile() {
        let mut state = PollState::unpolled("https://blog.example/feed.xml");
        state.timetable.next_at = Stamp::from_secs(1_800_000_000);
        state.timetable.polled_at = Some(Stamp::from_secs(1_799_996_400));
        state.document.remark = Some("odd".into());
        let packed = PackedPollState::of(&state);
        assert_eq!(packed.unpacked(), state);
        assert!(packed.0.len() < 100, "{}", packed.0.len());
    }

    #[test]
    fn the_question_of_a_changed_url_and_every_fault_about_addresses_are_kept() {
        let feed = || "blog".to_owned();
        let faults = [
            FaultKind::Unrecognised {
                feed: feed(),
                from: "a".into(),
                to: "b".into(),
                title: String::new(),
            },
            FaultKind::WebPage {
                reason: "a page".into(),
                feeds: vec!["x (y)".into()],
                was_feed: true,
            },
            FaultKind::LeadsBack,
            FaultKind::SaysMoved { to: "b".into() },
            FaultKind::BotWall {
                vendor: "Anubis".into(),
                status: 202,
            },
        ];
        for kind in faults {
            let mut state = PollState::unpolled("https://a.example/");
            state.health.fault = Some(FaultNote {
                kind,
                since: Stamp::from_secs(1),
            });
            let mut moved = state.clone().resumed(
                "https://b.example/",
                &Policy::default(),
                Stamp::from_secs(2),
            );
            moved.health.fault = state.health.fault;
            for state in std::iter::once(moved.clone()).chain(moved.consented()) {
                assert_eq!(PackedPollState::of(&state).unpacked(), state);
            }
        }
    }
}
