//! Bodies that arrive at the same time.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::Waker;

use http_body::Frame;

use super::*;
use crate::server::{Budget, Owner, Principal};

/// A body of pieces with a wait before each.
struct Slow(VecDeque<Option<Bytes>>);

impl Slow {
    fn new(pieces: usize, size: usize) -> Self {
        Self((0..pieces).flat_map(|_| [None, Some(Bytes::from(vec![b'x'; size]))]).collect())
    }
}

impl Body for Slow {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.0.pop_front() {
            None => Poll::Ready(None),
            Some(None) => Poll::Pending,
            Some(Some(data)) => Poll::Ready(Some(Ok(Frame::data(data)))),
        }
    }
}

fn owner(name: &str) -> Owner {
    Owner::new(Some(&Principal::new(name)), None)
}

async fn read_as(name: &str, bodies: Arc<Budget>, body: Slow) -> Result<Bytes, Unread> {
    read(body, &HttpLimits::default(), || Some(bodies.charge(&owner(name), 0))).await
}

/// H7, Z3: bodies that come slowly hold no more than there is for all of them, whatever their number; one caller leaves
/// room for others, and what is refused or broken off holds nothing.
#[tokio::test]
async fn many_large_bodies_that_come_slowly_hold_no_more_than_the_budget() {
    let bodies = HttpLimits::default().bodies();
    let mut cx = Context::from_waker(Waker::noop());
    let mut reading: Vec<_> =
        (0..100).map(|_| Box::pin(read_as("eve", Arc::clone(&bodies), Slow::new(4, 1024 * 1024)))).collect();
    let (mut most, mut read, mut refused) = (0, 0, 0);
    while !reading.is_empty() {
        reading.retain_mut(|body| match body.as_mut().poll(&mut cx) {
            Poll::Pending => true,
            Poll::Ready(Ok(bytes)) => {
                assert_eq!(bytes.len(), 4 * 1024 * 1024);
                read += 1;
                false
            }
            Poll::Ready(Err(why)) => {
                assert_eq!(why, Unread::Busy);
                refused += 1;
                false
            }
        });
        most = most.max(bodies.held());
        let small = read_as("bob", Arc::clone(&bodies), Slow::new(2, 1024));
        let mut small = pin!(small);
        assert!(small.as_mut().poll(&mut cx).is_pending());
        assert!(matches!(small.as_mut().poll(&mut cx), Poll::Ready(Ok(_))), "there is room for others");
    }
    assert_eq!(most, 32 * 1024 * 1024, "half of it is for others");
    assert!(read >= 8 && read + refused == 100, "{read} read, {refused} refused");
    assert_eq!(bodies.held(), 0);
}

/// H7: a body that is there takes no place, however little room there is.
#[tokio::test]
async fn a_body_that_comes_with_its_head_takes_no_place() {
    let whole = Slow([Some(Bytes::from_static(b"{}"))].into());
    let read = read(whole, &HttpLimits::default(), || panic!("no place is needed")).await;
    assert_eq!(read.expect("a body"), "{}");
}
