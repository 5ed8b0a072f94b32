//! Rows of the record, and the timing they come from.

use std::time::Instant;

/// The head of the table.
pub fn header() {
    println!("case,setting,unit,pinfeed,beside,beside_value,ratio");
}

/// One row: our figure, what stood beside it, and ours over theirs.
pub fn row(case: &str, setting: &str, unit: &str, ours: f64, beside: &str, theirs: f64) {
    println!("{case},{setting},{unit},{ours:.1},{beside},{theirs:.1},{:.3}", ours / theirs);
}

/// Seconds that `run` takes.
pub fn time(run: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    run();
    begun.elapsed().as_secs_f64()
}

/// Runs both in turn, so that what slows the machine slows both, and returns
/// the median of each.
pub fn in_turn(runs: usize, mut ours: impl FnMut(), mut theirs: impl FnMut()) -> (f64, f64) {
    // Warm: files are in the cache, memory is had, threads are there.
    ours();
    theirs();
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        a.push(time(&mut ours));
        b.push(time(&mut theirs));
    }
    (median(a), median(b))
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
