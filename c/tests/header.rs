//! The header is what cbindgen makes of the interface. `UPDATE_HEADER=1` writes it anew.

use std::fs;
use std::path::Path;

#[test]
fn the_header_is_that_of_the_interface() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("it is there");
    let bindings = cbindgen::generate_with_config(root, config).expect("the interface can be read");
    let mut made = Vec::new();
    bindings.write(&mut made);
    let made = String::from_utf8(made).expect("it is text");
    let file = root.join("../include/groundswell.h");
    if std::env::var_os("UPDATE_HEADER").is_some() {
        fs::write(&file, &made).expect("it can be written");
    }
    let kept = fs::read_to_string(&file).expect("it is there");
    assert!(kept == made, "include/groundswell.h is not that of the interface: run with UPDATE_HEADER=1");
}
