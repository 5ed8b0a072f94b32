//! The text of a tensor's elements, before they are laid out.

use half::{bf16, f16};

use super::{DType, Element, Tensor};

/// Digits after the point.
const DIGITS: usize = 4;

/// The texts of the elements at `places` (in row-major order), all in one
/// style.
pub(super) fn cells(tensor: &Tensor, places: &[usize]) -> Vec<String> {
    match tensor.dtype() {
        DType::U8 => exact::<u8>(tensor, places),
        DType::I8 => exact::<i8>(tensor, places),
        DType::U16 => exact::<u16>(tensor, places),
        DType::I16 => exact::<i16>(tensor, places),
        DType::U32 => exact::<u32>(tensor, places),
        DType::I32 => exact::<i32>(tensor, places),
        DType::U64 => exact::<u64>(tensor, places),
        DType::I64 => exact::<i64>(tensor, places),
        DType::F16 => floats(&pick(tensor, places, f16::to_f64)),
        DType::BF16 => floats(&pick(tensor, places, bf16::to_f64)),
        DType::F32 => floats(&pick(tensor, places, f64::from as fn(f32) -> f64)),
        DType::F64 => floats(&pick(tensor, places, |value: f64| value)),
        DType::Bool => bools(tensor.bytes(), places),
    }
}

/// What `of` makes of the elements at `places`.
fn pick<T: Element, U>(tensor: &Tensor, places: &[usize], of: impl Fn(T) -> U) -> Vec<U> {
    // There is a slice: `T` is the tensor's dtype, and not bool.
    let values = tensor.as_slice::<T>().unwrap_or_default();
    places.iter().filter_map(|&place| values.get(place)).map(|&value| of(value)).collect()
}

/// Integers, whose `Debug` is their value.
fn exact<T: Element>(tensor: &Tensor, places: &[usize]) -> Vec<String> {
    pick(tensor, places, |value: T| format!("{value:?}"))
}

/// By the byte, since one that is no bool must be seen, not hidden.
fn bools(bytes: &[u8], places: &[usize]) -> Vec<String> {
    let text = |byte: u8| match byte {
        0 => "false".to_owned(),
        1 => "true".to_owned(),
        byte => format!("{byte:#04x}"),
    };
    places.iter().map(|&place| text(bytes[place])).collect()
}

/// Floats, in PyTorch's manner: whole numbers without digits after the point,
/// others with four, with an exponent if they would be too long or all zeros.
fn floats(values: &[f64]) -> Vec<String> {
    let sizes = || values.iter().filter(|v| v.is_finite() && **v != 0.0).map(|v| v.abs());
    let whole = values.iter().all(|v| !v.is_finite() || v.fract() == 0.0);
    let exponent = sizes().any(|size| !(1e-4..1e8).contains(&size));
    let text = |value: &f64| match value {
        value if !value.is_finite() => value.to_string().to_lowercase(),
        value if exponent => scientific(*value),
        value if whole => format!("{value:.0}."),
        value => format!("{value:.DIGITS$}"),
    };
    values.iter().map(text).collect()
}

/// `1.0000e-05`: the exponent with a sign and at least two digits.
fn scientific(value: f64) -> String {
    let text = format!("{value:.DIGITS$e}");
    match text.split_once('e') {
        Some((digits, exponent)) => match exponent.strip_prefix('-') {
            Some(exponent) => format!("{digits}e-{exponent:0>2}"),
            None => format!("{digits}e+{exponent:0>2}"),
        },
        None => text,
    }
}
