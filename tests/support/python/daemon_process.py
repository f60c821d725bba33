"""A real strided with CPU devices, on a Unix socket and a free TCP port, and its numbers in /proc."""

import os
import pathlib
import re
import subprocess
import tempfile
import time

START_SECONDS = 60


class DaemonProcess:
    def __init__(self, strided, flags=(), cuda=False, preexec=None):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self._folder.name)
        self._log = self.folder / "log"
        self.unix_path = str(self.folder / "s")
        self.unix = f"unix:{self.unix_path}"
        command = [strided, f"--listen={self.unix}", "--listen=tcp:127.0.0.1:0", "--log-format=text", *flags]
        if not cuda:
            command.append("--no-cuda")
        with open(self._log, "w") as log:
            self._process = subprocess.Popen(command, stderr=log, preexec_fn=preexec)
        end = time.monotonic() + START_SECONDS
        while "ready pid=" not in self.log():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("the daemon does not start:\n" + self.log())
            time.sleep(0.01)
        self.port = int(re.search(r"127\.0\.0\.1:(\d+)", self.log()).group(1))
        self.tcp = f"127.0.0.1:{self.port}"
        self.pid = self._process.pid

    def log(self):
        return self._log.read_text(errors="replace")

    def alive(self):
        return self._process.poll() is None

    def stop(self):
        """The exit code of a clean shutdown."""
        self._process.terminate()
        try:
            return self._process.wait(timeout=60)
        finally:
            self._process.kill()

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def _status(self, key, pid=None):
        text = pathlib.Path(f"/proc/{pid or self.pid}/status").read_text()
        return int(re.search(rf"^{key}:\s+(\d+)", text, re.MULTILINE).group(1))

    def threads(self):
        return self._status("Threads")

    def rss_bytes(self, pid=None):
        """Private memory: arrays are in shared files, which the samples of devices count."""
        return self._status("RssAnon", pid) * 1024

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def workers(self):
        """Ids of its processes that serve a device."""
        return [pid for pid in _children(self.pid) if "--serve" in _command(pid)]


def _command(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def _children(parent):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(entry.name))
    return found
