//! The signature of a push: HMAC over the bytes that came, by the secret that the hub was given
//! (UPSTREAM U-6); not who gets a secret.

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};

// Decides: Which signature of a push is good?
/// True if the value of `X-Hub-Signature`, `method=hex`, is that of the body. Its parts are compared
/// in a time that does not depend on them.
pub(super) fn is_signed(signature: &str, secret: &[u8], body: &[u8]) -> bool {
    let Some((method, code)) = signature.trim().split_once('=') else {
        return false;
    };
    let Ok(code) = hex::decode(code.trim()) else {
        return false;
    };
    match method.trim().to_ascii_lowercase().as_str() {
        "sha1" => is_code::<Hmac<Sha1>>(secret, body, &code),
        "sha256" => is_code::<Hmac<Sha256>>(secret, body, &code),
        "sha384" => is_code::<Hmac<Sha384>>(secret, body, &code),
        "sha512" => is_code::<Hmac<Sha512>>(secret, body, &code),
        _ => false,
    }
}

fn is_code<M: Mac + KeyInit>(secret: &[u8], body: &[u8], code: &[u8]) -> bool {
    let mut mac = <M as KeyInit>::new_from_slice(secret).expect("HMAC takes keys of every length");
    mac.update(body);
    mac.verify_slice(code).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_that_another_tool_computed_is_good_and_a_changed_one_is_not_u_6() {
        let mut count = 0;
        for case in testkit::data::section("hub_signature") {
            let bytes = |key: &str| hex::decode(case[key].as_str().unwrap()).unwrap();
            let (secret, body) = (bytes("secret_hex"), bytes("body_hex"));
            for value in case["x_hub_signature"].as_object().unwrap().values() {
                let value = value.as_str().unwrap();
                count += 1;
                assert!(is_signed(value, &secret, &body), "{}", case["name"]);
                let mut longer = body.clone();
                longer.push(b' ');
                assert!(!is_signed(value, &secret, &longer));
                assert!(!is_signed(value, b"other", &body));
                assert!(!is_signed(&value[..value.len() - 2], &secret, &body));
            }
        }
        assert!(count >= 4, "{count}");
        for odd in ["", "sha1", "sha1=", "md5=00", "sha256=zz", "=00"] {
            assert!(!is_signed(odd, b"hush", b"x"), "{odd}");
        }
    }
}
