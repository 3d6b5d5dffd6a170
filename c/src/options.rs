//! Options of a compilation.

use std::ffi::{c_char, c_int};

use groundswell::internals::schedules::{STRATEGIES, named};
use groundswell::prelude::{Options, SetBy, Symbol, TargetId};

use crate::failure::{Failure, object, status};
use crate::text::{changed, free, text_of};

/// Options of a compilation.
pub struct GroundswellOptions {
    pub(crate) options: Options,
    /// Symbols that were set or left open, in whose place no default is put.
    pub(crate) given: Vec<Symbol>,
    /// Whether the schedule in the kernel's text is asked for.
    pub(crate) own_schedule: bool,
}

/// Options for a target: `gfx942`, `gfx950:xnack-`.
///
/// # Safety
/// `target` ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_options_new(target: *const c_char) -> *mut GroundswellOptions {
    object(|| {
        // SAFETY: as the caller says.
        let target = unsafe { text_of(target, "the target") }?;
        let target: TargetId =
            target.parse().map_err(|error: groundswell::target::TargetIdError| error.to_string())?;
        Ok(GroundswellOptions { options: Options::new(target), given: Vec::new(), own_schedule: false })
    })
}

/// Changes options in place.
unsafe fn change(
    options: *mut GroundswellOptions,
    body: impl FnOnce(&mut GroundswellOptions) -> Result<(), Failure>,
) -> c_int {
    status(|| {
        // SAFETY: as the caller says.
        body(unsafe { changed(options, "the options") }?)
    })
}

/// Gives a symbol its value: a size, a tile.
///
/// # Safety
/// `options` are options that nobody else uses meanwhile, and `symbol` ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_options_set(
    options: *mut GroundswellOptions,
    symbol: *const c_char,
    value: i64,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        change(options, |own| {
            let symbol = Symbol::new(text_of(symbol, "the symbol")?);
            let by = SetBy::Argument("groundswell_options_set".into());
            own.options = own.options.clone().set_by(symbol, value, by);
            own.given.push(symbol);
            Ok(())
        })
    }
}

/// Leaves a symbol open until launch.
///
/// # Safety
/// As `groundswell_options_set`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_options_dynamic(
    options: *mut GroundswellOptions,
    symbol: *const c_char,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        change(options, |own| {
            let symbol = Symbol::new(text_of(symbol, "the symbol")?);
            let by = SetBy::Argument("groundswell_options_dynamic".into());
            own.options = own.options.clone().dynamic_by(symbol, by);
            own.given.push(symbol);
            Ok(())
        })
    }
}

/// Chooses how loops are scheduled: `none`, `prefetch`, `modulo`, `pingpong`, `auto` and so on, as the
/// program's `--schedule`; `manual` is the schedule after the kernel's text.
///
/// # Safety
/// As `groundswell_options_set`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_options_schedule(
    options: *mut GroundswellOptions,
    schedule: *const c_char,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        change(options, |own| {
            let name = text_of(schedule, "the schedule")?;
            // A table is a file of the program.
            let strategy = named(name).filter(|strategy| strategy.name != "table").ok_or_else(|| {
                let names = STRATEGIES.iter().map(|strategy| strategy.name).filter(|name| *name != "table");
                let names: Vec<&str> = names.collect();
                Failure::from(format!("no schedule is called `{name}`; there are {}", names.join(", ")))
            })?;
            match strategy.option() {
                Some(schedule) => {
                    own.options = own.options.clone().schedule(schedule);
                    own.own_schedule = false;
                }
                None => own.own_schedule = true,
            }
            Ok(())
        })
    }
}

/// Computes functions of floats with fewer instructions, and less exactly.
///
/// # Safety
/// As `groundswell_options_set`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_options_fast_math(options: *mut GroundswellOptions) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        change(options, |own| {
            own.options = own.options.clone().fast_math();
            Ok(())
        })
    }
}

/// Frees options.
///
/// # Safety
/// `options` are options that are freed once, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_options_free(options: *mut GroundswellOptions) {
    // SAFETY: as the caller says.
    unsafe { free(options) };
}
