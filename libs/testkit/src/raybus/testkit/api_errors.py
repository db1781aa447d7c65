"""Refusals of the API server in memory, with the `metav1.Status` bodies that the real one sends."""

import msgspec

from raybus.api.kinds import Kind


class ApiError(Exception):
    """An answer outside 2xx; `retry_after` in seconds goes into the header of that name."""

    def __init__(self, code: int, reason: str, message: str, retry_after: int = 0) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.retry_after = code, reason, message, retry_after

    @property
    def body(self) -> bytes:
        """The Status object as JSON."""
        return msgspec.json.encode(
            {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": self.message,
                "reason": self.reason,
                "code": self.code,
            }
        )


def resource(kind: Kind) -> str:
    """`pods`, `rayclusters.ray.io`: how messages name a resource."""
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural


def not_found(kind: Kind, name: str) -> ApiError:
    """404 for one object."""
    return ApiError(404, "NotFound", f'{resource(kind)} "{name}" not found')


def no_such_resource() -> ApiError:
    """404 for a path that no served kind has."""
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def already_exists(kind: Kind, name: str) -> ApiError:
    """409 for a create of a name that is taken."""
    return ApiError(409, "AlreadyExists", f'{resource(kind)} "{name}" already exists')


def uid_conflict(kind: Kind, name: str, wanted: str, found: str) -> ApiError:
    """409 for a precondition on the UID that does not hold."""
    text = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    return ApiError(409, "Conflict", f'Operation cannot be fulfilled on {resource(kind)} "{name}": {text}')


def version_conflict(kind: Kind, name: str) -> ApiError:
    """409 for a write that was made on another resourceVersion."""
    text = "the object has been modified; please apply your changes to the latest version and try again"
    return ApiError(409, "Conflict", f'Operation cannot be fulfilled on {resource(kind)} "{name}": {text}')


def invalid(kind: Kind, name: str, why: str) -> ApiError:
    """422 for an object that validation refuses."""
    group = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    return ApiError(422, "Invalid", f'{group} "{name}" is invalid: {why}')


def expired(version: str) -> ApiError:
    """410 for a resourceVersion or continue token that was compacted away."""
    return ApiError(410, "Expired", f"The resourceVersion for the provided watch or list is too old ({version}).")
