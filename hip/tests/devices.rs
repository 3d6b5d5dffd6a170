//! The suite that every device passes (`tests/common/device_suite.rs` of the compiler), through HIP: our
//! libraries of HIP 5, 6 and 7 are opened as AMD's would be, and every step comes to what it comes to on the
//! simulator. AMD's own library, on a machine without a GPU, is opened and reports that there is none.

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::process::{Command, Output};

use groundswell::kernels::Gemm;
use groundswell::prelude::*;
use groundswell_testing::{device_suite, skipped};
use libloading::Library;

const LIBRARIES: [&str; 3] =
    [env!("CARGO_BIN_EXE_amdhip64-5"), env!("CARGO_BIN_EXE_amdhip64-6"), env!("CARGO_BIN_EXE_amdhip64-7")];

/// The variable that says where the library is, and the one that chooses the chip behind it.
const LIBRARY: &str = "GROUNDSWELL_HIP_LIBRARY";
const TARGET: &str = "GROUNDSWELL_HIP_TARGET";

/// Runs an ignored test of this binary in a process of its own, in which HIP is `library`.
fn in_process(test: &str, library: &str, target: &str) -> Output {
    Command::new(std::env::current_exe().expect("this is a program"))
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(LIBRARY, library)
        .env(TARGET, target)
        .output()
        .expect("it runs here")
}

#[track_caller]
fn passes(test: &str, library: &str, target: &str) {
    let output = in_process(test, library, target);
    let [text, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success() && text.contains("1 passed"), "{library} of {target}\n{text}\n{errors}");
}

#[test]
fn hip_passes_the_suite_that_the_simulator_passes() {
    for library in LIBRARIES {
        for target in ["gfx90a", "gfx942"] {
            passes("suite_through_hip", library, target);
        }
    }
}

#[test]
#[ignore = "run by others, in a process of its own"]
fn suite_through_hip() {
    let gpus = Device::gpus().expect("the library has a device");
    let target = std::env::var(TARGET).expect("it is set");
    assert_eq!(gpus.len(), 1);
    assert!(gpus[0].name.contains(&target) && gpus[0].compute_units > 100 && gpus[0].memory > 1 << 30);
    let device = Device::open().expect("there is one");
    assert!(!device.is_simulator() && device.why() == "it is the first GPU", "{}", device.why());
    assert_eq!((device.target().name, gpus[0].id.as_str()), (target.as_str(), "hip:0"));
    let on_hip = device_suite::transcript(&device);
    let simulated = device_suite::transcript(&Device::simulator(device.target()));
    assert_eq!(on_hip, simulated);
    assert!(on_hip.iter().any(|line| line == "thread 7: good"), "{on_hip:#?}");
    // Nothing that belongs to the device outlives it, in whatever order it is dropped.
    let stream = device.stream().expect("there is room");
    let buffer = device.upload(&[1i32; 64]).expect("there is room");
    let event = stream.record().expect("there is room");
    drop(device);
    assert_eq!(buffer.download::<i32>().expect("it is i32"), [1; 64]);
    drop(buffer);
    drop(stream);
    event.synchronize().expect("it has happened");
}

/// The functions of HSA's runtime that ask what device there is.
#[test]
fn hsa_names_the_chip_of_the_device() {
    for target in ["gfx90a", "gfx942:xnack-", "gfx950"] {
        passes("chip_by_hsa", LIBRARIES[2], target);
    }
}

