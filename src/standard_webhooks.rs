//! Secrets and signatures of Standard Webhooks; not what is sent.

use crate::secret::Secret;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Bytes of a key: fewer are soon guessed, and more are no safer (Standard Webhooks).
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// Mark of a secret (Standard Webhooks).
const SECRET_MARK: &str = "whsec_";
/// The remedy for a secret that has no key.
pub const SECRET_WANTED: &str = "give `whsec_` and the base64 of 24 to 64 random bytes, for instance the output of: echo whsec_$(openssl rand -base64 32)";

/// The key of a secret; `None` for a text that has none.
pub fn key(secret: &Secret) -> Option<Vec<u8>> {
    let key = STANDARD
        .decode(secret.reveal().strip_prefix(SECRET_MARK)?)
        .ok()?;
    KEY_BYTES.contains(&key.len()).then_some(key)
}

/// The value of `webhook-signature` for a message with this id that is sent at this time, Unix
/// seconds.
pub fn signature(key: &[u8], id: &str, sent_at: u64, body: &[u8]) -> String {
    let mut mac =
        <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("HMAC takes keys of every length");
    mac.update(format!("{id}.{sent_at}.").as_bytes());
    mac.update(body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    // The example of the Standard Webhooks libraries.
    #[test]
    fn the_signature_is_the_one_of_standard_webhooks() {
        let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let made = signature(
            &key(&secret).unwrap(),
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            b"{\"test\": 2432232314}",
        );
        assert_eq!(made, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
