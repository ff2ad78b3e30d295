//! The readers of a feed, as a table on pages for people, and the page with the tables of a site for its
//! owner. No script, every text escaped; not how readers are counted.

use super::{
    web_page::{QUIET, begin, begin_main, finish, table_head},
    xml::Xml,
};

pub use super::web_page::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};

/// The readers of a feed, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReaderSheet {
    /// Name of the feed.
    pub feed: String,
    /// Sentences about all its readers.
    pub lines: Vec<String>,
    /// Each kind of software.
    pub rows: Vec<ReaderRow>,
}

/// A kind of software that reads a feed, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReaderRow {
    /// Its name.
    pub software: String,
    /// The readers that it claims.
    pub claimed: String,
    /// Its clients.
    pub clients: String,
    /// Its requests of a day.
    pub day: String,
    /// Its requests of thirty days.
    pub month: String,
    /// Share of conditional ones.
    pub conditional: String,
    /// Time of its last request.
    pub last_seen: String,
    /// Its faults.
    pub faults: Vec<String>,
}

/// Columns of the table.
const COLUMNS: [&str; 7] = [
    "Software",
    "Claimed readers",
    "Addresses, about",
    "Requests of a day",
    "of 30 days",
    "Conditional",
    "Last seen",
];

/// The readers of a feed, inside a page.
pub(super) fn section(page: &mut Xml, sheet: &ReaderSheet) {
    for line in &sheet.lines {
        page.leaf("p", QUIET, line);
    }
    if sheet.rows.is_empty() {
        return;
    }
    page.open("table", &[("class", Some("feeds overview"))]);
    table_head(page, &COLUMNS);
    page.open("tbody", &[]);
    for row in &sheet.rows {
        page.open("tr", &[]);
        page.open("th", &[("scope", Some("row"))]);
        page.leaf("div", &[("dir", Some("auto"))], &row.software);
        for fault in &row.faults {
            page.leaf("div", &[("class", Some("state"))], fault);
        }
        page.close("th");
        let cells = [
            &row.claimed,
            &row.clients,
            &row.day,
            &row.month,
            &row.conditional,
            &row.last_seen,
        ];
        for (column, cell) in COLUMNS[1..].iter().zip(cells) {
            page.leaf("td", &[("data-column", Some(*column))], cell);
        }
        page.close("tr");
    }
    page.close("tbody");
    page.close("table");
}

/// The page about the readers of all feeds of a site. Search engines are asked to leave it out.
pub fn page(site: &str, lines: &[String], sheets: &[ReaderSheet]) -> Vec<u8> {
    let title = format!("Readers of {site}");
    let mut page = begin("en", &title);
    let robots = ("name", Some("robots"));
    page.empty("meta", &[robots, ("content", Some("noindex, nofollow"))]);
    let referrer = ("name", Some("referrer"));
    page.empty("meta", &[referrer, ("content", Some("no-referrer"))]);
    begin_main(&mut page, Some("wide"));
    page.leaf("h1", &[], &title);
    for line in lines {
        page.leaf("p", QUIET, line);
    }
    if sheets.is_empty() {
        page.leaf("p", &[], "Nobody has asked for a feed of this site yet.");
    }
    for sheet in sheets {
        page.leaf("h2", &[("dir", Some("auto"))], &sheet.feed);
        section(&mut page, sheet);
    }
    finish(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVIL: &str = "<script>alert(1)</script>\"'&";

    #[test]
    fn every_text_is_escaped_and_search_engines_stay_away() {
        let row = ReaderRow {
            software: EVIL.to_owned(),
            claimed: EVIL.to_owned(),
            faults: vec![EVIL.to_owned()],
            ..ReaderRow::default()
        };
        let sheet = ReaderSheet {
            feed: EVIL.to_owned(),
            lines: vec![EVIL.to_owned()],
            rows: vec![row],
        };
        let page = page(EVIL, &[EVIL.to_owned()], &[sheet]);
        let page = String::from_utf8(page).unwrap();
        assert!(!page.contains("<script"), "{page}");
        let escaped = page
            .matches("&lt;script&gt;alert(1)&lt;/script&gt;")
            .count();
        assert_eq!(escaped, 8, "{page}");
        assert!(
            page.contains("<meta name=\"robots\" content=\"noindex, nofollow\""),
            "{page}"
        );
        let none = String::from_utf8(super::page("x", &[], &[])).unwrap();
        assert!(none.contains("Nobody has asked"), "{none}");
    }
}
