//! Measures pinfeed against what stands beside it in the same run.
//!
//! `pinfeed-bench [--quick] CASE...` with cases `overhead`, `arrays`, `jpeg`,
//! or `all`. Rows go to standard output as CSV, one a figure; see README.md.

mod arrays;
mod jpeg;
mod overhead;
mod row;

use std::path::PathBuf;

fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let quick = take_flag(&mut args, "--quick");
    let images = std::env::var_os("PINFEED_JPEG_DIR").map(PathBuf::from);
    let all = args.is_empty() || args.iter().any(|arg| arg == "all");
    let wanted = |case: &str| all || args.iter().any(|arg| arg == case);
    row::header();
    if wanted("overhead") {
        overhead::run(quick);
    }
    if wanted("arrays") {
        arrays::run(quick);
    }
    if wanted("jpeg") {
        match images {
            Some(dir) => jpeg::run(&dir, quick),
            None => eprintln!("skipped: jpeg (set PINFEED_JPEG_DIR to a folder of class folders)"),
        }
    }
}

fn take_flag(args: &mut Vec<String>, flag: &str) -> bool {
    let before = args.len();
    args.retain(|arg| arg != flag);
    args.len() < before
}
