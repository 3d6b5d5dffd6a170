//! Whole files through our assembler and through LLVM's with its linker: the same sections, descriptors and
//! symbols.

use std::collections::BTreeMap;

use groundswell::assembler::{AssemblerOptions, assemble, assemble_in};
use groundswell::object::ObjectFile;
use groundswell_testing::oracle::{Workspace, without_entry};
use object::{Object, ObjectSection, ObjectSymbol};

const FILE: &str = include_str!("../asm/file.s");

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

/// Assembled by LLVM for a chip that it knows by name alone.
fn theirs(workspace: &Workspace, target: &str, text: &str) -> Vec<u8> {
    workspace.write("file.s", text);
    workspace
        .run(&format!("llvm-mc-19 -triple=amdgcn-amd-amdhsa -mcpu={target} -filetype=obj file.s -o file.o"));
    workspace.run("ld.lld-19 -shared file.o -o file.co");
    workspace.read("file.co")
}

fn section(bytes: &[u8], name: &str) -> Option<Vec<u8>> {
    let file = object::File::parse(bytes).unwrap();
    Some(file.section_by_name(name)?.data().unwrap().to_vec())
}

#[test]
fn macros_and_conditions_are_those_of_llvm() {
    const MACROS: &str = include_str!("../asm/macros.s");
    let Some(workspace) = Workspace::with_tools(&["llvm-mc-19", "ld.lld-19"]) else { return };
    for target in ["gfx906", "gfx90a", "gfx942"] {
        let text = format!(".amdgcn_target \"amdgcn-amd-amdhsa--{target}\"\n{MACROS}");
        let theirs = theirs(&workspace, target, &text);
        assert_eq!(section(&ours(&text), ".text"), section(&theirs, ".text"), "{target}");
    }
}

#[test]
fn wrong_macros_say_what_is_wrong() {
    let fault = |text: &str| {
        let text = format!(".amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\n{text}");
        assemble(&text, AssemblerOptions::default()).unwrap_err().to_string()
    };
    for (text, expected) in [
        (".macro m a:req\n.endm\nm", "4:2: macro `m` needs a value for `a`"),
        (".macro m a\n.endm\nm 1, 2", "4:6: macro `m` has 1 parameters"),
        (".macro m a", "2:1: `.macro` without `.endm`"),
        (".macro m\n.endm\n.macro m\n.endm", "4:1: macro `m` is defined already"),
        (
            ".macro m\nfrobnicate\n.endm\nm",
            "5:1: no instruction is called `frobnicate` (in `frobnicate`, a line of `m`)",
        ),
        (".rept 2", "2:1: `.rept` without `.endr`"),
        (".if 1", "2:1: `.if` without `.endif`"),
        (".endif", "2:1: `.endif` without `.if`"),
        (".else", "2:1: `.else` without `.if`"),
        (".exitm", "2:1: `.exitm` outside of a macro"),
        (".error \"no\"", "2:1: no"),
        (".rept 1000000000\n.long 1\n.endr", "2:1: an expansion has more than 256 MiB"),
        (
            ".macro m\nm\n.endm\nm",
            "5:1: macros cannot be nested more than 20 levels deep (in `m`, a line of `m`)",
        ),
    ] {
        assert_eq!(fault(text), expected, "{text}");
    }
}

/// Texts in the manner of hand-written kernels, with the directives and forms that such have.
const HAND_WRITTEN: [&str; 13] = [
    include_str!("../asm/hand_written/all_of_gfx908.s"),
    include_str!("../asm/hand_written/alternate_macros.s"),
    include_str!("../asm/hand_written/alternate_macros_words.s"),
    include_str!("../asm/hand_written/carries_from_exec.s"),
    include_str!("../asm/hand_written/chip_symbols.s"),
    include_str!("../asm/hand_written/data.s"),
    include_str!("../asm/hand_written/distances.s"),
    include_str!("../asm/hand_written/labels_in_literals.s"),
    include_str!("../asm/hand_written/matrix_names.s"),
    include_str!("../asm/hand_written/numbers.s"),
    include_str!("../asm/hand_written/places_and_characters.s"),
    include_str!("../asm/hand_written/register_counts.s"),
    include_str!("../asm/hand_written/version_4.s"),
];

