//! The real CIFAR-10 test images, where they are.

use std::path::Path;

use pinfeed::{DataLoader, Dataset, ImageFolder};

#[test]
fn cifar10_is_whole() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/cifar10-jpeg-test.tar.gz");
    if !path.exists() {
        eprintln!("skipped: {} is not there", path.display());
        return;
    }
    let folder = ImageFolder::open(&path).unwrap();
    let classes =
        ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];
    assert_eq!(folder.classes(), classes);
    assert_eq!(folder.len(), 10_000);
    for class in 0..10 {
        assert_eq!(folder.labels().iter().filter(|&&label| label == class).count(), 1000);
    }
    let shown = folder.path_of(1000).unwrap().display().to_string();
    assert!(shown.ends_with("cifar10-jpeg-test.tar.gz: test/automobile/0000.jpg"), "{shown}");

    let loader = DataLoader::builder(folder).batch_size(1000).num_workers(2).build().unwrap();
    let mut sums = [0u64; 3];
    for (class, batch) in loader.iter().enumerate() {
        let batch = batch.unwrap();
        assert!(
            batch
                .tensor("label")
                .unwrap()
                .to_vec::<i64>()
                .unwrap()
                .iter()
                .all(|&l| l == class as i64)
        );
        let images = batch.tensor("image").unwrap();
        assert_eq!(images.shape(), [1000, 32, 32, 3]);
        for pixel in images.as_slice::<u8>().unwrap().chunks_exact(3) {
            for (sum, &value) in sums.iter_mut().zip(pixel) {
                *sum += u64::from(value);
            }
        }
    }
    // The means of the test set, as published.
    let means = sums.map(|sum| sum as f64 / (10_000.0 * 1024.0 * 255.0));
    for (mean, published) in means.into_iter().zip([0.4942, 0.4851, 0.4504]) {
        assert!((mean - published).abs() < 0.002, "means {means:?}");
    }
}
