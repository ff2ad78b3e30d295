//! Users and tokens in the database.

use super::{
    database::DatabaseWriting,
    rows,
    session::DatabaseSession,
    statement::{SqlStatement, column, number_column},
};
use crate::{
    auth::{AccessToken, NewAccessToken, NewUser, TokenNo, User, UserNo},
    store::{
        StoreError,
        stored::{StoredKind, decode, encode},
    },
};

/// The users after a number.
pub(super) fn users(
    session: &DatabaseSession,
    after: Option<UserNo>,
    max: usize,
) -> Result<Vec<User>, StoreError> {
    let sql = "SELECT value FROM users WHERE no > $1 ORDER BY no LIMIT $2";
    values(session, sql, after.map(|user| user.0), max, "a user")
}

/// The tokens after a number.
pub(super) fn tokens(
    session: &DatabaseSession,
    after: Option<TokenNo>,
    max: usize,
) -> Result<Vec<AccessToken>, StoreError> {
    let sql = "SELECT value FROM tokens WHERE no > $1 ORDER BY no LIMIT $2";
    values(session, sql, after.map(|token| token.0), max, "a token")
}

fn values<T: StoredKind>(
    session: &DatabaseSession,
    sql: &'static str,
    after: Option<u64>,
    max: usize,
    what: &str,
) -> Result<Vec<T>, StoreError> {
    let asked = SqlStatement::new(sql).with(after.map_or(-1, number_column));
    let rows = session.rows(asked.with(rows::limit(max)))?;
    rows.iter()
        .map(|row| decode(what, column(row, 0)?))
        .collect()
}

/// Makes a user, unless its name is taken.
pub(super) fn add_user(
    writing: &DatabaseWriting<'_>,
    new: &NewUser,
) -> Result<Option<User>, StoreError> {
    let session = writing.session;
    let asked = || SqlStatement::new("SELECT no FROM users WHERE name = $1").with(&*new.name);
    if session.row(asked())?.is_some() {
        return Ok(None);
    }
    let user = User {
        no: UserNo(rows::next_number(session, "last_user")?),
        kept: new.clone(),
    };
    // Numbers are given one after another: whoever was before us has committed.
    if session.row(asked())?.is_some() {
        return Ok(None);
    }
    let sql = "INSERT INTO users (no, name, value) VALUES ($1, $2, $3)";
    let written = SqlStatement::new(sql).with(number_column(user.no.0));
    session.change(written.with(&*new.name).with(encode(&user)?));
    writing.move_accounts();
    Ok(Some(user))
}

/// Keeps a user in the place of the one of its number.
pub(super) fn change_user(
    writing: &DatabaseWriting<'_>,
    changed: &User,
) -> Result<bool, StoreError> {
    let sql = "UPDATE users SET value = $2 WHERE no = $1 RETURNING no";
    let written = SqlStatement::new(sql).with(number_column(changed.no.0));
    writing.session.note_change();
    writing.move_accounts();
    let row = writing.session.row(written.with(encode(changed)?))?;
    Ok(row.is_some())
}

/// Removes a user with its tokens.
pub(super) fn remove_user(writing: &DatabaseWriting<'_>, user: UserNo) -> Result<bool, StoreError> {
    let session = writing.session;
    let sql = "DELETE FROM users WHERE no = $1 RETURNING no";
    session.note_change();
    writing.move_accounts();
    let was_there = session
        .row(SqlStatement::new(sql).with(number_column(user.0)))?
        .is_some();
    let sql = "DELETE FROM tokens WHERE owner = $1";
    session.change(SqlStatement::new(sql).with(number_column(user.0)));
    Ok(was_there)
}

/// Makes a token of a user, who stays meanwhile.
pub(super) fn add_token(
    writing: &DatabaseWriting<'_>,
    new: &NewAccessToken,
) -> Result<Option<AccessToken>, StoreError> {
    let session = writing.session;
    let sql = "SELECT no FROM users WHERE no = $1 FOR KEY SHARE";
    let user = session.row(SqlStatement::new(sql).with(number_column(new.user.0)))?;
    if user.is_none() {
        return Ok(None);
    }
    let token = AccessToken {
        no: TokenNo(rows::next_number(session, "last_token")?),
        kept: new.clone(),
    };
    let sql = "INSERT INTO tokens (no, owner, value) VALUES ($1, $2, $3)";
    let written = SqlStatement::new(sql).with(number_column(token.no.0));
    session.change(
        written
            .with(number_column(new.user.0))
            .with(encode(&token)?),
    );
    writing.move_accounts();
    Ok(Some(token))
}

/// Removes a token.
pub(super) fn remove_token(
    writing: &DatabaseWriting<'_>,
    token: TokenNo,
) -> Result<bool, StoreError> {
    let sql = "DELETE FROM tokens WHERE no = $1 RETURNING no";
    writing.session.note_change();
    writing.move_accounts();
    let row = writing
        .session
        .row(SqlStatement::new(sql).with(number_column(token.0)))?;
    Ok(row.is_some())
}
