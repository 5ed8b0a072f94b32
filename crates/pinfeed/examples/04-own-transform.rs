//! A transform of one's own: a function of a sample that writes another.
//!
//! ```sh
//! cargo run --example 04-own-transform
//! ```

#![allow(clippy::print_stdout)]

use pinfeed::{BoxError, Context, DataLoader, Dataset, Row, SampleRef, Tensor, TensorDataset};

/// Turns half of the lines around, chosen by chance, and scales bytes to 0..1.
fn augment(sample: SampleRef<'_>, row: &mut Row<'_>, cx: &mut Context) -> Result<(), BoxError> {
    let (Some(line), Some(label)) = (sample.get(0), sample.get(1)) else {
        return Err("a line and a label are needed".into());
    };
    let values = line.as_slice::<u8>()?;
    // The same for the same seed, epoch and sample, whatever the number of
    // workers.
    let turn = cx.sample_seed() % 2 == 1;

    let out = row.named("line").tensor::<f32>(line.shape())?;
    for (i, out) in out.iter_mut().enumerate() {
        let from = if turn { values.len() - 1 - i } else { i };
        *out = f32::from(values[from]) / 255.0;
    }
    label.write(row.named("label"))?;
    Ok(())
}

fn main() -> pinfeed::Result<()> {
    let lines = Tensor::from_vec([0u8, 51, 102, 255].repeat(6), &[6, 4])?;
    let labels = Tensor::from((0..6i64).collect::<Vec<_>>());
    let dataset = TensorDataset::new([lines, labels])?.map(augment);

    let loader = DataLoader::builder(dataset).batch_size(3).seed(0).num_workers(2).build()?;
    for epoch in 0..2 {
        for batch in &loader {
            let batch = batch?;
            println!("epoch {epoch}: {} {}", batch.tensor("label")?, batch.tensor("line")?);
        }
    }
    Ok(())
}
