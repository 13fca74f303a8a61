//! Tokens of a source file, as a flat list of texts.

use proc_macro2::{Delimiter, LexError, Spacing, TokenStream, TokenTree};

/// Reads the tokens of a text, with `::` as one token and literals left out.
pub(crate) fn tokens(text: &str) -> Result<Vec<String>, LexError> {
    let mut flat = Vec::new();
    flatten(text.parse()?, &mut flat);
    Ok(flat)
}

fn flatten(stream: TokenStream, out: &mut Vec<String>) {
    let mut trees = stream.into_iter().peekable();
    while let Some(tree) = trees.next() {
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Parenthesis | Delimiter::None => ("(", ")"),
                };
                out.push(open.to_owned());
                flatten(group.stream(), out);
                out.push(close.to_owned());
            }
            TokenTree::Punct(punct) => {
                let joint = punct.as_char() == ':' && punct.spacing() == Spacing::Joint;
                let second =
                    |tree: &TokenTree| matches!(tree, TokenTree::Punct(punct) if punct.as_char() == ':');
                match joint && trees.next_if(second).is_some() {
                    true => out.push("::".to_owned()),
                    false => out.push(punct.to_string()),
                }
            }
            TokenTree::Ident(ident) => out.push(ident.to_string()),
            TokenTree::Literal(_) => {}
        }
    }
}

pub(crate) fn at(tokens: &[String], index: usize) -> &str {
    tokens.get(index).map_or("", String::as_str)
}

pub(crate) fn is_ident(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Returns the index behind an attribute, and behind its item if that is for tests alone.
pub(crate) fn after_attribute(tokens: &[String], index: usize) -> usize {
    let end = closing(tokens, index + 1);
    let attribute = &tokens[index + 2..end];
    let has = |word: &str| attribute.iter().any(|token| token == word);
    if at(attribute, 0) == "cfg" && has("test") && !has("not") {
        after_item(tokens, end + 1)
    } else {
        end + 1
    }
}

/// Returns the index behind an item: behind its semicolon, or behind its body.
pub(crate) fn after_item(tokens: &[String], mut index: usize) -> usize {
    while index < tokens.len() {
        match at(tokens, index) {
            ";" => return index + 1,
            "{" => {
                index = closing(tokens, index) + 1;
                if at(tokens, index) != ";" {
                    return index;
                }
            }
            "(" | "[" => index = closing(tokens, index) + 1,
            _ => index += 1,
        }
    }
    index
}

/// Returns the index of the bracket that closes the one at an index.
pub(crate) fn closing(tokens: &[String], open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.as_str() {
            "{" | "[" | "(" => depth += 1,
            "}" | "]" | ")" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return index;
        }
    }
    tokens.len()
}
