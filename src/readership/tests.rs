use super::*;

fn now() -> Stamp {
    Stamp::from_secs(1_800_000_000)
}

fn request(feed: u32, user_agent: &[u8]) -> FeedRequest<'_> {
    FeedRequest {
        feed: FeedNo(feed),
        user_agent,
        client: Some([192, 0, 2, 1].into()),
        is_conditional: false,
        outcome: Outcome::Answered,
    }
}

#[test]
fn requests_are_counted_by_feed_and_software() {
    let readers = Readership::new(now());
    let feedly = b"Feedly/1.0 (+http://www.feedly.com/fetcher.html; 120 subscribers)";
    for conditional in [true, true, true, false] {
        readers.note(FeedRequest {
            is_conditional: conditional,
            ..request(1, feedly)
        });
    }
    readers.note(request(2, b""));
    let figures = readers.figures(FeedNo(1), now()).unwrap();
    assert_eq!(
        (figures.claimed, figures.day.conditional_percent()),
        (120, Some(75))
    );
    let row = &figures.software[0];
    assert_eq!((&*row.software, row.clients_about), ("Feedly", Some(1)));
    assert_eq!(row.last_seen, now().rfc3339());
    let other = readers.figures(FeedNo(2), now()).unwrap();
    assert_eq!(other.software[0].software, "(no User-Agent)");
    assert_eq!(readers.figures(FeedNo(3), now()), None);
    let asked = readers.asked_for([1, 2, 3].map(FeedNo), now());
    assert_eq!(asked, [FeedNo(1), FeedNo(2)]);
}

#[test]
fn an_address_is_one_bit_and_stands_nowhere() {
    let readers = Readership::default();
    readers.note(request(1, b"curl/8"));
    let told = format!("{readers:?}");
    assert!(
        !told.contains("192.0.2.1") && !told.contains("192, 0, 2, 1"),
        "{told}"
    );
    let figures = serde_json::to_string(&readers.figures(FeedNo(1), now())).unwrap();
    assert!(
        figures.contains("curl") && !figures.contains("192"),
        "{figures}"
    );
}

#[test]
fn a_table_is_bounded_and_what_is_known_is_counted_in_a_flood() {
    let readers = Readership::default();
    readers.note(request(1, b"Feedly/1.0"));
    let long = vec![b'x'; 1 << 20];
    readers.note(request(1, &long));
    for name in 0..100_000 {
        readers.note(request(1, format!("forged{name}").as_bytes()));
    }
    readers.note(request(1, b"Feedly/1.0"));
    let table = lock(&readers.tables[own_table()]);
    assert_eq!(table.pairs, NOTES_PER_TABLE_MAX);
    let longest = table.by_feed[&FeedNo(1)].keys().map(|it| it.len()).max();
    assert_eq!(longest, Some(USER_AGENT_BYTES_MAX));
    drop(table);
    let figures = readers.figures(FeedNo(1), now()).unwrap();
    assert_eq!(figures.day.requests + readers.unattributed(), 100_003);
    assert!(figures.software.len() <= UNKNOWN_SOFTWARE_MAX + 2);
    let feedly = figures.software.iter().find(|row| row.software == "Feedly");
    assert_eq!(feedly.unwrap().day.requests, 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_noted_is_counted_after_a_minute_and_at_once_in_a_flood() {
    let readers = std::sync::Arc::new(Readership::default());
    let stop = CancellationToken::new();
    let task = tokio::spawn({
        let (readers, stop) = (readers.clone(), stop.clone());
        async move { readers.run(now, stop).await }
    });
    let noted = || -> usize { readers.tables.iter().map(|it| lock(it).pairs).sum() };
    readers.note(request(1, b"curl/8"));
    sleep(COUNT_EVERY / 2).await;
    assert_eq!(noted(), 1);
    sleep(COUNT_EVERY).await;
    assert_eq!(noted(), 0);
    for name in 0..NOTES_PER_TABLE_MANY {
        readers.note(request(1, format!("forged{name}").as_bytes()));
    }
    sleep(Duration::from_millis(1)).await;
    assert_eq!(noted(), 0);
    stop.cancel();
    task.await.unwrap();
}
