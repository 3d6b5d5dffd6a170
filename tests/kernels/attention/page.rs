//! The text of docs/attention.md is attention.

use groundswell::prelude::*;
use groundswell_testing::judged::{assert_right, verified};

const PAGE: &str = include_str!("../../../docs/attention.md");

#[test]
fn the_text_on_the_page_is_right_and_the_same_as_the_code() {
    let text = PAGE.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a kernel");
    let kernel = Kernel::parse(text, "attention.md").unwrap_or_else(|fault| panic!("{fault}"));
    for target in [Target::GFX942, Target::GFX950] {
        let sizes = [("H", 2), ("M", 100), ("N", 70), ("D", 128)];
        let options = sizes.iter().fold(Options::new(target), |o, &(name, size)| o.set(name, size));
        let executable = verified(&kernel, &options);
        let value = |symbol: Symbol| sizes.iter().find(|size| size.0 == symbol.name()).map(|size| size.1);
        (0..2).for_each(|seed| assert_right(&kernel, &executable, &value, seed, "attention.md"));
    }
}
