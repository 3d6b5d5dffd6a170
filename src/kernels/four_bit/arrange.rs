//! Weights in the orders in which products take them, once, when they are loaded.

use std::panic::Location as Caller;

use super::parts::BLOCK;
use crate::kernels::asked::asked_at;
use crate::prelude::*;

/// `b`, `[K/128, 4, N, 8]` of i16, has the integers of `a`, `[N, K/2]` of i8, in the order in which
/// [`super::FourBitGemm::int4`] takes them. In `a` the integers 2i and 2i + 1 of a row are the lower and the
/// upper half of byte i, as most quantisers have them; in `b` halfword `b[g, t / 8, n, t % 8]` has those at
/// `128 g + t`, and 32, 64 and 96 after it, the first in its lowest bits. What is beyond the end of a row is
/// 0. `HALFWORDS` is 32; a workgroup takes a block of `BLOCK_N` rows. The reads are tagged `read_a`.
///
/// # Errors
/// None of its own; they are a `Result` as those of the other kernels.
///
/// # Example
/// ```
/// use groundswell::kernels::arrange_int4;
/// use groundswell::prelude::*;
///
/// let sizes = [("N", 1), ("K", 128), ("HALFWORDS", 32), ("BLOCK_N", 8)];
/// let options = sizes.iter().fold(Options::new(Target::GFX942), |o, &(name, size)| o.set(name, size));
/// let executable = arrange_int4()?.compile(&options)?;
///
/// let device = Device::open()?;
/// // The integers 0 to 15, eight times.
/// let row: Vec<i8> = (0..64).map(|at| (at % 8 * 0x22 + 0x10) as u8 as i8).collect();
/// let (a, b) = (device.upload(&row)?, device.upload(&[0i16; 32])?);
/// device.launch(&executable).buffer(&a).buffer(&b).run()?;
/// // Element 1 and those 32, 64 and 96 after it are all 1.
/// assert_eq!(b.download::<i16>()?[1], 0x1111);
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn arrange_int4() -> Result<Kernel, Diagnostic> {
    let [n, k, halfwords, block_n] = symbols(["N", "K", "HALFWORDS", "BLOCK_N"]);
    let blocks = k.scaled(BLOCK as u32);
    let kernel = Kernel::trace("arrange_int4", |w| {
        w.distribute([workgroup(n, block_n, 0), workgroup(k, BLOCK, 1)]);
        let a = w.memory("a", [n, k.scaled(2)], Global, I8);
        let b = w.memory("b", [blocks, 4.into(), n, 8.into()], Global, I16);
        let dims = [blocks, n, halfwords];
        let of_lower = (w.self_index(halfwords) & 1).equal(0).broadcast(dims);
        let quarters: [Value; 4] = std::array::from_fn(|quarter| {
            let byte = blocks * (BLOCK / 2) + 16 * quarter as i64 + halfwords / 2;
            let both = w.read_at(a, [n.into(), byte], dims).tag("read_a").cast(I16);
            (w.select(of_lower, both, both >> 4) & 15) << (4 * quarter as i32)
        });
        let [first, others @ ..] = quarters;
        let packed = others.into_iter().fold(first, |all, quarter| all | quarter);
        w.write_at(packed, b, [blocks.into(), halfwords / 8, n.into(), halfwords % 8]);
    });
    asked_at(Caller::caller(), kernel)
}

/// `b`, `[K/8, N, 4]`, has the weights of `a`, `[N, K/2]`, both bytes of two f4e2m1, in the order in which
/// [`super::FourBitGemm::mxfp4`] takes them: eight of a row, and then eight of the next row. `b_scales`,
/// `[K/32, N]`, has the scales of `a_scales`, `[N, K/32]`, both of f8e8m0. Where K is no multiple of 8 the
/// rest of the last bytes stays as it is. A workgroup takes `BLOCK_N` rows and `BLOCK_K` of K. The reads are
/// tagged `read_a` and `read_a_scales`.
///
/// # Errors
/// None of its own; they are a `Result` as those of the other kernels.
///
/// # Example
/// ```
/// use groundswell::kernels::arrange_mxfp4;
/// use groundswell::prelude::*;
///
/// let sizes = [("N", 2), ("K", 32), ("BLOCK_N", 8), ("BLOCK_K", 64)];
/// let options = sizes.iter().fold(Options::new(Target::GFX950), |o, &(name, size)| o.set(name, size));
/// let executable = arrange_mxfp4()?.compile(&options)?;
///
/// let device = Device::simulator(Target::GFX950);
/// let a = device.upload_tensor(&Tensor::from_bytes(&[2, 16], I8, &(0..32).collect::<Vec<u8>>())?)?;
/// let b = device.upload_tensor(&Tensor::from_bytes(&[4, 2, 4], I8, &[0; 32])?)?;
/// let [a_scales, b_scales] = [[126, 127], [0, 0]]
///     .map(|bytes| device.upload_tensor(&Tensor::from_bytes(&[2], F8E8M0, &bytes).expect("two bytes")));
/// let (a_scales, b_scales) = (a_scales?, b_scales?);
/// device.launch(&executable).buffer(&a).buffer(&a_scales).buffer(&b).buffer(&b_scales).run()?;
/// assert_eq!(b.read_bytes()?[..8], [0, 1, 2, 3, 16, 17, 18, 19]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn arrange_mxfp4() -> Result<Kernel, Diagnostic> {
    let [n, k, block_n, block_k] = symbols(["N", "K", "BLOCK_N", "BLOCK_K"]);
    let (bytes, scales) = (k.scaled(2), k.scaled(32));
    let kernel = Kernel::trace("arrange_mxfp4", |w| {
        w.distribute([workgroup(n, block_n, 0), workgroup(k, block_k, 1)]);
        let a = w.memory("a", [n, bytes], Global, I8);
        let a_scales = w.memory("a_scales", [n, scales], Global, F8E8M0);
        let b = w.memory("b", [k.scaled(8), n, 4.into()], Global, I8);
        let b_scales = w.memory("b_scales", [scales, n], Global, F8E8M0);
        w.write_at(w.read(a).tag("read_a"), b, [bytes / 4, n.into(), bytes % 4]);
        w.write(w.read(a_scales).tag("read_a_scales").broadcast([scales, n]), b_scales);
    });
    asked_at(Caller::caller(), kernel)
}
