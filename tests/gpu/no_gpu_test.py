#!/usr/bin/env python3
"""What the programs built with nvcc say, and how they end, on a machine without a GPU:
`no_gpu_test.py BUILD SOURCE`. With a GPU it is not run (77)."""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

WHY = r"GPU: (there is no NVIDIA driver \(libcuda\.so\.1\): install it|the driver finds no device)"


def main():
    build, source = (Path(a).resolve() for a in sys.argv[1:])
    if Path("/dev/nvidia0").exists():
        print("not run: there is a GPU")
        return 77
    plugin = f"plugin:{build}/lib/assay/libassay_gpu.so"
    run = [build / "assay", "run", "--level", "smoke"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bin").mkdir()
        shutil.copy(source / "ci/gpu", folder / "gpu")
        (folder / "bin/bench_gpu").symlink_to(build / "bench_gpu")
        (folder / "bin/device_dense_test").symlink_to(build / "device_dense_test")
        (folder / "commit").write_text("abc\n")
        due = [
            # Every case needs the device: undecided, and each says why.
            (4, r"UNAVAILABLE(.|\n)*" + WHY, [*run, "--iut", plugin, "--only", "greedy.verify*"]),
            (4, r"UNAVAILABLE(.|\n)*" + WHY, [*run, "--iut", plugin, "--only", "pool.values*"]),
            # The emulator takes its place, and says so.
            (0, r"on grid emulator \(" + WHY, [*run, "--iut", "gpu", "--only", "pool.values/lru-text"]),
            (77, r"not run: no GPU \(" + WHY, [build / "bench_gpu", "--dry"]),
            (77, r"not run: no GPU \(" + WHY, [build / "assay", "bench", "gpu", "--dry"]),
            (77, r"not run: no GPU \(" + WHY, [build / "traces_gpu", folder / "traces.json", source / "vectors"]),
            (77, r"not run: no GPU \(" + WHY, [build / "device_pool_test"]),
            (0, r"not run: no GPU \(" + WHY, [folder / "gpu", "--run", folder / "out"]),
        ]
        wrong = 0
        for code, text, command in due:
            done = subprocess.run(command, capture_output=True, text=True)
            said = done.stdout + done.stderr
            if done.returncode != code or not re.search(text, said):
                wrong += 1
                print(f"{' '.join(map(str, command))}\nends with {done.returncode}, not {code}, or does not say "
                      f"{text}:\n{said}")
    print(f"{len(due)} programs, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
