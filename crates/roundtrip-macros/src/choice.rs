//! `#[derive(Choice)]`

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{Data, DeriveInput, Error, Fields, Ident, Path, Variant};

use crate::case::Case;
use crate::derive::Derive;
use crate::doc;
use crate::errors::Errors;
use crate::setting::Settings;

pub(crate) const DERIVE: Derive = Derive { attribute: "choice", implement: choice, stub };

fn stub(ident: &Ident, module: &Path) -> TokenStream {
    quote! {
        #[automatically_derived]
        impl #module::Choice for #ident {
            const ALTERNATIVES: &'static [#module::Alternative] = &[];
            fn value(&self) -> &'static ::core::primitive::str { ::core::unreachable!() }
            fn from_value(_: &::core::primitive::str) -> ::core::option::Option<Self> {
                ::core::option::Option::None
            }
        }
    }
}

/// One variant of the enum.
struct Alternative {
    ident: Ident,
    value: String,
    value_span: Span,
    title: Option<String>,
}

impl Alternative {
    fn new(variant: &Variant, case: Case) -> Result<Self, Error> {
        if !matches!(variant.fields, Fields::Unit) {
            let message = "a choice has no fields: over the wire it is a single word";
            return Err(Error::new(variant.fields.span(), message));
        }
        let mut settings = Settings::parse(&variant.attrs, "choice")?;
        let (value, value_span) = match settings.name("rename")? {
            Some(rename) => (rename.value(), rename.span()),
            None => (case.apply(&variant.ident.unraw().to_string()), variant.ident.span()),
        };
        let title = settings.name("title")?.map(|title| title.value()).or_else(|| {
            let first = doc::paragraphs(&variant.attrs).into_iter().next()?;
            // A title is not a sentence.
            Some(first.strip_suffix('.').map(str::to_owned).unwrap_or(first))
        });
        settings.finish(|name| {
            format!("there is no setting `{name}` for a choice; there are `rename` and `title`")
        })?;
        Ok(Self { ident: variant.ident.clone(), value, value_span, title })
    }
}

fn choice(input: &DeriveInput, mut settings: Settings, module: &Path) -> Result<TokenStream, Error> {
    let mut errors = Errors::default();
    if !input.generics.params.is_empty() {
        errors.add(Error::new(input.generics.span(), "an enum of choices cannot be generic"));
    }
    let Data::Enum(data) = &input.data else {
        return Err(Error::new(input.ident.span(), "choices are the variants of an enum"));
    };
    if data.variants.is_empty() {
        errors.add(Error::new(input.ident.span(), "there is nothing to choose from"));
    }
    let case = errors.keep(settings.rename_all());
    let case = case.flatten().unwrap_or(Case::Snake);
    errors.keep(settings.finish(|name| {
        format!("there is no setting `{name}` for an enum of choices; there is `rename_all`")
    }));
    let mut known: Vec<Alternative> = Vec::new();
    for variant in &data.variants {
        let Some(alternative) = errors.keep(Alternative::new(variant, case)) else { continue };
        if let Some(other) = known.iter().find(|other| other.value == alternative.value) {
            let Alternative { ident, value, value_span, .. } = &alternative;
            let message = format!("`{}` and `{ident}` both have the value \"{value}\"", other.ident);
            errors.add(Error::new(*value_span, message));
        }
        known.push(alternative);
    }
    errors.finish()?;
    Ok(implementation(&input.ident, &known, module))
}

fn implementation(ident: &Ident, alternatives: &[Alternative], module: &Path) -> TokenStream {
    let idents: Vec<&Ident> = alternatives.iter().map(|alternative| &alternative.ident).collect();
    let values: Vec<&String> = alternatives.iter().map(|alternative| &alternative.value).collect();
    let titles = alternatives.iter().map(|alternative| match &alternative.title {
        Some(title) => quote!(::core::option::Option::Some(#title)),
        None => quote!(::core::option::Option::None),
    });
    quote! {
        #[automatically_derived]
        impl #module::Choice for #ident {
            const ALTERNATIVES: &'static [#module::Alternative] =
                &[#(#module::Alternative { value: #values, title: #titles }),*];

            fn value(&self) -> &'static ::core::primitive::str {
                match self {
                    #(Self::#idents => #values,)*
                }
            }

            fn from_value(value: &::core::primitive::str) -> ::core::option::Option<Self> {
                match value {
                    #(#values => ::core::option::Option::Some(Self::#idents),)*
                    _ => ::core::option::Option::None,
                }
            }
        }
    }
}
