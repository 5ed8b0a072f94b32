//! From paths to classes: what a folder of class folders means.
//!
//! Paths are bytes relative to the folder or archive, with `/` between their
//! parts, none of them empty, `.` or `..`. The order is torchvision's.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use super::store::Span;
use crate::error::{Error, Result};

/// The names of files that are taken for images.
const EXTENSIONS: [&[u8]; 3] = [b"jpg", b"jpeg", b"png"];

/// A path without the parts that mean nothing.
pub(super) enum Relative {
    /// A name to look at.
    Plain(Vec<u8>),
    /// Hidden (a part begins with `.`), or nothing at all.
    Ignored,
    /// Leads out of the folder.
    Outside,
}

/// The path as this module wants it.
pub(super) fn relative(path: &[u8]) -> Relative {
    let mut out = Vec::with_capacity(path.len());
    for part in path.split(|&b| b == b'/') {
        match part {
            b"" | b"." => {}
            b".." => return Relative::Outside,
            [b'.', ..] => return Relative::Ignored,
            part => {
                if !out.is_empty() {
                    out.push(b'/');
                }
                out.extend_from_slice(part);
            }
        }
    }
    if out.is_empty() { Relative::Ignored } else { Relative::Plain(out) }
}

/// Is the file called an image, by its extension?
pub(super) fn is_image(path: &[u8]) -> bool {
    let (_, name) = split(path);
    let Some(dot) = name.iter().rposition(|&b| b == b'.') else { return false };
    EXTENSIONS.iter().any(|known| name[dot + 1..].eq_ignore_ascii_case(known))
}

/// The folder of a path, and the name in it.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&b| b == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

/// What was found on disk or in an archive.
#[derive(Default)]
pub(super) struct Found {
    folders: BTreeSet<Vec<u8>>,
    images: Vec<(Vec<u8>, Span)>,
}

impl Found {
    /// Notes a folder, and those it lies in.
    pub(super) fn folder(&mut self, path: &[u8]) {
        let mut path = path;
        while !path.is_empty() && !self.folders.contains(path) {
            self.folders.insert(path.to_owned());
            path = split(path).0;
        }
    }

    /// Notes an image.
    pub(super) fn image(&mut self, path: Vec<u8>, span: Span) {
        self.images.push((path, span));
    }

    /// All folders that have images in them, or in folders below.
    pub(super) fn folders_of_images(&self) -> HashSet<&[u8]> {
        let mut folders = HashSet::new();
        for (path, _) in &self.images {
            let mut folder = split(path).0;
            while folders.insert(folder) && !folder.is_empty() {
                folder = split(folder).0;
            }
        }
        folders
    }

    /// The folders directly in `folder`, by name.
    fn children<'a>(&'a self, folder: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.folders.iter().map(Vec::as_slice).filter(move |path| split(path).0 == folder)
    }

    /// The folder that holds the class folders: the root, or what lies below
    /// it as long as that is one folder with nothing beside it.
    fn top(&self) -> &[u8] {
        let with_images: HashSet<&[u8]> =
            self.images.iter().map(|(path, _)| split(path).0).collect();
        let mut top: &[u8] = b"";
        loop {
            let mut children = self.children(top);
            let (Some(child), None) = (children.next(), children.next()) else { return top };
            let is_class = with_images.contains(child) || self.children(child).next().is_none();
            if is_class || with_images.contains(top) {
                return top;
            }
            top = child;
        }
    }

    /// Sorts it into classes.
    pub(super) fn arrange(mut self, root: &Path) -> Result<Arranged> {
        let top = self.top().to_owned();
        let mut classes = Vec::new();
        let mut number = HashMap::new();
        for folder in self.children(&top) {
            let name = std::str::from_utf8(split(folder).1).map_err(|_| {
                let shown = String::from_utf8_lossy(folder);
                Error::format(
                    root,
                    format!("the class folder `{shown}` has a name that is not UTF-8"),
                )
                .with_hint("rename it: the classes are given as text")
            })?;
            number.insert(name.as_bytes().to_owned(), classes.len());
            classes.push(name.to_owned());
        }

        let skip = if top.is_empty() { 0 } else { top.len() + 1 };
        let mut strays = 0;
        let mut images = Vec::with_capacity(self.images.len());
        for (path, span) in std::mem::take(&mut self.images) {
            let below = path.get(skip..).unwrap_or_default();
            let class = below
                .iter()
                .position(|&b| b == b'/')
                .and_then(|slash| number.get(&below[..slash]).copied());
            match class {
                Some(class) => images.push(Image { path: path.into_boxed_slice(), span, class }),
                None => strays += 1,
            }
        }
        if classes.is_empty() {
            return Err(no_classes(root, strays));
        }
        if strays > 0 {
            tracing::warn!(
                path = %root.display(),
                "{strays} images lie beside the class folders and belong to no class: left out"
            );
        }
        images.sort_unstable_by(Image::order);
        Ok(Arranged { classes, images })
    }
}

