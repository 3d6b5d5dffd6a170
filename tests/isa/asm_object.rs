//! Whole objects through text and back: ours byte for byte, those of clang and lld in all that they say.

use groundswell::assembler::{AssemblerOptions, assemble, disassemble};
use groundswell::object::ObjectFile;
use groundswell::simulator::{CheckOptions, LaunchConfig, Simulator};
use groundswell::target::Target;
use groundswell_testing::kernels;
use groundswell_testing::oracle::{Workspace, text_section, without_entry};
use groundswell_testing::places::root;

fn assembled(text: &str) -> Vec<u8> {
    match assemble(text, AssemblerOptions::default()) {
        Ok(assembled) => assembled.object,
        Err(faults) => {
            let numbered: String =
                text.lines().enumerate().map(|(n, line)| format!("{}\t{line}\n", n + 1)).collect();
            panic!("{faults}\n{}", numbered.chars().take(20_000).collect::<String>());
        }
    }
}

#[test]
fn our_objects_come_back_byte_for_byte() {
    let mut count = 0;
    for case in kernels::all() {
        let executable = case.kernel.compile(&case.options).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        let object = executable.object();
        let listing = disassemble(object).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        assert_eq!(listing.notes, [""; 0], "{}", case.name);
        assert!(assembled(&listing.text) == object, "{}: other bytes", case.name);
        // The text that the compiler writes for LLVM gives the same object except for exact register counts.
        let other = assembled(&executable.assembly().expect("it has a text"));
        assert_eq!(text_section(&other), text_section(object), "{}", case.name);
        count += 1;
    }
    assert!(count > 50, "only {count} kernels");
}

/// Clang leaves a kernel that cannot be reached without code, as rocPRIM has one for each chip in the objects
/// of all, and the last one begins where the code ends.
#[test]
fn a_kernel_without_code_may_be_the_last_one() {
    let head = |name: &str| format!(".globl {name}\n.p2align 8\n.type {name},@function\n{name}:\n");
    let block = |name: &str| {
        format!(
            ".p2align 6\n.amdhsa_kernel {name}\n.amdhsa_next_free_vgpr 4\n.amdhsa_next_free_sgpr 4\n\
             .amdhsa_accum_offset 4\n.end_amdhsa_kernel\n"
        )
    };
    let fill = "s_endpgm\n.p2align 8\n";
    let code = format!("{}{fill}{}.size none, 0\n", head("k"), head("none"));
    let object = assembled(&format!(
        ".amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\n{code}.rodata\n{}{}",
        block("k"),
        block("none")
    ));
    let read = ObjectFile::parse(&object).expect("it is an object");
    let sizes: Vec<(&str, bool)> = read.kernels.iter().map(|k| (k.name, k.code.is_empty())).collect();
    assert_eq!(sizes, [("k", false), ("none", true)]);
    let listing = disassemble(&object).expect("it is an object");
    assert!(assembled(&listing.text) == object, "other bytes of\n{}", listing.text);
    let mut simulator = Simulator::new(Target::GFX942);
    let module = simulator.load(&object).expect("one of its kernels has code");
    let config = LaunchConfig::new([1; 3], [64, 1, 1]);
    simulator.launch(&module, "k", config, &[]).expect("it ends at once");
    let checked = simulator.check(&module, "k", config, &[], &CheckOptions { seed: 1 });
    assert_eq!(checked.expect("it ends at once").findings.len(), 0);
    let refused = simulator.launch(&module, "none", config, &[]);
    let refused = refused.expect_err("there is nothing to execute").to_string();
    assert!(refused.contains("`none` has no instruction at its entry"), "{refused}");
}

