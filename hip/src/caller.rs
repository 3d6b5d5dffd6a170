//! Where the program calls from, for what is said of a call later.

use std::ffi::{CStr, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The most calls between ours and the program's.
const FRAMES: usize = 32;

/// The file and the address in it that called into this library, as `addr2line` takes them; with the
/// function, if its name can be found. Nothing if it is not known.
pub(crate) fn caller() -> Option<String> {
    let mut frames = [std::ptr::null_mut::<c_void>(); FRAMES];
    // SAFETY: there is room for as many addresses as are asked for.
    let count = unsafe { libc::backtrace(frames.as_mut_ptr(), FRAMES as libc::c_int) };
    let frames = &frames[..usize::try_from(count).unwrap_or(0).min(FRAMES)];
    let ours = object(caller as *const c_void)?.dli_fbase;
    let outside = frames.iter().filter_map(|&frame| Some((frame, object(frame)?)));
    let (frame, info) = outside
        .skip_while(|(_, info)| info.dli_fbase != ours)
        .find(|(_, info)| info.dli_fbase != ours && !info.dli_fname.is_null())?;
    // SAFETY: the loader's name of a file is a string, which stays as long as the file is loaded.
    let file = unsafe { CStr::from_ptr(info.dli_fname) };
    let file = Path::new(OsStr::from_bytes(file.to_bytes())).file_name()?.to_string_lossy().into_owned();
    // What a frame has is the address after the call.
    let offset = (frame as u64).wrapping_sub(info.dli_fbase as u64).wrapping_sub(1);
    let function = match info.dli_sname.is_null() {
        true => String::new(),
        // SAFETY: likewise, of a symbol.
        false => format!(" in {}", unsafe { CStr::from_ptr(info.dli_sname) }.to_string_lossy()),
    };
    Some(format!("{file}+{offset:#x}{function}"))
}

/// What the loader knows of an address.
fn object(address: *const c_void) -> Option<libc::Dl_info> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: the call only reads the loader's tables, and fills the structure in if it answers that it has.
    (unsafe { libc::dladdr(address, info.as_mut_ptr()) } != 0).then(|| unsafe { info.assume_init() })
}
