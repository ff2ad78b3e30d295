//! Users and tokens in the file.

use super::{
    removed_log::Removed,
    tables::{META, TOKENS, TableEdit as _, TableSource, USERS, token_key, user_key},
    writer::Writing,
};
use crate::{
    auth::{AccessToken, NewAccessToken, NewUser, TokenNo, User, UserNo},
    store::{StoreError, stored::decode},
};

/// Key in META of the last number of a user, so that none is given twice.
pub(super) const LAST_USER_KEY: &str = "last_user";
/// Key in META of the last number of a token.
pub(super) const LAST_TOKEN_KEY: &str = "last_token";

/// The users after a number.
pub(super) fn users(
    source: &impl TableSource,
    after: Option<UserNo>,
    max: usize,
) -> Result<Vec<User>, StoreError> {
    let table = source.table(USERS)?;
    let rows = table.rows_after(&[], after.map(user_key))?.take(max);
    rows.map(|row| decode("a user", row?.1.value())).collect()
}

/// The tokens after a number.
pub(super) fn tokens(
    source: &impl TableSource,
    after: Option<TokenNo>,
    max: usize,
) -> Result<Vec<AccessToken>, StoreError> {
    let table = source.table(TOKENS)?;
    let rows = table.rows_after(&[], after.map(token_key))?.take(max);
    rows.map(|row| decode("a token", row?.1.value())).collect()
}

/// Makes a user, unless its name is taken. Users are few, and made by hand: they are looked
/// through.
pub(super) fn add_user(
    writing: &mut Writing<'_>,
    new: &NewUser,
) -> Result<Option<User>, StoreError> {
    let source = writing.look();
    if users(source, None, usize::MAX)?
        .iter()
        .any(|user| user.kept.name == new.name)
    {
        return Ok(None);
    }
    let user = User {
        no: UserNo(last_number(source, LAST_USER_KEY)? + 1),
        kept: new.clone(),
    };
    let tx = writing.change();
    tx.edit(META)?.write(LAST_USER_KEY, &user.no.0)?;
    tx.edit(USERS)?.write(&user_key(user.no), &user)?;
    Ok(Some(user))
}

/// Keeps a user in the place of the one of its number.
pub(super) fn change_user(writing: &mut Writing<'_>, changed: &User) -> Result<bool, StoreError> {
    let key = user_key(changed.no);
    if writing.look().table(USERS)?.get(&key)?.is_none() {
        return Ok(false);
    }
    writing.change().edit(USERS)?.write(&key, changed)?;
    Ok(true)
}

/// Removes a user with its tokens.
pub(super) fn remove_user(writing: &mut Writing<'_>, user: UserNo) -> Result<bool, StoreError> {
    if writing.look().table(USERS)?.get(&user_key(user))?.is_none() {
        return Ok(false);
    }
    let tokens = tokens(writing.look(), None, usize::MAX)?;
    let tx = writing.change();
    tx.edit(USERS)?.remove(&user_key(user))?;
    for token in tokens.iter().filter(|token| token.kept.user == user) {
        tx.edit(TOKENS)?.remove(&token_key(token.no))?;
    }
    writing.record_removed(Removed::User(user));
    Ok(true)
}

/// Makes a token of a user.
pub(super) fn add_token(
    writing: &mut Writing<'_>,
    new: &NewAccessToken,
) -> Result<Option<AccessToken>, StoreError> {
    let source = writing.look();
    if source.table(USERS)?.get(&user_key(new.user))?.is_none() {
        return Ok(None);
    }
    let token = AccessToken {
        no: TokenNo(last_number(source, LAST_TOKEN_KEY)? + 1),
        kept: new.clone(),
    };
    let tx = writing.change();
    tx.edit(META)?.write(LAST_TOKEN_KEY, &token.no.0)?;
    tx.edit(TOKENS)?.write(&token_key(token.no), &token)?;
    Ok(Some(token))
}

/// Removes a token.
pub(super) fn remove_token(writing: &mut Writing<'_>, token: TokenNo) -> Result<bool, StoreError> {
    let key = token_key(token);
    if writing.look().table(TOKENS)?.get(&key)?.is_none() {
        return Ok(false);
    }
    writing.change().edit(TOKENS)?.remove(&key)?;
    writing.record_removed(Removed::Token(token));
    Ok(true)
}

fn last_number(source: &impl TableSource, key: &str) -> Result<u64, StoreError> {
    let last = source.table(META)?.read(key, "the last number given")?;
    Ok(last.unwrap_or_default())
}
