"""The two ways in which a call to a dashboard fails."""


class DashboardError(Exception):
    """A call did not give what was asked for; the text is for people and names the dashboard."""


class DashboardUnreachable(DashboardError):
    """Ray gave no answer: no connection, no complete answer in time, or something on the way (the API server's proxy,
    a dashboard that is starting) answered instead. Transient. A call that changes something may have been carried out.

    reason: the cause alone, without the dashboard's address.
    """

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"the Ray dashboard at {url} is unreachable: {reason}")
        self.reason = reason


class DashboardRefused(DashboardError):
    """Ray (or, for 401 and 403, the API server's proxy) answered that it will not.

    status: the HTTP status; body: what it said, shortened.
    """

    def __init__(self, url: str, status: int, body: str) -> None:
        super().__init__(f"the Ray dashboard at {url} refused with HTTP {status}: {body}")
        self.status = status
        self.body = body
