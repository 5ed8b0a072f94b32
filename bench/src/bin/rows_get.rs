use std::hint::black_box;
use pinfeed::DataLoader;
fn main() {
    let g = DataLoader::builder(pinfeed::from_fn(4096, |i| i as u64)).batch_size(1).build().unwrap();
    for _ in 0..5000 { for x in &g { black_box(x.unwrap()); } }
}
