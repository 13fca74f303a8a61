//! Serves HTTP/1.1: one POST per request, one JSON body or a stream of events per answer.

use std::{borrow::Cow, convert::Infallible, io, net::Ipv4Addr, rc::Rc};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Either, Full};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    body::{Body, Incoming},
    header::{CONTENT_TYPE, HeaderValue, ORIGIN},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, runtime, task::LocalSet};

use crate::{
    message::{Message, Refusal, write_refusal},
    parts::Parts,
    tools::Tools,
};

const LARGEST_BODY: usize = 4 * 1024 * 1024;

type Answer = Response<Either<Full<Bytes>, Parts>>;

/// Serves on the loopback interface until killed.
pub(crate) fn serve(port: u16, tools: Tools) -> io::Result<()> {
    let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
    LocalSet::new().block_on(&runtime, accept(port, Rc::new(tools)))
}

#[expect(clippy::print_stdout, reason = "the load generator waits for this line")]
async fn accept(port: u16, tools: Rc<Tools>) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    println!("listening on {}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let tools = Rc::clone(&tools);
        tokio::task::spawn_local(async move {
            let service = service_fn(|request| respond(&tools, request));
            // A connection that breaks concerns no other.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn respond(tools: &Tools, request: Request<Incoming>) -> Result<Answer, Infallible> {
    if request.uri().path() != "/mcp" {
        return Ok(empty(StatusCode::NOT_FOUND));
    }
    if request.method() != Method::POST {
        return Ok(empty(StatusCode::METHOD_NOT_ALLOWED));
    }
    if request.headers().get(ORIGIN).is_some_and(|origin| !is_loopback(origin.as_bytes())) {
        return Ok(empty(StatusCode::FORBIDDEN));
    }
    if !request.headers().get(CONTENT_TYPE).is_some_and(|value| is_json(value.as_bytes())) {
        return Ok(empty(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    let (head, body) = request.into_parts();
    let Some(body) = read(body).await else {
        return Ok(empty(StatusCode::PAYLOAD_TOO_LARGE));
    };
    Ok(answer(tools, &head.headers, &body))
}

fn answer(tools: &Tools, headers: &HeaderMap, body: &[u8]) -> Answer {
    let mut out = Vec::new();
    let (id, answered) = match Message::parse(body) {
        Ok(message) => match message.id() {
            Some(id) => (Some(id), checked(tools, headers, &message, id, &mut out)),
            None => return empty(StatusCode::ACCEPTED),
        },
        Err(refusal) => (None, Err(refusal)),
    };
    if let (Some(id), Ok(Form::Parts)) = (id, &answered) {
        let mut response = Response::new(Either::Right(Parts::new(id)));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        return response;
    }
    let mut status = StatusCode::OK;
    if let Err(refusal) = answered {
        out.clear();
        write_refusal(&mut out, id, &refusal);
        status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    }
    let mut response = Response::new(Either::Left(Full::new(Bytes::from(out))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Form of an answer.
enum Form {
    Whole,
    Parts,
}

fn checked(
    tools: &Tools,
    headers: &HeaderMap,
    message: &Message<'_>,
    id: &str,
    out: &mut Vec<u8>,
) -> Result<Form, Refusal> {
    let version = message.declared_version()?;
    mirrors(headers, "mcp-protocol-version", version)?;
    Message::require_revision(version)?;
    mirrors(headers, "mcp-method", &message.method.0)?;
    if message.method.0 == "tools/call" {
        let name = message.params.as_ref().and_then(|params| params.name.as_ref());
        let name = name.ok_or(Refusal::new(400, -32602, "tools/call needs a name"))?;
        mirrors(headers, "mcp-name", &name.0)?;
    }
    if tools.answers_in_parts(message) {
        return Ok(Form::Parts);
    }
    tools.answer(out, message, id).map(|()| Form::Whole)
}

/// Requires the header to say what the body says, in plain text or in the Base64 sentinel format.
fn mirrors(headers: &HeaderMap, header: &'static str, expected: &str) -> Result<(), Refusal> {
    const MISMATCH: Refusal =
        Refusal::new(400, -32020, "a mirrored header is missing or differs from the body");
    let value = headers.get(header).ok_or(MISMATCH)?.as_bytes();
    let encoded = value.strip_prefix(b"=?base64?").and_then(|rest| rest.strip_suffix(b"?="));
    // Only the name may be encoded; the version and the method are always plain.
    let value = match encoded {
        Some(encoded) if header == "mcp-name" => {
            Cow::Owned(BASE64_STANDARD.decode(encoded).map_err(|_| MISMATCH)?)
        }
        _ => Cow::Borrowed(value),
    };
    if *value == *expected.as_bytes() { Ok(()) } else { Err(MISMATCH) }
}

/// Reads the body, without a copy if it comes in one piece. `None` if it is too large or breaks off.
async fn read(mut body: Incoming) -> Option<Bytes> {
    let first = body.frame().await?.ok()?.into_data().ok()?;
    if body.is_end_stream() {
        return (first.len() <= LARGEST_BODY).then_some(first);
    }
    let mut whole = BytesMut::from(first);
    while whole.len() <= LARGEST_BODY {
        match body.frame().await {
            None => return Some(whole.freeze()),
            Some(frame) => {
                if let Ok(data) = frame.ok()?.into_data() {
                    whole.extend_from_slice(&data);
                }
            }
        }
    }
    None
}

fn is_json(value: &[u8]) -> bool {
    let essence = value.split(|&byte| byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

fn is_loopback(origin: &[u8]) -> bool {
    let authority = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    authority.is_some_and(|authority| {
        [&b"localhost"[..], b"127.0.0.1", b"[::1]"].iter().any(|host| {
            let rest = authority.strip_prefix(*host);
            rest.is_some_and(|rest| match rest {
                [] => true,
                [b':', port @ ..] => port.iter().all(u8::is_ascii_digit),
                _ => false,
            })
        })
    })
}

fn empty(status: StatusCode) -> Answer {
    let mut response = Response::new(Either::Left(Full::new(Bytes::new())));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admits_origins_on_this_machine_only() {
        for origin in ["http://localhost", "https://localhost:8443", "http://127.0.0.1:3000", "http://[::1]"]
        {
            assert!(is_loopback(origin.as_bytes()), "{origin}");
        }
        for origin in ["null", "http://evil.example", "http://localhost.evil.example", "http://127.0.0.1:x"] {
            assert!(!is_loopback(origin.as_bytes()), "{origin}");
        }
    }

    #[test]
    fn compares_a_header_in_plain_text_or_decoded() {
        let mut headers = HeaderMap::new();
        assert!(mirrors(&headers, "mcp-name", "echo").is_err());
        headers.insert("mcp-name", HeaderValue::from_static("echo"));
        assert!(mirrors(&headers, "mcp-name", "echo").is_ok());
        assert!(mirrors(&headers, "mcp-name", "Echo").is_err());
        headers.insert("mcp-name", HeaderValue::from_static("=?base64?ZWNobw==?="));
        assert!(mirrors(&headers, "mcp-name", "echo").is_ok());
    }
}
