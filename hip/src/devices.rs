//! What programs ask about devices, of which there is one, and settings that have no effect here.

use std::ffi::{c_char, c_int, c_uint};

use crate::error::{Code, HipError, HipResult, invalid};
use crate::ffi::{Out, Text, exports};
use crate::properties::DeviceFacts;
use crate::runtime::{runtime, version};

/// The bus address that the device says it has.
pub(crate) const BUS_ID: &str = "0000:00:00.0";

fn check(device: c_int) -> HipResult {
    match device {
        0 => Ok(()),
        _ => Err(HipError::new(Code::InvalidDevice, format!("there is device 0 and no device {device}"))),
    }
}

fn facts() -> HipResult<DeviceFacts> {
    let runtime = runtime()?;
    Ok(DeviceFacts::new(runtime.target, runtime.space.left().1))
}

/// Writes text that ends with a zero into a buffer of the caller.
fn put_text(buffer: Out<u8>, length: c_int, text: &str) -> HipResult {
    let room = usize::try_from(length).ok().and_then(|length| length.checked_sub(1));
    let room = room.ok_or_else(|| invalid("there is no room for the text"))?;
    let mut bytes: Vec<u8> = text.bytes().take(room).collect();
    bytes.push(0);
    buffer.put_all(&bytes)
}

fn synchronize() -> HipResult {
    crate::capture::check_allowed()?;
    runtime()?.host_waits();
    runtime()?.check_for_fault()
}

exports! {
    fn hipInit(flags: c_uint) {
        match flags {
            0 => runtime().map(drop),
            _ => Err(invalid("flags have to be 0")),
        }
    }
    fn hipRuntimeGetVersion(number: Out<c_int>) {
        number.put(version().number())
    }
    fn hipDriverGetVersion(number: Out<c_int>) {
        number.put(version().number())
    }
    fn hipGetDeviceCount(count: Out<c_int>) {
        runtime()?;
        count.put(1)
    }
    fn hipSetDevice(device: c_int) {
        runtime()?;
        check(device)
    }
    fn hipGetDevice(device: Out<c_int>) {
        runtime()?;
        device.put(0)
    }
    fn hipDeviceGet(device: Out<c_int>, number: c_int) {
        runtime()?;
        check(number)?;
        device.put(number)
    }
    fn hipDeviceGetName(name: Out<u8>, length: c_int, device: c_int) {
        check(device)?;
        put_text(name, length, &facts()?.name())
    }
    fn hipDeviceGetUuid(uuid: Out<[u8; 16]>, device: c_int) {
        check(device)?;
        uuid.put(*b"groundswell-sim0")
    }
    fn hipDeviceGetAttribute(value: Out<c_int>, attribute: c_int, device: c_int) {
        check(device)?;
        value.put(facts()?.attribute(attribute)?)
    }
    fn hipDeviceComputeCapability(major: Out<c_int>, minor: Out<c_int>, device: c_int) {
        check(device)?;
        let facts = facts()?;
        major.put(facts.attribute(23)?)?;
        minor.put(facts.attribute(61)?)
    }
    fn hipDeviceTotalMem(bytes: Out<usize>, device: c_int) {
        check(device)?;
        bytes.put(runtime()?.space.left().1 as usize)
    }
    // The unsuffixed name has the layout of HIP 5 in every version: headers of HIP 6 rename the call.
    fn hipGetDeviceProperties(properties: Out<u8>, device: c_int) {
        check(device)?;
        properties.put_all(&facts()?.properties_of_5())
    }
    fn hipGetDevicePropertiesR0000(properties: Out<u8>, device: c_int) {
        check(device)?;
        properties.put_all(&facts()?.properties_of_5())
    }
    fn hipGetDevicePropertiesR0600(properties: Out<u8>, device: c_int) {
        check(device)?;
        properties.put_all(&facts()?.properties_of_6())
    }
    fn hipChooseDevice(device: Out<c_int>, _properties: *const u8) {
        device.put(0)
    }
    fn hipChooseDeviceR0000(device: Out<c_int>, _properties: *const u8) {
        device.put(0)
    }
    fn hipChooseDeviceR0600(device: Out<c_int>, _properties: *const u8) {
        device.put(0)
    }
    fn hipDeviceGetPCIBusId(id: Out<u8>, length: c_int, device: c_int) {
        check(device)?;
        put_text(id, length, BUS_ID)
    }
    fn hipDeviceGetByPCIBusId(device: Out<c_int>, id: Text) {
        match id.get()? {
            BUS_ID => device.put(0),
            other => Err(HipError::new(Code::InvalidDevice, format!("no device is at {other}"))),
        }
    }
    fn hipDeviceSynchronize() {
        synchronize()
    }
    // Memory stays as it is: what is left of it goes with the process.
    fn hipDeviceReset() {
        runtime()?.host_waits();
        runtime()?.forget_fault();
        Ok(())
    }
    fn hipDeviceCanAccessPeer(can: Out<c_int>, device: c_int, peer: c_int) {
        check(device)?;
        check(peer)?;
        can.put(0)
    }
    fn hipDeviceEnablePeerAccess(peer: c_int, _flags: c_uint) {
        check(peer)?;
        Err(HipError::new(Code::InvalidDevice, "a device is no peer of itself"))
    }
    fn hipDeviceDisablePeerAccess(peer: c_int) {
        check(peer)?;
        Err(HipError::new(Code::PeerAccessNotEnabled, "a device is no peer of itself"))
    }
    fn hipDeviceGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) {
        least.put_if_wanted(1);
        greatest.put_if_wanted(-1);
        Ok(())
    }
    fn hipDeviceGetCacheConfig(config: Out<c_int>) {
        config.put(0)
    }
    fn hipDeviceSetCacheConfig(_config: c_int) {
        Ok(())
    }
    fn hipDeviceGetSharedMemConfig(config: Out<c_int>) {
        config.put(1)
    }
    fn hipDeviceSetSharedMemConfig(_config: c_int) {
        Ok(())
    }
    fn hipGetDeviceFlags(flags: Out<c_uint>) {
        flags.put(0)
    }
    fn hipSetDeviceFlags(_flags: c_uint) {
        Ok(())
    }
    fn hipProfilerStart() {
        Ok(())
    }
    fn hipProfilerStop() {
        Ok(())
    }
    fn hipDrvGetErrorName(code: c_int, name: Out<*const c_char>) {
        name.put(crate::error::text(code).as_ptr())
    }
    fn hipDrvGetErrorString(code: c_int, text: Out<*const c_char>) {
        text.put(crate::error::text(code).as_ptr())
    }
}
