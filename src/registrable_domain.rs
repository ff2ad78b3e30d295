//! The domain that one owner registers, by the public suffix list: all names below it are one party
//! wherever parties are limited; not what is limited.

use crate::client_net::client_net;
use url::Host;

// Decides: Which host names belong to one owner?
/// The domain of a host name that its owner registered: the public suffix and one label before it,
/// in lower case and as it is on the wire (`xn--`). The private section of the list counts, so that
/// two blogs below `github.io` have two owners.
///
/// A name without one is its own: a public suffix itself, a name of one label, and an IP address,
/// of version 6 without brackets and by its network.
pub fn registrable_domain(host: &str) -> String {
    let host = host.trim_end_matches('.');
    let parsed = Host::parse(host).or_else(|_| Host::parse(&format!("[{host}]")));
    match parsed {
        Ok(Host::Domain(name)) => registered(&name).unwrap_or(&name).to_owned(),
        Ok(Host::Ipv4(address)) => client_net(address.into()).to_string(),
        Ok(Host::Ipv6(address)) => client_net(address.into()).to_string(),
        // Something that no resolver knows either.
        Err(_) => host.to_lowercase(),
    }
}

/// The same of a name in ASCII; `None` for one without it.
fn registered(name: &str) -> Option<&str> {
    let domain = psl::domain(name.as_bytes())?;
    let domain = std::str::from_utf8(domain.as_bytes()).ok()?;
    (!domain.starts_with('.')).then_some(domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_below_a_registered_domain_are_one() {
        let check =
            |host: &str, expect: &str| assert_eq!(registrable_domain(host), expect, "{host}");
        check("example.com", "example.com");
        check("a.b.c.example.com", "example.com");
        check("A.Example.COM.", "example.com");
        check("x.example.co.uk", "example.co.uk");
        check("chat.пример.рф", "xn--e1afmkfd.xn--p1ai");
        check("chat.xn--e1afmkfd.xn--p1ai", "xn--e1afmkfd.xn--p1ai");
        check("a.例え.テスト", "xn--r8jz45g.xn--zckzah");
        check("x.公司.cn", "x.xn--55qx5d.cn");
        check("www.ck", "www.ck");
        check("a.b.other.ck", "b.other.ck");
    }

    #[test]
    fn names_below_a_private_suffix_have_owners_of_their_own() {
        let check =
            |host: &str, expect: &str| assert_eq!(registrable_domain(host), expect, "{host}");
        check("www.one.github.io", "one.github.io");
        check("two.github.io", "two.github.io");
        check("one.blogspot.com", "one.blogspot.com");
        check("github.io", "github.io");
    }

    #[test]
    fn a_name_without_a_suffix_is_its_own() {
        let check =
            |host: &str, expect: &str| assert_eq!(registrable_domain(host), expect, "{host}");
        check("localhost", "localhost");
        check("xmpp", "xmpp");
        check("com", "com");
        check("co.uk", "co.uk");
        check("a.b.unknownsuffix", "b.unknownsuffix");
        check("u1.home.arpa", "u1.home.arpa");
        check("", "");
        check("..", "");
        check("a..b", "a..b");
        check("A_B.example.org", "example.org");
    }

    #[test]
    fn an_address_is_its_own_and_of_version_6_its_network() {
        let check =
            |host: &str, expect: &str| assert_eq!(registrable_domain(host), expect, "{host}");
        check("192.0.2.7", "192.0.2.7");
        check("127.1", "127.0.0.1");
        check("[2001:db8:1:2:3::4]", "2001:db8:1:2::");
        check("2001:db8:1:2:5::6", "2001:db8:1:2::");
        check("[::1]", "::1");
        check("[::ffff:192.0.2.7]", "192.0.2.7");
    }
}
