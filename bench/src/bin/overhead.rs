use std::hint::black_box;
use std::time::Instant;
use dataloader_rs::{Dataset as _, collator::Collator};
use pinfeed::{DataLoader, from_fn};

struct InMemoryDs(usize);
impl dataloader_rs::Dataset for InMemoryDs { type Item = u64; fn get(&self, i: usize) -> dataloader_rs::error::Result<u64> { Ok(i as u64) } fn len(&self) -> usize { self.0 } }
struct Ours(usize);
impl pinfeed::Dataset for Ours { fn len(&self) -> usize { self.0 } 
 #[inline]
 fn get(&self, i: usize, row: &mut pinfeed::Row<'_>, _: &mut pinfeed::Context) -> Result<(), pinfeed::BoxError> { row.put(i as u64)?; Ok(()) } }
struct Sum;
impl Collator<u64> for Sum { type Batch = u64; fn collate(&self, items: Vec<u64>) -> dataloader_rs::error::Result<u64> { Ok(items.iter().sum()) } }

fn med(mut v: Vec<f64>) -> f64 { v.sort_by(f64::total_cmp); v[v.len()/2] }
fn main() {
    const N: usize = 4096;
    for w in [0usize, 2, 4] { for bs in [1usize, 8, 32, 128, 512, 1024, 4096] {
        let batches = (N / bs) as f64;
        let mut theirs = dataloader_rs::DataLoader::builder(InMemoryDs(N)).batch_size(bs).num_workers(w).prefetch_depth(16).collator(Sum).build();
        let _ = InMemoryDs(1).len();
        let mk = |b: pinfeed::Builder<_>| { let b = b.batch_size(bs).num_workers(w); if w > 0 { b.prefetch_factor((16 + w) / w).persistent_workers(true) } else { b } };
        let f = mk(DataLoader::builder(from_fn(N, |i| i as u64))).build().unwrap();
        let mk2 = |b: pinfeed::Builder<Ours>| { let b = b.batch_size(bs).num_workers(w); if w > 0 { b.prefetch_factor((16 + w) / w).persistent_workers(true) } else { b } };
        let g = mk2(DataLoader::builder(Ours(N))).build().unwrap();
        let (mut a, mut b, mut c) = (vec![], vec![], vec![]);
        for _ in 0..200 {
            let t = Instant::now(); for x in theirs.iter() { black_box(x.unwrap()); } a.push(t.elapsed().as_nanos() as f64 / batches);
            let t = Instant::now(); for x in &f { black_box(x.unwrap()); } b.push(t.elapsed().as_nanos() as f64 / batches);
            let t = Instant::now(); for x in &g { black_box(x.unwrap()); } c.push(t.elapsed().as_nanos() as f64 / batches);
        }
        println!("w{w} bs{bs}: theirs {:.0} ours from_fn {:.0} ours get {:.0} ns/batch", med(a), med(b), med(c));
    }}
}
