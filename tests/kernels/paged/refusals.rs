//! What cannot be made is a diagnostic with the way out, at the line that asked for it.

use groundswell::diagnostic::Kind;
use groundswell::kernels::{LatentDecode, PagedDecode, PagedExtend, paged_append};
use groundswell::prelude::*;

#[track_caller]
fn refused(kernel: Result<Kernel, Diagnostic>, text: &str, help: &str) {
    let fault = kernel.expect_err("it cannot be made");
    let told = fault.to_string();
    assert!(told.contains(text) && told.contains(help), "{told}");
    assert!(fault.location.as_ref().is_some_and(|at| at.to_string().contains("refusals.rs")), "{told}");
}

#[test]
fn heads_that_do_not_divide_are_refused() {
    for [heads, kv] in [[0, 1], [4, 0], [6, 4], [2, 4]] {
        let text = format!("{heads} heads of queries do not divide among {kv} heads of keys");
        refused(PagedDecode::new(heads, kv, 128).kernel(), &text, "that divides that of queries");
        refused(PagedDecode::new(heads, kv, 128).combine(), &text, "that divides that of queries");
        refused(PagedExtend::new(heads, kv, 128).kernel(), &text, "that divides that of queries");
    }
    refused(PagedDecode::new(4, 2, 0).kernel(), "a head of 0 elements", "1 to 256");
    refused(PagedExtend::new(4, 2, 257).kernel(), "a head of 257 elements", "1 to 256");
    refused(LatentDecode::new(0).kernel(), "has no heads", "at least one");
}

#[test]
fn dtypes_that_are_not_multiplied_are_refused() {
    refused(PagedDecode::new(4, 2, 64).inputs(F32).kernel(), "a cache of f32", "f16 or bf16");
    refused(
        PagedDecode::new(4, 2, 64).cache(F16).kernel(),
        "a cache of f16 is not multiplied",
        "8-bit floats",
    );
    refused(PagedDecode::new(4, 2, 64).cache(I32).whole(), "a cache of i32", "i8");
    refused(PagedExtend::new(4, 2, 64).inputs(I8).kernel(), "queries of i8", "f16 or bf16");
    refused(LatentDecode::new(16).inputs(F32).kernel(), "a cache of f32", "f16 or bf16");
    refused(LatentDecode::new(16).cache(I32).kernel(), "a cache of i32", "i8");
    refused(paged_append(F16, Bf16), "a cache of bf16 is not multiplied with queries of f16", "i8");
}

#[test]
fn scales_parts_pages_and_rows_of_no_use_are_refused() {
    for scale in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        refused(
            PagedDecode::new(4, 2, 64).scale(scale).kernel(),
            "is no positive number",
            "negate the queries",
        );
    }
    for keys in [0, 16, 33] {
        let text = format!("{keys} keys are no part of whole iterations");
        refused(PagedDecode::new(4, 2, 64).deterministic(keys).kernel(), &text, "a multiple of 32");
        refused(LatentDecode::new(16).deterministic(keys).combine(), &text, "a multiple of 32");
    }
    refused(PagedDecode::new(4, 2, 64).page(0).kernel(), "pages have no tokens", "at least one token");
    for [latent, rotated] in [[0, 64], [576, 64], [500, 64], [512, 128]] {
        let text = format!("rows of {latent} + {rotated} elements");
        refused(LatentDecode::new(16).row(latent, rotated).kernel(), &text, "multiples of 64");
    }
}

/// Pages that are not there are read as zeros; with a check of bounds they are an error of the launch.
#[test]
fn pages_that_are_not_there_are_zeros_or_faults() {
    let decode = PagedDecode::new(1, 1, 16).page(2).inputs(F16);
    let sizes = [("B", 1), ("PAGES", 1), ("MAX_PAGES", 1), ("PARTS", 1)];
    let options = sizes.iter().fold(decode.options(Target::GFX942, 1), |o, &(name, size)| o.set(name, size));
    let device = Device::simulator(Target::GFX942);
    let ran = |options: &Options, page: i32| {
        let executable = decode.whole()?.compile(options)?;
        let ones = [f16::ONE; 32];
        let (q, cache) = (device.upload(&ones[..16])?, device.upload(&ones)?);
        let (table, lengths) = (device.upload(&[page])?, device.upload(&[2i32])?);
        let out = device.upload(&[f16::NAN; 16])?;
        let launch = device.launch(&executable).buffer(&q).buffer(&cache).buffer(&cache);
        launch.buffer(&table).buffer(&lengths).buffer(&out).run()?;
        out.download::<f16>()
    };
    assert_eq!(ran(&options, 0).expect("a page"), [f16::ONE; 16]);
    for page in [1, -1, i32::MIN, i32::MAX] {
        assert_eq!(ran(&options, page).expect("zeros"), [f16::ZERO; 16]);
        let fault = ran(&options.clone().bounds_check(), page).expect_err("no page");
        assert!(fault.to_string().contains(&format!("{page}")), "{fault}");
    }
    assert_eq!(ran(&options.bounds_check(), 0).expect("a page"), [f16::ONE; 16]);
}

/// 32-bit offsets do not reach a cache of 2 GiB: where its size is known it has 64 bits, where it is open
/// it is refused by the launch, and never read wrongly.
#[test]
fn caches_beyond_the_reach_of_offsets_are_reached_or_refused() {
    let decode = PagedDecode::new(8, 8, 128).page(64);
    let options = decode.options(Target::GFX942, 1).set("PARTS", 1).set("B", 1).set("MAX_PAGES", 4);
    // A page has 128 KiB, and elements are counted from the first byte to the last.
    let [within, beyond] = [16_383, 16_385];
    let far = |pages: i64| {
        let executable = decode.kernel().expect("a kernel").compile(&options.clone().set("PAGES", pages));
        executable.expect("compiles").assembly().expect("text").contains("global_load_dwordx4")
    };
    assert_eq!([within, beyond].map(far), [false, true]);
    let open =
        decode.kernel().expect("a kernel").compile(&options.clone().dynamic("PAGES")).expect("it is open");
    let launched = open.grid(&|symbol| (symbol == Symbol::new("PAGES")).then_some(beyond));
    open.grid(&|symbol| (symbol == Symbol::new("PAGES")).then_some(within)).expect("it fits");
    let fault = launched.expect_err("too large");
    assert_eq!(fault.kind, Kind::Limit, "{fault}");
    assert!(fault.to_string().contains("2 GiB"), "{fault}");
}
