//! Derive macros of pinfeed: [`Sample`](macro@Sample) for what a data set
//! gives, [`FromBatch`](macro@FromBatch) for what a loader's batch is taken
//! apart into.
//!
//! Use them through `pinfeed`, which re-exports them. What they expand to
//! names things as `::pinfeed::...`; a crate that has pinfeed under another
//! path says so with `#[pinfeed(crate = "path")]`.

#![forbid(unsafe_code)]

mod from_batch;
mod input;
mod sample;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a struct a sample: each of its fields becomes a field of the batch,
/// in order.
///
/// Every field must be a `pinfeed::Sample` itself: scalars, tensors, arrays,
/// vectors, strings, tuples of these, and structs with this derive.
///
/// ```
/// use pinfeed::Sample;
///
/// #[derive(Sample)]
/// struct Digit {
///     image: [[f32; 28]; 28],
///     label: i64,
/// }
///
/// // A loader of it gives batches with the fields "image" and "label".
/// let digits = pinfeed::from_fn(10, |i| Digit { image: [[0.0; 28]; 28], label: i as i64 });
/// # let _ = digits;
/// ```
///
/// A tuple struct's fields have no names; they are called by position.
///
/// ```
/// # use pinfeed::Sample;
/// #[derive(Sample)]
/// struct Pair([f32; 2], i64);
/// ```
///
/// # Names
///
/// A field is called as in the struct, or as `rename` says:
///
/// ```
/// # use pinfeed::Sample;
/// #[derive(Sample)]
/// struct Digit {
///     #[pinfeed(rename = "x")]
///     image: [[f32; 28]; 28],
///     #[pinfeed(rename = "y")]
///     label: i64,
/// }
/// ```
///
/// A field that writes several fields of the batch has one name to give, and
/// it goes to the first: of `position: (f32, f32)` the first number is called
/// "position", the second has no name. A field that is a struct with names of
/// its own keeps those, and its own name in the outer struct is not used. Use
/// an array, or a struct, where every part should be found by name.
///
/// # Generics
///
/// Field types that mention a type parameter must be samples where the
/// struct is used as one; no bound on the struct is needed.
///
/// ```
/// # use pinfeed::Sample;
/// #[derive(Sample)]
/// struct Labelled<T> {
///     data: Vec<T>,
///     label: i64,
/// }
///
/// let set = pinfeed::from_fn(10, |i| Labelled { data: vec![0.5f32; 4], label: i as i64 });
/// # let _ = set;
/// ```
///
/// # What is refused
///
/// Enums and unions, because all samples of a batch have the same fields:
///
/// ```compile_fail
/// #[derive(pinfeed::Sample)]
/// enum Shape {
///     Circle { radius: f32 },
///     Square { side: f32 },
/// }
/// ```
///
/// structs without fields, because there is nothing to load:
///
/// ```compile_fail
/// #[derive(pinfeed::Sample)]
/// struct Nothing;
/// ```
///
/// two fields of one name, an unknown attribute, a name for a tuple struct's
/// field:
///
/// ```compile_fail
/// #[derive(pinfeed::Sample)]
/// struct Twice {
///     x: f32,
///     #[pinfeed(rename = "x")]
///     y: f32,
/// }
/// ```
///
/// and a field that is no sample, at the field:
///
/// ```compile_fail,E0277
/// #[derive(pinfeed::Sample)]
/// struct Clock {
///     time: std::time::Instant,
/// }
/// ```
#[proc_macro_derive(Sample, attributes(pinfeed))]
pub fn derive_sample(item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as DeriveInput);
    sample::expand(&item).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a struct that a batch can be taken apart into: `TryFrom<Batch>`, each
/// field found in the batch by its name.
///
/// Every field must be a `pinfeed::FromField`: a `Tensor`, `Vec<String>` for
/// text, `Vec<Vec<u8>>` for bytes.
///
/// ```
/// use pinfeed::{DataLoader, FromBatch, Sample, Tensor};
///
/// #[derive(Sample)]
/// struct Digit {
///     image: [[f32; 28]; 28],
///     label: i64,
/// }
///
/// #[derive(FromBatch)]
/// struct Digits {
///     image: Tensor,
///     label: Tensor,
/// }
///
/// let digits = pinfeed::from_fn(10, |i| Digit { image: [[0.0; 28]; 28], label: i as i64 });
/// let loader = DataLoader::builder(digits).batch_size(5).build()?;
/// for batch in &loader {
///     let Digits { image, label } = batch?.try_into()?;
///     assert_eq!(image.shape(), [5, 28, 28]);
///     assert_eq!(label.shape(), [5]);
/// }
/// # Ok::<(), pinfeed::Error>(())
/// ```
///
/// Fields of the batch that the struct does not name are left out. A field
/// that the batch does not have is an error that lists those it has. `rename`
/// works as for [`Sample`](macro@Sample), so that one struct's attributes can
/// serve both.
///
/// A tuple struct takes the fields by position, and must have as many as the
/// batch:
///
/// ```
/// # use pinfeed::{FromBatch, Tensor};
/// #[derive(FromBatch)]
/// struct Pair(Tensor, Tensor);
/// ```
///
/// # What is refused
///
/// As for [`Sample`](macro@Sample):
///
/// ```compile_fail
/// #[derive(pinfeed::FromBatch)]
/// enum Either {
///     Image(pinfeed::Tensor),
///     Label(pinfeed::Tensor),
/// }
/// ```
///
/// A field that can not hold a whole batch of values:
///
/// ```compile_fail,E0277
/// #[derive(pinfeed::FromBatch)]
/// struct Digits {
///     label: i64,
/// }
/// ```
#[proc_macro_derive(FromBatch, attributes(pinfeed))]
pub fn derive_from_batch(item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as DeriveInput);
    from_batch::expand(&item).unwrap_or_else(syn::Error::into_compile_error).into()
}
