//! What rustdoc cannot know about the documentation.

/// The prelude's documentation has a line for every name in it.
#[test]
fn the_table_of_the_prelude_is_complete() {
    let prelude = include_str!("../src/prelude.rs");
    let table = prelude.split_once("pub use").expect("it has items").0;
    let mut names = Vec::new();
    for statement in prelude.split(';').filter_map(|statement| statement.split_once("pub use ")) {
        let (path, list) = match statement.1.split_once('{') {
            Some((path, list)) => (path, list.trim_end().trim_end_matches('}')),
            None => ("", statement.1),
        };
        for item in list.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let last = if item == "self" { path.trim_end_matches("::") } else { item };
            names.push(last.rsplit("::").next().unwrap_or(last).to_owned());
        }
    }
    assert!(names.len() > 50 && names.iter().any(|name| name == "DType"), "{names:?}");
    let missing: Vec<_> = names.iter().filter(|name| !table.contains(&format!("[`{name}`]"))).collect();
    assert!(missing.is_empty(), "no line about {missing:?}");
}
