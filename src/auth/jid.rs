//! Addresses of XMPP as users and access settings name them; not how a server vouches for them.

/// The beginning of a name in `access` that is an address of XMPP.
pub const XMPP: &str = "xmpp:";

/// The addresses that may be given, for people.
pub const JID_WANTED: &str =
    "an address of XMPP has a name and a host in lower case, without a resource: me@example.org";

/// The longest address, bytes: half of what RFC 7622 allows for its parts.
const JID_BYTES_MAX: usize = 1023;

/// True for a bare address in the form that servers write on stanzas.
pub fn is_bare_jid(text: &str) -> bool {
    let Some((name, host)) = text.split_once('@') else {
        return false;
    };
    let is_plain = |c: char| {
        !c.is_whitespace() && !c.is_control() && !c.is_uppercase() && !"\"&'/:<>@".contains(c)
    };
    let is_host = |c: char| is_plain(c) && c != '*';
    text.len() <= JID_BYTES_MAX
        && !name.is_empty()
        && !host.is_empty()
        && name != "*"
        && name.chars().all(is_plain)
        && host.chars().all(is_host)
}

/// True for a name in `access` that is one address, or all addresses of a host.
pub(super) fn is_jid_name(name: &str) -> bool {
    let Some(jid) = name.strip_prefix(XMPP) else {
        return false;
    };
    match jid.strip_prefix("*@") {
        Some(host) => is_bare_jid(&format!("x@{host}")),
        None => is_bare_jid(jid),
    }
}

/// The name that stands in `access` for all addresses of the host of one; `None` for a name that is
/// no address.
pub(super) fn all_of_host(name: &str) -> Option<String> {
    let (_, host) = name.strip_prefix(XMPP)?.split_once('@')?;
    Some(format!("{XMPP}*@{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_bare_and_in_lower_case() {
        for good in ["me@example.org", "jürgen@münchen.example", "a.b+c@x"] {
            assert!(is_bare_jid(good), "{good}");
        }
        for bad in [
            "",
            "me",
            "@x",
            "me@",
            "*@x",
            "me@*",
            "Me@x",
            "me@X",
            "me@x/phone",
            "a b@x",
            "a@b@c",
            "a\n@x",
            "<a@x",
        ] {
            assert!(!is_bare_jid(bad), "{bad}");
        }
        assert!(!is_bare_jid(&format!("{}@x", "a".repeat(JID_BYTES_MAX))));
    }

    #[test]
    fn a_name_is_one_address_or_all_of_a_host() {
        for good in ["xmpp:me@example.org", "xmpp:*@example.org"] {
            assert!(is_jid_name(good), "{good}");
            assert_eq!(all_of_host(good).unwrap(), "xmpp:*@example.org");
        }
        for bad in [
            "me@example.org",
            "xmpp:*",
            "xmpp:*@*",
            "xmpp:",
            "xmpp:example.org",
            "xmpp:**@x/y",
        ] {
            assert!(!is_jid_name(bad), "{bad}");
        }
    }
}
