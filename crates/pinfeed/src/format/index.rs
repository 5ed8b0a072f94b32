//! The members of a tar archive: which are images, and where they lie.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use tar::{Entries, Entry, EntryType};

use super::layout::{Found, Relative, is_image, relative, split};
use super::links::{Link, Links};
use super::store::Span;
use crate::error::{Error, Result};

/// Tar's unit: headers are one block, payloads are filled up to whole blocks.
pub(super) const BLOCK: u64 = 512;

/// What an archive holds, and where its last member ends.
pub(super) struct Index {
    pub(super) found: Found,
    pub(super) end: u64,
}

/// Goes through all members. `place` is told where a member's payload is in the
/// archive, and says where it can be read from then on; for what is not an
/// image (the `bool`) the answer is not used, but a payload that is not there
/// is an error all the same.
///
/// # Errors
/// If the archive is cut or damaged: a data set that is shorter than the
/// archive was made would be worse than none.
pub(super) fn index<R: Read>(
    entries: Entries<'_, R>,
    archive: &Path,
    mut place: impl FnMut(&mut Entry<'_, R>, Span, bool) -> Result<Span>,
) -> Result<Index> {
    let mut found = Found::default();
    // By path, because a member given twice is the later one, as on unpacking.
    let mut images: HashMap<Vec<u8>, Span> = HashMap::new();
    let mut links = Links::default();
    let mut last = Last::default();

    for entry in entries {
        let mut entry = entry.map_err(|e| last.damage(archive, &e).with_source(e))?;
        last.name = entry.path_bytes().into_owned();
        let kind = entry.header().entry_type();
        let payload = payload(&entry);
        last.end = payload
            .at
            .checked_add(payload.len)
            .and_then(|end| end.checked_next_multiple_of(BLOCK))
            .unwrap_or(u64::MAX);

        let path = match relative(&last.name) {
            Relative::Plain(path) => Some(path),
            Relative::Ignored => None,
            Relative::Outside => return Err(outside(archive, &last.name)),
        };
        let image = path.as_deref().is_some_and(is_image) && is_file(kind);
        if image && is_sparse(&mut entry) {
            return Err(Error::format(
                archive,
                format!("member `{}` is stored as a sparse file", shown(&last.name)),
            )
            .with_hint("make the archive without `--sparse`"));
        }
        let span = place(&mut entry, payload, image)?;

        let Some(path) = path else { continue };
        match kind {
            EntryType::Directory => found.folder(&path),
            // A folder of the oldest format: a file whose name ends with `/`.
            _ if is_file(kind) && last.name.ends_with(b"/") => found.folder(&path),
            EntryType::Link | EntryType::Symlink => {
                found.folder(split(&path).0);
                let target = entry.link_name_bytes().unwrap_or_default().into_owned();
                links.add(Link { path, target, hard: kind == EntryType::Link });
            }
            _ if is_file(kind) => {
                found.folder(split(&path).0);
                if image {
                    images.insert(path, span);
                }
            }
            _ => {}
        }
    }

    let linked = links.resolve(&images, archive)?;
    for (path, span) in images.into_iter().chain(linked) {
        found.image(path, span);
    }
    links.refuse_folders(&found, archive)?;
    Ok(Index { found, end: last.end })
}

fn is_file(kind: EntryType) -> bool {
    matches!(kind, EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse)
}

/// What a member takes of the archive. (The size of a sparse file is that of
/// the file unpacked.)
fn payload<R: Read>(entry: &Entry<'_, R>) -> Span {
    let len = match entry.header().entry_type() {
        EntryType::GNUSparse => entry.header().entry_size().unwrap_or(0),
        _ => entry.size(),
    };
    Span { at: entry.raw_file_position(), len }
}

/// Sparse files do not lie in one piece.
fn is_sparse<R: Read>(entry: &mut Entry<'_, R>) -> bool {
    if entry.header().entry_type() == EntryType::GNUSparse {
        return true;
    }
    let Ok(Some(extensions)) = entry.pax_extensions() else { return false };
    extensions.flatten().any(|extension| extension.key_bytes().starts_with(b"GNU.sparse."))
}

/// The last member whose header was read, to name it in an error.
#[derive(Default)]
struct Last {
    name: Vec<u8>,
    end: u64,
}

impl Last {
    #[cold]
    fn damage(&self, archive: &Path, why: &dyn std::fmt::Display) -> Error {
        let place = match self.end {
            0 => "in the first header, at byte 0".to_owned(),
            end => format!("in the header at byte {end}, after member `{}`", shown(&self.name)),
        };
        damaged(archive, format!("{place}: {why}"))
    }
}

/// The error for a member whose payload is not all there.
#[cold]
pub(super) fn cut_member<R: Read>(archive: &Path, entry: &Entry<'_, R>, why: String) -> Error {
    damaged(archive, format!("in member `{}`: {why}", shown(&entry.path_bytes())))
}

fn damaged(archive: &Path, place: String) -> Error {
    Error::format(archive, format!("the archive is cut or damaged {place}"))
        .with_hint("get it again and compare its size or checksum with the original's")
}

fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

#[cold]
fn outside(archive: &Path, name: &[u8]) -> Error {
    Error::format(archive, format!("member `{}` leads out of the archive (`..`)", shown(name)))
        .with_hint("make the archive again with paths below one folder")
}
