//! Compiling, and what it gives.

use std::ffi::c_char;

use groundswell::prelude::{Executable, SetBy, Symbol};

use crate::failure::{Failure, object, pointer, text};
use crate::kernel::GroundswellKernel;
use crate::options::GroundswellOptions;
use crate::text::{changed, free, object_of};

/// A compiled kernel.
pub struct GroundswellExecutable {
    pub(crate) executable: Executable,
}

/// Compiles a kernel. What was compiled before is found in a cache.
///
/// # Safety
/// `kernel` is a kernel, and `options` are options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_compile(
    kernel: *const GroundswellKernel,
    options: *const GroundswellOptions,
) -> *mut GroundswellExecutable {
    object(|| {
        // SAFETY: as the caller says.
        let (kernel, options) =
            unsafe { (object_of(kernel, "the kernel")?, object_of(options, "the options")?) };
        let known = kernel.kernel.symbols();
        if let Some(unknown) = options.given.iter().find(|symbol| !known.contains(symbol)) {
            let names: Vec<&str> = known.iter().map(|symbol| symbol.name()).collect();
            let text = format!("the kernel has no symbol `{unknown}`; its symbols are {}", names.join(", "));
            return Err(text.into());
        }
        let mut own = options.options.clone();
        for &(name, value) in &kernel.defaults {
            if !options.given.contains(&Symbol::new(name)) {
                own = own.set_by(name, value, SetBy::Default);
            }
        }
        if options.own_schedule {
            let schedule = kernel.schedule.as_ref();
            own = own.wave_schedule(schedule.ok_or_else(|| {
                Failure::from("the text of the kernel holds no schedule; write one after it".to_owned())
            })?);
        }
        Ok(GroundswellExecutable { executable: kernel.kernel.compile(&own)? })
    })
}

/// The code object of an executable, which is valid as long as the executable; its bytes go to `bytes`. NULL
/// if that fails.
///
/// # Safety
/// `executable` is an executable, and `bytes` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_executable_object(
    executable: *const GroundswellExecutable,
    bytes: *mut usize,
) -> *const u8 {
    pointer(|| {
        // SAFETY: as the caller says.
        let (own, bytes) =
            unsafe { (object_of(executable, "the executable")?, changed(bytes, "the place for the bytes")?) };
        let object = own.executable.object();
        *bytes = object.len();
        Ok(object.as_ptr().cast_mut())
    })
}

/// The compiler's report as JSON, with the kernel's name, target, block and arguments; free it with
/// `groundswell_string_free`.
///
/// # Safety
/// `executable` is an executable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_executable_report(
    executable: *const GroundswellExecutable,
) -> *mut c_char {
    text(|| {
        // SAFETY: as the caller says.
        let own = &unsafe { object_of(executable, "the executable") }?.executable;
        let json = serde_json::json!({
            "kernel": own.name(),
            "target": own.target_id().to_string(),
            "block": own.block(),
            "kernarg_bytes": own.kernarg_bytes(),
            "parameters": own.parameters(),
            "report": own.report(),
        });
        Ok(json.to_string())
    })
}

/// The kernel as assembly text that LLVM takes; free it with `groundswell_string_free`.
///
/// # Safety
/// `executable` is an executable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_executable_assembly(
    executable: *const GroundswellExecutable,
) -> *mut c_char {
    text(|| {
        // SAFETY: as the caller says.
        Ok(unsafe { object_of(executable, "the executable") }?.executable.assembly()?)
    })
}

/// Frees an executable.
///
/// # Safety
/// `executable` is an executable that is freed once, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_executable_free(executable: *mut GroundswellExecutable) {
    // SAFETY: as the caller says.
    unsafe { free(executable) };
}
