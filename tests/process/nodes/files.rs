//! Nodes with different files: what a reader gets of a feed that was added at one node, and what the
//! operator is told at each.

use super::cluster::{Cluster, NODES};
use crate::EVERFEED;
use testkit::{
    place::feed,
    publisher::{Publisher, rss},
};

/// The node that works.
async fn worker(cluster: &Cluster) -> usize {
    for (no, node) in cluster.nodes.iter().enumerate() {
        let status = node.place.run(EVERFEED, &["status"]).all();
        let port = node.place.consumers.port();
        if status.contains(&format!(":{port} polls and pushes")) {
            return no;
        }
    }
    panic!("no node works");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_or_group_just_added_is_not_gone_at_nodes_that_are_not_reloaded() {
    let publisher = Publisher::of(|_| rss(3)).await;
    let old = feed("blog", &publisher.url("/rss.xml"), "");
    let cluster = Cluster::start(&old).await;
    let works = worker(&cluster).await;
    let (other, last) = ((works + 1) % NODES, (works + 2) % NODES);
    let place = |no: usize| &cluster.nodes[no].place;
    for no in 0..NODES {
        place(no).answers("/feeds/blog.json", 200).await;
    }
    let write = |no: usize, more: &str| {
        let text = place(no).read("everfeed.toml");
        place(no).write("everfeed.toml", &format!("{text}\n{more}"));
        let told = place(no).run(EVERFEED, &["reload"]).all();
        assert!(told.contains("added"), "{told}");
    };
    let before = place(works).read("everfeed.toml");
    let more = feed("new", &publisher.url("/new.xml"), "")
        + "[[group]]\nname = \"all\"\nmembers = [\"blog\", \"new\"]\n";
    write(works, &more);
    for name in ["new", "all"] {
        let target = format!("/feeds/{name}.json");
        place(works).answers(&target, 200).await;
        for no in [other, last] {
            place(no).answers(&target, 503).await;
            let answer = place(no).ask(&target).await.unwrap();
            assert_eq!(answer.header("retry-after"), "30");
        }
    }
    // Each node tells of it, whichever is asked.
    let told = async |no: usize, words: &[&str]| {
        let is_told = async || {
            let status = place(no).run(EVERFEED, &["status"]).all();
            // Lines are broken anywhere.
            let status = status.split_whitespace().collect::<Vec<_>>().join(" ");
            words.iter().all(|word| status.contains(word))
        };
        place(no).until("status tells it", is_told).await;
    };
    for no in 0..NODES {
        told(
            no,
            &["lacks 2 feeds that", "all, new", "differs from the file of"],
        )
        .await;
    }
    write(other, &more);
    place(other).answers("/feeds/new.json", 200).await;
    place(last).answers("/feeds/new.json", 503).await;

    // The node that works lacks a feed that another one serves.
    let lost = feed("lost", &publisher.url("/lost.xml"), "");
    let text = place(last).read("everfeed.toml");
    place(last).write("everfeed.toml", &format!("{text}\n{lost}"));
    place(last).run(EVERFEED, &["reload"]);
    place(last).answers("/feeds/lost.json", 503).await;
    told(
        works,
        &["its file lacks 1 feed that", "lost. They are not polled"],
    )
    .await;
    place(works)
        .until("the log tells it", async || {
            place(works)
                .read("log")
                .contains("its file lacks 1 feed that")
        })
        .await;

    // Taken out at the node that works, it is gone.
    place(works).write("everfeed.toml", &before);
    place(works).run(EVERFEED, &["reload"]);
    place(works).answers("/feeds/new.json", 410).await;
    place(last).answers("/feeds/new.json", 410).await;
    place(other).answers("/feeds/new.json", 200).await;
}
