//! `libamdhip64.so.7`, linked as a shared library (`build.rs`).
#![no_main]

use groundswell_hip::runtime::HipVersion;

extern "C" fn begin() {
    groundswell_hip::stands_for(HipVersion::V7);
}

/// Called by the loader, before the program registers its kernels.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;
