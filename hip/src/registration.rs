//! What a program registers before `main`: the bundles that its compiler has put into it, and the kernels and
//! variables in them, each by an address of the host that stands for it.
//!
//! Nothing is loaded until it is used. The functions are those that Clang calls
//! (clang/lib/CodeGen/CGCUDANV.cpp, `makeRegisterGlobalsFn` and `makeModuleCtorFunction`).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};

use groundswell::object::{decompress_bundle, read_bundle};
use groundswell::target::{FeatureSetting, TargetId};

use crate::error::{Code, HipError, HipResult};
use crate::ffi::{Dim3, In, Out, Text, exports};
use crate::image::image_at;
use crate::modules::{LoadedFunction, LoadedModule};
use crate::runtime::{Runtime, runtime};
use crate::space::MemoryKind;

/// What `__hipRegisterFatBinary` is given: `__CudaFatBinaryWrapper` of CGCUDANV.cpp.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct FatBinaryWrapper {
    magic: u32,
    version: u32,
    binary: In<u8>,
    unused: *const c_void,
}

/// "HIPF".
const MAGIC: u32 = 0x4849_5046;

/// A bundle in the program.
struct FatBinary {
    image: HipResult<&'static [u8]>,
    module: OnceLock<HipResult<Arc<LoadedModule>>>,
    /// Managed variables: name, and where the program keeps the pointer.
    managed: Mutex<Vec<ManagedVariable>>,
}

#[derive(Clone)]
struct ManagedVariable {
    name: String,
    address: u64,
}

/// A kernel or a variable of a bundle.
#[derive(Clone)]
struct Named {
    binary: Arc<FatBinary>,
    name: String,
}

#[derive(Default)]
struct Registry {
    /// By the handle that the program has: its number, from one on.
    binaries: Vec<Option<Arc<FatBinary>>>,
    functions: BTreeMap<u64, Named>,
    loaded: BTreeMap<u64, Arc<LoadedFunction>>,
    variables: BTreeMap<u64, Named>,
}

/// What the program has registered.
pub(crate) struct Registered;

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);

fn with<R>(f: impl FnOnce(&mut Registry) -> R) -> R {
    let mut registry: MutexGuard<'_, Option<Registry>> =
        // A poisoned lock guards tables that are whole after each change.
        REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    f(registry.get_or_insert_default())
}

impl Registered {
    /// The first chip that the program has code for. Whether it retries after page faults stays open.
    pub(crate) fn first_target() -> Option<TargetId> {
        let binaries: Vec<Arc<FatBinary>> = with(|r| r.binaries.iter().flatten().cloned().collect());
        binaries.iter().find_map(|binary| {
            let image = binary.image.as_ref().ok()?;
            let bundle = decompress_bundle(image).ok()?;
            let chip = read_bundle(&bundle).ok()??.first()?.target.chip();
            Some(chip.with_xnack(FeatureSetting::Any).unwrap_or(chip))
        })
    }
}

impl FatBinary {
    /// The module, loaded when it is first needed.
    fn module(&self, runtime: &Runtime) -> HipResult<Arc<LoadedModule>> {
        let load = || {
            let loaded = Arc::new(LoadedModule::load(runtime, self.image.clone()?)?);
            let managed = self.managed.lock().unwrap_or_else(PoisonError::into_inner);
            for variable in managed.iter() {
                // The device's variable of that name is a pointer to the memory
                // (clang/lib/CodeGen/CGCUDANV.cpp, `transformManagedVars`).
                let (address, _) = loaded.variable(&variable.name)?;
                runtime.simulator().write(address, &variable.address.to_le_bytes())?;
            }
            Ok(loaded)
        };
        self.module.get_or_init(load).clone()
    }
}

/// The kernel that an address of the host stands for, or a handle of a function.
///
/// # Errors
/// No kernel is registered there, or its module cannot be loaded.
pub(crate) fn function(runtime: &Runtime, host: u64) -> HipResult<Arc<LoadedFunction>> {
    if let Some(loaded) = with(|registry| registry.loaded.get(&host).cloned()) {
        return Ok(loaded);
    }
    if let Ok(function) = runtime.functions.get(host) {
        return Ok(function);
    }
    let named = with(|registry| registry.functions.get(&host).cloned()).ok_or_else(|| {
        HipError::new(Code::InvalidDeviceFunction, format!("no kernel is registered for {host:#x}"))
    })?;
    let module = named.binary.module(runtime).inspect_err(|error| {
        // Nobody looks at errors of launches, and without its kernels a program does nothing.
        if error.code == Code::NoBinaryForGpu {
            static SAID: Once = Once::new();
            SAID.call_once(|| eprintln!("groundswell: {error}; --target chooses another chip"));
        }
    })?;
    let function = Arc::new(LoadedFunction::new(module, &named.name)?);
    with(|registry| registry.loaded.insert(host, function.clone()));
    Ok(function)
}

/// Address and size of the device's variable that an address of the host stands for.
///
/// # Errors
/// None is registered there.
pub(crate) fn variable(runtime: &Runtime, host: u64) -> HipResult<(u64, u64)> {
    let named = with(|registry| registry.variables.get(&host).cloned()).ok_or_else(|| {
        HipError::new(Code::InvalidSymbol, format!("no variable is registered for {host:#x}"))
    })?;
    named.binary.module(runtime)?.variable(&named.name)
}

fn binary(handle: In<u64>) -> HipResult<Arc<FatBinary>> {
    let number = handle.value()? as usize;
    let found = with(|registry| registry.binaries.get(number.wrapping_sub(1)).cloned().flatten());
    found.ok_or_else(|| HipError::new(Code::InvalidHandle, "the bundle is not registered"))
}

