//! Line information: every instruction leads back to the author's line, for LLVM's tools and for our own
//! reader, in objects of one kernel and of several.

use groundswell_testing::places::root;
use std::collections::BTreeSet;

use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::compile::{link, relocatable};
use groundswell::object::{
    KernelCode, KernelInfo, KernelResources, LineRow, ObjectFile, SourceLines, SourcePlace, WorkgroupSize,
    write,
};
use groundswell::prelude::*;

use groundswell_testing::oracle::Workspace;

const TEXT: &str = "kernel twice {
  workgroup M, 64, 0
  a = memory [M] global f32

  b = memory [M] global f32
  %x = read a
  %y = add %x, %x
  write %y, b
}
";

fn options() -> Options {
    Options::new(Target::GFX942).dynamic(Symbol::new("M"))
}

fn compile(kernel: &Kernel, options: &Options) -> Executable {
    compile_uncached(kernel, options, Verify::Off).unwrap()
}

fn from_text() -> Executable {
    compile(&Kernel::parse(TEXT, "kernels/twice.gsw").unwrap(), &options())
}

/// The line of the read, that of the write, and the kernel.
fn traced() -> (u32, u32, Executable) {
    let [m] = symbols(["M"]);
    let (mut read, mut write) = (0, 0);
    let kernel = Kernel::trace("traced", |w| {
        w.distribute([workgroup(m, 64, 0)]);
        let a = w.memory("a", [m], Global, F32);
        let b = w.memory("b", [m], Global, F32);
        read = line!() + 1;
        let x = w.read(a);
        write = line!() + 1;
        w.write(x + x, b);
    });
    (read, write, compile(&kernel.unwrap(), &options()))
}

/// Line of the first instruction whose assembler text begins so.
fn line_of_instruction(object: &[u8], kernel: &str, mnemonic: &str) -> (String, u32) {
    let file = ObjectFile::parse(object).unwrap();
    let kernel = file.kernel(kernel).unwrap();
    let words: Vec<u32> = kernel.code.as_chunks::<4>().0.iter().map(|w| u32::from_le_bytes(*w)).collect();
    let mut at = 0;
    while at < words.len() {
        let (inst, length) = groundswell::isa::decode(&words[at..], groundswell::isa::Arch::Gfx942).unwrap();
        if inst.to_string().starts_with(mnemonic) {
            let found = file.line_of(kernel.entry + 4 * at as u64).unwrap();
            return (found.file.into_owned(), found.line);
        }
        at += length;
    }
    panic!("there is no {mnemonic}");
}

#[test]
fn instructions_lead_to_the_line_of_the_text() {
    let executable = from_text();
    let line = |mnemonic| line_of_instruction(executable.object(), "twice", mnemonic);
    let at = |line| ("kernels/twice.gsw".to_owned(), line);
    assert_eq!(line("s_load_dword"), at(1));
    assert_eq!(line("buffer_load"), at(6));
    assert_eq!(line("v_add_f32"), at(7));
    assert_eq!(line("buffer_store"), at(8));
    assert_eq!(line("s_endpgm"), at(1));
}

#[test]
fn instructions_lead_to_the_line_of_the_trace() {
    let (read, write, executable) = traced();
    let line = |mnemonic| line_of_instruction(executable.object(), "traced", mnemonic);
    assert_eq!(line("buffer_load"), (file!().to_owned(), read));
    assert_eq!(line("buffer_store"), (file!().to_owned(), write));
}

#[test]
fn every_instruction_has_a_line_and_nothing_else_has() {
    let executable = from_text();
    let file = ObjectFile::parse(executable.object()).unwrap();
    let lines = file.lines();
    let kernel = &file.kernels[0];
    let end = kernel.entry + kernel.code.len() as u64;
    assert!((kernel.entry..end).all(|address| lines.line_of(address).is_some_and(|l| l.column > 0)));
    for outside in [0, kernel.entry - 1, end, end + 4, u64::MAX] {
        assert_eq!(lines.line_of(outside), None);
    }
}

