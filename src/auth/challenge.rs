//! `WWW-Authenticate`: the schemes by which a client may make itself known.

/// The protection space that is named to clients.
const REALM: &str = "everfeed";

/// A challenge for each scheme (RFC 7617, RFC 6750, LEGACY U-4), Basic first: there are clients
/// that look at the first one only. Basic is left out where it would not be taken.
pub fn challenges(takes_basic: bool) -> impl Iterator<Item = String> {
    let basic = takes_basic.then(|| format!("Basic realm=\"{REALM}\", charset=\"UTF-8\""));
    let others = [
        format!("Bearer realm=\"{REALM}\""),
        format!("WSSE realm=\"{REALM}\", profile=\"UsernameToken\""),
    ];
    basic.into_iter().chain(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheme_is_offered_and_basic_only_where_it_is_taken() {
        // U-2, U-4.
        let all: Vec<String> = challenges(true).collect();
        assert_eq!(
            all,
            [
                "Basic realm=\"everfeed\", charset=\"UTF-8\"",
                "Bearer realm=\"everfeed\"",
                "WSSE realm=\"everfeed\", profile=\"UsernameToken\""
            ]
        );
        assert_eq!(challenges(false).collect::<Vec<_>>(), all[1..]);
    }
}
