//! Groups: feeds made of the items of other feeds, their members. Which members a group has, who
//! holds a post of it, and when two members hold the same post; not how that is kept.

use super::{
    inheritance,
    item::{Item, ItemId, KeyHash, plausible},
    moment::Moment,
    part::PartRecord,
    record::{FeedNo, FeedRecord},
    stamp::Stamp,
};
use everfeed_adapters::{Date, Entry, Link, Source, text::session::without_session};
use std::sync::Arc;

/// The members of a group, those that come and go included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupRecord {
    /// The members, in the order in which they came.
    pub members: Vec<GroupMember>,
    /// The part that it is, if it is one: a group of those items of one member that a filter shows.
    pub part: Option<PartRecord>,
}

/// A feed whose items are in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMember {
    /// The feed.
    pub feed: FeedNo,
    /// Its public URL here, at which the source of an item is found.
    pub url: String,
    /// The stage of its membership.
    pub stage: MemberStage,
}

/// The stage of a membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberStage {
    /// Its items are taken in, by date of publication; what changes meanwhile is taken in at once.
    Joining {
        /// Place of the last item taken in; `None` before the first.
        after: Option<PublicationPosition>,
    },
    /// All of its items are in the group, and what changes is changed there too.
    Joined,
    /// Its items are taken out.
    Leaving,
}

/// Place of an item in the order of publication: its date there, and its first T.
pub type PublicationPosition = (Moment, Stamp);

/// A post of a group: the members' items that it stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupPost {
    /// Its name among the posts of the group, if it has one (see [`post_key`]).
    pub key: Option<KeyHash>,
    /// The items by the numbers of their members; the first one is shown.
    pub holders: Vec<Holder>,
}

impl GroupPost {
    /// Takes a holder in. The member that is known longest comes first, so that what is shown does
    /// not depend on which member was polled first; of two items of one member the one that came
    /// first.
    pub fn admit(&mut self, holder: Holder) {
        if !self.holders.contains(&holder) {
            self.holders.push(holder);
        }
        self.holders.sort_by_key(|held| held.feed);
    }
}

/// An item of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Holder {
    /// The member.
    pub feed: FeedNo,
    /// Its item.
    pub item: ItemId,
}

impl GroupRecord {
    /// A part of a feed, whose items are to be looked at.
    pub fn of_part(feed: FeedNo, part: PartRecord) -> Self {
        Self {
            members: vec![GroupMember {
                feed,
                url: String::new(),
                stage: MemberStage::Joining { after: None },
            }],
            part: Some(part),
        }
    }

    /// The member with this number.
    pub fn member(&self, feed: FeedNo) -> Option<&GroupMember> {
        self.members.iter().find(|member| member.feed == feed)
    }

    /// Numbers of the members that another record lacks.
    pub fn members_not_in(&self, other: &Self) -> impl Iterator<Item = FeedNo> {
        let numbers = self.members.iter().map(|member| member.feed);
        numbers.filter(|feed| other.member(*feed).is_none())
    }

    /// True while no member comes or goes.
    pub fn is_settled(&self) -> bool {
        self.members
            .iter()
            .all(|member| member.stage == MemberStage::Joined)
    }

    /// The members after these became the wanted ones, each with its URL.
    #[must_use]
    pub fn with_members(&self, wanted: &[(FeedNo, String)]) -> Self {
        let left = self
            .members
            .iter()
            .filter(|member| wanted.iter().all(|(feed, _)| *feed != member.feed));
        let left = left.map(|member| GroupMember {
            stage: MemberStage::Leaving,
            ..member.clone()
        });
        let joined = wanted.iter().map(|(feed, url)| {
            let stage = match self.member(*feed).map(|member| member.stage) {
                Some(stage @ (MemberStage::Joined | MemberStage::Joining { .. })) => stage,
                Some(MemberStage::Leaving) | None => MemberStage::Joining { after: None },
            };
            GroupMember {
                feed: *feed,
                url: url.clone(),
                stage,
            }
        });
        Self {
            members: joined.chain(left).collect(),
            part: None,
        }
    }
}

// Decides: Are items of two members one post?
/// Name of a post among those of a group: two members that give one id and one link hold one post,
/// campaigns in the link aside. `None` for an item without a link, since ids such as `1` are given
/// by many.
pub fn post_key(item: &Item) -> Option<KeyHash> {
    let link = without_session(item.entry()?.permalink()?);
    Some(KeyHash::of(
        "everfeed group post",
        &format!("{}\n{link}", item.given_id()),
    ))
}

