//! Figures on readers in the words of pages; not the pages.

use crate::{
    readership::{ReaderFigures, SoftwareFigures},
    render::reader_page::{ReaderRow, ReaderSheet},
};

/// The figures of a feed in words.
pub fn reader_sheet(figures: &ReaderFigures) -> ReaderSheet {
    ReaderSheet {
        feed: figures.feed.clone(),
        lines: vec![summary(figures)],
        rows: figures.software.iter().map(row).collect(),
    }
}

/// All readers of a feed in a sentence.
pub fn summary(figures: &ReaderFigures) -> String {
    let ReaderFigures { claimed, day, .. } = figures;
    let mut told = format!("claimed readers: {claimed}");
    if let Some(subscribers) = figures.push_subscribers {
        told += &format!("; push subscribers: {subscribers}");
    }
    told += &format!("; requests of the last day: {}", day.requests);
    if let Some(percent) = day.conditional_percent() {
        told += &format!(", conditional: {percent} %");
    }
    match figures.misbehaving() {
        0 => {}
        count => told += &format!("; misbehaving software: {count}"),
    }
    if figures.is_gone {
        told += "; the feed is not configured any more, and answers 410";
    }
    told
}

fn row(figures: &SoftwareFigures) -> ReaderRow {
    let percent = figures.month.conditional_percent();
    ReaderRow {
        software: figures.software.clone(),
        claimed: figures
            .claimed
            .map_or_else(|| "–".to_owned(), |it| it.to_string()),
        clients: figures
            .clients_about
            .map_or_else(|| "many".to_owned(), |it| it.to_string()),
        day: figures.day.requests.to_string(),
        month: figures.month.requests.to_string(),
        conditional: percent
            .map(|percent| format!("{percent} %"))
            .unwrap_or_default(),
        last_seen: to_the_minute(&figures.last_seen),
        faults: figures.misbehaves.clone(),
    }
}

/// A moment of RFC 3339 as people read it.
pub(super) fn to_the_minute(moment: &str) -> String {
    match moment.get(..16) {
        Some(minute) => format!("{} UTC", minute.replace('T', " ")),
        None => moment.to_owned(),
    }
}
