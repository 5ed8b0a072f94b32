//! Which data, and opening it: always images as f32 tensors, with labels.

use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, anyhow};
use pinfeed::{Dataset, ImageFolder, Synthetic, ToTensor};

use crate::args::DataArg;
use crate::table::count;

/// Where data is looked for, if none is given.
const HERE: &str = "./data";

/// CIFAR-10's: height, width, channels.
const SHAPE: [usize; 3] = [32, 32, 3];
const CLASSES: usize = 10;

/// Folders are looked into so deep for a first image.
const DEPTH: usize = 3;

/// What to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Given(PathBuf),
    /// In [`HERE`].
    Found(PathBuf),
    /// So many images, because they were asked for, or nothing was found.
    Synthetic {
        len: usize,
        asked: bool,
    },
}

impl Source {
    pub(crate) fn choose(arg: Option<&DataArg>) -> Self {
        match arg {
            Some(DataArg::Path(path)) => Source::Given(path.clone()),
            Some(DataArg::Synthetic(len)) => Source::Synthetic { len: *len, asked: true },
            None => match find(Path::new(HERE)) {
                Some(path) => Source::Found(path),
                None => Source::Synthetic { len: DataArg::CIFAR_10, asked: false },
            },
        }
    }
}

/// As the table's head and the spinner call it.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Given(path) => write!(f, "{}", path.display()),
            Source::Found(path) => write!(f, "{} (found there)", path.display()),
            Source::Synthetic { asked: true, .. } => write!(f, "noise of CIFAR-10's shape"),
            Source::Synthetic { asked: false, .. } => {
                write!(f, "noise of CIFAR-10's shape (no images in {HERE}, no --data)")
            }
        }
    }
}

/// An image folder or an archive in `root`, if there is one. Folders first;
/// `train` first among them, and archives with "train" in their name.
fn find(root: &Path) -> Option<PathBuf> {
    let train = root.join("train");
    for folder in [&*train, root] {
        if has_class_folders(folder, DEPTH) {
            return Some(folder.to_owned());
        }
    }
    let mut archives: Vec<(bool, PathBuf)> = entries(root)
        .filter(|path| path.is_file())
        .filter_map(|path| {
            let name = path.file_name()?.to_string_lossy().to_lowercase();
            let known = [".tar", ".tar.gz", ".tgz"].iter().any(|end| name.ends_with(end));
            known.then(|| (!name.contains("train"), path.clone()))
        })
        .collect();
    archives.sort();
    archives.into_iter().next().map(|(_, path)| path)
}

/// Is there a folder in `root` (or in one of its folders) with an image in it?
fn has_class_folders(root: &Path, depth: usize) -> bool {
    entries(root).filter(|path| path.is_dir()).any(|folder| {
        entries(&folder).any(|path| is_image(&path))
            || (depth > 1 && has_class_folders(&folder, depth - 1))
    })
}

/// What is in a folder and not hidden; nothing if it can not be read.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let hidden = |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(b".");
    entries.filter(move |entry| !hidden(entry)).map(|entry| entry.path())
}

fn is_image(path: &Path) -> bool {
    let known =
        |extension: &str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(extension));
    ["jpg", "jpeg", "png"].into_iter().any(known)
}

/// A data set, opened.
pub(crate) struct Data {
    /// "synthetic", "folder", "tar" or "tar.gz".
    pub(crate) kind: &'static str,
    pub(crate) path: Option<PathBuf>,
    pub(crate) dataset: Arc<dyn Dataset>,
    /// For each class, its samples.
    pub(crate) label_counts: Vec<u64>,
}

impl Data {
    pub(crate) fn open(source: &Source) -> Result<Self> {
        match source {
            Source::Given(path) => Ok(Self::open_images(path)?),
            Source::Found(path) => Self::open_images(path)
                .map_err(|e| anyhow!("{e}; or leave {HERE} aside: --data synthetic")),
            Source::Synthetic { len, .. } => Ok(Self::synthetic(*len)?),
        }
    }

    fn open_images(path: &Path) -> pinfeed::Result<Self> {
        let images = ImageFolder::open(path)?;
        Ok(Data {
            kind: kind(path),
            path: Some(path.to_owned()),
            label_counts: counts(images.labels(), images.classes().len()),
            dataset: Arc::new(images.map(ToTensor::new())),
        })
    }

    fn synthetic(len: usize) -> pinfeed::Result<Self> {
        let images = Synthetic::images(len, SHAPE, CLASSES, 0)?;
        Ok(Data {
            kind: "synthetic",
            path: None,
            label_counts: counts(images.labels(), images.classes()),
            dataset: Arc::new(images.map(ToTensor::new())),
        })
    }

    pub(crate) fn samples(&self) -> usize {
        self.dataset.len()
    }

    pub(crate) fn classes(&self) -> usize {
        self.label_counts.len()
    }
}

/// "50,000 images in 10 classes (tar.gz)"
impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (samples, classes) = (count(self.samples() as u64), count(self.classes() as u64));
        write!(f, "{samples} images in {classes} classes ({})", self.kind)
    }
}

/// What could be opened as images is a folder, a .tar or, by its first two
/// bytes, a .tar.gz.
fn kind(path: &Path) -> &'static str {
    if path.is_dir() {
        return "folder";
    }
    let mut magic = [0; 2];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    if read.is_ok() && magic == [0x1f, 0x8b] { "tar.gz" } else { "tar" }
}

fn counts(labels: &[i64], classes: usize) -> Vec<u64> {
    let mut counts = vec![0; classes];
    for &label in labels {
        counts[label as usize] += 1;
    }
    counts
}
