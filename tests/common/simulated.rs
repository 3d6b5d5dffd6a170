//! A simulated device with a code object loaded, and arguments as host slices.

use groundswell::simulator::{LaunchConfig, LaunchStats, Module, SimError, Simulator};
use groundswell::target::Target;

/// The device and the object.
pub struct Device {
    pub simulator: Simulator,
    pub module: Module,
}

/// A kernel argument.
#[derive(Clone, Copy, Debug)]
pub enum Arg {
    Pointer(u64),
    Uint(u32),
    Float(f32),
}

/// A value that buffers hold.
pub trait Plain: Copy {
    fn put(self, bytes: &mut Vec<u8>);
    fn take(bytes: &[u8]) -> Self;
}

macro_rules! plain {
    ($($type:ty)*) => {
        $(impl Plain for $type {
            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }

            fn take(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("that many bytes"))
            }
        })*
    };
}

plain!(u8 u16 i16 u32 i32 u64 f32 f64 half::f16 half::bf16);

impl Device {
    /// A fresh device of that chip with this object.
    pub fn new(target: Target, object: &[u8]) -> Result<Device, SimError> {
        let mut simulator = Simulator::new(target);
        let module = simulator.load(object)?;
        Ok(Device { simulator, module })
    }

    /// A buffer with this in it.
    pub fn upload<T: Plain>(&mut self, data: &[T]) -> Arg {
        let mut bytes = Vec::new();
        data.iter().for_each(|&value| value.put(&mut bytes));
        let address = self.simulator.alloc(bytes.len() as u64).expect("small");
        self.simulator.write(address, &bytes).expect("just allocated");
        Arg::Pointer(address)
    }

    /// The first `count` values of a buffer.
    pub fn download<T: Plain>(&self, arg: Arg, count: usize) -> Vec<T> {
        let Arg::Pointer(address) = arg else { panic!("not a buffer") };
        let bytes = self.simulator.read(address, count * size_of::<T>()).expect("the buffer is that large");
        bytes.chunks_exact(size_of::<T>()).map(T::take).collect()
    }

    /// Launches with naturally aligned arguments.
    pub fn launch(&self, kernel: &str, config: LaunchConfig, args: &[Arg]) -> Result<LaunchStats, SimError> {
        let mut kernarg = Vec::new();
        for arg in args {
            match arg {
                Arg::Pointer(address) => {
                    kernarg.resize(kernarg.len().next_multiple_of(8), 0);
                    address.put(&mut kernarg);
                }
                Arg::Uint(value) => value.put(&mut kernarg),
                Arg::Float(value) => value.put(&mut kernarg),
            }
        }
        self.simulator.launch(&self.module, kernel, config, &kernarg)
    }
}
