//! Kinds of fields, by type.

use syn::{Error, GenericArgument, PathArguments, Type};

/// Kind of a field.
pub(crate) enum Kind<'a> {
    Text,
    Boolean,
    Integer(Integer),
    Number { short: bool },
    Choice(&'a Type),
    Choices(&'a Type),
}

impl Kind<'_> {
    /// Names the kind in an error message.
    pub(crate) fn describe(&self) -> &'static str {
        match self {
            Self::Text => "a `String`",
            Self::Boolean => "a `bool`",
            Self::Integer(_) | Self::Number { .. } => "a number",
            Self::Choice(_) => "a choice",
            Self::Choices(_) => "a list of choices",
        }
    }
}

/// A type of whole numbers.
#[derive(Clone, Copy)]
pub(crate) struct Integer {
    pub(crate) name: &'static str,
    pub(crate) least: i128,
    pub(crate) most: i128,
}

macro_rules! integers {
    ($($name:ident)*) => {
        &[$(Integer { name: stringify!($name), least: $name::MIN as i128, most: $name::MAX as i128 }),*]
    };
}

const INTEGERS: &[Integer] = integers!(i8 i16 i32 i64 u8 u16 u32 u64);

/// Types that are often written by mistake, with a hint.
const MISTAKEN: &[(&str, &str)] = &[
    ("usize", "write `u64` instead"),
    ("isize", "write `i64` instead"),
    ("u128", "write `u64` instead"),
    ("i128", "write `i64` instead"),
    ("char", "write `String` with `#[form(min_length = 1, max_length = 1)]` instead"),
    ("str", "write `String` instead"),
    ("Cow", "write `String` instead"),
    ("Box", "write what is in the `Box`, without it"),
];

/// Returns the kind of a field, and whether it may be left out.
pub(crate) fn of(ty: &Type) -> Result<(Kind<'_>, bool), Error> {
    match argument(ty, "Option") {
        Some(inner) if argument(inner, "Option").is_some() => {
            Err(refuse(ty, "one `Option` is enough: it says that the field may be left empty"))
        }
        Some(inner) => Ok((present(inner)?, true)),
        None => Ok((present(ty)?, false)),
    }
}

fn present(ty: &Type) -> Result<Kind<'_>, Error> {
    if let Some(item) = argument(ty, "Vec") {
        return match present(item) {
            Ok(Kind::Choice(item)) => Ok(Kind::Choices(item)),
            _ => Err(refuse(
                ty,
                "a list in a form is a list of choices: `Vec` of an enum with `#[derive(Choice)]`",
            )),
        };
    }
    let segment = match bare(ty) {
        Type::Path(path) if path.qself.is_none() => path.path.segments.last(),
        Type::Reference(_) => return Err(refuse(ty, "an answer is owned: write `String` instead of `&str`")),
        _ => None,
    };
    let name = segment.map(|segment| segment.ident.to_string()).unwrap_or_default();
    if let Some((_, hint)) = MISTAKEN.iter().find(|(mistaken, _)| *mistaken == name) {
        return Err(refuse(ty, hint));
    }
    // `DateTime<Utc>` is the one type with parameters that stands for itself.
    if !segment.is_some_and(|segment| segment.arguments.is_none() || name == "DateTime") {
        return Err(refuse(ty, "ask for its parts in fields of their own"));
    }
    Ok(match name.as_str() {
        "String" => Kind::Text,
        "bool" => Kind::Boolean,
        "f32" => Kind::Number { short: true },
        "f64" => Kind::Number { short: false },
        name => match INTEGERS.iter().find(|integer| integer.name == name) {
            Some(integer) => Kind::Integer(*integer),
            // Only the compiler knows whether it is one; the trait bound reports it if not.
            None => Kind::Choice(ty),
        },
    })
}

fn refuse(ty: &Type, hint: &str) -> Error {
    let message = format!(
        "a form field must be a `String`, a `bool`, an integer of up to 64 bits, an `f32` or `f64`, an enum with \
         `#[derive(Choice)]`, a `Vec` of such an enum, or an `Option` of one of these, because elicitation forms \
         are flat: a client shows one simple input for each field\n{hint}"
    );
    Error::new_spanned(ty, message)
}

/// Returns the `T` of `Wrapper<T>`.
fn argument<'a>(ty: &'a Type, wrapper: &str) -> Option<&'a Type> {
    let Type::Path(path) = bare(ty) else { return None };
    let segment = path.path.segments.last().filter(|segment| segment.ident == wrapper)?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(inner)) if arguments.args.len() == 1 => Some(inner),
        _ => None,
    }
}

/// Removes the parentheses that macros leave around a type.
fn bare(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => bare(&group.elem),
        Type::Paren(paren) => bare(&paren.elem),
        ty => ty,
    }
}
