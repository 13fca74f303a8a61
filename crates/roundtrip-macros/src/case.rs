//! Names in other spellings: `rename_all`.

use syn::{Error, LitStr};

/// Spelling of a name.
#[derive(Clone, Copy)]
pub(crate) enum Case {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

const CASES: &[(&str, Case)] = &[
    ("lowercase", Case::Lower),
    ("UPPERCASE", Case::Upper),
    ("PascalCase", Case::Pascal),
    ("camelCase", Case::Camel),
    ("snake_case", Case::Snake),
    ("SCREAMING_SNAKE_CASE", Case::ScreamingSnake),
    ("kebab-case", Case::Kebab),
    ("SCREAMING-KEBAB-CASE", Case::ScreamingKebab),
];

impl Case {
    pub(crate) fn parse(text: &LitStr) -> Result<Self, Error> {
        let wanted = text.value();
        let found = CASES.iter().find(|(name, _)| *name == wanted).map(|(_, case)| *case);
        found.ok_or_else(|| {
            let names: Vec<String> = CASES.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            Error::new(text.span(), format!("`rename_all` is one of {}", names.join(", ")))
        })
    }

    pub(crate) fn apply(self, name: &str) -> String {
        let words = words(name);
        match self {
            Self::Lower => words.concat(),
            Self::Upper => words.concat().to_uppercase(),
            Self::Pascal => words.iter().map(|word| capitalised(word)).collect(),
            Self::Camel => {
                let (first, rest) = words.split_at(words.len().min(1));
                first.iter().cloned().chain(rest.iter().map(|word| capitalised(word))).collect()
            }
            Self::Snake => words.join("_"),
            Self::ScreamingSnake => words.join("_").to_uppercase(),
            Self::Kebab => words.join("-"),
            Self::ScreamingKebab => words.join("-").to_uppercase(),
        }
    }
}

/// Splits a name into words in lower case: `first_name`, `FirstName`, and `HTTPPort` as `http`, `port`.
fn words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (at, letter) in letters.iter().enumerate() {
        let after_small = at > 0 && !letters[at - 1].is_uppercase();
        let before_small = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        if *letter == '_' || (letter.is_uppercase() && (after_small || before_small)) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| *letter != '_') {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{CASES, words};

    #[test]
    fn names_are_split_into_words() {
        for name in ["http_port_2", "HttpPort_2", "HTTPPort_2", "_http__port_2_"] {
            assert_eq!(words(name), ["http", "port", "2"], "{name}");
        }
        assert_eq!(words("Row2"), ["row2"]);
        assert_eq!(words("_"), [""; 0]);
    }

    #[test]
    fn every_case_has_its_spelling() {
        let spelled: Vec<String> = CASES.iter().map(|(_, case)| case.apply("FirstName")).collect();
        let expected = [
            "firstname",
            "FIRSTNAME",
            "FirstName",
            "firstName",
            "first_name",
            "FIRST_NAME",
            "first-name",
            "FIRST-NAME",
        ];
        assert_eq!(spelled, expected);
    }
}
