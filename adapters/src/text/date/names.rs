//! Names of months, weekdays and zones, in lower case; not how dates are put together.

/// The beginnings of months' names in the languages in which feeds have been seen: English, German,
/// French, Spanish, Italian, Portuguese, Dutch, Hungarian, Greek, Russian.
static MONTHS: &[(u32, &[&str])] = &[
    (1, &["jan", "jän", "ene", "gen", "ιαν", "янв"]),
    (2, &["feb", "fév", "fev", "φεβ", "фев"]),
    (
        3,
        &[
            "mar", "mär", "mrz", "mrt", "maa", "már", "μάρ", "μαρ", "μάώ", "μαώ", "мар",
        ],
    ),
    (4, &["apr", "abr", "avr", "ápr", "απρ", "апр"]),
    (
        5,
        &[
            "may", "mai", "mei", "mag", "maj", "máj", "μάι", "μαϊ", "μαι", "май", "мая",
        ],
    ),
    (
        6,
        &["jun", "juin", "giu", "jún", "ιούν", "ιον", "ιουν", "июн"],
    ),
    (
        7,
        &["jul", "juil", "lug", "júl", "ιούλ", "ιολ", "ιουλ", "июл"],
    ),
    (8, &["aug", "ago", "aoû", "aou", "αύγ", "αυγ", "авг"]),
    (9, &["sep", "set", "sze", "σεπ", "сен"]),
    (10, &["oct", "okt", "ott", "out", "οκτ", "окт"]),
    (11, &["nov", "νοέ", "νοε", "ноя"]),
    (12, &["dec", "dez", "dic", "déc", "δεκ", "дек"]),
];

/// The month that a word names, 1 to 12.
pub(super) fn month(word: &str) -> Option<u32> {
    if !word.trim_end_matches('.').chars().all(char::is_alphabetic) {
        return None;
    }
    let (month, _) = MONTHS
        .iter()
        .find(|(_, names)| names.iter().any(|name| word.starts_with(name)))?;
    Some(*month)
}

/// True for an English weekday.
pub(super) fn is_weekday(word: &str) -> bool {
    const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    DAYS.iter().any(|day| word.starts_with(day))
}

/// Seconds east of Greenwich. Names that mean several zones (IST) or one letter (military, RFC 5322
/// section 4.3) are left out; those of North America are RFC 822's.
pub(super) fn zone(name: &str) -> Option<i64> {
    let minutes = match name.trim_end_matches('.') {
        "gmt" | "ut" | "utc" | "z" | "wet" => 0,
        "bst" | "cet" | "met" | "mez" | "west" => 60,
        "cest" | "mest" | "mesz" | "eet" => 120,
        "eest" | "msk" => 180,
        "msd" => 240,
        "sgt" | "hkt" | "awst" => 480,
        "jst" | "kst" => 540,
        "acst" => 570,
        "aest" => 600,
        "acdt" => 630,
        "aedt" => 660,
        "nzst" => 720,
        "nzdt" => 780,
        "ndt" => -150,
        "adt" => -180,
        "nst" => -210,
        "ast" | "at" | "edt" => -240,
        "est" | "et" | "cdt" => -300,
        "cst" | "ct" | "mdt" => -360,
        "mst" | "mt" | "pdt" => -420,
        "pst" | "pt" | "akdt" => -480,
        "akst" => -540,
        "hst" => -600,
        _ => return None,
    };
    Some(minutes * 60)
}