/// Symbols that need a label after a descriptor, inside it, or next to it.
#[test]
fn places_at_and_in_descriptors_come_back() {
    const HEAD: &str = ".amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\n.globl k\n.p2align 8\n.type k,@function\nk:\n\
                        s_endpgm\n";
    const BLOCK: &str = ".p2align 6\n.amdhsa_kernel k\n.amdhsa_next_free_vgpr 4\n.amdhsa_next_free_sgpr 4\n\
                         .amdhsa_accum_offset 4\n.end_amdhsa_kernel\n";
    for (section, place, is_block) in [
        (".rodata", "x:", true),
        (".rodata", "x: .long 1\ny:", true),
        (".rodata", ".set x, k.kd", true),
        (".rodata", ".set x, k.kd + 8", false),
        (".rodata", ".set x, k.kd + 64", true),
        (".text", "x:", false),
    ] {
        let object = assembled(&format!("{HEAD}{section}\n{BLOCK}.globl x\n{place}\n"));
        let listing = disassemble(&object).expect("it is an object");
        assert_eq!(listing.text.contains(".amdhsa_kernel k\n"), is_block, "{section} {place}");
        assert!(assembled(&listing.text) == object, "{section} {place}: other bytes of\n{}", listing.text);
        assert!(listing.text.lines().any(|line| line == "x:"), "{section} {place}:\n{}", listing.text);
    }
}

/// Binding and visibility of a kernel's code and of its descriptor need not be the same, and a descriptor
/// that no block makes still leads to its code in another layout.
#[test]
fn descriptors_lead_to_their_code_in_another_layout() {
    const HEAD: &str = ".amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\n.globl k\n.p2align 8\n.type k,@function\nk:\n\
                        s_endpgm\n.rodata\n.p2align 6\n.amdhsa_kernel k\n.amdhsa_next_free_vgpr 4\n\
                        .amdhsa_next_free_sgpr 4\n.amdhsa_accum_offset 4\n.end_amdhsa_kernel\n";
    for (after, is_block) in [
        ("", true),
        (".protected k\n", true),
        (".hidden k\n", true),
        (".protected k\n.protected k.kd\n", true),
        (".protected k.kd\n.hidden k\n", true),
        (".weak k\n", true),
        // A label inside.
        (".globl x\n.set x, k.kd + 32\n", false),
    ] {
        let object = assembled(&format!("{HEAD}{after}"));
        let listing = disassemble(&object).expect("it is an object");
        assert_eq!(listing.text.contains(".amdhsa_kernel k\n"), is_block, "{after}");
        assert!(assembled(&listing.text) == object, "{after}: other bytes of\n{}", listing.text);
        // More code before the kernel puts all of it elsewhere.
        let moved = listing.text.replace("\n.text\n", "\n.text\n.fill 1024, 4, 0xbf800000\n");
        assert_ne!(moved, listing.text);
        let moved = assembled(&moved);
        let read = ObjectFile::parse(&moved).expect("it is an object");
        assert_eq!(read.kernels[0].code[..4], [0x00, 0x00, 0x81, 0xbf], "{after}");
    }
}

/// A linker keeps local symbols of one name and the notes of all its inputs.
#[test]
fn what_was_linked_of_several_files_comes_back() {
    let Some(workspace) = Workspace::with_tools(&["clang-19", "ld.lld-19"]) else { return };
    for (name, value) in [("one", 3), ("two", 4)] {
        let source = format!(
            "#define GLOBAL __attribute__((address_space(1)))
static int GLOBAL state = {value};
static __attribute__((noinline)) void help(int GLOBAL *out) {{ *out = state += {value}; }}
__attribute__((amdgpu_kernel)) void {name}(int GLOBAL *out) {{ help(out); }}"
        );
        workspace.write(&format!("{name}.c"), source.as_bytes());
        workspace.run(&(clang("gfx942", "-O1 -c", &format!("{name}.c")) + &format!(" -o {name}.o")));
    }
    workspace.run("ld.lld-19 -shared one.o two.o -o both.co");
    let theirs = workspace.read("both.co");
    assert_eq!(ObjectFile::parse(&theirs).expect("an object").kernels.len(), 2);
    let listing = disassemble(&theirs).expect("it is an object");
    assert!(listing.notes.iter().any(|note| note == "one of the symbols `help` is `help.1` in the text"));
    let ours = assembled(&listing.text);
    compare(&ours, &theirs, "two files");
    let again = disassemble(&ours).expect("it is an object");
    assert!(assembled(&again.text) == ours, "other bytes");
}

