//! The functions of HIP that are used, a row each: looked up once, called through one place that turns a code
//! into a failure. Signatures: hip_runtime_api.h, the same in HIP 5, 6 and 7.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::null_mut;

use libloading::os::unix::Library;

use super::failure::HipFailure;

/// An opaque pointer of HIP: a stream, an event, a module, a function.
pub(super) type HipHandle = *mut c_void;

/// Declares the functions: `required` ones are in every version, `optional` ones are not.
macro_rules! functions {
    ($($need:ident $name:ident($($ty:ty),*);)*) => {
        /// The functions of an opened library.
        #[allow(non_snake_case)]
        pub(super) struct Api {
            $($name: functions!(@type $need $($ty),*),)*
            hipGetErrorName: unsafe extern "C" fn(i32) -> *const c_char,
        }

        impl Api {
            /// Looks all of them up.
            ///
            /// # Errors
            /// The name of a function that the library has not.
            pub(super) fn new(library: &Library) -> Result<Api, &'static str> {
                Ok(Api {
                    $($name: functions!(@look_up $need library $name $($ty),*),)*
                    hipGetErrorName: functions!(@find library hipGetErrorName,
                        unsafe extern "C" fn(i32) -> *const c_char).ok_or("hipGetErrorName")?,
                })
            }
        }
    };
    (@type required $($ty:ty),*) => { unsafe extern "C" fn($($ty),*) -> i32 };
    (@type optional $($ty:ty),*) => { Option<unsafe extern "C" fn($($ty),*) -> i32> };
    (@look_up required $library:ident $name:ident $($ty:ty),*) => {
        functions!(@find $library $name, unsafe extern "C" fn($($ty),*) -> i32).ok_or(stringify!($name))?
    };
    (@look_up optional $library:ident $name:ident $($ty:ty),*) => {
        functions!(@find $library $name, unsafe extern "C" fn($($ty),*) -> i32)
    };
    (@find $library:ident $name:ident, $ty:ty) => {
        // SAFETY: the type is that of HIP's header for the function of this name, and `library` never closes
        // it.
        unsafe { $library.get::<$ty>(concat!(stringify!($name), "\0").as_bytes()) }.ok().map(|symbol| *symbol)
    };
}

functions! {
    required hipInit(u32);
    required hipRuntimeGetVersion(*mut i32);
    required hipGetDeviceCount(*mut i32);
    required hipSetDevice(i32);
    required hipGetDevice(*mut i32);
    required hipGetLastError();
    required hipDeviceGetName(*mut c_char, i32, i32);
    required hipDeviceGetAttribute(*mut i32, i32, i32);
    required hipDeviceTotalMem(*mut usize, i32);
    required hipDeviceSynchronize();
    required hipMemGetInfo(*mut usize, *mut usize);
    required hipMalloc(*mut u64, usize);
    required hipFree(u64);
    required hipHostMalloc(*mut u64, usize, u32);
    required hipHostFree(u64);
    required hipMemcpy(u64, u64, usize, i32);
    required hipMemcpyAsync(u64, u64, usize, i32, HipHandle);
    required hipModuleLoadData(*mut HipHandle, *const c_void);
    required hipModuleUnload(HipHandle);
    required hipModuleGetFunction(*mut HipHandle, HipHandle, *const c_char);
    required hipModuleLaunchKernel(
        HipHandle, u32, u32, u32, u32, u32, u32, u32, HipHandle, *mut *mut c_void, *mut *mut c_void
    );
    required hipStreamCreateWithFlags(*mut HipHandle, u32);
    required hipStreamDestroy(HipHandle);
    required hipStreamSynchronize(HipHandle);
    required hipStreamQuery(HipHandle);
    required hipStreamWaitEvent(HipHandle, HipHandle, u32);
    required hipEventCreateWithFlags(*mut HipHandle, u32);
    required hipEventRecord(HipHandle, HipHandle);
    required hipEventSynchronize(HipHandle);
    required hipEventQuery(HipHandle);
    required hipEventElapsedTime(*mut f32, HipHandle, HipHandle);
    required hipEventDestroy(HipHandle);
    optional hipGetDevicePropertiesR0600(*mut u8, i32);
    optional hipGetDeviceProperties(*mut u8, i32);
}

