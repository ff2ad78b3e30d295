//! The table: a heading for each set, a line for each side, the aim beside it; not how figures are
//! made.

use crate::documents::Set;
use crate::rounds::{Cost, SideCost, Spread};
use crate::sides::Side;

/// Slicing and parsing everything, as a part of the throughput of bare tokenising.
const RATIO_MIN: f64 = 0.4;

/// Slicing and parsing everything, in millions of bytes a second.
const SPEED_MIN: f64 = 80.0;

/// Says what the table says.
pub(crate) fn begin() {
    println!(
        "One thread. Millions of bytes a second, and as a part of bare tokenising of the same bytes in the same round:"
    );
    println!("median (least .. greatest) over rounds in which all sides work in turn.");
}

/// A set and what each side made of it.
pub(crate) fn set(set: &Set, cost: &Cost) {
    println!(
        "\n{}: {} documents, {:.1} MB{}",
        set.name,
        set.documents.len(),
        set.bytes() as f64 / 1e6,
        left_out(set)
    );
    for side in &cost.sides {
        line(side);
    }
}

fn left_out(set: &Set) -> String {
    match set.left_out {
        0 => String::new(),
        left_out => {
            format!(" ({left_out} more left out: not UTF-8, or bare tokenising gives up on them)")
        }
    }
}

fn line(cost: &SideCost) {
    let SideCost {
        side,
        refused,
        speed,
        ratio,
    } = cost;
    let speed_text = format!(
        "{:.0} ({:.0} .. {:.0})",
        speed.median, speed.least, speed.greatest
    );
    let Spread {
        least,
        median,
        greatest,
    } = *ratio;
    let ratio_text = match side {
        Side::Tokens => "1".to_owned(),
        _ => format!("{median:.2} ({least:.2} .. {greatest:.2})"),
    };
    let mut remark = match side {
        Side::Parse => format!(
            "aim {RATIO_MIN:.1}  {}, aim {SPEED_MIN:.0} MB/s  {}",
            met(median >= RATIO_MIN),
            met(speed.median >= SPEED_MIN)
        ),
        _ => String::new(),
    };
    if *refused > 0 {
        remark.push_str(&format!("  {refused} documents refused"));
    }
    println!(
        "{}",
        format!(
            "    {:<47} {speed_text:<18} {ratio_text:<22} {remark}",
            side.name()
        )
        .trim_end()
    );
}

fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}
