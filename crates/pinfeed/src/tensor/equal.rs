//! When two tensors are equal.

use half::{bf16, f16};

use super::{DType, Element, Tensor};

/// Same dtype, same shape, same values.
///
/// Floats compare as numbers, as PyTorch's `torch.equal` does: `0.0` equals
/// `-0.0`, and a tensor with a NaN equals no tensor, not even itself. Compare
/// [`bytes`](Tensor::bytes) to ask for the same bits. Where the memory lies,
/// and who has locked it, does not matter.
impl PartialEq for Tensor {
    fn eq(&self, other: &Self) -> bool {
        if self.dtype != other.dtype || self.shape != other.shape {
            return false;
        }
        match self.dtype {
            DType::F16 => same::<f16>(self, other),
            DType::BF16 => same::<bf16>(self, other),
            DType::F32 => same::<f32>(self, other),
            DType::F64 => same::<f64>(self, other),
            _ => self.bytes() == other.bytes(),
        }
    }
}

fn same<T: Element>(a: &Tensor, b: &Tensor) -> bool {
    match (a.as_slice::<T>(), b.as_slice::<T>()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}
