"""What every custom resource of ray.io/v1 shares: metadata, owner references, conditions."""

from typing import Annotated

from msgspec import Struct, field

from raybus.api.v1._doc import Int64, Time, doc

_TYPE_PATTERN = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)


class OwnerReference(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """The object on which this one depends; garbage collection follows these."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """The part of Kubernetes object metadata that Raybus reads or writes; `managedFields` and the like are left out."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None


class Condition(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """One aspect of the state of an object, in the form of `metav1.Condition`. All but `observedGeneration` is always
    written."""

    type: Annotated[
        str,
        doc(
            "Which aspect this entry is about, such as `HeadPodReady`. At most one entry per type.",
            required=True,
            maxLength=316,
            pattern=_TYPE_PATTERN,
        ),
    ] = field(default_factory=str)
    status: Annotated[
        str,
        doc(
            "`True`, `False`, or `Unknown` while nothing has been observed.",
            required=True,
            enum=["True", "False", "Unknown"],
        ),
    ] = field(default_factory=str)
    reason: Annotated[
        str,
        doc(
            "One word for programs: why the status is what it is.",
            required=True,
            minLength=1,
            maxLength=1024,
            pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        ),
    ] = field(default_factory=str)
    message: Annotated[
        str, doc("A sentence for people with the details; may be empty.", required=True, maxLength=32768)
    ] = field(default_factory=str)
    last_transition_time: Annotated[
        Time, doc("When `status` last changed its value. RFC 3339, UTC, whole seconds.", required=True)
    ] = field(default_factory=str)
    observed_generation: Annotated[
        Int64,
        doc(
            "`metadata.generation` for which this entry was computed; left out where the kind does not track it.",
            minimum=0,
        ),
    ] = 0
