//! LDS bank conflicts, computed from the addresses a wave presents.
//!
//! LDS serves the lanes of an access in groups; inside a group each bank serves one dword per cycle, and lanes that
//! read the same dword are served together. Which lanes form a group depends on target, width and direction.
