//! Every date of the vectors, and of the collection that came with the corpus.

use everfeed_adapters::text::date::parse;

use testkit::data::{json, section, vendored};

/// LEGACY section 4: the instants are our decisions.
#[test]
fn every_date_vector_means_what_it_says() {
    let dates = section("dates");
    assert_eq!(dates.len(), 133);
    let mut wrong = Vec::new();
    for vector in &dates {
        let raw = vector["raw"].as_str().unwrap();
        let expect = vector["expect"].as_str().map(|text| {
            text.parse::<chrono::DateTime<chrono::Utc>>()
                .unwrap()
                .timestamp_micros()
        });
        if parse(raw) != expect {
            wrong.push((raw, expect, parse(raw)));
        }
    }
    assert!(wrong.is_empty(), "{} wrong: {wrong:#?}", wrong.len());
}

#[test]
fn every_date_of_the_corpus_means_what_it_says() {
    let corpus = json(&vendored("vectors/dates.json"));
    let wrong: Vec<_> = corpus["dates"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|date| {
            let epoch = date["epoch"].as_i64().unwrap();
            parse(date["text"].as_str().unwrap()).map(|us| us.div_euclid(1_000_000)) != Some(epoch)
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
