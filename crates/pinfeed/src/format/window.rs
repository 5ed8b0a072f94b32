//! A file read through a small buffer that survives short seeks.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// Small on purpose: the index reads a header, then jumps over the payload. A
/// page is enough for a header and for several small members.
const BUFFER: usize = 4096;

/// The first `end` bytes of a file, to read and to seek in. A `BufReader`
/// would forget its buffer at each seek: for an archive of small members, a
/// read per header in place of a read per page.
pub(super) struct Window<'a> {
    file: &'a File,
    end: u64,
    position: u64,
    /// Bytes `start .. start + filled` of the file.
    buffer: Box<[u8; BUFFER]>,
    start: u64,
    filled: usize,
}

impl<'a> Window<'a> {
    pub(super) fn new(file: &'a File, end: u64) -> Self {
        Window { file, end, position: 0, buffer: Box::new([0; BUFFER]), start: 0, filled: 0 }
    }
}

impl Read for Window<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.position >= self.end || into.is_empty() {
            return Ok(0);
        }
        let inside = self.start..self.start + self.filled as u64;
        if !inside.contains(&self.position) {
            let most = (self.end - self.position).min(BUFFER as u64) as usize;
            self.filled = self.file.read_at(&mut self.buffer[..most], self.position)?;
            self.start = self.position;
        }
        let skip = (self.position - self.start) as usize;
        let have = &self.buffer[skip..self.filled];
        let count = have.len().min(into.len());
        into[..count].copy_from_slice(&have[..count]);
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for Window<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.end.checked_add_signed(by),
        };
        self.position =
            to.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "seek out of bounds"))?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn reads_what_the_file_holds_wherever_it_is_asked() {
        let bytes: Vec<u8> = (0..20_000u32).map(|i| (i * 7) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let mut window = Window::new(&file, 19_000);
        for at in [0u64, 100, 4090, 90, 18_990, 12_000, 12_512, 3] {
            window.seek(SeekFrom::Start(at)).unwrap();
            let mut got = [0; 700];
            let mut count = 0;
            while count < got.len() {
                match window.read(&mut got[count..]).unwrap() {
                    0 => break,
                    n => count += n,
                }
            }
            let at = at as usize;
            assert_eq!(got[..count], bytes[at..(at + 700).min(19_000)]);
        }
        window.seek(SeekFrom::Current(1 << 40)).unwrap();
        assert_eq!(window.read(&mut [0]).unwrap(), 0);
        assert!(window.seek(SeekFrom::Start(1)).is_ok());
        assert!(window.seek(SeekFrom::Current(-2)).is_err());
    }
}
