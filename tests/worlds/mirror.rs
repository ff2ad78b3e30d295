//! The mirror that a consumer keeps, and what must be true of it at any time. It takes pages as
//! `docs/consumers/mirror.md` says.

use super::{
    everfeed_life::Life,
    mistakes::{ConsumerMistake, made},
    plan::Category,
};
use everfeed::{
    feed::{
        cursor::Toc,
        item::Item,
        order::Order,
        page::PageQuery,
        record::{FeedNo, FeedRecord},
        stamp::Stamp,
    },
    store::traits::Feeds as _,
};
use futures_util::FutureExt as _;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

/// Items by id, and the position of their consumer.
#[derive(Clone, Default)]
pub(crate) struct Mirror {
    pub(crate) items: BTreeMap<String, HeldItem>,
    pub(crate) cursor: String,
    /// Items that were met since it began to read anew; `None` while it does not.
    met: Option<BTreeSet<String>>,
    generation: Option<String>,
    /// Times that it began anew.
    pub(crate) anew: usize,
    pub(crate) pages: usize,
}

/// An item as its consumer holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeldItem {
    t_us: u64,
    /// `None` for one that is gone.
    pub(crate) title: Option<String>,
}

/// The facts about a page beside its items.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// `Smart-Feed-Cursor`.
    pub(crate) cursor: String,
    /// `Smart-Feed-Generation`.
    pub(crate) generation: String,
}

/// The next act of a consumer after a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// There is more, or it reads anew.
    Page,
    /// It has everything.
    Wait,
}

impl Told {
    pub(crate) fn of(headers: &http::HeaderMap) -> Self {
        Self {
            cursor: text(headers, "smart-feed-cursor"),
            generation: text(headers, "smart-feed-generation"),
        }
    }
}

/// The text of a header; empty where it lacks.
pub(crate) fn text(headers: &http::HeaderMap, name: &str) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

impl Mirror {
    /// Takes a page that was asked for. The error is a rule that does not hold.
    pub(crate) fn take(&mut self, told: &Told, page: &Value) -> Result<Next, String> {
        self.pages += 1;
        let is_known = self.is_of(&told.generation);
        self.generation = Some(told.generation.clone());
        if told.cursor == "ahead" || !is_known {
            self.anew += 1;
            self.cursor.clear();
            if made(ConsumerMistake::NoSweep) {
                return Ok(Next::Page);
            }
            self.met = Some(BTreeSet::new());
            return Ok(Next::Page);
        }
        if told.cursor == "reset" && !made(ConsumerMistake::ResetUnheard) {
            self.anew += 1;
            self.items.clear();
            self.met = None;
        }
        let items = page["items"].as_array().ok_or("a page has no items")?;
        for item in items {
            self.apply(item)?;
        }
        let last = page["last_cursor"].as_str();
        last.ok_or("a page has no cursor")?
            .clone_into(&mut self.cursor);
        if page.get("next").is_some() {
            return Ok(Next::Page);
        }
        if let Some(met) = self.met.take() {
            self.items.retain(|id, _| met.contains(id));
        }
        Ok(Next::Wait)
    }

    /// True for the generation that it knows, or if it knows none.
    pub(crate) fn is_of(&self, generation: &str) -> bool {
        self.generation
            .as_deref()
            .is_none_or(|known| known == generation)
    }

    /// True while it reads anew.
    pub(crate) fn is_reading_anew(&self) -> bool {
        self.met.is_some()
    }

    /// Begins anew with nothing, as a stream does that is of another generation.
    pub(crate) fn forget_all(&mut self, generation: Option<&str>) {
        self.items.clear();
        self.met = None;
        self.anew += 1;
        if let Some(generation) = generation {
            self.generation = Some(generation.to_owned());
            self.cursor.clear();
        }
    }

    /// Knows the generation of a stream.
    pub(crate) fn know(&mut self, generation: &str) {
        self.generation = Some(generation.to_owned());
    }

    /// Puts an item in the place of the one before. The error is a version that goes back.
    pub(crate) fn apply(&mut self, item: &Value) -> Result<(), String> {
        let id = item["id"].as_str().ok_or("an item has no id")?.to_owned();
        let t = item["updated"].as_str().ok_or("an item has no time")?;
        let t = chrono::DateTime::parse_from_rfc3339(t).map_err(|why| why.to_string())?;
        let is_gone = item["deleted"] == Value::Bool(true);
        let title = item["object"]["displayName"].as_str().unwrap_or_default();
        let held = HeldItem {
            t_us: t.timestamp_micros() as u64,
            title: (!is_gone).then(|| title.to_owned()),
        };
        if let Some(met) = &mut self.met {
            met.insert(id.clone());
        } else if let Some(before) = self.items.get(&id)
            && before.t_us > held.t_us
        {
            return Err(format!("item {id} goes back from {before:?} to {held:?}"));
        }
        self.items.insert(id, held);
        Ok(())
    }

