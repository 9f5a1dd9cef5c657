"""How much memory rows may take."""

from __future__ import annotations

from math import inf
from pathlib import Path

__all__ = ["available", "share"]

# Rows may take this part of what is available: a fit holds a second copy of them, cut
# to its bounds, and the rest is for everything else
PART = 1 / 3
UNLIMITED = 2**60  # what some systems call no limit


def share() -> int:
    """Return the bytes that rows in memory may take."""
    return int(min(available(), UNLIMITED) * PART)


def available() -> float:
    """Return the bytes left to this process, by the tightest limit set."""
    return max(0.0, min(_free(), _resource_limits(), _cgroups()))


def _free() -> float:
    """Return what the machine has left."""
    return _kilobytes("/proc/meminfo", "MemAvailable")


def _resource_limits() -> float:
    """Return what the limits set for this process leave."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return inf
    left = inf
    for limit, used in (("RLIMIT_DATA", "VmData"), ("RLIMIT_AS", "VmSize")):
        soft, _ = resource.getrlimit(getattr(resource, limit))
        if soft != resource.RLIM_INFINITY:
            taken = _kilobytes("/proc/self/status", used)
            left = min(left, soft - (taken if taken < inf else 0))
    return left


def _kilobytes(file: str, key: str) -> float:
    for line in _lines(file):
        if line.startswith(f"{key}:"):
            return float(line.split()[1]) * 1024
    return inf


def _cgroups() -> float:
    """Return what the control groups around this process leave."""
    left = inf
    for line in _lines("/proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            left = min(left, _group("/sys/fs/cgroup", path, "max", "current"))
        elif "memory" in controllers.split(","):
            names = ("limit_in_bytes", "usage_in_bytes")
            left = min(left, _group("/sys/fs/cgroup/memory", path, *names))
    return left


def _group(root: str, path: str, limit: str, usage: str) -> float:
    """Return what a group and all above it leave; files in cache can be given up."""
    left = inf
    folder = Path(root) / path.strip().lstrip("/")
    for group in (folder, *folder.parents):
        most = _number(group / f"memory.{limit}")
        if most < UNLIMITED:
            cache = 0.0
            for line in _lines(group / "memory.stat"):
                if line.startswith(("inactive_file ", "total_inactive_file ")):
                    cache = max(cache, float(line.split()[1]))
            left = min(left, most - _number(group / f"memory.{usage}", 0.0) + cache)
        if group == Path(root):
            break
    return left


def _number(file: Path, default: float = inf) -> float:
    for line in _lines(file):
        return float(line) if line.strip().isdigit() else default
    return default


def _lines(file: str | Path) -> list[str]:
    try:
        return Path(file).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
