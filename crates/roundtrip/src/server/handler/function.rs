//! Handlers: async functions whose parameter types say what they need.
//!
//! Three traits make a function a handler, so that the compiler can say which part is missing:
//! [`Function`] (it is async), [`Parameters`] (at most eight, each one a [`Parameter`]), and [`IntoReply`] (its return
//! type). That it and its future are `Send` is asked for apart from these: as a condition of an implementation it would
//! hide the value that is not.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use roundtrip_core::wire::ErrorObject;

use super::call::{Call, Rejection};
use super::extract::FromCall;
use super::needs::Needs;
use super::reply::{HandlerResult, IntoReply, Reply};
use super::tool_error::ToolError;

/// Future of a handler that has its parameters.
pub(crate) type HandlerFuture<R> = Pin<Box<dyn Future<Output = Result<Reply<R>, ErrorObject>> + Send>>;

/// An async function or closure. A handler has up to eight parameters; functions with a few more are recognised, so that
/// the compiler can say that these are too many.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an async function",
    label = "a handler is an `async fn`, or a closure that returns a future",
    note = "a handler takes at most eight parameters",
    note = "`#[roundtrip::debug_handler]` on the function says what is wrong with it, and where"
)]
pub trait Function<Parameters>: 'static {
    /// Its return type.
    type Output;
    /// Its future.
    type Future: Future<Output = Self::Output> + 'static;
    /// Calls the function.
    fn call(&self, parameters: Parameters) -> Self::Future;
}

/// One parameter of a handler: any type that is [`FromCall`], and [`Asked`](crate::Asked) and [`Resolved`](crate::Resolved),
/// which have to wait for answers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a handler's parameter",
    label = "not something a call can provide",
    note = "handlers take `Args<T>`, `Ask`, `Asked<T>`, `Asking<T>`, `Resolved<T>`, `Round`, `State<S>`, `Extension<T>`, \
            `Caller`, `Progress`, `Status`, `Parts`, `Log`, `Uri`, `Catalog`, and your own types that implement `FromCall`; completers take `Partial` too",
    note = "arguments are `Args<T>`, values of the server are `State<S>`; `Asked<T>` takes a question, such as a form with \
            `#[form(key = \"..\", message = \"..\")]`, and `Resolved<T>` a type that implements `Resolve`"
)]
pub trait Parameter: Sized + Send + 'static {
    /// Value that is taken from the call.
    type Taken: Send + 'static;

    /// True if it may have to wait for an answer.
    const ASKS: bool;

    /// Takes the value from a call.
    ///
    /// # Errors
    /// A [`Rejection`] ends the call before the handler runs.
    fn take(call: &mut Call<'_>) -> Result<Self::Taken, Rejection>;

    /// Returns the parameter, if it does not have to wait.
    fn ready(taken: Self::Taken) -> Option<Self>;

    /// Waits for the answer.
    fn resolve(taken: Self::Taken) -> impl Future<Output = Result<Self, ToolError>> + Send;

    /// Declares what it needs.
    fn needs(needs: &mut Needs);
}

impl<T: FromCall> Parameter for T {
    type Taken = T;
    const ASKS: bool = false;

    fn take(call: &mut Call<'_>) -> Result<T, Rejection> {
        T::from_call(call)
    }

    fn ready(taken: T) -> Option<T> {
        Some(taken)
    }

    async fn resolve(taken: T) -> Result<T, ToolError> {
        Ok(taken)
    }

    fn needs(needs: &mut Needs) {
        T::needs(needs);
    }
}

/// The parameters of a handler: a tuple of up to eight [`Parameter`]s.
#[diagnostic::on_unimplemented(
    message = "the handler takes too many parameters",
    label = "a handler takes at most eight parameters",
    note = "take several values as one: a type of yours that implements `FromCall`, or one struct in `State`"
)]
pub trait Parameters: Sized + Send + 'static {
    /// Values that are taken from the call.
    type Taken: Send + 'static;

    /// True if any of them may have to wait for an answer.
    const ASK: bool;

    /// Takes the values from a call, first to last.
    ///
    /// # Errors
    /// Returns the first [`Rejection`].
    fn take(call: &mut Call<'_>) -> Result<Self::Taken, Rejection>;

    /// Returns the parameters, if none has to wait.
    fn ready(taken: Self::Taken) -> Option<Self>;

    /// Waits for all answers together, so that they are asked for together.
    fn resolve(taken: Self::Taken) -> impl Future<Output = Result<Self, ToolError>> + Send;

    /// Declares what they need.
    fn needs(needs: &mut Needs);
}

