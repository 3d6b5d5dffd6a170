//! The header of a package for C and C++: for each kernel a struct of its arguments, laid out as the kernel
//! reads them, and a function that launches it through HIP.

use std::fmt::Write;

use super::built_kernel::BuiltKernel;
use super::expression_source::{argument_names, comment_text, size_name, source_of};
use crate::ir::types::DType;
use crate::runtime::executable::{Assumption, Executable, Parameter, Size};

/// What every header begins with, after its guard.
const HEAD: &str = "\
#include <stddef.h>
#include <stdint.h>

#include <hip/hip_runtime_api.h>

#ifndef GROUNDSWELL_HELPERS
#define GROUNDSWELL_HELPERS
static inline int64_t groundswell_floor_div(int64_t a, int64_t b)
{
    const int64_t quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
static inline int64_t groundswell_floor_mod(int64_t a, int64_t b) { return a - groundswell_floor_div(a, b) * b; }
static inline int64_t groundswell_least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t groundswell_most(int64_t a, int64_t b) { return a < b ? b : a; }
/* The same of numbers that may be more than 64 bits hold, which are then compared with less. */
static inline double groundswell_wide_floor_div(double a, double b)
{
    const double quotient = a / b;
    if (quotient > 4503599627370496.0 || quotient < -4503599627370496.0)
        return quotient;
    const double whole = (double)(int64_t)quotient;
    return whole > quotient ? whole - 1 : whole;
}
static inline double groundswell_wide_floor_mod(double a, double b)
{
    return a - groundswell_wide_floor_div(a, b) * b;
}
static inline double groundswell_wide_least(double a, double b) { return a < b ? a : b; }
static inline double groundswell_wide_most(double a, double b) { return a < b ? b : a; }
/* Whether two pieces of memory have a byte in common. */
static inline int groundswell_share(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes)
{
    const uintptr_t first = (uintptr_t)a, second = (uintptr_t)b;
    if (a_bytes == 0 || b_bytes == 0)
        return 0;
    return first < second ? second - first < a_bytes : first - second < b_bytes;
}
static inline hipError_t groundswell_launch(hipFunction_t function, hipStream_t stream, const uint32_t grid[3],
                                            const uint32_t block[3], void *arguments, size_t size)
{
    void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, arguments, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     HIP_LAUNCH_PARAM_END};
    return hipModuleLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], 0, stream, NULL,
                                 extra);
}
#ifdef __cplusplus
#define GROUNDSWELL_ASSERT(condition, text) static_assert(condition, text)
#else
#define GROUNDSWELL_ASSERT(condition, text) _Static_assert(condition, text)
#endif
#endif
";

/// The header. Kernels are those of the bundle `NAME.co`.
pub(super) fn header(kernels: &[BuiltKernel], name: &str) -> String {
    let guard = format!("GROUNDSWELL_{}_H", name.to_ascii_uppercase());
    let mut out = format!(
        "/* Written by groundswell {}. Changes are lost when it is written anew.\n\n   Load {name}.co with \
         hipModuleLoad, or its bytes with hipModuleLoadData, get a kernel by its name with\n   \
         hipModuleGetFunction, and launch it with its function below. HIP's headers want __HIP_PLATFORM_AMD__ \
         defined. */\n#ifndef {guard}\n#define {guard}\n\n{HEAD}",
        env!("CARGO_PKG_VERSION")
    );
    for kernel in kernels {
        arguments(&mut out, kernel);
        grid(&mut out, kernel);
        launch(&mut out, kernel);
    }
    // Writing to a string cannot fail.
    let _ = writeln!(out, "\n#endif");
    out
}

/// The C type of a scalar.
fn scalar(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "float",
        DType::F64 => "double",
        DType::I64 => "int64_t",
        _ => "int32_t",
    }
}

