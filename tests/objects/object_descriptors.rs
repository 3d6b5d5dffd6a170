//! Kernel descriptors against LLVM: for a sweep of resources on every target, in every mode of it, the
//! assembler makes the same 64 bytes from our directives that we write.

use groundswell::object::assembly;
use groundswell::object::assembly::KernelText;
use groundswell::object::{
    DenormMode, FloatMode, Fp16Overflow, KernelCode, KernelDescriptor, KernelInfo, KernelResources,
    ObjectFile, ObjectOptions, RoundMode, WorkgroupSize, WorkitemIds, write,
};
use groundswell::target::{FeatureSetting, ObjectVersion, Target, TargetId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use groundswell_testing::oracle::{Workspace, assert_equivalent};

/// Targets that LLVM 19 knows.
const LLVM_TARGETS: [Target; 4] = [Target::GFX906, Target::GFX908, Target::GFX90A, Target::GFX942];

/// `s_nop 0`, `s_endpgm`.
const EMPTY: [u8; 8] = [0, 0, 0x80, 0xbf, 0, 0, 0x81, 0xbf];
const EMPTY_TEXT: &str = "  s_nop 0\n  s_endpgm";

const ROUNDS: [RoundMode; 4] =
    [RoundMode::NearestEven, RoundMode::PlusInfinity, RoundMode::MinusInfinity, RoundMode::Zero];
const DENORMS: [DenormMode; 4] = [
    DenormMode::FlushSourcesAndResults,
    DenormMode::FlushResults,
    DenormMode::FlushSources,
    DenormMode::Keep,
];
const ITEMS: [WorkitemIds; 3] = [WorkitemIds::X, WorkitemIds::Xy, WorkitemIds::Xyz];

/// One resource varied at a time over its whole range, then some of everything; those that the target has.
fn sweep(target: Target) -> Vec<KernelResources> {
    let base = KernelResources { vgprs: 1, ..KernelResources::default() };
    let mut all = Vec::new();
    all.extend((0..=256).map(|vgprs| KernelResources { vgprs, ..base.clone() }));
    all.extend((0..=256).step_by(3).map(|agprs| KernelResources { vgprs: 77, agprs, ..base.clone() }));
    all.extend((0..=102).map(|sgprs| KernelResources { sgprs, ..base.clone() }));
    let scratch_bytes = 64;
    all.extend((0..=102).map(|sgprs| KernelResources { sgprs, scratch_bytes, ..base.clone() }));
    all.extend((0..=102).map(|sgprs| KernelResources { sgprs, vcc: true, ..base.clone() }));
    all.extend([1, 4096, 65_536, 163_840].map(|lds_bytes| KernelResources { lds_bytes, ..base.clone() }));
    all.extend([4, 280].map(|kernarg_bytes| KernelResources { kernarg_bytes, ..base.clone() }));
    let ids = |bits: u32| [1, 2, 4].map(|id| bits & id != 0);
    all.extend((0..8).map(|bits| KernelResources { workgroup_ids: ids(bits), ..base.clone() }));
    all.extend(ITEMS.map(|workitem_ids| KernelResources { workitem_ids, ..base.clone() }));
    let float = FloatMode::default();
    let rounds = ROUNDS.into_iter().flat_map(|round| {
        [FloatMode { round_32: round, ..float }, FloatMode { round_16_64: round, ..float }]
    });
    let denorms = DENORMS.into_iter().flat_map(|denorm| {
        [FloatMode { denorm_32: denorm, ..float }, FloatMode { denorm_16_64: denorm, ..float }]
    });
    all.extend(rounds.chain(denorms).map(|float_mode| KernelResources { float_mode, ..base.clone() }));
    all.push(KernelResources { dx10_clamp: false, ..base.clone() });
    all.push(KernelResources { ieee_mode: false, ..base.clone() });
    all.push(KernelResources { fp16_overflow: Fp16Overflow::LargestFinite, ..base.clone() });
    all.extend((1..=14).map(|n| KernelResources {
        kernarg_preload_dwords: n,
        kernarg_bytes: 64,
        ..base.clone()
    }));
    let mut rng = StdRng::seed_from_u64(17);
    all.extend((0..400).map(|_| any(&mut rng)));
    all.retain(|resources| KernelDescriptor::new(target, resources).is_ok());
    all
}

/// Some of everything.
fn any(rng: &mut StdRng) -> KernelResources {
    let kernarg_bytes = 4 * rng.random_range(0..64);
    let preload = rng.random_range(0..=14.min(kernarg_bytes / 4));
    KernelResources {
        vgprs: rng.random_range(0..=256),
        agprs: if rng.random() { rng.random_range(0..=256) } else { 0 },
        sgprs: rng.random_range(0..=102),
        vcc: rng.random(),
        lds_bytes: rng.random_range(0..=65_536),
        scratch_bytes: if rng.random() { 4 * rng.random_range(0..1000) } else { 0 },
        kernarg_bytes,
        kernarg_preload_dwords: if rng.random() { preload } else { 0 },
        workgroup_ids: rng.random(),
        workitem_ids: ITEMS[rng.random_range(0..3)],
        float_mode: FloatMode {
            round_32: ROUNDS[rng.random_range(0..4)],
            round_16_64: ROUNDS[rng.random_range(0..4)],
            denorm_32: DENORMS[rng.random_range(0..4)],
            denorm_16_64: DENORMS[rng.random_range(0..4)],
        },
        dx10_clamp: rng.random(),
        ieee_mode: rng.random(),
        fp16_overflow: if rng.random() { Fp16Overflow::LargestFinite } else { Fp16Overflow::Infinity },
    }
}

fn kernels(resources: impl IntoIterator<Item = KernelResources>) -> Vec<KernelInfo> {
    let kernel = |(index, resources)| KernelInfo {
        name: format!("kernel_{index}"),
        resources,
        arguments: [].into(),
        workgroup_size: WorkgroupSize::AtMost(1024),
    };
    resources.into_iter().enumerate().map(kernel).collect()
}

fn ours(options: ObjectOptions, infos: &[KernelInfo]) -> Vec<u8> {
    let kernels: Vec<_> = infos.iter().map(|info| KernelCode { info, code: &EMPTY, lines: None }).collect();
    write(options, &kernels).unwrap()
}

fn text(target: TargetId, version: ObjectVersion, infos: &[KernelInfo]) -> String {
    let kernels: Vec<_> = infos.iter().map(|info| KernelText { info, body: EMPTY_TEXT }).collect();
    assembly::print(target, version, &kernels).unwrap()
}

#[test]
fn descriptors_of_our_directives_are_ours() {
    let Some(space) = Workspace::with_tools(&["llvm-mc-19", "ld.lld-19"]) else { return };
    for target in LLVM_TARGETS {
        let sweep = sweep(target);
        assert!(sweep.len() > 600, "{} for {target}", sweep.len());
        let infos = kernels(sweep);
        let llvm = space.assemble(target, &text(target.into(), ObjectVersion::V5, &infos));
        assert_equivalent(&ours(target.into(), &infos), &llvm);
    }
}

/// Every target with each of the nine combinations of modes, in both object versions.
#[test]
fn every_target_id_is_what_llvm_makes_of_it() {
    use FeatureSetting::{Any, Off, On};
    let Some(space) = Workspace::with_tools(&["llvm-mc-19", "ld.lld-19", "llvm-readelf-19"]) else { return };
    let registers = [0, 6, 7, 11, 13, 98, 102].into_iter().flat_map(|sgprs| {
        [(false, 0), (true, 0), (false, 8)].map(|(vcc, scratch_bytes)| KernelResources {
            sgprs,
            vcc,
            scratch_bytes,
            ..KernelResources::default()
        })
    });
    let infos = kernels(registers);
    for target in LLVM_TARGETS {
        let modes = [Any, Off, On].into_iter().flat_map(|x| [Any, Off, On].map(|s| (x, s)));
        for ((xnack, sramecc), version) in
            modes.flat_map(|modes| [ObjectVersion::V5, ObjectVersion::V6].map(|version| (modes, version)))
        {
            let id = TargetId::from(target).with_xnack(xnack).unwrap().with_sramecc(sramecc).unwrap();
            let llvm = space.assemble(id, &text(id, version, &infos));
            let ours = ours(ObjectOptions { version, ..id.into() }, &infos);
            assert_equivalent(&ours, &llvm);
            let read = ObjectFile::parse(&ours).unwrap();
            assert_eq!((read.xnack, read.sramecc, read.target), (xnack, sramecc, target));
            space.write("ours.co", &ours);
            let facts = |file: &str| {
                let text = space.run(&format!("llvm-readelf-19 -h --notes {file}"));
                let line = |key: &str| text.lines().find(|l| l.contains(key)).map(str::to_owned);
                [line("Flags:"), line("ABI Version:"), line("amdhsa.target:")]
            };
            let facts = (facts("ours.co"), facts("llvm.co"));
            assert_eq!(facts.0, facts.1);
            assert!(facts.0[2].as_ref().is_some_and(|line| line.contains(&id.with_triple())), "{facts:?}");
        }
    }
}

/// gfx950 is known to newer LLVMs only, such as the one inside of Zig.
#[test]
fn descriptors_for_gfx950_are_those_of_a_newer_llvm() {
    let Some(space) = Workspace::with_zig() else { return };
    let infos = kernels(sweep(Target::GFX950));
    for (id, version) in [
        ("gfx950", ObjectVersion::V5),
        ("gfx950:sramecc+:xnack-", ObjectVersion::V6),
        ("gfx950:sramecc-:xnack+", ObjectVersion::V5),
    ] {
        let target: TargetId = id.parse().unwrap();
        space.write("new.s", text(target, version, &infos));
        space
            .run(&format!("python3 -m ziglang clang -target amdgcn-amd-amdhsa -mcpu={id} -c new.s -o new.o"));
        space.run("python3 -m ziglang ld.lld -shared new.o -o new.co");
        assert_equivalent(&ours(ObjectOptions { version, ..target.into() }, &infos), &space.read("new.co"));
    }
}
