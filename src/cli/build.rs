//! `groundswell build`: a package of kernels for several chips, with the sources that launch them.

use std::path::{Path, PathBuf};

use clap::{Args, Command, FromArgMatches};
use groundswell::package::PackageBuilder;
use groundswell::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments::{Build, KernelArguments, target_named};
use super::failure::Failure;
use super::job::Job;
use super::outcome::VerbOutcome;
use super::{inputs, json};

/// What a package holds, as a file says it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    /// The name of its files.
    name: Option<String>,
    /// The chips.
    #[serde(default)]
    targets: Vec<String>,
    #[serde(default, rename = "kernel")]
    kernels: Vec<ManifestKernel>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestKernel {
    /// A name from `list`, or the path of a text kernel from the manifest on.
    kernel: String,
    /// Its name in the package; without this, its name in `list` or the text kernel's own.
    name: Option<String>,
    /// What follows the kernel on the command line of `compile`.
    #[serde(default)]
    arguments: String,
}

/// A kernel that is to be built.
struct ListedKernel {
    name: Option<String>,
    arguments: KernelArguments,
}

/// The verb.
pub fn build(arguments: &Build) -> Result<VerbOutcome, Failure> {
    let mut name = arguments.name.clone();
    let mut targets = arguments.target.clone();
    let mut wanted = Vec::new();
    for input in &arguments.inputs {
        if Path::new(input).extension().is_some_and(|extension| extension == "toml") {
            let (manifest, kernels) = read(Path::new(input))?;
            name = name.or(manifest.name);
            if targets.is_empty() {
                targets = manifest.targets;
            }
            wanted.extend(kernels);
        } else {
            wanted.push(ListedKernel { name: None, arguments: kernel_arguments(input, "")? });
        }
    }
    if targets.is_empty() {
        targets = vec![Target::USUAL.name.to_owned()];
    }
    let ids = targets.iter().map(|id| target_named(id)).collect::<Result<Vec<_>, _>>()?;
    let mut builder = PackageBuilder::new(ids);
    for ListedKernel { name, mut arguments } in wanted {
        if !arguments.target.is_empty() && arguments.target != [Target::USUAL.name] {
            return Err(Failure::arguments("a package is for the same targets as a whole")
                .help("name them by --target of `build`, or as `targets` of the manifest"));
        }
        arguments.target.clone_from(&targets);
        let job = Job::new(&arguments).map_err(|failure| failure.of_kernel(&arguments.kernel))?;
        // Several ready kernels are variants of one.
        let own = if job.source.is_some() { job.kernel.name() } else { &arguments.kernel };
        let name = name.unwrap_or_else(|| own.to_owned());
        builder = builder.kernel(&name, &job.kernel, &job.options).map_err(|fault| {
            Failure::from(fault).with_source(job.source.as_ref()).of_kernel(&arguments.kernel)
        })?;
    }
    let name = name.unwrap_or_else(|| "kernels".to_owned());
    let files = builder.write(&arguments.output, &name)?;
    let mut text = String::new();
    let mut written = Vec::new();
    for path in files.all() {
        let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
        text.push_str(&format!("{}: {bytes} bytes\n", path.display()));
        written.push(json!({ "file": path.to_string_lossy(), "bytes": bytes }));
    }
    let launch = |executable: &Executable| json::launch(executable, executable.grid(&|_| None).ok());
    let kernels: Vec<Value> = builder
        .kernels()
        .map(|(name, executable)| json!({ "name": name, "launch": launch(executable) }))
        .collect();
    let json = json!({ "name": name, "targets": targets, "kernels": kernels, "files": written });
    Ok(VerbOutcome::done(text, json))
}

/// What a manifest says, and its kernels.
fn read(path: &Path) -> Result<(Manifest, Vec<ListedKernel>), Failure> {
    let text = inputs::read_text(path, inputs::MANIFEST)?;
    let manifest: Manifest = toml::from_str(&text).map_err(|error| {
        let help = "`name`, `targets` and tables [[kernel]] with `kernel`, `name` and `arguments`";
        Failure::file("use", path, &error.to_string().trim_end()).help(&format!("a manifest has {help}"))
    })?;
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    let mut wanted = Vec::new();
    for kernel in &manifest.kernels {
        // Lines in objects name the file as the manifest does, wherever that is.
        let arguments = kernel_arguments(&kernel.kernel, &kernel.arguments)?;
        let arguments = KernelArguments { folder: folder.clone(), ..arguments };
        wanted.push(ListedKernel { name: kernel.name.clone(), arguments });
    }
    Ok((manifest, wanted))
}

/// The arguments of one kernel, as `compile` takes them.
fn kernel_arguments(kernel: &str, arguments: &str) -> Result<KernelArguments, Failure> {
    let command = KernelArguments::augment_args(Command::new("arguments").no_binary_name(true));
    let words = std::iter::once(kernel).chain(arguments.split_whitespace());
    let matches = command.try_get_matches_from(words);
    matches.and_then(|matches| KernelArguments::from_arg_matches(&matches)).map_err(|error| {
        Failure::arguments(&error.render().to_string())
            .help(&format!("they are those of the kernel {kernel}"))
    })
}
