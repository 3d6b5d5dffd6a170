//! Where elements are: spread over lanes, in LDS, and on the way between them.

mod direct_loads;
mod layout_conversions;
mod lds_buffers;
mod lds_sharing;
mod task_mappings;
mod transposing_reads;