#[test]
#[ignore = "run by others, in a process of its own"]
fn chip_by_hsa() {
    type Visitor = extern "C" fn(u64, *mut c_void) -> c_int;
    type Iterate = extern "C" fn(Visitor, *mut c_void) -> c_int;
    type IterateOf = extern "C" fn(u64, Visitor, *mut c_void) -> c_int;
    type Ask = extern "C" fn(u64, u32, *mut c_void) -> c_int;
    extern "C" fn keep(handle: u64, data: *mut c_void) -> c_int {
        // SAFETY: it is the list that was passed with this function.
        unsafe { (*data.cast::<Vec<u64>>()).push(handle) };
        1
    }

    // SAFETY: nothing runs when it is opened, and its functions have these types (hsa.h).
    let library = unsafe { Library::new(env!("CARGO_BIN_EXE_hsa-runtime64")) }.expect("it is a library");
    macro_rules! function {
        ($name:literal as $ty:ty) => {
            // SAFETY: see above.
            *unsafe { library.get::<$ty>($name) }.expect("it has it")
        };
    }
    let init = function!(b"hsa_init\0" as extern "C" fn() -> c_int);
    let shut_down = function!(b"hsa_shut_down\0" as extern "C" fn() -> c_int);
    let iterate = function!(b"hsa_iterate_agents\0" as Iterate);
    let iterate_isas = function!(b"hsa_agent_iterate_isas\0" as IterateOf);
    let ask_agent = function!(b"hsa_agent_get_info\0" as Ask);
    let ask_isa = function!(b"hsa_isa_get_info_alt\0" as Ask);

    const NOT_INITIALIZED: c_int = 0x100b;
    let mut found: Vec<u64> = Vec::new();
    let list = (&raw mut found).cast::<c_void>();
    assert_eq!([iterate(keep, list), shut_down()], [NOT_INITIALIZED; 2]);
    assert_eq!((init(), init(), shut_down()), (0, 0, 0));
    // What a visitor answers ends it and is passed on.
    assert_eq!(iterate(keep, list), 1);
    let agent = found[0];
    assert_eq!(iterate_isas(agent, keep, list), 1);
    assert_eq!(iterate_isas(agent + 1, keep, list), 0x1004);
    let isa = found[1];
    assert_eq!(found.len(), 2);

    let target = std::env::var(TARGET).expect("it is set");
    let (mut length, mut name) = (0u32, [1u8; 64]);
    assert_eq!(ask_isa(isa, 0, (&raw mut length).cast()), 0);
    assert_eq!(ask_isa(isa, 1, name.as_mut_ptr().cast()), 0);
    assert_eq!(name[..length as usize], *format!("amdgcn-amd-amdhsa--{target}\0").as_bytes());
    let mut device = 7u32;
    assert_eq!(ask_agent(agent, 17, (&raw mut device).cast()), 0);
    assert_eq!(ask_agent(agent, 0, name.as_mut_ptr().cast()), 0);
    assert_eq!((device, name[6]), (1, 0));
    assert!(target.starts_with(std::str::from_utf8(&name[..6]).expect("it is text")));
    const INVALID_ARGUMENT: c_int = 0x1001;
    let nowhere = std::ptr::null_mut();
    assert_eq!([ask_agent(agent, 9999, list), ask_agent(agent, 17, nowhere)], [INVALID_ARGUMENT; 2]);
    assert_eq!((ask_isa(isa + 1, 0, list), shut_down()), (0x100f, 0));
    assert_eq!(ask_agent(agent, 17, list), NOT_INITIALIZED);
}

/// Valgrind watches the suite through HIP: every access to memory, and what is lost at the end.
#[test]
fn the_runtime_neither_leaks_nor_touches_what_is_not_its_own() {
    skipped::begin();
    if Command::new("valgrind").arg("--version").output().is_err() {
        return skipped::note("valgrind");
    }
    let output = Command::new("valgrind")
        .args(["--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"])
        .args(["--error-exitcode=9", "--quiet"])
        .arg(std::env::current_exe().expect("this is a program"))
        .args(["--exact", "suite_through_hip", "--ignored", "--test-threads=1"])
        .env(LIBRARY, LIBRARIES[1])
        .env(TARGET, "gfx942")
        .output()
        .expect("it was found");
    let [text, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success() && text.contains("1 passed"), "{text}\n{errors}");
}

#[test]
fn a_kernel_that_fails_loses_the_device_and_not_the_process() {
    passes("kernel_that_fails", LIBRARIES[1], "gfx942");
}

#[test]
#[ignore = "run by others, in a process of its own"]
fn kernel_that_fails() {
    let device = Device::open().expect("there is one");
    // The last workgroup writes past the end: the size that the launch is told is not that of the buffer.
    let text = "kernel fill {\n  workgroup M, 64, 0\n  a = memory [M] global f32\n  %one = register [M] f32 1.0\n  \
                write %one, a\n}";
    let kernel = Kernel::parse(text, "fill.gsw").expect("it is one");
    let options = Options::new(device.target()).set(Symbol::new("M"), 4096);
    let fill = kernel.compile(&options).expect("it compiles");
    let mut one = 0f32;
    // SAFETY: wrong on purpose: the memory is no device memory, so the device reports the first access to it.
    let buffer =
        unsafe { device.buffer_from_raw((&raw mut one) as u64 & !3, 4 * 4096) }.expect("it is not looked at");
    let error = device.launch(&fill).buffer(&buffer).run().expect_err("the memory is not the device's");
    assert!(error.to_string().contains("hipErrorIllegalAddress"), "{error}");
    assert!(error.help.as_deref().is_some_and(|help| help.contains("check mode")), "{error}");
    let error = device.upload(&[1f32]).expect_err("the device is lost");
    assert!(error.to_string().contains("is lost"), "{error}");
    // The process goes on, elsewhere.
    assert!(Device::simulator(Target::GFX942).upload(&[1f32]).is_ok());
}

