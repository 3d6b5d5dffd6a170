//! The reverse direction of the instruction table's test: the code that clang makes of C kernels decodes
//! without an unknown instruction, prints as llvm-objdump prints it, and encodes to the same bytes.

use groundswell::isa::{Arch, decode, encode, write_inst};
use groundswell::object::ObjectFile;
use groundswell_testing::oracle::Workspace;

const SOURCE: &str = include_str!("../data/clang_kernels.c");

/// Text and words of every instruction by llvm-objdump, in order of address.
fn listing(workspace: &Workspace) -> Vec<(u64, String)> {
    let mut found = Vec::new();
    for line in workspace.run("llvm-objdump-19 -d kernels.co").lines() {
        let Some((text, rest)) = line.split_once("//") else { continue };
        let Some((address, _)) = rest.split_once(':') else { continue };
        let address = u64::from_str_radix(address.trim(), 16).expect("an address");
        found.push((address, text.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    found
}

fn decodes(arch: Arch, optimisation: &str) {
    let Some(workspace) = Workspace::with_tools(&["clang-19", "llvm-objdump-19"]) else { return };
    workspace.write("kernels.c", SOURCE);
    workspace.run(&format!(
        "clang-19 -x c --target=amdgcn-amd-amdhsa -mcpu={arch} {optimisation} -nogpulib kernels.c -o kernels.co"
    ));
    let bytes = workspace.read("kernels.co");
    let object = ObjectFile::parse(&bytes).expect("clang's object is read");
    assert_eq!(object.kernels.len(), 29, "kernels of the source");
    let listing = listing(&workspace);
    assert!(listing.len() > 1000, "{} instructions", listing.len());

    let text = groundswell_testing::oracle::text_section(&bytes);
    let words: Vec<u32> =
        text.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    let start = listing[0].0;
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for (address, theirs) in &listing {
        let at = ((address - start) / 4) as usize;
        let (inst, length) = match decode(&words[at..], arch) {
            Ok(found) => found,
            Err(error) => {
                wrong.push(format!("{theirs}: {error}"));
                continue;
            }
        };
        let mut ours = String::new();
        write_inst(&mut ours, &inst, arch, None).expect("a string takes everything");
        let mut again = Vec::new();
        match encode(&inst, arch, &mut again) {
            Ok(()) if again == words[at..at + length] => {}
            other => {
                wrong.push(format!("{theirs}: {other:?}, {again:08x?} of {:08x?}", &words[at..at + length]))
            }
        }
        // Branch targets are numbers here, and have a label after them there.
        if !theirs.starts_with(&ours) {
            wrong.push(format!("ours {ours} | LLVM {theirs}"));
        }
        compared += 1;
    }
    let shown = wrong.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} of {compared} on {arch} {optimisation}\n{shown}", wrong.len());
}

#[test]
fn what_clang_makes_for_gfx90a_decodes() {
    decodes(Arch::Gfx90a, "-O3");
}

#[test]
fn what_clang_makes_for_gfx942_decodes() {
    decodes(Arch::Gfx942, "-O3");
}

#[test]
fn what_clang_makes_without_optimisation_decodes() {
    for arch in [Arch::Gfx90a, Arch::Gfx942] {
        decodes(arch, "-O0");
    }
}
