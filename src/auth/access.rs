//! `access` of a feed, a site or a group: which principals may read it; the one decision on that.

use super::{
    jid::{JID_WANTED, XMPP, all_of_host, is_jid_name},
    principal::Principal,
};
use crate::setting::RefusedSetting;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::collections::BTreeSet;

/// `access`: `"public"`, `"private"` (every user) or a list of the users, and of the addresses of
/// XMPP, that may read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AccessSettings {
    /// Everybody may read it.
    #[default]
    Public,
    /// Every user may read it.
    Users,
    /// These users may read it, and addresses of XMPP that stand behind `xmpp:`.
    Named(BTreeSet<String>),
}

/// The values that would do for `access`.
pub const ACCESS_WANTED: &str = "give \"public\", \"private\" (every user), or a list of users such as [\"alice\", \"xmpp:*@example.org\"]";

// Decides: May a principal read a feed?
/// True when a principal, `None` for nobody known, may read what has these settings.
pub fn may_read(principal: Option<&Principal>, access: &AccessSettings) -> bool {
    match (access, principal) {
        (AccessSettings::Public, _) => true,
        (AccessSettings::Users, Some(principal)) => principal.name().is_some(),
        (AccessSettings::Named(names), Some(principal)) => {
            let is_named = principal.name().is_some_and(|name| names.contains(name));
            let jid = principal.jid().map(|jid| format!("{XMPP}{jid}"));
            is_named || jid.is_some_and(|jid| holds(names, &jid))
        }
        (AccessSettings::Users | AccessSettings::Named(_), None) => false,
    }
}

/// True where a name is among these, or all addresses of its host are.
fn holds(names: &BTreeSet<String>, name: &str) -> bool {
    names.contains(name) || all_of_host(name).is_some_and(|all| names.contains(&all))
}

impl AccessSettings {
    /// True unless everybody may read.
    pub fn is_private(&self) -> bool {
        *self != Self::Public
    }

    /// True where somebody who becomes a user later, or has an address then, may read.
    pub fn admits_later_users(&self) -> bool {
        match self {
            Self::Public => false,
            Self::Users => true,
            Self::Named(names) => names.iter().any(|name| name.contains('*')),
        }
    }

    /// True when whoever may read what has these settings may read what has the other ones.
    pub fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Public) | (Self::Users, Self::Users) => true,
            (Self::Named(these), Self::Users) => !these.iter().any(|name| is_jid_name(name)),
            (Self::Named(these), Self::Named(those)) => these.iter().all(|name| holds(those, name)),
            (Self::Public, Self::Users | Self::Named(_)) | (Self::Users, Self::Named(_)) => false,
        }
    }

    /// True when somebody may read what has these settings as well as what has the other ones.
    pub fn may_share_a_reader(&self, other: &Self) -> bool {
        let (Self::Named(these), Self::Named(those)) = (self, other) else {
            return true;
        };
        let has_jid = |names: &BTreeSet<String>| names.iter().any(|name| is_jid_name(name));
        let has_user = |names: &BTreeSet<String>| names.iter().any(|name| !is_jid_name(name));
        // A user may have any of the addresses.
        if has_jid(these) && has_user(those) {
            return true;
        }
        if has_user(these) && has_jid(those) {
            return true;
        }
        let is_within = these.iter().any(|name| holds(those, name));
        is_within || those.iter().any(|name| holds(these, name))
    }

    /// The users that are named.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let named = match self {
            Self::Named(names) => Some(names),
            Self::Public | Self::Users => None,
        };
        let names = named.into_iter().flatten().map(String::as_str);
        names.filter(|name| !is_jid_name(name))
    }

    /// Values that cannot be meant.
    pub fn problems(&self) -> Vec<RefusedSetting> {
        let refuse = |found: String| RefusedSetting::new("access", found, ACCESS_WANTED);
        let refuse_jid = |found: String| {
            let wanted = format!("{JID_WANTED}, or all of a host: xmpp:*@example.org");
            RefusedSetting::new("access", found, wanted)
        };
        match self {
            Self::Named(names) if names.is_empty() => {
                vec![refuse(
                    "an empty list: no user could read the feed".to_owned(),
                )]
            }
            Self::Named(names) => {
                let is_good = |name: &str| is_jid_name(name) || super::user::is_user_name(name);
                let bad = names.iter().filter(|name| !is_good(name));
                bad.map(|name| match name.strip_prefix(XMPP) {
                    Some(_) => refuse_jid(format!("\"{name}\"")),
                    None => refuse(format!("\"{name}\", which no user can be called")),
                })
                .collect()
            }
            Self::Public | Self::Users => Vec::new(),
        }
    }
}

const PUBLIC: &str = "public";
const PRIVATE: &str = "private";

impl Serialize for AccessSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Public => serializer.serialize_str(PUBLIC),
            Self::Users => serializer.serialize_str(PRIVATE),
            Self::Named(names) => names.serialize(serializer),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenAccess {
    Word(String),
    Names(BTreeSet<String>),
}

