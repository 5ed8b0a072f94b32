//! `(x - mean) / std`, channel by channel.

use super::{first, is, name_like, spec_with_first, write_rest};
use crate::dataset::{Context, Transform};
use crate::error::{BoxError, Error, Result};
use crate::sample::{Row, SampleRef, Spec};
use crate::tensor::DType;

/// Normalises images of floats: `(x - mean) / std` for each channel, in f32
/// and in that order, as torchvision's `Normalize`.
///
/// The first field must be f32 `[channels, height, width]`; the others are
/// passed on. Right behind [`ToTensor`](crate::ToTensor), use
/// [`ToTensor::normalize`](crate::ToTensor::normalize): one pass less.
///
/// ```
/// let normalize = pinfeed::Normalize::new(&[0.5, 0.25], &[0.5, 0.25])?;
/// let mut out = [0.0; 4];
/// normalize.convert(&[0.0, 1.0, 0.0, 1.0], 2, &mut out)?;
/// assert_eq!(out, [-1.0, 1.0, -1.0, 3.0]);
/// # Ok::<(), pinfeed::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Normalize {
    /// Mean and standard deviation of each channel; one for all if it is one.
    channels: Box<[(f32, f32)]>,
}

impl Normalize {
    /// With a mean and a standard deviation a channel, or one of each for all
    /// channels.
    ///
    /// # Errors
    /// If they are not equally many, or none; if a standard deviation is 0; if
    /// a value is infinite or no number.
    pub fn new(mean: &[f32], std: &[f32]) -> Result<Self> {
        if mean.len() != std.len() || mean.is_empty() {
            return Err(Error::config(format!(
                "Normalize: {} means and {} standard deviations given",
                mean.len(),
                std.len()
            ))
            .with_hint("give one of each a channel, or one of each for all channels"));
        }
        for (channel, (mean, std)) in mean.iter().zip(std).enumerate() {
            if !(mean.is_finite() && std.is_finite()) || *std == 0.0 {
                return Err(Error::config(format!(
                    "Normalize: mean {mean} and standard deviation {std} given for channel {channel}"
                ))
                .with_hint("both must be finite, and the deviation not 0: it divides"));
            }
        }
        Ok(Normalize { channels: mean.iter().copied().zip(std.iter().copied()).collect() })
    }

    /// How many channels it is for; 1 means any number.
    pub(super) fn len(&self) -> usize {
        self.channels.len()
    }

    /// An error if it is not for so many channels.
    pub(super) fn check(&self, channels: usize) -> Result<()> {
        if self.len() == 1 || self.len() == channels {
            return Ok(());
        }
        Err(Error::tensor(format!(
            "Normalize: the image has {channels} channels, and {} means were given",
            self.len()
        ))
        .with_hint("give one mean and one standard deviation a channel, or one for all"))
    }

    /// One value of a channel.
    #[inline]
    pub(super) fn value(&self, channel: usize, x: f32) -> f32 {
        let (mean, std) = self.channels[if self.len() == 1 { 0 } else { channel }];
        (x - mean) / std
    }

    /// Normalises an image of `channels` planes from `src` to `dst`.
    ///
    /// # Errors
    /// If `src` and `dst` differ in length, that is not a multiple of
    /// `channels`, or this is not for so many channels.
    pub fn convert(&self, src: &[f32], channels: usize, dst: &mut [f32]) -> Result<()> {
        self.check(channels)?;
        if src.len() != dst.len() || !src.len().is_multiple_of(channels) {
            return Err(Error::tensor(format!(
                "Normalize: {} values of {channels} channels do not go to {} places",
                src.len(),
                dst.len()
            )));
        }
        if src.is_empty() {
            return Ok(());
        }
        let plane = src.len() / channels;
        for (channel, (src, dst)) in
            src.chunks_exact(plane).zip(dst.chunks_exact_mut(plane)).enumerate()
        {
            for (dst, &x) in dst.iter_mut().zip(src) {
                *dst = self.value(channel, x);
            }
        }
        Ok(())
    }
}

impl Transform for Normalize {
    fn apply(
        &self,
        sample: SampleRef<'_>,
        row: &mut Row<'_>,
        _: &mut Context,
    ) -> Result<(), BoxError> {
        let field = first(sample, "Normalize")?;
        let (Some(DType::F32), &[channels, _, _]) = (field.dtype(), field.shape()) else {
            return Err(Error::tensor(format!(
                "Normalize: the first field is {}, f32 [channels, height, width] is needed",
                is(field)
            ))
            .with_hint("use ToTensor before it")
            .into());
        };
        name_like(field, row);
        self.convert(field.as_slice()?, channels, row.tensor(field.shape())?)?;
        write_rest(sample, row)
    }

    fn spec(&self, spec: &Spec) -> Option<Spec> {
        spec_with_first(spec, DType::F32, |dtype, shape| match (dtype, shape) {
            (DType::F32, &[c, h, w]) if self.check(c).is_ok() => Some([c, h, w]),
            _ => None,
        })
    }
}
