//! Handlers: ordinary async functions whose parameter types say what they need.

use std::future::Future;
use std::pin::Pin;

use roundtrip_core::wire::ErrorObject;

use super::call::{Call, Rejection};
use super::extract::FromCall;
use super::reply::{Answer, IntoReply};
use super::setup::Needs;

/// A handler that has been given its parameters and only has to be polled.
pub type HandlerFuture<R> = Pin<Box<dyn Future<Output = Result<R, ErrorObject>> + Send>>;

/// An async function that can serve a call. Implemented for functions and closures of up to eight parameters
/// that are all [`FromCall`], returning something that is [`IntoReply`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler for `{R}`",
    label = "not usable as a handler",
    note = "a handler is an `async fn` whose parameters implement `FromCall` and whose return type implements \
            `IntoReply<{R}>`; its future must be `Send`"
)]
pub trait Handler<R: Answer, Parameters>: Send + Sync + 'static {
    /// Takes the parameters from the call. The handler's body runs when the future is polled.
    ///
    /// # Errors
    /// The first parameter that could not be had.
    fn start(&self, call: &mut Call<'_>, context: R::Context) -> Result<HandlerFuture<R>, Rejection>;

    /// Says what the parameters need.
    fn needs(needs: &mut Needs);

    /// The schema of the structured output, if there is one.
    fn output_schema() -> Option<schemars::Schema>;
}

macro_rules! handlers {
    ($($Parameter:ident $parameter:ident)*) => {
        impl<F, Fut, Out, R, $($Parameter,)*> Handler<R, ($($Parameter,)*)> for F
        where
            F: Fn($($Parameter,)*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Out> + Send + 'static,
            Out: IntoReply<R>,
            R: Answer,
            $($Parameter: FromCall,)*
        {
            fn start(&self, call: &mut Call<'_>, context: R::Context) -> Result<HandlerFuture<R>, Rejection> {
                let _ = &call; // a handler without parameters takes nothing
                $(let $parameter = $Parameter::from_call(call)?;)*
                let running = self($($parameter,)*);
                Ok(Box::pin(async move { running.await.into_reply(context) }))
            }

            fn needs(needs: &mut Needs) {
                let _ = &needs;
                $($Parameter::needs(needs);)*
            }

            fn output_schema() -> Option<schemars::Schema> {
                Out::output_schema()
            }
        }
    };
}

handlers! {}
handlers! { A a }
handlers! { A a B b }
handlers! { A a B b C c }
handlers! { A a B b C c D d }
handlers! { A a B b C c D d E e }
handlers! { A a B b C c D d E e G g }
handlers! { A a B b C c D d E e G g H h }
handlers! { A a B b C c D d E e G g H h I i }

/// A handler with its parameter types forgotten.
pub(crate) trait AnyHandler<R: Answer>: Send + Sync {
    fn start(&self, call: &mut Call<'_>, context: R::Context) -> Result<HandlerFuture<R>, Rejection>;
}

struct Erased<H, P>(H, std::marker::PhantomData<fn(P)>);

impl<R: Answer, P: 'static, H: Handler<R, P>> AnyHandler<R> for Erased<H, P> {
    fn start(&self, call: &mut Call<'_>, context: R::Context) -> Result<HandlerFuture<R>, Rejection> {
        self.0.start(call, context)
    }
}

pub(crate) type BoxHandler<R> = Box<dyn AnyHandler<R>>;

pub(crate) fn erase<R: Answer, P: 'static, H: Handler<R, P>>(handler: H) -> BoxHandler<R> {
    Box::new(Erased(handler, std::marker::PhantomData))
}