    /// Checks it against what the feed holds now: each item whose T is not beyond the position is
    /// held in its present form. While it reads anew nothing is known.
    pub(crate) fn check(
        &self,
        life: &Life,
        name: &str,
        filter: Option<Category>,
    ) -> Result<(), String> {
        let Some(present) = present(life, name) else {
            return Ok(());
        };
        let Present { items, record } = &*present;
        let generation = record.lineage.generation().to_string();
        if self.is_reading_anew() || !self.is_of(&generation) {
            return Ok(());
        }
        let Some(position) = Toc::parse(&self.cursor) else {
            return Ok(());
        };
        let head = items
            .last()
            .and_then(|item| record.cursor(item.modified, item.id));
        let head = head.and_then(|head| Toc::parse(&head));
        if head.is_none_or(|head| head.unmarked().0 != position.unmarked().0) {
            // Of another part: with the next page it is told so.
            return Ok(());
        }
        let position = position.t.stamp().unwrap_or_default();
        let reached = items.iter().filter(|item| item.modified <= position);
        for item in reached {
            self.check_item(item, filter)?;
        }
        let known: BTreeSet<String> = items.iter().map(|item| item.id.to_string()).collect();
        let unknown = self.items.keys().find(|id| !known.contains(*id));
        match unknown {
            Some(id) => Err(format!("item {id} is held, and the feed does not know it")),
            None => Ok(()),
        }
    }

    fn check_item(&self, item: &Item, filter: Option<Category>) -> Result<(), String> {
        let held = self.items.get(&item.id.to_string());
        let present = held_form(item);
        let is_shown = present
            .title
            .as_deref()
            .is_some_and(|title| is_in(title, filter));
        if filter.is_some() && !is_shown {
            return match held.and_then(|held| held.title.as_ref()) {
                Some(title) => Err(format!("`{title}` is held, and the view lacks it")),
                None => Ok(()),
            };
        }
        if held == Some(&present) {
            return Ok(());
        }
        Err(format!("{} is {present:?}, and {held:?} is held", item.id))
    }
}

/// The view that anonymous readers of a name have now.
pub(crate) struct Present {
    pub(crate) items: Vec<Arc<Item>>,
    pub(crate) record: FeedRecord,
}

/// The last reading of each feed, while it is still current.
pub(crate) type KeptPresents = Mutex<BTreeMap<FeedNo, Arc<Present>>>;

/// The view that anonymous readers of a name have now; `None` for nothing.
pub(crate) fn present(life: &Life, name: &str) -> Option<Arc<Present>> {
    let catalog = life.catalog.snapshot();
    let feed = catalog.feed(name)?;
    present_of(life, catalog.read_by(feed, None)?)
}

/// The present items of a feed.
pub(crate) fn present_of(life: &Life, no: FeedNo) -> Option<Arc<Present>> {
    // A look at the disk ends at once.
    let record = life.look.feed(no).now_or_never()?.ok()?;
    let mut kept = life.presents.lock().unwrap();
    if let Some(present) = kept.get(&no)
        && present.record == record
    {
        return Some(present.clone());
    }
    let query = PageQuery::all(no, Order::MODIFIED);
    let items = life.look.page(query).now_or_never()?.ok()?.items;
    let present = Arc::new(Present { items, record });
    kept.insert(no, present.clone());
    Some(present)
}

/// The form in which an item is held.
pub(crate) fn held_form(item: &Item) -> HeldItem {
    let title = item.entry().map(|entry| {
        let title = entry.title.as_ref();
        title.map(|title| title.value.clone()).unwrap_or_default()
    });
    HeldItem {
        t_us: item.modified.micros(),
        title,
    }
}

/// True for a title of this category, or where all are shown.
pub(crate) fn is_in(title: &str, filter: Option<Category>) -> bool {
    filter.is_none_or(|category| title.ends_with(category.name()))
}

/// The T of a cursor.
pub(crate) fn t_of(cursor: &str) -> Stamp {
    let toc = Toc::parse(cursor);
    toc.and_then(|toc| toc.t.stamp()).unwrap_or_default()
}
