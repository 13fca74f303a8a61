//! `#[form(..)]` and `#[choice(..)]`: settings of the form `name = value`.

use std::fmt::Display;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Ident, Lit, LitBool, LitStr, Path, Token, bracketed, token};

use crate::case::Case;
use crate::errors::Errors;

/// A number as it is written.
pub(crate) struct Number {
    digits: String,
    tokens: TokenStream,
}

impl Number {
    pub(crate) fn error(&self, message: impl Display) -> Error {
        Error::new_spanned(&self.tokens, message)
    }

    pub(crate) fn whole(&self) -> Result<i128, Error> {
        self.digits.parse().map_err(|_| self.error("this must be a whole number"))
    }

    pub(crate) fn double(&self) -> Result<f64, Error> {
        let number = self.digits.parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| self.error("this number is too large"))
    }
}

/// Value of a setting.
pub(crate) enum Literal {
    Text(LitStr),
    Bool(LitBool),
    Number(Number),
    List(Vec<LitStr>, Span),
}

impl Literal {
    pub(crate) fn error(&self, message: impl Display) -> Error {
        match self {
            Self::Text(text) => Error::new(text.span(), message),
            Self::Bool(value) => Error::new(value.span(), message),
            Self::Number(number) => number.error(message),
            Self::List(_, span) => Error::new(*span, message),
        }
    }
}

impl Parse for Literal {
    fn parse(input: ParseStream<'_>) -> Result<Self, Error> {
        if input.peek(token::Bracket) {
            let content;
            let brackets = bracketed!(content in input);
            let texts = Punctuated::<LitStr, Token![,]>::parse_terminated(&content)?;
            return Ok(Self::List(texts.into_iter().collect(), brackets.span.join()));
        }
        let minus: Option<Token![-]> = input.parse()?;
        let sign = if minus.is_some() { "-" } else { "" };
        let number = |digits: &str, literal: &dyn ToTokens| {
            Self::Number(Number { digits: format!("{sign}{digits}"), tokens: quote!(#minus #literal) })
        };
        let message = "a setting is text, a number, `true`, `false`, or a list of texts";
        match input.parse().map_err(|error| Error::new(error.span(), message))? {
            Lit::Int(literal) => Ok(number(literal.base10_digits(), &literal)),
            Lit::Float(literal) => Ok(number(literal.base10_digits(), &literal)),
            Lit::Str(text) if minus.is_none() => Ok(Self::Text(text)),
            Lit::Bool(value) if minus.is_none() => Ok(Self::Bool(value)),
            other => Err(Error::new(other.span(), message)),
        }
    }
}

struct Setting {
    name: Ident,
    value: Literal,
}

impl Parse for Setting {
    fn parse(input: ParseStream<'_>) -> Result<Self, Error> {
        let name = input.call(Ident::parse_any)?;
        if !input.peek(Token![=]) {
            return Err(Error::new(name.span(), format!("a setting has a value: `{name} = ..`")));
        }
        input.parse::<Token![=]>()?;
        Ok(Self { name, value: input.parse()? })
    }
}

/// The settings of one item. Each is taken out by name; those left over are errors.
pub(crate) struct Settings(Vec<Setting>);

impl Settings {
    /// Parses all `#[attribute(..)]` of an item.
    pub(crate) fn parse(attributes: &[Attribute], attribute: &str) -> Result<Self, Error> {
        let mut settings: Vec<Setting> = Vec::new();
        for attribute in attributes.iter().filter(|candidate| candidate.path().is_ident(attribute)) {
            let parsed = attribute.parse_args_with(Punctuated::<Setting, Token![,]>::parse_terminated)?;
            for setting in parsed {
                if settings.iter().any(|earlier| earlier.name == setting.name) {
                    let message = format!("`{}` is set twice", setting.name);
                    return Err(Error::new(setting.name.span(), message));
                }
                settings.push(setting);
            }
        }
        Ok(Self(settings))
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Literal> {
        let at = self.0.iter().position(|setting| setting.name == name)?;
        Some(self.0.remove(at).value)
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<Option<LitStr>, Error> {
        match self.take(name) {
            None => Ok(None),
            Some(Literal::Text(text)) => Ok(Some(text)),
            Some(other) => Err(other.error(format!("`{name}` is text: `{name} = \"..\"`"))),
        }
    }

    /// Takes a text that becomes a name, and so must not be empty.
    pub(crate) fn name(&mut self, name: &str) -> Result<Option<LitStr>, Error> {
        match self.text(name)? {
            Some(text) if text.value().is_empty() => {
                Err(Error::new(text.span(), format!("`{name}` must not be empty")))
            }
            text => Ok(text),
        }
    }

    pub(crate) fn number(&mut self, name: &str) -> Result<Option<Number>, Error> {
        match self.take(name) {
            None => Ok(None),
            Some(Literal::Number(number)) => Ok(Some(number)),
            Some(other) => Err(other.error(format!("`{name}` is a number"))),
        }
    }

    /// Takes a bound on a length or count, with its literal.
    pub(crate) fn count(&mut self, name: &str) -> Result<Option<(u64, Number)>, Error> {
        let Some(number) = self.number(name)? else { return Ok(None) };
        let count = number.whole().ok().and_then(|count| u64::try_from(count).ok());
        let count = count.ok_or_else(|| number.error(format!("`{name}` is a whole number, 0 or more")))?;
        Ok(Some((count, number)))
    }

    /// Takes the spelling of all names.
    pub(crate) fn rename_all(&mut self) -> Result<Option<Case>, Error> {
        self.text("rename_all")?.as_ref().map(Case::parse).transpose()
    }

    /// Takes the path of the `form` module, which has the traits to implement.
    pub(crate) fn module(&mut self) -> Result<Path, Error> {
        match self.text("crate")? {
            Some(text) => text.parse_with(Path::parse_mod_style),
            None => Ok(syn::parse_quote!(::roundtrip::form)),
        }
    }

    /// Returns an error for each setting left over.
    pub(crate) fn finish(self, explain: impl Fn(&str) -> String) -> Result<(), Error> {
        let mut errors = Errors::default();
        for Setting { name, .. } in self.0 {
            errors.add(Error::new(name.span(), explain(&name.to_string())));
        }
        errors.finish()
    }
}
