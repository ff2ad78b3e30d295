//! The rhythm in which to ask for a feed, in the vocabulary that RSS of both kinds knows (`sy:`);
//! not when we ask its publisher.

use crate::render::xml::Xml;

const HOUR_MINS: u32 = 60;
const DAY_MINS: u32 = 24 * HOUR_MINS;
const WEEK_MINS: u32 = 7 * DAY_MINS;

/// Writes that a copy stays fresh for so many minutes: the longest period that holds at least one
/// of them, and how often they go into it.
pub(super) fn elements(xml: &mut Xml, ttl_mins: Option<u32>) {
    let Some(mins) = ttl_mins.filter(|mins| *mins > 0) else {
        return;
    };
    let periods = [
        ("hourly", HOUR_MINS),
        ("daily", DAY_MINS),
        ("weekly", WEEK_MINS),
    ];
    let fitting = periods.into_iter().find(|(_, period)| mins <= *period);
    let (name, period) = fitting.unwrap_or(("weekly", WEEK_MINS));
    xml.leaf("sy:updatePeriod", &[], name);
    xml.leaf(
        "sy:updateFrequency",
        &[],
        &(period / mins).max(1).to_string(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rhythm_is_the_shortest_period_and_how_often() {
        let check = |mins, expect: [&str; 2]| {
            let mut xml = Xml::fragment(0, &[]);
            elements(&mut xml, Some(mins));
            let [period, frequency] = expect;
            assert_eq!(
                String::from_utf8(xml.finish_fragment()).unwrap(),
                format!(
                    "<sy:updatePeriod>{period}</sy:updatePeriod>\n<sy:updateFrequency>{frequency}</sy:updateFrequency>"
                ),
                "{mins}"
            );
        };
        check(15, ["hourly", "4"]);
        check(60, ["hourly", "1"]);
        check(61, ["daily", "23"]);
        check(1440, ["daily", "1"]);
        check(1441, ["weekly", "6"]);
        check(99_999, ["weekly", "1"]);
        let mut xml = Xml::fragment(0, &[]);
        elements(&mut xml, None);
        assert!(xml.finish_fragment().is_empty());
    }
}
