"""The page of metrics: gauges that are read when it is asked for."""

from raybus.telemetry.metrics import Readings, exposition, read_when_asked


def test_what_is_read_when_asked_is_on_the_page_for_as_long_as_the_context_lasts() -> None:
    values = {"b": 1.5}

    def read() -> list[Readings]:
        samples = (((label, 'say "x"\n'), value) for label, value in values.items())
        return [Readings("test_read", "A test.", ("which", "text"), samples)]

    with read_when_asked(read):
        page = exposition().decode()
        assert "# HELP test_read A test.\n# TYPE test_read gauge\n" in page
        assert 'test_read{text="say \\"x\\"\\n",which="b"} 1.5\n' in page
        values["b"] = 2.0
        assert 'which="b"} 2\n' in exposition().decode()
        values.clear()
        assert "test_read" not in exposition().decode()
        values["b"] = 3.0
    assert "test_read" not in exposition().decode()


def test_two_readers_may_speak_of_the_same_gauge() -> None:
    with (
        read_when_asked(lambda: [Readings("test_twice", "A test.", (), [((), 1.0)])]),
        read_when_asked(lambda: [Readings("test_twice", "A test.", (), [((), 2.0)])]),
    ):
        page = exposition().decode()
    assert "test_twice 1\n" in page and "test_twice 2\n" in page
