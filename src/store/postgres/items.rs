//! The items of one feed as a plan reads them: what it will ask for is fetched in one round trip,
//! and the rest when it is asked for. Not pages.

use super::{
    session::DatabaseSession,
    statement::{SqlStatement, column, item_id_at, stamp_at},
};
use crate::{
    feed::{
        item::{Item, ItemId},
        record::FeedNo,
        stamp::Stamp,
    },
    store::{
        StoreError,
        plan::Held,
        stored::{
            damaged,
            item::{decode_item, plain_bytes},
        },
    },
};
use std::{cell::RefCell, collections::HashMap, sync::Arc};
use tokio_postgres::Row;

/// Items whose bytes are read at once.
const BYTES_ROWS: i64 = 200;

/// The items of a feed.
pub(super) struct FeedItems<'s> {
    session: &'s DatabaseSession,
    feed: FeedNo,
    known: RefCell<HashMap<ItemId, Option<KnownItem>>>,
    /// The ids of items by T, where it is known which stands there, or that none does.
    at: RefCell<HashMap<Stamp, Option<ItemId>>>,
}

/// An item as it is stored.
#[derive(Clone)]
struct KnownItem {
    t: Stamp,
    value: Arc<[u8]>,
}

impl<'s> FeedItems<'s> {
    /// Those of this feed.
    pub(super) fn of(session: &'s DatabaseSession, feed: FeedNo) -> Self {
        Self {
            session,
            feed,
            known: RefCell::default(),
            at: RefCell::default(),
        }
    }

    /// Asks for items by their ids.
    pub(super) fn asked(feed: FeedNo, ids: Vec<ItemId>) -> SqlStatement {
        let sql = "SELECT id, t, value FROM items WHERE feed = $1 AND id = ANY($2)";
        SqlStatement::new(sql).with(feed).with(ids)
    }

    /// Asks for the item at the last T of the feed.
    pub(super) fn newest_asked(feed: FeedNo) -> SqlStatement {
        let sql = "SELECT f.last_t, i.id FROM feeds f \
                   LEFT JOIN items i ON i.feed = f.no AND i.t = f.last_t WHERE f.no = $1";
        SqlStatement::new(sql).with(feed)
    }

    /// Takes the answer to a question for these ids.
    pub(super) fn take(&self, ids: Vec<ItemId>, rows: &[Row]) -> Result<(), StoreError> {
        let mut known = self.known.borrow_mut();
        known.extend(ids.into_iter().map(|id| (id, None)));
        for row in rows {
            let value: &[u8] = column(row, 2)?;
            let (id, t) = (item_id_at(row, 0)?, stamp_at(row, 1)?);
            self.at.borrow_mut().insert(t, Some(id));
            let value = value.into();
            known.insert(id, Some(KnownItem { t, value }));
        }
        Ok(())
    }

    /// Takes the answer to the question for the newest item.
    pub(super) fn take_newest(&self, rows: &[Row]) -> Result<(), StoreError> {
        let Some(row) = rows.first() else {
            return Ok(());
        };
        let id: Option<&[u8]> = column(row, 1)?;
        let id = id.map(|_| item_id_at(row, 1)).transpose()?;
        self.at.borrow_mut().insert(stamp_at(row, 0)?, id);
        Ok(())
    }

    /// Fetches items that will be asked for.
    pub(super) fn fetch(&self, ids: Vec<ItemId>) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        let rows = self.session.rows(Self::asked(self.feed, ids.clone()))?;
        self.take(ids, &rows)
    }

    /// The item, with the name of its feed where it is damaged.
    pub(super) fn item_of(
        &self,
        feed_name: &str,
        id: ItemId,
    ) -> Result<Option<Arc<Item>>, StoreError> {
        let known = self.known_item(id)?;
        known
            .map(|known| self.read(feed_name, id, known.t, &known.value))
            .transpose()
    }

    /// Reads an item; one that is damaged is told with the name of its feed.
    pub(super) fn read(
        &self,
        feed_name: &str,
        id: ItemId,
        t: Stamp,
        value: &[u8],
    ) -> Result<Arc<Item>, StoreError> {
        match self.read_value(id, t, value) {
            Err(StoreError::Damaged(what)) => Err(StoreError::DamagedItem {
                feed: feed_name.to_owned(),
                id,
                what,
            }),
            read => read,
        }
    }

    fn read_value(&self, id: ItemId, t: Stamp, value: &[u8]) -> Result<Arc<Item>, StoreError> {
        let item = decode_item(t, value)?;
        if item.id != id {
            return Err(damaged(format!("item {id} says that it is {}", item.id)));
        }
        Ok(Arc::new(item))
    }

    fn known_item(&self, id: ItemId) -> Result<Option<KnownItem>, StoreError> {
        if let Some(known) = self.known.borrow().get(&id) {
            return Ok(known.clone());
        }
        self.fetch(vec![id])?;
        Ok(self.known.borrow().get(&id).cloned().flatten())
    }
}

impl Held for FeedItems<'_> {
    fn item(&self, id: ItemId) -> Result<Option<Arc<Item>>, StoreError> {
        let known = self.known_item(id)?;
        known
            .map(|known| self.read_value(id, known.t, &known.value))
            .transpose()
    }

    fn id_at(&self, t: Stamp) -> Result<Option<ItemId>, StoreError> {
        if let Some(known) = self.at.borrow().get(&t) {
            return Ok(*known);
        }
        let asked = SqlStatement::new("SELECT id FROM items WHERE feed = $1 AND t = $2");
        let row = self.session.row(asked.with(self.feed).with(t))?;
        let id = row.map(|row| item_id_at(&row, 0)).transpose()?;
        self.at.borrow_mut().insert(t, id);
        Ok(id)
    }

    fn bytes_at(&self, t: Stamp) -> Result<u64, StoreError> {
        let Some(id) = self.id_at(t)? else {
            return Ok(0);
        };
        let known = self.known_item(id)?;
        Ok(known.map_or(0, |known| plain_bytes(&known.value)))
    }

    fn bytes(&self) -> Result<u64, StoreError> {
        let sql = "SELECT t, value FROM items WHERE feed = $1 AND t > $2 ORDER BY t LIMIT $3";
        let (mut bytes, mut after) = (0, Stamp::ZERO);
        loop {
            let asked = SqlStatement::new(sql)
                .with(self.feed)
                .with(after)
                .with(BYTES_ROWS);
            let rows = self.session.rows(asked)?;
            let Some(last) = rows.last() else {
                return Ok(bytes);
            };
            after = stamp_at(last, 0)?;
            for row in &rows {
                bytes += plain_bytes(column(row, 1)?);
            }
        }
    }
}
