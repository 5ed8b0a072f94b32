//! ToTensor and Normalize against the formulas, and synthetic data.

use std::sync::Arc;

use pinfeed::{
    DType, DataLoader, Dataset, Error, Normalize, Sample, Spec, Synthetic, ToTensor, Transform,
};

const MEAN: [f32; 3] = [0.4914, 0.4822, 0.4465];
const STD: [f32; 3] = [0.247, 0.2435, 0.2616];

/// PyTorch's `v / 255` in f32. The quotient of two floats, rounded once from
/// double, is the float quotient.
fn unit(v: u8) -> f32 {
    (f64::from(v) / 255.0) as f32
}

/// PyTorch's `(x - mean) / std` in f32.
fn normal(x: f32, mean: f32, std: f32) -> f32 {
    let centred = (f64::from(x) - f64::from(mean)) as f32;
    (f64::from(centred) / f64::from(std)) as f32
}

/// Some pixels, all values among them.
fn pixels(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 256) as u8).collect()
}

/// The plain way: one value after another.
fn naive(src: &[u8], channels: usize, f: impl Fn(usize, u8) -> f32) -> Vec<f32> {
    let plane = src.len() / channels;
    let mut out = vec![f32::NAN; src.len()];
    for (i, &v) in src.iter().enumerate() {
        out[i % channels * plane + i / channels] = f(i % channels, v);
    }
    out
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn to_tensor_is_exact() {
    for channels in [1, 2, 3, 4, 5] {
        for plane in [0, 1, 7, 1024] {
            let src = pixels(plane * channels);
            let mut out = vec![0.0; src.len()];
            ToTensor::new().convert(&src, channels, &mut out).unwrap();
            assert_eq!(bits(&out), bits(&naive(&src, channels, |_, v| unit(v))));

            let one = ToTensor::new().normalize(&[0.5], &[0.25]).unwrap();
            one.convert(&src, channels, &mut out).unwrap();
            assert_eq!(bits(&out), bits(&naive(&src, channels, |_, v| normal(unit(v), 0.5, 0.25))));
        }
    }
    let src = pixels(3 * 256 * 5);
    let mut out = vec![0.0; src.len()];
    ToTensor::new().normalize(&MEAN, &STD).unwrap().convert(&src, 3, &mut out).unwrap();
    let expected = naive(&src, 3, |c, v| normal(unit(v), MEAN[c], STD[c]));
    assert_eq!(bits(&out), bits(&expected));

    // Normalize behind ToTensor gives the same bits.
    let (mut plain, mut two) = (vec![0.0; src.len()], vec![0.0; src.len()]);
    ToTensor::new().convert(&src, 3, &mut plain).unwrap();
    Normalize::new(&MEAN, &STD).unwrap().convert(&plain, 3, &mut two).unwrap();
    assert_eq!(bits(&two), bits(&out));
}

#[test]
fn bad_settings_are_refused() {
    let config = |result: Result<ToTensor, Error>, says: &str| {
        let error = result.unwrap_err();
        assert!(error.is_config() && error.to_string().contains(says), "{error}");
    };
    config(ToTensor::new().normalize(&MEAN, &STD[..2]), "3 means and 2 standard deviations");
    config(ToTensor::new().normalize(&[], &[]), "0 means");
    config(ToTensor::new().normalize(&MEAN, &[0.2, 0.0, 0.2]), "for channel 1");
    config(ToTensor::new().normalize(&[f32::NAN], &[1.0]), "finite");
    let once = ToTensor::new().normalize(&MEAN, &STD).unwrap();
    config(once.clone().normalize(&MEAN, &STD), "twice");

    let mut out = [0.0; 8];
    for (src, channels) in [(&[0u8; 8][..], 3), (&[0; 7], 1), (&[0; 8], 0)] {
        let error = ToTensor::new().convert(src, channels, &mut out).unwrap_err();
        assert!(error.to_string().contains("places"), "{error}");
    }
    let error = once.convert(&[0; 8], 4, &mut out).unwrap_err();
    assert!(error.to_string().contains("4 channels, and 3 means"), "{error}");
    let normalize = Normalize::new(&MEAN, &STD).unwrap();
    assert!(normalize.convert(&[0.0; 8], 3, &mut out).is_err());
    assert!(normalize.convert(&[0.0; 8], 0, &mut out).is_err());
}

/// The first batch of 2 of a data set, transformed.
fn batch<S: Sample + Clone + Send + Sync + 'static>(
    sample: S,
    transform: impl Transform + 'static,
) -> Result<pinfeed::Batch, Error> {
    let data = pinfeed::from_fn(2, move |_| sample.clone()).map(transform);
    DataLoader::builder(data).batch_size(2).build()?.into_iter().next().unwrap()
}

#[test]
fn the_first_field_is_converted_and_the_others_stay() {
    let sample = ([[[1u8, 2, 3], [4, 5, 6]]; 4], 7i64, "text".to_owned());
    let batch = batch(sample, ToTensor::new()).unwrap();
    let images = batch.tensor_at(0).unwrap();
    assert_eq!((images.dtype(), images.shape()), (DType::F32, &[2, 3, 4, 2][..]));
    let first = images.get(0).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(first[..4], [unit(1), unit(4), unit(1), unit(4)]);
    assert_eq!(first[16..18], [unit(3), unit(6)]);
    assert_eq!(batch.tensor_at(1).unwrap().to_vec::<i64>().unwrap(), [7, 7]);
    assert_eq!(batch.fields().len(), 3);
}

#[test]
fn two_dimensions_are_one_channel() {
    let batch = batch(([[0u8, 255], [51, 102]], 1i64), ToTensor::new()).unwrap();
    let images = batch.tensor_at(0).unwrap();
    assert_eq!(images.shape(), [2, 1, 2, 2]);
    assert_eq!(images.to_vec::<f32>().unwrap()[..4], [0.0, 1.0, 0.2, 0.4]);
}

