//! Handlers: ordinary async functions whose parameter types say what they need.
//!
//! What makes a function a handler is split into three traits, so that the compiler can say which part is missing:
//! [`Function`] (it is async and its future is `Send`), [`Parameters`] (each parameter is [`FromCall`]), and
//! [`IntoReply`] (what it returns).

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;

use roundtrip_core::wire::ErrorObject;

use super::call::{Call, Rejection};
use super::extract::FromCall;
use super::reply::{Answer, IntoReply, Reply};
use super::setup::Needs;

/// A handler that has been given its parameters and only has to be polled.
pub(crate) type HandlerFuture<R> = Pin<Box<dyn Future<Output = Result<Reply<R>, ErrorObject>> + Send>>;

/// An async function or closure of up to eight parameters.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an async function",
    label = "a handler is an `async fn`, or a closure that returns a future",
    note = "it has at most eight parameters, and its future must be `Send`"
)]
pub trait Function<Parameters>: Send + Sync + 'static {
    /// What it returns.
    type Output;
    /// Its future.
    type Future: Future<Output = Self::Output> + Send + 'static;
    /// Calls it.
    fn call(&self, parameters: Parameters) -> Self::Future;
}

/// The parameters of a handler: a tuple of things that are [`FromCall`].
pub trait Parameters: Sized + 'static {
    /// Takes them from a call, first to last.
    ///
    /// # Errors
    /// The first one that could not be had.
    fn take(call: &mut Call<'_>) -> Result<Self, Rejection>;

    /// Says what they need.
    fn needs(needs: &mut Needs);
}

macro_rules! functions {
    ($($Parameter:ident $parameter:ident)*) => {
        impl<F, Fut, $($Parameter,)*> Function<($($Parameter,)*)> for F
        where
            F: Fn($($Parameter,)*) -> Fut + Send + Sync + 'static,
            Fut: Future + Send + 'static,
        {
            type Output = Fut::Output;
            type Future = Fut;

            fn call(&self, ($($parameter,)*): ($($Parameter,)*)) -> Fut {
                self($($parameter,)*)
            }
        }

        impl<$($Parameter: FromCall,)*> Parameters for ($($Parameter,)*) {
            fn take(call: &mut Call<'_>) -> Result<Self, Rejection> {
                let _ = &call; // a handler without parameters takes nothing
                Ok(($($Parameter::from_call(call)?,)*))
            }

            fn needs(needs: &mut Needs) {
                let _ = &needs;
                $($Parameter::needs(needs);)*
            }
        }
    };
}

functions! {}
functions! { A a }
functions! { A a B b }
functions! { A a B b C c }
functions! { A a B b C c D d }
functions! { A a B b C c D d E e }
functions! { A a B b C c D d E e G g }
functions! { A a B b C c D d E e G g H h }
functions! { A a B b C c D d E e G g H h I i }

/// A handler with its types forgotten, but for what it answers.
pub(crate) trait Handler<R: Answer>: Send + Sync {
    fn start(&self, call: &mut Call<'_>, context: R::Context) -> Result<HandlerFuture<R>, Rejection>;
}

struct Erased<F, P>(F, PhantomData<fn(P)>);

impl<R: Answer, P: Parameters, F: Function<P>> Handler<R> for Erased<F, P>
where
    F::Output: IntoReply<R>,
{
    fn start(&self, call: &mut Call<'_>, context: R::Context) -> Result<HandlerFuture<R>, Rejection> {
        let running = self.0.call(P::take(call)?);
        Ok(Box::pin(async move { running.await.into_reply(context) }))
    }
}

pub(crate) type BoxHandler<R> = Box<dyn Handler<R>>;

pub(crate) fn erase<R: Answer, P: Parameters, F: Function<P>>(function: F) -> BoxHandler<R>
where
    F::Output: IntoReply<R>,
{
    Box::new(Erased(function, PhantomData))
}
