//! Buffer descriptors in check mode: an access that a descriptor lets through stays in the allocation of its
//! base, however far the descriptor extends; and advice that suits the reader.

use groundswell::prelude::*;
use groundswell::simulator::{AdviceReader, CheckOptions, CheckReport, FindingKind, LaunchConfig, Simulator};
use groundswell_testing::by_hand;

/// Bytes of each of the two buffers.
const BYTES: u64 = 4096;

/// Loads a dword at byte `offset` from a descriptor whose base is byte `base` of the first buffer and whose
/// size is `records`; as the offset, `None` stands for the distance from the base to the second buffer.
fn load(base: i32, records: u32, offset: Option<u32>) -> CheckReport {
    let offset =
        offset.map_or("s_sub_u32 s8, s6, s4".to_owned(), |offset| format!("s_mov_b32 s8, {offset:#x}"));
    let code = format!(
        "s_load_dwordx4 s[4:7], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\ns_add_u32 s4, s4, {base}\n{offset}\n\
         v_mov_b32_e32 v0, s8\ns_mov_b32 s6, {records:#x}\ns_mov_b32 s7, 0x27000\n\
         buffer_load_dword v1, v0, s[4:7], 0 offen\ns_waitcnt vmcnt(0)\ns_endpgm"
    );
    let object = by_hand::object("gfx942", &code, &[".amdhsa_kernarg_size 16"]);
    let mut simulator = Simulator::new(Target::GFX942);
    let module = simulator.load(&object).unwrap();
    let buffers = [0; 2].map(|_| {
        let address = simulator.alloc(BYTES).unwrap();
        simulator.write(address, &[1; BYTES as usize]).unwrap();
        address
    });
    let kernarg: Vec<u8> = buffers.iter().flat_map(|address| address.to_le_bytes()).collect();
    let config = LaunchConfig::new([1; 3], [64, 1, 1]);
    simulator.check(&module, "k", config, &kernarg, &CheckOptions { seed: 0 }).unwrap()
}

#[test]
fn accesses_that_leave_the_buffer_of_their_descriptor_are_found() {
    let is_found = |report: &CheckReport| {
        report.findings.iter().any(|f| matches!(f.kind, FindingKind::LeavesBuffer { size: BYTES, .. }))
    };
    // Into the other buffer: with the size that many compilers give every buffer, with one that has wrapped
    // around.
    for records in [0x7fff_fffe, 0xffff_fffc] {
        for base in [0, 128] {
            let report = load(base, records, None);
            assert!(is_found(&report), "{report}");
        }
    }
    let report = load(0, 0xffff_fffc, None);
    assert_eq!(report.findings.len(), 1, "{report}");
    assert!(report.to_string().contains("in another allocation than the base of its descriptor"), "{report}");
    assert!(report.to_string().contains("help: end the descriptor where its buffer ends"), "{report}");
}

#[test]
fn descriptors_that_promise_too_much_are_clean_as_long_as_accesses_stay() {
    for records in [BYTES as u32, 0x7fff_fffe, 0xffff_ffff] {
        for offset in [0, 128, BYTES as u32 - 4] {
            let report = load(0, records, Some(offset));
            assert!(report.is_clean(), "{report}");
        }
    }
    // Masked by an offset beyond the size, by a size of nothing, with a base in front of the buffer.
    for (base, records, offset) in
        [(0, 0x7fff_fffe, 0x8000_0000), (0, 0, 0), (4, 0, 0), (-16, 0x7fff_fffe, 16)]
    {
        let report = load(base, records, Some(offset));
        assert!(report.is_clean(), "{report}");
    }
}

/// A size that has wrapped around is noted, even where every access stays in the buffer.
#[test]
fn descriptors_that_end_after_their_allocation_are_noted() {
    let notes = |base, records| {
        let report = load(base, records, Some(0));
        assert!(report.is_clean(), "{report}");
        report.notes.iter().map(|note| note.kind.clone()).collect::<Vec<_>>()
    };
    for (base, records) in [(8, 0xffff_fffc), (0, BYTES as u32 + 1), (4, BYTES as u32)] {
        let found = notes(base, records);
        let is_wide = |kind: &FindingKind| matches!(kind, FindingKind::WideDescriptor { records: r, size: BYTES, .. } if *r == records);
        assert!(matches!(&found[..], [kind] if is_wide(kind)), "{found:?}");
    }
    for (base, records) in
        [(0, BYTES as u32), (4, BYTES as u32 - 4), (4, 16), (8, 0x7fff_fffe), (8, u32::MAX)]
    {
        assert_eq!(notes(base, records), []);
    }
}

#[test]
fn advice_suits_the_reader() {
    let report = load(0, 0xffff_fffc, None);
    assert_eq!(report.findings[0].reader, AdviceReader::Instructions);
    let report = report.for_kernels();
    assert_eq!(report.findings[0].reader, AdviceReader::Kernels);
    assert!(report.to_string().contains("help: this is a mistake of the compiler"), "{report}");
}