/// Texts of large objects are longer than 64 MiB. What they ask for in few words has a limit all the same.
#[test]
fn long_texts_are_taken() {
    const HEAD: &str = ".amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\n.globl f\nf:\n";
    let line = format!("    v_mov_b32_e32 v0, v1{:>100}// 000000: 7e000301\n", "");
    let count = (70 << 20) / line.len();
    let object = assembled(&(HEAD.to_owned() + &line.repeat(count)));
    assert_eq!(text_section(&object).len(), 4 * count);
    let zeros = format!("{HEAD}.data\n.zero {}\n", 66 << 20);
    let faults = assemble(&zeros, AssemblerOptions::default()).expect_err("it asks for too much");
    assert!(faults.to_string().contains("hold 64 MiB at most together"), "{faults}");
}

const SIMULATOR_C: &str = "sim/kernels.c";
const DECODER_C: &str = "data/clang_kernels.c";
const ASSEMBLER_C: &str = "asm/kernels.c";

/// Sources and the targets that they compile for.
const SOURCES: [(&str, &[&str]); 3] = [
    (ASSEMBLER_C, &["gfx906", "gfx908", "gfx90a", "gfx942"]),
    (SIMULATOR_C, &["gfx908", "gfx90a", "gfx942"]),
    (DECODER_C, &["gfx90a", "gfx942"]),
];

/// The way to a source of these tests.
fn of_tests(source: &str) -> String {
    root().join("tests").join(source).display().to_string()
}

fn clang(target: &str, flags: &str, source: &str) -> String {
    format!("clang-19 -w -x c --target=amdgcn-amd-amdhsa -mcpu={target} -nogpulib {flags} {source}")
}

#[test]
fn objects_of_clang_and_lld_keep_code_descriptors_and_metadata() {
    let Some(workspace) = Workspace::with_tools(&["clang-19", "ld.lld-19"]) else { return };
    for (source, targets) in SOURCES {
        for target in targets {
            for flags in ["-O2", "-O3 -g", "-O1 -mcode-object-version=6"] {
                workspace.run(&(clang(target, flags, &of_tests(source)) + " -o clang.co"));
                let theirs = workspace.read("clang.co");
                let listing = disassemble(&theirs).unwrap_or_else(|e| panic!("{target} {flags}: {e}"));
                let ours = assembled(&listing.text);
                let what = format!("{source} {target} {flags}");
                compare(&ours, &theirs, &what);
                // Once it is laid out as ours are, all of it comes back.
                let again = disassemble(&ours).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert!(assembled(&again.text) == ours, "{what}: other bytes");
            }
        }
    }
}

/// Instructions without offsets and encodings: distances to data are symbols there.
fn code(object: &[u8]) -> Vec<String> {
    let text = disassemble(object).unwrap().text;
    let code = text.lines().skip_while(|line| *line != ".text").take_while(|line| *line != ".rodata");
    code.map(|line| line.split("//").next().unwrap_or("").trim().to_owned()).collect()
}

/// Contents of the metadata note.
fn note(bytes: &[u8]) -> Vec<u8> {
    use object::{Object, ObjectSection};
    object::File::parse(bytes).unwrap().section_by_name(".note").unwrap().data().unwrap().to_vec()
}

/// The same code, descriptors except for the distance to the code, and metadata.
fn compare(ours: &[u8], theirs: &[u8], what: &str) {
    assert_eq!(code(ours), code(theirs), "{what}");
    let distances = code(theirs).iter().filter(|line| line.contains("@rel32")).count();
    let words = |bytes: &[u8]| bytes.chunks(4).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let (our_text, their_text) = (words(text_section(ours)), words(text_section(theirs)));
    assert_eq!(our_text.len(), their_text.len(), "{what}");
    let different = our_text.iter().zip(&their_text).filter(|(a, b)| a != b).count();
    assert!(different <= distances, "{what}: {different} words differ, {distances} depend on the layout");
    assert_eq!(note(ours), note(theirs), "{what}");
    let (ours, theirs) = (ObjectFile::parse(ours).unwrap(), ObjectFile::parse(theirs).unwrap());
    assert_eq!((ours.target, ours.xnack, ours.sramecc), (theirs.target, theirs.xnack, theirs.sramecc));
    assert_eq!(ours.abi_version, theirs.abi_version);
    assert_eq!(ours.kernels.len(), theirs.kernels.len(), "{what}");
    assert!(!ours.kernels.is_empty(), "{what}");
    for theirs in &theirs.kernels {
        let ours = ours.kernel(theirs.name).unwrap_or_else(|| panic!("{what}: no {}", theirs.name));
        assert_eq!(
            without_entry(ours.descriptor),
            without_entry(theirs.descriptor),
            "{what}: {}",
            theirs.name
        );
        assert_eq!(ours.code.len(), theirs.code.len(), "{what}: {}", theirs.name);
    }
}

