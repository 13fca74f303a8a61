//! Public functions of the SDK, read from its sources.

use std::collections::{BTreeMap, BTreeSet};

use crate::tokens::{after_attribute, after_item, at, closing, is_ident, tokens};

/// A public function.
#[derive(Debug, Default, Clone)]
pub(crate) struct Function {
    /// It takes `self`, `mut self` or `&mut self`.
    changes_self: bool,
    takes_self: bool,
    pub(crate) is_async: bool,
    /// Macro that gives it to several types.
    shared_by: Option<String>,
    /// Name of the type that it returns, also inside a `Result` or an `Option`.
    pub(crate) returns: Option<String>,
}

/// Functions by their names, and those by the type they belong to; free ones belong to the type "".
#[derive(Default)]
pub(crate) struct Api {
    functions: BTreeMap<String, BTreeMap<String, Function>>,
    /// Names of types that users can reach.
    exported: BTreeSet<String>,
    macros: BTreeMap<String, Macro>,
}

/// A macro of one arm, without repetitions.
#[derive(Clone)]
struct Macro {
    parameters: Vec<String>,
    body: Vec<String>,
}

/// A source file.
pub(crate) struct Source {
    pub(crate) text: String,
    /// Its `pub use` is for users of the SDK.
    pub(crate) is_public: bool,
    /// All its public types are re-exported.
    pub(crate) is_open: bool,
}

impl Api {
    pub(crate) fn read(sources: &[Source]) -> Self {
        let mut api = Self::default();
        let read: Vec<_> =
            sources.iter().map(|source| (source, tokens(&source.text).expect("a source"))).collect();
        read.iter().for_each(|(_, tokens)| api.macros.extend(macros(tokens)));
        for (source, tokens) in &read {
            api.exported.extend(exports(source, tokens));
            api.items(tokens, "", None);
        }
        api
    }

    /// Returns the functions that build a value: those that change it and return it, and the constructors of types that have
    /// such functions.
    pub(crate) fn builders(&self) -> BTreeSet<(String, String)> {
        let mut found = BTreeSet::new();
        for (owner, functions) in self.functions.iter().filter(|(owner, _)| self.exported.contains(*owner)) {
            let made: Vec<_> =
                functions.iter().filter(|(_, function)| function.returns.as_ref() == Some(owner)).collect();
            if made.iter().any(|(_, function)| function.changes_self) {
                let building =
                    made.iter().filter(|(_, function)| function.changes_self || !function.takes_self);
                found.extend(building.map(|(name, _)| (owner.clone(), (*name).clone())));
            }
        }
        found
    }

    /// Returns whether one of these calls is to a function, or to the same one of a type that has it from the same macro.
    pub(crate) fn is_called(&self, owner: &str, name: &str, calls: &BTreeSet<(String, String)>) -> bool {
        let shared_by = self.function(owner, name).and_then(|function| function.shared_by.as_ref());
        let is_it = |called: &str| {
            let other = self.function(called, name).and_then(|function| function.shared_by.as_ref());
            called == owner || shared_by.is_some() && shared_by == other
        };
        calls.iter().any(|(called, function)| function == name && is_it(called))
    }

    pub(crate) fn function(&self, owner: &str, name: &str) -> Option<&Function> {
        self.functions.get(owner)?.get(name)
    }

    pub(crate) fn has_type(&self, name: &str) -> bool {
        !name.is_empty() && self.functions.contains_key(name)
    }

    /// Returns the types that have a method of this name.
    pub(crate) fn owners_of(&self, method: &str) -> Vec<&String> {
        let has = |functions: &BTreeMap<String, Function>| {
            functions.get(method).is_some_and(|function| function.takes_self)
        };
        self.functions.iter().filter(|(_, functions)| has(functions)).map(|(owner, _)| owner).collect()
    }

    /// Collects the public functions of a module, or of the `impl` of a type.
    fn items(&mut self, tokens: &[String], owner: &str, shared_by: Option<&str>) {
        let mut index = 0;
        while index < tokens.len() {
            index = match (at(tokens, index), at(tokens, index + 1), at(tokens, index + 2)) {
                ("#", "[", "doc") if at(tokens, index + 4) == "hidden" => {
                    after_item(tokens, closing(tokens, index + 1) + 1)
                }
                ("#", "[", _) => after_attribute(tokens, index),
                ("#", "!", "[") => closing(tokens, index + 2) + 1,
                ("macro_rules", "!", _) => closing(tokens, index + 3) + 1,
                (name, "!", "(" | "{" | "[") if is_ident(name) => {
                    let end = closing(tokens, index + 2);
                    if let Some(known) = self.macros.get(name).cloned() {
                        self.items(&known.expand(&tokens[index + 3..end]), owner, Some(name));
                    }
                    end + 1
                }
                ("mod", _, "{") => {
                    let end = closing(tokens, index + 2);
                    self.items(&tokens[index + 3..end], "", shared_by);
                    end + 1
                }
                ("impl", ..) if owner.is_empty() => self.implementation(tokens, index, shared_by),
                ("fn", name, _) => {
                    let (mut function, end) = signature(tokens, index, owner);
                    function.shared_by = shared_by.map(str::to_owned);
                    if is_public(&tokens[..index]) {
                        self.functions.entry(owner.to_owned()).or_default().insert(name.to_owned(), function);
                    }
                    after_item(tokens, end)
                }
                ("const", "fn", _) => index + 1,
                ("struct" | "enum" | "trait" | "type" | "const" | "static" | "use", ..) => {
                    after_item(tokens, index)
                }
                _ => index + 1,
            };
        }
    }

