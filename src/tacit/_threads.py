"""Blocks in parallel threads, with single-threaded BLAS.

The products of a block are too small for a threaded BLAS, whose threads wait for each
other by spinning: on a busy machine that took five times as long. Here BLAS uses one
thread and blocks run in parallel, if they are large enough.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

__all__ = ["in_order"]

Block = TypeVar("Block")
Result = TypeVar("Result")


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # inspects all loaded libraries, so only once


def _workers() -> int:
    """Return the number of BLAS threads, which environment variables can set."""
    blas = _controller().select(user_api="blas").info()
    return max((int(library["num_threads"]) for library in blas), default=1)


def in_order(
    function: Callable[[Block], Result], blocks: Iterable[Block], *, side_by_side: bool
) -> Iterator[Result]:
    """Yield the function of each block, in the order of the blocks.

    ``side_by_side`` runs blocks in parallel threads, if their work is long enough. Only
    a few blocks run ahead of the one that is yielded, to limit memory. Results do not
    depend on the number of threads.
    """
    workers = _workers() if side_by_side else 1
    with _controller().limit(limits=1, user_api="blas"):
        if workers == 1:
            yield from map(function, blocks)
            return
        with ThreadPoolExecutor(workers) as pool:
            ahead: deque[Future[Result]] = deque()
            for block in blocks:
                ahead.append(pool.submit(function, block))
                if len(ahead) > 2 * workers:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
