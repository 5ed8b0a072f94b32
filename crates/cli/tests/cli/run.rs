//! Running the binary, and data for it.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// The binary, with arguments split at spaces, in the folder `here`.
pub(crate) fn command(here: &Path, args: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pinfeed"));
    command.current_dir(here).args(args.split_whitespace());
    command.env_remove("PINFEED_LOG").env_remove("RUST_LOG");
    command
}

/// Runs it.
pub(crate) fn run(here: &Path, args: &str) -> Ran {
    Ran::from(command(here, args).output().unwrap())
}

/// Runs a small `bench` on made-up data; what `args` says comes last.
pub(crate) fn bench(args: &str) -> Value {
    let here = tempfile::tempdir().unwrap();
    let small = "bench --data synthetic:1000 --batch-size 64 --num-workers 2 --work-ms 1 --runs 2";
    run(here.path(), &format!("{small} --json - {args}")).json()
}

pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    /// What it printed as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// Checks that it failed as it should: exit code 2, one line, which has
    /// all these words in it.
    #[track_caller]
    pub(crate) fn refused(&self, words: &[&str]) {
        let errors: Vec<&str> =
            self.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!((self.code, errors.len()), (Some(2), 1), "{}", self.stderr);
        for word in words {
            assert!(errors[0].contains(word), "no {word:?} in: {}", errors[0]);
        }
        assert!(!self.stderr.contains("backtrace"), "{}", self.stderr);
        assert!(!self.stderr.contains("Usage:"), "{}", self.stderr);
    }
}

/// Writes a PNG file of one colour, and the folders it lies in.
pub(crate) fn write_png(path: &Path, [width, height]: [u32; 2], rgb: [u8; 3]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut png = png::Encoder::new(File::create(path).unwrap(), width, height);
    png.set_color(png::ColorType::Rgb);
    let pixels = rgb.repeat((width * height) as usize);
    png.write_header().unwrap().write_image_data(&pixels).unwrap();
}

/// Four images of 4 x 2 pixels in `folder`, in classes `cat` and `dog`.
pub(crate) fn write_images(folder: &Path) {
    for (name, rgb) in [
        ("cat/1.png", [255, 0, 51]),
        ("cat/2.png", [255, 0, 51]),
        ("cat/3.png", [255, 0, 51]),
        ("dog/1.png", [255, 204, 51]),
    ] {
        write_png(&folder.join(name), [4, 2], rgb);
    }
}

/// The folder as the bytes of a tar archive.
pub(crate) fn tar_of(folder: &Path) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_dir_all("images", folder).unwrap();
    tar.into_inner().unwrap()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;

    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(bytes).unwrap();
    gz.finish().unwrap()
}
