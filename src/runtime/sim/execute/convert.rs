//! Conversions between number formats.

use crate::codegen::isa::Element::{self, *};

use super::super::error::Stopped;
use super::super::numerics::{f64_to_f16, to_f16_toward_zero};
use super::super::program::Step;
use super::super::wave::{LANES, Wave};
use super::lanes::{F16 as Half, Lane, map1};
use super::valu::unsupported;

/// Executes a conversion. Conversions to integers truncate, saturate, and turn NaN into zero, as Rust's do.
pub(super) fn convert(w: &mut Wave, s: &Step, to: Element, from: Element) -> Result<(), Stopped> {
    match (to, from) {
        (I32, F64) => map1(w, s, |a: f64| a as i32),
        (U32, F64) => map1(w, s, |a: f64| a as u32),
        (I32, F32) => map1(w, s, |a: f32| a as i32),
        (U32, F32) => map1(w, s, |a: f32| a as u32),
        (I16, F16) => map1(w, s, |a: Half| a.0 as i16),
        (U16, F16) => map1(w, s, |a: Half| a.0 as u16),
        (F64, I32) => map1(w, s, |a: i32| f64::from(a)),
        (F64, U32) => map1(w, s, |a: u32| f64::from(a)),
        (F64, F32) => map1(w, s, |a: f32| f64::from(a)),
        (F32, I32) => map1(w, s, |a: i32| a as f32),
        (F32, U32) => map1(w, s, |a: u32| a as f32),
        (F32, F64) => map1(w, s, |a: f64| a as f32),
        (F32, F16) => map1(w, s, |a: Half| a.0),
        (F16, F32) => map1(w, s, Half),
        (F16, U16) => map1(w, s, |a: u16| Half(a.into())),
        (F16, I16) => map1(w, s, |a: i16| Half(a.into())),
        _ => return Err(unsupported()),
    }
    Ok(())
}

/// Executes V_CVT_F32_UBYTEn.
pub(super) fn convert_byte(w: &mut Wave, s: &Step, byte: u8) {
    let shift = 8 * u32::from(byte & 3);
    map1(w, s, |a: u32| (a >> shift & 0xff) as f32);
}

/// Executes a conversion of two values that packs the results.
pub(super) fn pack_convert(w: &mut Wave, s: &Step, to: Element, from: Element) -> Result<(), Stopped> {
    let pack = |low: u32, high: u32| low & 0xffff | high << 16;
    let values: [u32; LANES] = match (to, from) {
        (F16, F32) => {
            let (a, b) = (f32::read(w, s, 1, 0), f32::read(w, s, 2, 1));
            std::array::from_fn(|l| pack(to_f16_toward_zero(a[l]), to_f16_toward_zero(b[l])))
        }
        (U16, U32) => {
            let (a, b) = (u32::read(w, s, 1, 0), u32::read(w, s, 2, 1));
            std::array::from_fn(|l| pack(a[l].min(0xffff), b[l].min(0xffff)))
        }
        (I16, I32) => {
            let (a, b) = (i32::read(w, s, 1, 0), i32::read(w, s, 2, 1));
            let narrow = |v: i32| v.clamp(i16::MIN.into(), i16::MAX.into()) as u32;
            std::array::from_fn(|l| pack(narrow(a[l]), narrow(b[l])))
        }
        _ => return Err(unsupported()),
    };
    w.set_lanes(s.operands[0], &values);
    Ok(())
}

/// Executes V_PACK_B32_F16.
pub(super) fn pack(w: &mut Wave, s: &Step) {
    // The values are f16, so a second rounding changes nothing.
    let bits = |v: Half| f64_to_f16(f64::from(v.0));
    let (a, b) = (Half::read(w, s, 1, 0), Half::read(w, s, 2, 1));
    let values = std::array::from_fn(|l| bits(a[l]) | bits(b[l]) << 16);
    w.set_lanes(s.operands[0], &values);
}
