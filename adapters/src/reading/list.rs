//! Bounded lists of distinct values: links, people, categories, enclosures.

use crate::{Category, Person};

/// Limit of the links, people, categories or enclosures of one entry or feed; the rest are dropped,
/// those of an entry with a note. It also keeps the search for repetitions from growing with the
/// square of hostile input.
pub(crate) const VALUES_MAX: usize = 1024;

/// True while there is room for another value.
pub(crate) fn has_room<T>(values: &[T]) -> bool {
    values.len() < VALUES_MAX
}

/// Fills a field that is empty: the first value holds.
pub(crate) fn fill<T>(field: &mut Option<T>, value: impl FnOnce() -> Option<T>) {
    if field.is_none() {
        *field = value();
    }
}

/// Adds a value, if there is one, that is not there yet.
pub(crate) fn add<T: PartialEq>(values: &mut Vec<T>, value: impl Into<Option<T>>) {
    if let Some(value) = value.into()
        && has_room(values)
        && !values.contains(&value)
    {
        values.push(value);
    }
}

/// Adds a person, if there is one, or the new details of one who is there already.
pub(crate) fn add_person(people: &mut Vec<Person>, person: impl Into<Option<Person>>) {
    let Some(person) = person.into().filter(|_| has_room(people)) else {
        return;
    };
    let same = |a: &Option<String>, b: &Option<String>| a.is_some() && a == b;
    let known = people
        .iter_mut()
        .find(|known| same(&known.name, &person.name) || same(&known.email, &person.email));
    match known {
        Some(known) => {
            known.name = known.name.take().or(person.name);
            known.email = known.email.take().or(person.email);
            known.uri = known.uri.take().or(person.uri);
            known.byline = known.byline.take().or(person.byline);
        }
        None => add(people, person),
    }
}

/// Adds categories whose term is not there yet, in whatever case and scheme: publishers repeat
/// their tags in every vocabulary that they know. False when there was no room for all.
pub(crate) fn add_categories(categories: &mut Vec<Category>, offered: Vec<Category>) -> bool {
    let mut room = true;
    for category in offered {
        if !categories
            .iter()
            .any(|known| known.term.eq_ignore_ascii_case(&category.term))
        {
            room &= has_room(categories);
            add(categories, category);
        }
    }
    room
}
