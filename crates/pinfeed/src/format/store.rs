//! Where the bytes of the files are, and reading them.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::layout::Image;
use crate::dataset::Context;
use crate::error::{Error, Result};

/// Where a file lies in an archive: bytes `at .. at + len`. Of no meaning for
/// files of a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) at: u64,
    pub(super) len: u64,
}

/// A file of more bytes than this is not an image we would decode.
const MAX_FILE_BYTES: u64 = 1 << 30;

pub(super) enum Store {
    /// Files of a directory, each opened when it is asked for.
    Directory,
    /// A `.tar`, read in place. Threads read at the same time, each at its own
    /// offset (`pread`): there is no file position to share.
    Tar(File),
    /// The images' files out of a `.tar.gz`, one after another.
    Memory(Vec<u8>),
}

impl Store {
    /// Calls `with` on the bytes of `image`, using `cx`'s buffers if they have
    /// to be read first.
    pub(super) fn with_bytes<T>(
        &self,
        root: &Path,
        image: &Image,
        cx: &mut Context,
        with: impl FnOnce(&[u8], &mut Context) -> Result<T>,
    ) -> Result<T> {
        if let Store::Memory(bytes) = self {
            return with(part(bytes, image.span), cx);
        }
        let mut bytes = cx.take_buffer();
        // Taken after and given back before the other, so that each of the two
        // keeps its purpose and its capacity.
        let mut name = cx.take_buffer();
        let read = self.read(root, image, &mut name, &mut bytes);
        cx.give_buffer(name);
        let result = read.and_then(|()| with(&bytes, cx));
        cx.give_buffer(bytes);
        result
    }

    /// Reads the bytes of `image` to the end of `bytes`; `name` is scratch.
    pub(super) fn read(
        &self,
        root: &Path,
        image: &Image,
        name: &mut Vec<u8>,
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        match self {
            Store::Directory => {
                name.extend_from_slice(root.as_os_str().as_bytes());
                name.push(b'/');
                name.extend_from_slice(&image.path);
                read_file(Path::new(OsStr::from_bytes(name)), bytes)
            }
            Store::Tar(file) => {
                let Span { at, len } = image.span;
                check_size(len)?;
                bytes.resize(len as usize, 0);
                file.read_exact_at(bytes, at).map_err(|e| {
                    failed(format!("{len} bytes at byte {at} of the archive can not be read: {e}"))
                        .with_source(e)
                        .with_hint("was the archive changed after it was opened?")
                })
            }
            Store::Memory(all) => {
                bytes.extend_from_slice(part(all, image.span));
                Ok(())
            }
        }
    }
}

/// The span's bytes. The index made the spans from these very bytes.
fn part(bytes: &[u8], Span { at, len }: Span) -> &[u8] {
    &bytes[at as usize..(at + len) as usize]
}

/// As `std::fs::read`, with a call to the system less: the length is asked
/// for once, and the end is not read again to be sure of it.
fn read_file(path: &Path, bytes: &mut Vec<u8>) -> Result<()> {
    let unreadable = |e: std::io::Error| failed(format!("can not be read: {e}")).with_source(e);
    let mut file = File::open(path).map_err(unreadable)?;
    let len = file.metadata().map_err(unreadable)?.len();
    check_size(len)?;
    bytes.resize(len as usize, 0);
    file.read_exact(bytes).map_err(unreadable)
}

fn check_size(len: u64) -> Result<()> {
    if len > MAX_FILE_BYTES {
        return Err(failed(format!(
            "{len} bytes are too many for an image file (at most {MAX_FILE_BYTES})"
        )));
    }
    Ok(())
}

fn failed(message: String) -> Error {
    Error::new(crate::error::Kind::Format, message)
}
