//! Users and tokens.

use super::{
    Out, Stored, StoredKind, Written,
    table::{stored_enums, stored_newtypes, stored_structs},
};
use crate::auth::{
    AccessToken, NewAccessToken, NewUser, PrincipalId, TokenNo, TokenUse, User, UserNo,
    password::LoginHash,
};
use minicbor::{Decoder, decode};

impl StoredKind for User {
    const NAME: &'static str = "user";
}

impl StoredKind for AccessToken {
    const NAME: &'static str = "token";
}

stored_newtypes! { UserNo TokenNo }

stored_structs! {
    User { no, kept }
    NewUser { name, login, feed_password, hex_digest, created_us, jid }
    AccessToken { no, kept }
    NewAccessToken { user, usage, hash, created_us }
    PrincipalId { user, token }
}

stored_enums! {
    TokenUse { 0 Bearer, 1 Url }
}

impl Stored for LoginHash {
    fn put(&self, out: &mut Out) -> Written {
        out.str(self.reveal()).map(drop)
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, decode::Error> {
        input.str().map(|text| Self::stored(text.to_owned()))
    }
}
