//! `#[debug_handler]`: checks a handler where it is written, part by part.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::parse::{Parse, ParseStream, Parser as _};
use syn::spanned::Spanned as _;
use syn::{Attribute, Error, Generics, Ident, ReturnType, Token, Type, Visibility, parenthesized};

/// Most parameters of a handler.
const MOST: usize = 8;

/// Expands to the function as it is, and to checks beside it that do nothing when they compile.
pub(crate) fn expand(offer: TokenStream, function: &TokenStream) -> TokenStream {
    let checks = reply_of
        .parse2(offer)
        .and_then(|reply| syn::parse2::<Handler>(function.clone()).and_then(|handler| handler.checks(&reply)))
        .unwrap_or_else(Error::into_compile_error);
    quote!(#function #checks)
}

/// Parses the argument of the attribute: the kind of handler, whose result the function has to return.
fn reply_of(input: ParseStream<'_>) -> Result<TokenStream, Error> {
    if input.is_empty() {
        return Ok(quote!(::roundtrip::wire::CallToolResult));
    }
    let offer: Ident = input.parse()?;
    match offer.to_string().as_str() {
        "tool" => Ok(quote!(::roundtrip::wire::CallToolResult)),
        "prompt" => Ok(quote!(::roundtrip::wire::GetPromptResult)),
        "resource" => Ok(quote!(::roundtrip::wire::ReadResourceResult)),
        "completer" => Ok(quote!(::roundtrip::wire::CompleteResult)),
        _ => Err(Error::new(
            offer.span(),
            "expected `tool`, `prompt`, `resource` or `completer`: the kind of handler that this is",
        )),
    }
}

/// The signature of a function. Parsed here, because the parser of whole functions would double the time that `syn`
/// takes to build.
struct Handler {
    is_async: bool,
    function: Span,
    name: Ident,
    generics: Generics,
    parameters: Vec<Type>,
    output: ReturnType,
}

impl Parse for Handler {
    fn parse(input: ParseStream<'_>) -> Result<Self, Error> {
        input.call(Attribute::parse_outer)?;
        input.parse::<Visibility>()?;
        let is_async = input.parse::<Option<Token![async]>>()?.is_some();
        if !input.peek(Token![fn]) {
            return Err(input.error("`debug_handler` goes on a handler: an `async fn`"));
        }
        let function = input.parse::<Token![fn]>()?.span;
        let (name, generics) = (input.parse()?, input.parse()?);
        let list;
        parenthesized!(list in input);
        let parameters = list.parse_terminated(parameter, Token![,])?.into_iter().collect();
        let output = input.parse()?;
        input.parse::<TokenStream>()?; // `where`, and the body
        Ok(Self { is_async, function, name, generics, parameters, output })
    }
}

/// Parses a parameter: its type is all that matters.
fn parameter(input: ParseStream<'_>) -> Result<Type, Error> {
    loop {
        if input.peek(Token![self]) {
            return Err(input.error("a handler is a function without `self`: take what it needs as `State`"));
        } else if input.peek(Token![::]) {
            input.parse::<Token![::]>()?;
        } else if input.peek(Token![:]) {
            input.parse::<Token![:]>()?;
            return input.parse();
        } else {
            input.parse::<TokenTree>()?;
        }
    }
}

impl Handler {
    /// Checks the form of the function, and returns the checks that the compiler has to make.
    fn checks(&self, reply: &TokenStream) -> Result<TokenStream, Error> {
        let Self { name, parameters, .. } = self;
        if !self.is_async {
            return Err(Error::new(self.function, "a handler is an `async fn`: add `async`"));
        }
        if let Some(generic) = self.generics.params.first() {
            let message = "`debug_handler` cannot check a generic function: give it types, or leave it out";
            return Err(Error::new(generic.span(), message));
        }
        if let Some(surplus) = parameters.get(MOST) {
            let message = format!(
                "a handler takes at most {MOST} parameters, and this is one more: take several values as one, in \
                 a type that implements `FromCall`, or in one struct in `State`"
            );
            return Err(Error::new(surplus.span(), message));
        }
        let each = parameters.iter().map(|ty| quote_spanned!(ty.span()=> __parameter::<#ty>();));
        let output = match &self.output {
            ReturnType::Default => quote_spanned!(name.span()=> ()),
            ReturnType::Type(_, ty) => quote!(#ty),
        };
        let values = parameters.iter().map(|ty| quote_spanned!(name.span()=> __value::<#ty>()));
        let future = quote_spanned!(name.span()=> #name(#(#values),*));
        Ok(quote! {
            const _: fn() = || {
                fn __parameter<T: ::roundtrip::server::Parameter>() {}
                fn __reply<T: ::roundtrip::server::IntoReply<#reply>>() {}
                fn __send<T: ::core::marker::Send>(_: T) {}
                fn __value<T>() -> T {
                    ::core::unreachable!()
                }
                #(#each)*
                __reply::<#output>();
                __send(#future);
            };
        })
    }
}
