use std::hint::black_box; use std::time::Instant;
use pinfeed::DataLoader;
struct Ours(usize);
impl pinfeed::Dataset for Ours { fn len(&self) -> usize { self.0 } 
 fn get(&self, i: usize, row: &mut pinfeed::Row<'_>, _: &mut pinfeed::Context) -> Result<(), pinfeed::BoxError> { row.put(i as u64)?; Ok(()) } }
fn main() {
    for bs in [1usize, 32, 4096] {
    let g = DataLoader::builder(Ours(4096)).batch_size(bs).build().unwrap();
    let f = DataLoader::builder(pinfeed::from_fn(4096, |i| i as u64)).batch_size(bs).build().unwrap();
    let (mut best, mut b2) = (f64::MAX, f64::MAX);
    for _ in 0..1000 { let t = Instant::now(); for x in &g { black_box(x.unwrap()); } best = best.min(t.elapsed().as_nanos() as f64 / (4096/bs) as f64);
     let t = Instant::now(); for x in &f { black_box(x.unwrap()); } b2 = b2.min(t.elapsed().as_nanos() as f64 / (4096/bs) as f64); }
    println!("bs{bs}: get {best:.0} from_fn {b2:.0} ns/batch");
    }
}