impl<'de> Deserialize<'de> for AccessSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match WrittenAccess::deserialize(deserializer)
            .map_err(|_| D::Error::custom(ACCESS_WANTED))?
        {
            WrittenAccess::Word(word) if word == PUBLIC => Ok(Self::Public),
            WrittenAccess::Word(word) if word == PRIVATE => Ok(Self::Users),
            WrittenAccess::Word(_) => Err(D::Error::custom(ACCESS_WANTED)),
            WrittenAccess::Names(names) => Ok(Self::Named(names)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::user::UserNo;

    #[derive(Debug, Serialize, Deserialize, PartialEq)]
    struct Table {
        access: AccessSettings,
    }

    fn read(value: &str) -> Result<AccessSettings, toml::de::Error> {
        toml::from_str::<Table>(&format!("access = {value}")).map(|table| table.access)
    }

    #[test]
    fn a_setting_is_a_word_or_a_list_and_is_written_as_it_was_read() {
        let named = AccessSettings::Named(["alice".to_owned(), "bob".to_owned()].into());
        for (text, expect) in [
            ("\"public\"", AccessSettings::Public),
            ("\"private\"", AccessSettings::Users),
            ("[\"bob\", \"alice\"]", named),
        ] {
            let access = read(text).unwrap();
            assert_eq!(access, expect);
            let written = toml::to_string(&Table { access }).unwrap();
            assert_eq!(toml::from_str::<Table>(&written).unwrap().access, expect);
        }
        for bad in ["\"secret\"", "true", "7", "[1]"] {
            assert!(
                read(bad)
                    .unwrap_err()
                    .to_string()
                    .contains("give \"public\""),
                "{bad}"
            );
        }
        assert_eq!(read("[]").unwrap().problems().len(), 1);
        assert_eq!(read("[\"a b\"]").unwrap().problems().len(), 1);
        for bad in ["xmpp:Me@X", "xmpp:x.example", "xmpp:*"] {
            let problems = read(&format!("[\"{bad}\"]")).unwrap().problems();
            let told = problems[0].to_string();
            assert!(
                told.contains(bad) && told.contains("in lower case") && !told.contains("***"),
                "{told}"
            );
        }
        for good in ["[\"a\"]", "[\"xmpp:me@x\", \"xmpp:*@y\"]"] {
            assert!(read(good).unwrap().problems().is_empty(), "{good}");
        }
    }

    #[test]
    fn access_is_within_another_when_it_lets_nobody_else_in() {
        let named = |names: &[&str]| {
            AccessSettings::Named(names.iter().map(|&name| name.to_owned()).collect())
        };
        let order = [
            named(&["alice"]),
            named(&["alice", "bob"]),
            AccessSettings::Users,
            AccessSettings::Public,
        ];
        for (at, one) in order.iter().enumerate() {
            for (other_at, other) in order.iter().enumerate() {
                assert_eq!(one.is_within(other), at <= other_at, "{one:?} {other:?}");
            }
        }
        assert!(!named(&["carol"]).is_within(&named(&["alice"])));
        let (one, all) = (named(&["xmpp:me@x"]), named(&["alice", "xmpp:*@x"]));
        assert!(one.is_within(&all) && !all.is_within(&one));
        assert!(!one.is_within(&AccessSettings::Users) && one.is_within(&AccessSettings::Public));
        assert!(one.may_share_a_reader(&all) && one.may_share_a_reader(&named(&["bob"])));
        assert!(!one.may_share_a_reader(&named(&["xmpp:me@y", "xmpp:*@z"])));
    }

    #[test]
    fn only_those_may_read_who_are_meant() {
        // SF-131.
        let alice = Principal::new(UserNo(1), "alice", None);
        let named = |name: &str| AccessSettings::Named([name.to_owned()].into());
        for (access, nobody, known) in [
            (AccessSettings::Public, true, true),
            (AccessSettings::Users, false, true),
            (named("alice"), false, true),
            (named("bob"), false, false),
        ] {
            assert_eq!(
                (may_read(None, &access), may_read(Some(&alice), &access)),
                (nobody, known),
                "{access:?}"
            );
        }
    }

    #[test]
    fn an_address_of_xmpp_reads_what_names_it_its_host_or_its_user() {
        // SF-131, XMPP-56.
        let accounts = crate::auth::testing::accounts(&[]);
        let stranger = accounts.by_jid("me@x");
        let bob = accounts.by_jid("bob@jabber.example");
        let named = |names: &[&str]| {
            AccessSettings::Named(names.iter().map(|&name| name.to_owned()).collect())
        };
        for (access, is_stranger, is_bob) in [
            (AccessSettings::Public, true, true),
            (AccessSettings::Users, false, true),
            (named(&["bob"]), false, true),
            (named(&["xmpp:me@x"]), true, false),
            (named(&["xmpp:*@x"]), true, false),
            (named(&["xmpp:*@jabber.example"]), false, true),
            (named(&["me@x", "xmpp:*@y"]), false, false),
        ] {
            let reads = (
                may_read(Some(&stranger), &access),
                may_read(Some(&bob), &access),
            );
            assert_eq!(reads, (is_stranger, is_bob), "{access:?}");
        }
        assert_eq!((stranger.id(), bob.name()), (None, Some("bob")));
    }
}