#[test]
fn lines_can_be_left_out() {
    let kernel = Kernel::parse(TEXT, "twice.gsw").unwrap();
    let with = compile(&kernel, &options());
    let without = compile(&kernel, &options().debug_info(DebugInfo::None));
    let file = ObjectFile::parse(without.object()).unwrap();
    assert_eq!(file.line_of(file.kernels[0].entry), None);
    assert!(without.object().windows(6).all(|bytes| bytes != b".debug"));
    assert_eq!(with.code(), without.code());
}

/// A cached compilation of the same kernel from another place would hold the wrong lines.
#[test]
fn the_cache_knows_where_a_kernel_was_written() {
    let parse = |file| Kernel::parse(TEXT, file).unwrap();
    let file_of = |executable: &Executable| line_of_instruction(executable.object(), "twice", "s_endpgm").0;
    let (one, two) = (parse("one.gsw"), parse("two.gsw"));
    assert_eq!(file_of(&one.compile(&options()).unwrap()), "one.gsw");
    assert_eq!(file_of(&two.compile(&options()).unwrap()), "two.gsw");
    let plain = options().debug_info(DebugInfo::None);
    let (one, two) = (one.compile(&plain).unwrap(), two.compile(&plain).unwrap());
    assert!(std::ptr::eq(one.object(), two.object()), "without lines they are the same compilation");
}

const PRODUCT: &str = "kernel product {
  workgroup M, 64, 0
  workgroup N, 64, 1
  tile K, 32
  wave M, 32
  wave N, 32
  mma f32_16x16x16_f16
  a = memory [M, K] shared f16
  b = memory [N, K] shared f16
  c = memory [M, N] global f32
  %zero = register [M, N] f32 0.0
  %sum = iterate K (%p = %zero) {
    %x = read a
    %y = read b
    %next = mma %x, %y, %p
    yield %next
  }
  write %sum, c
}
";

/// A report names lines and tags, also for objects without lines: they are those of the kernel that asked,
/// whoever compiled an equal one before.
#[test]
fn the_cache_gives_nobody_the_report_of_another_kernel() {
    let sizes = ["M", "N", "K"];
    let options = sizes.iter().fold(Options::new(Target::GFX942), |options, size| options.set(*size, 128));
    let plain = options.clone().debug_info(DebugInfo::None);
    let tagged = |tag: &str| PRODUCT.replace("%x = read a", &format!("%x = read a @{tag}"));
    let lower = format!("\n\n{PRODUCT}");
    let texts = [PRODUCT, &lower, &tagged("first"), &tagged("other")];
    let kernels: Vec<(&str, Kernel)> = ["one.gsw", "two.gsw"]
        .into_iter()
        .flat_map(|file| texts.map(|text| (file, Kernel::parse(text, file).unwrap())))
        .collect();
    for options in [&plain, &options] {
        let mut objects = Vec::new();
        for _ in 0..2 {
            for (index, (file, kernel)) in kernels.iter().enumerate() {
                let executable = kernel.compile(options).unwrap();
                let fresh = compile_uncached(kernel, options, Verify::Off).unwrap();
                let accesses = &executable.report().lds_accesses;
                assert!(accesses.len() >= 4);
                assert_eq!(*accesses, fresh.report().lds_accesses, "{file}, kernel {index}");
                assert!(accesses.iter().all(|access| &*access.location.as_ref().unwrap().file == *file));
                objects.push(executable.object().as_ptr());
            }
        }
        let (first, second) = objects.split_at(kernels.len());
        assert_eq!(first, second, "each is compiled once");
    }
}

