//! JSON whose members keep their order.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tree {
    Leaf(Value),
    List(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

impl Tree {
    pub(super) fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The value at a place.
    pub(super) fn at(&mut self, path: &[usize]) -> &mut Self {
        path.iter().fold(self, |tree, number| match tree {
            Self::List(elements) => &mut elements[*number],
            Self::Object(members) => &mut members[*number].1,
            Self::Leaf(value) => panic!("nothing is inside of {value}"),
        })
    }

    /// The values of an object's members as a list: those of the fields, and null for a field that is not there.
    pub(super) fn list(&self, fields: &[&str]) -> Self {
        let Self::Object(members) = self else { panic!("an object, not {self}") };
        let value = |field: &&str| {
            let found = members.iter().find(|(name, _)| name == field);
            found.map_or(Self::Leaf(Value::Null), |(_, value)| value.clone())
        };
        Self::List(fields.iter().map(value).collect())
    }

    /// The same with the members of every object in reverse.
    pub(super) fn reversed(&self) -> Self {
        match self {
            Self::Leaf(value) => Self::Leaf(value.clone()),
            Self::List(elements) => Self::List(elements.iter().map(Self::reversed).collect()),
            Self::Object(members) => {
                let members = members.iter().rev();
                Self::Object(members.map(|(name, value)| (name.clone(), value.reversed())).collect())
            }
        }
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = |values: Vec<String>| values.join(",");
        match self {
            Self::Leaf(value) => write!(f, "{value}"),
            Self::List(elements) => write!(f, "[{}]", all(elements.iter().map(Self::to_string).collect())),
            Self::Object(members) => {
                let member = |(name, value): &(String, Self)| format!("{}:{value}", Value::from(&**name));
                write!(f, "{{{}}}", all(members.iter().map(member).collect()))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TreeVisitor;
        impl<'de> Visitor<'de> for TreeVisitor {
            type Value = Tree;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }
            fn visit_bool<E: Error>(self, value: bool) -> Result<Tree, E> {
                Ok(Tree::Leaf(value.into()))
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Tree, E> {
                Ok(Tree::Leaf(value.into()))
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Tree, E> {
                Ok(Tree::Leaf(value.into()))
            }
            fn visit_str<E: Error>(self, value: &str) -> Result<Tree, E> {
                Ok(Tree::Leaf(value.into()))
            }
            fn visit_unit<E: Error>(self) -> Result<Tree, E> {
                Ok(Tree::Leaf(Value::Null))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
                let mut elements = Vec::new();
                while let Some(element) = list.next_element()? {
                    elements.push(element);
                }
                Ok(Tree::List(elements))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Tree::Object(members))
            }
        }
        deserializer.deserialize_any(TreeVisitor)
    }
}
