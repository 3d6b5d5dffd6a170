//! What happens to a kernel between its description and machine code.
