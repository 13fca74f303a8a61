//! The preamble that both derive macros share.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Error, Ident, Path};

use crate::setting::Settings;

/// A derive macro, by the parts that differ.
pub(crate) struct Derive {
    /// The name of its helper attribute.
    pub(crate) attribute: &'static str,
    /// Generates the implementation, given the settings of the type and the path of the `form` module.
    pub(crate) implement: fn(&DeriveInput, Settings, &Path) -> Result<TokenStream, Error>,
    /// Generates an implementation that does nothing.
    pub(crate) stub: fn(&Ident, &Path) -> TokenStream,
}

impl Derive {
    /// Expands the macro. Errors go with a stub, so that the compiler does not also report a missing implementation.
    pub(crate) fn expand(&self, input: &DeriveInput) -> TokenStream {
        let settings = Settings::parse(&input.attrs, self.attribute)
            .and_then(|mut settings| settings.module().map(|module| (settings, module)));
        let (settings, module) = match settings {
            Ok(settings) => settings,
            Err(error) => return error.into_compile_error(),
        };
        (self.implement)(input, settings, &module).unwrap_or_else(|error| {
            let error = error.into_compile_error();
            let stub = input.generics.params.is_empty().then(|| (self.stub)(&input.ident, &module));
            quote!(#error #stub)
        })
    }
}
