//! What a program or library of the host holds for devices: listed by target and kernel, and one object of it
//! chosen, the same for `disasm`, `sim` and `hip`.

use std::fmt::Write;
use std::path::Path;

use groundswell::object::{ContainerKind, DeviceCode, DeviceObject};
use groundswell::prelude::Diagnostic;
use groundswell::target::{FeatureSetting, TargetId};
use serde_json::{Value, json};

use super::arguments::target_named;
use super::failure::Failure;
use super::terminal::{Style, paint};

/// Which object of a file is meant.
#[derive(Copy, Clone, Default, Debug)]
pub struct ObjectChoice<'a> {
    /// The chip that it has to run on.
    pub target: Option<&'a str>,
    /// A kernel that it has to have.
    pub kernel: Option<&'a str>,
    /// Its number in the list, from one on.
    pub number: Option<usize>,
}

impl ObjectChoice<'_> {
    /// True if nothing is said.
    pub fn is_open(&self) -> bool {
        self.target.is_none() && self.kernel.is_none() && self.number.is_none()
    }
}

/// One object of a file, with what is said of it.
struct ListedObject {
    /// Its container's place among all of them.
    container: usize,
    /// Its place in the file, unless it is compressed there.
    offset: Option<usize>,
    id: String,
    target: Option<TargetId>,
    bytes: usize,
    kernels: Result<Vec<String>, String>,
}

impl ListedObject {
    fn has(&self, kernel: &str) -> bool {
        self.kernels.iter().flatten().any(|name| name == kernel)
    }

    /// The chip that it is for, in few words.
    fn target_name(&self) -> String {
        self.target.map_or_else(|| self.id.clone(), |target| target.to_string())
    }
}

/// All objects of a file.
pub struct HostListing<'a> {
    path: &'a Path,
    code: DeviceCode<'a>,
    /// In the order of the file. An object's number is its place from one on.
    objects: Vec<ListedObject>,
    /// Places that cannot be read, and why.
    faults: Vec<(usize, String)>,
}

/// Opens the containers of a file one after the other, each with its place among them. What a compressed one
/// becomes is in memory only meanwhile.
fn open_each(code: &DeviceCode<'_>, mut take: impl FnMut(usize, Result<Vec<DeviceObject<'_>>, String>)) {
    let mut unpacker = code.unpacker();
    for (place, container) in code.containers.iter().enumerate() {
        match unpacker.open(container) {
            Ok(contents) => take(place, container.objects(&contents).map_err(|error| error.to_string())),
            Err(error) => take(place, Err(error.to_string())),
        }
    }
}