#[test]
fn hand_written_texts_give_the_bytes_that_llvm_gives() {
    let Some(workspace) = Workspace::with_tools(&["llvm-mc-19", "ld.lld-19"]) else { return };
    for text in HAND_WRITTEN {
        let target = ["gfx906", "gfx908", "gfx90a", "gfx942"].into_iter().find(|name| text.contains(name));
        let theirs = theirs(&workspace, target.expect("the text names its chip"), text);
        let ours = ours(text);
        for name in [".text", ".data", ".rodata", ".mydata"] {
            let contents = |bytes: &[u8]| {
                let mut contents = section(bytes, name).unwrap_or_default();
                match name {
                    // The distance to the kernel is that of the layout.
                    ".rodata" => contents.get_mut(16..24).into_iter().for_each(|bytes| bytes.fill(0)),
                    // The distance to another section, after a place of this one.
                    ".text" if text.contains("table@rel32") => contents[8..12].fill(0),
                    _ => {}
                }
                contents
            };
            assert_eq!(contents(&ours), contents(&theirs), "{name} of\n{text}");
        }
        // Flags, and the version of the format.
        assert_eq!((&ours[48..52], ours[8]), (&theirs[48..52], theirs[8]), "{text}");
    }
}

#[test]
fn directives_that_do_not_fit_say_why() {
    let fault = |text: &str| {
        let text = format!(".amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\n{text}");
        assemble(&text, AssemblerOptions::default()).unwrap_err().to_string()
    };
    for (text, expected) in [
        (".equiv a, 1\n.equiv a, 2", "3:8: `a` is defined already"),
        ("s_nop 0\n.org 3", "3:6: `.org` goes on at a later place of the same section"),
        (".octa 1 + 1", "2:9: expected `,`, found `+`"),
        (".octa x", "2:7: `x` is not a number"),
        (".uleb128 x", "2:10: `x` is not defined"),
        (".altmacro\n.macro m x\n.endm\nm %y", "5:4: `y` is not defined"),
        (
            ".data\n.long a, b + a\n.text\na:\nb:",
            "3:7: an address here needs a relocation, which is not supported\n3:10: this is not a number that is known here",
        ),
    ] {
        assert_eq!(fault(text), expected, "{text}");
    }
}

/// What hand-written kernels and those of older compilers say.
#[test]
fn forms_of_foreign_files_are_taken() {
    let Some(workspace) = Workspace::with_tools(&["llvm-mc-19", "ld.lld-19"]) else { return };
    const KERNEL: &str = ".text\n.globl k\n.p2align 8\n.type k,@function\nk:\n  s_endpgm\n.rodata\n.p2align 6\n\
                          .amdhsa_kernel k\nMORE\n.amdhsa_accum_offset 4\n.amdhsa_next_free_vgpr 4\n\
                          .amdhsa_next_free_sgpr 16\n.end_amdhsa_kernel\nAFTER\n";
    let kernel = |more: &str, after: &str| KERNEL.replace("MORE", more).replace("AFTER", after);
    let preload = ".amdhsa_user_sgpr_kernarg_segment_ptr 1\n.amdhsa_user_sgpr_kernarg_preload_length 11\n\
                   .amdhsa_user_sgpr_kernarg_preload_offset 0";
    for (target, text, name) in [
        ("gfx942", ".section .rodata,#alloc\n.long 1\n".to_owned(), ".rodata"),
        ("gfx942", ".section .mine,#alloc,#execinstr\ns_nop 3\n".to_owned(), ".mine"),
        ("gfx90a", ".section .mine,\"aG\",@progbits,x,comdat\n.long 1\n".to_owned(), ".mine"),
        ("gfx941", "s_endpgm\n".to_owned(), ".text"),
        ("gfx940", "s_endpgm\n".to_owned(), ".text"),
        ("gfx942", kernel(preload, ""), ".rodata"),
        ("gfx942", kernel("", ".protected k"), ".rodata"),
        (
            "gfx90a",
            ".section .a,\"\",@progbits\n.long .b, .b + 1\n.section .b,\"\",@progbits\n.byte 1\n".to_owned(),
            ".a",
        ),
    ] {
        let text = format!(".amdgcn_target \"amdgcn-amd-amdhsa--{target}\"\n{text}");
        let (ours, theirs) = (ours(&text), theirs(&workspace, target, &text));
        let contents = |bytes: &[u8]| {
            let mut contents = section(bytes, name).unwrap_or_else(|| panic!("no {name} in\n{text}"));
            // The distance to the kernel is that of the layout.
            contents.get_mut(16..24).into_iter().for_each(|bytes| bytes.fill(0));
            contents
        };
        assert_eq!(contents(&ours), contents(&theirs), "{text}");
        assert_eq!(symbols(&ours), symbols(&theirs), "{text}");
        let flags = |bytes: &[u8]| bytes[48..52].to_vec();
        assert_eq!(flags(&ours), flags(&theirs), "{text}");
    }
}

