//! Code objects against LLVM: its tools read what we write, its assembler and linker make the same from our
//! text, and our reader takes what its compilers make.

use groundswell::assembler::{AssemblerOptions, assemble};
use groundswell::object::assembly;
use groundswell::object::assembly::KernelText;
use groundswell::object::{
    Access, ArgumentInfo, ArgumentKind, DescriptorField, KernelCode, KernelDescriptor, KernelInfo,
    KernelResources, ObjectError, ObjectFile, WorkgroupSize, write,
};
use groundswell::target::{FeatureSetting, ObjectVersion, Target};
use proptest::prelude::*;

use groundswell_testing::oracle::{Workspace, assert_equivalent, without_entry};

/// Targets that LLVM 19 knows.
const LLVM_TARGETS: [Target; 4] = [Target::GFX906, Target::GFX908, Target::GFX90A, Target::GFX942];

/// `s_nop 0`, `s_endpgm`.
const EMPTY: [u8; 8] = [0, 0, 0x80, 0xbf, 0, 0, 0x81, 0xbf];
const EMPTY_TEXT: &str = "  s_nop 0\n  s_endpgm";

/// A kernel that stores 1.0 to `out[x]`, as LLVM encodes it.
const STORE_ONE: [u32; 10] = [
    0xc006_0000,
    0,
    0x2602_00ff,
    0x3ff,
    0x2402_0282,
    0x7e04_02f2,
    0xbf8c_c07f,
    0xdc70_8000,
    0x0000_0201,
    0xbf81_0000,
];
const STORE_ONE_TEXT: &str = "\
  s_load_dwordx2 s[0:1], s[0:1], 0x0
  v_and_b32 v1, 0x3ff, v0
  v_lshlrev_b32 v1, 2, v1
  v_mov_b32 v2, 1.0
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v2, s[0:1]
  s_endpgm
";

fn store_one() -> (KernelInfo, Vec<u8>) {
    let info = KernelInfo {
        name: "store_one".into(),
        resources: KernelResources { vgprs: 3, sgprs: 3, kernarg_bytes: 8, ..KernelResources::default() },
        arguments: [ArgumentInfo {
            name: "out".into(),
            size: 8,
            offset: 0,
            kind: ArgumentKind::GlobalBuffer,
            access: Some(Access::WriteOnly),
        }]
        .into(),
        workgroup_size: WorkgroupSize::Exactly([64, 1, 1]),
    };
    (info, STORE_ONE.iter().flat_map(|word| word.to_le_bytes()).collect())
}

fn kernel(name: String, resources: KernelResources) -> KernelInfo {
    KernelInfo { name, resources, arguments: [].into(), workgroup_size: WorkgroupSize::AtMost(1024) }
}

fn write_empty(target: Target, infos: &[KernelInfo]) -> Vec<u8> {
    let kernels: Vec<_> = infos.iter().map(|info| KernelCode { info, code: &EMPTY, lines: None }).collect();
    write(target, &kernels).unwrap()
}

fn print_empty(target: Target, infos: &[KernelInfo]) -> String {
    let kernels: Vec<_> = infos.iter().map(|info| KernelText { info, body: EMPTY_TEXT }).collect();
    assembly::print(target, ObjectVersion::V5, &kernels).unwrap()
}

