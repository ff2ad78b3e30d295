//! A request and its answer in words that go through the store, from the process that got the one to
//! the process that makes the other; not the way.

use crate::auth::{PrincipalId, TokenNo, UserNo};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The part of everfeed for which a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::app) enum RelayTarget {
    /// The hub.
    Hub,
    /// The operator's listener.
    Operator,
    /// A look at the origin of an old feed.
    Look,
    /// A callback at which a hub tells of a feed.
    Callback {
        /// False where its body was not read to its end.
        is_whole: bool,
    },
}

/// A request, with what the process that got it knows of its sender.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::app) struct RelayRequest {
    pub(in crate::app) door: RelayTarget,
    /// The address of the sender, as far as it is known.
    pub(in crate::app) client: Option<IpAddr>,
    /// The user and the token by which the sender is known.
    sender: Option<(u64, Option<u64>)>,
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: String,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

/// The fields that are text. No other one means anything to us.
fn fields(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |(name, value): (&HeaderName, &HeaderValue)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    };
    headers.iter().filter_map(text).collect()
}

fn put_fields(headers: &mut HeaderMap, fields: &[(String, String)]) {
    for (name, value) in fields {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.append(name, value);
        }
    }
}

impl RelayRequest {
    pub(in crate::app) fn of(
        door: RelayTarget,
        request: &Request<Bytes>,
        client: Option<IpAddr>,
        sender: Option<PrincipalId>,
    ) -> Self {
        let mut headers = request.headers().clone();
        // Whoever sent it was known by them before.
        headers.remove(http::header::AUTHORIZATION);
        Self {
            door,
            client,
            sender: sender.map(|id| (id.user.0, id.token.map(|token| token.0))),
            method: request.method().to_string(),
            target: request.uri().to_string(),
            headers: fields(&headers),
            body: STANDARD.encode(request.body()),
        }
    }

    /// The sender, if it is known.
    pub(in crate::app) fn sender(&self) -> Option<PrincipalId> {
        let (user, token) = self.sender?;
        Some(PrincipalId {
            user: UserNo(user),
            token: token.map(TokenNo),
        })
    }

    pub(in crate::app) fn words(&self) -> Bytes {
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// A letter that was read; `None` for one of a version that this one does not know.
    pub(in crate::app) fn read(words: &[u8]) -> Option<Self> {
        serde_json::from_slice(words).ok()
    }

    /// The request in it.
    pub(in crate::app) fn request(&self) -> Option<Request<Bytes>> {
        let mut request = Request::builder()
            .method(self.method.as_str())
            .uri(&self.target)
            .body(Bytes::from(STANDARD.decode(&self.body).ok()?))
            .ok()?;
        put_fields(request.headers_mut(), &self.headers);
        Some(request)
    }
}

/// The words of an answer.
pub(in crate::app) fn reply_words(answer: &Response<Bytes>) -> Bytes {
    let reply = Reply {
        status: answer.status().as_u16(),
        headers: fields(answer.headers()),
        body: STANDARD.encode(answer.body()),
    };
    serde_json::to_vec(&reply).unwrap_or_default().into()
}

/// The answer in these words; `None` where they are of a version that this one does not know.
pub(in crate::app) fn read_reply(words: &[u8]) -> Option<Response<Bytes>> {
    let reply: Reply = serde_json::from_slice(words).ok()?;
    let body = STANDARD.decode(&reply.body).ok()?;
    let built = Response::builder().status(reply.status);
    let mut answer = built.body(Bytes::from(body)).ok()?;
    put_fields(answer.headers_mut(), &reply.headers);
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_and_its_answer_come_through_as_they_were_without_credentials() {
        let request = Request::post("/feeds/blog/hub?a=%C3%A4")
            .header("content-type", "application/x-www-form-urlencoded")
            .header("authorization", "Bearer secret")
            .body(Bytes::from_static(b"hub.mode=subscribe\xff"))
            .unwrap();
        let id = PrincipalId {
            user: UserNo(7),
            token: Some(TokenNo(9)),
        };
        let letter = RelayRequest::of(
            RelayTarget::Hub,
            &request,
            Some([127, 0, 0, 1].into()),
            Some(id),
        );
        let words = letter.words();
        assert!(!String::from_utf8_lossy(&words).contains("secret"));
        let read = RelayRequest::read(&words).unwrap();
        assert_eq!((&read, read.sender()), (&letter, Some(id)));
        let again = read.request().unwrap();
        assert_eq!(
            (again.method(), again.uri(), again.body()),
            (request.method(), request.uri(), request.body())
        );
        assert_eq!(
            again.headers()["content-type"],
            request.headers()["content-type"]
        );
        let answer = Response::builder()
            .status(202)
            .header("link", "<x>; rel=hub")
            .body(Bytes::from_static(b"accepted"))
            .unwrap();
        let read = read_reply(&reply_words(&answer)).unwrap();
        assert_eq!(
            (read.status(), read.body()),
            (answer.status(), answer.body())
        );
        assert_eq!(read.headers(), answer.headers());
    }

    #[test]
    fn words_of_another_version_are_not_guessed() {
        assert!(RelayRequest::read(b"{\"door\":\"Cellar\"}").is_none());
        assert!(read_reply(b"{}").is_none());
    }
}
