//! Users and tokens.

use super::{
    Engine, Writing,
    open_table::{TableEdit as _, TableSource as _},
    removed::{PasswordDigest, Removed},
    tables::{META, TOKENS, USERS, token_key, user_key},
};
use crate::{
    auth::{
        AccessToken, NewAccessToken, NewUser, TokenNo, User, UserNo,
        password::{self, LoginHash},
    },
    store::{
        AccountStore, StoreError, StoreFuture,
        engine::{RowLock, RowReader},
        stored::decode,
    },
};

impl<E: Engine> AccountStore for E {
    fn add_user(&self, new: NewUser) -> StoreFuture<'_, Option<User>> {
        self.write(move |writing| add_user(writing, &new))
    }

    fn users(&self, after: Option<UserNo>, max: usize) -> StoreFuture<'_, Vec<User>> {
        self.read(move |snapshot| users(snapshot, after, max))
    }

    fn change_user(&self, changed: User) -> StoreFuture<'_, bool> {
        self.write(move |writing| change_user(writing, &changed))
    }

    fn remove_user(&self, user: UserNo) -> StoreFuture<'_, bool> {
        self.write(move |writing| remove_user(writing, user))
    }

    fn add_token(&self, new: NewAccessToken) -> StoreFuture<'_, Option<AccessToken>> {
        self.write(move |writing| add_token(writing, &new))
    }

    fn tokens(&self, after: Option<TokenNo>, max: usize) -> StoreFuture<'_, Vec<AccessToken>> {
        self.read(move |snapshot| tokens(snapshot, after, max))
    }

    fn remove_token(&self, token: TokenNo) -> StoreFuture<'_, bool> {
        self.write(move |writing| remove_token(writing, token))
    }
}

/// Key in META of the last number of a user, so that none is given twice.
pub(in crate::store) const LAST_USER_KEY: &str = "last_user";
/// Key in META of the last number of a token.
pub(in crate::store) const LAST_TOKEN_KEY: &str = "last_token";

/// The users after a number.
pub(in crate::store) fn users(
    source: &dyn RowReader,
    after: Option<UserNo>,
    max: usize,
) -> Result<Vec<User>, StoreError> {
    let table = source.table(USERS)?;
    let rows = table.rows_after(&[], after.map(user_key)).take(max);
    rows.map(|row| decode("a user", row?.1.value())).collect()
}

/// The tokens after a number.
pub(in crate::store) fn tokens(
    source: &dyn RowReader,
    after: Option<TokenNo>,
    max: usize,
) -> Result<Vec<AccessToken>, StoreError> {
    let table = source.table(TOKENS)?;
    let rows = table.rows_after(&[], after.map(token_key)).take(max);
    rows.map(|row| decode("a token", row?.1.value())).collect()
}

/// Makes a user, unless its name is taken. Users are few, and made by hand: they are looked
/// through.
pub(in crate::store) fn add_user(
    writing: &mut Writing<'_>,
    new: &NewUser,
) -> Result<Option<User>, StoreError> {
    let source = writing.look();
    // One after another, so that no name is given twice.
    source.name(|| vec![META.named(LAST_USER_KEY).locked(RowLock::Change)])?;
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
    writing.moves_accounts = true;
    Ok(Some(user))
}

/// Keeps a user in the place of the one of its number.
pub(in crate::store) fn change_user(
    writing: &mut Writing<'_>,
    changed: &User,
) -> Result<bool, StoreError> {
    let key = user_key(changed.no);
    lock_user(writing, changed.no)?;
    // One that is damaged is replaced.
    let Some(stored) = writing
        .look()
        .table(USERS)?
        .get(&key)?
        .map(|row| decode::<User>("a user", row.value()))
    else {
        return Ok(false);
    };
    for former in stored.iter().flat_map(|user| user.kept.passwords()) {
        if changed.kept.passwords().iter().all(|kept| *kept != former) {
            writing.record_removed(Removed::Password(changed.no, PasswordDigest::of(former)));
        }
    }
    writing.moves_accounts = true;
    writing.change().edit(USERS)?.write(&key, changed)?;
    Ok(true)
}

