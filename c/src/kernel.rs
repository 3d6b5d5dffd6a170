//! Kernels: of a text, or ready ones.

use std::ffi::c_char;

use groundswell::author::Kernel;
use groundswell::kernels::{self, Choices};
use groundswell::prelude::WaveSchedule;
use groundswell::text::parse_file;

use crate::failure::{Failure, object, status};
use crate::text::{dtype_named, free, object_of, text_of};

/// A kernel, with the schedule after its text and the defaults of its symbols, if it has any.
pub struct GroundswellKernel {
    pub(crate) kernel: Kernel,
    pub(crate) schedule: Option<WaveSchedule>,
    pub(crate) defaults: Vec<(&'static str, i64)>,
}

/// A kernel of a text, as `docs/language.md` describes it; a schedule may follow it. `file` is the name that
/// errors and debuggers give the text.
///
/// # Safety
/// Both texts end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_kernel_parse(
    text: *const c_char,
    file: *const c_char,
) -> *mut GroundswellKernel {
    object(|| {
        // SAFETY: as the caller says.
        let (text, file) = unsafe { (text_of(text, "the text")?, text_of(file, "the name of the file")?) };
        let (kernel, schedule) = parse_file(text, file).map_err(|faults| {
            let lines: Vec<String> = faults.into_iter().map(|fault| fault.to_string()).collect();
            Failure::from(lines.join("\n"))
        })?;
        Ok(GroundswellKernel { kernel, schedule, defaults: Vec::new() })
    })
}

/// A ready kernel by its name (`gemm`, `softmax`, ...), whose inputs have a dtype, or the usual one if `dtype`
/// is NULL. Its symbols have defaults.
///
/// # Safety
/// `name` ends with a zero byte, and so does `dtype` unless it is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_kernel_ready(
    name: *const c_char,
    dtype: *const c_char,
) -> *mut GroundswellKernel {
    object(|| {
        // SAFETY: as the caller says.
        let name = unsafe { text_of(name, "the name") }?;
        let Some(entry) = kernels::find(name) else {
            let names: Vec<&str> = kernels::list().iter().map(|entry| entry.name).collect();
            return Err(format!("no ready kernel is called `{name}`; there are {}", names.join(", ")).into());
        };
        let mut choices = Choices::default();
        if !dtype.is_null() {
            // SAFETY: as the caller says.
            let dtype = unsafe { text_of(dtype, "the dtype") }?;
            choices.dtype = Some(dtype_named(dtype)?);
        }
        let kernel = entry.kernel(&choices)?.told_at(None);
        Ok(GroundswellKernel { kernel, schedule: None, defaults: entry.values(&|_| None) })
    })
}

/// Whether a kernel has a symbol of that name: 1 if it has, 0 if not.
///
/// # Safety
/// `kernel` is a kernel, and `symbol` ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_kernel_has_symbol(
    kernel: *const GroundswellKernel,
    symbol: *const c_char,
) -> i32 {
    let mut found = 0;
    status(|| {
        // SAFETY: as the caller says.
        let (kernel, name) = unsafe { (object_of(kernel, "the kernel")?, text_of(symbol, "the symbol")?) };
        found = i32::from(kernel.kernel.symbols().iter().any(|known| known.name() == name));
        Ok(())
    });
    found
}

/// Frees a kernel.
///
/// # Safety
/// `kernel` is a kernel that is freed once, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_kernel_free(kernel: *mut GroundswellKernel) {
    // SAFETY: as the caller says.
    unsafe { free(kernel) };
}
