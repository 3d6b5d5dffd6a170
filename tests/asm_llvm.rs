//! Whole files through our assembler and through LLVM's with its linker: the same sections, descriptors and
//! symbols.

mod common;

use std::collections::BTreeMap;

use common::oracle::{Workspace, without_entry};
use groundswell::assembler::{AssemblerOptions, assemble};
use groundswell::object::ObjectFile;
use object::{Object, ObjectSection, ObjectSymbol};

const FILE: &str = include_str!("asm/file.s");

/// The file for a target; only some have one register file.
fn file(target: &str) -> String {
    let unified = matches!(target, "gfx90a" | "gfx942");
    let lines = FILE.lines().filter(|line| unified || !line.contains("ACCUM"));
    let text: String = lines.map(|line| line.to_owned() + "\n").collect();
    text.replace("ACCUM", ".amdhsa_accum_offset").replace("TARGET", target)
}

fn ours(text: &str) -> Vec<u8> {
    let assembled = assemble(text, AssemblerOptions::default());
    assembled.unwrap_or_else(|faults| panic!("{faults}")).object
}

/// Contents of the sections that a text makes, except for what depends on their addresses.
fn sections(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let names = [".text", ".rodata", ".other", ".strings", ".data"];
    let file = object::File::parse(bytes).unwrap();
    let mut all = BTreeMap::new();
    for name in names {
        let data = file.section_by_name(name).unwrap_or_else(|| panic!("no {name}")).data().unwrap().to_vec();
        all.insert(name.to_owned(), data);
    }
    // The descriptors' distances to their kernels.
    let rodata = all.get_mut(".rodata").unwrap();
    rodata[16..24].fill(0);
    rodata[80..88].fill(0);
    // Distances from code to data; the two to code are not touched.
    let text = all.get_mut(".text").unwrap();
    let getpc = text.windows(4).position(|word| word == [0x00, 0x1c, 0x84, 0xbe]).unwrap();
    text[getpc + 8..getpc + 12].fill(0);
    text[getpc + 16..getpc + 20].fill(0);
    all
}

/// Name, size, binding and kind of every symbol that others see.
fn symbols(bytes: &[u8]) -> Vec<(String, u64, String)> {
    let file = object::File::parse(bytes).unwrap();
    let mut all: Vec<_> = file
        .dynamic_symbols()
        .map(|s| (s.name().unwrap().to_owned(), s.size(), format!("{:?} {:?}", s.kind(), s.flags())))
        .collect();
    all.sort();
    all
}

#[test]
fn llvm_makes_the_same_of_a_file() {
    let Some(workspace) = Workspace::with_tools(&["llvm-mc-19", "ld.lld-19"]) else { return };
    for target in ["gfx906", "gfx908", "gfx90a", "gfx942"] {
        let text = file(target);
        workspace.write("file.s", &text);
        workspace.run(&format!(
            "llvm-mc-19 -triple=amdgcn-amd-amdhsa -mcpu={target} -filetype=obj file.s -o file.o"
        ));
        workspace.run("ld.lld-19 -shared file.o -o file.co");
        let (ours, theirs) = (ours(&text), workspace.read("file.co"));
        for ((name, ours), theirs) in sections(&ours).iter().zip(sections(&theirs).values()) {
            let at = ours.iter().zip(theirs).position(|(a, b)| a != b);
            let near =
                |bytes: &[u8]| at.map(|at| bytes[at & !3..].iter().take(16).copied().collect::<Vec<u8>>());
            assert_eq!(near(ours), near(theirs), "{target} {name} at {at:x?}");
            assert_eq!(ours.len(), theirs.len(), "{target} {name}");
        }
        assert_eq!(symbols(&ours), symbols(&theirs), "{target}");
        let (ours, theirs) = (ObjectFile::parse(&ours).unwrap(), ObjectFile::parse(&theirs).unwrap());
        for theirs in &theirs.kernels {
            let ours = ours.kernel(theirs.name).unwrap();
            assert_eq!(
                without_entry(ours.descriptor),
                without_entry(theirs.descriptor),
                "{target} {}",
                theirs.name
            );
            assert_eq!(ours.code.len(), theirs.code.len(), "{target} {}", theirs.name);
        }
    }
}

/// Texts that LLVM's assembler does not take: branches to places without labels.
#[test]
fn branches_go_to_places_beside_labels() {
    let text = ".amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\na:\ns_nop 0\ns_branch a+4\ns_branch .-4\ns_branch b-8\nb:\ns_call_b64 s[0:1], a\n";
    let object = ours(text);
    let file = object::File::parse(&*object).unwrap();
    let code = file.section_by_name(".text").unwrap().data().unwrap().to_vec();
    let words: Vec<u32> = code.chunks(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    assert_eq!(words, [0xbf80_0000, 0xbf82_ffff, 0xbf82_fffe, 0xbf82_fffe, 0xba80_fffb]);
}

/// The chip from outside, from the text, from both.
#[test]
fn text_and_caller_agree_on_the_target() {
    let with = |text: &str, target: Option<&str>| {
        let options = AssemblerOptions { target: target.map(|target| target.parse().unwrap()) };
        assemble(text, options)
            .map(|assembled| assembled.target.to_string())
            .map_err(|faults| faults.to_string())
    };
    let said = ".amdgcn_target \"amdgcn-amd-amdhsa--gfx942:xnack-\"\ns_nop 0\n";
    assert_eq!(with("s_nop 0", Some("gfx90a")), Ok("gfx90a".into()));
    assert_eq!(with(said, None), Ok("gfx942:xnack-".into()));
    assert_eq!(with(said, Some("gfx942")), Ok("gfx942:xnack-".into()));
    assert_eq!(with(said, Some("gfx942:xnack-")), Ok("gfx942:xnack-".into()));
    let error = with(said, Some("gfx942:xnack+")).unwrap_err();
    assert_eq!(error, "1:16: the target is gfx942:xnack- here and gfx942:xnack+ before");
    assert!(with(said, Some("gfx90a")).is_err());
}
