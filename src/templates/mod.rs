//! Ready templates: kernels of `crate::kernels` whose hyper-parameters are the choices of a space, to be
//! tuned by [`crate::tuning`]. They are written with the public API alone, as templates of your own are.
//!
//! [`find`] has them under the names of ready kernels.
//!
//! | file | what it makes |
//! | --- | --- |
//! | `matmul` | products of matrices: whole, or in parts of K |
//! | `ready` | any ready kernel: its blocks, waves and schedule |

mod matmul;
mod ready;

pub use matmul::Matmul;
pub use ready::ReadyTemplate;

use crate::kernels::{Choices, Form};
use crate::prelude::*;
use crate::tuning::Template;

/// Products that have a template of their own, by the names of their ready kernels.
const PRODUCTS: [(&str, Form); 4] =
    [("gemm", Form::ABt), ("gemm_ab", Form::AB), ("gemm_atb", Form::AtB), ("gemm_atbt", Form::AtBt)];

/// The template for the ready kernel of that name, with these values of its symbols and the defaults of the
/// others: [`Matmul`] for plain products, [`ReadyTemplate`] for everything else.
///
/// # Errors
/// As [`ReadyTemplate::new`].
///
/// # Example
/// ```
/// use groundswell::templates::find;
///
/// let template = find("gemm_ab", &[("M", 64), ("N", 128), ("K", 256)], Default::default())?;
/// assert_eq!((template.name(), template.task().as_str()), ("matmul", "f16,sums:ab:64x128x256"));
/// # Ok::<(), groundswell::prelude::Diagnostic>(())
/// ```
pub fn find(name: &str, values: &[(&str, i64)], choices: Choices) -> Result<Box<dyn Template>, Diagnostic> {
    let ready = ReadyTemplate::new(name, values)?;
    let Some((_, form)) = PRODUCTS.into_iter().find(|product| product.0 == name) else {
        return Ok(Box::new(ready.choices(choices)));
    };
    let size = ["M", "N", "K"].map(|name| ready.value(name).unwrap_or(1));
    let mut matmul = Matmul::new(size).form(form);
    if let Some(inputs) = choices.dtype {
        matmul = matmul.inputs(inputs);
    }
    if let Some(output) = choices.output {
        matmul = matmul.output(output);
    }
    Ok(Box::new(matmul))
}
