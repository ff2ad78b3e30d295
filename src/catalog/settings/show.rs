//! `show` of a feed: which part of it is shown to whom (SF-131); not who is who.

use crate::{
    auth::{AccessSettings, Principal, may_read},
    feed::{filter::Filter, part::WantedPart},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest as _, Sha256};

/// A rule of `show`: the part of a feed that some of its readers see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowRule {
    /// The readers that it is for, as in `access` of the feed.
    pub access: AccessSettings,
    /// The items that they see, as a filter is spelt in URLs; an empty text for all.
    #[serde(serialize_with = "write_filter", deserialize_with = "read_filter")]
    pub filter: Filter,
}

/// The part of a feed that these rules show a principal; `None` for nothing of it. Without rules
/// everything is shown.
pub(in crate::catalog) fn shown_by(
    rules: &[ShowRule],
    principal: Option<&Principal>,
) -> Option<Filter> {
    if rules.is_empty() {
        return Some(Filter::All);
    }
    rules
        .iter()
        .find(|rule| may_read(principal, &rule.access))
        .map(|rule| rule.filter.clone())
}

/// The parts that a feed with these readers needs for its rules: one for each filter that shows
/// less than everything.
pub(in crate::catalog) fn parts_of(access: &AccessSettings, rules: &[ShowRule]) -> Vec<WantedPart> {
    let mut parts: Vec<WantedPart> = Vec::new();
    for rule in rules {
        let is_known = |part: &WantedPart| part.filter == rule.filter;
        if rule.filter != Filter::All && !parts.iter().any(is_known) {
            parts.push(WantedPart {
                filter: rule.filter.clone(),
                audience: audience(access, rules, &rule.filter),
            });
        }
    }
    parts
}

/// Mark of those whom these rules show a filter. The first rule that fits counts, so that the ones
/// before belong to it. Where any user may read it, the filter belongs to it, too: a part that is
/// edited tells of what it held, and a user who comes later did not see that.
fn audience(access: &AccessSettings, rules: &[ShowRule], filter: &Filter) -> String {
    let last = rules.iter().rposition(|rule| rule.filter == *filter);
    let until = &rules[..last.map_or(0, |last| last + 1)];
    let until: Vec<_> = until
        .iter()
        .map(|rule| (&rule.access, rule.filter == *filter))
        .collect();
    let mut said = serde_json::to_string(&(access, until)).expect("names and words are JSON");
    let is_open = |rule: &ShowRule| rule.filter == *filter && rule.access.admits_later_users();
    if rules.iter().any(is_open) {
        said += &filter.to_string();
    }
    hex::encode(&Sha256::digest(said)[..16])
}

fn write_filter<S: Serializer>(filter: &Filter, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&filter.query())
}

fn read_filter<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Filter, D::Error> {
    Filter::spelt(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{TokenNo, UserNo};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Table {
        show: Vec<ShowRule>,
    }

    fn read(rules: &str) -> Result<Table, toml::de::Error> {
        toml::from_str(&format!("show = [{rules}]"))
    }

    #[test]
    fn the_first_rule_that_fits_counts_and_whom_none_fits_sees_nothing() {
        let rules = read(
            "{ access = [\"alice\"], filter = \"\" }, { access = [\"bob\", \"alice\"], filter = \"category=News&lang=de\" }",
        );
        let rules = rules.unwrap().show;
        let user = |name: &str| Principal::new(UserNo(1), name, Some(TokenNo(1)));
        let spelt = |principal: Option<Principal>| {
            shown_by(&rules, principal.as_ref()).map(|it| it.to_string())
        };
        assert_eq!(spelt(Some(user("alice"))).as_deref(), Some(""));
        assert_eq!(
            spelt(Some(user("bob"))).as_deref(),
            Some("category=news, lang=de")
        );
        assert_eq!(spelt(Some(user("carol"))), None);
        assert_eq!(spelt(None), None);
        assert_eq!(shown_by(&[], None), Some(Filter::All));
    }

    #[test]
    fn a_feed_has_a_part_for_each_filter_that_is_marked_by_its_readers() {
        let parts = |access: &AccessSettings, rules: &str| {
            let parts = parts_of(access, &read(rules).unwrap().show);
            parts
                .into_iter()
                .map(|part| (part.filter.to_string(), part.audience))
                .collect::<Vec<_>>()
        };
        let rule = |name: &str, filter: &str| {
            format!("{{ access = [\"{name}\"], filter = \"{filter}\" }}")
        };
        let three = [
            rule("a", ""),
            rule("b", "q=x"),
            rule("c", "q=y"),
            rule("d", "q=x"),
        ]
        .join(", ");
        let found = parts(&AccessSettings::Public, &three);
        assert_eq!(
            found
                .iter()
                .map(|(filter, _)| &**filter)
                .collect::<Vec<_>>(),
            ["q=x", "q=y"]
        );
        assert_ne!(found[0].1, found[1].1);
        assert_eq!(
            parts(&AccessSettings::Public, &three.replace("q=y", "q=z"))[1].1,
            found[1].1
        );
        for other in [
            three.replace("\"c\"", "\"e\""),
            three.replace("\"a\"", "\"e\""),
        ] {
            assert_ne!(
                parts(&AccessSettings::Public, &other)[1].1,
                found[1].1,
                "{other}"
            );
        }
        assert_ne!(parts(&AccessSettings::Users, &three)[1].1, found[1].1);
        // A user who comes later must not learn what an edited part held.
        for readers in ["\"private\"", "[\"xmpp:*@example.org\"]"] {
            let mark = |filter: &str| {
                let rule = format!("{{ access = {readers}, filter = \"{filter}\" }}");
                parts(&AccessSettings::Public, &rule)[0].1.clone()
            };
            assert_ne!(mark("q=x"), mark("q=y"), "{readers}");
        }
        assert_eq!(parts(&AccessSettings::Public, &rule("a", "")), []);
    }

    #[test]
    fn rules_are_written_as_they_were_read() {
        let table =
            read("{ access = \"public\", filter = \"q=%22a+b%22&has=enclosure\" }").unwrap();
        assert_eq!(
            toml::from_str::<Table>(&toml::to_string(&table).unwrap()).unwrap(),
            table
        );
    }

    #[test]
    fn a_rule_that_cannot_be_meant_is_refused_and_never_shows_everything() {
        for (rule, why) in [
            (
                "{ access = \"public\", filter = \"categories=x\" }",
                "`categories` is no parameter",
            ),
            (
                "{ access = \"public\", filter = \"news\" }",
                "`news` is no parameter",
            ),
            (
                "{ access = \"public\", filter = \"category=\" }",
                "given once, with a value",
            ),
            (
                "{ access = \"public\", filter = \"category=a&category=b\" }",
                "given once",
            ),
            (
                "{ access = \"public\", filter = \"deleted=yes\" }",
                "`deleted` must be no or only",
            ),
            ("{ access = \"friends\", filter = \"\" }", "a list of users"),
            ("{ access = \"public\" }", "filter"),
            ("{ filter = \"\" }", "a list of users"),
            (
                "{ access = \"public\", filter = \"\", users = [] }",
                "users",
            ),
        ] {
            let said = read(rule).unwrap_err().to_string();
            assert!(said.contains(why), "{rule}: {said}");
        }
    }
}
