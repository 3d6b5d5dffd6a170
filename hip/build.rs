//! Links the programs as shared libraries with the names and the symbol versions of `libamdhip64` and of
//! `libhsa-runtime64`.
//!
//! `symbols.txt` says which function belongs to which version. A program that was linked to AMD's library
//! asks for its functions with these versions (Drepper, "How To Write Shared Libraries", section 3.3).

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

/// A version of HIP with the functions that it has brought.
struct Version<'a> {
    name: &'a str,
    functions: Vec<&'a str>,
}

/// The functions of HSA's runtime that are here, and the version that they have there (ROCr,
/// hsacore.so.def).
const HSA: [&str; 6] = [
    "hsa_agent_get_info",
    "hsa_agent_iterate_isas",
    "hsa_init",
    "hsa_isa_get_info_alt",
    "hsa_iterate_agents",
    "hsa_shut_down",
];
const HSA_VERSION: &str = "ROCR_1";

fn main() {
    println!("cargo:rerun-if-changed=symbols.txt");
    let table = fs::read_to_string("symbols.txt").expect("symbols.txt lies beside build.rs");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    let (mut versions, mut absent) = (Vec::new(), String::from("absent! {\n"));
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, is_absent) = match line.strip_suffix(" absent") {
            Some(name) => (name, true),
            None => (line, false),
        };
        match versions.last_mut() {
            _ if name.starts_with("hip_") => versions.push(Version { name, functions: Vec::new() }),
            Some(version) => version.functions.push(name),
            None => panic!("symbols.txt begins with a version"),
        }
        if is_absent {
            // Writing to a string cannot fail.
            let _ = writeln!(absent, "    {name}");
        }
    }
    absent.push_str("}\n");
    fs::write(Path::new(&out).join("absent.rs"), absent).expect("OUT_DIR can be written");
    let mut names: Vec<&str> =
        versions.iter().flat_map(|version| version.functions.iter().copied()).collect();
    names.sort_unstable();
    let addresses = format!("super::addresses! {{\n    {}\n}}\n", names.join("\n    "));
    fs::write(Path::new(&out).join("addresses.rs"), addresses).expect("OUT_DIR can be written");
    for major in [5, 6, 7] {
        link(&out, &format!("amdhip64-{major}"), &format!("libamdhip64.so.{major}"), &versions);
    }
    let versions = [Version { name: HSA_VERSION, functions: HSA.to_vec() }];
    // Not AMD's soname, so that nothing that is linked to their library takes this one for it.
    link(&out, "hsa-runtime64", "libhsa-runtime64.so", &versions);
}

/// Tells cargo how a program becomes the library of that name.
fn link(out: &str, program: &str, library: &str, versions: &[Version<'_>]) {
    let map = Path::new(out).join(format!("{program}.map"));
    fs::write(&map, script(versions)).expect("OUT_DIR can be written");
    let argument = |text: &str| println!("cargo:rustc-link-arg-bin={program}={text}");
    argument("-shared");
    argument(&format!("-Wl,-soname,{library}"));
    argument(&format!("-Wl,--version-script={}", map.display()));
    // The functions lie in our library, which the linker searches only for what it is asked for.
    for name in versions.iter().flat_map(|version| &version.functions) {
        argument(&format!("-Wl,-u,{name}"));
    }
}

/// The linker's script: each version has its functions and all before it.
fn script(versions: &[Version<'_>]) -> String {
    let mut script = String::new();
    let mut before = "";
    for Version { name, functions } in versions {
        let local = if before.is_empty() { " local: *;" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(script, "{name} {{ global: {};{local} }} {before};", functions.join("; "));
        before = name;
    }
    script
}