/// A member as the source of its items.
#[derive(Clone, Debug)]
pub struct MemberSource {
    source: Source,
    member: FeedRecord,
}

impl MemberSource {
    /// The source that a member is, as it is known now: its public feed here, and its site.
    pub fn of(member: &FeedRecord, url: &str) -> Self {
        let metadata = &member.metadata;
        let own = Link {
            href: url.to_owned(),
            rel: "self".to_owned(),
            ..Link::default()
        };
        let site = metadata
            .links
            .iter()
            .filter(|link| link.rel == "alternate")
            .cloned();
        let source = Source {
            id: Some(member.iri()),
            title: Some(
                metadata
                    .title
                    .clone()
                    .unwrap_or_else(|| everfeed_adapters::Text::plain(&member.name)),
            ),
            subtitle: metadata.description.clone(),
            links: std::iter::once(own).chain(site).collect(),
            authors: metadata.authors.clone(),
            icon: metadata.icon.clone(),
            logo: metadata.image.as_ref().map(|image| image.url.clone()),
            rights: metadata.rights.clone(),
            ..Source::default()
        };
        Self {
            source,
            member: member.clone(),
        }
    }

    /// The entry of a member's item as the group shows it: with its source, unless it names one
    /// itself, and with what it has from its feed there: its language, and its authors where a
    /// source of its own names none (RFC 4287 section 4.2.1).
    pub fn entry(&self, item: &Item) -> Option<Arc<Entry>> {
        let entry = item.shared_entry()?;
        let inherited = || inheritance::language(&entry, &self.member).map(str::to_owned);
        let language = entry.language.clone().or_else(inherited);
        let authors = match &entry.source {
            Some(source) if source.authors.is_empty() => {
                inheritance::authors(&entry, &self.member).to_vec()
            }
            _ => entry.authors.clone(),
        };
        let source = entry.source.clone().unwrap_or_else(|| {
            let at = plausible(i64::try_from(item.modified.micros()).ok());
            let updated = at.map(|at| Date {
                raw: at.rfc3339(),
                at_us: Some(at.micros()),
            });
            Box::new(Source {
                updated,
                ..self.source.clone()
            })
        });
        Some(Arc::new(Entry {
            source: Some(source),
            authors,
            language,
            ..Entry::clone(&entry)
        }))
    }
}

/// True when one entry shows something else than another, apart from the source, which says when
/// its feed changed.
pub fn shows_otherwise(one: &Entry, other: &Entry) -> bool {
    one != other
        && Entry {
            source: None,
            ..one.clone()
        } != Entry {
            source: None,
            ..other.clone()
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_the_member_that_is_known_longest_comes_first() {
        let holder = |feed, item| Holder {
            feed: FeedNo(feed),
            item: ItemId([item; 10]),
        };
        let mut post = GroupPost::default();
        for held in [
            holder(2, 5),
            holder(3, 1),
            holder(2, 4),
            holder(1, 9),
            holder(2, 5),
        ] {
            post.admit(held);
        }
        assert_eq!(
            post.holders,
            [holder(1, 9), holder(2, 5), holder(2, 4), holder(3, 1)]
        );
    }

    #[test]
    fn members_come_stay_and_go() {
        let at = |feed: u32, stage| GroupMember {
            feed: FeedNo(feed),
            url: "u".into(),
            stage,
        };
        let wanted = |feeds: &[u32]| -> Vec<(FeedNo, String)> {
            feeds
                .iter()
                .map(|feed| (FeedNo(*feed), "u".to_owned()))
                .collect()
        };
        let joining = MemberStage::Joining {
            after: Some((Moment::MIN, Stamp::ZERO)),
        };
        let before = GroupRecord {
            members: vec![
                at(1, MemberStage::Joined),
                at(2, joining),
                at(3, MemberStage::Leaving),
                at(4, joining),
            ],
            part: None,
        };
        let after = before.with_members(&wanted(&[5, 3, 2, 1]));
        let anew = MemberStage::Joining { after: None };
        let expect = [
            at(5, anew),
            at(3, anew),
            at(2, joining),
            at(1, MemberStage::Joined),
            at(4, MemberStage::Leaving),
        ];
        assert_eq!(after.members, expect);
        assert!(!after.is_settled() && GroupRecord::default().is_settled());
    }
}
