"""PyTorch's DataLoader over the same data as the Rust benchmark, warm.

Prints CSV rows `case,setting,unit,value`. Run it beside `pinfeed-bench`:
bench/run.sh does, and puts the ratios together.
"""

import os
import statistics
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset, Subset

BATCH = 1024


class Arrays(Dataset):
    """CIFAR-10's arrays with ToTensor, as torchvision.datasets.CIFAR10 has them: NumPy u8 HWC, a PIL image per sample."""

    def __init__(self, samples):
        import numpy
        from torchvision.transforms import ToTensor

        generator = numpy.random.default_rng(0)
        self.data = generator.integers(0, 256, (samples, 32, 32, 3), dtype=numpy.uint8)
        self.targets = [i % 10 for i in range(samples)]
        self.transform = ToTensor()

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        from PIL import Image

        return self.transform(Image.fromarray(self.data[index])), self.targets[index]


def folder(path, samples):
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import PILToTensor

    # u8, as ours.
    dataset = ImageFolder(path, transform=PILToTensor())
    every = len(dataset) // samples
    return Subset(dataset, [i * every for i in range(samples)])


def rate(dataset, workers):
    """Images per second: the median of three epochs after one that is not counted."""
    loader = DataLoader(dataset, batch_size=BATCH, num_workers=workers, persistent_workers=workers > 0)
    rates = []
    for epoch in range(4):
        begun = time.perf_counter()
        seen = sum(len(labels) for _, labels in loader)
        took = time.perf_counter() - begun
        if epoch > 0:
            rates.append(seen / took)
    return statistics.median(rates)


def main():
    torch.set_num_threads(1)
    workers = (0, 2)
    cases = [("CIFAR-10 arrays to f32", Arrays(50_000))]
    path = os.environ.get("PINFEED_JPEG_DIR")
    if path:
        cases.append(("CIFAR-10 JPEG files to u8", folder(path, 20_000)))
    else:
        print("skipped: jpeg (set PINFEED_JPEG_DIR)", file=sys.stderr)
    for case, dataset in cases:
        for n in workers:
            print(f"{case},batch {BATCH} workers {n},img/s,{rate(dataset, n):.0f}", flush=True)


if __name__ == "__main__":
    main()
