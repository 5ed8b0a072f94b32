//! `#[derive(Sample)]` and `#[derive(FromBatch)]`, through a loader.

#![cfg(feature = "derive")]

use pinfeed::{Batch, BatchField, DType, DataLoader, FromBatch, Sample, Tensor};

/// A batch of the samples `make(0)` and `make(1)`.
fn batch_of<S: Sample + 'static>(make: impl Fn(usize) -> S + Send + Sync + 'static) -> Batch {
    let loader = DataLoader::builder(pinfeed::from_fn(2, make)).batch_size(2).build().unwrap();
    loader.into_iter().next().unwrap().unwrap()
}

fn names(batch: &Batch) -> Vec<Option<&str>> {
    batch.fields().iter().map(|field| field.name()).collect()
}

fn ints(batch: &Batch, position: usize) -> Vec<i64> {
    batch.tensor_at(position).unwrap().to_vec().unwrap()
}

#[derive(Sample)]
struct Digit {
    image: [[f32; 3]; 2],
    label: i64,
}

fn digit(i: usize) -> Digit {
    Digit { image: [[i as f32; 3]; 2], label: i as i64 }
}

#[test]
fn fields_are_written_in_order_under_their_names() {
    let batch = batch_of(digit);
    assert_eq!(names(&batch), [Some("image"), Some("label")]);
    let image = batch.tensor("image").unwrap();
    assert_eq!((image.dtype(), image.shape()), (DType::F32, &[2, 2, 3][..]));
    assert_eq!(image.get(1).unwrap().to_vec::<f32>().unwrap(), [1.0; 6]);
    assert_eq!(batch.tensor("label").unwrap().to_vec::<i64>().unwrap(), [0, 1]);
}

#[test]
fn a_tuple_structs_fields_have_no_names() {
    #[derive(Sample)]
    struct Pair([u8; 2], i64);

    let batch = batch_of(|i| Pair([i as u8; 2], 7));
    assert_eq!(names(&batch), [None, None]);
    assert_eq!(ints(&batch, 1), [7, 7]);
}

