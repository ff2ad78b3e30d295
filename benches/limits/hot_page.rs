//! Question 1: a page that everybody asks for. everfeed's whole server against a bare one with the
//! same bytes.

use crate::{
    bare::Bare,
    house::{NAME, PollerRig},
    load::{Answer, Load, get, load},
    report::{Aim, Report},
    rounds::{Spread, compare},
};
use anyhow::Result;
use bytes::Bytes;
use everfeed::{
    feed::{order::Order, view::View},
    readers::{Coding, ReadRequest},
    render::Representation,
    threads::ServingThreads,
};
use std::{cell::RefCell, net::SocketAddr, time::Duration};
use tokio::runtime::Handle;

const CONNECTIONS: usize = 32;
const ROUNDS: usize = 9;
const ROUND: Duration = Duration::from_millis(400);
const PAGE_ITEMS: usize = 50;

pub(crate) async fn ask(report: &Report, askers: &Handle) -> Result<()> {
    report.question(
        "(1) Hot page of 50 items of 2 KB",
        &format!("everfeed's server / bare hyper server with the same bytes; loopback, {CONNECTIONS} connections kept alive"),
    );
    let (house, _) = PollerRig::new(1_000).await?;
    let served = house.serve().await?;
    let view = View::all(house.feed(), Order::MODIFIED);
    let reading = ReadRequest::page(view, Representation::ATOM, "", "", PAGE_ITEMS)?;
    let page = house.readers()?.read(&reading).await?;
    for (coding, headers, aim) in [
        (Coding::Identity, "", Aim::AtLeast(0.7)),
        (Coding::Gzip, "accept-encoding: gzip\r\n", Aim::None),
    ] {
        let body = page.coded(coding).await;
        let name = coding.token().unwrap_or("identity");
        let what = format!("{name}, {} KB", body.len() / 1000);
        let content_type = Representation::ATOM.content_type();
        let bare = Bare::serve(content_type, body.clone()).await?;
        let (wall, cpu) = contest(askers, (served.address, bare), &body, headers).await?;
        report.ratio(format!("{what}: answers a second"), wall, aim);
        report.ratio(
            format!("{what}: answers a second of server CPU"),
            cpu,
            Aim::None,
        );
        let bare = Bare::serve_on(ServingThreads::start()?, content_type, body.clone()).await?;
        let (wall, _) = contest(askers, (served.address, bare), &body, headers).await?;
        report.ratio(
            format!("{what}: the bare one on threads like ours"),
            wall,
            Aim::None,
        );
    }
    Ok(())
}

/// Ratios of answers a second, and of answers for a second of the server's processor time.
async fn contest(
    askers: &Handle,
    (everfeed, bare): (SocketAddr, Bare),
    body: &Bytes,
    headers: &str,
) -> Result<(Spread, Spread)> {
    let expect = Answer {
        status: 200,
        body_bytes: body.len(),
    };
    let request = get(&format!("/feeds/{NAME}.atom"), headers);
    let one =
        async |address| load(askers, address, request.clone(), expect, CONNECTIONS, ROUND).await;
    let cpu_of = |load: &Load| load.server_cpu_secs / load.answers as f64;
    let cpu = RefCell::new((Vec::new(), Vec::new()));
    let wall = compare(
        ROUNDS,
        async |_| {
            let load = one(everfeed).await?;
            cpu.borrow_mut().0.push(cpu_of(&load));
            Ok(load.secs / load.answers as f64)
        },
        async |_| {
            let load = one(bare.address).await?;
            cpu.borrow_mut().1.push(cpu_of(&load));
            Ok(load.secs / load.answers as f64)
        },
    )
    .await?;
    let (ours, limit) = cpu.into_inner();
    let ratios = ours
        .iter()
        .zip(&limit)
        .skip(1)
        .map(|(ours, limit)| limit / ours);
    Ok((wall, Spread::of(ratios.collect())))
}
