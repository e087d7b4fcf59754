"""Runs real commands, shows them as a person would type them, and holds each to what it should do."""

import os
import pathlib
import shlex
import subprocess
import sys
import threading
import time
from dataclasses import dataclass


class Unexpected(Exception):
    """Something was not as said."""


@dataclass
class Outcome:
    """What a command printed. `output` is standard output without the last newline."""

    output: str
    errors: str


class Walkthrough:
    """A shown sequence of commands, all run in one folder.

    Standard error of every command is kept as a file in `logs` (below the folder). Standard output is a result that
    was asked for; it is kept in memory only. What is shown never holds the value of `hidden`, a variable of the
    environment, but its name.
    """

    def __init__(self, folder: pathlib.Path, environment: dict[str, str], hidden: str):
        self.folder = folder
        self.environment = environment
        self.hidden = hidden
        self.logs = folder / "logs"
        self.logs.mkdir()
        self._running: list[subprocess.Popen] = []
        self._count = 0
        self._terminal = sys.stdout.isatty()
        self._color = self._terminal and "NO_COLOR" not in os.environ

    def step(self, title: str) -> None:
        self._print(f"\n{self._paint('1', title)}")

    def note(self, text: str) -> None:
        self._print(f"  {text}")

    def passed(self, text: str) -> None:
        self._print(f"  {self._paint('32', '✓')} {text}")

    def expect(self, condition: bool, text: str) -> None:
        if not condition:
            raise Unexpected(f"not so: {text}")
        self.passed(text)

    def run(
        self, *command: str, code: int = 0, says: tuple[str, ...] = (), into: str = "", shown: bool = True
    ) -> Outcome:
        """Runs a command that must end with `code` and say each of `says` on standard error.

        `into` names a file that standard output is written to, readable by its owner only.
        """
        line = shlex.join(command) + (f" > {into}" if into else "")
        if shown:
            self._print(f"  $ {line}")
        log = self._log(command[0])
        with open(log, "wb") as errors:
            process = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=errors,
            )
            self._running.append(process)
            with self._elapsed(process):
                output = process.communicate()[0]
            self._running.remove(process)
        outcome = Outcome(output.decode(errors="replace").removesuffix("\n"), log.read_text(errors="replace"))
        if process.returncode != code:
            raise Unexpected(f"{line}\nended with {process.returncode}, not {code}; it said:\n{self._said(outcome)}")
        for text in says:
            if text.lower() not in outcome.errors.lower():
                raise Unexpected(f"{line}\ndid not say “{text}”; it said:\n{self._said(outcome)}")
        if into:
            path = self.folder / into
            path.touch(mode=0o600)
            path.write_bytes(output)
        elif shown:
            self.indent(outcome.output)
        if shown and (code or says):
            self.indent(outcome.errors)
        return outcome

    def refused(self, *command: str, code: int, says: tuple[str, ...], unchanged: tuple[str, ...]) -> Outcome:
        """Runs a command that must be refused, and change nothing below the folders `unchanged`."""
        before = self.listing(*unchanged)
        outcome = self.run(*command, code=code, says=says)
        self.expect(self.listing(*unchanged) == before, f"refused with exit code {code}, and nothing was created")
        return outcome

    def start(self, *command: str) -> str:
        """Starts a server, and returns the first line that it prints."""
        self._print(f"  $ {shlex.join(command)} &")
        log = self._log(command[0])
        with open(log, "wb") as errors:
            process = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=errors,
            )
        self._running.append(process)
        line = process.stdout.readline().decode(errors="replace").strip()
        if not line:
            raise Unexpected(f"{shlex.join(command)}\ndid not start; it said:\n{log.read_text(errors='replace')}")
        self.indent(line)
        return line

    def stop(self) -> list[int]:
        """Ends everything that is running, politely at first; returns the exit codes."""
        for process in self._running:
            process.terminate()
        codes = []
        for process in self._running:
            try:
                codes.append(process.wait(timeout=30))
            except subprocess.TimeoutExpired:
                process.kill()
                codes.append(process.wait())
        self._running.clear()
        return codes

    def listing(self, *folders: str) -> list[tuple[str, int]]:
        """Every path below `folders`, with its size."""
        paths = [path for folder in folders for path in (self.folder / folder).rglob("*")]
        return sorted((str(path.relative_to(self.folder)), path.lstat().st_size) for path in paths)

    def indent(self, text: str) -> None:
        for line in text.splitlines():
            self._print(f"    {self._paint('2', line)}")

    def shown(self, text: str) -> str:
        return text.replace(self.environment[self.hidden], f"${self.hidden}")

    def _print(self, text: str) -> None:
        print(self.shown(text), flush=True)

    def _said(self, outcome: Outcome) -> str:
        return (outcome.output + "\n" + outcome.errors).strip() or "(nothing)"

    def _log(self, command: str) -> pathlib.Path:
        self._count += 1
        return self.logs / f"{self._count:02}-{pathlib.Path(command).name}.stderr"

    def _paint(self, style: str, text: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self._color else text

    def _elapsed(self, process: subprocess.Popen) -> "_Elapsed":
        return _Elapsed(process, self._terminal)


class _Elapsed:
    """Counts the seconds on a terminal while a command runs for longer than one."""

    def __init__(self, process: subprocess.Popen, terminal: bool):
        self._over = threading.Event()
        self._terminal = terminal
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> None:
        if self._terminal:
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._terminal:
            self._thread.join()

    def _show(self) -> None:
        started, shown = time.monotonic(), False
        while not self._over.wait(1):
            print(f"\r    {time.monotonic() - started:.0f} s", end="", flush=True)
            shown = True
        if shown:
            print("\r\x1b[K", end="", flush=True)