/// A library in front of ours that lets a thread choose among several devices.
const SEVERAL_DEVICES: &str = "
    static __thread int chosen = 1;
    int hipSetDevice(int device) { chosen = device; return 0; }
    int hipGetDevice(int *device) { *device = chosen; return 0; }
    int hipFuncSetAttribute(const void *function, int attribute, int value) { __builtin_trap(); }
";

#[test]
fn a_thread_keeps_its_device_and_its_last_error() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let [source, library] = ["devices.c", "libdevices.so"].map(|name| folder.join(name));
    std::fs::write(&source, SEVERAL_DEVICES).expect("the target directory can be written");
    // rustc links with it, so it is there.
    // The name that the library gives itself.
    let ours = folder.join("libamdhip64.so.7");
    let _ = std::fs::remove_file(&ours);
    std::os::unix::fs::symlink(LIBRARIES[2], &ours).expect("the target directory can be written");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-Wl,--no-as-needed,-rpath,$ORIGIN", "-o"]);
    let built = compiler.args([&library, &source, &ours]).status();
    assert!(built.expect("there is a C compiler").success());
    passes("device_and_error", library.to_str().expect("it is text"), "gfx942");
}

#[test]
#[ignore = "run by others, in a process of its own"]
fn device_and_error() {
    type Function<T> = unsafe extern "C" fn(T) -> i32;
    let path = std::env::var(LIBRARY).expect("it is set");
    // SAFETY: opening it runs its constructors, which do nothing but note its version.
    let hip = unsafe { libloading::Library::new(path) }.expect("it has just been built");
    // SAFETY: the types are those of HIP's header.
    let (device, last_error) = unsafe {
        let device = hip.get::<Function<*mut i32>>(b"hipGetDevice").expect("it has it");
        (device, hip.get::<unsafe extern "C" fn() -> i32>(b"hipGetLastError").expect("it has it"))
    };
    let state = || {
        let mut chosen = -1;
        // SAFETY: the number is a local variable.
        unsafe { (device(&mut chosen), chosen, last_error()) }
    };
    assert_eq!(state(), (0, 1, 0));
    let gpu = Device::open().expect("there is one");
    assert!(!gpu.is_simulator() && state() == (0, 1, 0), "{}", gpu.why());
    // More LDS than 32 KiB, of which HIP need not be told.
    let options = [("M", 128), ("N", 128), ("K", 128), ("BLOCK_M", 128), ("BLOCK_N", 128), ("BLOCK_K", 128)]
        .iter()
        .fold(Options::new(gpu.target()), |options, &(name, value)| options.set(Symbol::new(name), value));
    let gemm = Gemm::any_shape().kernel().and_then(|kernel| kernel.compile(&options)).expect("it fits");
    assert!(gemm.report().lds_bytes > 32 << 10, "{:?}", gemm.report());
    let side = gpu.upload(&vec![f16::ONE; 128 * 128]).expect("there is room");
    let product = gpu.upload(&vec![0f32; 128 * 128]).expect("there is room");
    gpu.launch(&gemm).buffer(&side).buffer(&side).buffer(&product).run().expect("it fits");
    assert_eq!(product.download::<f32>().expect("it is f32"), vec![128f32; 128 * 128]);
    assert_eq!(state(), (0, 1, 0));
    // What fails is told as a value, and forgotten by HIP.
    let lines = device_suite::transcript(&gpu);
    assert!(gpu.allocate(1 << 45).is_err());
    assert!(lines.iter().any(|line| !line.ends_with("good")) && state() == (0, 1, 0), "{lines:#?}");
}

#[test]
fn amd_s_library_without_a_gpu_is_opened_and_says_so() {
    skipped::begin();
    let library = "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5";
    if !Path::new(library).is_file() {
        return skipped::note("libamdhip64-5");
    }
    if Path::new("/dev/kfd").exists() {
        // There may be a GPU, which others test.
        return;
    }
    passes("no_gpu", library, "");
}

#[test]
#[ignore = "run by others, in a process of its own"]
fn no_gpu() {
    let error = Device::gpus().expect_err("there is none");
    let text = error.to_string();
    assert!(
        text.contains("hipErrorNoDevice (100)") || text.contains("hipErrorInvalidDevice (101)"),
        "{text}"
    );
    assert!(error.help.as_deref().is_some_and(|help| help.contains("/dev/kfd")), "{text}");
    let device = Device::open().expect("there is the simulator");
    assert!(device.is_simulator() && device.why().starts_with("no GPU: "), "{}", device.why());
    assert!(Device::named("hip").is_err());
}