#[test]
fn llvm_tools_read_our_object() {
    let tools = ["llvm-readelf-19", "llvm-objdump-19"];
    let Some(space) = Workspace::with_tools(&tools) else { return };
    let (info, code) = store_one();
    space.write(
        "ours.co",
        write(Target::GFX942, &[KernelCode { info: &info, code: &code, lines: None }]).unwrap(),
    );
    let text = space.run("llvm-readelf-19 -h -S -l -s -d --notes ours.co");
    assert!(!text.contains("Invalid") && !text.contains("<corrupt>"), "{text}");
    for expected in [
        "OS/ABI:                            AMDGPU - HSA",
        "ABI Version:                       3",
        "Flags:                             0x54C, gfx942, xnack, sramecc",
        "40 FUNC    GLOBAL PROTECTED   7 store_one\n",
        "64 OBJECT  GLOBAL PROTECTED   6 store_one.kd\n",
        "NT_AMDGPU_METADATA",
        ".actual_access:  write_only",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
    assert_eq!(text.matches("PROTECTED   6 store_one.kd\n").count(), 2, "in both symbol tables");
    let hashed = space.run("llvm-readelf-19 --hash-symbols ours.co");
    assert!(hashed.contains(" store_one.kd\n") && hashed.contains(" store_one\n"), "{hashed}");
    let listing = space.run("llvm-objdump-19 -d ours.co");
    assert!(listing.contains("<store_one>:") && listing.contains("global_store_dword v1, v2, s[0:1]"));
    assert!(!listing.contains("<unknown>"));
    let descriptor = space.run("llvm-objdump-19 -D -j .rodata ours.co");
    for expected in [".amdhsa_kernarg_size 8", ".amdhsa_next_free_vgpr 8", ".amdhsa_float_denorm_mode_32 3"] {
        assert!(descriptor.contains(expected), "{expected} is not in\n{descriptor}");
    }
}

#[test]
fn llvm_makes_the_same_object_of_our_text() {
    let tools = ["llvm-mc-19", "ld.lld-19", "llvm-readelf-19"];
    let Some(space) = Workspace::with_tools(&tools) else { return };
    let (info, code) = store_one();
    for target in LLVM_TARGETS {
        let ours = write(target, &[KernelCode { info: &info, code: &code, lines: None }]).unwrap();
        let text =
            assembly::print(target, ObjectVersion::V5, &[KernelText { info: &info, body: STORE_ONE_TEXT }])
                .unwrap();
        let llvm = space.assemble(target, &text);
        assert_equivalent(&ours, &llvm);
        space.write("ours.co", ours);
        // From "AMDGPU Metadata" on: before it stands the offset of the note.
        let notes = |file| {
            let text = space.run(&format!("llvm-readelf-19 --notes {file}"));
            text[text.find("NT_AMDGPU_METADATA").unwrap()..].to_owned()
        };
        assert_eq!(notes("ours.co"), notes("llvm.co"));
    }
}

/// The register fields against LLVM's own arithmetic: exact counts in, not those that our directives round
/// to.
#[test]
fn register_fields_are_those_of_exact_counts() {
    let Some(space) = Workspace::with_tools(&["llvm-mc-19", "ld.lld-19"]) else { return };
    let target = Target::GFX942;
    let mut text = String::from(".amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\n.text\n");
    let mut ours = Vec::new();
    for (index, (vgprs, agprs, sgprs)) in
        (0..=256).map(|n| (n, (n * 7) % 257, n.min(102))).chain((0..=256).map(|n| (n, 0, 3))).enumerate()
    {
        let resources = KernelResources { vgprs, agprs, sgprs: sgprs.max(3), ..KernelResources::default() };
        let accum_offset = vgprs.max(1).next_multiple_of(4);
        let next_free_vgpr = if agprs == 0 { vgprs.max(1) } else { accum_offset + agprs };
        text += &format!(
            ".globl k{index}\n.type k{index},@function\n.p2align 8\nk{index}:\n s_endpgm\n.rodata\n.amdhsa_kernel k{index}\n\
             .amdhsa_next_free_vgpr {next_free_vgpr}\n.amdhsa_accum_offset {accum_offset}\n\
             .amdhsa_next_free_sgpr {}\n.amdhsa_reserve_vcc 1\n.end_amdhsa_kernel\n.text\n",
            resources.sgprs
        );
        ours.push(KernelDescriptor::new(target, &resources).unwrap());
    }
    let object = space.assemble(target, &text);
    let object = ObjectFile::parse(&object).unwrap();
    assert_eq!(object.kernels.len(), ours.len());
    for (index, ours) in ours.iter().enumerate() {
        let llvm = object.kernel(&format!("k{index}")).unwrap().descriptor;
        for field in
            [DescriptorField::VgprGranules, DescriptorField::SgprGranules, DescriptorField::AccumOffset]
        {
            assert_eq!(ours.get(field), llvm.get(field), "{field:?} of kernel {index}");
        }
    }
}

#[test]
fn names_and_strings_survive_the_assembler() {
    let Some(space) = Workspace::with_tools(&["llvm-mc-19", "ld.lld-19"]) else { return };
    let names = ["v1", "s0", "vcc", "exec", "inf", "nan", "true", "null", "_Z4gemmPfS_", "a.b$c", "off", "x"];
    let arguments = ["inf", "12", "no", "it's", "a \"b\" \\ c", "tab\there", "naïve", "- x: y", "", " pad "];
    let infos: Vec<_> = names
        .iter()
        .map(|name| {
            let mut info =
                kernel((*name).to_owned(), KernelResources { kernarg_bytes: 4, ..Default::default() });
            info.arguments = arguments
                .iter()
                .map(|name| ArgumentInfo {
                    name: (*name).to_owned(),
                    size: 4,
                    offset: 0,
                    kind: ArgumentKind::Other("hidden_none".into()),
                    access: None,
                })
                .collect();
            info
        })
        .collect();
    let llvm = space.assemble(Target::GFX942, &print_empty(Target::GFX942, &infos));
    assert_equivalent(&write_empty(Target::GFX942, &infos), &llvm);
}

#[test]
fn objects_of_clang_are_read() {
    let Some(space) = Workspace::with_tools(&["clang-19", "ld.lld-19", "llvm-objdump-19"]) else { return };
    space.write(
        "kernels.cl",
        "constant int table[4] = {1, 2, 3, 4};\n\
         global int counter = 7;\n\
         global int *global pointer = &counter;\n\
         kernel void saxpy(global float *y, const global float *x, float a, int n) {\n\
         local float tile[64];\n\
         int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();\n\
         tile[i & 63] = x[i]; __builtin_amdgcn_s_barrier();\n\
         y[i] = a * tile[i & 31] + table[n & 3] + *pointer; }\n\
         kernel __attribute__((reqd_work_group_size(8, 4, 2))) void second(global int *out) { out[0] = 1; }\n",
    );
    space.run(
        "clang-19 -target amdgcn-amd-amdhsa -mcpu=gfx942:sramecc+:xnack- -mcode-object-version=5 -nogpulib \
               -O2 -x cl -cl-kernel-arg-info -cl-std=CL2.0 kernels.cl -fuse-ld=lld -o clang.co",
    );
    let bytes = space.read("clang.co");
    let object = ObjectFile::parse(&bytes).unwrap();
    assert_eq!((object.target, object.abi_version), (Target::GFX942, 3));
    assert_eq!((object.xnack, object.sramecc), (FeatureSetting::Off, FeatureSetting::On));
    assert_eq!(object.kernels.len(), 2);
    let saxpy = object.kernel("saxpy").unwrap();
    assert_eq!(saxpy.entry % 256, 0);
    assert_eq!(saxpy.descriptor.group_segment_fixed_size, 256);
    assert_eq!(saxpy.code[saxpy.code.len() - 4..], 0xbf81_0000u32.to_le_bytes(), "ends with s_endpgm");
    let metadata = saxpy.metadata.as_ref().unwrap();
    let explicit: Vec<_> =
        metadata.arguments[..4].iter().map(|a| (a.name.as_str(), a.offset, a.size, a.kind.name())).collect();
    assert_eq!(
        explicit,
        [
            ("y", 0, 8, "global_buffer"),
            ("x", 8, 8, "global_buffer"),
            ("a", 16, 4, "by_value"),
            ("n", 20, 4, "by_value")
        ]
    );
    let sgprs = saxpy.descriptor.initial_sgprs(object.target);
    assert!(sgprs.kernarg_segment_ptr.is_some() && sgprs.workgroup_ids[0].is_some());
    let second = object.kernel("second").unwrap().metadata.as_ref().unwrap();
    assert_eq!(second.workgroup_size, WorkgroupSize::Exactly([8, 4, 2]));
    assert!(object.segments.iter().any(|s| s.executable) && object.segments.iter().any(|s| s.writable));
    assert!(!object.relocations.is_empty(), "the global pointer depends on the load address");
    for relocation in &object.relocations {
        assert!(
            object.segments.iter().any(|s| {
                s.writable && (s.address..s.address + s.memory_size).contains(&relocation.address)
            })
        );
    }
}

#[test]
fn stripped_objects_are_read_by_their_dynamic_symbols() {
    let Some(space) = Workspace::with_tools(&["llvm-strip-19"]) else { return };
    let (info, code) = store_one();
    let ours = write(Target::GFX942, &[KernelCode { info: &info, code: &code, lines: None }]).unwrap();
    space.write("ours.co", &ours);
    space.run("llvm-strip-19 ours.co -o stripped.co");
    let stripped = space.read("stripped.co");
    let stripped = ObjectFile::parse(&stripped).unwrap();
    assert_eq!(stripped.kernels, ObjectFile::parse(&ours).unwrap().kernels);
}

#[test]
fn what_was_written_is_read() {
    for target in Target::ALL {
        let (one, code) = store_one();
        let agprs = target.addressable_agprs().min(9);
        let two = kernel("second".into(), KernelResources { agprs, lds_bytes: 512, ..Default::default() });
        let kernels = [
            KernelCode { info: &one, code: &code, lines: None },
            KernelCode { info: &two, code: &EMPTY, lines: None },
        ];
        let bytes = write(target, &kernels).unwrap();
        let object = ObjectFile::parse(&bytes).unwrap();
        assert_eq!(object.target, target);
        assert_eq!((object.xnack, object.sramecc), (FeatureSetting::Any, FeatureSetting::Any));
        assert_eq!(object.relocations, []);
        for (kernel, written) in object.kernels.iter().zip(kernels) {
            assert_eq!(kernel.name, written.info.name);
            assert_eq!(kernel.code, written.code);
            assert_eq!(kernel.entry % 256, 0);
            assert_eq!(kernel.descriptor_address % 64, 0);
            let expected = KernelDescriptor::new(target, &written.info.resources).unwrap();
            assert_eq!(without_entry(kernel.descriptor), expected.to_bytes());
            let metadata = kernel.metadata.as_ref().unwrap();
            assert_eq!(metadata.arguments, written.info.arguments);
            assert_eq!(metadata.workgroup_size, written.info.workgroup_size);
            assert_eq!(metadata.agpr_count, written.info.resources.agprs);
        }
        for segment in &object.segments {
            let offset = segment.bytes.as_ptr() as usize - bytes.as_ptr() as usize;
            assert_eq!(
                offset as u64 % 0x1000,
                segment.address % 0x1000,
                "file and memory share page offsets"
            );
        }
    }
}

#[test]
fn faults_are_named() {
    let (info, code) = store_one();
    let good = write(Target::GFX942, &[KernelCode { info: &info, code: &code, lines: None }]).unwrap();
    let object = ObjectFile::parse(&good).unwrap();
    let descriptor = object.kernels[0].descriptor_address as usize;
    let fault = |offset: usize, byte: u8| {
        let mut bad = good.clone();
        bad[offset] = byte;
        ObjectFile::parse(&bad).unwrap_err().to_string()
    };
    assert_eq!(
        ObjectFile::parse(&[]).unwrap_err().to_string(),
        "ELF header: Invalid ELF header size or alignment"
    );
    assert!(fault(7, 0).contains("EI_OSABI at offset 0x7 is 0, not 64"));
    assert!(fault(18, 62).contains("e_machine at offset 0x12 is 62, not 224"));
    assert!(fault(48, 0xee).contains("machine 0xee in e_flags"));
    assert!(fault(descriptor + 60, 1).contains("\"store_one\" sets a reserved bit in byte 60"));
    assert!(fault(descriptor + 23, 0x10).contains("entry of kernel \"store_one\" at address 0x1000"));
    let name = good.windows(12).position(|w| w == b".vgpr_count\x03").unwrap();
    assert_eq!(
        fault(name + 11, 0xc1),
        format!("metadata at file offset {:#x}: byte 0xc1 starts no value", name + 12)
    );
    assert_eq!(fault(name + 1, b'w'), "metadata: .vgpr_count is missing or not of its type");
    let truncated = ObjectFile::parse(&good[..good.len() - 1]).unwrap_err();
    assert!(matches!(truncated, ObjectError::Elf { what: "section headers", .. }));
}

/// A kernel as a person writes it: without `.size`, and with the required workgroup size that means none.
const BY_HAND: &str = "\
.amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"
.text
.globl k
.p2align 8
.type k,@function
k:
  s_nop 0
  s_endpgm
.section both,\"awx\",@progbits
.globl x
x: .long 1
.data
.globl y
y: .long 2
.rodata
.p2align 6
.amdhsa_kernel k
  .amdhsa_next_free_vgpr 1
  .amdhsa_next_free_sgpr 8
  .amdhsa_accum_offset 4
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: 0
    .kernarg_segment_align: 4
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 8
    .vgpr_count: 1
    .max_flat_workgroup_size: 128
    .reqd_workgroup_size: [0, 0, 0]
amdhsa.version: [1, 2]
...
.end_amdgpu_metadata
";

fn by_hand() -> Vec<u8> {
    assemble(BY_HAND, AssemblerOptions::default()).unwrap_or_else(|faults| panic!("{faults}")).object
}

#[test]
fn code_of_a_function_without_size_reaches_to_the_end() {
    let bytes = by_hand();
    assert_eq!(ObjectFile::parse(&bytes).unwrap().kernels[0].code, EMPTY);
}

#[test]
fn a_required_workgroup_size_of_zeros_is_none() {
    let bytes = by_hand();
    let object = ObjectFile::parse(&bytes).unwrap();
    let metadata = object.kernels[0].metadata.as_ref().unwrap();
    assert_eq!(metadata.workgroup_size, WorkgroupSize::AtMost(128));
}

/// Sections of one segment lie as far apart in memory as in the file, code that is written to among them.
#[test]
fn written_sections_are_where_their_symbols_say() {
    use object::{Object, ObjectSymbol};
    let bytes = by_hand();
    let object = ObjectFile::parse(&bytes).unwrap();
    let file = object::File::parse(&bytes[..]).unwrap();
    for (name, number) in [("x", 1u32), ("y", 2)] {
        let address = file.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap().address();
        let found = object.bytes_at(address).map(|bytes| bytes[..4].to_vec());
        assert_eq!(found, Some(number.to_le_bytes().to_vec()), "{name} at {address:#x}");
    }
    assert!(object.segments.iter().any(|segment| segment.writable && segment.executable));
}

/// Numbers of a file header or section header, at their places.
fn put(bytes: &mut [u8], at: usize, number: u64, width: usize) {
    bytes[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
}

fn number(bytes: &[u8], at: usize, width: usize) -> usize {
    bytes[at..at + width].iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// Tables that together name more than the file holds, although every part of them lies inside.
fn too_much(bytes: &[u8]) -> &'static str {
    match ObjectFile::parse(bytes).map(|object| (object.segments.len(), object.relocations.len())) {
        Err(ObjectError::Elf { what, reason }) if reason == "together more bytes than the file" => what,
        other => panic!("{other:?}"),
    }
}

const COPIES: u16 = 1000;

/// Whoever loads an object copies all of its segments.
#[test]
fn segments_that_share_their_bytes_are_refused() {
    const PROGRAM_HEADER: usize = 56;
    let mut bytes = sample();
    let code = bytes[64 + PROGRAM_HEADER..][..PROGRAM_HEADER].to_vec();
    let table = bytes.len() as u64;
    put(&mut bytes, 32, table, 8);
    put(&mut bytes, 56, COPIES.into(), 2);
    bytes.extend(code.repeat(COPIES.into()));
    assert_eq!(too_much(&bytes), "segments");
}

#[test]
fn tables_of_relocations_that_share_their_bytes_are_refused() {
    let mut bytes = sample();
    let entries = bytes.len() as u64;
    for _ in 0..100 {
        // R_AMDGPU_RELATIVE64 at address 0.
        bytes.extend([0u64, 13, 0].iter().flat_map(|word| word.to_le_bytes()));
    }
    let (headers, count) = (number(&bytes, 40, 8), number(&bytes, 60, 2));
    let own = bytes[headers..][..64 * count].to_vec();
    let mut table = [0; 64];
    // SHT_RELA, SHF_ALLOC, where and how large, eight bytes aligned, an entry's size.
    for (at, field, width) in [(4, 4, 4), (8, 2, 8), (24, entries, 8), (32, 2400, 8), (48, 8, 8), (56, 24, 8)]
    {
        put(&mut table, at, field, width);
    }
    let headers = bytes.len() as u64;
    bytes.extend(own.into_iter().chain(table.repeat(COPIES.into())));
    put(&mut bytes, 40, headers, 8);
    put(&mut bytes, 60, count as u64 + u64::from(COPIES), 2);
    assert_eq!(too_much(&bytes), "relocations");
}

/// Names that are the ends of one long name.
#[test]
fn kernel_names_that_share_their_bytes_are_refused() {
    const SYMBOL: usize = 24;
    let mut bytes = sample();
    let descriptor = ObjectFile::parse(&bytes).unwrap().kernels[0].descriptor_address;
    let strings = bytes.len();
    bytes.extend([b'a'; 2000]);
    bytes.extend(b".kd\0");
    let symbols = bytes.len();
    bytes.extend([0; SYMBOL]);
    for name in 0..COPIES {
        let mut symbol = [0; SYMBOL];
        // Name, global object in section 1, address, size.
        for (at, field, width) in
            [(0, name.into(), 4), (4, 0x11, 1), (6, 1, 2), (8, descriptor, 8), (16, 64, 8)]
        {
            put(&mut symbol, at, field, width);
        }
        bytes.extend(symbol);
    }
    let (headers, end) = (number(&bytes, 40, 8), bytes.len());
    let symtab = (headers..).step_by(64).find(|&at| number(&bytes, at + 4, 4) == 2).unwrap();
    let strtab = headers + 64 * number(&bytes, symtab + 40, 4);
    for (header, start, end) in [(symtab, symbols, end), (strtab, strings, symbols)] {
        put(&mut bytes, header + 24, start as u64, 8);
        put(&mut bytes, header + 32, (end - start) as u64, 8);
    }
    assert_eq!(too_much(&bytes), "kernel names");
}

fn sample() -> Vec<u8> {
    let (one, code) = store_one();
    let two = kernel("second".into(), KernelResources { agprs: 9, ..Default::default() });
    write(
        Target::GFX942,
        &[
            KernelCode { info: &one, code: &code, lines: None },
            KernelCode { info: &two, code: &EMPTY, lines: None },
        ],
    )
    .unwrap()
}

#[test]
fn truncated_objects_are_errors() {
    let bytes = sample();
    for length in 0..bytes.len() {
        assert!(ObjectFile::parse(&bytes[..length]).is_err(), "{length} bytes");
    }
}

/// Every byte of what the reader interprets, set to values that break signs, sizes and indices.
#[test]
fn no_single_byte_makes_the_reader_panic() {
    let mut bytes = sample();
    for offset in 0..bytes.len() {
        let before = bytes[offset];
        for value in [0, 1, 0x7f, 0x80, 0xff, before ^ 1, before.wrapping_add(1)] {
            bytes[offset] = value;
            let _ = ObjectFile::parse(&bytes);
        }
        bytes[offset] = before;
    }
}

proptest! {
    #[test]
    fn no_mutation_makes_the_reader_panic(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..30),
        wide in proptest::collection::vec((any::<prop::sample::Index>(), any::<u64>()), 0..4),
        length in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut bytes = sample();
        for (index, value) in edits {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        for (index, value) in wide {
            let at = index.index(bytes.len() - 8);
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        if cut {
            bytes.truncate(length.index(bytes.len()));
        }
        let _ = ObjectFile::parse(&bytes);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = ObjectFile::parse(&bytes);
    }
}
