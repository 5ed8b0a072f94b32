use std::hint::black_box; use std::time::Instant;
use pinfeed::DataLoader;
fn main() {
    let args: Vec<usize> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let (bs, w, n) = (args[0], args[1], args[2]);
    let f = DataLoader::builder(pinfeed::from_fn(4096, |i| i as u64)).batch_size(bs).num_workers(w).prefetch_factor((16+w)/w).persistent_workers(true).build().unwrap();
    let mut v = vec![];
    for _ in 0..n { let t = Instant::now(); for x in &f { black_box(x.unwrap()); } v.push(t.elapsed().as_nanos() as f64 / (4096/bs) as f64); }
    v.sort_by(f64::total_cmp);
    println!("bs{bs} w{w}: min {:.0} median {:.0} p90 {:.0} ns/batch", v[0], v[n/2], v[n*9/10]);
}
