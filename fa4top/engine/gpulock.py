"""One fa4top at a time per GPU, also between users: a lock file by GPU UUID that says who holds it and since when."""

from __future__ import annotations

import errno
import fcntl
import getpass
import json
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Holder:
    """Who holds a GPU."""

    user: str
    pid: int
    since_wall_ns: int
    session_id: str

    def sentence(self) -> str:
        """For the person who waits."""
        since = time.strftime("%H:%M:%S", time.localtime(self.since_wall_ns / 1e9))
        return f"the GPU is held by fa4top of {self.user} (pid {self.pid}, session {self.session_id}) since {since}"


class GpuLock:
    """An exclusive flock; the kernel lets go of it when the process ends, however it ends."""

    def __init__(self, gpu_uuid: str, session_id: str, folder: Path | None = None) -> None:
        self._path = (folder or Path(tempfile.gettempdir())) / f"fa4top-{gpu_uuid}.lock"
        self._session_id = session_id
        self._fd: int | None = None

    def _open(self) -> int:
        # not O_CREAT first: in a sticky folder the kernel refuses that on a file of another user
        # (fs.protected_regular), while opening it plainly is allowed
        for _ in range(3):
            try:
                return os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            except FileNotFoundError:
                try:
                    fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
                except FileExistsError:
                    continue
                os.fchmod(fd, 0o666)  # past the umask: others must be able to lock it
                return fd
        raise OSError(errno.EAGAIN, f"{self._path} keeps changing")

    def acquire(self) -> Holder | None:
        """Take the lock, or learn who has it. None: it is ours now."""
        if self._fd is not None:
            return None
        fd = self._open()
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = self._read(fd)
            os.close(fd)
            return holder
        self._fd = fd
        me = Holder(getpass.getuser(), os.getpid(), time.time_ns(), self._session_id)
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(me.__dict__).encode(), 0)
        return None

    @staticmethod
    def _read(fd: int) -> Holder:
        try:
            return Holder(**json.loads(os.pread(fd, 4096, 0)))
        except (ValueError, TypeError):
            return Holder("somebody", 0, time.time_ns(), "?")

    def release(self) -> None:
        """Let go. The file stays, so that two waiters can not lock two different files."""
        if self._fd is not None:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = None