/// Compilers that were given the environment write it in both places, and newer ones the processor's number
/// or its family's in the architecture.
#[test]
fn the_triple_may_be_one_of_several() {
    let of = |triple: &str| {
        format!(
            ".amdgcn_target \"{triple}gfx950\"\n.globl k\n.p2align 8\n.type k,@function\nk:\ns_endpgm\n.rodata\n\
             .p2align 6\n.amdhsa_kernel k\n.amdhsa_accum_offset 4\n.amdhsa_next_free_vgpr 4\n\
             .amdhsa_next_free_sgpr 16\n.end_amdhsa_kernel\n.amdgpu_metadata\n---\namdhsa.version: [1, 2]\n\
             amdhsa.target: {triple}gfx950\namdhsa.kernels:\n  - {{.name: k, .symbol: k.kd, \
             .kernarg_segment_size: 0, .kernarg_segment_align: 4, .group_segment_fixed_size: 0, \
             .private_segment_fixed_size: 0, .wavefront_size: 64, .sgpr_count: 16, .vgpr_count: 4, \
             .max_flat_workgroup_size: 64}}\n...\n.end_amdgpu_metadata\n"
        )
    };
    for triple in [
        "amdgcn-amd-amdhsa--",
        "amdgcn-amd-amdhsa-unknown-",
        "amdgcn--amdhsa-amdgiz-",
        "amdgpu9.50-amd-amdhsa-unknown-",
        "amdgpu9.4-amd-amdhsa--",
    ] {
        let text = of(triple);
        let object = ours(&text);
        let read = ObjectFile::parse(&object).unwrap();
        assert_eq!((read.target.name, read.kernels.len()), ("gfx950", 1));
        // The metadata keeps it.
        let listing = groundswell::assembler::disassemble(&object).expect("it is an object");
        assert!(ours(&listing.text) == object, "other bytes of\n{}", listing.text);
        assert!(listing.text.contains(&format!("amdhsa.target: {triple}gfx950")), "{}", listing.text);
        let other = text.replace(&format!("target: {triple}"), "target: amdgcn-amd-amdhsa-gnu-");
        assert!(assemble(&other, AssemblerOptions::default()).is_err());
    }
    // The processor of the architecture is another one.
    assert!(assemble(&of("amdgpu9.42-amd-amdhsa-unknown-"), AssemblerOptions::default()).is_err());
}

/// Files in files, with macros, conditions and labels that go from one to another.
#[test]
fn other_files_are_included_as_by_llvm() {
    let Some(workspace) = Workspace::with_tools(&["llvm-mc-19", "ld.lld-19"]) else { return };
    workspace.write("macros.s", ".macro twice a\ns_nop \\a\ns_nop \\a\n.endm\n.include \"last.s\"");
    workspace.write("last.s", ".set count, 3\n.if count == 3\nstart:\ns_branch start\n.endif");
    let text =
        ".text\n.include \"macros.s\" // with a comment\ntwice count\ns_branch start\n.include \"last2.s\"\n";
    workspace.write("last2.s", "s_endpgm\n");
    let target = "gfx90a";
    let options = AssemblerOptions { target: target.parse().ok() };
    let ours = assemble_in(workspace.folder(), text, options).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(section(&ours.object, ".text"), section(&theirs(&workspace, target, text), ".text"));
}

#[test]
fn files_that_cannot_be_included_are_told() {
    let Some(workspace) = Workspace::with_tools(&[]) else { return };
    workspace.write("self.s", "s_nop 0\n.include \"self.s\"\n");
    workspace.write("bytes.s", [0xff, 0xfe]);
    workspace.write("bad.s", "s_nop 0\nno_such 1\n");
    let options = AssemblerOptions { target: "gfx942".parse().ok() };
    let told = |text: &str| assemble_in(workspace.folder(), text, options).unwrap_err().to_string();
    let missing = told("s_nop 0\n.include \"none.s\"\n");
    assert!(missing.starts_with("2:10: `none.s` cannot be read: "), "{missing}");
    assert_eq!(told(".include \".\"\n"), "1:10: `.` is not a file");
    assert_eq!(told(".include \"bytes.s\"\n"), "1:10: `bytes.s` is not a text in UTF-8");
    assert_eq!(told(".include none\n"), "1:10: expected the name of a file in quotes, found `none`");
    let deep = told(".include \"self.s\"\n");
    assert!(deep.contains("files cannot be nested more than 100 levels deep"), "{deep}");
    let inner = told("s_nop 0\n.include \"bad.s\"\n");
    assert_eq!(inner, "2:1: no instruction is called `no_such` (in `no_such 1`, a line of `bad.s`)");
    let alone = assemble(".include \"bad.s\"\n", options).unwrap_err().to_string();
    assert_eq!(alone, "1:10: `.include` in a text that is not a file");
}
