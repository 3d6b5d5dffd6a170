//! Finished kernels: code objects and what they hold, bundles and packages of them, arguments, and devices
//! that take them.

mod bundles;
mod devices;
mod kernarg;
mod llvm_kernels;
mod object_descriptors;
mod object_lines;
mod object_link;
mod object_llvm;
mod packages;
