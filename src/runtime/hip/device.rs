//! A device of HIP: its memory, the objects that are loaded on it, streams, events, launches.

use std::collections::BTreeMap;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::api::{Api, CopyDirection, HipHandle};
use super::architecture;
use super::failure::HipFailure;
use super::library::{OpenedLibrary, library};
use crate::codegen::target::TargetId;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::runtime::executable::Executable;

/// `hipDeviceAttributeMultiprocessorCount`, the same number in HIP 5.2 to 7.
const COMPUTE_UNITS: i32 = 63;

/// Objects that a device keeps loaded.
const MOST_MODULES: usize = 4096;

/// The most bytes of freed device memory that are kept for the next buffer of that size.
const MOST_POOLED: u64 = 1 << 30;

/// A device.
pub(in crate::runtime) struct HipDevice {
    library: &'static OpenedLibrary,
    ordinal: i32,
    pub(in crate::runtime) name: String,
    pub(in crate::runtime) target: TargetId,
    pub(in crate::runtime) memory: u64,
    pub(in crate::runtime) compute_units: u32,
    version: i32,
    modules: Mutex<Modules>,
    pool: Mutex<Pool>,
    lost: AtomicBool,
}

/// Executables that are loaded, by the address of what they share with their clones: an entry keeps it.
#[derive(Default)]
struct Modules {
    loaded: BTreeMap<usize, LoadedExecutable>,
    /// Launches so far: what each was used at last.
    clock: u64,
}

struct LoadedExecutable {
    /// HIP reads the object's bytes where they are (hipamd 6.4.3, `hipModuleLoadData`), so it has to stay.
    _executable: Executable,
    module: LoadedHandle,
    function: LoadedHandle,
    used: u64,
}

/// A pointer of HIP, which any thread may use (HIP documentation, "Multithreading").
#[derive(Copy, Clone)]
struct LoadedHandle(HipHandle);

// SAFETY: it is a number to us; HIP's functions that take it lock what they need.
unsafe impl Send for LoadedHandle {}

/// Freed memory by its size, and the bytes of all of it.
#[derive(Default)]
struct Pool {
    free: BTreeMap<u64, Vec<u64>>,
    bytes: u64,
}

