//! Small images, folders and archives, and reading a sample.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use pinfeed::{DataLoader, Error, ImageFolder, Subset};

/// A sample: shape and pixels of the image, label.
#[derive(Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) shape: Vec<usize>,
    pub(crate) pixels: Vec<u8>,
    pub(crate) label: i64,
}

/// Sample `index`, through a loader.
pub(crate) fn get(folder: &Arc<ImageFolder>, index: usize) -> Result<Sample, Error> {
    let one = Subset::new(Arc::clone(folder), [index])?;
    let loader = DataLoader::builder(one).batch_size(1).build()?;
    let batch = loader.into_iter().next().expect("one batch")?;
    let image = batch.tensor("image")?.get(0)?;
    Ok(Sample {
        shape: image.shape().to_vec(),
        pixels: image.to_vec()?,
        label: batch.tensor("label")?.get(0)?.item()?,
    })
}

/// Decodes each of these files, as `a/<number>.jpg`, which decides nothing.
pub(crate) fn decode_all(files: &[Vec<u8>]) -> Vec<Result<Sample, Error>> {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("a")).unwrap();
    for (i, bytes) in files.iter().enumerate() {
        std::fs::write(root.path().join(format!("a/{i:06}.jpg")), bytes).unwrap();
    }
    let folder = open(root.path());
    (0..files.len()).map(|i| get(&folder, i)).collect()
}

/// Opens what must be fine.
pub(crate) fn open(path: impl AsRef<Path>) -> Arc<ImageFolder> {
    Arc::new(ImageFolder::open(path).unwrap())
}

/// The error of opening what is not.
pub(crate) fn refused(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    let error = ImageFolder::open(path).unwrap_err();
    assert!(error.is_format(), "{error}");
    assert!(error.to_string().contains(&path.display().to_string()), "no path in: {error}");
    error.to_string()
}

/// The samples' paths below `root` (or in the archive).
pub(crate) fn paths(folder: &ImageFolder, root: impl AsRef<Path>) -> Vec<String> {
    let text = |i| folder.path_of(i).unwrap().display().to_string();
    let root = root.as_ref().display().to_string();
    (0..folder.labels().len())
        .map(|i| text(i).trim_start_matches(&root).trim_start_matches([':', ' ', '/']).to_owned())
        .collect()
}

pub(crate) fn png(
    width: u32,
    height: u32,
    color: png::ColorType,
    depth: png::BitDepth,
    data: &[u8],
    palette: Option<(&[u8], &[u8])>,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(color);
    encoder.set_depth(depth);
    if let Some((colours, alpha)) = palette {
        encoder.set_palette(colours.to_owned());
        encoder.set_trns(alpha.to_owned());
    }
    encoder.write_header().unwrap().write_image_data(data).unwrap();
    bytes
}

/// One grey pixel: tells samples apart.
pub(crate) fn dot(value: u8) -> Vec<u8> {
    png(1, 1, png::ColorType::Rgb, png::BitDepth::Eight, &[value; 3], None)
}

/// A directory of these files.
pub(crate) fn directory(files: &[(&str, Vec<u8>)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, bytes) in files {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    root
}

/// An archive of these files, each followed by its padding.
pub(crate) fn tar(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, bytes) in files {
        append(&mut builder, path, bytes);
    }
    builder.into_inner().unwrap()
}

pub(crate) fn append(builder: &mut tar::Builder<Vec<u8>>, path: &str, bytes: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    builder.append_data(&mut header, path, bytes).unwrap();
}

pub(crate) fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A file of these bytes, in a folder that goes with the value.
pub(crate) struct File {
    folder: tempfile::TempDir,
    name: String,
}

impl File {
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }
}

pub(crate) fn file(name: &str, bytes: &[u8]) -> File {
    let file = File { folder: tempfile::tempdir().unwrap(), name: name.to_owned() };
    std::fs::write(file.path(), bytes).unwrap();
    file
}
