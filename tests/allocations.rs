//! A warm compile makes few heap allocations, counted by the allocator of this test program: the pools keep
//! the memory of the world, of the machine passes and of the expressions.

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use groundswell::assembler::{AssemblerOptions, assemble, disassemble};
use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::prelude::*;

/// Most allocations of a warm compile without debug sections, the finished executable's own among them.
const LIMIT: usize = 60;
/// The same with debug sections, which every object has by default: five sections and the table of
/// rows.
const LIMIT_WITH_LINES: usize = 70;

/// What this thread's allocations are good for at the moment.
#[derive(Copy, Clone, PartialEq)]
enum Mode {
    Ignore,
    Count,
    Trace,
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::Ignore) };
    static COUNT: Cell<usize> = const { Cell::new(0) };
    static TRACES: RefCell<Vec<Backtrace>> = const { RefCell::new(Vec::new()) };
}

struct Counting;

fn note() {
    match MODE.get() {
        Mode::Ignore => {}
        Mode::Count => COUNT.set(COUNT.get() + 1),
        Mode::Trace => {
            MODE.set(Mode::Ignore);
            COUNT.set(COUNT.get() + 1);
            TRACES.with_borrow_mut(|traces| traces.push(Backtrace::force_capture()));
            MODE.set(Mode::Trace);
        }
    }
}

// SAFETY: everything is passed on to the system's allocator; counting touches only thread-locals without
// destructors that allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn gemm() -> (Kernel, Options) {
    let [m, n, k] = symbols(["M", "N", "K"]);
    let kernel = Kernel::trace("gemm", |w| {
        w.distribute([workgroup(m, 128, 0), workgroup(n, 128, 1), tile(k, 32), wave(m, 64), wave(n, 64)]);
        w.mma_type(Mma::F32_16x16x16_F16);
        let a = w.memory("a", [m, k], Shared, F16);
        let b = w.memory("b", [n, k], Shared, F16);
        let c = w.memory("c", [m, n], Global, F32);
        let zero = w.register([m, n], F32, 0.0);
        let [sum] = w.iterate(k, [zero], |w, [sum]| {
            let (a, b) = (w.read(a), w.read(b));
            [w.mma(a, b, sum)]
        });
        w.write(sum, c);
    })
    .unwrap();
    (kernel, Options::new(Target::GFX942).set(m, 512).set(n, 512).set(k, 512))
}

/// Allocations of one compilation when others like it have gone before.
fn warm_compile(mode: Mode, debug: DebugInfo) -> usize {
    let (kernel, options) = gemm();
    let options = options.debug_info(debug);
    for _ in 0..3 {
        compile_uncached(&kernel, &options, Verify::Off).unwrap();
    }
    COUNT.set(0);
    MODE.set(mode);
    let executable = compile_uncached(&kernel, &options, Verify::Off);
    MODE.set(Mode::Ignore);
    assert!(executable.is_ok());
    COUNT.get()
}

#[test]
fn a_warm_compile_allocates_little() {
    for (debug, limit) in [(DebugInfo::None, LIMIT), (DebugInfo::Lines, LIMIT_WITH_LINES)] {
        let count = warm_compile(Mode::Count, debug);
        println!(
            "a warm compile of GEMM 128x128x32 with debug info {debug:?} makes {count} heap allocations"
        );
        assert!(
            count <= limit,
            "{count} allocations, more than {limit}; the ignored test of this file says where"
        );
    }
}

/// Texts of large objects have hundreds of megabytes: twice the text takes twice the allocations.
#[test]
fn an_assembler_allocates_in_proportion_to_its_text() {
    let text = |lines: usize| {
        let head = ".amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\n".to_owned();
        let body = (0..lines).map(|at| match at % 8 {
            0 => format!(".text\n.globl f{at}\nf{at}:\n"),
            1 => format!("s_getpc_b64 s[0:1]\ns_add_u32 s0, s0, d{}@rel32@lo+4\n", at + 5),
            5 => format!("s_branch f{}\n", at - 5),
            6 => format!(".section .data{},\"aw\",@progbits\nd{at}:\n.long {at}\n.p2align 3\n", at % 5),
            7 => format!(".quad f{}\n", at - 7),
            _ => format!("v_add_f32_e32 v{}, v1, v2 // {at:06x}\n", at % 64),
        });
        head + &body.collect::<String>()
    };
    let counts = [10_000, 20_000].map(|lines| {
        let text = text(lines);
        COUNT.set(0);
        MODE.set(Mode::Count);
        let assembled = assemble(&text, AssemblerOptions::default());
        MODE.set(Mode::Ignore);
        assert!(assembled.is_ok(), "{:?}", assembled.err());
        let counted = COUNT.get();
        let object = assembled.map(|assembled| assembled.object).unwrap_or_default();
        COUNT.set(0);
        MODE.set(Mode::Count);
        let text = disassemble(&object).map(|listing| listing.text);
        MODE.set(Mode::Ignore);
        assert!(text.is_ok_and(|text| text.matches(".quad f").count() == lines / 8));
        [counted, COUNT.get()]
    });
    for (once, twice) in std::iter::zip(counts[0], counts[1]) {
        assert!(twice <= once * 21 / 10, "{once} allocations, and {twice} for twice the text");
    }
}

/// The place in our own sources that a backtrace comes from, innermost first, a few frames.
fn place(trace: &Backtrace) -> String {
    let text = trace.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let own = lines.windows(2).filter(|pair| pair[1].contains("/src/") && pair[1].starts_with("at ./src"));
    let frames: Vec<String> =
        own.take(2).map(|pair| pair[1].trim_start_matches("at ./").to_owned()).collect();
    if frames.is_empty() { text } else { frames.join(" <- ") }
}

#[test]
#[ignore = "a listing for people: where the allocations of a warm compile come from"]
fn where_allocations_come_from() {
    let count = warm_compile(Mode::Trace, DebugInfo::Lines);
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for trace in TRACES.take() {
        *places.entry(place(&trace)).or_default() += 1;
    }
    let mut places: Vec<(String, usize)> = places.into_iter().collect();
    places.sort_by_key(|place| std::cmp::Reverse(place.1));
    println!("{count} allocations");
    for (place, count) in places {
        println!("{count:6} {place}");
    }
}
