//! The signature of a push: HMAC over the bytes sent, in the hash that the subscription chose; not
//! who gets one.

use crate::store::subscriptions::Algo;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};

/// The value of `X-Hub-Signature`: `method=hex` over exactly the bytes of the body (HUB-23, W-18).
pub(super) fn signature(algo: Algo, secret: &[u8], body: &[u8]) -> String {
    let hex = match algo {
        Algo::Sha1 => hmac_hex::<Hmac<Sha1>>(secret, body),
        Algo::Sha256 => hmac_hex::<Hmac<Sha256>>(secret, body),
        Algo::Sha384 => hmac_hex::<Hmac<Sha384>>(secret, body),
        Algo::Sha512 => hmac_hex::<Hmac<Sha512>>(secret, body),
    };
    format!("{}={hex}", name(algo))
}

fn hmac_hex<M: Mac + KeyInit>(secret: &[u8], body: &[u8]) -> String {
    let mut mac = <M as KeyInit>::new_from_slice(secret).expect("HMAC takes keys of every length");
    mac.update(body);
    hex::encode(mac.finalize().into_bytes())
}

/// The method as written before the `=`.
pub(super) const fn name(algo: Algo) -> &'static str {
    match algo {
        Algo::Sha1 => "sha1",
        Algo::Sha256 => "sha256",
        Algo::Sha384 => "sha384",
        Algo::Sha512 => "sha512",
    }
}

/// Reads a method; `None` for one that we do not compute.
pub(super) fn parse(text: &str) -> Option<Algo> {
    let known = [Algo::Sha1, Algo::Sha256, Algo::Sha384, Algo::Sha512];
    known
        .into_iter()
        .find(|algo| name(*algo).eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::subscriptions::Dialect;

    // HUB-23, W-18.
    #[test]
    fn every_signature_is_the_one_that_another_tool_computed() {
        for case in testkit::data::section("hub_signature") {
            let bytes = |key: &str| hex::decode(case[key].as_str().unwrap()).unwrap();
            for (method, expect) in case["x_hub_signature"].as_object().unwrap() {
                let algo = parse(method).unwrap();
                let made = signature(algo, &bytes("secret_hex"), &bytes("body_hex"));
                assert_eq!(made, expect.as_str().unwrap(), "{}", case["name"]);
            }
        }
    }

    #[test]
    fn a_method_that_we_do_not_compute_is_none() {
        assert_eq!(parse("SHA512"), Some(Algo::Sha512));
        assert_eq!(parse("md5"), None);
        assert_eq!(Algo::usual(Dialect::Legacy), Algo::Sha1);
        assert_eq!(Algo::usual(Dialect::WebSub), Algo::Sha256);
    }
}
