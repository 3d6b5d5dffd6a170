use groundswell::ir::builder::*;
use groundswell::ir::constraint::*;
use groundswell::ir::expr::*;
use groundswell::ir::kernel::Kernel;
use groundswell::ir::layout::Mma;
use groundswell::ir::types::*;
use groundswell::passes::options::*;
use groundswell::passes::workspace::Verify;
use groundswell::codegen::target::Target;

#[test]
fn gemm() {
    let [m, n, k, bm, bn, bk] = symbols(["M", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_K"]);
    let gemm = Kernel::trace("gemm", |w| {
        w.distribute([workgroup(m, bm, 0), workgroup(n, bn, 1), tile(k, bk), wave(m, bm / 2), wave(n, bn / 2)]);
        w.mma_type(Mma::F32_16x16x16_F16);
        let a = w.memory("a", [m, k], AddressSpace::Shared, DType::F16);
        let b = w.memory("b", [n, k], AddressSpace::Shared, DType::F16);
        let c = w.memory("c", [m, n], AddressSpace::Global, DType::F32);
        let zero = w.register([m, n], DType::F32, 0.0);
        let acc = w.iterate(k, [zero], |w, [acc]| {
            let a = w.read(a).tag("read_a");
            let b = w.read(b).tag("read_b");
            [w.mma(a, b, acc).tag("mma")]
        });
        w.write(acc[0], c);
    })
    .unwrap();
    let options = Options::new(Target::GFX942)
        .set(bm, 128).set(bn, 128).set(bk, 32).set(m, 256).set(n, 256).set(k, 512);
    let e = groundswell::runtime::compile::compile_uncached(&gemm, &options, Verify::AfterEachPass);
    match e {
        Ok(e) => { println!("{}", e.assembly().unwrap()); println!("{:#?}", e.report()); }
        Err(d) => panic!("{d}"),
    }
}
