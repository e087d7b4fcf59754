"""What the benchmarks share: coffer-bench, a folder in memory, the machine's name, and a line of progress."""

import contextlib
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MIB = 1 << 20
GIB = 1 << 30


def build(*products: str) -> pathlib.Path:
    """Builds programs for release, by default those that ship; returns the folder they stand in."""
    progress(f"building {' '.join(products) or 'the programs'} for release")
    done = subprocess.run([ROOT / "Scripts/build", *products], check=True, stdout=subprocess.PIPE, text=True)
    return pathlib.Path(done.stdout.splitlines()[-1])


def bench_program() -> pathlib.Path:
    """Where coffer-bench is, when it is built."""
    return build("coffer-bench") / "coffer-bench"


def size_text(count: int) -> str:
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count // unit} {name}"
    return f"{count} B"


def processor() -> str:
    model = "unknown processor"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{len(os.sched_getaffinity(0))} cores, {model}, {platform.machine()}"


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
    else:
        print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def ram_folder(chosen: str | None, need: int):
    """A folder in memory with room for `need` bytes, and what it is."""
    if chosen:
        with tempfile.TemporaryDirectory(prefix="coffer-bench.", dir=chosen) as folder:
            yield pathlib.Path(folder), file_system(chosen)
    elif file_system("/dev/shm") == "tmpfs" and shutil.disk_usage("/dev/shm").free >= need:
        with tempfile.TemporaryDirectory(prefix="coffer-bench.", dir="/dev/shm") as folder:
            yield pathlib.Path(folder), "tmpfs (/dev/shm)"
    elif os.geteuid() == 0:
        with tempfile.TemporaryDirectory(prefix="coffer-bench.") as folder:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={need},mode=700", "tmpfs", folder], check=True)
            try:
                yield pathlib.Path(folder), "tmpfs (mounted for this)"
            finally:
                subprocess.run(["umount", folder], check=True)
    else:
        raise SystemExit(f"bench: /dev/shm lacks {need // MIB} MiB; give a RAM-backed --folder, or be root")


def file_system(path: str) -> str:
    return subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True).stdout.strip()
