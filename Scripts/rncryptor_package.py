"""Stores FOLDER/source with the Python package rncryptor, and takes it out again to FOLDER/result, as coffer-bench's
file-sizes does, and prints the same lines. Runs in .build/python, where the package is.

  .build/python/bin/python3 Scripts/rncryptor_package.py FOLDER"""

import json
import os
import pathlib
import sys
import time

import rncryptor

PASSWORD = b"a passcode for measuring"


class Bytes(rncryptor.RNCryptor):
    """The package takes content for text when it opens it."""

    def post_decrypt_data(self, data):
        return data[: -data[-1]]


def status(name: str) -> int:
    """Bytes, from what Linux counts for this process."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) << 10
    raise SystemExit(f"rncryptor_package: there is no {name}")


def reset_peak() -> None:
    pathlib.Path("/proc/self/clear_refs").write_text("5")


def write(path: pathlib.Path, content: bytes) -> None:
    with open(path, "xb") as file:
        file.write(content)
        file.flush()
        os.fdatasync(file.fileno())


def main() -> None:
    # If memory runs out, it is this process that goes.
    pathlib.Path("/proc/self/oom_score_adj").write_text("1000")
    folder = pathlib.Path(sys.argv[1])
    source, stored, result = folder / "source", folder / "stored", folder / "result"
    size = source.stat().st_size
    cryptor = Bytes()
    reset_peak()
    baseline = status("VmRSS")
    for name, work, origin, target in (
        ("in", cryptor.encrypt, source, stored), ("out", cryptor.decrypt, stored, result)):
        reset_peak()
        started = time.perf_counter()
        # Nothing here holds on to what the package has read: it takes enough memory by itself.
        write(target, work(origin.read_bytes(), PASSWORD))
        seconds = time.perf_counter() - started
        os.unlink(origin)
        print(json.dumps({
            "measurement": name, "subject": "package", "parameters": {"size": size}, "seconds": seconds, "bytes": size,
            "memory": status("VmHWM") - baseline,
        }), flush=True)


if __name__ == "__main__":
    main()
