//! HTTP of an issuer for tests, on a port of this machine.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Weak};

use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::{Inner, Issuer};

/// Longest body that is read, in bytes.
const LONGEST_BODY: usize = 32 * 1024;

/// An accept loop, which ends when this is dropped.
pub(super) struct Serving(JoinHandle<()>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Accepts connections for as long as the issuer is there.
pub(super) fn start(listener: TcpListener, issuer: &Issuer) -> Serving {
    let issuer = Arc::downgrade(&issuer.0);
    Serving(tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(connection(stream, issuer.clone()));
        }
    }))
}

async fn connection(stream: TcpStream, issuer: Weak<Inner>) {
    let service = service_fn(move |request| answer(issuer.clone(), request));
    // A client that hangs up is no concern of the test.
    drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
}

async fn answer(issuer: Weak<Inner>, request: Request<Incoming>) -> Result<Response<String>, Infallible> {
    let answer = match issuer.upgrade().map(Issuer) {
        Some(issuer) => {
            let (head, body) = request.into_parts();
            let url = format!("{}{}", issuer.name(), head.uri.path());
            let body = read(body).await;
            issuer.answer(&url, &head.headers, &body).await
        }
        None => None,
    };
    let Some(answer) = answer else { return Ok(unavailable()) };
    let mut response = Response::new(String::from_utf8_lossy(&answer.body).into_owned());
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let age = answer.max_age.map(|age| HeaderValue::from_str(&format!("public, max-age={}", age.as_secs())));
    if let Some(Ok(age)) = age {
        headers.insert(header::CACHE_CONTROL, age);
    }
    Ok(response)
}

fn unavailable() -> Response<String> {
    let mut response = Response::new(String::new());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

async fn read(mut body: Incoming) -> String {
    let mut read = Vec::new();
    while let Some(Ok(frame)) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        read.extend_from_slice(&frame.into_data().unwrap_or_default());
        if read.len() > LONGEST_BODY {
            break;
        }
    }
    String::from_utf8_lossy(&read).into_owned()
}
