"""Peak resident memory of a process above a baseline, from Linux's own counters (proc(5)).

`VmHWM` is the peak since the process started, or since 5 was written to `clear_refs`. The counters of a process that
forbids others to look into it, as Coffer's programs do, can be reset by root only."""

import os
import pathlib
import platform
import subprocess
import threading
import time

# The numbers of poll(2) and ppoll(2), in one of which Coffer waits for a stream.
POLLS = {"x86_64": {"7", "271"}, "aarch64": {"73"}}.get(platform.machine())


class Unmeasurable(Exception):
    """The process ended, or never came to the point where it should be measured."""


def is_possible() -> bool:
    return os.geteuid() == 0 and POLLS is not None and pathlib.Path("/proc/self/clear_refs").exists()


class Watched:
    """A running process under observation. All sizes are in KiB."""

    def __init__(self, process: subprocess.Popen):
        self.process = process
        self.proc = pathlib.Path(f"/proc/{process.pid}")
        self.peak = 0

    def wait_until(self, condition, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise Unmeasurable(f"ended with {self.process.returncode} before it could be measured")
            if condition():
                return
            time.sleep(0.0002)
        raise Unmeasurable("did not come to the point where it can be measured")

    def waits_for_input(self) -> bool:
        """Whether a thread of the process waits in poll."""
        for task in self.proc.glob("task/*/syscall"):
            try:
                words = task.read_text().split()
            except OSError:
                continue
            if words and words[0] in POLLS:
                return True
        return False

    def holds(self, path: str) -> bool:
        """Whether the process has a file open at or below `path`."""
        for descriptor in self.proc.glob("fd/*"):
            try:
                target = os.readlink(descriptor)
            except OSError:
                continue
            if target == path or target.startswith(path + "/"):
                return True
        return False

    def reset(self) -> int:
        """Starts counting the peak anew; returns what is resident now."""
        (self.proc / "clear_refs").write_text("5")
        return self._status("VmRSS")

    def follow(self) -> None:
        """Keeps the peak up to date in the background; it can be read no more when the process has ended."""
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def finish(self) -> int:
        """Waits for the end; returns the peak since `reset`. Throws when the process failed."""
        code = self.process.wait()
        self._thread.join()
        if code != 0:
            raise Unmeasurable(f"ended with {code}")
        return self.peak

    def _follow(self) -> None:
        while self.process.poll() is None:
            self.peak = max(self.peak, self._status("VmHWM"))
            time.sleep(0.0005)

    def _status(self, name: str) -> int:
        try:
            for line in (self.proc / "status").read_text().splitlines():
                if line.startswith(name + ":"):
                    return int(line.split()[1])
        except OSError:
            pass
        return 0