/// `__hipRegisterFatBinary`: the handle points to a number, and lives as long as the process.
#[unsafe(no_mangle)]
pub extern "C" fn __hipRegisterFatBinary(wrapper: In<FatBinaryWrapper>) -> *const u64 {
    let image = wrapper.value().and_then(|wrapper| match wrapper.magic {
        // SAFETY: the bundle is a constant of the program.
        MAGIC => unsafe { image_at(wrapper.binary) },
        _ => {
            Err(HipError::new(Code::InvalidImage, "the program has registered something else than a bundle"))
        }
    });
    let binary = FatBinary { image, module: OnceLock::new(), managed: Mutex::default() };
    let number = with(|registry| {
        registry.binaries.push(Some(Arc::new(binary)));
        registry.binaries.len() as u64
    });
    Box::leak(Box::new(number))
}

/// `__hipUnregisterFatBinary`, called as the process ends or as a library is closed.
#[unsafe(no_mangle)]
pub extern "C" fn __hipUnregisterFatBinary(handle: In<u64>) {
    let Some(number) = handle.get() else { return };
    with(|registry| {
        let slot = registry.binaries.get_mut((number as usize).wrapping_sub(1));
        let Some(binary) = slot.and_then(Option::take) else { return };
        registry.functions.retain(|_, named| !Arc::ptr_eq(&named.binary, &binary));
        registry.variables.retain(|_, named| !Arc::ptr_eq(&named.binary, &binary));
        let Registry { functions, loaded, .. } = registry;
        loaded.retain(|host, _| functions.contains_key(host));
    });
}

fn register(handle: In<u64>, host: u64, name: Text, table: fn(&mut Registry) -> &mut BTreeMap<u64, Named>) {
    let registered = || -> HipResult {
        let named = Named { binary: binary(handle)?, name: name.get()?.to_owned() };
        with(|registry| table(registry).insert(host, named));
        Ok(())
    };
    crate::error::answer("registration", registered);
}

/// `__hipRegisterFunction`: a kernel, by the address that launches name it by.
#[unsafe(no_mangle)]
pub extern "C" fn __hipRegisterFunction(
    handle: In<u64>,
    host: u64,
    _device_function: *const c_void,
    name: Text,
    _thread_limit: u32,
    _item: *const c_void,
    _group: *const c_void,
    _block: *const c_void,
    _grid: *const c_void,
    _wave: *const c_void,
) {
    register(handle, host, name, |registry| &mut registry.functions);
}

/// `__hipRegisterVar`: a variable, by the address of its shadow in the program.
#[unsafe(no_mangle)]
pub extern "C" fn __hipRegisterVar(
    handle: In<u64>,
    host: u64,
    _host_name: *const c_void,
    name: Text,
    _external: c_int,
    _bytes: usize,
    _constant: c_int,
    _global: c_int,
) {
    register(handle, host, name, |registry| &mut registry.variables);
}

/// `__hipRegisterManagedVar`: memory that the host and the device share, through a pointer in the program.
#[unsafe(no_mangle)]
pub extern "C" fn __hipRegisterManagedVar(
    handle: In<u64>,
    pointer: Out<u64>,
    initial: u64,
    name: Text,
    bytes: usize,
    _alignment: u32,
) {
    crate::error::answer("__hipRegisterManagedVar", || {
        let runtime = runtime()?;
        let mut simulator = runtime.simulator_to_change();
        let address = runtime.space.allocate(&mut simulator, bytes as u64, MemoryKind::Managed, 1)?;
        drop(simulator);
        if initial != 0 {
            // SAFETY: the compiler passes the variable's initial value, of its size; the place was allocated
            // above.
            unsafe { crate::ffi::write_host(address, crate::ffi::host_bytes(initial, bytes)) };
        }
        let variable = ManagedVariable { name: name.get()?.to_owned(), address };
        binary(handle)?.managed.lock().unwrap_or_else(PoisonError::into_inner).push(variable);
        pointer.put(address)
    });
}

/// `__hipRegisterTexture`: textures are not there, which a program is told when it uses one.
#[unsafe(no_mangle)]
pub extern "C" fn __hipRegisterTexture() {}

/// `__hipRegisterSurface`, likewise.
#[unsafe(no_mangle)]
pub extern "C" fn __hipRegisterSurface() {}

/// A launch that `<<<...>>>` has begun.
#[derive(Copy, Clone)]
struct CallConfiguration {
    grid: Dim3,
    block: Dim3,
    lds: usize,
    stream: u64,
}

thread_local! {
    static CONFIGURATIONS: RefCell<Vec<CallConfiguration>> = const { RefCell::new(Vec::new()) };
}

exports! {
    fn __hipPushCallConfiguration(grid: Dim3, block: Dim3, lds: usize, stream: u64) {
        CONFIGURATIONS.with_borrow_mut(|all| all.push(CallConfiguration { grid, block, lds, stream }));
        Ok(())
    }

    fn __hipPopCallConfiguration(grid: Out<Dim3>, block: Out<Dim3>, lds: Out<usize>, stream: Out<u64>) {
        let configuration = CONFIGURATIONS.with_borrow_mut(Vec::pop).ok_or_else(|| {
            HipError::new(Code::MissingConfiguration, "no launch has been begun in this thread")
        })?;
        grid.put(configuration.grid)?;
        block.put(configuration.block)?;
        lds.put(configuration.lds)?;
        stream.put(configuration.stream)
    }

    fn hipGetSymbolAddress(address: Out<u64>, symbol: u64) {
        address.put(variable(runtime()?, symbol)?.0)
    }

    fn hipGetSymbolSize(bytes: Out<usize>, symbol: u64) {
        bytes.put(variable(runtime()?, symbol)?.1 as usize)
    }
}
