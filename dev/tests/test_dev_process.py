"""Only processes that we started are ended, and these with all their children."""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from raybus.dev.errors import DevError
from raybus.dev.process import Component, Record, group_of, is_same, running, start, start_ticks, stop

SLEEP = Component("sleeper", ("/bin/sleep", "600"))
STAT = "42 (odd) name)) S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 1"
ENDING = STAT.replace(" S ", " Z ", 1).replace(" 20 0 1 ", " 20 0 4 ")


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "did not come true"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("stat", "expected"),
    [
        pytest.param(STAT, 987654, id="a name with brackets and blanks"),
        pytest.param(STAT.replace(" S ", " Z ", 1), None, id="a zombie does not count as running"),
        pytest.param(ENDING, 987654, id="a zombie whose threads still end does count"),
    ],
)
def test_start_time_out_of_proc(stat: str, expected: int | None) -> None:
    assert start_ticks(stat) == expected


def test_group_out_of_proc() -> None:
    assert group_of(STAT) == 42
    assert group_of(STAT.replace(" S ", " Z ", 1)) is None


@pytest.mark.parametrize(
    ("boot", "ticks", "same"),
    [
        pytest.param("b", 5, True, id="same boot, same start"),
        pytest.param("b", 6, False, id="the pid was given to another process"),
        pytest.param("c", 5, False, id="the machine was booted anew"),
        pytest.param("b", None, False, id="gone"),
    ],
)
def test_identity(boot: str, ticks: int | None, same: bool) -> None:
    assert is_same(Record(1, 5, "b", "digest"), boot, ticks) is same


def test_start_is_idempotent_and_stop_ends_it(tmp_path: Path) -> None:
    assert start(SLEEP, tmp_path)
    record = running(tmp_path, "sleeper")
    assert record is not None
    assert not start(SLEEP, tmp_path)
    assert running(tmp_path, "sleeper") == record
    assert stop(tmp_path, "sleeper")
    assert not Path(f"/proc/{record.pid}").exists()
    assert not stop(tmp_path, "sleeper")


def test_another_command_line_replaces_the_process(tmp_path: Path) -> None:
    start(SLEEP, tmp_path)
    first = running(tmp_path, "sleeper")
    assert start(replace(SLEEP, argv=("/bin/sleep", "601")), tmp_path)
    second = running(tmp_path, "sleeper")
    stop(tmp_path, "sleeper")
    assert first is not None and second is not None and first.pid != second.pid


def test_children_and_the_deaf_end_too(tmp_path: Path) -> None:
    note = tmp_path / "child"
    shell = f"trap '' TERM; sleep 600 & echo $! >{note}; wait; sleep 600"
    start(Component("deaf", ("/bin/sh", "-c", shell)), tmp_path)
    eventually(lambda: note.exists() and note.read_text().strip() != "")
    stop(tmp_path, "deaf", grace_s=0.3)
    child = Path(f"/proc/{note.read_text().strip()}/stat")
    assert not child.exists() or group_of(child.read_text()) is None


def test_a_stranger_with_our_old_pid_is_left_alone(tmp_path: Path) -> None:
    start(SLEEP, tmp_path)
    record = running(tmp_path, "sleeper")
    assert record is not None
    stop(tmp_path, "sleeper")
    with subprocess.Popen(["/bin/sleep", "600"], start_new_session=True) as stranger:
        text = f'{{"pid": {stranger.pid}, "start_ticks": 1, "boot_id": "{record.boot_id}", "digest": "x"}}'
        (tmp_path / "sleeper.json").write_text(text)
        assert not stop(tmp_path, "sleeper")
        assert stranger.poll() is None
        stranger.kill()


def test_output_goes_to_a_log(tmp_path: Path) -> None:
    start(Component("talker", (sys.executable, "-c", "print('hello', flush=True); input()")), tmp_path)
    eventually(lambda: "hello" in (tmp_path / "talker.log").read_text() or running(tmp_path, "talker") is None)
    stop(tmp_path, "talker")
    assert "hello" in (tmp_path / "talker.log").read_text()


def test_a_missing_program_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(DevError, match="nowhere"):
        start(Component("lost", ("/nowhere/at/all",)), tmp_path)
