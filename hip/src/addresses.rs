//! Where functions of this library are, for programs that ask for them by name.

use std::ffi::c_int;

use crate::error::{Code, HipError, HipResult};
use crate::ffi::{Out, Text, exports};

/// Makes a table of all functions of `symbols.txt`, in rising order.
macro_rules! addresses {
    ($($name:ident)*) => {
        unsafe extern "C" {
            $(safe fn $name();)*
        }

        static ALL: &[(&str, extern "C" fn())] = &[$((stringify!($name), $name),)*];
    };
}

use addresses;

// What is declared here without arguments is only named, never called.
#[allow(clashing_extern_declarations)]
mod table {
    include!(concat!(env!("OUT_DIR"), "/addresses.rs"));

    /// The address of a function.
    pub(super) fn find(name: &str) -> Option<u64> {
        let index = ALL.binary_search_by_key(&name, |entry| entry.0).ok()?;
        Some(ALL[index].1 as usize as u64)
    }
}

/// Functions that headers of HIP 6 call by another name.
const RENAMED: [&str; 2] = ["hipGetDeviceProperties", "hipChooseDevice"];
/// Since which version they do.
const RENAMED_SINCE: c_int = 600;
/// `HIP_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`.
const PER_THREAD: u64 = 2;
/// `hipDriverProcAddressQueryResult`.
const FOUND: c_int = 0;
const NOT_FOUND: c_int = 1;

/// The function that a program of a version of HIP means.
fn find(name: &str, version: c_int, flags: u64) -> Option<u64> {
    let own_stream = if flags & PER_THREAD != 0 { table::find(&format!("{name}_spt")) } else { None };
    let renamed = match RENAMED.contains(&name) && version >= RENAMED_SINCE {
        true => table::find(&format!("{name}R0600")),
        false => None,
    };
    own_stream.or(renamed).or_else(|| table::find(name))
}

fn put(name: &str, address: Out<u64>, found: Option<u64>) -> HipResult {
    address.put(found.unwrap_or(0))?;
    match found {
        Some(_) => Ok(()),
        None => Err(HipError::new(Code::InvalidValue, format!("HIP has no function `{name}`"))),
    }
}

exports! {
    fn hipGetProcAddress(name: Text, address: Out<u64>, version: c_int, flags: u64, status: Out<c_int>) {
        let name = name.get()?;
        let found = find(name, version, flags);
        status.put_if_wanted(if found.is_some() { FOUND } else { NOT_FOUND });
        put(name, address, found)
    }
}