#[test]
fn what_does_not_fit_is_named() {
    let error = batch([[[1.0f32; 3]; 2]; 2], ToTensor::new()).unwrap_err().to_string();
    assert!(error.contains("f32 [2, 2, 3]") && error.contains("u8 [height, width"), "{error}");
    let error = batch(1i64, ToTensor::new()).unwrap_err().to_string();
    assert!(error.contains("i64 []"), "{error}");
    let error = batch("x".to_owned(), ToTensor::new()).unwrap_err().to_string();
    assert!(error.contains("no tensor"), "{error}");
    let normalize = || Normalize::new(&MEAN, &STD).unwrap();
    let error = batch([[[1u8; 3]; 2]; 2], normalize()).unwrap_err().to_string();
    assert!(error.contains("u8 [2, 2, 3]") && error.contains("ToTensor"), "{error}");
    let error = batch([[[1.0f32; 3]; 2]; 4], normalize()).unwrap_err().to_string();
    assert!(error.contains("4 channels, and 3 means"), "{error}");
}

#[test]
fn normalize_alone() {
    let batch = batch(([[[1.0f32; 2]; 2]; 3], 5u8), Normalize::new(&MEAN, &STD).unwrap()).unwrap();
    let images = batch.tensor_at(0).unwrap();
    assert_eq!(images.shape(), [2, 3, 2, 2]);
    let images = images.to_vec::<f32>().unwrap();
    for c in 0..3 {
        assert_eq!(images[c * 4..][..4], [normal(1.0, MEAN[c], STD[c]); 4]);
    }
    assert_eq!(batch.tensor_at(1).unwrap().to_vec::<u8>().unwrap(), [5, 5]);
}

#[test]
fn the_layout_is_known_beforehand() {
    let u8s = |shape: &[usize]| {
        Spec::new()
            .tensor("image", DType::U8, shape)
            .unwrap()
            .tensor("label", DType::I64, &[])
            .unwrap()
    };
    let floats = |shape: &[usize]| {
        Spec::new()
            .tensor("image", DType::F32, shape)
            .unwrap()
            .tensor("label", DType::I64, &[])
            .unwrap()
    };
    let plain = ToTensor::new();
    assert_eq!(plain.spec(&u8s(&[8, 9, 3])), Some(floats(&[3, 8, 9])));
    assert_eq!(plain.spec(&u8s(&[8, 9])), Some(floats(&[1, 8, 9])));
    assert_eq!(plain.spec(&u8s(&[8])), None);
    assert_eq!(plain.spec(&floats(&[3, 8, 9])), None);
    assert_eq!(plain.spec(&Spec::new()), None);
    let three = ToTensor::new().normalize(&MEAN, &STD).unwrap();
    assert_eq!(three.spec(&u8s(&[8, 9, 3])), Some(floats(&[3, 8, 9])));
    assert_eq!(three.spec(&u8s(&[8, 9, 4])), None);
    let normalize = Normalize::new(&MEAN, &STD).unwrap();
    assert_eq!(normalize.spec(&floats(&[3, 8, 9])), Some(floats(&[3, 8, 9])));
    assert_eq!(normalize.spec(&u8s(&[3, 8, 9])), None);
}

#[test]
fn synthetic_data_is_the_same_for_any_number_of_workers() {
    let data = Arc::new(Synthetic::images(103, [5, 4, 3], 10, 7).unwrap());
    assert_eq!((data.len(), data.classes()), (103, 10));
    assert!(data.labels().iter().enumerate().all(|(i, &label)| label == i as i64 % 10));
    let all = |workers: usize| {
        let loader = DataLoader::builder(Arc::clone(&data).map(ToTensor::new()))
            .batch_size(16)
            .num_workers(workers)
            .build()
            .unwrap();
        let mut values = Vec::new();
        for batch in &loader {
            values.extend(batch.unwrap().tensor_at(0).unwrap().to_vec::<f32>().unwrap());
        }
        values
    };
    let values = all(0);
    assert_eq!(values.len(), 103 * 60);
    assert_eq!(values, all(3));
    let mean = values.iter().sum::<f32>() / values.len() as f32;
    assert!((mean - 0.5).abs() < 0.02, "{mean}");
}

#[test]
fn synthetic_images_depend_on_seed_and_index_alone() {
    let images = |len, seed| {
        let data = Synthetic::images(len, [3, 3, 1], 2, seed).unwrap();
        let image = |i| data.lend(i).unwrap().get(0).unwrap().bytes().to_vec();
        (0..len).map(image).collect::<Vec<_>>()
    };
    let few = images(5, 1);
    assert_eq!(images(9, 1)[..5], few);
    assert_ne!(images(5, 2), few);
    assert!((1..5).all(|i| few[i] != few[0]));
    // Known for ever: a change here changes everybody's data.
    assert_eq!(few[0], [114, 215, 194, 221, 48, 128, 239, 191, 71]);
}

#[test]
fn synthetic_refuses_what_can_not_be() {
    assert!(Synthetic::images(5, [2, 2, 3], 0, 0).unwrap_err().is_config());
    let error = Synthetic::images(usize::MAX, [2, 2, 3], 2, 0).unwrap_err();
    assert!(error.is_out_of_memory() && error.to_string().contains("fewer"), "{error}");
    assert!(Synthetic::images(1 << 40, [1024, 1024, 3], 2, 0).unwrap_err().is_out_of_memory());
    assert_eq!(Synthetic::images(0, [2, 2, 3], 2, 0).unwrap().len(), 0);
    assert_eq!(Synthetic::images(2, [0, 2, 3], 2, 0).unwrap().len(), 2);
}
