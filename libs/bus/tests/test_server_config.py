import json
from pathlib import PurePosixPath

import pytest

from raybus.bus.server_config import ROLES, Server, permissions, server_config

SERVER = Server(PurePosixPath("/data"), 4222)


def test_the_text_is_a_configuration_with_one_user_per_service() -> None:
    config = json.loads(server_config(SERVER, {"watcher": "a", "cli": "b"}))
    assert [user["user"] for user in config["authorization"]["users"]] == ["watcher", "cli"]
    assert config["max_payload"] == 4 << 20
    assert config["jetstream"]["store_dir"] == "/data"


def test_an_unknown_service_is_an_error() -> None:
    with pytest.raises(KeyError):
        server_config(SERVER, {"submitter": "x"})


@pytest.mark.parametrize("service", ROLES)
def test_nobody_is_permitted_a_way_to_read_without_a_filter(service: str) -> None:
    allowed = permissions(service)["publish"]["allow"]
    creates = [subject for subject in allowed if ".CONSUMER.CREATE." in subject]
    assert all(len(subject.split(".")) > 6 for subject in creates)
    assert not [subject for subject in allowed if "MSG.GET" in subject or subject.startswith("$JS.API.>")]
    gets = [subject for subject in allowed if ".DIRECT.GET." in subject]
    assert all(len(subject.split(".")) > 5 for subject in gets)


def test_only_the_watcher_makes_streams_and_only_the_applier_works_off_intents() -> None:
    def may(word: str) -> list[str]:
        return [name for name in ROLES if any(word in subject for subject in permissions(name)["publish"]["allow"])]

    assert may("STREAM.CREATE") == ["watcher"]
    assert may("$JS.ACK.") == ["applier"]
    assert may("CONSUMER.CREATE.INTENT") == ["applier"]
