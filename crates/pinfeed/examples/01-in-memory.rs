//! Tensors in memory: shuffled, in batches, page-locked by the operating
//! system.
//!
//! ```sh
//! cargo run --example 01-in-memory
//! ```

#![allow(clippy::print_stdout)]

use pinfeed::{DataLoader, PinMemory, Tensor, TensorDataset};

fn main() -> pinfeed::Result<()> {
    // Ten points on a line, and whether each is on its right half.
    let points: Vec<f32> = (0..10).map(|i| i as f32 / 10.0).collect();
    let right: Vec<i64> = points.iter().map(|&x| i64::from(x >= 0.5)).collect();
    let dataset = TensorDataset::new([points.into(), right.into()])?;

    let loader = DataLoader::builder(dataset)
        .batch_size(4)
        .shuffle(true)
        .seed(0)
        .num_workers(2)
        .pin_memory(PinMemory::PageLock)
        .build()?;

    // Each loop is an epoch, with an order of its own.
    for epoch in 0..2 {
        for batch in &loader {
            let batch = batch?;
            let (number, pinning) = (batch.number(), batch.pinning());
            let (x, y): (Tensor, Tensor) = batch.try_into()?;
            println!("epoch {epoch}, batch {number}: {x} {y}");
            println!("    {pinning}");
        }
    }
    Ok(())
}
