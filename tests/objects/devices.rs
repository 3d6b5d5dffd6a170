//! Devices: the suite that every device passes, on the simulator; which device is opened, and errors where
//! there is none. The same suite runs through HIP in the tests of the HIP library.

use groundswell::prelude::*;
use groundswell_testing::device_suite;

#[test]
fn the_simulator_passes_the_suite() {
    for target in [Target::GFX90A, Target::GFX942, Target::GFX950] {
        let lines = device_suite::transcript(&Device::simulator(target));
        let text = lines.join("\n");
        for what in [
            "upload and download",
            "a product",
            "open sizes",
            "scalars and logs",
            "afterwards",
            "streams",
            "thread 7",
        ] {
            assert!(lines.contains(&format!("{what}: good")), "{target}: {text}");
        }
        for (what, says) in [
            ("too many bytes", "9 bytes do not fit into a buffer of 8"),
            ("no buffers", "no argument for `a`"),
            ("one buffer too many", "got 4 buffers, too many"),
            ("a buffer of another dtype", "`c` is f32, and the buffer holds f16"),
            ("a buffer that is too small", "its buffer has 4"),
            ("a buffer of another device", "is on another device"),
            ("an object of another chip", &format!("and the device is {target}")),
            ("logs on a stream", "has logs"),
        ] {
            let line = lines.iter().find(|line| line.starts_with(what));
            assert!(line.is_some_and(|line| line.contains(says)), "{target}, {what}: {line:?}");
        }
    }
}

#[test]
fn devices_are_chosen_by_name() {
    let simulator = Device::named("sim:gfx950").expect("there always is one");
    assert_eq!((simulator.target(), simulator.is_simulator()), (Target::GFX950, true));
    assert!(Device::named("auto").is_ok());
    for (name, says) in [("cuda", "`cuda` is not a device"), ("sim:gfx1100", "gfx1100"), ("hip:x", "hip:x")] {
        let error = Device::named(name).expect_err(name).to_string();
        assert!(error.contains(says), "{error}");
    }
}

/// On a machine without a GPU: with AMD's library, which answers that there is none, or without.
#[test]
fn without_a_gpu_the_simulator_is_opened_and_says_why() {
    let error = match Device::gpus() {
        Ok(gpus) => {
            assert!(gpus.iter().all(|gpu| gpu.memory > 0 && gpu.compute_units > 0));
            return;
        }
        Err(error) => error,
    };
    let text = error.to_string();
    assert!(
        ["HIP cannot be used", "hipErrorNoDevice", "hipErrorInvalidDevice"]
            .iter()
            .any(|part| text.contains(part)),
        "{text}"
    );
    assert!(error.help.is_some(), "{text}");
    let device = Device::named("auto").expect("there is the simulator");
    assert!(device.is_simulator() && device.why().starts_with("no GPU: "), "{}", device.why());
    assert!(Device::named("hip").is_err() && Device::named("hip:3").is_err());
}
