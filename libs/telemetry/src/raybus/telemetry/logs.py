"""Logs: structlog, one line an event, as JSON (production, as KubeRay's `--log-stdout-encoder=json`) or readable."""

import logging
import sys
from typing import Literal

import structlog
from structlog.typing import Processor

LogFormat = Literal["json", "console"]

_ZAP_LEVELS = {"dpanic": "critical", "panic": "critical", "fatal": "critical"}
"""Levels that KubeRay's `--zap-log-level` knows and Python's logging does not; a number there is a degree of debug."""


def configure_logs(service: str, encoder: LogFormat, level: str) -> None:
    """Send this process's logs to standard output; `level` is a name of the logging module (`info`, `debug`, ...).

    Raises ValueError for an unknown level.
    """
    known = "debug" if level.isdecimal() else _ZAP_LEVELS.get(level.lower(), level)
    number = logging.getLevelNamesMapping().get(known.upper())
    if number is None:
        raise ValueError(f"log level {level!r} is not one of debug, info, warning, error")
    processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if encoder == "json":
        processors += [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    else:
        processors.append(structlog.dev.ConsoleRenderer(colors=sys.stdout.isatty(), pad_event_to=0))
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stdout),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(service=service)
    form = f"{service} %(name)s %(levelname)s %(message)s"
    logging.basicConfig(level=logging.WARNING, stream=sys.stdout, format=form)
