//! Contexts. There is one device, whose primary context is current unless a thread has pushed another one;
//! all of them have the same memory and modules, as in AMD's library.

use std::cell::RefCell;
use std::ffi::{c_int, c_uint};

use crate::error::{Code, HipError, HipResult, invalid};
use crate::ffi::{Out, exports};
use crate::handles::Handle;
use crate::runtime::runtime;

/// A context that a program has made.
pub(crate) struct Context {
    flags: c_uint,
}

/// The handle of the primary context: below those of contexts that are made.
const PRIMARY: Handle = 0x10;

thread_local! {
    /// The contexts that this thread has pushed.
    static STACK: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
}

/// An error unless a context is there.
fn check(context: Handle) -> HipResult {
    if context == PRIMARY {
        return Ok(());
    }
    let found = runtime()?.contexts.get(context);
    found.map(drop).map_err(|error| HipError::new(Code::InvalidContext, error.reason))
}

fn check_device(device: c_int) -> HipResult {
    match device {
        0 => Ok(()),
        _ => Err(HipError::new(Code::InvalidDevice, format!("there is device 0 and no device {device}"))),
    }
}

/// The context of this thread.
fn current() -> Handle {
    STACK.with_borrow(|stack| stack.last().copied().unwrap_or(PRIMARY))
}

fn flags(context: Handle) -> HipResult<c_uint> {
    match context {
        PRIMARY => Ok(0),
        _ => Ok(runtime()?.contexts.get(context)?.flags),
    }
}

exports! {
    fn hipCtxCreate(context: Out<Handle>, flags: c_uint, device: c_int) {
        check_device(device)?;
        let made = runtime()?.contexts.add(Context { flags })?;
        STACK.with_borrow_mut(|stack| stack.push(made));
        context.put(made)
    }
    fn hipCtxDestroy(context: Handle) {
        if context == PRIMARY || context == 0 {
            return Err(invalid("it is no context that was made"));
        }
        check(context)?;
        runtime()?.contexts.remove(context)?;
        STACK.with_borrow_mut(|stack| stack.retain(|&other| other != context));
        Ok(())
    }
    fn hipCtxPushCurrent(context: Handle) {
        check(context)?;
        STACK.with_borrow_mut(|stack| stack.push(context));
        Ok(())
    }
    fn hipCtxPopCurrent(context: Out<Handle>) {
        let popped = STACK.with_borrow_mut(Vec::pop);
        let popped = popped.ok_or_else(|| HipError::new(Code::InvalidContext, "no context was pushed"))?;
        context.put_if_wanted(popped);
        Ok(())
    }
    fn hipCtxSetCurrent(context: Handle) {
        if context != 0 {
            check(context)?;
        }
        STACK.with_borrow_mut(|stack| {
            stack.pop();
            stack.extend((context != 0).then_some(context));
        });
        Ok(())
    }
    fn hipCtxGetCurrent(context: Out<Handle>) {
        context.put(current())
    }
    fn hipCtxGetDevice(device: Out<c_int>) {
        runtime()?;
        device.put(0)
    }
    fn hipCtxGetFlags(out: Out<c_uint>) {
        out.put(flags(current())?)
    }
    // What AMD's library answers, whatever the context.
    fn hipCtxGetApiVersion(context: Handle, version: Out<c_int>) {
        check(context)?;
        version.put(4)
    }
    fn hipCtxSynchronize() {
        crate::capture::check_allowed()?;
        runtime()?.host_waits();
        runtime()?.check_for_fault()
    }
    fn hipCtxGetCacheConfig(config: Out<c_int>) {
        config.put(0)
    }
    fn hipCtxSetCacheConfig(_config: c_int) {
        Ok(())
    }
    // Banks of 4 bytes (`hipSharedMemBankSizeFourByte`), as for devices.
    fn hipCtxGetSharedMemConfig(config: Out<c_int>) {
        config.put(1)
    }
    fn hipCtxSetSharedMemConfig(_config: c_int) {
        Ok(())
    }
    fn hipCtxEnablePeerAccess(context: Handle, _flags: c_uint) {
        check(context)?;
        Err(HipError::new(Code::InvalidDevice, "a device is no peer of itself"))
    }
    fn hipCtxDisablePeerAccess(context: Handle) {
        check(context)?;
        Err(HipError::new(Code::PeerAccessNotEnabled, "a device is no peer of itself"))
    }
    fn hipDevicePrimaryCtxRetain(context: Out<Handle>, device: c_int) {
        check_device(device)?;
        context.put(PRIMARY)
    }
    fn hipDevicePrimaryCtxRelease(device: c_int) {
        check_device(device)
    }
    fn hipDevicePrimaryCtxReset(device: c_int) {
        check_device(device)?;
        runtime()?.forget_fault();
        Ok(())
    }
    fn hipDevicePrimaryCtxGetState(device: c_int, flags: Out<c_uint>, active: Out<c_int>) {
        check_device(device)?;
        flags.put_if_wanted(0);
        active.put_if_wanted((current() == PRIMARY).into());
        Ok(())
    }
    fn hipDevicePrimaryCtxSetFlags(device: c_int, _flags: c_uint) {
        check_device(device)?;
        Err(HipError::new(Code::ContextAlreadyInUse, "the primary context is in use"))
    }
}