#[test]
fn rename_names_the_field() {
    #[derive(Sample)]
    struct Renamed {
        #[pinfeed(rename = "x 1")]
        x1: i64,
        r#type: i64,
    }

    let batch = batch_of(|i| Renamed { x1: i as i64, r#type: 0 });
    assert_eq!(names(&batch), [Some("x 1"), Some("type")]);
}

#[test]
fn a_name_goes_to_the_first_of_several_fields() {
    #[derive(Sample)]
    struct Inner(i64, i64);

    #[derive(Sample)]
    struct Outer {
        pair: (i64, i64),
        inner: Inner,
        last: i64,
    }

    let batch = batch_of(|_| Outer { pair: (1, 2), inner: Inner(3, 4), last: 5 });
    assert_eq!(names(&batch), [Some("pair"), None, Some("inner"), None, Some("last")]);
    assert_eq!(ints(&batch, 3), [4, 4]);
}

#[test]
fn names_of_an_inner_struct_stay() {
    #[derive(Sample)]
    struct Outer {
        digit: Digit,
        weight: f32,
    }

    let batch = batch_of(|i| Outer { digit: digit(i), weight: 0.5 });
    assert_eq!(names(&batch), [Some("image"), Some("label"), Some("weight")]);
}

#[test]
fn parameters_and_lifetimes_are_carried_over() {
    #[derive(Sample)]
    struct General<'a, T, U, const N: usize>
    where
        U: Copy,
    {
        list: Vec<T>,
        array: [U; N],
        text: &'a str,
        scalar: T,
    }

    let batch =
        batch_of(|i| General { list: vec![i as i64; 3], array: [1u8; 4], text: "t", scalar: 9 });
    assert_eq!(names(&batch), [Some("list"), Some("array"), Some("text"), Some("scalar")]);
    assert_eq!(ints(&batch, 0), [0, 0, 0, 1, 1, 1]);
    assert_eq!(batch.tensor("array").unwrap().shape(), [2, 4]);
    assert_eq!(batch.field("text").unwrap(), BatchField::Text(vec!["t".into(); 2]));
}

mod elsewhere {
    pub(crate) use pinfeed as renamed;
}

#[test]
fn pinfeed_may_have_another_path() {
    #[derive(Sample)]
    #[pinfeed(crate = "crate::elsewhere::renamed")]
    struct Here {
        x: i64,
    }

    #[derive(FromBatch)]
    #[pinfeed(crate = "elsewhere::renamed")]
    struct Back {
        x: Tensor,
    }

    let Back { x } = batch_of(|i| Here { x: i as i64 }).try_into().unwrap();
    assert_eq!(x.to_vec::<i64>().unwrap(), [0, 1]);
}

/// What the macros expand to leans on no name that a user can take.
#[allow(dead_code, non_camel_case_types)]
mod names_taken {
    struct Result;
    struct Ok;
    struct Row;
    struct Error;
    struct Batch;
    trait Sample {}
    trait FromField {}
    trait TryFrom {}
    mod core {}
    mod pinfeed {}

    #[derive(::pinfeed::Sample, ::pinfeed::FromBatch)]
    pub(crate) struct Both {
        pub(crate) row: ::pinfeed::Tensor,
        pub(crate) batch: ::pinfeed::Tensor,
    }
}

#[test]
fn one_struct_may_go_in_and_come_out() {
    use names_taken::Both;

    let both = |i: usize| Both { row: Tensor::scalar(i as i64), batch: Tensor::scalar(0.5f32) };
    let Both { row, batch } = batch_of(both).try_into().unwrap();
    assert_eq!(row.to_vec::<i64>().unwrap(), [0, 1]);
    assert_eq!(batch.to_vec::<f32>().unwrap(), [0.5, 0.5]);
}

#[derive(Sample)]
struct Captioned {
    image: [u8; 4],
    caption: String,
    label: i64,
}

fn captioned() -> Batch {
    batch_of(|i| Captioned { image: [0; 4], caption: format!("no. {i}"), label: i as i64 })
}

#[test]
fn a_batch_is_taken_apart_by_name() {
    /// In another order, and without the image.
    #[derive(FromBatch)]
    struct Captions {
        #[pinfeed(rename = "label")]
        number: Tensor,
        caption: Vec<String>,
    }

    let Captions { number, caption } = captioned().try_into().unwrap();
    assert_eq!(number.to_vec::<i64>().unwrap(), [0, 1]);
    assert_eq!(caption, ["no. 0", "no. 1"]);
}

#[test]
fn a_field_that_is_not_there_is_an_error_with_those_that_are() {
    #[derive(Debug, FromBatch)]
    #[expect(dead_code, reason = "only that it can not be made matters")]
    struct Masks {
        mask: Tensor,
    }

    let error = Masks::try_from(captioned()).unwrap_err().to_string();
    for part in ["mask", "image", "caption", "label"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_field_of_another_kind_is_an_error() {
    #[derive(Debug, FromBatch)]
    #[expect(dead_code, reason = "only that it can not be made matters")]
    struct Wrong {
        caption: Tensor,
    }

    let error = Wrong::try_from(captioned()).unwrap_err().to_string();
    assert!(error.contains("text") && error.contains("tensor"), "{error}");
}

#[test]
fn a_tuple_struct_takes_just_as_many_fields_by_position() {
    #[derive(FromBatch)]
    struct All(Tensor, Vec<String>, Tensor);

    #[derive(Debug, FromBatch)]
    #[expect(dead_code, reason = "only that it can not be made matters")]
    struct Two(Tensor, Vec<String>);

    let All(image, caption, label) = captioned().try_into().unwrap();
    assert_eq!(image.shape(), [2, 4]);
    assert_eq!(caption.len(), 2);
    assert_eq!(label.dtype(), DType::I64);

    let error = Two::try_from(captioned()).unwrap_err().to_string();
    assert!(error.contains('3') && error.contains('2'), "{error}");
}

#[test]
fn what_comes_out_may_be_generic() {
    #[derive(FromBatch)]
    struct Parts<A, B> {
        image: A,
        caption: B,
    }

    let parts: Parts<Tensor, Vec<String>> = captioned().try_into().unwrap();
    assert_eq!(parts.image.shape(), [2, 4]);
    assert_eq!(parts.caption.len(), 2);
}