/// The direction of a copy (`hipMemcpyKind`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(i32)]
pub(super) enum CopyDirection {
    HostToDevice = 1,
    DeviceToHost = 2,
}

/// `hipErrorNotReady`: an answer, not an error.
const NOT_READY: i32 = 600;
/// `hipStreamNonBlocking`: it does not wait for the default stream, nor the other way round.
const NON_BLOCKING: u32 = 1;

/// The size of the buffer for a structure of properties: more than any version has.
pub(super) const PROPERTIES: usize = 8192;

impl Api {
    /// Turns a code into a result. An answer that is not success is a value from here on and no longer HIP's
    /// last error, which would stay until somebody asks for it (HIP 7): the program's own checks find its own
    /// errors.
    fn judge(
        &self,
        code: i32,
        function: &'static str,
        asked: impl FnOnce() -> String,
    ) -> Result<(), HipFailure> {
        if code == 0 {
            return Ok(());
        }
        self.forget_error();
        // SAFETY: the function takes any number and returns a string that lives as long as the library, or
        // null.
        let name = unsafe { (self.hipGetErrorName)(code) };
        let name = match name.is_null() {
            true => "an unknown error".to_owned(),
            // SAFETY: it is not null, so it is such a string.
            false => unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned(),
        };
        Err(HipFailure { code, name, function, asked: asked() })
    }
}

/// Calls a function. The arguments have to be what HIP's documentation says of it, which the caller argues
/// for.
macro_rules! call {
    ($api:expr, $name:ident($($argument:expr),*), $asked:expr) => {
        // SAFETY: stated by each caller of the macro.
        $api.judge(unsafe { ($api.$name)($($argument),*) }, stringify!($name), || $asked.to_string())
    };
}

// The methods below may be called in any order with any values of these types. Pointers for results are those
// of local variables. Handles come from the methods that make them, and their owners (`device`) drop them
// once.
impl Api {
    pub(super) fn init(&self) -> Result<(), HipFailure> {
        call!(self, hipInit(0), "to start HIP")
    }

    pub(super) fn version(&self) -> Result<i32, HipFailure> {
        let mut version = 0;
        call!(self, hipRuntimeGetVersion(&mut version), "for the version").map(|()| version)
    }

    pub(super) fn device_count(&self) -> Result<i32, HipFailure> {
        let mut count = 0;
        call!(self, hipGetDeviceCount(&mut count), "how many devices there are").map(|()| count)
    }

    /// Calls HIP with `device` as the device of this thread, which is the caller's own again afterwards.
    pub(super) fn on_device<R>(
        &self,
        device: i32,
        call: impl FnOnce(&Api) -> Result<R, HipFailure>,
    ) -> Result<R, HipFailure> {
        let mut own = device;
        call!(self, hipGetDevice(&mut own), "for the device of this thread")?;
        if own == device {
            return call(self);
        }
        self.set_device(device)?;
        let result = call(self);
        // The caller has used it before; what the call answered says more than a failure here.
        self.set_device(own).and(result)
    }

    fn set_device(&self, device: i32) -> Result<(), HipFailure> {
        call!(self, hipSetDevice(device), format!("to use device {device}"))
    }

    fn forget_error(&self) {
        // SAFETY: it takes nothing. What it answers is known.
        let _ = unsafe { (self.hipGetLastError)() };
    }

    pub(super) fn name(&self, device: i32) -> Result<String, HipFailure> {
        let mut name = [0 as c_char; 256];
        let asked = format!("for the name of device {device}");
        // One byte is kept back, so that the text ends in any case.
        call!(self, hipDeviceGetName(name.as_mut_ptr(), name.len() as i32 - 1, device), asked)?;
        let text = name.iter().take_while(|&&c| c != 0).map(|&c| c as u8);
        Ok(String::from_utf8_lossy(&text.collect::<Vec<u8>>()).into_owned())
    }

