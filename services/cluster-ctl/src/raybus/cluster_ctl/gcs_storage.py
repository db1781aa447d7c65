"""The claim behind embedded fault tolerance: made once, adopted where it is there, told where it differs (contract
reconcile §13; ADR 0123)."""

from __future__ import annotations

from collections.abc import Iterator

from raybus.api.decision import Apply, Create, Json, Note, Patch, Ref, Why
from raybus.api.reasons import Reason
from raybus.cluster_ctl import fault_tolerance as ft
from raybus.cluster_ctl.build.gcs_claim import DEFAULT_MODES, DEFAULT_SIZE, gcs_claim, gcs_claim_metadata, retained
from raybus.cluster_ctl.build.ownership import owner_reference
from raybus.cluster_ctl.claims import Claim
from raybus.cluster_ctl.outcome import Outcome, created, not_created
from raybus.cluster_ctl.quantity import Quantity, parse
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.view import ClusterView


def decide_gcs_storage(view: ClusterView, knobs: ClusterKnobs) -> Outcome:
    """The user's claim is only looked for; our own is watched by its label, so a claim that somebody else made under
    its name gets that label first."""
    if ft.backend(view.cluster) != ft.ROCKSDB:
        return Outcome()
    ref = Ref("PersistentVolumeClaim", view.ref.namespace, ft.claim_name(view.cluster))
    if ft.storage(view.cluster).claim_name:
        return _of_user(view, ref)
    claim = next((claim for claim in view.claims if claim.name == ref.name), None)
    if claim is not None:
        return Outcome(tuple(_owner(view, claim, ref)), warnings=tuple(_differences(view, claim)))
    there = view.is_there(ref)
    if there is None:
        return Outcome(needs=(ref,))
    return Outcome((_adopt(view, ref) if there else _create(view, ref),), needs=(ref,))


def _of_user(view: ClusterView, ref: Ref) -> Outcome:
    if view.is_there(ref) is not False:
        return Outcome(needs=(ref,))
    text = (
        f'GcsFaultToleranceOptions.Storage.ClaimName "{ref.name}" not found in namespace {ref.namespace};'
        " the head Pod will not start until it exists"
    )
    note = Note(type="Warning", reason=Reason.FAILED_TO_CREATE_PVC, action="Validate", text=text)
    step = "Create the claim, or leave claimName out to have one made."
    why = Why(reason=Reason.FAILED_TO_CREATE_PVC, text=text, about=ref, next_step=step)
    return Outcome(because=(why,), warnings=(note,), needs=(ref,))


def _create(view: ClusterView, ref: Ref) -> Create:
    where = f"{ref.namespace}/{ref.name}"
    return Create(
        ref=ref,
        body=gcs_claim(view.cluster),
        done=created(Reason.CREATED_PVC, f"Created GCS storage PVC {where}"),
        failed=not_created(Reason.FAILED_TO_CREATE_PVC, f"Failed to create GCS storage PVC {where}"),
    )


def _adopt(view: ClusterView, ref: Ref) -> Apply:
    body: Json = {"apiVersion": "v1", "kind": ref.kind, "metadata": gcs_claim_metadata(view.cluster)}
    text = f"Failed to adopt GCS storage PVC {ref.namespace}/{ref.name}"
    return Apply(ref=ref, body=body, failed=not_created(Reason.FAILED_TO_CREATE_PVC, text))


def _owner(view: ClusterView, claim: Claim, ref: Ref) -> Iterator[Patch]:
    """Own the claim, or no longer, as the deletion policy says; it has one controller at most."""
    uid = view.cluster.metadata.uid
    ours = next((number for number, owner in enumerate(claim.owners) if owner.uid == uid), None)
    taken = any(owner.controller for owner in claim.owners)
    operation: Json | None = None
    if retained(view.cluster) and ours is not None:
        operation = {"op": "remove", "path": f"/metadata/ownerReferences/{ours}"}
    elif not retained(view.cluster) and ours is None and not taken:
        path = "/metadata/ownerReferences" + ("/-" if claim.owners else "")
        reference = owner_reference(view.cluster)
        operation = {"op": "add", "path": path, "value": reference if claim.owners else [reference]}
    if operation is not None and not claim.deleting:
        yield Patch(ref=ref, uid=claim.uid, resource_version=claim.version, operations=(operation,))


def _differences(view: ClusterView, claim: Claim) -> Iterator[Note]:
    """What the spec asks for and the claim, which cannot be changed, is not."""
    wanted = ft.storage(view.cluster)
    size, modes = str(wanted.size or DEFAULT_SIZE), wanted.access_modes or DEFAULT_MODES
    found = []
    if _amount(size) != _amount(claim.size):
        found.append(f"requested size {size} != current {claim.size}")
    if wanted.storage_class_name is not None and wanted.storage_class_name != (claim.storage_class or ""):
        found.append(f"requested class {wanted.storage_class_name} != current {claim.storage_class or 'none'}")
    if sorted(modes) != sorted(claim.access_modes):
        found.append(f"requested modes {', '.join(modes)} != current {', '.join(claim.access_modes)}")
    if found:
        text = (
            f"GCS storage PVC {view.ref.namespace}/{claim.name} already exists and cannot be reconfigured in place"
            f" ({'; '.join(found)}); delete the PVC to recreate it with the new settings"
        )
        yield Note(type="Warning", reason=Reason.FAILED_TO_CREATE_PVC, action="Update", text=text)


def _amount(text: str) -> Quantity | str:
    """The amount that a text means; what is none is compared as text."""
    try:
        return Quantity(parse(text).amount)
    except ValueError:
        return text
