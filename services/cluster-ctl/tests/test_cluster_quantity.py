"""Quantities: what Kubernetes reads, how sums are written, what Ray's flags get."""

import pytest

from raybus.cluster_ctl.quantity import ZERO, parse

CANONICAL = {
    "a plain number stays": ("3", "3"),
    "millis stay": ("1500m", "1500m"),
    "whole millis become units": ("2000m", "2"),
    "a fraction becomes millis": ("0.5", "500m"),
    "binary stays binary": ("1536Mi", "1536Mi"),
    "full binary steps move up": ("2048Mi", "2Gi"),
    "small binary is plain": ("0.5Ki", "512"),
    "decimal suffixes move up": ("3000M", "3G"),
    "exponents keep their form": ("2e3", "2e3"),
    "nothing is zero": ("0Mi", "0"),
    "less than a nano is a nano": ("0.1n", "1n"),
}


@pytest.mark.parametrize(("text", "written"), CANONICAL.values(), ids=CANONICAL)
def test_written_as_kubernetes_would(text: str, written: str) -> None:
    assert str(parse(text)) == written


SUMS = {
    "the first notation wins: decimal": (("3G", "1Gi"), "4073741824"),
    "the first notation wins: binary": (("1Gi", "1G"), "2073741824"),
    "zero has no say": (("0", "1Gi", "1Gi"), "2Gi"),
    "cpu adds up": (("500m", "1500m", "1"), "3"),
}


@pytest.mark.parametrize(("parts", "total"), SUMS.values(), ids=SUMS)
def test_sums(parts: tuple[str, ...], total: str) -> None:
    summed = ZERO
    for part in parts:
        summed = summed + parse(part)
    assert str(summed) == total


@pytest.mark.parametrize(("text", "whole"), [("500m", 1), ("1001m", 2), ("3G", 3000000000), ("1.5Gi", 1610612736)])
def test_ray_gets_whole_numbers_rounded_up(text: str, whole: int) -> None:
    assert parse(text).ceiling() == whole


@pytest.mark.parametrize("text", ["", "x", "1Zi", "1 Gi", "--1", "1e"])
def test_what_is_no_quantity_is_said_so(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        parse(text)