/// The struct of a kernel's arguments.
fn arguments(out: &mut String, kernel: &BuiltKernel) {
    let executable = kernel.first();
    let names = argument_names(executable);
    let name = &kernel.name;
    let size = |size: &Size| match size {
        Size::Static(size) => size.to_string(),
        Size::Dynamic(symbol) => comment_text(symbol.name()),
    };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "\n/* Arguments of {name}. */\ntypedef struct {name}_arguments {{");
    for (parameter, field) in executable.parameters().iter().zip(&names) {
        let _ = match parameter {
            Parameter::Buffer { dtype, shape, written, .. } => {
                let constant = if *written { "" } else { "const " };
                let shape = shape.iter().map(size).collect::<Vec<_>>().join(", ");
                writeln!(out, "    {constant}void *{field}; /* {dtype} [{shape}] */")
            }
            Parameter::Log { dtype, shape, .. } => {
                let shape = shape.iter().map(size).collect::<Vec<_>>().join(", ");
                writeln!(out, "    void *{field}; /* log: {dtype} [{shape}] */")
            }
            Parameter::Scalar { dtype, .. } => writeln!(out, "    {} {field};", scalar(*dtype)),
            Parameter::Symbol { symbol, .. } => {
                writeln!(out, "    int32_t {field}; /* the size {} */", comment_text(symbol.name()))
            }
        };
    }
    if names.is_empty() {
        let _ = writeln!(out, "    char none;");
    }
    let _ = writeln!(out, "}} {name}_arguments;");
    for (parameter, field) in executable.parameters().iter().zip(&names) {
        let (Parameter::Buffer { offset, .. }
        | Parameter::Log { offset, .. }
        | Parameter::Scalar { offset, .. }
        | Parameter::Symbol { offset, .. }) = parameter;
        let _ = writeln!(
            out,
            "GROUNDSWELL_ASSERT(offsetof({name}_arguments, {field}) == {offset}, \"layout of {name}_arguments\");"
        );
    }
}

/// The function that computes a kernel's grid.
fn grid(out: &mut String, kernel: &BuiltKernel) {
    let executable = kernel.first();
    let launch = executable.launch_expressions();
    let names = argument_names(executable);
    let name = &kernel.name;
    let typed = |e, number: &str, prefix: &str| {
        let named = |symbol| match size_name(executable, &names, symbol) {
            Some(name) => format!("({number})arguments->{name}"),
            None => "0".to_owned(),
        };
        let mut text = source_of(&launch.arena, e, &named);
        for helper in ["floor_div(", "floor_mod(", "least(", "most("] {
            text = text.replace(helper, &format!("{prefix}{helper}"));
        }
        text
    };
    let source = |e| typed(e, "int64_t", "groundswell_");
    // Whatever the sizes are, it does not overflow.
    let wide = |e| typed(e, "double", "groundswell_wide_");
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "\n/* Workgroups of {name} along each axis, none if there is nothing to do; 0 if it cannot be launched with these \
         sizes, else 1. */\n\
         static inline int {name}_grid(const {name}_arguments *arguments, uint32_t grid[3])\n{{"
    );
    size_checks(out, executable, &names);
    for &limited in launch.reaches.iter().chain(&launch.numbered) {
        let _ = writeln!(out, "    if ({} > INT32_MAX)\n        return 0;", wide(limited));
    }
    for (dim, _) in &launch.iterations {
        let dim = comment_text(dim.name());
        let _ = writeln!(out, "    /* The caller sees to it that iterations over {dim} fit into 32 bits. */");
    }
    for count in launch.grid.iter().filter(|&&count| launch.arena.as_integer(count).is_none()) {
        let _ = writeln!(out, "    if ({} > UINT32_MAX)\n        return 0;", wide(*count));
    }
    let counts = launch.grid.map(source).join(", ");
    let [empty, nothing] = emptiness(executable, &names);
    let _ = writeln!(
        out,
        "    const int64_t counts[3] = {{{counts}}};\n    const int empty = {empty};\n    int nothing = {nothing};\n    \
         for (int axis = 0; axis < 3; ++axis) {{\n        if (counts[axis] < (empty ? 0 : 1) || counts[axis] > \
         UINT32_MAX)\n            return 0;\n        grid[axis] = (uint32_t)counts[axis];\n        nothing |= \
         counts[axis] == 0;\n    }}\n    if (empty && !nothing)\n        return 0;\n    if (empty)\n        \
         grid[0] = grid[1] = grid[2] = 0;\n    (void)arguments;\n    return 1;\n}}"
    );
}

/// The conditions on single sizes and scalars with which a kernel can be launched.
fn size_checks(out: &mut String, executable: &Executable, names: &[String]) {
    let launch = executable.launch_expressions();
    for (parameter, field) in executable.parameters().iter().zip(names) {
        let limits = match parameter {
            Parameter::Symbol { .. } => Some((0, i64::from(i32::MAX))),
            // Scalars on which iterations depend.
            Parameter::Scalar { name, .. } => {
                launch.counted.iter().find(|(symbol, _)| *symbol.name() == **name).map(|counted| counted.1)
            }
            Parameter::Buffer { .. } | Parameter::Log { .. } => None,
        };
        if let Some((least, most)) = limits {
            let _ = writeln!(
                out,
                "    if (arguments->{field} < {least} || arguments->{field} > {most})\n        return 0;"
            );
        }
    }
    for (symbol, assumption) in &launch.assumptions {
        if let Some(size) = size_name(executable, names, *symbol) {
            let fails = match assumption {
                Assumption::Divisible(by) => format!("arguments->{size} % {by} != 0"),
                Assumption::AtLeast(least) => format!("arguments->{size} < {least}"),
                Assumption::AtMost(most) => format!("arguments->{size} > {most}"),
            };
            let _ = writeln!(out, "    if ({fails})\n        return 0;");
        }
    }
}

