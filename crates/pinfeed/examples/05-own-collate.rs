//! A collate function of one's own: sentences of different lengths, padded to
//! the longest of their batch.
//!
//! ```sh
//! cargo run --example 05-own-collate
//! ```

#![allow(clippy::print_stdout)]

use pinfeed::{BatchMut, BoxError, DType, DataLoader, SampleBuf, Spec};

/// What stands where a sentence has ended.
const PAD: i64 = -1;

/// Makes the fields "tokens", as wide as the longest sample, and "lengths".
fn pad(samples: &[SampleBuf], batch: &mut BatchMut<'_>) -> Result<(), BoxError> {
    let mut sentences = Vec::new();
    for sample in samples {
        let sentence = sample.as_ref().get(0).ok_or("a sample without a field")?;
        sentences.push(sentence.as_slice::<i64>()?);
    }
    let longest = sentences.iter().map(|s| s.len()).max().unwrap_or(0);

    // Asked for once, when the shapes are known: this is the batch's memory,
    // page-locked if the loader's is.
    batch.allocate(
        &Spec::new().tensor("tokens", DType::I64, &[samples.len(), longest])?.tensor(
            "lengths",
            DType::I64,
            &[samples.len()],
        )?,
    )?;
    let tokens = batch.tensor_mut::<i64>(0)?;
    tokens.fill(PAD);
    for (i, sentence) in sentences.iter().enumerate() {
        tokens[i * longest..][..sentence.len()].copy_from_slice(sentence);
    }
    let lengths = batch.tensor_mut::<i64>(1)?;
    for (length, sentence) in lengths.iter_mut().zip(&sentences) {
        *length = sentence.len() as i64;
    }
    Ok(())
}

fn main() -> pinfeed::Result<()> {
    // Sample i counts from i to 1.
    let sentences = pinfeed::from_fn(8, |i| (1..=i as i64).rev().collect::<Vec<_>>());
    let loader =
        DataLoader::builder(sentences).batch_size(3).num_workers(2).collate(pad).build()?;
    for batch in &loader {
        let batch = batch?;
        println!("{}", batch.tensor("tokens")?);
    }
    Ok(())
}
