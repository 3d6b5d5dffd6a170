//! The conversions of gfx950 between narrow floats and f32, f16 and bf16 with a scale, as the simulator
//! executes them: every code with every scale, in every place of its register, and numbers around the middles
//! between codes. The reference of each is the Rust type of the float: its number times the scale, or divided
//! by it, in f64, rounded once.

use groundswell::prelude::*;
use groundswell::simulator::{LaunchConfig, Simulator};
use groundswell_testing::by_hand;

/// What the registers that a conversion writes hold before.
const BEFORE: u32 = 0x7777_7777;

/// Executes an instruction with results from v128 on and sources from v64 on, once for each of the sources.
fn results(instruction: &str, sources: &[Vec<u32>], registers: usize) -> Vec<Vec<u32>> {
    let words = sources[0].len();
    let loads =
        (0..words).map(|at| format!("global_load_dword v{}, v1, s[4:5] offset:{}\n", 64 + at, 4 * at));
    let before = (0..registers).map(|at| format!("v_mov_b32 v{}, {BEFORE:#x}\n", 128 + at));
    let stores =
        (0..registers).map(|at| format!("global_store_dword v2, v{}, s[6:7] offset:{}\n", 128 + at, 4 * at));
    let [loads, before, stores] = [loads.collect::<String>(), before.collect(), stores.collect()];
    let code = format!(
        "s_load_dwordx4 s[4:7], s[0:1], 0x0
s_lshl_b32 s2, s2, 6
v_add_u32 v0, s2, v0
v_mul_u32_u24 v1, {}, v0
v_mul_u32_u24 v2, {}, v0
s_waitcnt lgkmcnt(0)
{loads}{before}s_waitcnt vmcnt(0)
{instruction}
{stores}s_endpgm",
        4 * words,
        4 * registers
    );
    let directives = [".amdhsa_next_free_vgpr 192", ".amdhsa_accum_offset 192", ".amdhsa_kernarg_size 16"];
    let object = by_hand::object("gfx950", &code, &directives);
    let mut simulator = Simulator::new(Target::GFX950);
    let module = simulator.load(&object).expect("an object for the target");
    let items = sources.len().next_multiple_of(64);
    let bytes: Vec<u8> = sources.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
    let given = simulator.alloc(4 * (items * words) as u64).expect("little memory");
    let made = simulator.alloc(4 * (items * registers) as u64).expect("little memory");
    simulator.write(given, &vec![0; 4 * items * words]).expect("inside");
    simulator.write(given, &bytes).expect("inside");
    let kernarg: Vec<u8> = [given, made].iter().flat_map(|address| address.to_le_bytes()).collect();
    let config = LaunchConfig::new([items as u32 / 64, 1, 1], [64, 1, 1]).instruction_budget(1 << 40);
    simulator.launch(&module, "k", config, &kernarg).expect("no fault");
    let bytes = simulator.read(made, 4 * sources.len() * registers).expect("inside");
    let words: Vec<u32> =
        bytes.chunks(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
    words.chunks(registers).map(<[u32]>::to_vec).collect()
}

/// A narrow float.
struct Narrow {
    /// As instructions call it.
    name: &'static str,
    bits: u32,
    widen: fn(u8) -> f64,
    narrow: fn(f64) -> u8,
    /// The largest number.
    largest: f64,
    /// Whether numbers that are too large become that one.
    saturates: bool,
}

macro_rules! narrow {
    ($ty:ident, $name:literal, $bits:literal, $largest:literal, $saturates:literal) => {
        Narrow {
            name: $name,
            bits: $bits,
            widen: |code| $ty::from_bits(code).to_f64(),
            narrow: |x| $ty::from_f64(x).to_bits(),
            largest: $largest,
            saturates: $saturates,
        }
    };
}

const FP4: Narrow = narrow!(f4e2m1, "fp4", 4, 6.0, true);
const FP6: Narrow = narrow!(f6e2m3, "fp6", 6, 7.5, true);
const BF6: Narrow = narrow!(f6e3m2, "bf6", 6, 28.0, true);
const FP8: Narrow = narrow!(f8e4m3fn, "fp8", 8, 448.0, false);
const BF8: Narrow = narrow!(f8e5m2, "bf8", 8, 57344.0, false);

/// A float that they are widened to.
struct Wide {
    name: &'static str,
    bits: u32,
    narrow: fn(f64) -> u32,
    widen: fn(u32) -> f64,
}

const WIDE: [Wide; 3] = [
    Wide {
        name: "f32",
        bits: 32,
        narrow: |x| (x as f32).to_bits(),
        widen: |bits| f64::from(f32::from_bits(bits)),
    },
    Wide {
        name: "f16",
        bits: 16,
        narrow: |x| u32::from(f16::from_f64(x).to_bits()),
        widen: |bits| f16::from_bits(bits as u16).to_f64(),
    },
    Wide {
        name: "bf16",
        bits: 16,
        narrow: |x| u32::from(bf16::from_f64(x).to_bits()),
        widen: |bits| bf16::from_bits(bits as u16).to_f64(),
    },
];

/// The number that a scale stands for, which is the exponent of an f32.
fn scale(exponent: u32) -> f64 {
    if exponent == 255 { f64::NAN } else { 2f64.powi(exponent as i32 - 127) }
}

/// Element `at` of so many bits in registers.
fn element(registers: &[u32], at: usize, bits: u32) -> u32 {
    let (word, shift) = (at * bits as usize / 32, at * bits as usize % 32);
    let next = registers.get(word + 1).copied().unwrap_or(0);
    let both = u64::from(registers[word]) | u64::from(next) << 32;
    (both >> shift) as u32 & (u64::MAX >> (64 - bits)) as u32
}

fn assert_same(wide: &Wide, got: u32, expected: f64, what: impl Fn() -> String) {
    let same = match expected.is_nan() {
        true => (wide.widen)(got).is_nan(),
        false => got == (wide.narrow)(expected),
    };
    assert!(same, "{}: {got:#x} for {expected}", what());
}

#[test]
fn every_code_is_widened_with_every_scale() {
    for (narrow, parts) in [(FP4, 4), (FP8, 2), (BF8, 2)] {
        for wide in &WIDE {
            for part in 0..parts {
                // Both codes of a pair are all there are, and what is beside them is something else.
                let pairs: Vec<[u8; 2]> = match narrow.bits {
                    4 => (0..=255u8).map(|byte| [byte & 15, byte >> 4]).collect(),
                    _ => (0..=255u8).map(|code| [code, code.wrapping_mul(91).wrapping_add(45)]).collect(),
                };
                let width = 2 * narrow.bits;
                let word = |[low, high]: [u8; 2]| {
                    let held = u32::from(low) | u32::from(high) << narrow.bits;
                    let mask = ((1u64 << width) - 1) as u32;
                    0xa5c3_965a & !(mask << (width * part)) | held << (width * part)
                };
                // Neither the sign nor the fraction of a scale counts.
                let scales =
                    (0..256u32).map(|exponent| exponent << 23 | (exponent * 0x10_2a57) & 0x807f_ffff);
                let given: Vec<([u8; 2], u32)> =
                    scales.flat_map(|scale| pairs.iter().map(move |&pair| (pair, scale))).collect();
                let sources: Vec<Vec<u32>> =
                    given.iter().map(|&(pair, scale)| vec![word(pair), scale]).collect();
                let registers = 2 * wide.bits as usize / 32;
                let to = if registers == 1 { "v128" } else { "v[128:129]" };
                let op_sel = match part {
                    0 => String::new(),
                    _ => format!(" op_sel:[{},{},0]", part & 1, part >> 1),
                };
                let instruction =
                    format!("v_cvt_scalef32_pk_{}_{} {to}, v64, v65{op_sel}", wide.name, narrow.name);
                let made = results(&instruction, &sources, registers);
                for ((pair, with), made) in given.iter().zip(&made) {
                    for (at, &code) in pair.iter().enumerate() {
                        let expected = (narrow.widen)(code) * scale(with >> 23 & 0xff);
                        let what = || format!("{instruction} of {pair:x?} with {with:#x}");
                        assert_same(wide, element(made, at, wide.bits), expected, what);
                    }
                }
            }
        }
    }
}

#[test]
fn one_code_of_a_register_is_widened() {
    for narrow in [FP8, BF8] {
        for byte in 0..4u32 {
            let sources: Vec<Vec<u32>> = (0..256u32)
                .flat_map(|code| {
                    [0, 1, 126, 127, 128, 254, 255]
                        .map(|exponent| [code << (8 * byte), exponent << 23].to_vec())
                })
                .collect();
            for (wide, half) in [(&WIDE[0], 0), (&WIDE[1], 0), (&WIDE[1], 1)] {
                let instruction = format!(
                    "v_cvt_scalef32_{}_{} v128, v64, v65 op_sel:[{},{},{half}]",
                    wide.name,
                    narrow.name,
                    byte & 1,
                    byte >> 1
                );
                for (given, made) in sources.iter().zip(results(&instruction, &sources, 1)) {
                    let expected = (narrow.widen)((given[0] >> (8 * byte)) as u8) * scale(given[1] >> 23);
                    let got = element(&made, half, wide.bits);
                    assert_same(wide, got, expected, || format!("{instruction} of {given:x?}"));
                    if wide.bits == 16 {
                        assert_eq!(element(&made, 1 - half, 16), BEFORE & 0xffff, "the other half stays");
                    }
                }
            }
        }
    }
}

#[test]
fn blocks_of_thirty_two_codes_are_widened_with_every_scale() {
    for narrow in [FP6, BF6] {
        for wide in &WIDE {
            let blocks = [0u8, 32].map(|first| {
                let mut words = [0u32; 6];
                for at in 0..32usize {
                    let (code, bit) = (u64::from(first) + at as u64, 6 * at);
                    let held = code << (bit % 32);
                    words[bit / 32] |= held as u32;
                    if bit % 32 > 26 {
                        words[bit / 32 + 1] |= (held >> 32) as u32;
                    }
                }
                words
            });
            let given: Vec<(usize, u32)> = (0..256u32).flat_map(|scale| [(0, scale), (1, scale)]).collect();
            let sources: Vec<Vec<u32>> = given
                .iter()
                .map(|&(block, exponent)| {
                    blocks[block].iter().copied().chain([exponent << 23 | 0x1234]).collect()
                })
                .collect();
            let registers = wide.bits as usize;
            let instruction = format!(
                "v_cvt_scalef32_pk32_{}_{} v[128:{}], v[64:69], v70",
                wide.name,
                narrow.name,
                127 + registers
            );
            let made = results(&instruction, &sources, registers);
            for (&(block, exponent), made) in given.iter().zip(&made) {
                for at in 0..32 {
                    let expected = (narrow.widen)((32 * block + at) as u8) * scale(exponent);
                    let what = || format!("{instruction}, {at} of block {block} with {exponent}");
                    assert_same(wide, element(made, at, wide.bits), expected, what);
                }
            }
        }
    }
}

/// Numbers to narrow: those of the float, the middles between two, their neighbours, and what is too large,
/// of both signs and as a wide float has them.
fn around_codes(narrow: &Narrow, wide: &Wide) -> Vec<u32> {
    let mut codes: Vec<f64> = (0..1u32 << (narrow.bits - 1))
        .map(|code| (narrow.widen)(code as u8))
        .filter(|x| x.is_finite())
        .collect();
    codes.extend([2.0 * narrow.largest, 1e4 * narrow.largest]);
    let mut all = Vec::new();
    for pair in codes.windows(2) {
        let middle = (wide.narrow)((pair[0] + pair[1]) / 2.0);
        all.extend([(wide.narrow)(pair[0]), middle - 1, middle, middle + 1]);
    }
    all.extend([(wide.narrow)(f64::INFINITY), (wide.narrow)(narrow.largest / 3.0), 1, 2]);
    let sign = 1 << (wide.bits - 1);
    // What becomes of the sign of a NaN is not written anywhere.
    let numbers = all.iter().filter(|&&bits| !(wide.widen)(bits).is_nan());
    numbers.flat_map(|&bits| [bits, bits | sign]).collect()
}

/// What a number becomes; `None` where the float has no room for it and no infinity either, and what it
/// becomes is up to a mode.
fn narrowed(narrow: &Narrow, x: f64) -> Option<u8> {
    let code = (narrow.narrow)(x);
    let known = narrow.saturates || (narrow.widen)(code).is_finite();
    known.then_some(code)
}

#[test]
fn numbers_are_narrowed_with_scales() {
    for (narrow, parts) in [(FP4, 4), (FP8, 2), (BF8, 2)] {
        for wide in &WIDE {
            let numbers = around_codes(&narrow, wide);
            for exponent in [0, 1, 100, 126, 127, 128, 150, 253, 254] {
                for part in 0..parts {
                    let pairs: Vec<[u32; 2]> =
                        numbers.iter().zip(numbers.iter().rev()).map(|(&x, &y)| [x, y]).collect();
                    let words = |[x, y]: [u32; 2]| match wide.bits {
                        32 => vec![x, y, exponent << 23],
                        _ => vec![x | y << 16, exponent << 23],
                    };
                    let sources: Vec<Vec<u32>> = pairs.iter().map(|&pair| words(pair)).collect();
                    let op_sel = match (parts, wide.bits) {
                        (4, _) => format!("op_sel:[0,0,{},{}]", part & 1, part >> 1),
                        (_, 32) => format!("op_sel:[0,0,0,{part}]"),
                        _ => format!("op_sel:[0,0,{part}]"),
                    };
                    let from = if wide.bits == 32 { "v64, v65, v66" } else { "v64, v65" };
                    let instruction =
                        format!("v_cvt_scalef32_pk_{}_{} v128, {from} {op_sel}", narrow.name, wide.name);
                    let width = 2 * narrow.bits;
                    for (pair, made) in pairs.iter().zip(results(&instruction, &sources, 1)) {
                        for (at, &bits) in pair.iter().enumerate() {
                            let x = (wide.widen)(bits) / scale(exponent);
                            let got = element(&[made[0] >> (width * part)], at, narrow.bits);
                            if let Some(expected) = narrowed(&narrow, x) {
                                assert_eq!(got, u32::from(expected), "{instruction} of {x} by {exponent}");
                            }
                        }
                        let mask = (((1u64 << width) - 1) as u32) << (width * part);
                        assert_eq!(made[0] & !mask, BEFORE & !mask, "{instruction}: the rest stays");
                    }
                }
            }
        }
    }
}

#[test]
fn blocks_of_thirty_two_numbers_are_narrowed_with_scales() {
    for narrow in [FP6, BF6] {
        for wide in &WIDE {
            let numbers = around_codes(&narrow, wide);
            let blocks: Vec<Vec<u32>> = numbers
                .chunks(32)
                .map(|block| block.iter().copied().chain(std::iter::repeat(0)).take(32).collect())
                .collect();
            for exponent in [0, 1, 100, 126, 127, 128, 254] {
                let words = |block: &Vec<u32>| -> Vec<u32> {
                    let numbers: Vec<u32> = match wide.bits {
                        // The first elements of pairs, then the second ones.
                        32 => {
                            block.iter().step_by(2).chain(block.iter().skip(1).step_by(2)).copied().collect()
                        }
                        _ => block.chunks(2).map(|pair| pair[0] | pair[1] << 16).collect(),
                    };
                    numbers.into_iter().chain([exponent << 23]).collect()
                };
                let sources: Vec<Vec<u32>> = blocks.iter().map(words).collect();
                let instruction = match wide.bits {
                    32 => format!(
                        "v_cvt_scalef32_2xpk16_{}_f32 v[128:133], v[64:79], v[80:95], v96",
                        narrow.name
                    ),
                    _ => {
                        format!("v_cvt_scalef32_pk32_{}_{} v[128:133], v[64:79], v80", narrow.name, wide.name)
                    }
                };
                for (block, made) in blocks.iter().zip(results(&instruction, &sources, 6)) {
                    for (at, &bits) in block.iter().enumerate() {
                        let x = (wide.widen)(bits) / scale(exponent);
                        let got = element(&made, at, 6);
                        assert_eq!(got, u32::from((narrow.narrow)(x)), "{instruction} of {x} by {exponent}");
                    }
                }
            }
        }
    }
}
