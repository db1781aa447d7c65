"""Runs the step function of `watch.py` over a connection."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing

from raybus.kube.port import Bug, KubeError, Sender
from raybus.kube.watch import Ended, Event, Input, Line, Next, Page, Target, begin, step

MAX_LINE = 32 * 1024 * 1024
"""Bytes of one watch event: the API server's own limit is 3 MB for an object, an event is not much longer."""


async def follow(sender: Sender, target: Target, jitter: Callable[[], float]) -> AsyncGenerator[Event, None]:
    """Every event of `target`, without end; failures are events too (`Trouble`) and are retried with back-off.

    `jitter`: a factor for each delay (about 1), so that many watches do not come back in the same instant.
    The consumer holds the watch back by taking events slowly: nothing is read ahead beyond one page or chunk.
    """
    state, following = begin(target)
    while True:
        await asyncio.sleep(following.delay * jitter())
        async with aclosing(_inputs(sender, following)) as inputs:
            async for given in inputs:
                events, state, replaced = step(state, given)
                for event in events:
                    yield event
                if replaced is not None:
                    following = replaced
                    break


async def _inputs(sender: Sender, following: Next) -> AsyncGenerator[Input, None]:
    """What comes of one request: a page, or lines and an end."""
    clock = asyncio.get_running_loop().time
    started = clock()
    try:
        if following.streamed:
            async with aclosing(lines(sender.stream(following.request))) as stream:
                async for line in stream:
                    yield Line(line)
            yield Ended(clock() - started)
        else:
            yield Page((await sender.send(following.request)).body)
    except KubeError as error:
        yield Ended(clock() - started, error)


async def lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The complete lines of a stream of chunks, empty ones left out; half a line at the end is dropped: the event was
    cut off and comes again. Raises Bug for a line beyond `MAX_LINE`, and whatever `chunks` raises."""
    rest = bytearray()
    async for chunk in chunks:
        searched = len(rest)
        rest += chunk
        end = rest.find(b"\n", searched)
        start = 0
        while end >= 0:
            if end > start:
                yield bytes(memoryview(rest)[start:end])
            start = end + 1
            end = rest.find(b"\n", start)
        del rest[:start]
        if len(rest) > MAX_LINE:
            raise Bug(f"the API server sent a watch event of more than {MAX_LINE} bytes")
