//! Groups and parts: their members, and who holds their posts.

use super::{
    StoredKind,
    table::{stored_enums, stored_structs},
};
use crate::feed::{
    group::{GroupMember, GroupPost, GroupRecord, Holder, MemberStage},
    part::PartRecord,
};

impl StoredKind for GroupRecord {
    const NAME: &'static str = "group";
}

impl StoredKind for GroupPost {
    const NAME: &'static str = "group-post";
}

stored_structs! {
    GroupRecord { members, part }
    PartRecord { filter, audience, is_edited }
    GroupMember { feed, url, stage }
    GroupPost { holders, key }
    Holder { feed, item }
}

stored_enums! {
    MemberStage { 0 Joining { after }, 1 Joined, 2 Leaving }
}
