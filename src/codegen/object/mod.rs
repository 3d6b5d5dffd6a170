//! Code objects: kernel descriptor, metadata, ELF.
