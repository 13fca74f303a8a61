//! Calls in a block of code, with their types as far as the tokens tell.
//!
//! A chain of calls is followed from the path, the variable or the function it begins with. A variable has the type that is
//! written at it, or that of the chain it is set to. A method whose receiver is not known counts if only one type has it.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::{Api, after_angles, signature, type_name};
use crate::tokens::{at, closing, is_ident, tokens};

type Types = BTreeSet<String>;

/// Reads the calls of a block: pairs of a type and its function.
pub(crate) fn calls(api: &Api, code: &str) -> BTreeSet<(String, String)> {
    let tokens = tokens(code).unwrap_or_else(|error| panic!("{error} in\n{code}"));
    let mut reader = Reader {
        api,
        tokens: &tokens,
        own: BTreeMap::new(),
        variables: BTreeMap::new(),
        found: BTreeSet::new(),
    };
    reader.declarations();
    (0..tokens.len()).for_each(|index| reader.read(index));
    reader.found
}

struct Reader<'a> {
    api: &'a Api,
    tokens: &'a [String],
    /// Types that the block's own functions return.
    own: BTreeMap<String, Types>,
    variables: BTreeMap<String, Types>,
    found: BTreeSet<(String, String)>,
}

impl Reader<'_> {
    fn at(&self, index: usize) -> &str {
        at(self.tokens, index)
    }

    /// Collects the block's own functions, and names with a type behind a colon: parameters and variables.
    fn declarations(&mut self) {
        for index in 0..self.tokens.len() {
            let (name, next) = (self.at(index).to_owned(), self.at(index + 1).to_owned());
            if name == "fn" {
                let returns = signature(self.tokens, index, "").0.returns;
                self.own.entry(next).or_default().extend(returns);
            } else if is_ident(&name) && next == ":" {
                let named = type_name(&self.tokens[index + 2..], "").filter(|name| self.api.has_type(name));
                self.variables.entry(name).or_default().extend(named);
            }
        }
    }

    fn read(&mut self, index: usize) {
        let before = index.checked_sub(1).map_or("", |before| self.at(before));
        let in_chain = before == "::" || before == "." && (index < 2 || self.at(index - 2) != ".");
        if self.at(index) == "let" {
            let name = if self.at(index + 1) == "mut" { index + 2 } else { index + 1 };
            if self.at(name + 1) == "=" {
                let types = self.chain(name + 2);
                self.variables.entry(self.at(name).to_owned()).or_default().extend(types);
            }
        } else if is_ident(self.at(index)) && !in_chain {
            self.chain(index);
        }
    }

    /// Follows a chain of calls, and returns the types that it may give.
    fn chain(&mut self, start: usize) -> Types {
        let (mut types, mut index, mut is_async) = self.root(start);
        loop {
            match (self.at(index), self.at(index + 1)) {
                ("?", _) => index += 1,
                // What a builder gives when it is awaited is not known.
                (".", "await") => {
                    index += 2;
                    if !is_async {
                        types.clear();
                    }
                }
                (".", name) if is_ident(name) => {
                    let name = name.to_owned();
                    let open = self.after_turbofish(index + 2);
                    if self.at(open) == "(" {
                        (types, is_async) = self.method(&types, &name);
                        index = closing(self.tokens, open) + 1;
                    } else {
                        types.clear();
                        index += 2;
                    }
                }
                // The number of a tuple's field is a literal, which is left out.
                (".", _) => {
                    types.clear();
                    index += 1;
                }
                _ => return types,
            }
        }
    }

    /// Reads the beginning of a chain: its types, the index behind it, and whether it has to be awaited.
    fn root(&mut self, start: usize) -> (Types, usize, bool) {
        let mut path = vec![self.at(start).to_owned()];
        let mut end = self.after_turbofish(start + 1);
        while self.at(end) == "::" && is_ident(self.at(end + 1)) {
            path.push(self.at(end + 1).to_owned());
            end = self.after_turbofish(end + 2);
        }
        if self.at(end) != "(" {
            let types = if path.len() == 1 { self.variables.get(&path[0]).cloned() } else { None };
            return (types.unwrap_or_default(), end, false);
        }
        let name = path.pop().unwrap_or_default();
        let owner = path.pop().filter(|owner| self.api.has_type(owner)).unwrap_or_default();
        let (mut types, is_async) = self.call(&owner, &name);
        if !owner.is_empty() && types.is_empty() {
            // A function of a trait, such as `default` and `from`, or a variant.
            types.extend(self.api.function(&owner, &name).is_none().then_some(owner));
        } else if owner.is_empty() {
            types.extend(self.own.get(&name).cloned().unwrap_or_default());
            types.extend(self.api.has_type(&name).then_some(name));
        }
        (types, closing(self.tokens, end) + 1, is_async)
    }

    fn after_turbofish(&self, index: usize) -> usize {
        let is_there = self.at(index) == "::" && self.at(index + 1) == "<";
        if is_there { after_angles(self.tokens, index + 1) } else { index }
    }

    /// Notes the call of a method on one of these types.
    fn method(&mut self, types: &Types, name: &str) -> (Types, bool) {
        if name == "clone" {
            return (types.clone(), false);
        }
        let mut owners: Vec<String> =
            types.iter().filter(|owner| self.api.function(owner, name).is_some()).cloned().collect();
        if owners.is_empty()
            && let [only] = self.api.owners_of(name)[..]
        {
            owners.push(only.clone());
        }
        let (mut returned, mut is_async) = (Types::new(), false);
        for owner in owners {
            let (types, waits) = self.call(&owner, name);
            returned.extend(types);
            is_async |= waits;
        }
        (returned, is_async)
    }

    /// Notes a call, and returns the type it gives.
    fn call(&mut self, owner: &str, name: &str) -> (Types, bool) {
        let Some(function) = self.api.function(owner, name) else { return (Types::new(), false) };
        self.found.insert((owner.to_owned(), name.to_owned()));
        (function.returns.iter().cloned().collect(), function.is_async)
    }
}
