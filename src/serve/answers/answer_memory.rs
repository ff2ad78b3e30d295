//! The memory of answers: the heads of those that everybody gets who asks the same, each with the
//! way to its body; not how they are made, nor when they end to be right.

use crate::{
    edge::body::{self, Response},
    layers::CDN_LOOP,
};
use bytes::Bytes;
use futures_util::future::{BoxFuture, Either};
use http::{
    Extensions, HeaderMap, HeaderName, Method, Request, StatusCode,
    header::{
        ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, HOST, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH,
        IF_UNMODIFIED_SINCE, RANGE,
    },
};
use moka::sync::Cache;
use std::{
    convert::Infallible,
    fmt,
    future::{Ready, ready},
    sync::Arc,
    task::{Context, Poll},
};
use tower::{Layer, Service};

/// Bytes of heads, and of the requests that they answer, that are kept at most.
const MEMORY_BYTES: u64 = 8 << 20;
/// Bytes of a request beyond which its answer is not kept.
const QUESTION_BYTES_MAX: usize = 2 << 10;
/// Bytes that a head takes, about; its headers are a dozen.
const HEAD_BYTES: usize = 3 << 10;

/// Headers of a request on which a repeatable answer may depend, beside its target.
const DECIDING: [HeaderName; 5] = [
    HOST,
    ACCEPT,
    ACCEPT_ENCODING,
    IF_NONE_MATCH,
    IF_MODIFIED_SINCE,
];
/// Headers of requests that always reach the handlers: they may change an answer in other ways.
/// Their answers are not kept.
const PASSING: [HeaderName; 7] = [
    AUTHORIZATION,
    CDN_LOOP,
    HeaderName::from_static("x-wsse"),
    HeaderName::from_static("a-im"),
    RANGE,
    IF_MATCH,
    IF_UNMODIFIED_SINCE,
];

/// Parameters of requests whose answers are for one reader alone.
const PERSONAL: [&str; 3] = ["since=", "until=", "timeout="];

/// Mark of an answer, as an extension, that everybody gets who sends the same question, as long as
/// it still gives the body.
#[derive(Clone)]
pub(crate) struct Repeatable {
    body: Arc<dyn Fn() -> Option<Bytes> + Send + Sync>,
    note: Option<Arc<RepeatNote>>,
}

/// Notes the sender of a request that gets an answer again, by its headers and its extensions.
type RepeatNote = dyn Fn(&HeaderMap, &Extensions) + Send + Sync;

impl Repeatable {
    /// A mark with the way to the body; `None` ends it: the answer may be another one now, or its
    /// body is not at hand.
    pub(crate) fn new(body: impl Fn() -> Option<Bytes> + Send + Sync + 'static) -> Self {
        Self {
            body: Arc::new(body),
            note: None,
        }
    }

    /// The same, which notes the sender of each request that gets the answer again.
    #[must_use]
    pub(crate) fn noting(
        self,
        note: impl Fn(&HeaderMap, &Extensions) + Send + Sync + 'static,
    ) -> Self {
        Self {
            note: Some(Arc::new(note)),
            ..self
        }
    }
}

impl fmt::Debug for Repeatable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repeatable").finish_non_exhaustive()
    }
}

/// The part of a request that decides on a repeatable answer: its target, and the headers that may
/// change it.
type MemoryKey = Box<[u8]>;

// Decides: Which answers are given again without being made?
/// The question of a request; `None` for one whose answer is not kept: by its method, its headers
/// or parameters, or because it is too long.
fn question<B>(request: &Request<B>) -> Option<MemoryKey> {
    let headers = request.headers();
    if request.method() != Method::GET || PASSING.iter().any(|name| headers.contains_key(name)) {
        return None;
    }
    let uri = request.uri();
    if uri
        .query()
        .is_some_and(|query| PERSONAL.iter().any(|name| query.contains(name)))
    {
        return None;
    }
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let target = uri.path_and_query().map_or("", |target| target.as_str());
    let mut question = Vec::with_capacity(QUESTION_BYTES_MAX / 8);
    // NUL stands in no target and in no header.
    for part in [authority, "\0", target] {
        question.extend_from_slice(part.as_bytes());
    }
    for name in &DECIDING {
        question.push(0);
        for value in headers.get_all(name) {
            question.extend_from_slice(value.as_bytes());
            question.push(b'\n');
        }
    }
    (question.len() <= QUESTION_BYTES_MAX).then(|| question.into_boxed_slice())
}