/// An image, its place and its class.
pub(super) struct Image {
    pub(super) path: Box<[u8]>,
    pub(super) span: Span,
    pub(super) class: usize,
}

impl Image {
    /// torchvision's order: by class, then by folder, then by name. The files
    /// directly in a folder come before those of the folders in it.
    fn order(&self, other: &Self) -> Ordering {
        let key = |image: &Self| image.class;
        key(self).cmp(&key(other)).then_with(|| split(&self.path).cmp(&split(&other.path)))
    }
}

/// Classes by name, and all images in the order of the samples.
pub(super) struct Arranged {
    pub(super) classes: Vec<String>,
    pub(super) images: Vec<Image>,
}

#[cold]
fn no_classes(root: &Path, images: usize) -> Error {
    let message = match images {
        0 => "holds no class folders".to_owned(),
        n => format!("holds {n} images, but not in class folders"),
    };
    Error::format(root, message).with_hint(
        "lay it out as <class>/x.jpg, with a folder a class (.jpg, .jpeg and .png are read)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arranged(paths: &[&str]) -> (Vec<String>, Vec<String>) {
        let mut found = Found::default();
        for path in paths {
            found.folder(split(path.as_bytes()).0);
            if is_image(path.as_bytes()) {
                found.image(path.as_bytes().to_owned(), Span::default());
            }
        }
        let arranged = found.arrange(Path::new("root")).unwrap();
        let text = |image: &Image| String::from_utf8(image.path.to_vec()).unwrap();
        (arranged.classes, arranged.images.iter().map(text).collect())
    }

    #[test]
    fn order_is_torchvisions() {
        // What sorted(os.walk(...)) gives: folders compare as whole strings.
        let (classes, paths) = arranged(&[
            "b/x.png",
            "a/sub/1.jpg",
            "a/sub-2/1.jpg",
            "a/z.jpg",
            "a b/q.jpg",
            "a/sub/deep/0.jpg",
        ]);
        assert_eq!(classes, ["a", "a b", "b"]);
        assert_eq!(
            paths,
            ["a/z.jpg", "a/sub/1.jpg", "a/sub-2/1.jpg", "a/sub/deep/0.jpg", "a b/q.jpg", "b/x.png"]
        );
    }

    #[test]
    fn single_top_folders_go() {
        assert_eq!(arranged(&["train/a/1.jpg", "train/b/1.jpg"]).0, ["a", "b"]);
        assert_eq!(arranged(&["x/train/a/1.jpg", "x/train/b/1.jpg", "x/README"]).0, ["a", "b"]);
        assert_eq!(arranged(&["a/1.jpg"]).0, ["a"]);
        assert_eq!(arranged(&["a/1.jpg", "a/more/2.jpg"]).0, ["a"]);
        assert_eq!(arranged(&["train/a/1.jpg", "val/a/1.jpg"]).0, ["train", "val"]);
    }

    #[test]
    fn paths_are_cleaned() {
        let plain = |path: &str| match relative(path.as_bytes()) {
            Relative::Plain(path) => String::from_utf8(path).unwrap(),
            Relative::Ignored => "ignored".to_owned(),
            Relative::Outside => "outside".to_owned(),
        };
        assert_eq!(plain("./a//b/./c.jpg"), "a/b/c.jpg");
        assert_eq!(plain("/a/b.jpg"), "a/b.jpg");
        assert_eq!(plain("a/.ipynb_checkpoints/b.jpg"), "ignored");
        assert_eq!(plain("./"), "ignored");
        assert_eq!(plain("a/../../b.jpg"), "outside");
    }

    #[test]
    fn extensions_have_any_case() {
        assert!(is_image(b"a/B.JPG") && is_image(b"x.Jpeg") && is_image(b"x.y.png"));
        assert!(!is_image(b"a.jpg/note.txt") && !is_image(b"jpg") && !is_image(b"Thumbs.db"));
    }
}
