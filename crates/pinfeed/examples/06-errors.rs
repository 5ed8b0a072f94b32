//! What goes wrong: an error comes at its batch's turn and says where it
//! happened, and the epoch goes on if asked.
//!
//! ```sh
//! cargo run --example 06-errors
//! ```

#![allow(clippy::print_stdout)]

use pinfeed::DataLoader;

fn main() -> pinfeed::Result<()> {
    // A setting that can not be: refused before anything runs.
    let numbers = pinfeed::from_fn(8, |i| i as f32);
    if let Err(error) = DataLoader::builder(numbers).batch_size(0).build() {
        println!("build: {error}");
    }

    // Sample 3 can not be read, and sample 5 is a bug, whose panic goes to
    // stderr too, as always.
    let numbers = pinfeed::try_from_fn(8, |i| match i {
        3 => Err("the file is gone".into()),
        5 => panic!("index 5 was not thought of"),
        _ => Ok(i as f32),
    });
    let loader = DataLoader::builder(numbers).batch_size(2).num_workers(2).build()?;

    // `?` on each batch would end the loop at the first error. This one goes
    // on, and keeps what could be loaded.
    for batch in &loader {
        match batch {
            Ok(batch) => println!("batch {}: {}", batch.number(), batch.tensor_at(0)?),
            Err(error) => {
                println!("batch {:?}: {error}", error.batch());
                println!("    sample {:?}, panic: {}", error.index(), error.is_panic());
            }
        }
    }
    Ok(())
}
