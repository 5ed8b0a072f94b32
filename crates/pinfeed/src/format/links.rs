//! Members of an archive that are links to others.
//!
//! Unpacked, they would be files like all others, so they are samples too.

use std::collections::HashMap;
use std::path::Path;

use super::layout::{Found, Relative, is_image, relative, split};
use super::store::Span;
use crate::error::{Error, Result};

/// More steps than this from link to link: they go in a circle. Linux's limit.
const MAX_STEPS: usize = 40;

/// A link, as its header has it.
pub(super) struct Link {
    pub(super) path: Vec<u8>,
    pub(super) target: Vec<u8>,
    /// A hard link's target counts from the archive's root, a symbolic link's
    /// from the folder that the link is in.
    pub(super) hard: bool,
}

#[derive(Default)]
pub(super) struct Links(HashMap<Vec<u8>, Link>);

impl Links {
    pub(super) fn add(&mut self, link: Link) {
        self.0.insert(link.path.clone(), link);
    }

    /// The links that are called images, with the place of what they lead to.
    pub(super) fn resolve(
        &self,
        images: &HashMap<Vec<u8>, Span>,
        archive: &Path,
    ) -> Result<Vec<(Vec<u8>, Span)>> {
        let mut resolved = Vec::new();
        for link in self.0.values().filter(|link| is_image(&link.path)) {
            // A file of the same name stands.
            if images.contains_key(&link.path) {
                continue;
            }
            let span = self.follow(link).and_then(|target| images.get(&target).copied());
            let Some(span) = span else {
                return Err(refused(archive, link, "which is no image in this archive"));
            };
            resolved.push((link.path.clone(), span));
        }
        Ok(resolved)
    }

    /// Refuses links to folders with images: they are not followed, and the
    /// data set would be shorter than the unpacked one.
    pub(super) fn refuse_folders(&self, found: &Found, archive: &Path) -> Result<()> {
        let mut folders = None;
        for link in self.0.values().filter(|link| !is_image(&link.path)) {
            let folders = folders.get_or_insert_with(|| found.folders_of_images());
            if self.follow(link).is_some_and(|target| folders.contains(&*target)) {
                return Err(refused(archive, link, "a folder of images"));
            }
        }
        Ok(())
    }

    /// Where a link leads in the end; `None` if that is not in the archive.
    fn follow(&self, link: &Link) -> Option<Vec<u8>> {
        let mut target = target(link)?;
        for _ in 0..MAX_STEPS {
            match self.0.get(&target) {
                Some(next) => target = self::target(next)?,
                None => return Some(target),
            }
        }
        None
    }
}

/// The path that a link names, from the archive's root.
fn target(link: &Link) -> Option<Vec<u8>> {
    if !link.hard && link.target.starts_with(b"/") {
        return None;
    }
    let mut parts: Vec<&[u8]> = Vec::new();
    let start: &[u8] = if link.hard { b"" } else { split(&link.path).0 };
    for part in start.split(|&b| b == b'/').chain(link.target.split(|&b| b == b'/')) {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    match relative(&parts.join(&b'/')) {
        Relative::Plain(path) => Some(path),
        Relative::Ignored | Relative::Outside => None,
    }
}

#[cold]
fn refused(archive: &Path, link: &Link, why: &str) -> Error {
    let shown = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    let (path, target) = (shown(&link.path), shown(&link.target));
    Error::format(archive, format!("member `{path}` is a link to `{target}`, {why}"))
        .with_hint("unpack the archive and open the directory, or make it with `tar --dereference`")
}
