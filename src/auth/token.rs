//! Tokens: 128 random bits that make a user known; made, and found again by their hash. Not whose
//! they are.

use super::password::generated;
use crate::secret::Secret;
use sha2::{Digest as _, Sha256};

/// Characters of a token.
const TOKEN_CHARS: usize = 22;

/// A new token.
pub fn new_token() -> Secret {
    generated()
}

/// The hash by which a token is kept and found. To find one by it tells, by the time that it takes,
/// nothing of any token.
pub fn token_hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// The parts of a text that could be tokens.
pub fn tokens_in(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_of_token(c))
        .filter(|run| run.len() == TOKEN_CHARS)
}

fn is_of_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_its_shape_and_its_own_hash() {
        let (one, other) = (new_token(), new_token());
        assert_ne!(token_hash(one.reveal()), token_hash(other.reveal()));
        let text = format!("/s/{}/feeds?x={}", one.reveal(), other.reveal());
        assert_eq!(
            tokens_in(&text).collect::<Vec<_>>(),
            [one.reveal(), other.reveal()]
        );
        for bad in [
            "",
            "abc",
            "AAAAAAAAAAAAAAAAAAAAA/",
            "AAAAAAAAAAAAAAAAAAAAAAA",
        ] {
            assert_eq!(tokens_in(bad).next(), None, "{bad}");
        }
    }
}
