use roundtrip::form::{Alternative, Choice as _};
use roundtrip_macros::Choice;

fn untitled(value: &'static str) -> Alternative {
    Alternative { value, title: None }
}

/// E1: A choice is a word made of the variant's name, and is read back from it.
#[test]
fn values_are_names_in_snake_case() {
    #[derive(Choice, Debug, PartialEq)]
    enum Size {
        Small,
        ExtraLarge,
        #[choice(rename = "XXL")]
        Huge,
    }
    assert_eq!(Size::ALTERNATIVES, [untitled("small"), untitled("extra_large"), untitled("XXL")]);
    for size in [Size::Small, Size::ExtraLarge, Size::Huge] {
        assert_eq!(Size::from_value(size.value()), Some(size));
    }
    assert_eq!(Size::from_value("Small"), None);
}

#[test]
fn values_can_have_another_spelling() {
    #[derive(Choice)]
    #[choice(rename_all = "SCREAMING-KEBAB-CASE")]
    enum Size {
        ExtraLarge,
    }
    assert_eq!(Size::ExtraLarge.value(), "EXTRA-LARGE");
}

/// E1: A title is what is set, or the doc comment's first paragraph.
#[test]
fn titles_are_set_or_documented() {
    #[derive(Choice)]
    enum Seat {
        /// Not this
        #[choice(title = "By the window.")]
        Window,
        /// In the garden,
        /// under the trees.
        ///
        /// Where the wasps are.
        Garden,
        Bar,
    }
    let titles: Vec<Option<&str>> = Seat::ALTERNATIVES.iter().map(|seat| seat.title).collect();
    assert_eq!(titles, [Some("By the window."), Some("In the garden, under the trees"), None]);
}