#[test]
fn assembly_of_clang_gives_what_llvm_makes_of_it() {
    let Some(workspace) = Workspace::with_tools(&["clang-19", "ld.lld-19", "llvm-mc-19"]) else { return };
    for (source, targets) in SOURCES {
        for target in targets {
            workspace.run(&(clang(target, "-O2 -S", &of_tests(source)) + " -o clang.s"));
            let text = String::from_utf8(workspace.read("clang.s")).expect("clang writes text");
            workspace.run(&format!(
                "llvm-mc-19 -triple=amdgcn-amd-amdhsa -mcpu={target} -filetype=obj clang.s -o clang.o"
            ));
            workspace.run("ld.lld-19 -shared clang.o -o clang.co");
            compare(&assembled(&text), &workspace.read("clang.co"), &format!("{source} {target}"));
        }
    }
}

/// The results of the kernels do not depend on which assembler made them.
#[test]
fn a_kernel_that_finds_its_table_still_finds_it() {
    use groundswell::simulator::{LaunchConfig, Simulator};
    use groundswell::target::Target;
    let Some(workspace) = Workspace::with_tools(&["clang-19", "ld.lld-19"]) else { return };
    workspace.run(&(clang("gfx942", "-O2", &of_tests(ASSEMBLER_C)) + " -o clang.co"));
    let theirs = workspace.read("clang.co");
    let ours = assembled(&disassemble(&theirs).unwrap().text);
    let run = |object: &[u8]| {
        let mut simulator = Simulator::new(Target::GFX942);
        let module = simulator.load(object).unwrap();
        let input: Vec<u8> = (0..64u32).rev().flat_map(u32::to_le_bytes).collect();
        let (source, result) = (simulator.alloc(256).unwrap(), simulator.alloc(256).unwrap());
        simulator.write(source, &input).unwrap();
        let mut arguments = [result.to_le_bytes(), source.to_le_bytes()].concat();
        arguments.extend(64u32.to_le_bytes());
        let config = LaunchConfig::new([1, 1, 1], [64, 1, 1]);
        simulator.launch(&module, "lookup", config, &arguments).unwrap();
        simulator.read(result, 256).unwrap()
    };
    assert_eq!(run(&ours), run(&theirs));
}

/// Variables without a value are in no bytes of the file, and come back all the same.
#[test]
fn variables_without_a_value_come_back() {
    use groundswell::simulator::{LaunchConfig, Simulator};
    use groundswell::target::Target;
    const SOURCE: &str = "
#define GLOBAL __attribute__((address_space(1)))
int GLOBAL counter;
static int GLOBAL hidden[64];
int GLOBAL first = 40;
__attribute__((amdgpu_kernel)) void count(int GLOBAL *out) {
    int item = __builtin_amdgcn_workitem_id_x();
    hidden[item] += item + first;
    out[item] = hidden[item] + counter;
}
";
    let Some(workspace) = Workspace::with_tools(&["clang-19", "ld.lld-19"]) else { return };
    workspace.write("zeros.c", SOURCE.as_bytes());
    workspace.run(&(clang("gfx942", "-O2", "zeros.c") + " -o clang.co"));
    let theirs = workspace.read("clang.co");
    let listing = disassemble(&theirs).expect("it is an object");
    assert_eq!(listing.notes, [""; 0]);
    let ours = assembled(&listing.text);
    compare(&ours, &theirs, "zeros");
    assert!(assembled(&disassemble(&ours).expect("it is an object").text) == ours, "other bytes");
    let sizes = |object: &[u8]| {
        let object = ObjectFile::parse(object).expect("it is an object");
        let mut variables: Vec<(String, u64)> =
            object.variables.iter().map(|variable| (variable.name.to_owned(), variable.bytes)).collect();
        variables.sort();
        let zeros = object.segments.iter().map(|segment| segment.memory_size - segment.bytes.len() as u64);
        (variables, zeros.sum::<u64>())
    };
    assert_eq!(sizes(&ours).0, sizes(&theirs).0);
    assert!(sizes(&ours).1 >= 4 + 256, "{:?}", sizes(&ours));
    let run = |object: &[u8]| {
        let mut simulator = Simulator::new(Target::GFX942);
        let module = simulator.load(object).expect("it can be loaded");
        let out = simulator.alloc(256).expect("small");
        let config = LaunchConfig::new([1, 1, 1], [64, 1, 1]);
        for _ in 0..2 {
            simulator.launch(&module, "count", config, &out.to_le_bytes()).expect("it runs");
        }
        simulator.read(out, 256).expect("inside")
    };
    let expected: Vec<u8> = (0..64u32).flat_map(|item| (2 * (item + 40)).to_le_bytes()).collect();
    assert_eq!((run(&ours), run(&theirs)), (expected.clone(), expected));
}

