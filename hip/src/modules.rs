//! Modules: code objects that a program loads itself, and what it looks up in them.

use std::ffi::{CString, c_int, c_void};
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use groundswell::object::{KernelMetadata, MAX_OBJECT_BYTES};
use groundswell::simulator::Module;

use crate::error::{Code, HipError, HipResult, invalid};
use crate::ffi::{In, Out, Text, exports};
use crate::handles::Handle;
use crate::image::{BEGIN, check_begin, image_at};
use crate::runtime::{Runtime, runtime};

/// A code object on the device.
pub(crate) struct LoadedModule {
    pub module: Module,
}

/// A kernel of a module.
pub(crate) struct LoadedFunction {
    pub module: Arc<LoadedModule>,
    pub name: String,
    /// The same for programs that ask for it.
    pub c_name: CString,
}

impl LoadedModule {
    /// Loads an object, or the right one of a bundle.
    pub(crate) fn load(runtime: &Runtime, image: &[u8]) -> HipResult<LoadedModule> {
        check_begin(image)?;
        let module = runtime.simulator_to_change().load(image)?;
        Ok(LoadedModule { module })
    }

    /// Address and size of a variable.
    ///
    /// # Errors
    /// The module has none of that name.
    pub(crate) fn variable(&self, name: &str) -> HipResult<(u64, u64)> {
        let variable = self.module.variable(name);
        let found = variable.map(|variable| (variable.address, variable.bytes));
        found.ok_or_else(|| HipError::new(Code::NotFound, format!("the module has no variable `{name}`")))
    }
}

impl LoadedFunction {
    /// A kernel of a module.
    ///
    /// # Errors
    /// The module has none of that name; those that it has are named.
    pub(crate) fn new(module: Arc<LoadedModule>, name: &str) -> HipResult<LoadedFunction> {
        if !module.module.kernel_names().any(|kernel| kernel == name) {
            let names: Vec<&str> = module.module.kernel_names().take(8).collect();
            let reason = format!("the module has no kernel `{name}`; it has {}", names.join(", "));
            return Err(HipError::new(Code::NotFound, reason));
        }
        let c_name = CString::new(name).map_err(|_| invalid("the name of a kernel has a zero in it"))?;
        Ok(LoadedFunction { module, name: name.to_owned(), c_name })
    }

    /// What the object says of the kernel.
    ///
    /// # Errors
    /// It says nothing, so HIP would not launch it.
    pub(crate) fn metadata(&self) -> HipResult<&KernelMetadata> {
        let metadata = self.module.module.metadata(&self.name);
        metadata.ok_or_else(|| {
            let reason = format!("the object has no metadata for kernel `{}`", self.name);
            HipError::new(Code::SharedObjectInitFailed, reason)
        })
    }
}

fn load(module: Out<Handle>, image: &[u8]) -> HipResult {
    let runtime = runtime()?;
    let loaded = LoadedModule::load(runtime, image)?;
    module.put(runtime.modules.add(loaded)?)
}

/// The bytes of a file that begins as an image does. Neither devices and pipes, which may have no end, nor
/// more than an image may have is read.
fn read_image(path: &str) -> HipResult<Vec<u8>> {
    let fail =
        |error: std::io::Error| HipError::new(Code::FileNotFound, format!("cannot read {path}: {error}"));
    let refuse = |reason: &str| HipError::new(Code::InvalidImage, format!("{path}: {reason}"));
    if !std::fs::metadata(path).map_err(fail)?.is_file() {
        return Err(refuse("it is no regular file"));
    }
    let mut file = File::open(path).map_err(fail)?;
    let mut bytes = Vec::new();
    file.by_ref().take(BEGIN as u64).read_to_end(&mut bytes).map_err(fail)?;
    check_begin(&bytes)?;
    let left = MAX_OBJECT_BYTES - BEGIN + 1;
    file.take(left as u64).read_to_end(&mut bytes).map_err(fail)?;
    match bytes.len() > MAX_OBJECT_BYTES {
        true => Err(refuse("it is larger than any image that is read")),
        false => Ok(bytes),
    }
}

fn load_data(module: Out<Handle>, image: In<u8>) -> HipResult {
    // SAFETY: HIP asks its callers to leave the image where it is.
    load(module, unsafe { image_at(image) }?)
}

