//! Files of the host with device code inside, made byte by byte.

use groundswell::assembler::{AssemblerOptions, assemble};
use groundswell::object::{BundleEntry, compress_bundle, write_bundle};

/// A program of the host as far as sections go: one with the contents, at the second page, and the table of
/// names.
pub fn host_file(section: &str, contents: &[u8]) -> Vec<u8> {
    let names = format!("\0{section}\0.shstrtab\0");
    let (start, names_start) = (PAGE, PAGE + contents.len());
    let table = (names_start + names.len()).next_multiple_of(8);
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([3, 0, 62, 0, 1, 0, 0, 0]);
    [0, 0, table as u64].iter().for_each(|value| file.extend(value.to_le_bytes()));
    file.extend(0u32.to_le_bytes());
    [64u16, 56, 0, 64, 3, 2].iter().for_each(|value| file.extend(value.to_le_bytes()));
    file.resize(start, 0);
    file.extend(contents);
    file.extend(names.as_bytes());
    file.resize(table + 64, 0);
    for (name, kind, offset, size) in
        [(1u32, 1u32, start, contents.len()), (section.len() as u32 + 2, 3, names_start, names.len())]
    {
        [name, kind].iter().for_each(|value| file.extend(value.to_le_bytes()));
        [0, 0, offset as u64, size as u64].iter().for_each(|value| file.extend(value.to_le_bytes()));
        file.extend([0; 8]);
        [1u64, 0].iter().for_each(|value| file.extend(value.to_le_bytes()));
    }
    file
}

/// What sections of host files begin at multiples of.
pub const PAGE: usize = 4096;

/// Containers one after the other, each at the next multiple.
pub fn at_multiples(alignment: usize, containers: &[&[u8]]) -> Vec<u8> {
    let mut all = Vec::new();
    for container in containers {
        all.resize(all.len().next_multiple_of(alignment), 0);
        all.extend_from_slice(container);
    }
    all
}

/// The object of a kernel that stores a number to where its argument points.
pub fn storing(name: &str, id: &str, value: u32) -> Vec<u8> {
    let text = format!(
        ".amdgcn_target \"amdgcn-amd-amdhsa-unknown-{id}\"
.globl {name}
.p2align 8
.type {name},@function
{name}:
  s_load_dwordx2 s[0:1], s[0:1], 0x0
  v_mov_b32_e32 v0, 0
  v_mov_b32_e32 v1, {value}
  s_waitcnt lgkmcnt(0)
  global_store_dword v0, v1, s[0:1]
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel {name}
  .amdhsa_user_sgpr_count 2
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_kernarg_size 8
  .amdhsa_next_free_vgpr 2
  .amdhsa_next_free_sgpr 2
  .amdhsa_accum_offset 4
.end_amdhsa_kernel
"
    );
    assemble(&text, AssemblerOptions::default()).expect("it is right").object
}

/// A bundle of two kernels for three chips, one of another unit that is compressed, and a bare object.
pub fn three_containers() -> [Vec<u8>; 3] {
    let both = |name: &str, ids: &[&str]| {
        let objects: Vec<Vec<u8>> = ids.iter().map(|id| storing(name, id, 7)).collect();
        let entries = ids.iter().zip(&objects);
        let entries = entries.map(|(id, bytes)| BundleEntry { target: id.parse().expect("a target"), bytes });
        write_bundle(&entries.collect::<Vec<_>>())
    };
    let plain = both("first", &["gfx90a:xnack-", "gfx90a:xnack+", "gfx942"]);
    let compressed = compress_bundle(&both("second", &["gfx90a", "gfx942"])).expect("small");
    [plain, compressed, storing("third", "gfx942", 9)]
}