#[test]
fn llvm_finds_the_lines() {
    let tools = ["llvm-objdump-19", "llvm-dwarfdump-19", "llvm-readelf-19"];
    let Some(space) = Workspace::with_tools(&tools) else { return };
    let (read, write, traced) = traced();
    let both = link(&[&from_text(), &traced]).unwrap();
    space.write("both.co", &both);
    let verified = space.run("llvm-dwarfdump-19 --verify both.co");
    assert!(verified.contains("No errors."), "{verified}");
    let listing = space.run("llvm-objdump-19 -d -l both.co");
    let here = file!();
    // Each line once it changes, before the instructions of that line.
    for (place, instruction) in [
        ("kernels/twice.gsw:1".to_owned(), "s_load_dwordx2"),
        ("kernels/twice.gsw:6".to_owned(), "buffer_load_dword"),
        ("kernels/twice.gsw:8".to_owned(), "buffer_store_dword"),
        (format!("{here}:{read}"), "buffer_load_dword"),
        (format!("{here}:{write}"), "buffer_store_dword"),
    ] {
        let mark = format!("; {place}\n");
        let marked = listing.match_indices(&mark);
        let until_next = |at: usize| listing[at..].split("\n; ").next().unwrap_or_default();
        assert!(
            marked.map(|(at, _)| until_next(at)).any(|part| part.contains(instruction)),
            "no {instruction} of {place} in\n{listing}"
        );
    }
    let info = space.run("llvm-dwarfdump-19 --debug-info both.co");
    assert_eq!(info.matches("DW_TAG_subprogram").count(), 2);
    assert!(info.contains("DW_AT_name\t(\"twice\")") && info.contains("DW_AT_name\t(\"traced\")"), "{info}");
    // Addresses of the subprograms are those of the symbols.
    let file = ObjectFile::parse(&both).unwrap();
    for kernel in &file.kernels {
        let (low, high) = (kernel.entry, kernel.entry + kernel.code.len() as u64);
        assert!(info.contains(&format!("DW_AT_low_pc\t({low:#018x})")), "{info}");
        assert!(info.contains(&format!("DW_AT_high_pc\t({high:#018x})")), "{info}");
    }
}

/// `(address, file, line)` where the line changes, as LLVM reads them.
fn rows(space: &Workspace, object: &str) -> Vec<String> {
    let text = space.run(&format!("llvm-dwarfdump-19 --debug-line {object}"));
    text.lines().filter(|line| line.starts_with("0x")).map(str::to_owned).collect()
}

/// A linker turns relocatable objects into what we write directly.
#[test]
fn relocatable_objects_keep_their_lines() {
    let Some(space) = Workspace::with_tools(&["ld.lld-19", "llvm-dwarfdump-19"]) else { return };
    let (_, _, traced) = traced();
    let one = from_text();
    space.write("one.o", relocatable(&[&one]).unwrap());
    space.write("two.o", relocatable(&[&traced]).unwrap());
    space.write("ours.co", one.object());
    let verified = space.run("llvm-dwarfdump-19 --verify one.o");
    assert!(verified.contains("No errors."), "{verified}");
    space.run("ld.lld-19 -shared one.o two.o -o linked.co");
    let verified = space.run("llvm-dwarfdump-19 --verify linked.co");
    assert!(verified.contains("No errors."), "{verified}");
    let linked = space.read("linked.co");
    let linked = ObjectFile::parse(&linked).unwrap();
    for executable in [&one, &traced] {
        let alone = ObjectFile::parse(executable.object()).unwrap();
        let (alone_lines, linked_lines) = (alone.lines(), linked.lines());
        let (alone, linked) = (&alone.kernels[0], linked.kernel(executable.name()).unwrap());
        for offset in (0..alone.code.len() as u64).step_by(4) {
            let expected = alone_lines.line_of(alone.entry + offset);
            assert!(expected.is_some());
            assert_eq!(linked_lines.line_of(linked.entry + offset), expected);
        }
    }
    assert!(rows(&space, "linked.co").len() > rows(&space, "ours.co").len());
}

