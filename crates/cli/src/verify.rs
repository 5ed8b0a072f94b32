//! `--verify`: what an epoch delivers, against what the data set has.

use anyhow::{Result, bail};
use pinfeed::Tensor;

use crate::measure::Loader;
use crate::progress::Progress;

/// What an epoch delivered.
#[derive(Clone, Debug)]
pub(crate) struct Verified {
    /// For each channel, over all pixels.
    pub(crate) channel_mean: Vec<f64>,
    /// For each class.
    pub(crate) label_counts: Vec<u64>,
}

impl Verified {
    /// Loads an epoch; an error if its labels are not those of the data.
    pub(crate) fn run(loader: &Loader, expected: &[u64], progress: &Progress) -> Result<Self> {
        progress.now(format_args!("pin_memory {}, verifying", loader.pin_memory()));
        let mut channels = Channels::default();
        let mut label_counts = vec![0; expected.len()];
        for batch in loader {
            let (images, labels): (Tensor, Tensor) = batch?.try_into()?;
            channels.add(&images)?;
            for &label in labels.as_slice::<i64>()? {
                match usize::try_from(label).ok().and_then(|class| label_counts.get_mut(class)) {
                    Some(count) => *count += 1,
                    None => bail!("label {label} came, of {} classes", expected.len()),
                }
            }
            progress.step();
        }
        if let Some(class) = (0..expected.len()).find(|&i| label_counts[i] != expected[i]) {
            bail!(
                "class {class} has {} samples and {} came: this is a bug of pinfeed",
                expected[class],
                label_counts[class]
            );
        }
        Ok(Verified { channel_mean: channels.means(), label_counts })
    }
}

/// Sums of pixels.
#[derive(Default)]
struct Channels {
    sums: Vec<f64>,
    /// In each channel.
    pixels: usize,
}

impl Channels {
    /// Adds images: f32 `[n, channels, height, width]`.
    fn add(&mut self, images: &Tensor) -> Result<()> {
        let &[n, channels, height, width] = images.shape() else {
            bail!("images of shape {:?} came", images.shape());
        };
        let plane = height * width;
        self.sums.resize(channels.max(self.sums.len()), 0.0);
        self.pixels += n * plane;
        for (i, pixels) in images.as_slice::<f32>()?.chunks_exact(plane.max(1)).enumerate() {
            self.sums[i % channels] += pixels.iter().map(|&v| f64::from(v)).sum::<f64>();
        }
        Ok(())
    }

    fn means(&self) -> Vec<f64> {
        self.sums.iter().map(|sum| sum / self.pixels as f64).collect()
    }
}