/// The devices that HIP finds and that code can be made for, in HIP's order; a device of another kind is left
/// out.
///
/// # Errors
/// There is no HIP, or it finds no GPU.
pub(in crate::runtime) fn devices() -> Result<Vec<HipDevice>, Diagnostic> {
    let library = library()?;
    let api = &library.api;
    let found = api.init().and_then(|()| api.device_count());
    let count = found.map_err(|failure| {
        let help = format!("{} was opened", library.path.display());
        Diagnostic::from(failure).note(help, None)
    })?;
    let mut devices = Vec::new();
    for ordinal in 0..count {
        if let Some(device) = HipDevice::new(library, ordinal)? {
            devices.push(device);
        }
    }
    if devices.is_empty() {
        return Err(Diagnostic::new(
            Kind::Unsupported,
            format!("HIP finds {count} devices, none of a known chip"),
        )
        .help("known are gfx906, gfx908, gfx90a, gfx942 and gfx950"));
    }
    Ok(devices)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A poisoned lock guards tables that are whole after each change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HipDevice {
    fn new(library: &'static OpenedLibrary, ordinal: i32) -> Result<Option<HipDevice>, HipFailure> {
        let api = &library.api;
        let Ok(target) = architecture::target_id(api, ordinal) else { return Ok(None) };
        Ok(Some(HipDevice {
            library,
            ordinal,
            name: api.name(ordinal)?,
            target,
            memory: api.total_memory(ordinal)?,
            compute_units: api.attribute(ordinal, COMPUTE_UNITS)?.unsigned_abs(),
            version: api.version()?,
            modules: Mutex::default(),
            pool: Mutex::default(),
            lost: AtomicBool::new(false),
        }))
    }

    /// HIP's number of it.
    pub(in crate::runtime) fn ordinal(&self) -> i32 {
        self.ordinal
    }

    /// One line for people.
    pub(in crate::runtime) fn describe(&self) -> String {
        let version = self.version;
        let (major, minor, patch) = (version / 10_000_000, version / 100_000 % 100, version % 100_000);
        format!("{} ({}, hip:{}, HIP {major}.{minor}.{patch})", self.name, self.target, self.ordinal)
    }

    /// Calls HIP for this device: which one a thread means is the thread's own setting, which stays as it is.
    fn with<R>(&self, call: impl FnOnce(&Api) -> Result<R, HipFailure>) -> Result<R, Diagnostic> {
        if self.lost.load(Relaxed) {
            let text = format!("{} is lost: a kernel has failed on it", self.name);
            return Err(Diagnostic::new(Kind::Unsupported, text)
                .help("start the process anew; check mode on the simulator finds what the kernel did"));
        }
        self.library.api.on_device(self.ordinal, call).map_err(|failure| {
            if failure.loses_the_device() {
                self.lost.store(true, Relaxed);
            }
            failure.into()
        })
    }

    /// Memory, of freed buffers if one of that size is there.
    pub(in crate::runtime) fn allocate(&self, bytes: u64) -> Result<u64, Diagnostic> {
        // An address is needed even where there is nothing.
        let bytes = bytes.max(1);
        let pooled = {
            let mut pool = lock(&self.pool);
            let address = pool.free.get_mut(&bytes).and_then(Vec::pop);
            if address.is_some() {
                pool.bytes -= bytes;
            }
            address
        };
        if let Some(address) = pooled {
            return Ok(address);
        }
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.with(|api| api.allocate(size)).or_else(|first| {
            // What is kept may be what is missing.
            if lock(&self.pool).free.is_empty() {
                return Err(first);
            }
            self.trim()?;
            self.with(|api| api.allocate(size))
        })
    }

    /// Gives memory back. Whoever has launched kernels with it has waited for them.
    pub(in crate::runtime) fn free(&self, address: u64, bytes: u64) {
        let bytes = bytes.max(1);
        let mut pool = lock(&self.pool);
        if pool.bytes + bytes <= MOST_POOLED {
            pool.bytes += bytes;
            pool.free.entry(bytes).or_default().push(address);
            return;
        }
        drop(pool);
        // A failure here cannot be handled, and the memory is not used again either way.
        let _ = self.with(|api| api.free(address));
    }

    /// Gives all memory of freed buffers back to HIP.
    pub(in crate::runtime) fn trim(&self) -> Result<(), Diagnostic> {
        let pool = std::mem::take(&mut *lock(&self.pool));
        self.with(|api| pool.free.into_values().flatten().try_for_each(|address| api.free(address)))
    }

    pub(in crate::runtime) fn free_memory(&self) -> Result<u64, Diagnostic> {
        self.with(Api::free_memory)
    }

    pub(in crate::runtime) fn write(&self, address: u64, data: &[u8]) -> Result<(), Diagnostic> {
        if data.is_empty() {
            return Ok(());
        }
        self.with(|api| api.write(address, data))
    }

    pub(in crate::runtime) fn read(&self, address: u64, data: &mut [u8]) -> Result<(), Diagnostic> {
        if data.is_empty() {
            return Ok(());
        }
        self.with(|api| api.read(address, data))
    }

    /// Loads an executable if it is not loaded yet, and enqueues it on a stream, or on the default one.
    pub(in crate::runtime) fn enqueue(
        &self,
        executable: &Executable,
        grid: [u32; 3],
        arguments: &mut [u8],
        stream: Option<&HipStream>,
    ) -> Result<(), Diagnostic> {
        let function = self.function(executable)?;
        let stream = stream.map_or(null_mut(), |stream| stream.handle.0);
        let shape = [grid, executable.block()];
        self.with(|api| api.launch(function.0, executable.name(), shape, stream, arguments))
    }

    /// Waits for everything.
    pub(in crate::runtime) fn synchronize(&self) -> Result<(), Diagnostic> {
        self.with(Api::synchronize)
    }

    fn function(&self, executable: &Executable) -> Result<LoadedHandle, Diagnostic> {
        let mut modules = lock(&self.modules);
        modules.clock += 1;
        let (clock, key) = (modules.clock, executable.identity());
        if let Some(loaded) = modules.loaded.get_mut(&key) {
            loaded.used = clock;
            return Ok(loaded.function);
        }
        if modules.loaded.len() >= MOST_MODULES {
            self.unload_oldest(&mut modules)?;
        }
        let name = executable.name();
        let (module, function) = self.with(|api| {
            let module = api.load(executable.object(), name)?;
            let function = api.function(module, name).inspect_err(|_| drop(api.unload(module)))?;
            Ok((LoadedHandle(module), LoadedHandle(function)))
        })?;
        let entry = LoadedExecutable { _executable: executable.clone(), module, function, used: clock };
        modules.loaded.insert(key, entry);
        Ok(function)
    }

    /// Makes room: the half that was not used for longest goes, after everything that may run has ended.
    fn unload_oldest(&self, modules: &mut Modules) -> Result<(), Diagnostic> {
        let mut used: Vec<u64> = modules.loaded.values().map(|loaded| loaded.used).collect();
        used.sort_unstable();
        let middle = used[used.len() / 2];
        self.with(|api| {
            api.synchronize()?;
            let (old, kept) = std::mem::take(&mut modules.loaded)
                .into_iter()
                .partition::<BTreeMap<_, _>, _>(|(_, loaded)| loaded.used < middle);
            modules.loaded = kept;
            old.into_values().try_for_each(|loaded| api.unload(loaded.module.0))
        })
    }
}

impl Drop for HipDevice {
    fn drop(&mut self) {
        if self.lost.load(Relaxed) {
            return;
        }
        // Failures here cannot be handled, and nothing of it is used again.
        let _ = self.library.api.on_device(self.ordinal, |api| {
            api.synchronize()?;
            for loaded in std::mem::take(&mut lock(&self.modules).loaded).into_values() {
                let _ = api.unload(loaded.module.0);
            }
            for address in std::mem::take(&mut *lock(&self.pool)).free.into_values().flatten() {
                let _ = api.free(address);
            }
            Ok(())
        });
    }
}

/// A stream of a device.
pub(in crate::runtime) struct HipStream {
    device: Arc<HipDevice>,
    handle: LoadedHandle,
    /// Somebody else's.
    borrowed: bool,
}

// SAFETY: HIP's streams may be used from several threads (HIP documentation, "Multithreading").
unsafe impl Sync for LoadedHandle {}

impl HipStream {
    pub(in crate::runtime) fn new(device: &Arc<HipDevice>) -> Result<HipStream, Diagnostic> {
        let handle = LoadedHandle(device.with(Api::make_stream)?);
        Ok(HipStream { device: device.clone(), handle, borrowed: false })
    }

    /// Somebody else's stream, which is left alone at the end.
    ///
    /// # Safety
    /// It is a stream of this device, and lives as long as what is returned.
    pub(in crate::runtime) unsafe fn borrowed(
        device: &Arc<HipDevice>,
        stream: *mut std::ffi::c_void,
    ) -> HipStream {
        HipStream { device: device.clone(), handle: LoadedHandle(stream), borrowed: true }
    }

    pub(in crate::runtime) fn synchronize(&self) -> Result<(), Diagnostic> {
        self.device.with(|api| api.finish_stream(self.handle.0))
    }

    pub(in crate::runtime) fn is_finished(&self) -> Result<bool, Diagnostic> {
        self.device.with(|api| api.is_finished(self.handle.0))
    }

    pub(in crate::runtime) fn wait(&self, event: &HipEvent) -> Result<(), Diagnostic> {
        self.device.with(|api| api.wait_on(self.handle.0, event.handle.0))
    }

    pub(in crate::runtime) fn record(&self) -> Result<HipEvent, Diagnostic> {
        let handle = LoadedHandle(self.device.with(Api::make_event)?);
        let event = HipEvent { device: self.device.clone(), handle };
        self.device.with(|api| api.record(event.handle.0, self.handle.0))?;
        Ok(event)
    }

    /// Copies pinned memory to the device.
    pub(in crate::runtime) fn write(
        &self,
        address: u64,
        from: &PinnedMemory,
        bytes: usize,
    ) -> Result<(), Diagnostic> {
        let direction = CopyDirection::HostToDevice;
        self.device.with(|api| api.copy_on(self.handle.0, address, from.address, bytes, direction))
    }

    /// Copies from the device to pinned memory.
    pub(in crate::runtime) fn read(
        &self,
        to: &PinnedMemory,
        address: u64,
        bytes: usize,
    ) -> Result<(), Diagnostic> {
        let direction = CopyDirection::DeviceToHost;
        self.device.with(|api| api.copy_on(self.handle.0, to.address, address, bytes, direction))
    }
}

impl Drop for HipStream {
    fn drop(&mut self) {
        if !self.borrowed {
            // A failure here cannot be handled.
            let _ =
                self.device.with(|api| api.finish_stream(self.handle.0).and(api.drop_stream(self.handle.0)));
        }
    }
}

/// A point in a stream.
pub(in crate::runtime) struct HipEvent {
    device: Arc<HipDevice>,
    handle: LoadedHandle,
}

impl HipEvent {
    pub(in crate::runtime) fn synchronize(&self) -> Result<(), Diagnostic> {
        self.device.with(|api| api.await_event(self.handle.0))
    }

    pub(in crate::runtime) fn has_happened(&self) -> Result<bool, Diagnostic> {
        self.device.with(|api| api.has_happened(self.handle.0))
    }

    /// Milliseconds from an earlier event; both are waited for.
    pub(in crate::runtime) fn milliseconds_since(&self, start: &HipEvent) -> Result<f64, Diagnostic> {
        self.device.with(|api| {
            api.await_event(start.handle.0)?;
            api.await_event(self.handle.0)?;
            api.elapsed(start.handle.0, self.handle.0).map(f64::from)
        })
    }
}

impl Drop for HipEvent {
    fn drop(&mut self) {
        // A failure here cannot be handled.
        let _ = self.device.with(|api| api.drop_event(self.handle.0));
    }
}

/// Memory of the host that the device reaches by itself.
pub(in crate::runtime) struct PinnedMemory {
    device: Arc<HipDevice>,
    address: u64,
    bytes: usize,
}

impl PinnedMemory {
    pub(in crate::runtime) fn new(device: &Arc<HipDevice>, bytes: usize) -> Result<PinnedMemory, Diagnostic> {
        let address = device.with(|api| api.allocate_pinned(bytes.max(1)))?;
        Ok(PinnedMemory { device: device.clone(), address, bytes })
    }

    /// Its bytes. No copy to it may be under way.
    pub(in crate::runtime) fn bytes(&self) -> &[u8] {
        // SAFETY: HIP gave that many bytes, which are the owner's until they are freed; who has enqueued a
        // copy to them waits before it calls this (`runtime/stream`).
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.bytes) }
    }

    /// The same, to be written. No copy from it may be under way.
    pub(in crate::runtime) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and there is no other reference.
        unsafe { std::slice::from_raw_parts_mut(self.address as *mut u8, self.bytes) }
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        // A failure here cannot be handled.
        let _ = self.device.with(|api| api.free_pinned(self.address));
    }
}
