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
        let set = options.value(symbol).zip(options.value_set_by(symbol));
        let (text, location) = match (set, options.left_open_by(symbol)) {
            (Some((value, by)), _) => set_by(&format!("{symbol} = {value} is"), "set ", by),
            (None, Some(by)) => set_by(&format!("{symbol} is left open"), "", by),
            (None, None) => continue,
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

/// Who has chosen something, and where that stands.
fn set_by(what: &str, how: &str, by: &SetBy) -> (String, Option<Location>) {
    match by {
        SetBy::Call(caller) => (format!("{what} {how}here"), Some(Location::from(*caller))),
        SetBy::Argument(argument) => (format!("{what} {how}by {argument}"), None),
        SetBy::Default => (format!("{what} the default"), None),
    }
}
