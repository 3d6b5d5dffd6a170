//! The `groundswell` program.
fn main() {}
