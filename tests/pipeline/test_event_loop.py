"""Look-ups of names hold up nothing: neither each other nor the end."""

import asyncio
import socket
import threading

import pytest

from pipeline.event_loop import EventLoop


def test_names_that_are_never_found_hold_up_no_other_and_not_the_end(monkeypatch):
    never, true_look_up = threading.Event(), socket.getaddrinfo

    def look_up(host, *arguments, **hints):
        if host.endswith(".slow.example"):
            never.wait(60)
        return true_look_up(host, *arguments, **hints)

    async def ask():
        loop = asyncio.get_running_loop()
        names = [f"{n}.slow.example" for n in range(50)]  # more than any pool of threads has
        waiting = [loop.create_task(loop.getaddrinfo(name, 80)) for name in names]
        await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        return await loop.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        found = runner.run(ask())
    assert not never.is_set()
    assert [address[0] for *_, address in found] == ["127.0.0.1"]
    never.set()


def test_a_name_that_is_none_raises_what_the_system_raises():
    async def ask():
        await asyncio.get_running_loop().getaddrinfo("no such name.example", 80)

    with asyncio.Runner(loop_factory=EventLoop) as runner, pytest.raises(socket.gaierror):
        runner.run(ask())
