//! Files to samples.
//!
//! An image folder's way: the bytes are found (`directory`, or `archive` with
//! `index`, `links` and `window`), the paths become classes and samples
//! (`layout`), a sample's bytes are read (`store`) and decoded into its row
//! (`decode`, `jpeg`, `png`). `image_folder` is the public face.

mod archive;
mod decode;
mod directory;
mod image_folder;
mod index;
mod jpeg;
mod layout;
mod links;
mod png;
mod store;
mod window;

pub use image_folder::ImageFolder;
