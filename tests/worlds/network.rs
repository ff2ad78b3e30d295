//! The ways between everfeed and others: to publishers, to callbacks, and from consumers; and what
//! happens to requests and answers on them.

use super::{publisher::Page, world::World};
use bytes::Bytes;
use everfeed::layers::{self, ConnectFault, FetchError, error::CutFault};
use futures_util::future::BoxFuture;
use http::{Response, header};
use http_body_util::{BodyExt as _, Full};
use sha2::{Digest as _, Sha256};
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;

/// The fate of a request and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Well,
    /// It never arrives.
    Lost,
    /// It is acted on, and its answer is lost.
    AnswerLost,
    /// It arrives twice.
    Doubled,
    /// It arrives late.
    Late,
}

impl Fate {
    /// The fate of a request on this way.
    pub(crate) fn of(world: &World, way: &str) -> Self {
        let share = world.plan.trouble;
        if !world.is_troubled(way, share) {
            return Self::Well;
        }
        let fates = [Self::Lost, Self::AnswerLost, Self::Doubled, Self::Late];
        world.draw(way, |chance| *chance.pick(&fates))
    }
}

/// Waits as long as a request takes on this way.
pub(crate) async fn travel(world: &World, way: &str, fate: Fate) {
    let ms = world.draw(way, |chance| chance.within(5, 300));
    sleep(Duration::from_millis(ms)).await;
    if fate == Fate::Late {
        let ms = world.draw(way, |chance| chance.within(1000, 20_000));
        sleep(Duration::from_millis(ms)).await;
    }
}

/// A connection that is broken.
pub(crate) fn broken() -> FetchError {
    FetchError::Cut(CutFault::Unanswered, "reset".into())
}

/// The way to publishers.
pub(crate) fn to_publishers(world: &Arc<World>) -> impl layers::Exchange + Sync + use<> {
    let world = world.clone();
    tower::service_fn(move |request: layers::Request| {
        let world = world.clone();
        Box::pin(async move { fetched(&world, &request).await })
            as BoxFuture<'static, Result<layers::Reply, FetchError>>
    })
}

async fn fetched(
    world: &Arc<World>,
    request: &layers::Request,
) -> Result<layers::Reply, FetchError> {
    let host = request.uri().host().unwrap_or_default().to_owned();
    let path = request.uri().path().to_owned();
    let way = format!("to {host}");
    world.point("before a request to a publisher").await;
    let fate = Fate::of(world, &way);
    travel(world, &way, fate).await;
    let is_out = {
        let state = world.state();
        let no = host
            .strip_prefix("blog")
            .and_then(|rest| rest.split('.').next()?.parse().ok());
        let publisher = no.and_then(|no: usize| state.publishers.get(&no));
        publisher
            .is_none_or(|publisher| state.elapsed().as_millis() < publisher.out_until_ms.into())
    };
    let outcome = match fate {
        Fate::Lost => Err(FetchError::Connect(ConnectFault::Refused, "refused".into())),
        Fate::AnswerLost => Err(broken()),
        _ if is_out => Ok(plain(500)),
        _ => Ok(answered(world, &host, &path, request)),
    };
    let told = match &outcome {
        Ok(reply) => reply.status().to_string(),
        Err(error) => error.to_string(),
    };
    let line = format!("{host} is asked for {path}: {told}");
    if told.starts_with("304") {
        world.trace_aside(&line);
    } else {
        world.trace(&line);
    }
    world.point("behind an answer of a publisher").await;
    outcome
}

fn answered(world: &World, host: &str, path: &str, request: &layers::Request) -> layers::Reply {
    let state = world.state();
    let no = host
        .strip_prefix("blog")
        .and_then(|rest| rest.split('.').next()?.parse().ok());
    let Some(publisher) = no.and_then(|no: usize| state.publishers.get(&no)) else {
        return plain(404);
    };
    let Page {
        status,
        media_type,
        body,
    } = publisher.answer(path, &state.publishers);
    let tag = format!("\"{}\"", hex::encode(&Sha256::digest(&body)[..8]));
    let held = request.headers().get(header::IF_NONE_MATCH);
    let is_held = status == 200 && held.is_some_and(|held| held.as_bytes() == tag.as_bytes());
    let reply = Response::builder()
        .header(header::CONTENT_TYPE, media_type)
        .header(header::ETAG, tag);
    if is_held {
        return reply.status(304).body(whole(String::new())).unwrap();
    }
    reply.status(status).body(whole(body)).unwrap()
}

fn plain(status: u16) -> layers::Reply {
    Response::builder()
        .status(status)
        .body(whole(String::new()))
        .unwrap()
}

fn whole(text: String) -> layers::Body {
    Full::new(Bytes::from(text))
        .map_err(|never| match never {})
        .boxed_unsync()
}
