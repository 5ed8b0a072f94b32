//! Opening an archive: `.tar` in place, `.tar.gz` into memory.

use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use tar::Archive;

use super::index::{BLOCK, cut_member, index};
use super::layout::Found;
use super::store::{Span, Store};
use super::window::Window;
use crate::error::{Error, Kind, Result};

/// The images of a `.tar.gz` are held in memory, up to this many bytes.
pub(super) const MAX_HELD_BYTES: u64 = 8 << 30;

/// Opens the archive `path`; its content decides of which kind it is.
pub(super) fn open(path: &Path) -> Result<(Store, Found)> {
    let file = File::open(path).map_err(|e| unreadable(path, e))?;
    let len = file.metadata().map_err(|e| unreadable(path, e))?.len();
    let mut start = [0; BLOCK as usize];
    let start = &mut start[..len.min(BLOCK) as usize];
    file.read_exact_at(start, 0).map_err(|e| unreadable(path, e))?;
    match &*start {
        [] => Err(Error::format(path, "is empty (0 bytes)")
            .with_hint("was it copied or downloaded to its end?")),
        [0x1f, 0x8b, ..] => open_gz(path, file),
        start if is_tar(start) => open_tar(path, file, len),
        start => Err(not_an_archive(path, start, len)),
    }
}

/// Reads the headers and notes where the payloads lie.
fn open_tar(path: &Path, file: File, len: u64) -> Result<(Store, Found)> {
    let end = whole_blocks(&file, len).map_err(|e| unreadable(path, e))?;
    let mut archive = Archive::new(Window::new(&file, end));
    // Go on behind blocks of zeros: what lies there is read too (archives
    // joined by `cat`), or is an error, but never just left out.
    archive.set_ignore_zeros(true);
    let entries = archive.entries_with_seek().map_err(|e| unreadable(path, e))?;
    let index =
        index(entries, path, |entry, payload, _| match payload.at.checked_add(payload.len) {
            Some(end) if end <= len => Ok(payload),
            _ => {
                let Span { at, len: size } = payload;
                let why = format!(
                    "it has {size} bytes from byte {at} on, and the file ends at byte {len}"
                );
                Err(cut_member(path, entry, why))
            }
        })?;
    if index.end >= end {
        tracing::warn!(
            path = %path.display(),
            "the archive has no end mark; if it was cut just between two members, nothing shows it"
        );
    }
    Ok((Store::Tar(file), index.found))
}

/// Unpacks all in one go and keeps the images' bytes.
fn open_gz(path: &Path, file: File) -> Result<(Store, Found)> {
    // All members of the gzip file, as `pigz` and `cat` make them.
    let unpacked = MultiGzDecoder::new(BufReader::with_capacity(1 << 17, file));
    let mut archive = Archive::new(BufReader::with_capacity(1 << 16, unpacked));
    // And so on to the end of the file, whose checksum is then compared.
    archive.set_ignore_zeros(true);
    let mut held = Vec::new();
    let entries = archive.entries().map_err(|e| unreadable(path, e))?;
    let index = index(entries, path, |entry, payload, image| {
        if !image {
            return Ok(Span::default());
        }
        let Span { at: place, len } = payload;
        let at = held.len() as u64;
        if at.saturating_add(len) > MAX_HELD_BYTES {
            return Err(Error::format(
                path,
                format!(
                    "its images take more than {} GiB, too much to hold in memory",
                    MAX_HELD_BYTES >> 30
                ),
            )
            .with_hint("gunzip the archive: a .tar is read in place"));
        }
        match entry.read_to_end(&mut held) {
            Ok(read) if read as u64 == len => Ok(Span { at, len }),
            Ok(read) => {
                let why = format!(
                    "it has {len} bytes from byte {place} of the unpacked archive on, and {read} are there"
                );
                Err(cut_member(path, entry, why))
            }
            Err(e) => {
                let why = format!(
                    "it has {len} bytes from byte {place} of the unpacked archive on, and reading them gave: {e}"
                );
                Err(cut_member(path, entry, why).with_source(e))
            }
        }
    })?;
    held.shrink_to_fit();
    Ok((Store::Memory(held), index.found))
}

/// The file's length without a last part of a block, if that is zeros only: a
/// cut end mark, which is no loss.
fn whole_blocks(file: &File, len: u64) -> std::io::Result<u64> {
    let rest = (len % BLOCK) as usize;
    let mut bytes = [0; BLOCK as usize];
    file.read_exact_at(&mut bytes[..rest], len - rest as u64)?;
    Ok(if bytes.iter().all(|&b| b == 0) { len - rest as u64 } else { len })
}

/// Does the file begin as a tar archive does? By the mark, which a header that
/// is damaged or cut may still have, or (the oldest format has no mark) by the
/// checksum; an archive without members is blocks of zeros.
fn is_tar(start: &[u8]) -> bool {
    if start.get(257..262) == Some(b"ustar") {
        return true;
    }
    if start.len() < BLOCK as usize {
        return false;
    }
    let sum: u32 = (start.iter().enumerate())
        .map(|(at, &byte)| u32::from(if (148..156).contains(&at) { b' ' } else { byte }))
        .sum();
    let mut header = tar::Header::new_old();
    header.as_mut_bytes().copy_from_slice(start);
    start.iter().all(|&b| b == 0) || header.cksum().is_ok_and(|checksum| checksum == sum)
}

#[cold]
fn not_an_archive(path: &Path, start: &[u8], len: u64) -> Error {
    let named_tar = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("tar"));
    let is = match start {
        [b'P', b'K', ..] => "is a zip archive",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "is compressed with zstd",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "is compressed with xz",
        [b'B', b'Z', b'h', ..] => "is compressed with bzip2",
        [0xff, 0xd8, 0xff, ..] => "is one JPEG image",
        [0x89, b'P', b'N', b'G', ..] => "is one PNG image",
        _ if named_tar && len < BLOCK => "is too short for a tar archive",
        text if text.iter().all(|b| matches!(b, b'\t' | b'\n' | b'\r' | b' '..=b'~')) => "is text",
        _ if named_tar => "is no tar archive (its first header is damaged)",
        _ => "is of a kind not known here",
    };
    Error::format(
        path,
        format!("{is} ({len} bytes); ImageFolder opens a directory, a .tar or a .tar.gz (.tgz)"),
    )
    .with_hint("unpack it and open the directory, or make a .tar of it")
}

#[cold]
fn unreadable(path: &Path, error: std::io::Error) -> Error {
    Error::new(Kind::Format, format!("can not be read: {error}")).at_path(path).with_source(error)
}
