"""Where things lie. Sessions: the user's state folder. Sockets: the runtime folder, never a home that may be NFS."""

from __future__ import annotations

import json
import os
import secrets
import stat
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import platformdirs

LOG_NAME = "log.jsonl"


class RuntimeFolderError(RuntimeError):
    """No safe place for sockets; the text says what to do."""


def config_file() -> Path:
    """The one config file: FA4TOP_CONFIG, or config.toml in the user's config folder."""
    if chosen := os.environ.get("FA4TOP_CONFIG"):
        return Path(chosen)
    return Path(platformdirs.user_config_dir("fa4top")) / "config.toml"


def user_themes() -> Path:
    """Folder of the user's own themes."""
    return config_file().parent / "themes"


def sessions_folder() -> Path:
    """Where sessions are recorded: FA4TOP_SESSIONS, or the user's state folder."""
    if chosen := os.environ.get("FA4TOP_SESSIONS"):
        return Path(chosen)
    return Path(platformdirs.user_state_dir("fa4top")) / "sessions"


def runtime_folder() -> Path:
    """Folder for sockets, mode 0700, ours alone. XDG_RUNTIME_DIR where it is usable, else one in the temp folder.

    Raises:
        RuntimeFolderError: somebody else owns the fallback, or it can not be made.
    """
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and os.path.isdir(base) and os.access(base, os.W_OK | os.X_OK):
        folder = Path(base) / "fa4top"
    else:
        folder = Path(tempfile.gettempdir()) / f"fa4top-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise RuntimeFolderError(f"no folder for sockets at {folder}: {error.strerror}; set XDG_RUNTIME_DIR") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise RuntimeFolderError(f"{folder} belongs to somebody else; set XDG_RUNTIME_DIR to a folder of yours")
    if status.st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def new_session_id() -> str:
    """Sorts by time; short enough for a socket path."""
    return time.strftime("%Y%m%d-%H%M%S-") + secrets.token_hex(2)


@dataclass(frozen=True)
class LiveSession:
    """A running engine, as its file in the runtime folder says."""

    session_id: str
    pid: int
    folder: str
    target: str
    started_wall_ns: int

    @property
    def socket(self) -> Path:
        """The engine's control socket."""
        return runtime_folder() / f"{self.session_id}.sock"

    @property
    def log(self) -> Path:
        """The log to follow."""
        return Path(self.folder) / LOG_NAME

    def alive(self) -> bool:
        """Does the engine's process still exist?"""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


def register(session: LiveSession) -> Path:
    """Write the live session's file; the engine removes it when it ends."""
    path = runtime_folder() / f"{session.session_id}.json"
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(asdict(session)))
    temporary.replace(path)
    return path


def live_sessions() -> list[LiveSession]:
    """Running engines of this user, oldest first; files of dead ones are cleared away."""
    found = []
    for path in sorted(runtime_folder().glob("*.json")):
        try:
            session = LiveSession(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):
            continue
        if session.alive():
            found.append(session)
        else:
            path.unlink(missing_ok=True)
            session.socket.unlink(missing_ok=True)
    return found


def recorded_sessions() -> list[Path]:
    """Folders of recorded sessions, oldest first."""
    folder = sessions_folder()
    return sorted(p for p in folder.iterdir() if (p / LOG_NAME).exists()) if folder.is_dir() else []