    /// Reads an `impl`, and returns the index behind it. Functions of traits are left out.
    fn implementation(&mut self, tokens: &[String], index: usize, shared_by: Option<&str>) -> usize {
        let start = if at(tokens, index + 1) == "<" { after_angles(tokens, index + 1) } else { index + 1 };
        let Some(open) = tokens[start..].iter().position(|token| token == "{") else { return tokens.len() };
        let (header, end) = (&tokens[start..start + open], closing(tokens, start + open));
        if let (Some(owner), false) = (type_name(header, ""), header.iter().any(|token| token == "for")) {
            self.items(&tokens[start + open + 1..end], &owner, shared_by);
        }
        end + 1
    }
}

impl Macro {
    fn expand(&self, arguments: &[String]) -> Vec<String> {
        let arguments: Vec<&[String]> = arguments.split(|token| token == ",").collect();
        let mut expanded = Vec::new();
        let mut index = 0;
        while index < self.body.len() {
            let named = |name: &String| at(&self.body, index) == "$" && name == at(&self.body, index + 1);
            match self.parameters.iter().position(named) {
                Some(parameter) => {
                    expanded.extend_from_slice(arguments.get(parameter).copied().unwrap_or_default());
                    index += 2;
                }
                None => {
                    expanded.push(self.body[index].clone());
                    index += 1;
                }
            }
        }
        expanded
    }
}

/// Returns the macros of a file that are simple enough to be expanded: `($kind:ident) => { .. }`.
fn macros(tokens: &[String]) -> Vec<(String, Macro)> {
    let mut found = Vec::new();
    for index in (0..tokens.len()).filter(|index| at(tokens, *index) == "macro_rules") {
        let arms = &tokens[index + 4..closing(tokens, index + 3)];
        let pattern = &arms[1..closing(arms, 0)];
        let body = pattern.len() + 4;
        let repeats = pattern.iter().any(|token| token == "(");
        if repeats || at(arms, body) != "{" || closing(arms, body) + 2 < arms.len() {
            continue;
        }
        let names = pattern.iter().skip_while(|token| *token != "$").skip(1).step_by(5);
        let parameters = names.cloned().collect();
        let body = arms[body + 1..closing(arms, body)].to_vec();
        found.push((tokens[index + 2].clone(), Macro { parameters, body }));
    }
    found
}

/// Returns the names that a file re-exports for users.
fn exports(source: &Source, tokens: &[String]) -> Vec<String> {
    let mut names = Vec::new();
    for (index, pair) in tokens.windows(2).enumerate().filter(|(_, pair)| pair[0] == "pub") {
        match pair[1].as_str() {
            "use" if source.is_public => {
                let tree = tokens[index + 2..].iter().take_while(|token| *token != ";");
                names.extend(tree.filter(|token| is_ident(token)).cloned());
            }
            "struct" | "enum" if source.is_open => names.push(at(tokens, index + 2).to_owned()),
            _ => {}
        }
    }
    names
}

/// Reads a function from its `fn` on. Returns the index behind its return type as well.
pub(crate) fn signature(tokens: &[String], index: usize, owner: &str) -> (Function, usize) {
    let open = if at(tokens, index + 2) == "<" { after_angles(tokens, index + 2) } else { index + 2 };
    let close = closing(tokens, open);
    let receiver: Vec<&str> = tokens[open + 1..close].iter().map(String::as_str).take(4).collect();
    let takes_self =
        receiver.iter().take_while(|token| !matches!(**token, ":" | ",")).any(|token| *token == "self");
    let changes_self = takes_self && (receiver[0] != "&" || receiver.contains(&"mut"));
    let mut end = close + 1;
    while end < tokens.len() && !matches!(at(tokens, end), "{" | ";" | "where") {
        end = if at(tokens, end) == "(" { closing(tokens, end) + 1 } else { end + 1 };
    }
    let returned = tokens.get(close + 3..end).unwrap_or_default();
    let is_async = index > 0 && tokens[index - 1] == "async";
    (
        Function { changes_self, takes_self, is_async, returns: type_name(returned, owner), shared_by: None },
        end,
    )
}

/// Returns the name of a type: the last of its path, also inside of a reference, a `Result` or an `Option`.
pub(crate) fn type_name(tokens: &[String], owner: &str) -> Option<String> {
    let mut index = 0;
    loop {
        match at(tokens, index) {
            "'" => index += 2,
            "&" | "mut" | "dyn" | "impl" => index += 1,
            name if is_ident(name) => break,
            _ => return None,
        }
    }
    while at(tokens, index + 1) == "::" && is_ident(at(tokens, index + 2)) {
        index += 2;
    }
    match (at(tokens, index), at(tokens, index + 1)) {
        ("Result" | "Option", "<") => type_name(&tokens[index + 2..], owner),
        ("Self", _) => Some(owner.to_owned()),
        (name, _) => Some(name.to_owned()),
    }
}

/// Returns the index behind the angle bracket that closes the one at an index.
pub(crate) fn after_angles(tokens: &[String], open: usize) -> usize {
    let mut depth = 0_usize;
    let mut index = open;
    while index < tokens.len() {
        match at(tokens, index) {
            "<" => depth += 1,
            ">" if !matches!(at(tokens, index - 1), "-" | "=") => depth -= 1,
            "(" | "[" | "{" => index = closing(tokens, index),
            _ => {}
        }
        index += 1;
        if depth == 0 {
            break;
        }
    }
    index
}

/// Returns whether the tokens before a `fn` say that it is for users.
fn is_public(before: &[String]) -> bool {
    let qualifiers = ["const", "async", "unsafe"];
    before
        .iter()
        .rev()
        .find(|token| !qualifiers.contains(&token.as_str()))
        .is_some_and(|token| token == "pub")
}