impl<'a> HostListing<'a> {
    /// Lists the device code of a file.
    pub fn new(path: &'a Path, code: DeviceCode<'a>) -> HostListing<'a> {
        let mut objects = Vec::new();
        let mut faults: Vec<(usize, String)> =
            code.faults.iter().map(|fault| (fault.offset(), fault.to_string())).collect();
        open_each(&code, |container, opened| {
            let lies = code.containers[container];
            match opened {
                Ok(all) => objects.extend(all.into_iter().map(|object| {
                    ListedObject {
                        container,
                        offset: (lies.kind != ContainerKind::CompressedBundle)
                            .then_some(lies.offset + object.offset),
                        kernels: object
                            .kernels()
                            .map(|names| names.into_iter().map(str::to_owned).collect())
                            .map_err(|error| error.to_string()),
                        id: object.id,
                        target: object.target,
                        bytes: object.bytes.len(),
                    }
                })),
                Err(reason) => faults.push((lies.offset, reason)),
            }
        });
        faults.sort();
        HostListing { path, code, objects, faults }
    }

    /// The list for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let count = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
        let (objects, containers) = (self.objects.len(), self.code.containers.len());
        let name = paint(Style::Bold, &self.path.display().to_string());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name}  {} in {}", count(objects, "code object"), count(containers, "place"));
        for (number, object) in (1..).zip(&self.objects) {
            let container = &self.code.containers[object.container];
            let section = container.section.map_or(String::new(), |section| format!(" of {section}"));
            let target = paint(Style::Bold, &format!("{:24}", object.target_name()));
            let place = format!("{} at {:#x}{section}", container.kind.name(), container.offset);
            let _ = writeln!(
                text,
                "{number:4}  {target} {:>10} bytes  {}",
                object.bytes,
                paint(Style::Dim, &place)
            );
            match &object.kernels {
                Ok(kernels) => kernels.iter().for_each(|kernel| {
                    let _ = writeln!(text, "        {kernel}");
                }),
                Err(reason) => {
                    let _ = writeln!(text, "        {}", paint(Style::Bad, reason));
                }
            }
        }
        for (offset, reason) in &self.faults {
            let _ = writeln!(text, "{} at {offset:#x}: {reason}", paint(Style::Bad, "unreadable"));
        }
        text
    }

    /// The list for scripts.
    pub fn json(&self) -> Value {
        let object = |(number, object): (usize, &ListedObject)| {
            let container = &self.code.containers[object.container];
            let (kernels, error) = match &object.kernels {
                Ok(kernels) => (kernels.as_slice(), None),
                Err(reason) => (&[][..], Some(reason)),
            };
            json!({
                "object": number,
                "target": object.target.map(|target| target.to_string()),
                "id": object.id,
                "offset": object.offset,
                "bytes": object.bytes,
                "container": {
                    "kind": container.kind.name(), "offset": container.offset,
                    "bytes": container.bytes.len(), "section": container.section,
                },
                "kernels": kernels,
                "error": error,
            })
        };
        let faults: Vec<Value> = self
            .faults
            .iter()
            .map(|(offset, reason)| json!({ "offset": offset, "message": reason }))
            .collect();
        json!({
            "file": self.path.display().to_string(),
            "objects": (1..).zip(&self.objects).map(object).collect::<Vec<_>>(),
            "faults": faults,
        })
    }

    /// The bytes of the object that is meant. Where no chip is named, it is the first one that the file has
    /// code for, as `hip` takes it.
    ///
    /// # Errors
    /// None fits, or several do.
    pub fn choose(&self, choice: ObjectChoice<'_>) -> Result<Vec<u8>, Failure> {
        let named = choice.target.map(target_named).transpose()?;
        let fitting: Vec<usize> = (0..self.objects.len())
            .filter(|&place| choice.number.is_none_or(|number| number == place + 1))
            .filter(|&place| choice.kernel.is_none_or(|kernel| self.objects[place].has(kernel)))
            .collect();
        let first = || fitting.iter().find_map(|&place| self.objects[place].target);
        let Some(device) = named.or_else(|| first().map(usual_device)) else {
            return Err(self.nothing_fits(choice));
        };
        // Of each container the object that a device would take.
        let mut chosen = Vec::new();
        for of_one in fitting.chunk_by(|&a, &b| self.objects[a].container == self.objects[b].container) {
            let targets = of_one.iter().filter_map(|&place| Some((self.objects[place].target?, place)));
            chosen.extend(device.best_of(targets));
        }
        match chosen[..] {
            [] => Err(self.nothing_fits(choice)),
            [only] => self.bytes_of(only),
            [_, ..] => Err(self.which(&chosen, device)),
        }
    }

    /// The bytes of the object at a place.
    fn bytes_of(&self, place: usize) -> Result<Vec<u8>, Failure> {
        let container = self.objects[place].container;
        let among = self.objects[..place].iter().filter(|before| before.container == container).count();
        let mut bytes = None;
        open_each(&self.code, |at, opened| {
            if at == container {
                bytes = opened.ok().and_then(|objects| Some(objects.get(among)?.bytes.to_vec()));
            }
        });
        // It was read once before, from the same bytes.
        bytes.ok_or_else(|| Failure::file("read", self.path, &"an object of it changed meanwhile"))
    }

    fn which(&self, chosen: &[usize], device: TargetId) -> Failure {
        const SHOWN: usize = 12;
        let file = self.path.display();
        let text = format!("{file} has {} objects for {device} that could be meant", chosen.len());
        let numbers: Vec<String> = chosen.iter().take(SHOWN).map(|place| (place + 1).to_string()).collect();
        let more = if chosen.len() > SHOWN { ", .." } else { "" };
        Failure::usage(Diagnostic::invalid(text).help(format!(
            "choose one with --kernel NAME or --object N: {}{more}; `groundswell disasm {file}` lists what they \
             have",
            numbers.join(", ")
        )))
    }

    fn nothing_fits(&self, choice: ObjectChoice<'_>) -> Failure {
        const SHOWN: usize = 5;
        let file = self.path.display();
        if self.objects.is_empty() {
            let why = self.faults.iter().map(|(offset, reason)| format!("at {offset:#x}: {reason}"));
            let fault = Diagnostic::invalid(format!("{file} has no code for AMD's chips inside"));
            return why.take(SHOWN).fold(fault, |fault, why| fault.note(why, None)).into();
        }
        let mut asked = String::new();
        for (name, value) in [
            ("--object", choice.number.map(|number| number.to_string())),
            ("--target", choice.target.map(str::to_owned)),
            ("--kernel", choice.kernel.map(str::to_owned)),
        ] {
            if let Some(value) = value {
                let _ = write!(asked, " {name} {value}");
            }
        }
        let fault = Diagnostic::invalid(format!("no object of {file} fits{asked}"));
        let names = self.objects.iter().flat_map(|object| object.kernels.iter().flatten());
        let mut similar: Vec<&str> = names
            .filter(|name| choice.kernel.is_some_and(|kernel| name.contains(kernel) && *name != kernel))
            .map(String::as_str)
            .collect();
        similar.sort_unstable();
        similar.dedup();
        similar.truncate(SHOWN);
        let mut targets: Vec<String> = self.objects.iter().map(ListedObject::target_name).collect();
        targets.sort_unstable();
        targets.dedup();
        let help = match similar.is_empty() {
            true => format!("it has code for {}; `groundswell disasm {file}` lists it", targets.join(", ")),
            false => format!("kernels are named in full: {}", similar.join(", ")),
        };
        Failure::usage(fault.help(help))
    }
}

/// A device with the chip of an object, in any mode of retrying after page faults.
fn usual_device(target: TargetId) -> TargetId {
    let chip = target.chip();
    chip.with_xnack(FeatureSetting::Any).unwrap_or(chip)
}
