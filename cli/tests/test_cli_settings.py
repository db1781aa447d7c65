"""`raybus settings`, and docs/settings.md: every setting of every service, and all of KubeRay's."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from raybus.cli.settings_command import CLASSES, rows
from raybus.runtime.settings import SettingsError

ROOT = Path(__file__).parents[2]


def settings_page() -> ModuleType:
    """tools/settings_page.py, a script and no package."""
    found = importlib.util.spec_from_file_location("settings_page", ROOT / "tools" / "settings_page.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_page_is_current() -> None:
    module = settings_page()
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "run `make diagrams`"


def test_every_name_of_kuberay_is_accepted_refused_or_not_needed() -> None:
    module = settings_page()
    fates = {name: module.fate(name) for names in module.KUBERAY.values() for name in names}
    assert fates["--batch-scheduler"][0] == "accepted"
    assert fates["--qps"][0] == "not needed"
    assert fates["headSidecarContainers"] == ("accepted", "cluster-ctl")


@pytest.mark.parametrize("service", CLASSES)
def test_each_setting_is_shown_with_value_source_default_and_meaning(service: str) -> None:
    shown = {row[0]: row[1:] for row in rows(service, ["--log-stdout-encoder=console"], {"RAYBUS_REPLICA": "a"})}
    assert shown["log-stdout-encoder"][:3] == ("console", "flag --log-stdout-encoder", "json")
    assert shown["replica"][:3] == ("a", "environment RAYBUS_REPLICA", "")
    assert shown["metrics-addr"][:3] == (":8080", "default", ":8080")
    assert all(meaning for *_, meaning in shown.values())


def test_a_password_is_never_shown() -> None:
    shown = [row for row in rows("watcher", [], {"RAYBUS_NATS_PASSWORD": "geheim"}) if row[0] == "nats-password"]
    assert shown[0][1] == "***" and "geheim" not in str(shown)


def test_what_the_service_would_refuse_is_refused_here_too() -> None:
    with pytest.raises(SettingsError, match="feature gate"):
        list(rows("job-ctl", ["--feature-gates=RayCronJob=true"], {}))
