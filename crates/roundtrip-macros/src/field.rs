//! One field of a form: the code generated from its type and its settings.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{Error, Ident, LitStr, Path, Type};

use crate::bounds::{Counts, EXACT, Range, within};
use crate::case::Case;
use crate::doc;
use crate::kind::{self, Integer, Kind};
use crate::setting::{Literal, Number, Settings};

const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

/// A field, ready for code generation.
pub(crate) struct Field {
    pub(crate) ident: Ident,
    pub(crate) name: String,
    pub(crate) name_span: Span,
    /// True if the answer must have it.
    pub(crate) required: bool,
    /// True if it is an `Option`.
    pub(crate) optional: bool,
    pub(crate) code: Code,
}

/// The generated expressions for one field, and the assertions checked while they compile.
pub(crate) struct Code {
    pub(crate) schema: TokenStream,
    pub(crate) read: TokenStream,
    pub(crate) assertions: TokenStream,
}

/// Inputs of code generation that every kind of field needs.
struct Context<'a> {
    /// The path of the `form` module.
    module: &'a Path,
    /// The path of the functions for generated code.
    support: &'a TokenStream,
    settings: &'a mut Settings,
    label: TokenStream,
    default: Option<Literal>,
}

impl Field {
    pub(crate) fn new(
        field: &syn::Field,
        ident: &Ident,
        case: Option<Case>,
        module: &Path,
    ) -> Result<Self, Error> {
        let mut settings = Settings::parse(&field.attrs, "form")?;
        let (kind, optional) = kind::of(&field.ty)?;
        let (name, name_span) = match settings.name("rename")? {
            Some(rename) => (rename.value(), rename.span()),
            None => {
                let name = ident.unraw().to_string();
                (case.map_or_else(|| name.clone(), |case| case.apply(&name)), ident.span())
            }
        };
        let title = option(settings.text("title")?.map(owned));
        let description = doc::paragraphs(&field.attrs).join("\n\n");
        let description = option((!description.is_empty()).then(|| owned(description)));
        let default = settings.take("default");
        if let Some(default) = default.as_ref().filter(|_| optional) {
            let message = "a field with a default always has a value, so its type is not an `Option`";
            return Err(default.error(message));
        }
        let required = !optional && default.is_none();
        let label = quote!(title: #title, description: #description,);
        let support = quote!(#module::derive);
        let code =
            Context { module, support: &support, settings: &mut settings, label, default }.code(&kind)?;
        settings.finish(|name| explain(name, &kind))?;
        Ok(Self { ident: ident.clone(), name, name_span, required, optional, code })
    }
}

fn explain(name: &str, kind: &Kind<'_>) -> String {
    let (goes_with, is) = match name {
        "min" | "max" => ("numbers", kind.describe()),
        "min_length" | "max_length" | "format" => ("text", kind.describe()),
        "min_items" | "max_items" => ("lists of choices", kind.describe()),
        _ => {
            return format!(
                "there is no setting `{name}` for a field of a form; there are `title`, `rename`, `default`, \
                 `min`, `max`, `min_length`, `max_length`, `format`, `min_items` and `max_items`"
            );
        }
    };
    format!("`{name}` goes with {goes_with}; this field is {is}")
}

impl Context<'_> {
    fn code(mut self, kind: &Kind<'_>) -> Result<Code, Error> {
        match kind {
            Kind::Text => self.text(),
            Kind::Boolean => self.boolean(),
            Kind::Integer(integer) => self.integer(*integer),
            Kind::Number { short } => self.number(*short),
            Kind::Choice(ty) => self.choice(ty),
            Kind::Choices(ty) => self.choices(ty),
        }
    }

    fn text(&mut self) -> Result<Code, Error> {
        let Self { support, settings, label, default, .. } = self;
        let counts = Counts::take(settings, ["min_length", "max_length"])?;
        let format = settings.text("format")?;
        if let Some(format) = &format
            && !FORMATS.contains(&format.value().as_str())
        {
            let message = "`format` is one of \"email\", \"uri\", \"date\", \"date-time\"";
            return Err(Error::new(format.span(), message));
        }
        let default = match default.take() {
            None => None,
            Some(Literal::Text(text)) => Some(text),
            Some(other) => return Err(other.error("the default of a `String` is text")),
        };
        let mut assertions = TokenStream::new();
        if let Some(default) = &default {
            counts.check(default.value().chars().count(), "characters", default.span())?;
            if let Some(format) = &format {
                let message = format!("the default is not of the format \"{}\"", format.value());
                assertions =
                    assertion(default.span(), &quote!(#support::has_format(#format, #default)), &message);
            }
        }
        let (least, most) = (count(counts.least), count(counts.most));
        let (format, default) = (option(format.map(owned)), option(default.map(owned)));
        let schema = quote! {
            #support::PrimitiveSchemaDefinition::String(#support::StringSchema {
                #label min_length: #least, max_length: #most, format: #format, default: #default,
            })
        };
        Ok(Code { schema, read: quote!(#support::text), assertions })
    }

    fn boolean(&mut self) -> Result<Code, Error> {
        let Self { support, label, default, .. } = self;
        let default = match default.take() {
            None => option(None),
            Some(Literal::Bool(value)) => option(Some(quote!(#value))),
            Some(other) => return Err(other.error("the default of a `bool` is `true` or `false`")),
        };
        let schema = quote! {
            #support::PrimitiveSchemaDefinition::Boolean(#support::BooleanSchema { #label default: #default })
        };
        Ok(Code { schema, read: quote!(#support::boolean), assertions: TokenStream::new() })
    }

    fn integer(&mut self, integer: Integer) -> Result<Code, Error> {
        let Self { support, settings, label, default, .. } = self;
        let what = format!("the default of a `{}` is a whole number", integer.name);
        let Range { least, most, default } =
            Range::take(settings, default.take(), |number| within(number, integer), &what)?;
        // The bounds of the largest types are not doubles; reading checks them.
        let sayable = |bound: i128| (bound.abs() <= EXACT).then_some(bound);
        let double = |number: Option<i128>| {
            let number = number.map(|number| number as f64);
            option(number.map(|number| quote!(#number)))
        };
        let least = double(least.or_else(|| sayable(integer.least)));
        let most = double(most.or_else(|| sayable(integer.most)));
        let default = double(default);
        let schema = quote! {
            #support::PrimitiveSchemaDefinition::Integer(#support::NumberSchema {
                #label minimum: #least, maximum: #most, default: #default,
            })
        };
        let ty = Ident::new(integer.name, Span::call_site());
        let read = quote!(#support::integer::<::core::primitive::#ty>);
        Ok(Code { schema, read, assertions: TokenStream::new() })
    }

    fn number(&mut self, short: bool) -> Result<Code, Error> {
        let Self { support, settings, label, default, .. } = self;
        let what = "the default of a number is a number";
        let read = |number: &Number| {
            let double = number.double()?;
            let fits = !short || (double as f32).is_finite();
            if fits { Ok(double) } else { Err(number.error("this number is too large for an `f32`")) }
        };
        let Range { least, most, default } = Range::take(settings, default.take(), read, what)?;
        let double = |number: Option<f64>| option(number.map(|number| quote!(#number)));
        let (least, most, default) = (double(least), double(most), double(default));
        let schema = quote! {
            #support::PrimitiveSchemaDefinition::Number(#support::NumberSchema {
                #label minimum: #least, maximum: #most, default: #default,
            })
        };
        let read = if short { quote!(#support::short_number) } else { quote!(#support::number) };
        Ok(Code { schema, read, assertions: TokenStream::new() })
    }

    fn choice(&mut self, ty: &Type) -> Result<Code, Error> {
        let Self { module, support, label, default, .. } = self;
        let default = match default.take() {
            None => None,
            Some(Literal::Text(text)) => Some(text),
            Some(other) => {
                return Err(other.error("the default of a choice is one of its values, as text"));
            }
        };
        let shape = item(ty, &quote!(#module::Field), "SHAPE");
        let from_text = item(ty, &quote!(#module::Field), "from_text");
        let assertions = default.iter().map(|default| {
            let message = format!("the default \"{}\" is not a value of this field", default.value());
            assertion(default.span(), &quote!(#support::has_shape(#shape, #default)), &message)
        });
        let assertions = assertions.collect();
        let default = option(default.map(owned));
        let schema = quote!(#support::single(#shape, #support::Single { #label default: #default }));
        Ok(Code { schema, read: quote!(|value| #support::written(value, #from_text)), assertions })
    }

    fn choices(&mut self, ty: &Type) -> Result<Code, Error> {
        let Self { module, support, settings, label, default } = self;
        let counts = Counts::take(settings, ["min_items", "max_items"])?;
        let default = match default.take() {
            None => None,
            Some(Literal::List(texts, span)) => {
                counts.check(texts.len(), "values", span)?;
                Some(texts)
            }
            Some(other) => {
                let message = "the default of a list of choices is a list of values: `default = [\"..\"]`";
                return Err(other.error(message));
            }
        };
        let alternatives = item(ty, &quote!(#module::Choice), "ALTERNATIVES");
        let from_value = item(ty, &quote!(#module::Choice), "from_value");
        let defaults = default.iter().flatten();
        let assertions = defaults.map(|default| offered(support, &alternatives, default)).collect();
        let (least, most) = (count(counts.least), count(counts.most));
        let default = option(default.map(|texts| {
            let texts = texts.into_iter().map(owned);
            quote!(::std::vec![#(#texts),*])
        }));
        let schema = quote! {
            #support::multiple(#alternatives, #support::Multiple {
                #label min_items: #least, max_items: #most, default: #default,
            })
        };
        Ok(Code { schema, read: quote!(|value| #support::choices(value, #from_value)), assertions })
    }
}

/// Generates the path of an item of a trait, with the span of the type, so that the compiler reports there, and once, that
/// the type does not implement it.
fn item(ty: &Type, implements: &TokenStream, name: &str) -> TokenStream {
    let name = Ident::new(name, ty.span());
    quote_spanned!(ty.span()=> <#ty as #implements>::#name)
}

fn offered(support: &TokenStream, alternatives: &TokenStream, default: &LitStr) -> TokenStream {
    let message =
        format!("the default \"{}\" is not one of the values there are to choose from", default.value());
    assertion(default.span(), &quote!(#support::offers(#alternatives, #default)), &message)
}

/// Generates an assertion that only the compiler can check.
fn assertion(span: Span, condition: &TokenStream, message: &str) -> TokenStream {
    quote_spanned!(span=> const _: () = ::core::assert!(#condition, "{}", #message);)
}

fn count(bound: Option<u64>) -> TokenStream {
    option(bound.map(|count| quote!(#count)))
}

fn option(value: Option<TokenStream>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}

fn owned(text: impl ToTokens) -> TokenStream {
    quote!(::std::borrow::ToOwned::to_owned(#text))
}
