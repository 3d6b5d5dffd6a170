//! Packages of kernels that the program builds.

use std::fs;

use crate::places::Directory;
use crate::program;
use groundswell::package::KernelPackage;
use groundswell::prelude::*;

#[test]
fn the_program_builds_packages_of_manifests_and_names() {
    let directory = Directory::new("packages-program");
    fs::write(directory.file("scale.gsw"), "kernel scale {\n  workgroup M, 64, 0\n  wave M, 64\n  x = memory [M] global f32\n  %x = read x\n  %y = mul %x, 3.0\n  write %y, x\n}\n").expect("it can be written");
    let manifest = "name = \"mine\"\ntargets = [\"gfx90a\", \"gfx942\"]\n\n[[kernel]]\nkernel = \"gemm\"\nname = \
                    \"gemm_bf16\"\narguments = \"--dtype bf16 --dynamic M,N,K --tile M=64,N=64,K=32 --waves M=2,N=2\"\n\n\
                    [[kernel]]\nkernel = \"scale.gsw\"\narguments = \"--dynamic M\"\n";
    let path = directory.file("kernels.toml");
    fs::write(&path, manifest).expect("it can be written");
    let out = directory.file("out");
    let (built, code) = program::json(&["build", &path, "softmax", "-o", &out, "--json"]);
    assert_eq!(code, Some(0), "{built}");
    assert_eq!(built["kernels"].as_array().map(Vec::len), Some(3));
    assert_eq!(built["kernels"][0]["name"], "gemm_bf16");
    let grids = [0, 2].map(|kernel| &built["kernels"][kernel]["launch"]["grid"]);
    assert!(grids[0].is_null() && grids[1].as_array().is_some_and(|axes| axes.len() == 3), "{grids:?}");
    let package = KernelPackage::read(fs::read(format!("{out}/mine.gswpack")).expect("it was written"));
    let package = package.expect("it is sound");
    let device = Device::simulator(Target::GFX90A);
    let scale = package.executable("scale", &device).expect("it was built");
    let x = device.upload(&[2f32; 100]).expect("room");
    device.launch(scale).buffer(&x).set("M", 100).run().expect("it runs");
    assert_eq!(x.download::<f32>().expect("it is f32"), [6.0; 100]);
    for extension in ["rs", "h", "co"] {
        assert!(fs::metadata(format!("{out}/mine.{extension}")).is_ok_and(|file| file.len() > 500));
    }
    // The bundle has all kernels under their names in the package.
    let (listed, _) = program::json(&["disasm", &format!("{out}/mine.co"), "--target", "gfx942", "--json"]);
    let names: Vec<&str> =
        listed["kernels"].as_array().into_iter().flatten().filter_map(|k| k["name"].as_str()).collect();
    assert_eq!(names, ["gemm_bf16", "scale", "softmax"]);

    // Where the manifest is does not change the bytes, and variants of one kernel have names of their own.
    let again = directory.file("again");
    let folder = std::path::Path::new(&path).parent().expect("it is in a folder");
    let other = folder.join("..").join(folder.file_name().expect("it has a name")).join("kernels.toml");
    let other = other.to_string_lossy();
    let (built, code) =
        program::json(&["build", &other, "softmax", "gemm_ab", "gemm_bias_relu", "-o", &again, "--json"]);
    assert_eq!(code, Some(0), "{built}");
    assert_eq!(built["kernels"][3]["name"], "gemm_ab");
    let objects = |folder: &str| {
        let package = fs::read(format!("{folder}/mine.gswpack")).expect("it was written");
        let package = KernelPackage::read(package).expect("it is sound");
        let device = Device::simulator(Target::GFX942);
        ["gemm_bf16", "scale", "softmax"]
            .map(|name| package.executable(name, &device).expect("built").object().to_vec())
    };
    assert_eq!(objects(&out), objects(&again));
    // What cannot be written as a whole leaves what was there.
    let before = fs::read(format!("{again}/mine.co")).expect("it is there");
    fs::remove_file(format!("{again}/mine.h")).expect("it is there");
    fs::create_dir(format!("{again}/mine.h")).expect("it can be made");
    let (failed, code) = program::json(&["build", &path, "-o", &again, "--json"]);
    assert!(
        code != Some(0) && failed["error"]["message"].as_str().is_some_and(|text| text.contains("mine.h"))
    );
    assert_eq!(fs::read(format!("{again}/mine.co")).expect("it is there"), before);
    let left = fs::read_dir(&again).expect("it is there").count();
    assert_eq!(left, 4, "no file that was begun is left");

    for (manifest, why) in [
        ("nam = \"x\"", "unknown field"),
        ("[[kernel]]\nkernel = \"gemm\"\narguments = \"--tiles M=1\"", "--tiles"),
        ("[[kernel]]\nkernel = \"gem\"", "neither a ready kernel nor a file"),
        ("targets = [\"gfx1100\"]\n[[kernel]]\nkernel = \"gemm\"", "not a known target"),
        ("[[kernel]]\nkernel = \"gemm\"\narguments = \"--target gfx950\"", "same targets"),
        ("", "at least one kernel"),
    ] {
        fs::write(&path, manifest).expect("it can be written");
        let (failed, code) = program::json(&["build", &path, "-o", &out, "--json"]);
        let message = failed["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(why) && code != Some(0), "{manifest}: {failed}");
    }
}
