//! A folder of images, a folder a class; or a `.tar` or `.tar.gz` of one.
//!
//! ```sh
//! cargo run --example 02-image-folder            # some pictures made here
//! cargo run --example 02-image-folder -- PATH    # yours
//! ```

#![allow(clippy::print_stdout)]

use std::path::{Path, PathBuf};

use pinfeed::{BoxError, DataLoader, Dataset, ImageFolder, ToTensor};

fn main() -> Result<(), BoxError> {
    let made = tempfile::tempdir()?;
    let path = match std::env::args_os().nth(1) {
        Some(path) => PathBuf::from(path),
        None => {
            draw(made.path())?;
            made.path().to_owned()
        }
    };

    let folder = ImageFolder::open(path)?;
    println!("{} images of {:?}", folder.len(), folder.classes());

    // Bytes 0..255, rows of pixels, become floats 0..1, a plane a channel.
    let dataset = folder.map(ToTensor::new());
    let loader = DataLoader::builder(dataset).batch_size(4).shuffle(true).num_workers(2).build()?;
    for batch in &loader {
        let batch = batch?;
        println!("{:?}, labels {}", batch.tensor("image")?.shape(), batch.tensor("label")?);
    }
    Ok(())
}

/// Draws five dark and five light squares of 8 by 8 pixels.
fn draw(folder: &Path) -> Result<(), BoxError> {
    for (class, brightness) in [("dark", 0), ("light", 200)] {
        std::fs::create_dir(folder.join(class))?;
        for i in 0..5 {
            let file = std::fs::File::create(folder.join(class).join(format!("{i}.png")))?;
            let mut encoder = png::Encoder::new(file, 8, 8);
            encoder.set_color(png::ColorType::Rgb);
            encoder.write_header()?.write_image_data(&[brightness + 10 * i; 8 * 8 * 3])?;
        }
    }
    Ok(())
}
