//! Finding the images of a directory.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::layout::{Found, is_image};
use super::store::Span;
use crate::error::{Error, Result};

/// All folders and images below `root`. Symbolic links are followed, as
/// torchvision does; one that leads back to a folder it lies in is passed over.
pub(super) fn walk(root: &Path) -> Result<Found> {
    let mut found = Found::default();
    enter(root, Vec::new(), &mut Vec::new(), &mut found)?;
    Ok(found)
}

/// Looks through the folder `here`, whose path below the root is `below`.
/// `outer` are the folders it lies in, by device and inode.
fn enter(
    here: &Path,
    below: Vec<u8>,
    outer: &mut Vec<(u64, u64)>,
    found: &mut Found,
) -> Result<()> {
    let folder = fs::metadata(here).map_err(|e| unreadable(here, e))?;
    let id = (folder.dev(), folder.ino());
    if outer.contains(&id) {
        tracing::warn!(path = %here.display(), "a link back to a folder it lies in: not followed");
        return Ok(());
    }
    found.folder(&below);

    // The directory is closed before those in it are opened: the depth costs
    // no file descriptors.
    let mut folders = Vec::new();
    for entry in fs::read_dir(here).map_err(|e| unreadable(here, e))? {
        let entry = entry.map_err(|e| unreadable(here, e))?;
        let name = entry.file_name();
        if name.as_bytes().starts_with(b".") {
            continue;
        }
        let mut kind = entry.file_type().map_err(|e| unreadable(&entry.path(), e))?;
        let image = is_image(name.as_bytes());
        if kind.is_symlink() {
            kind = match fs::metadata(entry.path()) {
                Ok(target) => target.file_type(),
                // A dead link is a missing image, or nothing to us.
                Err(e) if image => return Err(unreadable(&entry.path(), e)),
                Err(_) => continue,
            };
        }
        let path = joined(&below, name.as_bytes());
        if kind.is_dir() {
            folders.push((entry.path(), path));
        } else if image && kind.is_file() {
            found.image(path, Span::default());
        } else if image {
            // Opening a pipe would wait for ever.
            return Err(Error::format(entry.path(), "has an image's name, but is not a file")
                .with_hint("remove or rename it"));
        }
    }

    outer.push(id);
    for (path, below) in folders {
        enter(&path, below, outer, found)?;
    }
    outer.pop();
    Ok(())
}

fn joined(below: &[u8], name: &[u8]) -> Vec<u8> {
    if below.is_empty() { name.to_owned() } else { [below, b"/", name].concat() }
}

#[cold]
fn unreadable(path: &Path, error: std::io::Error) -> Error {
    Error::format(path, format!("can not be read: {error}")).with_source(error)
}
