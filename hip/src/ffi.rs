//! What crosses the C interface: pointers that functions read or write, and how a function is exported.

use std::ffi::{CStr, c_char};

use crate::error::{HipResult, invalid};

/// A pointer that a function writes its result to.
///
/// HIP's functions take pointers of their callers on trust, as C does: each is null or points to a value of
/// its type that the caller may write. That is the only assumption of this file, and what its `unsafe` rests
/// on.
#[derive(Copy, Clone)]
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    /// A place of our own.
    pub fn to(value: &mut T) -> Out<T> {
        Out(value)
    }

    /// The same place for a value of another type.
    pub fn cast<U>(self) -> Out<U> {
        Out(self.0.cast())
    }

    /// Whether the caller has no place.
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Writes the result.
    ///
    /// # Errors
    /// The pointer is null.
    pub fn put(self, value: T) -> HipResult {
        if self.0.is_null() {
            return Err(invalid("the pointer for the result is null"));
        }
        // SAFETY: it is not null, so it points to a `T` that may be written, see the type.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Writes it if the caller wants to know.
    pub fn put_if_wanted(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: as in `put`.
            unsafe { self.0.write_unaligned(value) };
        }
    }

    /// Writes values side by side.
    ///
    /// # Errors
    /// The pointer is null.
    pub fn put_all(self, values: &[T]) -> HipResult
    where
        T: Copy,
    {
        if self.0.is_null() {
            return Err(invalid("the pointer for the result is null"));
        }
        // SAFETY: the caller has room for as many, as the function that it called says.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), self.0, values.len()) };
        Ok(())
    }
}

/// A pointer that a function reads, on the same terms as [`Out`].
#[derive(Copy, Clone)]
#[repr(transparent)]
pub struct In<T>(*const T);

impl<T: Copy> In<T> {
    /// Nothing.
    pub fn null() -> In<T> {
        In(std::ptr::null())
    }

    /// The same place, where a value of another type is.
    pub fn cast<U>(self) -> In<U> {
        In(self.0.cast())
    }

    /// Where values of ours are.
    pub fn to(values: &[T]) -> In<T> {
        In(values.as_ptr())
    }

    /// What it points to; nothing if it is null.
    pub fn get(self) -> Option<T> {
        // SAFETY: it is not null, so it points to a `T` that may be read, see the type.
        (!self.0.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }

    /// What it points to.
    ///
    /// # Errors
    /// It is null.
    pub fn value(self) -> HipResult<T> {
        self.get().ok_or_else(|| invalid("a pointer is null"))
    }

    /// The pointer to the value that lies `count` values further on.
    pub fn after(self, count: usize) -> In<T> {
        In(self.0.wrapping_add(count))
    }

    /// As many values, side by side.
    ///
    /// # Errors
    /// There are some, and it is null.
    pub fn values(self, count: usize) -> HipResult<Vec<T>> {
        (0..count).map(|at| if self.0.is_null() { self.value() } else { self.after(at).value() }).collect()
    }

    /// Its address.
    pub fn address(self) -> u64 {
        self.0 as u64
    }
}

/// A pointer to a value that a function reads and replaces, on the same terms.
#[derive(Copy, Clone)]
#[repr(transparent)]
pub struct InOut<T>(*mut T);

impl<T: Copy> InOut<T> {
    /// What it points to.
    ///
    /// # Errors
    /// It is null.
    pub fn value(self) -> HipResult<T> {
        In(self.0.cast_const()).value()
    }

    /// Writes another value.
    ///
    /// # Errors
    /// The pointer is null.
    pub fn put(self, value: T) -> HipResult {
        Out(self.0).put(value)
    }
}

/// A C string of the caller.
#[derive(Copy, Clone)]
#[repr(transparent)]
pub struct Text(*const c_char);

impl Text {
    /// The text.
    ///
    /// # Errors
    /// It is null or not UTF-8.
    pub fn get(&self) -> HipResult<&str> {
        if self.0.is_null() {
            return Err(invalid("a name is null"));
        }
        // SAFETY: the caller passes a string that ends with a zero and stays during the call.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map_err(|_| invalid("a name is not UTF-8"))
    }
}

/// Three sizes, as HIP passes them: `dim3`.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Dim3 {
    pub x: u32,
    pub y: u32,
    pub z: u32,
}

impl Dim3 {
    /// The sizes in their order.
    pub fn sizes(self) -> [u32; 3] {
        [self.x, self.y, self.z]
    }
}

/// The bytes of the host from an address on.
///
/// # Safety
/// They are mapped and may be read, and nobody writes them while the slice is used.
pub unsafe fn host_bytes<'a>(address: u64, bytes: usize) -> &'a [u8] {
    match bytes {
        0 => &[],
        // SAFETY: the caller vouches for it.
        _ => unsafe { std::slice::from_raw_parts(address as *const u8, bytes) },
    }
}

/// Copies bytes into memory of the host.
///
/// # Safety
/// The place is mapped and may be written, and holds no value of Rust that is in use.
pub unsafe fn write_host(address: u64, data: &[u8]) {
    // SAFETY: the caller vouches for the place; `data` is a slice of ours.
    unsafe { std::ptr::copy(data.as_ptr(), address as *mut u8, data.len()) };
}

/// Exports functions of HIP that answer with an error code: the body is a [`HipResult`]. A function with a
/// second name, that of its form for per-thread default streams, does the same under both: nothing is left in
/// any stream when a call returns.
macro_rules! exports {
    ($($(#[$attribute:meta])* fn $name:ident $arguments:tt $(also $other:ident)? $body:block)*) => {$(
        $crate::ffi::export! { $(#[$attribute])* $name $arguments $body }
        $($crate::ffi::export! { $other $arguments $body })?
    )*};
}

/// Exports one name.
macro_rules! export {
    ($(#[$attribute:meta])* $name:ident ($($argument:ident: $ty:ty),* $(,)?) $body:block) => {
        #[doc = concat!("`", stringify!($name), "` of HIP.")]
        $(#[$attribute])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($argument: $ty),*) -> std::ffi::c_int {
            $crate::error::answer(stringify!($name), move || $body)
        }
    };
}

pub(crate) use export;
pub(crate) use exports;
