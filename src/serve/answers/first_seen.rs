//! The dates of answers that are made of many things (lists, descriptions), none of which has a
//! date for all of it: since when the server has seen each as it is. Not the validators of pages,
//! which follow the head of their feed.

use crate::feed::stamp::Stamp;
use moka::future::Cache;
use sha2::{Digest as _, Sha256};

/// Answers whose dates are remembered. One that is forgotten is taken for new: it is sent once
/// more.
const ANSWERS_MAX: u64 = 4_000;

/// The answers that were seen, and since when each is as it is.
#[derive(Clone, Debug)]
pub struct FirstSeen {
    answers: Cache<[u8; 32], ([u8; 32], Stamp)>,
}

impl Default for FirstSeen {
    fn default() -> Self {
        Self {
            answers: Cache::new(ANSWERS_MAX),
        }
    }
}

impl FirstSeen {
    /// The time since which what has this name has had this body: `now`, if it is seen for the
    /// first time.
    pub(crate) async fn of(&self, name: &str, body: &[u8], now: Stamp) -> Stamp {
        let (name, body): ([u8; 32], [u8; 32]) =
            (Sha256::digest(name).into(), Sha256::digest(body).into());
        match self.answers.get(&name).await {
            Some((known, since)) if known == body => since,
            _ => {
                self.answers.insert(name, (body, now)).await;
                now
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_is_as_old_as_its_last_change() {
        let seen = FirstSeen::default();
        let check = async |name, body: &str, now, since| {
            let found = seen.of(name, body.as_bytes(), Stamp::from_secs(now)).await;
            assert_eq!(found, Stamp::from_secs(since), "{name} {body} at {now}");
        };
        check("a", "1", 5, 5).await;
        check("b", "1", 6, 6).await;
        check("a", "1", 7, 5).await;
        check("a", "2", 8, 8).await;
        check("a", "1", 9, 9).await;
    }
}
