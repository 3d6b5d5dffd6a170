//! Instructions per second through the encoder, the decoder and the printer: the instructions of a compiled
//! GEMM, and some of every row of the table, drawn as the tests against LLVM draw them.

#[path = "../tests/common/corpus.rs"]
mod corpus;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use groundswell::isa::{Arch, Inst, decode, encode, write_inst};
use groundswell::kernels::Gemm;
use groundswell::prelude::*;

const ARCH: Arch = Arch::Gfx942;

/// Instructions of the inner product of matrices as the compiler makes them.
fn compiled() -> Vec<Inst> {
    let kernel = Gemm::any_shape().kernel().expect("a valid kernel");
    let [m, n, k] = symbols(["M", "N", "K"]);
    let [tile_m, tile_n, tile_k] = symbols(["BLOCK_M", "BLOCK_N", "BLOCK_K"]);
    let options = Options::new(Target::GFX942).dynamic(m).dynamic(n).dynamic(k);
    let options = options.set(tile_m, 128).set(tile_n, 128).set(tile_k, 32);
    let executable = kernel.compile(&options).expect("a kernel that compiles");
    instructions(executable.code())
}

fn instructions(code: &[u32]) -> Vec<Inst> {
    let (mut at, mut all) = (0, Vec::new());
    while at < code.len() {
        let (inst, length) = decode(&code[at..], ARCH).expect("our own code");
        all.push(inst);
        at += length;
    }
    all
}

fn encoded(all: &[Inst]) -> Vec<u32> {
    let mut words = Vec::new();
    all.iter().for_each(|inst| encode(inst, ARCH, &mut words).expect("a legal instruction"));
    words
}

fn throughput(c: &mut Criterion) {
    for (name, all) in [("gemm", compiled()), ("every row", corpus::corpus(ARCH, |_| true))] {
        let words = encoded(&all);
        let mut group = c.benchmark_group(name);
        group.throughput(Throughput::Elements(all.len() as u64));
        let mut out = Vec::with_capacity(words.len());
        group.bench_function("encode", |b| {
            b.iter(|| {
                out.clear();
                for inst in &all {
                    encode(black_box(inst), ARCH, &mut out).expect("a legal instruction");
                }
                out.len()
            });
        });
        group.bench_function("decode", |b| {
            b.iter(|| {
                let mut at = 0;
                while at < words.len() {
                    at += black_box(decode(&words[at..], ARCH)).expect("a legal instruction").1;
                }
                at
            });
        });
        let mut text = String::new();
        group.bench_function("print", |b| {
            b.iter(|| {
                text.clear();
                for inst in &all {
                    write_inst(&mut text, black_box(inst), ARCH, None).expect("a string takes everything");
                }
                text.len()
            });
        });
        group.finish();
    }
}

criterion_group!(benches, throughput);
criterion_main!(benches);