/// Zeros that are not in the file take no memory, so that a text may have as many as a chip has memory.
#[test]
fn large_variables_without_a_value_come_back() {
    const HEAD: &str = ".amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\n.globl k\nk:\ns_endpgm\n";
    let text = |zeros: &str| {
        format!(
            "{HEAD}.bss\n.globl first\n.type first,@object\nfirst:\n.zero 0xc0000000\n.size first, .-first\n\
                 .globl second\n.type second,@object\nsecond:\n{zeros}\n.size second, .-second\n"
        )
    };
    let object = assembled(&text(".long 0, 0"));
    assert!(object.len() < 1 << 16, "{} bytes", object.len());
    let read = ObjectFile::parse(&object).expect("it is an object");
    let mut sizes: Vec<_> = read.variables.iter().map(|variable| (variable.name, variable.bytes)).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [("first", 3 << 30), ("second", 8)]);
    let listing = disassemble(&object).expect("it is an object");
    assert_eq!(listing.notes, [""; 0]);
    assert!(listing.text.contains("    .zero 3221225472"), "{}", listing.text);
    assert!(assembled(&listing.text) == object, "other bytes");
    // The simulator gives them memory as they are used.
    let mut simulator = Simulator::new(Target::GFX942);
    let module = simulator.load(&object).expect("it can be loaded");
    let second = module.variable("second").expect("it is in the object");
    assert_eq!(simulator.read(second.address, 8).expect("inside"), [0; 8]);
    // A number among them, or a distance, needs their bytes in the file, and a limit holds for what is there.
    for (number, message) in [
        (".long 1", "hold 64 MiB at most together"),
        (".long second - k", "hold 64 MiB at most together"),
        (".zero 1 << 40", "has 1024 GiB of zeros at most"),
        (".section .bss,\"aw\",@progbits", "hold 64 MiB at most together"),
    ] {
        let faults = assemble(&text(number), AssemblerOptions::default()).expect_err(number);
        assert!(faults.to_string().contains(message), "{number}: {faults}");
    }
}

