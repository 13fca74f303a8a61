//! Doc comments as text for people.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Returns the paragraphs of a doc comment, each on one line.
pub(crate) fn paragraphs(attributes: &[Attribute]) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for line in attributes.iter().filter_map(comment).flat_map(|text| lines(&text)) {
        match paragraphs.last_mut() {
            Some(paragraph) if !line.is_empty() => {
                if !paragraph.is_empty() {
                    paragraph.push(' ');
                }
                paragraph.push_str(&line);
            }
            _ => paragraphs.push(String::new()),
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs
}

fn comment(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(doc) if doc.path.is_ident("doc") => match &doc.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

fn lines(text: &str) -> Vec<String> {
    match text.trim() {
        // An empty comment is an empty line.
        text if !text.contains('\n') => vec![text.to_owned()],
        // The lines of `/** .. */` may have stars of their own.
        block => block.lines().map(|line| line.trim().trim_start_matches('*').trim().to_owned()).collect(),
    }
}