/// Locks a user, and names what is read of it.
fn lock_user(writing: &Writing<'_>, user: UserNo) -> Result<(), StoreError> {
    let key = user_key(user);
    writing
        .look()
        .name(|| vec![USERS.named(&key).locked(RowLock::Change), USERS.named(&key)])
}

/// True when a user has a password with this digest.
pub(in crate::store) fn has_password(
    source: &dyn RowReader,
    user: UserNo,
    digest: PasswordDigest,
) -> Result<bool, StoreError> {
    let user: Option<User> = source.table(USERS)?.read(&user_key(user), "a user")?;
    let is_it = |kept: &str| PasswordDigest::of(kept) == digest;
    Ok(user.is_some_and(|user| user.kept.passwords().into_iter().any(is_it)))
}

/// Takes a password with this digest from a user, who has none of that kind until another is given.
pub(in crate::store) fn close_password(
    writing: &mut Writing<'_>,
    user: UserNo,
    digest: PasswordDigest,
) -> Result<bool, StoreError> {
    let key = user_key(user);
    let table = writing.look().table(USERS)?;
    let Some(mut user) = table.read::<User>(&key, "a user")? else {
        return Ok(false);
    };
    let [login, feed_password] = user
        .kept
        .passwords()
        .map(|kept| PasswordDigest::of(kept) == digest);
    if login {
        user.kept.login = LoginHash::of_nobody();
    }
    if feed_password {
        user.kept.feed_password = password::generated();
    }
    drop(table);
    writing.change().edit(USERS)?.write(&key, &user)?;
    Ok(login || feed_password)
}

/// Removes a user with its tokens.
pub(in crate::store) fn remove_user(
    writing: &mut Writing<'_>,
    user: UserNo,
) -> Result<bool, StoreError> {
    lock_user(writing, user)?;
    if writing.look().table(USERS)?.get(&user_key(user))?.is_none() {
        return Ok(false);
    }
    writing.moves_accounts = true;
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
pub(in crate::store) fn add_token(
    writing: &mut Writing<'_>,
    new: &NewAccessToken,
) -> Result<Option<AccessToken>, StoreError> {
    let source = writing.look();
    source.name(|| {
        let user = user_key(new.user);
        vec![
            USERS.named(&user).locked(RowLock::Change),
            META.named(LAST_TOKEN_KEY).locked(RowLock::Change),
            USERS.named(&user),
        ]
    })?;
    if source.table(USERS)?.get(&user_key(new.user))?.is_none() {
        return Ok(None);
    }
    let token = AccessToken {
        no: TokenNo(last_number(source, LAST_TOKEN_KEY)? + 1),
        kept: new.clone(),
    };
    let tx = writing.change();
    writing.moves_accounts = true;
    tx.edit(META)?.write(LAST_TOKEN_KEY, &token.no.0)?;
    tx.edit(TOKENS)?.write(&token_key(token.no), &token)?;
    Ok(Some(token))
}

/// Removes a token.
pub(in crate::store) fn remove_token(
    writing: &mut Writing<'_>,
    token: TokenNo,
) -> Result<bool, StoreError> {
    let key = token_key(token);
    let locked = || TOKENS.named(&key).locked(RowLock::Change);
    writing.look().name(|| vec![locked()])?;
    if writing.look().table(TOKENS)?.get(&key)?.is_none() {
        return Ok(false);
    }
    writing.moves_accounts = true;
    writing.change().edit(TOKENS)?.remove(&key)?;
    writing.record_removed(Removed::Token(token));
    Ok(true)
}

/// The last number that was given, by its key in META.
pub(in crate::store) fn last_number(source: &dyn RowReader, key: &str) -> Result<u64, StoreError> {
    let last = source.table(META)?.read(key, "the last number given")?;
    Ok(last.unwrap_or_default())
}
