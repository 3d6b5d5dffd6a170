//! The Rust module of a package: for each kernel a function with typed arguments, and its geometry.

use std::fmt::Write;

use super::built_kernel::BuiltKernel;
use super::expression_source::{argument_names, comment_text, size_name, source_of};
use crate::ir::expr::Symbol;
use crate::ir::types::DType;
use crate::runtime::executable::{Executable, Parameter, Size};

/// The head of a module, before the name of the package's file. Each module uses a part of what it brings.
const HEAD: &str = r#"
#[allow(unused_imports)]
use groundswell::device::{Buffer, Device, Launch, bf16, f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0, f16};
use groundswell::diagnostic::Diagnostic;
#[allow(unused_imports)]
use groundswell::package::{KernelPackage, TensorView};

/// The package with the kernels of this module.
///
/// # Errors
/// Its file was damaged, or is of another version.
pub fn package() -> Result<&'static KernelPackage, Diagnostic> {
    static PACKAGE: std::sync::OnceLock<Result<KernelPackage, Diagnostic>> = std::sync::OnceLock::new();
    let package = PACKAGE.get_or_init(|| KernelPackage::read(&include_bytes!("#;

/// What follows the name of the file.
const HELPERS: &str = r#")[..]));
    package.as_ref().map_err(Diagnostic::clone)
}

#[allow(dead_code)]
const fn floor_div(a: i64, b: i64) -> i64 {
    let quotient = a / b;
    if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient }
}

#[allow(dead_code)]
const fn floor_mod(a: i64, b: i64) -> i64 {
    a - floor_div(a, b) * b
}

#[allow(dead_code)]
const fn least(a: i64, b: i64) -> i64 {
    if a < b { a } else { b }
}

#[allow(dead_code)]
const fn most(a: i64, b: i64) -> i64 {
    if a < b { b } else { a }
}
"#;

/// The module.
pub(super) fn module(kernels: &[BuiltKernel], package_file: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut out = format!(
        "// Written by groundswell {version}. Changes are lost when it is written anew.\n{HEAD}{package_file:?}{HELPERS}"
    );
    for kernel in kernels {
        launch(&mut out, kernel);
        geometry(&mut out, kernel);
    }
    out
}

/// The Rust type of elements; none of those that share bytes or are no data in memory.
fn element(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::F32 => "f32",
        DType::F64 => "f64",
        DType::F16 => "f16",
        DType::Bf16 => "bf16",
        DType::I8 => "i8",
        DType::I16 => "i16",
        DType::I32 => "i32",
        DType::I64 => "i64",
        DType::F8E4M3Fnuz => "f8e4m3fnuz",
        DType::F8E5M2Fnuz => "f8e5m2fnuz",
        DType::F8E4M3Fn => "f8e4m3fn",
        DType::F8E5M2 => "f8e5m2",
        DType::F8E8M0 => "f8e8m0",
        DType::I1 | DType::F4E2M1 | DType::F6E2M3 | DType::F6E3M2 => return None,
    })
}

/// Where a dynamic symbol is the size of a dimension: the tensor argument and the dimension.
fn place_of(executable: &Executable, wanted: Symbol) -> Option<(usize, usize)> {
    executable.parameters().iter().enumerate().find_map(|(at, parameter)| match parameter {
        Parameter::Buffer { shape, dtype, .. } if element(*dtype).is_some() => {
            let is_it = |size: &Size| matches!(size, Size::Dynamic(symbol) if *symbol == wanted);
            shape.iter().position(is_it).map(|dim| (at, dim))
        }
        _ => None,
    })
}

/// A dimension in a comment.
fn size_text(size: &Size) -> String {
    match size {
        Size::Static(size) => size.to_string(),
        Size::Dynamic(symbol) => comment_text(symbol.name()),
    }
}

/// The size of a dimension as far as it is known once all sizes are: an `Option<u32>`.
fn known_size(executable: &Executable, names: &[String], size: &Size) -> String {
    let of = |symbol: Symbol| size_name(executable, names, symbol);
    match *size {
        Size::Static(size) => format!("Some({size})"),
        Size::Dynamic(symbol) => match (of(symbol), symbol.scaled_from()) {
            (Some(name), _) => format!("Some({name})"),
            (None, Some((base, by))) if let Some(name) = of(base) => format!("Some({name}.div_ceil({by}))"),
            _ => "None".to_owned(),
        },
    }
}