/// The function that launches a kernel.
fn launch(out: &mut String, kernel: &BuiltKernel) {
    let executable = kernel.first();
    let name = &kernel.name;
    let aliases = aliases(kernel, &argument_names(executable));
    let [x, y, z] = executable.block();
    let _ = writeln!(
        out,
        "\n/* Enqueues {name} on a stream. Its arguments are copied. Tensors that it writes share no memory \
         with others, unless it is made for that. */\nstatic inline hipError_t \
         {name}_launch(hipFunction_t function, hipStream_t stream, {name}_arguments arguments)\n{{\n    const \
         uint32_t block[3] = {{{x}, {y}, {z}}};\n    uint32_t grid[3];\n    if (!{name}_grid(&arguments, grid))\n        \
         return hipErrorInvalidValue;\n    if (grid[0] == 0)\n        return hipSuccess;\n{aliases}    return \
         groundswell_launch(function, stream, grid, block, &arguments, \
         sizeof(arguments));\n}}"
    );
}

/// C expressions: whether some size is 0, and whether all tensors that are written are then without elements.
fn emptiness(executable: &Executable, names: &[String]) -> [String; 2] {
    let is_zero = |size: &Size| match *size {
        Size::Static(_) => None,
        Size::Dynamic(symbol) => {
            size_name(executable, names, symbol).map(|name| format!("arguments->{name} == 0"))
        }
    };
    let any = |sizes: Vec<String>| match sizes.is_empty() {
        true => "0".to_owned(),
        false => sizes.join(" || "),
    };
    let mut empty = Vec::new();
    let mut nothing = Vec::new();
    for parameter in executable.parameters() {
        match parameter {
            Parameter::Symbol { symbol, .. } => empty.extend(is_zero(&Size::Dynamic(*symbol))),
            Parameter::Buffer { shape, written: true, .. } | Parameter::Log { shape, .. } => {
                nothing.push(format!("({})", any(shape.iter().filter_map(is_zero).collect())));
            }
            Parameter::Buffer { .. } | Parameter::Scalar { .. } => {}
        }
    }
    [any(empty), if nothing.is_empty() { "1".to_owned() } else { nothing.join(" && ") }]
}

/// C statements that refuse tensors which share memory where the kernel is not made for that. Of tensors with
/// strides the first elements are compared alone: others may lie between each other's.
fn aliases(kernel: &BuiltKernel, names: &[String]) -> String {
    let executable = kernel.first();
    let bytes = |dtype: DType, shape: &[Size], is_strided: bool| {
        let size = |size: &Size| match *size {
            Size::Static(size) => Some(size.to_string()),
            Size::Dynamic(symbol) => {
                size_name(executable, names, symbol).map(|name| format!("(uint64_t)arguments.{name}"))
            }
        };
        let sizes: Option<Vec<String>> = shape.iter().map(size).collect();
        match sizes.filter(|_| !is_strided && dtype.packing().is_none()) {
            Some(sizes) => {
                sizes.iter().fold(format!("{}u", dtype.bytes()), |bytes, size| format!("{bytes} * {size}"))
            }
            None => "1".to_owned(),
        }
    };
    let buffers = (0u32..).zip(executable.parameters()).zip(names);
    let buffers: Vec<(u32, &String, bool, String)> = buffers
        .filter_map(|((number, parameter), name)| match parameter {
            Parameter::Buffer { dtype, shape, strides, written, .. } => {
                Some((number, name, *written, bytes(*dtype, shape, !strides.is_empty())))
            }
            Parameter::Log { .. } | Parameter::Scalar { .. } | Parameter::Symbol { .. } => None,
        })
        .collect();
    let mut out = String::new();
    for (at, (number, name, written, bytes)) in buffers.iter().enumerate() {
        for (other, of, is_written, other_bytes) in &buffers[..at] {
            let pair = if *written { [*other, *number] } else { [*number, *other] };
            let apart = if kernel.executables.iter().all(|own| own.in_place().contains(&pair)) {
                format!("arguments.{of} != arguments.{name} && ")
            } else {
                String::new()
            };
            if *written || *is_written {
                // Writing to a string cannot fail.
                let _ = writeln!(
                    out,
                    "    if ({apart}groundswell_share(arguments.{of}, {other_bytes}, arguments.{name}, {bytes}))\n        \
                     return hipErrorInvalidValue;"
                );
            }
        }
    }
    out
}