    pub(super) fn attribute(&self, device: i32, attribute: i32) -> Result<i32, HipFailure> {
        let mut value = 0;
        let asked = format!("for attribute {attribute} of device {device}");
        call!(self, hipDeviceGetAttribute(&mut value, attribute, device), asked).map(|()| value)
    }

    pub(super) fn total_memory(&self, device: i32) -> Result<u64, HipFailure> {
        let mut bytes = 0;
        let asked = format!("for the memory of device {device}");
        call!(self, hipDeviceTotalMem(&mut bytes, device), asked).map(|()| bytes as u64)
    }

    pub(super) fn free_memory(&self) -> Result<u64, HipFailure> {
        let (mut free, mut total) = (0, 0);
        call!(self, hipMemGetInfo(&mut free, &mut total), "for the memory that is left").map(|()| free as u64)
    }

    /// The structure of properties in its new and in its old layout, as far as the library has them.
    pub(super) fn properties(&self, device: i32) -> [Option<Vec<u8>>; 2] {
        [self.hipGetDevicePropertiesR0600, self.hipGetDeviceProperties].map(|function| {
            let mut bytes = vec![0; PROPERTIES];
            // SAFETY: the function writes a structure of fewer bytes than there are.
            let code = unsafe { function?(bytes.as_mut_ptr(), device) };
            if code != 0 {
                self.forget_error();
                return None;
            }
            Some(bytes)
        })
    }

    pub(super) fn synchronize(&self) -> Result<(), HipFailure> {
        call!(self, hipDeviceSynchronize(), "to finish all work")
    }

    pub(super) fn allocate(&self, bytes: usize) -> Result<u64, HipFailure> {
        let mut address = 0;
        call!(self, hipMalloc(&mut address, bytes), format!("for {bytes} bytes of device memory"))
            .map(|()| address)
    }

    /// Frees what `allocate` gave.
    pub(super) fn free(&self, address: u64) -> Result<(), HipFailure> {
        call!(self, hipFree(address), "to free device memory")
    }

    pub(super) fn allocate_pinned(&self, bytes: usize) -> Result<u64, HipFailure> {
        let mut address = 0;
        call!(self, hipHostMalloc(&mut address, bytes, 0), format!("for {bytes} bytes of pinned memory"))
            .map(|()| address)
    }

    /// Frees what `allocate_pinned` gave.
    pub(super) fn free_pinned(&self, address: u64) -> Result<(), HipFailure> {
        call!(self, hipHostFree(address), "to free pinned memory")
    }