/// The function that launches a kernel.
fn launch(out: &mut String, kernel: &BuiltKernel) {
    let executable = kernel.first();
    let names = argument_names(executable);
    let arguments = || executable.parameters().iter().zip(&names);
    documentation(out, kernel);
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "#[allow(dead_code, clippy::too_many_arguments)]\npub fn {}<'a>(\n    device: &'a Device,",
        kernel.name
    );
    for (parameter, name) in arguments() {
        let ty = match parameter {
            Parameter::Buffer { dtype, shape, .. } => match element(*dtype) {
                Some(element) => format!("TensorView<'a, {element}, {}>", shape.len()),
                None => "&'a Buffer".to_owned(),
            },
            Parameter::Scalar { dtype, .. } => element(*dtype).unwrap_or("f32").to_owned(),
            Parameter::Symbol { symbol, .. } if place_of(executable, *symbol).is_none() => "u32".to_owned(),
            Parameter::Symbol { .. } | Parameter::Log { .. } => continue,
        };
        let _ = writeln!(out, "    {name}: {ty},");
    }
    let _ = writeln!(out, ") -> Result<Launch<'a>, Diagnostic> {{");
    for (parameter, name) in arguments() {
        if let Parameter::Symbol { symbol, .. } = parameter
            && let Some((at, dim)) = place_of(executable, *symbol)
        {
            let _ = writeln!(out, "    let {name} = {}.shape()[{dim}];", names[at]);
        }
    }
    for (parameter, name) in arguments() {
        if let Parameter::Buffer { dtype, shape, .. } = parameter
            && element(*dtype).is_some()
        {
            let sizes = shape
                .iter()
                .map(|size| format!("({:?}, {})", size_text(size), known_size(executable, &names, size)));
            let sizes = sizes.collect::<Vec<_>>().join(", ");
            let _ = writeln!(out, "    {name}.expect({name:?}, [{sizes}])?;");
        }
    }
    let _ =
        writeln!(out, "    let launch = device.launch(package()?.executable({:?}, device)?);", kernel.name);
    let calls = calls(executable, &names);
    let _ = writeln!(out, "    Ok(launch{calls})\n}}");
}

/// The documentation of the function.
fn documentation(out: &mut String, kernel: &BuiltKernel) {
    let executable = kernel.first();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "\n/// A launch of `{}`, which `run` or `enqueue` starts.\n///", kernel.name);
    for (parameter, name) in executable.parameters().iter().zip(argument_names(executable)) {
        match parameter {
            Parameter::Buffer { dtype, shape, strides, written, .. } => {
                let shape: Vec<String> = shape.iter().map(size_text).collect();
                let access = if *written { "written" } else { "read" };
                let strided = if strides.is_empty() { "" } else { ", with strides" };
                let _ = writeln!(out, "/// - `{name}`: {access}, {dtype} `[{}]`{strided}", shape.join(", "));
            }
            Parameter::Scalar { dtype, .. } => {
                let _ = writeln!(out, "/// - `{name}`: {dtype}");
            }
            Parameter::Symbol { symbol, .. } if place_of(executable, *symbol).is_none() => {
                let _ = writeln!(out, "/// - `{name}`: the size {}", comment_text(symbol.name()));
            }
            Parameter::Symbol { .. } | Parameter::Log { .. } => {}
        }
    }
    let _ = writeln!(
        out,
        "///\n/// # Errors\n/// Sizes that do not go together, a device that the package has no code for, a damaged package."
    );
}

/// The calls that give a launch its arguments.
fn calls(executable: &Executable, names: &[String]) -> String {
    let mut calls = String::new();
    // Writing to a string cannot fail.
    for (parameter, name) in executable.parameters().iter().zip(names) {
        let _ = match parameter {
            Parameter::Buffer { dtype, .. } if element(*dtype).is_some() => {
                write!(calls, ".buffer({name}.buffer())")
            }
            Parameter::Buffer { .. } => write!(calls, ".buffer({name})"),
            Parameter::Scalar { .. } => write!(calls, ".scalar({name})"),
            Parameter::Symbol { symbol, .. } => write!(calls, ".set({:?}, {name})", symbol.name()),
            Parameter::Log { .. } => Ok(()),
        };
    }
    calls
}

/// The geometry of a kernel's launches, for checks when the user's crate is compiled.
fn geometry(out: &mut String, kernel: &BuiltKernel) {
    let executable = kernel.first();
    let launch = executable.launch_expressions();
    let names = argument_names(executable);
    let symbols = executable.parameters().iter().zip(&names);
    let sizes: Vec<String> = symbols
        .filter(|(parameter, _)| matches!(parameter, Parameter::Symbol { .. }))
        .map(|(_, name)| format!("{name}: i64"))
        .collect();
    let named = |symbol| size_name(executable, &names, symbol).unwrap_or("0").to_owned();
    let grid: Vec<String> = launch.grid.iter().map(|&e| source_of(&launch.arena, e, &named)).collect();
    let (name, upper) = (&kernel.name, kernel.name.to_ascii_uppercase());
    // Writing to a string cannot fail.
    let _ = writeln!(out, "\n/// Work-items of a workgroup of `{name}`.");
    let _ =
        writeln!(out, "#[allow(dead_code)]\npub const {upper}_BLOCK: [u32; 3] = {:?};", executable.block());
    let _ = writeln!(
        out,
        "\n/// Workgroups of `{name}` along each axis, for sizes that are known only at launch."
    );
    let _ = writeln!(out, "#[allow(dead_code, unused_variables, clippy::identity_op)]");
    let _ = writeln!(out, "pub const fn {name}_grid({}) -> [i64; 3] {{", sizes.join(", "));
    let _ = writeln!(out, "    [{}]\n}}", grid.join(", "));
}
