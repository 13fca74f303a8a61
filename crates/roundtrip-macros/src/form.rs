//! `#[derive(Form)]`

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned as _;
use syn::{Data, DeriveInput, Error, Fields, FieldsNamed, Ident, Path};

use crate::derive::Derive;
use crate::errors::Errors;
use crate::field::Field;
use crate::setting::Settings;
use crate::template;

pub(crate) const DERIVE: Derive = Derive { attribute: "form", implement: form, stub };

fn stub(ident: &Ident, module: &Path) -> TokenStream {
    quote! {
        #[automatically_derived]
        impl #module::Form for #ident {
            fn definition() -> &'static #module::Definition { ::core::unreachable!() }
            fn from_content(_: &#module::derive::JsonObject) -> ::core::result::Result<Self, #module::Problems> {
                ::core::unreachable!()
            }
        }
    }
}

fn form(input: &DeriveInput, mut settings: Settings, module: &Path) -> Result<TokenStream, Error> {
    let mut errors = Errors::default();
    if !input.generics.params.is_empty() {
        errors.add(Error::new(input.generics.span(), "a form cannot be generic: each form is one question"));
    }
    let fields = named_fields(input)?;
    let asks = errors.keep(asks(&mut settings, &input.ident, module));
    let case = errors.keep(settings.rename_all());
    let leftover = settings.finish(|name| {
        format!("there is no setting `{name}` for a form; there are `key`, `message` and `rename_all`")
    });
    errors.keep(leftover);
    let mut known: Vec<Field> = Vec::new();
    for field in &fields.named {
        let Some(ident) = &field.ident else { continue };
        let Some(field) = errors.keep(Field::new(field, ident, case.flatten(), module)) else { continue };
        if let Some(other) = known.iter().find(|other| other.name == field.name) {
            let message =
                format!("`{}` and `{}` are both named \"{}\"", other.ident, field.ident, field.name);
            errors.add(Error::new(field.name_span, message));
        }
        known.push(field);
    }
    errors.finish()?;
    let implementation = implementation(&input.ident, &known, module);
    let asks = asks.flatten();
    Ok(quote!(#implementation #asks))
}

fn named_fields(input: &DeriveInput) -> Result<&FieldsNamed, Error> {
    let message = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => return Ok(fields),
            Fields::Unnamed(_) => {
                "a form is a struct with named fields: the names are what the user is asked for"
            }
            Fields::Unit => {
                "a form is a struct with named fields; one that asks for nothing but consent has `{}`"
            }
        },
        Data::Enum(_) => {
            "a form is a struct with named fields; an enum is one field of it, with `#[derive(Choice)]`"
        }
        Data::Union(_) => "a form is a struct with named fields",
    };
    Err(Error::new(input.ident.span(), message))
}

/// Generates the implementation of `Asks`, if the form has a key and a message.
fn asks(settings: &mut Settings, ident: &Ident, module: &Path) -> Result<Option<TokenStream>, Error> {
    let (key, message) = (settings.name("key"), settings.name("message"));
    let (key, message) = match (key?, message?) {
        (Some(key), Some(message)) => (key, message),
        (None, None) => return Ok(None),
        (Some(key), None) => {
            return Err(Error::new(key.span(), "a question with a `key` needs a `message` too"));
        }
        (None, Some(message)) => {
            return Err(Error::new(message.span(), "a question with a `message` needs a `key` too"));
        }
    };
    if let Some(mistake) = template::mistake(&message.value()) {
        return Err(Error::new(message.span(), mistake));
    }
    Ok(Some(quote! {
        #[automatically_derived]
        impl #module::Asks for #ident {
            const KEY: &'static ::core::primitive::str = #key;
            const MESSAGE: &'static ::core::primitive::str = #message;
        }
    }))
}

fn implementation(ident: &Ident, fields: &[Field], module: &Path) -> TokenStream {
    let schemas = fields.iter().map(|field| {
        let Field { name, required, code, .. } = field;
        let schema = &code.schema;
        quote!((#name, #required, #schema))
    });
    let reads = fields.iter().map(|field| {
        let Field { ident, name, code, .. } = field;
        let read = &code.read;
        if field.optional {
            quote!(#ident: answer.optional(#name, #read)?)
        } else {
            quote!(#ident: answer.required(#name, #read)?)
        }
    });
    let assertions = fields.iter().map(|field| &field.code.assertions);
    // A form without fields reads nothing.
    let answer = if fields.is_empty() { quote!(_) } else { quote!(answer) };
    let result = quote!(::core::result::Result<Self, #module::Problems>);
    quote! {
        #[automatically_derived]
        impl #module::Form for #ident {
            fn definition() -> &'static #module::Definition {
                #(#assertions)*
                static DEFINITION: ::std::sync::LazyLock<#module::Definition> =
                    ::std::sync::LazyLock::new(|| #module::derive::define(::std::vec![#(#schemas),*]));
                &DEFINITION
            }

            fn from_content(content: &#module::derive::JsonObject) -> #result {
                #module::derive::from_content(content)
            }

            fn recall(packed: &::core::primitive::str) -> #result {
                #module::derive::recall(packed)
            }
        }

        #[automatically_derived]
        impl #module::derive::Fields for #ident {
            fn read(#answer: &mut #module::derive::FieldValues<'_>) -> #result {
                ::core::result::Result::Ok(Self { #(#reads),* })
            }
        }
    }
}
