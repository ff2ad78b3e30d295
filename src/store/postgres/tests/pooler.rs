//! Two nodes behind pgbouncer in transaction mode, where no two transactions are on one connection
//! and no notification passes.

use super::{
    clock,
    nodes::{ToldMoves, duty, works},
};
use crate::store::{
    CatalogStore as _, Duty, Feeds as _, Upkeep as _, WakeMode, Watched as _,
    conformance::{
        postgres_server::open_node,
        rig::{NAMESPACE, add, commit},
    },
    database_url::DatabaseUrl,
};
use bytes::Bytes;
use std::time::Duration;
use testkit::postgres::{Pooler, PostgresServer};

#[tokio::test]
async fn two_nodes_behind_a_pooler_work_by_turns_and_learn_what_moved() {
    let server = PostgresServer::start();
    let pooler = Pooler::before(&server);
    let url = DatabaseUrl::new(pooler.url());
    let node = || open_node(&url, clock(), WakeMode::Poll);
    let (first, second) = (node(), node());
    assert_eq!(
        (duty(&first), duty(&second)),
        (Duty::Working, Duty::Following)
    );
    let mut told = ToldMoves::of(&second);
    let mut record = first.register("blog", NAMESPACE).await.unwrap();
    for n in 1..4 {
        let committed = first.commit(commit(&record, vec![add(n)])).await;
        record = committed.unwrap().feed;
        told.comes_to(record.no, &first).await;
    }
    let mut questions = first.nodes().unwrap().take_questions().unwrap();
    let answering = tokio::spawn(async move {
        let question = questions.recv().await.unwrap();
        question.answer.send(question.words).unwrap();
    });
    let asked = Bytes::from_static(b"who works?");
    let nodes = second.nodes().unwrap();
    let answer = nodes.ask(asked.clone(), Duration::from_secs(20)).await;
    assert_eq!(answer.unwrap(), asked);
    answering.await.unwrap();
    first.close().await.unwrap();
    works(&second).await;
    let committed = second.commit(commit(&record, vec![add(4)])).await;
    assert_eq!(committed.unwrap().feed.items.total, 4);
}