/// The attributes of a function, by HIP's numbers (`hipFunction_attribute`).
fn attribute(runtime: &Runtime, function: &LoadedFunction, attribute: c_int) -> HipResult<u32> {
    let metadata = function.metadata()?;
    let lds = metadata.group_segment_fixed_size;
    Ok(match attribute {
        0 => metadata.workgroup_size.max(),
        1 => lds,
        2 => 0,
        3 => metadata.private_segment_fixed_size,
        4 => metadata.vgpr_count,
        // The version of the object, as for PTX and machine code of other chips: of no use here.
        5 | 6 => 0,
        7 => 0,
        8 => runtime.target.target().max_lds_per_workgroup - lds,
        9 => 0,
        _ => return Err(invalid(format!("{attribute} is no attribute of a function"))),
    })
}

/// `hipFuncAttributes`.
#[derive(Copy, Clone)]
#[repr(C)]
pub(crate) struct FunctionAttributes {
    binary_version: c_int,
    cache_mode: c_int,
    constant_bytes: usize,
    local_bytes: usize,
    most_dynamic_lds: c_int,
    most_work_items: c_int,
    registers: c_int,
    carveout: c_int,
    ptx_version: c_int,
    shared_bytes: usize,
}

exports! {
    fn hipModuleLoad(module: Out<Handle>, path: Text) {
        load(module, &read_image(path.get()?)?)
    }

    fn hipModuleLoadData(module: Out<Handle>, image: In<u8>) {
        load_data(module, image)
    }

    fn hipModuleLoadDataEx(
        module: Out<Handle>,
        image: In<u8>,
        _count: u32,
        _options: *mut c_int,
        _values: *mut *mut c_void,
    ) {
        load_data(module, image)
    }

    fn hipModuleUnload(module: Handle) {
        let runtime = runtime()?;
        let module = runtime.modules.remove(module)?;
        // Its functions go with it.
        runtime.functions.remove_where(|function| Arc::ptr_eq(&function.module, &module));
        match Arc::try_unwrap(module) {
            Ok(loaded) => Ok(runtime.simulator_to_change().unload(loaded.module)?),
            // A launch in another thread still uses it.
            Err(_) => Ok(()),
        }
    }

    fn hipModuleGetFunction(function: Out<Handle>, module: Handle, name: Text) {
        let runtime = runtime()?;
        let module = runtime.modules.get(module)?;
        let found = LoadedFunction::new(module, name.get()?)?;
        function.put(runtime.functions.add(found)?)
    }

    fn hipModuleGetGlobal(address: Out<u64>, bytes: Out<usize>, module: Handle, name: Text) {
        let found = runtime()?.modules.get(module)?.variable(name.get()?)?;
        bytes.put_if_wanted(found.1 as usize);
        address.put(found.0)
    }

    fn hipFuncGetAttribute(value: Out<c_int>, which: c_int, function: Handle) {
        let runtime = runtime()?;
        let function = runtime.functions.get(function)?;
        value.put(attribute(runtime, &function, which)? as c_int)
    }

    fn hipFuncGetAttributes(attributes: Out<FunctionAttributes>, function: u64) {
        let runtime = runtime()?;
        let function = crate::registration::function(runtime, function)?;
        let of = |which| attribute(runtime, &function, which);
        attributes.put(FunctionAttributes {
            binary_version: of(6)? as c_int,
            cache_mode: of(7)? as c_int,
            constant_bytes: of(2)? as usize,
            local_bytes: of(3)? as usize,
            most_dynamic_lds: of(8)? as c_int,
            most_work_items: of(0)? as c_int,
            registers: of(4)? as c_int,
            carveout: of(9)? as c_int,
            ptx_version: of(5)? as c_int,
            shared_bytes: of(1)? as usize,
        })
    }

    fn hipFuncSetAttribute(function: u64, which: c_int, value: c_int) {
        let runtime = runtime()?;
        let function = crate::registration::function(runtime, function)?;
        match which {
            8 if value < 0 || value as u32 > attribute(runtime, &function, 8)? => {
                Err(invalid(format!("{value} bytes of LDS are more than a workgroup can have")))
            }
            8 | 9 => Ok(()),
            _ => Err(invalid(format!("attribute {which} of a function cannot be set"))),
        }
    }

    fn hipFuncSetCacheConfig(_function: u64, _config: c_int) {
        Ok(())
    }

    fn hipFuncSetSharedMemConfig(_function: u64, _config: c_int) {
        Ok(())
    }
}