/// An answer without its body.
#[derive(Clone, Debug)]
struct KeptAnswer {
    status: StatusCode,
    headers: Arc<HeaderMap>,
    body: Repeatable,
}

impl KeptAnswer {
    /// The answer to the same request of somebody else, if it is still right.
    fn again<B>(&self, request: &Request<B>) -> Option<Response> {
        let body = (self.body.body)()?;
        if let Some(note) = &self.body.note {
            note(request.headers(), request.extensions());
        }
        let mut response = Response::new(body::whole(body));
        *response.status_mut() = self.status;
        *response.headers_mut() = HeaderMap::clone(&self.headers);
        Some(response)
    }
}

/// A layer that gives repeatable answers again, before anything behind it is asked.
#[derive(Clone, Debug)]
pub(crate) struct AnswerMemory(Arc<Cache<MemoryKey, KeptAnswer>>);

impl Default for AnswerMemory {
    fn default() -> Self {
        let weigh = |question: &MemoryKey, _: &KeptAnswer| {
            u32::try_from(question.len() + HEAD_BYTES).unwrap_or(u32::MAX)
        };
        Self(Arc::new(
            Cache::builder()
                .weigher(weigh)
                .max_capacity(MEMORY_BYTES)
                .build(),
        ))
    }
}

impl AnswerMemory {
    /// Keeps an answer that is marked.
    fn keep(&self, question: MemoryKey, answer: &mut Response) {
        if let Some(body) = answer.extensions_mut().remove::<Repeatable>() {
            let headers = Arc::new(answer.headers().clone());
            self.0.insert(
                question,
                KeptAnswer {
                    status: answer.status(),
                    headers,
                    body,
                },
            );
        }
    }
}

impl<S> Layer<S> for AnswerMemory {
    type Service = Remembering<S>;

    fn layer(&self, inner: S) -> Remembering<S> {
        Remembering {
            inner,
            memory: self.clone(),
        }
    }
}

/// An answer that is kept, if it is marked, before it is given.
type AnswerToKeep = BoxFuture<'static, Result<Response, Infallible>>;

/// A service behind a memory of its answers.
#[derive(Clone, Debug)]
pub(crate) struct Remembering<S> {
    inner: S,
    memory: AnswerMemory,
}

