"""Kubernetes quantities: reading, adding and writing them in the API server's canonical form.

Sums keep the notation of the first operand that is not zero, as Kubernetes' own arithmetic does (`3G` and `1Gi` add up
to a decimal figure), so that `status.desiredMemory` reads as users know it (contract raycluster-reconcile §14.1).
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal
from typing import NamedTuple

_BINARY = {"Ki": 1024, "Mi": 1024**2, "Gi": 1024**3, "Ti": 1024**4, "Pi": 1024**5, "Ei": 1024**6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_TEXT = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+|)")


class Quantity(NamedTuple):
    """An exact amount and the notation to write it in: `binary` (Ki, Mi), `decimal` (m, k, M) or `exponent` (e3)."""

    amount: Decimal
    notation: str = "decimal"

    def __add__(self, other: object) -> Quantity:
        if not isinstance(other, Quantity):
            return NotImplemented
        notation = other.notation if not self.amount else self.notation
        return Quantity(self.amount + other.amount, notation)

    def times(self, factor: int) -> Quantity:
        """The amount `factor` times over, in the same notation."""
        return Quantity(self.amount * factor, self.notation)

    def ceiling(self) -> int:
        """The amount rounded up to a whole number, as Ray's start flags want it."""
        return int(self.amount.to_integral_value(ROUND_CEILING))

    def __str__(self) -> str:
        if not self.amount:
            return "0"
        if self.notation == "binary" and abs(self.amount) >= 1024:
            return _in_binary(self.ceiling())
        return _in_decimal(self.amount, self.notation == "exponent")


ZERO = Quantity(Decimal(0))


def parse(text: str | int | float) -> Quantity:
    """Read `500m`, `1Gi`, `1.5`, `2e3` or a plain number. Raises ValueError when it is no quantity."""
    match = _TEXT.fullmatch(str(text).strip())
    if match is None:
        raise ValueError(f"not a quantity: {text!r}")
    number, unit = Decimal(match[1]), match[2]
    if unit in _BINARY:
        return Quantity(number * _BINARY[unit], "binary")
    if unit in _DECIMAL:
        return Quantity(number.scaleb(_DECIMAL[unit]))
    return Quantity(number.scaleb(int(unit[1:])), "exponent")


def _in_binary(amount: int) -> str:
    for unit, factor in reversed(_BINARY.items()):
        if amount % factor == 0:
            return f"{amount // factor}{unit}"
    return str(amount)


def _in_decimal(amount: Decimal, exponent: bool) -> str:
    """The greatest power of a thousand that leaves a whole number; what is smaller than a nano is rounded up."""
    nano = int(amount.scaleb(9).to_integral_value(ROUND_CEILING))
    power, unit = -9, "n"
    for name, next_power in _DECIMAL.items():
        if nano % 10 ** (next_power + 9) == 0:
            power, unit = next_power, name
    mantissa = nano // 10 ** (power + 9)
    if exponent:
        return f"{mantissa}e{power}" if power else str(mantissa)
    return f"{mantissa}{unit}"
