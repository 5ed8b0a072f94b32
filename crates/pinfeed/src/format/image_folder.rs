//! [`ImageFolder`]: a folder a class, from a directory or an archive.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::layout::{Arranged, Image};
use super::store::Store;
use super::{archive, decode, directory};
use crate::dataset::{Context, Dataset};
use crate::error::{BoxError, Error, Result};
use crate::sample::Row;

/// Images in class folders: `<class>/x.jpg`, `.jpeg` or `.png` (in any case).
///
/// Sample `i` is the field `image`, u8 `[height, width, 3]`, always RGB, and
/// the field `label`, an i64 scalar: the class's place in
/// [`classes`](ImageFolder::classes). The order of classes and samples is
/// torchvision's: classes by name; within a class by folder, then by name.
///
/// - Folders within a class folder are looked through. What begins with `.` is
///   ignored, and so are files of other names (`Thumbs.db`, `note.txt`).
/// - A single folder that holds all class folders is passed over: an archive
///   of `train/<class>/x.jpg` has the classes, not the class `train`.
/// - JPEG: baseline and progressive, grey, RGB, CMYK. PNG: all of it, 16 bits
///   cut to 8, alpha dropped (not blended). The content decides which it is.
///   EXIF orientation is not applied, as in torchvision.
/// - An image file that is cut, damaged or not an image is an error when it is
///   its sample's turn, with its path. So is one that claims more than 65,535
///   pixels on a side or 512 MiB of pixels; for such a size no memory is taken.
///
/// # Archives
/// A `.tar` is read in place: its headers once, when it is opened, and each
/// image when it is asked for. A `.tar.gz` (`.tgz`) can not be read that way:
/// it is unpacked when it is opened, and its images' files (as they are, not
/// decoded) are held in memory, at most 8 GiB. Nothing is written to disk.
///
/// # Example
/// ```
/// use pinfeed::{Dataset, ImageFolder};
/// # let root = tempfile::tempdir().unwrap();
/// # for class in ["cat", "dog"] {
/// #     std::fs::create_dir(root.path().join(class)).unwrap();
/// #     std::fs::write(root.path().join(class).join("1.jpg"), b"").unwrap();
/// # }
/// # let root = root.path();
///
/// let dataset = ImageFolder::open(root)?;
/// assert_eq!(dataset.classes(), ["cat", "dog"]);
/// assert_eq!(dataset.labels(), [0, 1]);
/// assert_eq!(dataset.len(), 2);
/// # Ok::<(), pinfeed::Error>(())
/// ```
pub struct ImageFolder {
    root: PathBuf,
    store: Store,
    classes: Vec<String>,
    images: Vec<Image>,
    /// The class of each of `images`.
    labels: Vec<i64>,
}

