"""Durable ledgers under load and faults: ``python -m benchmarks.ledger.faults``.

Prints a table and then JSON, and ends with code 1 if a promise was broken:

* the admitted charges never pass the budget;
* no charge that a process was told succeeded is lost;
* a process that is killed leaves at most one charge that it was not told of;
* the chain is sound afterwards.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import closing, contextmanager
from pathlib import Path

from benchmarks.ledger import children
from tests.privacy.store.server import Server

from tacit.exceptions import LedgerUnavailable
from tacit.privacy import Budget, Ledger, PureDP
from tacit.privacy._store import _chain

PLENTY = Budget(1e6)
SMALL = PureDP(1e-6)
SEED = 20260


def outcome(case, url, ledger, workers, more_allowed=0, **figures):
    """Check what every case promises, and gather the figures."""
    result = ledger.verify()
    lost, more = children.lost_and_more(ledger, workers)
    broken = list(result.findings)
    if lost:
        broken.append(f"{lost} charge(s) told and lost")
    if more > more_allowed:
        broken.append(f"{more} charge(s) of one process beyond what it was told")
    ledger.close()
    return {
        "case": case,
        "database": url.partition(":")[0],
        "records": result.records,
        "told": sum(worker.told() for worker in workers),
        "lost": lost,
        **figures,
        "broken": broken,
    }


def load(url, folder, processes, seconds):
    ledger = Ledger.open(url, dataset="load", budget=PLENTY)
    begun = time.monotonic()
    workers = [
        children.start(ledger, SMALL, f"w{i}", folder, begun + seconds)
        for i in range(processes)
    ]
    codes = [worker.wait() for worker in workers]
    took = time.monotonic() - begun
    told = [worker.told() for worker in workers]
    found = outcome(
        "load",
        url,
        ledger,
        workers,
        processes=processes,
        per_second=round(sum(told) / took, 1),
        fewest_of_a_process=min(told),
        most_of_a_process=max(told),
    )
    if any(codes):
        found["broken"].append("a process failed")
    return found


def exhaustion(url, folder, processes, charges):
    ledger = Ledger.open(url, dataset="exhaustion", budget=Budget(1.0))
    event = PureDP(1 / charges)
    workers = [children.start(ledger, event, f"e{i}", folder) for i in range(processes)]
    for worker in workers:
        worker.wait()
    spent = ledger.spent()
    found = outcome("exhaustion", url, ledger, workers, spent=spent, fits=charges)
    if found["told"] != charges:
        found["broken"].append(f"{found['told']} admitted where {charges} fit")
    return found


def kills(url, folder, points):
    ledger = Ledger.open(url, dataset="kills", budget=PLENTY)
    begun = time.monotonic()
    for _ in range(5):
        ledger.charge(SMALL, "timed/0")
    one = (time.monotonic() - begun) / 5
    moment = random.Random(SEED)
    killed = []
    for point in range(points):
        ledger.spent()  # read on here, so that no child has to read it all
        child = children.start(ledger, SMALL, f"k{point}", folder)
        while not child.told():
            time.sleep(one / 10)
        time.sleep(moment.uniform(0, 3 * one))
        child.kill()
        killed.append(child)
    return outcome("kill -9", url, ledger, killed, more_allowed=1, points=points)


@contextmanager
def small_disk(folder):
    """A disk of half a megabyte, or a limit on the size of files."""
    mounted = False
    if os.geteuid() == 0:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", folder],
            check=False,
            capture_output=True,
        )
        mounted = done.returncode == 0

    def fill():
        if not mounted:
            resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    def grow():
        if mounted:
            subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True)

    try:
        yield "tmpfs" if mounted else "RLIMIT_FSIZE", fill, grow
    finally:
        if mounted:
            subprocess.run(["umount", "-l", folder], check=True)


def disk_full(folder):
    disk = folder / "disk"
    disk.mkdir()
    url = f"sqlite:///{disk}/budget.db"
    with small_disk(disk) as (how, fill, grow):
        ledger = Ledger.open(url, dataset="full", budget=PLENTY)

        def fill_up(tell):
            fill()
            try:
                for made in range(10_000):
                    ledger.charge(SMALL, f"d0/{made}" + "x" * 1000)
                    tell()
            except LedgerUnavailable:
                return
            raise AssertionError("the disk was not full")

        child = children.forked(fill_up, "d0", folder)
        code = child.wait()
        grow()
        ledger.charge(SMALL, "after/0")
        found = outcome("disk full", url, ledger, [child], 1, how=how)
        if code:
            found["broken"].append("a full disk was no LedgerUnavailable")
    return found


def clock(url, charges):
    ledger = Ledger.open(url, dataset="clock", budget=PLENTY)
    moment, true_now = random.Random(SEED), _chain.now
    _chain.now = lambda: f"20{moment.randint(10, 99)}-01-01T00:00:00.000000+00:00"
    try:
        for i in range(charges):
            ledger.charge(SMALL, f"c/{i}")
    finally:
        _chain.now = true_now
    notes = len(ledger.verify().notes)
    found = outcome("clock back and forth", url, ledger, [], steps_back=notes)
    if found["records"] != charges + 1 or not notes:
        found["broken"].append("the clock changed what was recorded")
    return found


def restarts(server, folder, processes, times):
    url = server.database()
    ledger = Ledger.open(url, dataset="restarts", budget=PLENTY)
    until = time.monotonic() + 4.0 * (times + 1)
    workers = [
        children.start(ledger, SMALL, f"r{i}", folder, until) for i in range(processes)
    ]
    for i in range(times):
        time.sleep(3.0)
        server.restart(crash=i % 2 == 1)
    codes = [worker.wait() for worker in workers]
    # one more for each time that a lost commit was reported as "may stand"
    found = outcome("server restarts", url, ledger, workers, times, restarts=times)
    if any(codes):
        found["broken"].append("a process failed")
    return found


def table(results):
    lines = [f"{'case':22}{'database':12}{'records':>8}{'told':>8}{'lost':>6}  figures"]
    shown = {"case", "database", "records", "told", "lost", "broken"}
    for r in results:
        figures = ", ".join(f"{k} {v}" for k, v in r.items() if k not in shown)
        lines.append(
            f"{r['case']:22}{r['database']:12}{r['records']:>8}{r['told']:>8}"
            f"{r['lost']:>6}  {figures}"
        )
        lines += [f"  BROKEN: {sentence}" for sentence in r["broken"]]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="under a minute")
    parser.add_argument("--processes", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--points", type=int)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    given = parser.parse_args()
    quick = given.quick
    processes = given.processes or (8 if quick else 32)
    seconds = given.seconds or (4.0 if quick else 60.0)
    points = given.points or (40 if quick else 1000)
    results = []
    with tempfile.TemporaryDirectory() as name, closing(Server()) as server:
        home = Path(name)
        for kind in ("sqlite", "postgresql"):
            for case, *more in (
                (load, processes, seconds),
                (exhaustion, processes, 200 if quick else 1000),
                (kills, points),
            ):
                folder = home / f"{kind}-{case.__name__}"
                folder.mkdir()
                sqlite = f"sqlite:///{folder}/budget.db"
                url = sqlite if kind == "sqlite" else server.database()
                results.append(case(url, folder, *more))
                print(table(results[-1:]).splitlines()[1], file=sys.stderr, flush=True)
        results.append(disk_full(home))
        results.append(clock(f"sqlite:///{home}/clock.db", 200))
        folder = home / "restarts"
        folder.mkdir()
        results.append(restarts(server, folder, min(processes, 8), 2 if quick else 6))
    print(table(results))
    text = json.dumps(results, indent=1)
    print(text)
    if given.json is not None:
        given.json.write_text(text + "\n")
    sys.exit(any(result["broken"] for result in results))


if __name__ == "__main__":
    main()
