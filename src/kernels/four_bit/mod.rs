//! Products of few rows with weights of 4 bits, as decoders have them. Weights are read once and widened in
//! registers, so that such a product is about as fast as its weights come from memory.
//!
//! - `builder`: [`FourBitGemm`], its kernels and options
//! - `int4`: the loop over integers with a scale, and a zero, for each group of K
//! - `mxfp4`: the loop over OCP's 4-bit floats
//! - `parts`: how K is divided among the waves of a workgroup, and among workgroups
//! - `arrange`: weights in the orders in which the products take them

mod arrange;
mod builder;
mod int4;
mod mxfp4;
mod parts;

pub use arrange::{arrange_int4, arrange_mxfp4};
pub use builder::FourBitGemm;
pub(super) use parts::part_of_wave;
