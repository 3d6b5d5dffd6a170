//! Words of other languages: what numpy, Triton, PyTorch, CUDA and C call things that this language has under
//! another name. They are too far from ours for a comparison of letters, which may even find the wrong word:
//! `sum` has two letters of `sub`.

use crate::ir::types::DType;

/// Words of operations, of statements and of ways to write values, and how they are written here.
pub(super) const WORDS: &[(&str, &[&str])] = &[
    ("abs", &["absolute", "fabs"]),
    ("add", &["fadd", "plus"]),
    ("allocate", &["alloc", "shared_memory"]),
    ("and", &["bitwise_and", "logical_and"]),
    ("any", &["reduce_or"]),
    ("all", &["reduce_and"]),
    ("argsort", &["arg_sort"]),
    ("argmax", &["arg_max"]),
    ("argmin", &["arg_min"]),
    ("atan2", &["arctan2"]),
    ("atomic_compare_exchange", &["atomic_cas", "compare_and_swap", "atomicCAS"]),
    ("atomic_exchange", &["atomic_xchg", "atomicExch"]),
    ("atomic_add", &["atomicAdd"]),
    ("atomic_max", &["atomicMax"]),
    ("atomic_min", &["atomicMin"]),
    ("barrier", &["syncthreads", "__syncthreads", "debug_barrier"]),
    ("bitcast", &["view", "view_as", "reinterpret"]),
    ("broadcast", &["broadcast_to", "expand", "expand_dims", "repeat"]),
    ("cast", &["astype", "to", "convert"]),
    ("compare eq", &["eq", "equal"]),
    ("compare ge", &["ge", "greater_equal"]),
    ("compare gt", &["gt", "greater"]),
    ("compare le", &["le", "less_equal"]),
    ("compare lt", &["lt", "less"]),
    ("compare ne", &["ne", "not_equal"]),
    ("conditional", &["if", "cond"]),
    ("cumsum", &["cumulative_sum", "prefix_sum", "scan", "associative_scan"]),
    ("debug_log", &["device_print", "print", "printf"]),
    ("div", &["divide", "true_divide", "truediv", "fdiv"]),
    ("expm1", &["exp_m1"]),
    ("floor_div", &["floor_divide", "floordiv"]),
    ("fma", &["fmaf", "multiply_add", "mad"]),
    ("iterate", &["for", "range", "static_range", "loop"]),
    ("log", &["ln"]),
    ("log1p", &["log_1p"]),
    ("max", &["maximum", "fmax"]),
    ("mean", &["average", "reduce_mean"]),
    ("memory", &["tensor", "buffer", "pointer"]),
    ("min", &["minimum", "fmin"]),
    ("mma", &["dot", "matmul", "einsum", "gemm"]),
    ("mul", &["multiply", "times"]),
    ("neg", &["negative", "negate"]),
    ("not", &["bitwise_not", "invert", "logical_not"]),
    ("or", &["bitwise_or", "logical_or"]),
    ("pow", &["power"]),
    ("read", &["load", "ld"]),
    ("reciprocal", &["rcp", "inverse"]),
    ("reduce_max", &["amax", "nanmax"]),
    ("reduce_min", &["amin", "nanmin"]),
    ("reduce_product", &["prod", "product"]),
    ("reduce_sum", &["sum", "reduce"]),
    ("register", &["zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "empty", "fill"]),
    ("rem", &["mod", "modulo", "remainder"]),
    ("round_even", &["rint", "nearbyint", "around"]),
    ("rsqrt", &["inverse_sqrt"]),
    ("scaled_mma", &["dot_scaled", "scaled_dot"]),
    ("scatter_add", &["index_add"]),
    ("select", &["where", "choose", "if_else"]),
    ("self_index", &["arange", "iota", "indices"]),
    ("shift_left", &["left_shift", "shl", "lshift"]),
    ("shift_right", &["right_shift", "shr", "ashr", "rshift"]),
    ("sigmoid", &["logistic", "expit"]),
    ("silu", &["swish"]),
    ("sub", &["subtract", "minus"]),
    ("topk", &["top_k"]),
    ("trunc", &["fix"]),
    ("workgroup_id", &["program_id", "block_idx", "blockIdx"]),
    ("write", &["store", "st", "return"]),
    ("xor", &["bitwise_xor", "logical_xor"]),
];

/// What no single word says, and how it is written.
pub(super) const WAYS: &[(&[&str], &str)] = &[
    (&["relu"], "write `max %x, 0.0`"),
    (&["clip", "clamp"], "write `max` with the lower bound, then `min` with the upper one"),
    (&["square"], "write `mul %x, %x`"),
    (&["isnan"], "a NaN is what differs from itself: write `compare ne %x, %x`"),
    (
        &["transpose", "trans", "permute", "swapaxes", "reshape", "T"],
        "values have dimensions with names instead of an order: a memory may list them in any",
    ),
    (
        &["softmax"],
        "write `reduce_max`, `sub`, `exp`, `reduce_sum` and `div`, which combine values of different dimensions",
    ),
    (
        &["take", "gather", "take_along_axis"],
        "write `read` with coordinates: `read x at [%places, N] as [M, N]`",
    ),
];

/// Names of dtypes.
pub(super) const DTYPES: &[(DType, &[&str])] = &[
    (DType::F64, &["float64", "double", "fp64"]),
    (DType::F32, &["float32", "float", "single", "fp32"]),
    (DType::F16, &["float16", "half", "fp16"]),
    (DType::Bf16, &["bfloat16", "bfloat"]),
    (DType::I64, &["int64", "long", "s64"]),
    (DType::I32, &["int32", "int", "s32"]),
    (DType::I16, &["int16", "short", "s16"]),
    (DType::I8, &["int8", "char", "s8"]),
    (DType::I1, &["bool", "bool_", "int1", "boolean"]),
    (DType::F8E4M3Fnuz, &["float8_e4m3fnuz", "fp8e4b8", "float8e4b8"]),
    (DType::F8E5M2Fnuz, &["float8_e5m2fnuz", "fp8e5b16", "float8e5b16"]),
    (DType::F8E4M3Fn, &["float8_e4m3fn", "float8_e4m3", "fp8e4nv", "float8e4nv", "e4m3fn", "e4m3", "f8e4m3"]),
    (DType::F8E5M2, &["float8_e5m2", "fp8e5", "float8e5", "e5m2"]),
    (DType::F8E8M0, &["float8_e8m0fnu", "float8_e8m0", "e8m0", "ue8m0"]),
    (DType::F4E2M1, &["float4_e2m1fn", "float4_e2m1fn_x2", "float4_e2m1", "e2m1", "fp4"]),
    (DType::F6E2M3, &["float6_e2m3fn", "float6_e2m3", "e2m3"]),
    (DType::F6E3M2, &["float6_e3m2fn", "float6_e3m2", "e3m2"]),
];

/// Integers without a sign, and those with as many bits.
pub(super) const UNSIGNED: &[(DType, &[&str])] = &[
    (DType::I64, &["uint64", "u64", "ulong"]),
    (DType::I32, &["uint32", "u32", "uint"]),
    (DType::I16, &["uint16", "u16", "ushort"]),
    (DType::I8, &["uint8", "u8", "uchar", "byte"]),
];

/// How an operation or a statement is written that another language has under this word.
pub(super) fn operation(word: &str) -> Option<String> {
    if let Some((own, _)) = WORDS.iter().find(|row| row.1.contains(&word)) {
        return Some(format!("`{word}` is `{own}` here"));
    }
    let way = WAYS.iter().find(|row| row.0.contains(&word));
    way.map(|row| row.1.to_owned())
}

/// The function of symbols that another language has under this word.
pub(super) fn function(word: &str) -> Option<&'static str> {
    match word {
        "cdiv" | "ceil_div" | "div_ceil" => Some("ceildiv"),
        "maximum" => Some("max"),
        "minimum" => Some("min"),
        _ => None,
    }
}

/// How a dtype is written that other languages have under this name, in capital letters or not.
pub fn dtype(name: &str) -> Option<String> {
    let small = name.to_ascii_lowercase();
    let has = |row: &&(DType, &[&str])| row.0.name() == small || row.1.contains(&small.as_str());
    if let Some((own, _)) = DTYPES.iter().find(has) {
        return Some(format!("`{name}` is `{own}` here"));
    }
    let (own, _) = UNSIGNED.iter().find(|row| row.1.contains(&small.as_str()))?;
    Some(format!("integers have a sign: `{own}` has as many bits"))
}
