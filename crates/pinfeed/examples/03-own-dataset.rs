//! A data set of one's own: its length, and how to write one sample.
//!
//! ```sh
//! cargo run --example 03-own-dataset
//! ```

#![allow(clippy::print_stdout)]

use pinfeed::{BoxError, Context, DataLoader, Dataset, Row};

/// Sample `i` is the picture of a bar `i` pixels high, and its height.
struct Bars;

impl Dataset for Bars {
    fn len(&self) -> usize {
        9
    }

    fn get(&self, index: usize, row: &mut Row<'_>, _: &mut Context) -> Result<(), BoxError> {
        // The picture's place in the batch: what is written here is not copied
        // again. All of it must be written.
        let picture = row.named("picture").tensor::<u8>(&[8, 2])?;
        for (y, line) in picture.chunks_exact_mut(2).enumerate() {
            line.fill(if y < index { 255 } else { 0 });
        }
        row.named("height").put(index as i64)?;
        Ok(())
    }
}

fn main() -> pinfeed::Result<()> {
    let loader = DataLoader::builder(Bars).batch_size(3).num_workers(2).build()?;
    for batch in &loader {
        let batch = batch?;
        let lit = batch.tensor("picture")?.as_slice::<u8>()?.iter().filter(|&&p| p > 0).count();
        println!("{:?}: {lit} lit pixels, heights {}", batch.fields(), batch.tensor("height")?);
    }
    Ok(())
}