#[test]
fn clangs_lines_are_read() {
    let Some(space) = Workspace::with_tools(&["clang-19", "ld.lld-19"]) else { return };
    space.write(
        "k.cl",
        "kernel void k(global int *out) {\n  int i = __builtin_amdgcn_workitem_id_x();\n  out[i] = i;\n}\n",
    );
    for version in [4, 5] {
        space.run(&format!(
            "clang-19 -target amdgcn-amd-amdhsa -mcpu=gfx942 -nogpulib -O1 -gline-tables-only -gdwarf-{version} \
             -x cl k.cl -fuse-ld=lld -o k.co"
        ));
        let bytes = space.read("k.co");
        let file = ObjectFile::parse(&bytes).unwrap();
        let (kernel, lines) = (&file.kernels[0], file.lines());
        let found: BTreeSet<_> = (kernel.entry..kernel.entry + kernel.code.len() as u64)
            .step_by(4)
            .filter_map(|address| lines.line_of(address))
            .map(|found| (found.file.rsplit('/').next().unwrap_or_default().to_owned(), found.line))
            .collect();
        assert!(found.contains(&("k.cl".to_owned(), 3)), "DWARF {version}: {found:?}");
        assert!(found.iter().all(|(file, _)| file == "k.cl"), "DWARF {version}: {found:?}");
    }
}

/// Tables that no compiler makes become objects all the same.
#[test]
fn odd_lines_are_written() {
    let info = KernelInfo {
        name: "odd".into(),
        resources: KernelResources::default(),
        arguments: [].into(),
        workgroup_size: WorkgroupSize::AtMost(64),
    };
    let place = |file, line, column| Some(SourcePlace { file, line, column });
    let rows = [
        (0, place(0, 1, 1)),
        (4, place(7, 2, 2)),
        (6, place(1, u32::MAX, u32::MAX)),
        (400, place(1, 0, 0)),
        (4, None),
    ];
    let lines = SourceLines {
        files: vec!["a\0b".into(), "".into()],
        declaration: place(9, 9, 9),
        rows: rows.map(|(offset, place)| LineRow { offset, place }).into(),
    };
    let bytes = write(Target::GFX942, &[KernelCode { info: &info, code: &[0; 16], lines: Some(&lines) }]);
    let bytes = bytes.unwrap();
    let file = ObjectFile::parse(&bytes).unwrap();
    let entry = file.kernels[0].entry;
    let line = file.line_of(entry).unwrap();
    assert_eq!((&*line.file, line.line, line.column), ("a", 1, 1));
    assert_eq!(file.line_of(entry + 4).map(|line| (line.line, line.column)), Some((u32::MAX, u32::MAX)));
    let Some(space) = Workspace::with_tools(&["llvm-dwarfdump-19"]) else { return };
    space.write("odd.co", &bytes);
    space.run("llvm-dwarfdump-19 --debug-line --debug-info odd.co");
}

#[test]
fn equal_kernels_have_equal_bytes_and_no_path_of_the_host() {
    let (one, two) = (from_text(), from_text());
    assert_eq!(one.object(), two.object());
    let directory = root();
    let directory = directory.to_string_lossy();
    assert!(one.object().windows(directory.len()).all(|bytes| bytes != directory.as_bytes()));
}

/// Every byte of the debug sections, set to values that break signs, sizes and indices.
#[test]
fn no_single_byte_makes_the_reader_of_lines_panic() {
    use object::{Object, ObjectSection};
    let mut bytes = from_text().object().to_vec();
    let file = object::File::parse(&bytes[..]).unwrap();
    let sections = file.sections().filter(|section| section.name().is_ok_and(|n| n.starts_with(".debug")));
    let ranges: Vec<_> = sections.filter_map(|section| section.file_range()).collect();
    assert_eq!(ranges.len(), 5);
    let entry = ObjectFile::parse(&bytes).unwrap().kernels[0].entry;
    for (start, size) in ranges {
        for offset in start as usize..(start + size) as usize {
            let before = bytes[offset];
            for value in [0, 1, 0x7f, 0x80, 0xff, before ^ 1, before.wrapping_add(1)] {
                bytes[offset] = value;
                let lines = ObjectFile::parse(&bytes).unwrap().lines();
                let _ = (lines.line_of(entry), lines.line_of(entry + 400));
            }
            bytes[offset] = before;
        }
    }
}