    /// Copies bytes to the device, and waits for it.
    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), HipFailure> {
        let direction = CopyDirection::HostToDevice as i32;
        let asked = format!("to copy {} bytes to the device", bytes.len());
        call!(self, hipMemcpy(address, bytes.as_ptr() as u64, bytes.len(), direction), asked)
    }

    /// Copies bytes from the device, and waits for it.
    pub(super) fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), HipFailure> {
        let direction = CopyDirection::DeviceToHost as i32;
        let asked = format!("to copy {} bytes from the device", bytes.len());
        call!(self, hipMemcpy(bytes.as_mut_ptr() as u64, address, bytes.len(), direction), asked)
    }

    /// Has a stream copy between memory of the device and pinned memory, which stays until the stream is
    /// through.
    pub(super) fn copy_on(
        &self,
        stream: HipHandle,
        to: u64,
        from: u64,
        bytes: usize,
        direction: CopyDirection,
    ) -> Result<(), HipFailure> {
        call!(
            self,
            hipMemcpyAsync(to, from, bytes, direction as i32, stream),
            format!("to copy {bytes} bytes")
        )
    }

    /// Loads an object, whose bytes have to stay as they are until the module is unloaded.
    pub(super) fn load(&self, object: &[u8], name: &str) -> Result<HipHandle, HipFailure> {
        let mut module = null_mut();
        let asked = format!("to load the object of `{name}`");
        call!(self, hipModuleLoadData(&mut module, object.as_ptr().cast()), asked).map(|()| module)
    }

    pub(super) fn unload(&self, module: HipHandle) -> Result<(), HipFailure> {
        call!(self, hipModuleUnload(module), "to unload an object")
    }

    pub(super) fn function(&self, module: HipHandle, name: &str) -> Result<HipHandle, HipFailure> {
        let mut function = null_mut();
        let text = CString::new(name).unwrap_or_default();
        let asked = format!("for kernel `{name}`");
        call!(self, hipModuleGetFunction(&mut function, module, text.as_ptr()), asked).map(|()| function)
    }

    /// Enqueues a kernel. HIP copies the arguments before it returns.
    pub(super) fn launch(
        &self,
        function: HipHandle,
        name: &str,
        [grid, block]: [[u32; 3]; 2],
        stream: HipHandle,
        arguments: &mut [u8],
    ) -> Result<(), HipFailure> {
        // `HIP_LAUNCH_PARAM_BUFFER_POINTER`, `_BUFFER_SIZE` and `_END`.
        const POINTER: usize = 1;
        const SIZE: usize = 2;
        const END: usize = 3;
        let mut bytes = arguments.len();
        let mut extra: [*mut c_void; 5] = [
            POINTER as *mut c_void,
            arguments.as_mut_ptr().cast(),
            SIZE as *mut c_void,
            (&raw mut bytes).cast(),
            END as *mut c_void,
        ];
        let extra = if arguments.is_empty() { null_mut() } else { extra.as_mut_ptr() };
        let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
        let asked = format!("to launch `{name}`, {gx} x {gy} x {gz} workgroups of {bx} x {by} x {bz}");
        call!(
            self,
            hipModuleLaunchKernel(function, gx, gy, gz, bx, by, bz, 0, stream, null_mut(), extra),
            asked
        )
    }

    pub(super) fn make_stream(&self) -> Result<HipHandle, HipFailure> {
        let mut stream = null_mut();
        call!(self, hipStreamCreateWithFlags(&mut stream, NON_BLOCKING), "for a stream").map(|()| stream)
    }

    pub(super) fn drop_stream(&self, stream: HipHandle) -> Result<(), HipFailure> {
        call!(self, hipStreamDestroy(stream), "to end a stream")
    }

    pub(super) fn finish_stream(&self, stream: HipHandle) -> Result<(), HipFailure> {
        call!(self, hipStreamSynchronize(stream), "to finish the work of a stream")
    }

    /// Whether a stream has nothing left to do.
    pub(super) fn is_finished(&self, stream: HipHandle) -> Result<bool, HipFailure> {
        ready(call!(self, hipStreamQuery(stream), "whether a stream is through"))
    }

    pub(super) fn wait_on(&self, stream: HipHandle, event: HipHandle) -> Result<(), HipFailure> {
        call!(self, hipStreamWaitEvent(stream, event, 0), "to have a stream wait for an event")
    }

    pub(super) fn make_event(&self) -> Result<HipHandle, HipFailure> {
        let mut event = null_mut();
        call!(self, hipEventCreateWithFlags(&mut event, 0), "for an event").map(|()| event)
    }

    pub(super) fn record(&self, event: HipHandle, stream: HipHandle) -> Result<(), HipFailure> {
        call!(self, hipEventRecord(event, stream), "to record an event")
    }

    pub(super) fn await_event(&self, event: HipHandle) -> Result<(), HipFailure> {
        call!(self, hipEventSynchronize(event), "to wait for an event")
    }

    pub(super) fn has_happened(&self, event: HipHandle) -> Result<bool, HipFailure> {
        ready(call!(self, hipEventQuery(event), "whether an event has happened"))
    }

    /// Milliseconds between two events that have happened.
    pub(super) fn elapsed(&self, start: HipHandle, stop: HipHandle) -> Result<f32, HipFailure> {
        let mut milliseconds = 0.0;
        call!(self, hipEventElapsedTime(&mut milliseconds, start, stop), "for the time between two events")
            .map(|()| milliseconds)
    }

    pub(super) fn drop_event(&self, event: HipHandle) -> Result<(), HipFailure> {
        call!(self, hipEventDestroy(event), "to drop an event")
    }
}

fn ready(result: Result<(), HipFailure>) -> Result<bool, HipFailure> {
    match result {
        Ok(()) => Ok(true),
        Err(failure) if failure.code == NOT_READY => Ok(false),
        Err(failure) => Err(failure),
    }
}