impl ImageFolder {
    /// Opens a directory, a `.tar` or a `.tar.gz`. An archive is known by its
    /// content, whatever its name.
    ///
    /// # Errors
    /// If there is nothing at `path`, or something else. If there are no class
    /// folders, or one has no image: its label would be there without samples.
    /// If an archive is cut or damaged anywhere, also behind the last image.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let root = path.as_ref();
        let (store, Arranged { classes, images }) = find(root)?;
        let mut counts = vec![0usize; classes.len()];
        for image in &images {
            counts[image.class] += 1;
        }
        let empty: Vec<&str> =
            classes.iter().zip(&counts).filter(|(_, n)| **n == 0).map(|(c, _)| &**c).collect();
        if !empty.is_empty() {
            return Err(empty_classes(root, &empty, classes.len()));
        }
        Ok(Self::new(root, store, classes, images))
    }

    /// Opens it with the classes of another data set, mostly of the one that
    /// was trained with: label `i` is `classes[i]`, whichever folders are there.
    ///
    /// Some classes may have no images here. (By [`open`](ImageFolder::open)
    /// all labels behind a missing class's would be one too low.)
    ///
    /// # Errors
    /// As [`open`](ImageFolder::open), but for classes without images. If a
    /// folder is there whose name is not among `classes`.
    pub fn open_with_classes<S: AsRef<str>>(path: impl AsRef<Path>, classes: &[S]) -> Result<Self> {
        let root = path.as_ref();
        let mut number = HashMap::new();
        for (i, class) in classes.iter().map(AsRef::as_ref).enumerate() {
            if number.insert(class, i).is_some() {
                return Err(Error::config(format!("ImageFolder: class `{class}` is given twice")));
            }
        }
        let (store, mut arranged) = find(root)?;
        let mut known = Vec::with_capacity(arranged.classes.len());
        for class in &arranged.classes {
            let Some(&i) = number.get(&**class) else {
                let message =
                    format!("folder `{class}` is none of the {} classes given", classes.len());
                return Err(Error::format(root, message)
                    .with_hint("rename or remove it, or open the data set with its own classes"));
            };
            known.push(i);
        }
        for image in &mut arranged.images {
            image.class = known[image.class];
        }
        // The given classes may stand in any order; samples go by class.
        arranged.images.sort_by_key(|image| image.class);
        let classes = classes.iter().map(|class| class.as_ref().to_owned()).collect();
        Ok(Self::new(root, store, classes, arranged.images))
    }

    fn new(root: &Path, store: Store, classes: Vec<String>, images: Vec<Image>) -> Self {
        let labels = images.iter().map(|image| image.class as i64).collect();
        ImageFolder { root: root.to_owned(), store, classes, images, labels }
    }

    /// The names of the classes; a label is a place in this list.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The label of each sample.
    pub fn labels(&self) -> &[i64] {
        &self.labels
    }

    /// The file of sample `index`, if there is one. In an archive:
    /// `archive.tar: class/x.jpg`.
    pub fn path_of(&self, index: usize) -> Option<PathBuf> {
        self.images.get(index).map(|image| self.shown(image))
    }

    /// The file of sample `index`, not decoded.
    ///
    /// # Errors
    /// If there is no such sample or it can not be read.
    pub fn read(&self, index: usize) -> Result<Vec<u8>> {
        let image = self.image(index)?;
        let mut bytes = Vec::new();
        self.store
            .read(&self.root, image, &mut Vec::new(), &mut bytes)
            .map_err(|e| e.at_path(self.shown(image)))?;
        Ok(bytes)
    }

    fn image(&self, index: usize) -> Result<&Image> {
        self.images.get(index).ok_or_else(|| {
            let len = self.images.len();
            Error::config(format!("ImageFolder: index {index} is out of range for {len} samples"))
        })
    }

    fn shown(&self, image: &Image) -> PathBuf {
        let name = OsString::from_vec(image.path.to_vec());
        match self.store {
            Store::Directory => self.root.join(name),
            Store::Tar(_) | Store::Memory(_) => {
                let mut shown = self.root.clone().into_os_string();
                shown.push(": ");
                shown.push(name);
                shown.into()
            }
        }
    }
}

impl Dataset for ImageFolder {
    fn len(&self) -> usize {
        self.images.len()
    }

    fn get(&self, index: usize, row: &mut Row<'_>, cx: &mut Context) -> Result<(), BoxError> {
        let image = self.image(index)?;
        self.store
            .with_bytes(&self.root, image, cx, |bytes, cx| decode::decode(bytes, row, cx))
            .map_err(|e| e.at_path(self.shown(image)))?;
        row.named("label").put(self.labels[index])?;
        Ok(())
    }
}

impl fmt::Debug for ImageFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImageFolder")
            .field("root", &self.root)
            .field("classes", &self.classes.len())
            .field("images", &self.images.len())
            .finish()
    }
}

/// Finds all images below `root`.
fn find(root: &Path) -> Result<(Store, Arranged)> {
    let kind = std::fs::metadata(root).map_err(|e| {
        Error::format(root, format!("can not be opened: {e}"))
            .with_source(e)
            .with_hint("give a directory of class folders, a .tar or a .tar.gz of one")
    })?;
    let (store, found) = if kind.is_dir() {
        (Store::Directory, directory::walk(root)?)
    } else if kind.is_file() {
        archive::open(root)?
    } else {
        return Err(Error::format(root, "is neither a directory nor a file")
            .with_hint("give a directory of class folders, a .tar or a .tar.gz of one"));
    };
    Ok((store, found.arrange(root)?))
}

#[cold]
fn empty_classes(root: &Path, empty: &[&str], classes: usize) -> Error {
    const SHOWN: usize = 5;
    let mut names: Vec<String> = empty.iter().take(SHOWN).map(|c| format!("`{c}`")).collect();
    if empty.len() > SHOWN {
        names.push(format!("{} more", empty.len() - SHOWN));
    }
    let message = format!(
        "of {classes} class folders these hold no image (.jpg, .jpeg, .png): {}",
        names.join(", ")
    );
    Error::format(root, message)
        .with_hint("remove the folder, or name the classes with `ImageFolder::open_with_classes`")
}
