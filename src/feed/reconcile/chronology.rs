//! Which of two entries is older, as far as a document lets one know; not when anything was
//! committed.

use crate::{item::plausible, moment::Moment};
use everfeed_adapters::Entry;

/// The publisher's date that sorts an entry: published, else updated (DESIGN section 3).
pub(crate) fn date(entry: &Entry) -> Option<Moment> {
    let at = |date: &Option<everfeed_adapters::Date>| {
        date.as_ref().and_then(|date| plausible(date.at_us))
    };
    at(&entry.published).or_else(|| at(&entry.updated))
}

/// Publisher's date of the last change of an entry: updated, else published.
pub(crate) fn touched(entry: &Entry) -> Option<Moment> {
    let at = |date: &Option<everfeed_adapters::Date>| {
        date.as_ref().and_then(|date| plausible(date.at_us))
    };
    at(&entry.updated).or_else(|| at(&entry.published))
}

/// Puts what stands in document order into chronological order, oldest first. The last of a
/// document is its oldest unless the document ascends; an undated entry stays beside its older
/// neighbour.
pub(super) fn oldest_first<T>(in_document: Vec<(Option<Moment>, T)>) -> Vec<T> {
    let mut rows = in_document;
    if !ascends(&rows) {
        rows.reverse();
    }
    let mut before = Moment::MIN;
    let mut dated: Vec<(Moment, T)> = rows
        .into_iter()
        .map(|(date, row)| {
            before = date.unwrap_or(before);
            (before, row)
        })
        .collect();
    dated.sort_by_key(|(date, _)| *date);
    dated.into_iter().map(|(_, row)| row).collect()
}

/// True when at least four in five neighbours with different dates ascend (POLLING 2.3, step 1).
fn ascends<T>(rows: &[(Option<Moment>, T)]) -> bool {
    let dates: Vec<Moment> = rows.iter().filter_map(|(date, _)| *date).collect();
    let up = dates.windows(2).filter(|pair| pair[0] < pair[1]).count();
    let down = dates.windows(2).filter(|pair| pair[0] > pair[1]).count();
    up > 0 && up * 5 >= (up + down) * 4
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(dates: &[Option<i64>], expect: &[usize]) {
        let moment = |secs: i64| Moment::from_micros(secs * 1_000_000);
        let rows = dates
            .iter()
            .enumerate()
            .map(|(at, date)| (date.map(moment), at))
            .collect();
        assert_eq!(oldest_first(rows), expect, "{dates:?}");
    }

    #[test]
    fn the_last_of_a_document_is_its_oldest_unless_the_document_ascends() {
        check(&[None, None, None], &[2, 1, 0]);
        check(&[Some(3), Some(2), Some(1)], &[2, 1, 0]);
        check(&[Some(1), Some(2), Some(3)], &[0, 1, 2]);
        check(&[Some(2), Some(2), Some(2)], &[2, 1, 0]);
        check(&[Some(2), Some(-9), Some(1)], &[1, 2, 0]);
    }

    #[test]
    fn dates_sort_and_an_undated_entry_stays_beside_its_older_neighbour() {
        check(&[Some(5), Some(9), Some(1)], &[2, 0, 1]);
        check(&[Some(9), None, Some(1)], &[2, 1, 0]);
        check(&[Some(1), None, Some(9)], &[0, 1, 2]);
    }
}