/// The parameters of a resolver ([`Resolve`](crate::Resolve)): a tuple of up to eight [`Parameter`]s.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tuple of parameters",
    label = "`From` is a tuple of at most eight parameters",
    note = "a tuple of one is written with a comma: `type From = ({Self},);`"
)]
pub trait ResolveFrom: Parameters {}

macro_rules! functions {
    ($($Parameter:ident $parameter:ident)*) => {
        impl<F, Fut, $($Parameter,)*> Function<($($Parameter,)*)> for F
        where
            F: Fn($($Parameter,)*) -> Fut + 'static,
            Fut: Future + 'static,
        {
            type Output = Fut::Output;
            type Future = Fut;

            fn call(&self, ($($parameter,)*): ($($Parameter,)*)) -> Fut {
                self($($parameter,)*)
            }
        }
    };
}

macro_rules! handlers {
    ($($Parameter:ident $parameter:ident)*) => {
        functions! { $($Parameter $parameter)* }

        impl<$($Parameter: Parameter,)*> ResolveFrom for ($($Parameter,)*) {}

        impl<$($Parameter: Parameter,)*> Parameters for ($($Parameter,)*) {
            type Taken = ($($Parameter::Taken,)*);
            const ASK: bool = false $(|| $Parameter::ASKS)*;

            fn take(call: &mut Call<'_>) -> Result<Self::Taken, Rejection> {
                let _ = &call; // a handler without parameters takes nothing
                Ok(($($Parameter::take(call)?,)*))
            }

            fn ready(($($parameter,)*): Self::Taken) -> Option<Self> {
                Some(($($Parameter::ready($parameter)?,)*))
            }

            async fn resolve(($($parameter,)*): Self::Taken) -> Result<Self, ToolError> {
                tokio::try_join!($($Parameter::resolve($parameter)),*)
            }

            fn needs(needs: &mut Needs) {
                let _ = &needs;
                $($Parameter::needs(needs);)*
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

// Too many for a handler: `Parameters` says so.
functions! { A a B b C c D d E e G g H h I i J j }
functions! { A a B b C c D d E e G g H h I i J j K k }
functions! { A a B b C c D d E e G g H h I i J j K k L l }
functions! { A a B b C c D d E e G g H h I i J j K k L l M m }

/// Collects the needs of a handler's parameters.
pub(crate) fn needs_of<P: Parameters>() -> Needs {
    let mut needs = Needs::default();
    P::needs(&mut needs);
    needs
}

/// Type-erased handler that answers with `R`.
pub(crate) trait Handler<R: HandlerResult>: Send + Sync {
    fn start(&self, call: &mut Call<'_>, context: R::Context) -> Result<HandlerFuture<R>, Rejection>;
}

struct Erased<F, P>(Arc<F>, PhantomData<fn(P)>);

impl<R: HandlerResult, P: Parameters, F: Function<P> + Send + Sync> Handler<R> for Erased<F, P>
where
    F::Output: IntoReply<R>,
    F::Future: Send,
{
    fn start(&self, call: &mut Call<'_>, context: R::Context) -> Result<HandlerFuture<R>, Rejection> {
        let taken = P::take(call)?;
        if P::ASK {
            let function = Arc::clone(&self.0);
            return Ok(Box::pin(async move {
                match P::resolve(taken).await {
                    Ok(parameters) => function.call(parameters).await.into_reply(context),
                    Err(failure) => R::failed(failure).map(Reply::complete),
                }
            }));
        }
        let Some(parameters) = P::ready(taken) else {
            return Err(ErrorObject::internal("a parameter that does not ask has to be waited for").into());
        };
        // Called when it is polled, so that nothing of it runs before the hooks and the ledger's claim.
        let function = Arc::clone(&self.0);
        Ok(Box::pin(async move { function.call(parameters).await.into_reply(context) }))
    }
}

pub(crate) type BoxHandler<R> = Box<dyn Handler<R>>;

pub(crate) fn erase<R, P: Parameters, F: Function<P> + Send + Sync>(function: F) -> BoxHandler<R>
where
    R: HandlerResult,
    F::Output: IntoReply<R>,
    F::Future: Send,
{
    Box::new(Erased(Arc::new(function), PhantomData))
}