impl<S, B> Service<Request<B>> for Remembering<S>
where
    S: Service<Request<B>, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Either<Either<Ready<Result<Response, Infallible>>, S::Future>, AnswerToKeep>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Some(question) = question(&request) else {
            return Either::Left(Either::Right(self.inner.call(request)));
        };
        let known = self.memory.0.get(&question);
        if let Some(answer) = known.and_then(|known| known.again(&request)) {
            return Either::Left(Either::Left(ready(Ok(answer))));
        }
        let (memory, answer) = (self.memory.clone(), self.inner.call(request));
        Either::Right(Box::pin(async move {
            let mut answer = answer.await?;
            memory.keep(question, &mut answer);
            Ok(answer)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderValue, header::VARY};
    use http_body_util::{BodyExt as _, Empty};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
    use tower::ServiceExt as _;

    /// A memory before a service whose answers are told apart by their number, and are right while
    /// `holds`.
    struct MemoryRig {
        asked: Arc<AtomicUsize>,
        holds: Arc<AtomicBool>,
        memory: AnswerMemory,
    }

    impl MemoryRig {
        fn new() -> Self {
            let holds = Arc::new(AtomicBool::new(true));
            Self {
                asked: Arc::default(),
                holds,
                memory: AnswerMemory::default(),
            }
        }

        /// The number of the answer to a request.
        async fn ask(&self, request: http::request::Builder) -> usize {
            let (asked, holds) = (self.asked.clone(), self.holds.clone());
            let numbered = tower::service_fn(move |_: Request<Empty<Bytes>>| {
                let number = asked.fetch_add(1, Relaxed);
                let holds = holds.clone();
                let body = move || holds.load(Relaxed).then(|| Bytes::from(number.to_string()));
                let mut answer = Response::new(body::whole(number.to_string()));
                answer.headers_mut().insert(VARY, HeaderValue::from(number));
                answer.extensions_mut().insert(Repeatable::new(body));
                std::future::ready(Ok::<_, Infallible>(answer))
            });
            let answer = self
                .memory
                .layer(numbered)
                .oneshot(request.body(Empty::new()).unwrap())
                .await;
            let answer = answer.unwrap_or_else(|never| match never {});
            let said = answer.headers()[VARY].to_str().unwrap().parse().unwrap();
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(
                body,
                Bytes::from(usize::to_string(&said)),
                "head and body belong together"
            );
            said
        }
    }

    #[tokio::test]
    async fn the_same_question_gets_the_same_answer_until_it_is_not_right_any_more() {
        let rig = MemoryRig::new();
        let question = || Request::get("http://a.example/x?y").header("accept", "text/html");
        assert_eq!(
            [rig.ask(question()).await, rig.ask(question()).await],
            [0, 0]
        );
        let idle = question()
            .header("user-agent", "other")
            .header("cookie", "k=v");
        assert_eq!(
            rig.ask(idle).await,
            0,
            "nothing that does not decide is looked at"
        );
        rig.holds.store(false, Relaxed);
        assert_eq!(
            [rig.ask(question()).await, rig.ask(question()).await],
            [1, 2]
        );
        rig.holds.store(true, Relaxed);
        assert_eq!(rig.ask(question()).await, 2);
    }

    #[tokio::test]
    async fn questions_that_differ_in_anything_that_decides_are_not_one() {
        let rig = MemoryRig::new();
        let mut questions: Vec<fn() -> http::request::Builder> = vec![
            || Request::get("/x"),
            || Request::get("/x?"),
            || Request::get("http://b.example/x"),
            || Request::get("/x").header("host", "a.example"),
            || Request::get("/x").header("accept", "a.example"),
            || {
                Request::get("/x")
                    .header("accept", "a")
                    .header("accept", "b")
            },
            || Request::get("/x").header("accept", "ab"),
            || Request::get("/x").header("accept-encoding", "gzip"),
            || Request::get("/x").header("if-none-match", "gzip"),
            || Request::get("/x").header("if-modified-since", "gzip"),
        ];
        for (number, question) in questions.iter().enumerate() {
            assert_eq!(rig.ask(question()).await, number);
        }
        questions.reverse();
        for (number, question) in questions.iter().rev().enumerate() {
            assert_eq!(rig.ask(question()).await, number);
        }
    }

    #[tokio::test]
    async fn whoever_has_more_to_say_is_always_heard() {
        let rig = MemoryRig::new();
        let long = "x".repeat(QUESTION_BYTES_MAX);
        let heard: [&dyn Fn() -> http::request::Builder; 10] = [
            &|| Request::head("/x"),
            &|| Request::get("/x?max=1&since=cursor:"),
            &|| Request::get("/x?timeout=0"),
            &|| Request::get("/x").header("authorization", "Bearer t"),
            &|| Request::get("/x").header("x-wsse", "t"),
            &|| Request::get("/x").header("a-im", "feed"),
            &|| Request::get("/x").header("range", "bytes=0-1"),
            &|| Request::get("/x").header("if-match", "*"),
            &|| Request::get("/x").header("if-unmodified-since", "x"),
            &|| Request::get("/x").header("accept", &long),
        ];
        let mut number = 0;
        for question in heard {
            assert_eq!(
                [rig.ask(question()).await, rig.ask(question()).await],
                [number, number + 1]
            );
            number += 2;
        }
    }
}
