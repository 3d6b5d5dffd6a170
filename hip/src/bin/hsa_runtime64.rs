//! `libhsa-runtime64.so`, linked as a shared library (`build.rs`): the functions of [`groundswell_hip::hsa`].
#![no_main]

use groundswell_hip as _;
