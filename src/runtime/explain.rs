//! Faults as their author is to see them: with the origins of the symbols that have caused them, and without
//! places inside of ready kernels.

use crate::ir::diagnostic::{Diagnostic, Kind, Location};
use crate::ir::kernel::Kernel;
use crate::passes::options::{Options, SetBy};

/// A fault of compiling `kernel` for `options`.
pub(super) fn explained(kernel: &Kernel, options: &Options, mut fault: Diagnostic) -> Diagnostic {
    let inside = kernel.is_inside(fault.location.as_ref());
    let mut dims = fault.subjects().to_vec();
    if dims.is_empty() && inside && fault.kind == Kind::Limit {
        // A resource is exceeded: all of a ready kernel's tiles are to blame.
        dims = kernel.symbols();
    }
    let mut set_here = None;
    for symbol in kernel.symbols_of_tiles(&dims) {
        let (Some(value), Some(by)) = (options.value(symbol), options.value_set_by(symbol)) else { continue };
        let (text, location) = match by {
            SetBy::Call(caller) => (format!("{symbol} = {value} is set here"), Some(Location::from(*caller))),
            SetBy::Argument(argument) => (format!("{symbol} = {value} is set by {argument}"), None),
            SetBy::Default => (format!("{symbol} = {value} is the default"), None),
        };
        set_here = set_here.or(location.clone());
        fault = fault.note(text, location);
    }
    for chosen in dims.iter().filter_map(|&dim| kernel.choice_for(dim)) {
        set_here = set_here.or(chosen.location.clone());
        fault = fault.note(chosen.text.clone(), chosen.location.clone());
    }
    // A fault of a ready kernel's tiles is reported where they were chosen.
    if inside && set_here.is_some() {
        fault.location = set_here;
        for (_, location) in fault.notes.iter_mut().filter(|note| note.1 == fault.location) {
            *location = None;
        }
    }
    kernel.told(fault)
}