/// Data that hold addresses of other data and of functions, and code that measures up to the end of data.
#[test]
fn addresses_in_data_come_back() {
    use groundswell::simulator::{LaunchConfig, Simulator};
    use groundswell::target::Target;
    const SOURCE: &str = "
#define GLOBAL __attribute__((address_space(1)))
#define CONSTANT __attribute__((address_space(4)))
static int GLOBAL first = 40;
static int GLOBAL hidden[64];
int GLOBAL *GLOBAL pointers[3] = {&first, &hidden[3], 0};
static const int CONSTANT table[5] = {3, 1, 4, 1, 5};
static __attribute__((noinline)) int twice(int value) { return 2 * value; }
static __attribute__((noinline)) int thrice(int value) { return 3 * value; }
int (*GLOBAL functions[2])(int) = {twice, thrice};
__attribute__((amdgpu_kernel)) void follow(int GLOBAL *out, int one) {
    *pointers[one] = 2;
    int sum = 0;
    for (const int CONSTANT *at = table; at != table + 5; at++) sum = 10 * sum + *at + one;
    out[0] = *pointers[0];
    out[1] = hidden[3];
    out[2] = functions[one](7);
    out[3] = sum;
}
";
    let Some(workspace) = Workspace::with_tools(&["clang-19", "ld.lld-19"]) else { return };
    workspace.write("pointers.c", SOURCE.as_bytes());
    for level in ["-O0", "-O2"] {
        workspace.run(&(clang("gfx942", level, "pointers.c") + " -o clang.co"));
        let theirs = workspace.read("clang.co");
        let relocations = |object: &[u8]| ObjectFile::parse(object).expect("an object").relocations.len();
        assert_eq!(relocations(&theirs), 4);
        let listing = disassemble(&theirs).expect("it is an object");
        assert_eq!(listing.notes, [""; 0], "{level}");
        assert_eq!(listing.text.matches("    .quad ").count(), 4, "{level}: {}", listing.text);
        let ours = assembled(&listing.text);
        assert_eq!(relocations(&ours), 4);
        compare(&ours, &theirs, level);
        assert!(assembled(&disassemble(&ours).expect("it is an object").text) == ours, "other bytes");
        let run = |object: &[u8]| {
            let mut simulator = Simulator::new(Target::GFX942);
            let module = simulator.load(object).expect("it can be loaded");
            let out = simulator.alloc(16).expect("small");
            let arguments = [&out.to_le_bytes()[..], &1u32.to_le_bytes()].concat();
            let config = LaunchConfig::new([1, 1, 1], [1, 1, 1]);
            simulator.launch(&module, "follow", config, &arguments).expect("it runs");
            simulator.read(out, 16).expect("inside")
        };
        let expected: Vec<u8> = [40, 2, 21, 42526u32].into_iter().flat_map(u32::to_le_bytes).collect();
        assert_eq!((run(&ours), run(&theirs)), (expected.clone(), expected), "{level}");
    }
}

/// Zeros alone, several sections of them, and one that a symbol is written into after all.
#[test]
fn sections_of_zeros_lie_after_all_others() {
    const HEAD: &str = ".amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\n.globl k\nk:\ns_endpgm\n";
    const ZEROS: &str = ".section .bss,\"aw\",@nobits\n.p2align 8\n.globl a\n.type a,@object\n.size a, 40\na:\n.zero 40\n\
                         .section .bss.more,\"aw\",@nobits\n.p2align 12\n.globl b\n.type b,@object\n.size b, 8\nb:\n.zero 8\n";
    const DATA: &str = ".data\n.globl d\n.type d,@object\n.size d, 4\nd:\n.long 5\n";
    for (text, zeros) in
        [(ZEROS.to_owned(), true), (format!("{ZEROS}{DATA}"), true), (DATA.to_owned(), false)]
    {
        let object = assembled(&format!("{HEAD}{text}"));
        let read = ObjectFile::parse(&object).expect("it is an object");
        let last = read.segments.iter().max_by_key(|segment| segment.address).expect("segments");
        let place =
            |name: &str| read.variables.iter().find(|variable| variable.name == name).map(|v| v.address);
        if zeros {
            let [a, b] = ["a", "b"].map(|name| place(name).expect("a variable"));
            assert_eq!((a % 256, b % 4096), (0, 0));
            let end = last.address + last.memory_size;
            assert!(a >= last.address + last.bytes.len() as u64 && b >= a + 40 && b + 8 == end, "{text}");
        }
        if let Some(d) = place("d") {
            assert_eq!(last.bytes[(d - last.address) as usize..][..4], [5, 0, 0, 0], "{text}");
        }
        let listing = disassemble(&object).expect("it is an object");
        assert!(assembled(&listing.text) == object, "other bytes of\n{}", listing.text);
    }
    let written = assembled(&format!("{HEAD}.section .bss,\"aw\",@nobits\nx: .zero 8\ny: .long y - x\n"));
    let read = ObjectFile::parse(&written).expect("it is an object");
    assert!(
        read.segments.iter().any(|segment| segment.bytes.ends_with(&[8, 0, 0, 0])),
        "the distance is in the file"
    );
    // A number among zeros keeps its place, and what comes after it is in the file, too.
    let mixed = assembled(&format!("{HEAD}.section .bss,\"aw\",@nobits\n.zero 8\n.long 7\n.zero 4\n"));
    let read = ObjectFile::parse(&mixed).expect("it is an object");
    let expected = [[0; 4], [0; 4], [7, 0, 0, 0], [0; 4]].concat();
    assert!(read.segments.iter().any(|segment| segment.bytes.ends_with(&expected)), "all of it");
}
