"""`patchq slice` as JSON (docs/json.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from patchq.exl3.model import Refusal
    from patchq.exl3.slice import SliceReport
    from patchq.exl3.summary import Group, Summary
    from patchq.exl3.verify import Verified


def plan(summary: Summary) -> dict[str, Any]:
    return {"schema": "patchq.slice-plan/1", **_summary(summary)}


def _summary(summary: Summary) -> dict[str, Any]:
    return {
        "source": summary.root,
        "tp": summary.tp,
        "uneven": summary.uneven,
        "checkpoint": {
            "shards": summary.shards,
            "tensors": summary.tensors,
            "single_file": summary.single_file,
            "symlinks": summary.symlinks,
            "layers": summary.layers,
            "moe_layers": list(summary.moe_layers),
            "experts": list(summary.experts),
            "codebooks": dict(summary.codebooks),
            "bits": {str(bits): count for bits, count in summary.bits},
            "average_bits": summary.average_bits,
            "routed": summary.routed,
            "dense": summary.dense,
            "fused": summary.fused,
            "packed_signs": summary.packed_signs,
            "biases": summary.biases,
            "shared_vectors": summary.shared_vectors,
            "unquantized": summary.unquantized,
            "unquantized_bytes": summary.unquantized_bytes,
        },
        "groups": [_group(group) for group in summary.groups],
        "bytes": {
            "source": summary.bytes_source,
            "result": summary.bytes_result,
            "common": summary.bytes_common,
            "ranks": list(summary.bytes_rank),
        },
        "refused": [_refusal(refusal) for refusal in summary.refused],
        "warnings": list(summary.warnings),
    }


def _group(group: Group) -> dict[str, Any]:
    return {
        "modules": group.pattern,
        "count": group.count,
        "in_features": group.k,
        "out_features": group.n,
        "bits": group.bits,
        "codebook": group.codebook,
        "split": group.cut.split if group.cut else None,
        "ranges": group.cut.ranges if group.cut else None,
        "why": group.why,
    }


def _refusal(refusal: Refusal) -> dict[str, Any]:
    return {"tensor": refusal.tensor, "why": refusal.why, "hint": refusal.hint}


def run(report: SliceReport) -> dict[str, Any]:
    return {
        "schema": "patchq.slice-run/1",
        "target": str(report.target),
        "layout": report.layout,
        **_summary(report.summary),
        "files": [
            {"file": each.file, "rank": each.rank, "size": each.size} for each in report.files
        ],
        "written": report.nbytes,
        "resumed": report.resumed,
        "seconds": report.seconds,
    }


def verify(found: Verified) -> dict[str, Any]:
    return {
        "schema": "patchq.slice-verify/1",
        "target": str(found.root),
        "against": None if found.against is None else str(found.against),
        "full": found.full,
        "ok": found.ok,
        "tp": found.tp,
        "ranks": list(found.ranks),
        "checks": [
            {"name": each.name, "ok": each.ok, "detail": each.says, "problems": list(each.problems)}
            for each in found.checks
        ],
        "digests": {str(rank): digest for rank, digest in sorted(found.digests.items())},
        "tensors": found.tensors,
        "bytes_read": found.bytes_read,
        "weights_decoded": found.weights_decoded,
    }
