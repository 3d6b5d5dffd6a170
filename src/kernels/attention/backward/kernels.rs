//! The kernels of a backward pass.

/// The kernels of a backward pass.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum BackwardKernel {
    /// What the others need of each row, so that it is launched first: `minus_log_sum_exp` and `minus_delta`,
    /// `[B, H, M]` of f32, of o, do and `log_sum_exp`.
    Rows,
    /// dQ, of q, k, v, do, `minus_log_sum_exp` and `minus_delta`.
    Queries,
    /// dK, of q, k, v, do, `minus_log_sum_exp` and `minus_delta`.
    Keys,
    /// dV, of q, k, do and `minus_log_sum_exp`.
    Values,
    /// dK and dV, of what dK is made of.
    KeysAndValues,
    /// The gradients of the logits of sinks, `dsinks`, `[H]` of f32, of `sinks`, `minus_log_sum_exp` and
    /// `minus_delta`.
    Sinks,
    /// The gradient of a bias, `dbias`, of its shape and of the dtype of the other gradients, of what dQ is
    /// made of.
    Bias,
}

impl BackwardKernel {
    /// The tensors that may have strides, each with the dimension of its rows.
    pub(super) fn tensors(self) -> &'static [(&'static str, &'static str)] {
        match self {
            BackwardKernel::Rows => &[("O", "M"), ("DO", "M")],
            BackwardKernel::Bias => &[("Q", "M"), ("K", "N"), ("V", "N"), ("DO", "M")],
            BackwardKernel::Queries => &[("Q", "M"), ("K", "N"), ("V", "N"), ("DO", "M"), ("DQ", "M")],
            BackwardKernel::Keys => &[("Q", "M"), ("K", "N"), ("V", "N"), ("DO", "M"), ("DK", "N")],
            BackwardKernel::Values => &[("Q", "M"), ("K", "N"), ("DO", "M"), ("DV", "N")],
            BackwardKernel::KeysAndValues => {
                &[("Q", "M"), ("K", "N"), ("V", "N"), ("DO", "M"), ("DK", "N"), ("DV", "N")]
            }
            BackwardKernel::Sinks => &[],
        }
    }
}
